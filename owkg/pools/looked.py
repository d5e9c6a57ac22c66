"""Record in the folder of a pool of the looks at its estimates."""

import json
from pathlib import Path
from typing import NamedTuple

from owkg.estimation.made_looks import Looks
from owkg.files.storage import written_aside

LOOKS = "looks.json"
"""File with the numbers of judged units at the looks made and planned."""


class Record(NamedTuple):
    """Recorded looks at a pool.

    Attributes:
        looks: planned and made looks.
        proxies: SHA-256 of each file of probabilities at the first look; None before the first look.
    """

    looks: Looks
    proxies: dict[str, str] | None


def read_looks(folder: Path) -> Record:
    """Recorded looks at the estimates of a pool.

    Raises:
        ValueError: naming the file, if it was changed.
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
    """Record a look if it is new, and return notes.

    Args:
        folder: folder of the pool.
        before: record so far.
        looks: looks including this one.
        proxies: SHA-256 of each file of probabilities that was used.
    """
    notes = []
    if before.proxies is not None and proxies != before.proxies:
        first = ", ".join(before.proxies) or "none"
        notes.append(
            f"the files of probabilities differ from the first look ({first}): a file chosen or made "
            "after looking at judgements may make intervals too narrow."
        )
    if looks == before.looks:
        return notes
    said = {"planned": looks.planned, "made": looks.made}
    said |= {"proxies": proxies if before.proxies is None else before.proxies}
    try:
        with written_aside(folder / LOOKS) as aside:
            aside.write_text(json.dumps(said) + "\n", encoding="utf-8")
    except OSError:
        notes.append(f"this look is not recorded because {folder} cannot be written: count it yourself.")
    return notes
