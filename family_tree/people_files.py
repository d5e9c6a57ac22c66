"""People as two text files: `people.tsv` and `parents.tsv`."""

from pathlib import Path

import numpy as np
import polars as pl

from family_tree.people import People, parents_fault
from owkg.files import written_aside
from owkg.kg.lines import headed, line_error, read_lines, split_lines

PEOPLE_FILE, PARENTS_FILE = "people.tsv", "parents.tsv"
_PEOPLE_HEADER, _PARENTS_HEADER = "person\tgender", "parent\tchild"
_CELL = r"[^\t]*[^\t\s][^\t]*"


def read_people(people_path: Path, parents_path: Path) -> People:
    """Reads people, and who is whose parent; the lines of each file may be in any order.

    Args:
        people_path: file with the header `person<TAB>gender`; a gender is `female` or `male`.
        parents_path: file with the header `parent<TAB>child`; no line need follow.

    Raises:
        ValueError: naming file and line, if a line is malformed, a person or an edge stands there twice,
            a parent or child is not among the people, a child has three parents or two of one gender, or
            somebody is their own ancestor.
        OSError: if a file cannot be opened.
    """
    people_path, parents_path = Path(people_path), Path(parents_path)
    labels, female = _read_people(people_path)
    edges = _read_parents(parents_path)
    ids = np.arange(len(labels), dtype=np.int32)
    columns = [
        edges[name].replace_strict(labels, ids, default=None, return_dtype=pl.Int32) for name in edges.columns
    ]
    for column in columns:
        if column.null_count():
            row = column.is_null().arg_max() or 0
            message = f"the {column.name} {edges[column.name][row]!r} is not in {people_path}."
            raise line_error(parents_path, row + 2, message)
    parents = np.stack([column.to_numpy() for column in columns], axis=1)
    if fault := parents_fault(People(labels, female, parents)):
        raise line_error(parents_path, fault.edge + 2, fault.message)
    return People(labels, female, parents[np.lexsort(parents.T[::-1])])


def write_people(people: People, folder: Path) -> None:
    """Writes `people.tsv` and `parents.tsv`, sorted by labels.

    Args:
        people: to write.
        folder: made if need be.
    """
    for name, text in people_text(people).items():
        with written_aside(folder / name) as aside:
            aside.write_bytes(text)


def people_text(people: People, *, header: bool = True) -> dict[str, bytes]:
    """What `people.tsv` and `parents.tsv` hold, with or without the header line, by name."""
    labels = people.labels
    gender = pl.Series(["male", "female"]).gather(people.female.astype(np.uint32))
    parent, child = (labels.gather(ids) for ids in people.parents.T)
    tables = {
        PEOPLE_FILE: pl.DataFrame({"person": labels, "gender": gender}),
        PARENTS_FILE: pl.DataFrame({"parent": parent, "child": child}),
    }
    options = {"separator": "\t", "quote_style": "never", "include_header": header}
    return {name: table.write_csv(**options).encode() for name, table in tables.items()}


def _read_people(path: Path) -> tuple[pl.Series, np.ndarray]:
    """Labels in increasing order, and who is female."""
    frame = split_lines(
        path,
        headed(path, read_lines(path), _PEOPLE_HEADER),
        rf"(?P<person>{_CELL})\t(?P<gender>{_CELL})",
        "a person, a tab and a gender",
        separator="\t",
        first=2,
    )
    other = ~frame["gender"].is_in(["female", "male"])
    if other.any():
        row = other.arg_max() or 0
        message = f"the gender must be female or male, got {frame['gender'][row]!r}."
        raise line_error(path, row + 2, message)
    _check_once(path, frame["person"], "person")
    frame = frame.sort("person")
    return frame["person"], (frame["gender"] == "female").to_numpy()


def _read_parents(path: Path) -> pl.DataFrame:
    lines = read_lines(path)
    # Nobody need have parents: the header may be all there is.
    alone = len(lines) == 1 and lines[0] == _PARENTS_HEADER
    frame = split_lines(
        path,
        lines[1:] if alone else headed(path, lines, _PARENTS_HEADER),
        rf"(?P<parent>{_CELL})\t(?P<child>{_CELL})",
        "a parent, a tab and a child",
        separator="\t",
        first=2,
    )
    _check_once(path, frame["parent"] + "\t" + frame["child"], "edge")
    return frame


def _check_once(path: Path, values: pl.Series, kind: str) -> None:
    again = ~values.is_first_distinct()
    if again.any():
        row = again.arg_max() or 0
        before = (values == values[row]).arg_max() or 0
        shown = values[row].replace("\t", " -> ")
        raise line_error(path, row + 2, f"the {kind} {shown!r} stands on line {before + 2} already.")
