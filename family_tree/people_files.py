"""Text files of people: `people.tsv` and `parents.tsv`."""

from pathlib import Path

import numpy as np
import polars as pl

from family_tree.people import People, parents_fault, people_checked
from owkg import checks
from owkg.checks import StrPath
from owkg.files.lines import first_row, headed, line_error, read_lines, require_distinct, split_lines
from owkg.files.storage import written_aside

PEOPLE_FILE, PARENTS_FILE = "people.tsv", "parents.tsv"
_PEOPLE_HEADER, _PARENTS_HEADER = "person\tgender", "parent\tchild"
# Characters of a bad line that a message shows.
_SHOWN = 80
_CELL = r"[^\t]*[^\t\s][^\t]*"


def read_people(people_path: StrPath, parents_path: StrPath) -> People:
    """People and their parents from two files, whose lines may be in any order.

    Args:
        people_path: file with the header `person<TAB>gender`; a gender is `female` or `male`.
        parents_path: file with the header `parent<TAB>child`; it may have no other lines.

    Raises:
        ValueError: if an argument is not a path; or naming file and line, if a line is malformed, a person or
            an edge is repeated, a parent or child is not among the people, a child has three parents or two
            of one gender, or a person is their own ancestor.
        OSError: if a file cannot be opened.
    """
    paths = checks.path("people_path", people_path), checks.path("parents_path", parents_path)
    return people_of(*((path, path.read_bytes()) for path in paths))


def people_of(people: tuple[Path, bytes], parents: tuple[Path, bytes]) -> People:
    """People from the paths and contents of two files."""
    (people_path, _), (parents_path, _) = people, parents
    labels, female = _read_people(*people)
    edges = _read_parents(*parents)
    ids = np.arange(len(labels), dtype=np.int32)
    columns = [
        edges[name].replace_strict(labels, ids, default=None, return_dtype=pl.Int32) for name in edges.columns
    ]
    for column in columns:
        if (row := first_row(column.is_null())) is not None:
            message = f"the {column.name} {edges[column.name][row]!r} is not in {people_path}."
            raise line_error(parents_path, row + 2, message)
    rows = np.stack([column.to_numpy() for column in columns], axis=1)
    if fault := parents_fault(People(labels, female, rows)):
        raise line_error(parents_path, fault.edge + 2, fault.message)
    return People(labels, female, rows[np.lexsort(rows.T[::-1])])


def write_people(people: People, folder: StrPath) -> None:
    """Writes `people.tsv` and `parents.tsv`, sorted by labels.

    Args:
        people: people to write.
        folder: folder for the files, made if it is missing.

    Raises:
        ValueError: if `people` are invalid, or `folder` is not a path.
    """
    place = checks.path("folder", folder)
    for name, text in people_text(people_checked(people)).items():
        with written_aside(place / name) as aside:
            aside.write_bytes(text)


def people_text(people: People, *, header: bool = True) -> dict[str, bytes]:
    """Contents of `people.tsv` and `parents.tsv` by name, with or without the header line."""
    labels = people.labels
    gender = pl.Series(["male", "female"]).gather(people.female.astype(np.uint32))
    parent, child = (labels.gather(ids) for ids in people.parents.T)
    tables = {
        PEOPLE_FILE: pl.DataFrame({"person": labels, "gender": gender}),
        PARENTS_FILE: pl.DataFrame({"parent": parent, "child": child}),
    }
    options = {"separator": "\t", "quote_style": "never", "include_header": header}
    return {name: table.write_csv(**options).encode() for name, table in tables.items()}


def _read_people(path: Path, data: bytes) -> tuple[pl.Series, np.ndarray]:
    """Labels in increasing order, and whether each person is female."""
    frame = split_lines(
        path,
        headed(path, _lines(path, data), _PEOPLE_HEADER),
        rf"(?P<person>{_CELL})\t(?P<gender>{_CELL})",
        "a person, a tab and a gender",
        separator="\t",
        first=2,
    )
    if (row := first_row(~frame["gender"].is_in(["female", "male"]))) is not None:
        message = f"the gender must be female or male, got {frame['gender'][row]!r}."
        raise line_error(path, row + 2, message)
    require_distinct(path, frame["person"], "person", first=2)
    frame = frame.sort("person")
    return frame["person"], (frame["gender"] == "female").to_numpy()


def _read_parents(path: Path, data: bytes) -> pl.DataFrame:
    lines = _lines(path, data)
    # The file may consist of the header, because no person needs parents.
    alone = len(lines) == 1 and lines[0] == _PARENTS_HEADER
    frame = split_lines(
        path,
        lines[1:] if alone else headed(path, lines, _PARENTS_HEADER),
        rf"(?P<parent>{_CELL})\t(?P<child>{_CELL})",
        "a parent, a tab and a child",
        separator="\t",
        first=2,
    )
    require_distinct(path, frame["parent"] + "\t" + frame["child"], "edge", first=2)
    return frame


def _lines(path: Path, data: bytes) -> pl.Series:
    lines = read_lines(path, data)
    if (row := first_row(lines.str.contains("\r", literal=True))) is not None:
        raise line_error(path, row + 1, f"must end in LF or CR LF, got a CR in {lines[row][:_SHOWN]!r}.")
    return lines
