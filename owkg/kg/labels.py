"""Files that map ids to labels."""

import re
from pathlib import Path

import polars as pl

from owkg.files.lines import (
    WHOLE,
    counted_lines,
    first_row,
    line_error,
    read_lines,
    require_distinct,
    split_lines,
)

_LABEL_FIRST = rf"(?P<label>[^\t]*[^\t ])[ \t]+(?P<id>{WHOLE})[ \t]*"
_ID_FIRST = rf"(?P<id>{WHOLE})\t(?P<label>[^\t]+)"


def read_labels(path: Path, *, label_first: bool = False, counted: bool | None = False) -> tuple[str, ...]:
    """Labels in the order of their ids.

    Args:
        path: file with lines of an id, a tab and a label.
        label_first: whether lines instead have a label, then tabs or spaces and an id (OpenKE, KB2E). Default
            False.
        counted: whether the first line is the number of the lines after it. None: by its content. Default
            False.

    Raises:
        ValueError: naming file and line, if the ids are not 0, 1, 2, ..., each once, or a label is repeated.
    """
    lines = read_lines(path)
    if counted is None:
        counted = re.fullmatch(rf"[ \t]*(?:{WHOLE})[ \t]*", lines[0]) is not None
    first = 2 if counted else 1
    lines = counted_lines(path, lines) if counted else lines
    if label_first:
        frame = split_lines(path, lines, _LABEL_FIRST, "a label and an id", separator=None, first=first)
    else:
        frame = split_lines(path, lines, _ID_FIRST, "an id, a tab, and a label", separator="\t", first=first)
    return labels_by_id(path, frame, first=first)


def labels_by_id(path: Path, frame: pl.DataFrame, *, first: int) -> tuple[str, ...]:
    """Labels in the order of their ids, from text columns id and label; ValueError as `read_labels`."""
    ids = frame["id"].cast(pl.Int64, strict=False)
    if (row := first_row(~(ids < len(frame)).fill_null(False))) is not None:
        message = f"the id must be below the number of ids, {len(frame)}, got {frame['id'][row]}."
        raise line_error(path, first + row, message)
    for column in ("id", "label"):
        require_distinct(path, frame[column], column, first=first)
    return tuple(frame["label"].gather(ids.arg_sort()).to_list())
