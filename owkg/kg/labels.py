"""Files that give every id its label."""

from pathlib import Path

import polars as pl

from owkg.kg.lines import WHOLE, counted, line_error, read_lines, split_lines

_LABEL_FIRST = rf"(?P<label>[^\t]*[^\t ])[ \t]+(?P<id>{WHOLE})[ \t]*"
_ID_FIRST = rf"(?P<id>{WHOLE})\t(?P<label>[^\t]+)"


def read_labels(path: Path, *, openke: bool) -> tuple[str, ...]:
    """The labels in the order of their ids.

    Args:
        path: of a file with a line an id.
        openke: whether the count stands on the first line and the label before the id; else the id
            stands before the label, with a tab between.

    Raises:
        ValueError: naming file and line, if the ids are not 0, 1, 2, ..., each once, or a label stands there
            twice.
    """
    lines, first = read_lines(path), 1
    if openke:
        lines, first = counted(path, lines), 2
    expected = "a label and an id" if openke else "an id, a tab, and a label"
    frame = split_lines(
        path,
        lines,
        _LABEL_FIRST if openke else _ID_FIRST,
        expected,
        separator=None if openke else "\t",
        first=first,
    )
    return labels_by_id(path, frame, first=first)


def labels_by_id(path: Path, frame: pl.DataFrame, *, first: int) -> tuple[str, ...]:
    """The labels in the order of their ids.

    Args:
        path: that `frame` comes from.
        frame: columns id and label, as text, a row a line.
        first: number of the first line.

    Raises:
        ValueError: as `read_labels`.
    """
    ids = frame["id"].cast(pl.Int64, strict=False)
    outside = ~(ids < len(frame)).fill_null(False)
    if outside.any():
        row = outside.arg_max() or 0
        message = f"the id must be below the number of ids, {len(frame)}, got {frame['id'][row]}."
        raise line_error(path, first + row, message)
    for column, values in (("id", ids), ("label", frame["label"])):
        again = ~values.is_first_distinct()
        if again.any():
            row = again.arg_max() or 0
            before = (values == values[row]).arg_max() or 0
            message = f"the {column} {frame[column][row]!r} stands on line {first + before} already."
            raise line_error(path, first + row, message)
    return tuple(frame["label"].gather(ids.arg_sort()).to_list())
