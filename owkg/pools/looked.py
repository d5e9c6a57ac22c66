"""The record in the folder of a pool of when its estimates were looked at."""

import json
from pathlib import Path
from typing import NamedTuple

from owkg.estimation.made_looks import Looks
from owkg.files.storage import written_aside

LOOKS = "looks.json"
"""Numbers of judged units at which estimates were looked at, and those planned."""


class Record(NamedTuple):
    """What is recorded of the looks at a pool.

    Attributes:
        looks: planned and made.
        proxies: the SHA-256 of each file of probabilities at the first look; None: there was no look.
    """

    looks: Looks
    proxies: dict[str, str] | None


def read_looks(folder: Path) -> Record:
    """The looks at the estimates of a pool so far.

    Raises:
        ValueError: naming the file, if it is not as it was written.
    """
    file = folder / LOOKS
    if not file.is_file():
        return Record(Looks(None, ()), None)
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        planned, made, proxies = said["planned"], said["made"], dict(said["proxies"])
        if not all(type(one) is int and one > 0 for one in [*(planned or ()), *made]):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"{file}: must hold the looks at a pool (planned, made, proxies), as owkg estimate writes them."
        ) from None
    return Record(Looks(None if planned is None else tuple(planned), tuple(made)), proxies)


def record_look(folder: Path, before: Record, looks: Looks, proxies: dict[str, str]) -> list[str]:
    """Records a look, if it is a new one; gives notes.

    Args:
        folder: of the pool.
        before: the record so far.
        looks: with this one.
        proxies: the SHA-256 of each file of probabilities that was used.
    """
    notes = []
    if before.proxies is not None and proxies != before.proxies:
        first = ", ".join(before.proxies) or "none"
        notes.append(
            f"the files of probabilities are not those of the first look ({first}): one that is chosen or "
            "made by what was judged may make intervals too narrow."
        )
    if looks == before.looks:
        return notes
    said = {"planned": looks.planned, "made": looks.made}
    said |= {"proxies": proxies if before.proxies is None else before.proxies}
    try:
        with written_aside(folder / LOOKS) as aside:
            aside.write_text(json.dumps(said) + "\n", encoding="utf-8")
    except OSError:
        notes.append(f"{folder} cannot be written, so that this look is not recorded: count it yourself.")
    return notes
