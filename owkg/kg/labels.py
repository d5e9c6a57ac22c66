"""Files that give every id its label."""

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


def read_labels(path: Path, *, openke: bool) -> tuple[str, ...]:
    """The labels in the order of their ids.

    In files of OpenKE, the count stands on the first line and labels before ids; else ids before labels.

    Raises:
        ValueError: naming file and line, if the ids are not 0, 1, 2, ..., each once, or a label is repeated.
    """
    lines = read_lines(path)
    if openke:
        frame = split_lines(
            path, counted_lines(path, lines), _LABEL_FIRST, "a label and an id", separator=None, first=2
        )
        return labels_by_id(path, frame, first=2)
    frame = split_lines(path, lines, _ID_FIRST, "an id, a tab, and a label", separator="\t")
    return labels_by_id(path, frame, first=1)


def labels_by_id(path: Path, frame: pl.DataFrame, *, first: int) -> tuple[str, ...]:
    """The labels in the order of their ids, from text columns id and label; ValueError as `read_labels`."""
    ids = frame["id"].cast(pl.Int64, strict=False)
    if (row := first_row(~(ids < len(frame)).fill_null(False))) is not None:
        message = f"the id must be below the number of ids, {len(frame)}, got {frame['id'][row]}."
        raise line_error(path, first + row, message)
    for column in ("id", "label"):
        require_distinct(path, frame[column], column, first=first)
    return tuple(frame["label"].gather(ids.arg_sort()).to_list())
