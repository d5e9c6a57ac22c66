"""Kinds of files of ranks or scores, told apart by name and first line."""

from pathlib import Path
from typing import Literal

from owkg.files.delimited import header, separator
from owkg.files.lines import read_lines
from owkg.files.storage import require_rereadable
from owkg.ir.trec import RUNS, begins_as_run, looks_like_run
from owkg.ranks.dataset import is_dataset
from owkg.ranks.matrices import npz_names, require_scores
from owkg.ranks.sampled import is_sampled

Kind = Literal["table", "list", "scores", "run", "sampled"]
"""Kind of file that becomes a rank table: a rank table, ranks without their ties, score matrices (.npz),
a run, or scores of sampled negatives (.npz)."""


# Number of bytes checked for a 0, which text does not have; first bytes of .npy, .bz2 and .xz files.
_START, _PACKED = 4096, (b"\x93NUMPY", b"BZh", b"\xfd7zXZ")


def kind_of(path: Path) -> Kind:
    """Kind of a file or folder.

    .npz holds score matrices, or scores of an evaluator of OGB or TGB, by the names of its arrays. .parquet
    and folders hold rank tables. .csv and .tsv hold rank lists if they have a column `rank` and no column
    `optimistic`, and rank tables otherwise; .npy holds a rank list. Any other file is a run if it begins like
    one (`owkg.ir.trec.read_run`).

    Args:
        path: path of the file or folder.

    Raises:
        ValueError: if it is none of these.
        OSError: if it cannot be opened.
    """
    suffix = path.suffix.lower()
    if is_dataset(path):
        return "table"
    require_rereadable(path)
    if suffix == ".npy":
        return "list"
    if suffix == ".npz":
        names = npz_names(path)
        if is_sampled(names):
            return "sampled"
        require_scores(path, names)
        return "scores"
    if suffix == ".parquet":
        return "table"
    if looks_like_run(path):
        return "run"
    if separator(path) is not None:
        names = header(path)
        return "list" if "rank" in names and "optimistic" not in names else "table"
    if suffix == ".jsonl":
        raise ValueError(f"{path}: must be read with owkg ranks generated if it holds lists of answers.")
    with path.open("rb") as file:
        start = file.read(_START)
    if suffix != ".gz" and (b"\0" in start or start.startswith(_PACKED)):
        raise ValueError(
            f"{path}: must be .npz, .npy, .parquet, .csv, .tsv or a TREC run, got a binary file. "
            "A list of ranks is .npy, or .csv with the columns head, relation, tail, side, rank; scores are "
            ".npz."
        )
    lines = read_lines(path)
    if lines[0].lstrip().startswith("["):
        raise ValueError(f"{path}: must be read with owkg ranks generated if it holds lists of answers.")
    if not begins_as_run(lines):
        raise ValueError(
            f"{path}: must be .npz, .parquet, .csv, .tsv or a run ({RUNS}); "
            f"the first line is {lines[0][:80]!r}."
        )
    return "run"
