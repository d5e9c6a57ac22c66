"""Format of a file of ranks or scores, by its name and first line."""

from pathlib import Path
from typing import Literal

from owkg.files.delimited import header, separator
from owkg.files.lines import read_lines
from owkg.files.storage import require_file
from owkg.ranks.dataset import is_dataset

Kind = Literal["table", "list", "scores", "run"]
"""What can be converted to a rank table: one, ranks without their ties, score matrices (.npz), a TREC run."""


# Bytes of a file that are looked at; text has no 0 among them. What files of .npy, .bz2, .xz begin with.
_START, _PACKED = 4096, (b"\x93NUMPY", b"BZh", b"\xfd7zXZ")


def kind_of(path: Path) -> Kind:
    """What the file is.

    .npz holds scores, .parquet a rank table; so does a folder, and .csv or .tsv, or a rank list if it has a
    column `rank` and no column `optimistic`, as .npy is. Any other file is a run if its first line has six
    fields.

    Raises:
        ValueError: if it is none of these.
        OSError: if it cannot be opened.
    """
    suffix = path.suffix.lower()
    if is_dataset(path):
        return "table"
    require_file(path)
    if suffix in (".npz", ".parquet", ".npy"):
        return "scores" if suffix == ".npz" else "table" if suffix == ".parquet" else "list"
    if separator(path) is not None:
        names = header(path)
        return "list" if "rank" in names and "optimistic" not in names else "table"
    if suffix == ".jsonl":
        raise ValueError(f"{path}: is read by owkg ranks generated, if it holds lists of answers.")
    with path.open("rb") as file:
        start = file.read(_START)
    if suffix != ".gz" and (b"\0" in start or start.startswith(_PACKED)):
        raise ValueError(
            f"{path}: neither .npz, .npy, .parquet, .csv, .tsv nor a TREC run, but a binary file. "
            "A list of ranks is .npy, or .csv with the columns head, relation, tail, side, rank; scores are "
            ".npz."
        )
    first = read_lines(path)[0]
    if 6 not in (len(first.split()), len(first.split("\t"))):
        raise ValueError(
            f"{path}: neither .npz, .parquet, .csv, .tsv nor a TREC run, whose lines have 6 fields; "
            f"the first line is {first[:80]!r}."
        )
    return "run"
