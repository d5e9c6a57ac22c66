"""The record in the folder of a pool of when its estimates were looked at."""

import json
from pathlib import Path

from owkg.estimation.made_looks import Looks
from owkg.files.storage import written_aside

LOOKS = "looks.json"
"""Numbers of judged units at which estimates were looked at, and those planned."""


def read_looks(folder: Path) -> Looks:
    """The looks at the estimates of a pool so far.

    Raises:
        ValueError: naming the file, if it is not as it was written.
    """
    file = folder / LOOKS
    if not file.is_file():
        return Looks(None, ())
    try:
        said = json.loads(file.read_text(encoding="utf-8"))
        planned, made = said["planned"], said["made"]
        if not all(type(one) is int and one > 0 for one in [*(planned or ()), *made]):
            raise ValueError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"{file}: must hold the looks at a pool, planned and made, as owkg estimate writes them."
        ) from None
    return Looks(None if planned is None else tuple(planned), tuple(made))


def write_looks(folder: Path, looks: Looks) -> list[str]:
    """Writes the looks so far; gives a note if the folder cannot be written."""
    said = {"planned": looks.planned, "made": looks.made}
    try:
        with written_aside(folder / LOOKS) as aside:
            aside.write_text(json.dumps(said) + "\n", encoding="utf-8")
    except OSError:
        return [f"{folder} cannot be written, so that this look is not recorded: count it yourself."]
    return []
