"""Files of rank tables: Parquet, CSV, TSV or an array, by the suffix of the name; tables in memory."""

import gzip
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import polars as pl

from owkg import checks, plugins
from owkg.errors import ArgumentError, naming
from owkg.files.columns import frame_of, is_table
from owkg.files.delimited import is_rank_table, read_text_table, separator
from owkg.files.parquet import read_parquet
from owkg.files.storage import damage_named, require_rereadable, written_aside
from owkg.ir.trec import looks_like_run
from owkg.kg import KnowledgeGraph
from owkg.ranks.dataset import RankDataset, is_dataset
from owkg.ranks.imported import OWN, Importer
from owkg.ranks.lists import made
from owkg.ranks.partitions import whole_table
from owkg.ranks.reading import PLAIN, TableReading
from owkg.ranks.table import RankTable, validated

Source = Any
"""Source of a rank table: a path, or a table or an array in memory."""

# Key of the metadata of a Parquet file that describes how a rank table was made.
_ABOUT = "owkg"
_SUFFIXES = ".parquet, .csv, .tsv, .csv.gz or .tsv.gz"


def read_ranks(
    path: Source,
    *,
    graph: KnowledgeGraph | None = None,
    columns: Mapping[str, str] | None = None,
    untied: bool = False,
    realistic: bool = False,
    candidates: Any = None,
    ids: bool = False,
    split: str | None = None,
) -> RankTable:
    """Validated rank table from a file, a folder, a frame or an array.

    CSV and TSV files begin with a line of column names and have no types: labels, ids and further columns are
    returned as text. Parquet keeps every type. A table may also have one row for each triple, with head_rank
    and tail_rank (or head_optimistic, ...). Issues a UserWarning about assumptions.

    Args:
        path: file that ends in .parquet, .csv, .tsv, .csv.gz, .tsv.gz or .npy; a folder of Parquet files or a
            pattern of their names; or a DataFrame of polars or pandas, a mapping of columns, or a list of
            rows. An array or .npy file holds ranks, [n], or [n, 2] for head and tail, realistic unless
            `untied`.
        graph: knowledge graph whose triples are ranked. It adds popularity and category, and gives the number
            of candidates if the table has no column candidates: filtered by train, valid, test and the ranked
            split (`ranks_from_list` accepts other filters). Default: nothing is added.
        columns: names of columns by their names in owkg, such as {"head": "subject"}, if they differ; columns
            of an array are named "0" and "1". Default: the names in owkg.
        untied: whether a column rank, instead of optimistic and pessimistic, is free of ties. Default False.
        realistic: whether a column rank is the mean of both, possibly a half, so that only realistic metrics
            are defined. Default False.
        candidates: number of candidates among which every answer was ranked: one number, or one for each row.
            Default: from the table or the graph.
        ids: whether head, relation and tail are ids of `graph`, whatever its labels are. Default False.
        split: split of `graph` whose triples the rows are, in their order, if the rows do not name their
            triples. Default: the test.

    Returns:
        Rank table, and how it was made, which only Parquet files record: `split`, `filter` (the splits whose
        answers were removed from the candidates), and `queries` and `unseen` if they were asked for.

    Raises:
        ValueError: naming the file and the row (for CSV and TSV its line), as `validated`; if the suffix is
            unknown; if the content does not match the suffix; or if the triples are not those of `graph`.
        OSError: if the file cannot be opened.
    """
    reading = TableReading(columns or {}, untied, realistic, candidates, ids, split)
    return read_lacking(path, graph, reading, complete=True)


def ranks_from_list(
    path: Source,
    *,
    num_candidates: int | None = None,
    graph: KnowledgeGraph | None = None,
    filter_splits: Sequence[str] | None = None,
) -> pl.DataFrame:
    """Rank table of a list of ranks without ties.

    The optimistic and the pessimistic rank are both the given rank. Calling this function states that the
    list has no ties, or that its ranks hide them.

    Args:
        path: file with the columns head, relation, tail, side, rank, and candidates unless they are given;
            other columns are kept. Head, relation, tail and side may all be missing: row i is then the tail
            task of the triple i, 0, i, so that each rank has its own query.
        num_candidates: number of candidates among which every answer was ranked. Default: from the file or
            the graph.
        graph: knowledge graph whose triples were ranked. It gives the number of candidates of each task, and
            adds popularity and category. Default: none.
        filter_splits: splits of the graph whose other answers were removed from the candidates; empty for raw
            ranks. Default: those of train, valid and test that the graph has, and the smallest split that
            holds all triples.

    Raises:
        ValueError: naming file and line, as `read_ranks`; if the number of candidates is given twice or not
            at all; or if a triple is in no split of the graph.
        OSError: if the file cannot be opened.
    """
    with naming({"candidates": "`num_candidates`"}):
        reading = TableReading(untied=True, candidates=num_candidates, filter_splits=filter_splits)
        return read_lacking(path, graph, reading, complete=True).frame


def own_importer(path: Path) -> Importer | None:
    """User's importer that accepts a file; None if there is none."""
    plugins.load()
    return next((one for one in OWN.values() if path.is_file() and one.is_of(path)), None)


def holds_ranks(path: Path) -> bool:
    """Whether a file is a rank table by its name and first line, or of a kind that a user has registered."""
    is_table = path.suffix.lower() == ".npy" or (is_rank_table(path) and not looks_like_run(path))
    return is_table or own_importer(path) is not None


def read_lacking(
    source: Source,
    graph: KnowledgeGraph | None = None,
    reading: TableReading = PLAIN,
    *,
    complete: bool = False,
) -> RankTable:
    """Rank table as from `read_ranks`; the graph gives missing candidates, and more only if `complete`."""
    options: Any = {"complete": complete}
    if isinstance(source, RankTable):
        if reading.said is None and (graph is None or not complete):
            return source
        return made(source.frame, reading, graph, source="table", about=source.about, **options)
    if isinstance(source, RankDataset):
        return _whole(source, graph, complete=complete)
    if is_table(source):
        return made(frame_of(source), reading, graph, source="table", **options)
    if is_list(source):
        return _without_rest(made(*_of_array("ranks", source, reading), graph, source="ranks", **options))
    path = checks.path("path", source)
    if is_dataset(path):
        return _whole(RankDataset.of(path, reading, lacking=graph is not None), graph, complete=complete)
    own = own_importer(path)
    path = path if own else _readable(path)
    options["source"] = str(path)
    if own:
        table, about, _ = own.imported(path, graph if "graph" in own.options else None)
        return made(table, reading, graph, about=about, **options)
    if path.suffix.lower() == ".npy":
        return _without_rest(made(*_of_array(str(path), _array(path), reading), graph, **options))
    if separator(path) is not None:
        table, place = read_text_table(path)
        return made(table, reading, graph, place=place, **options)
    return made(read_parquet(path), reading, graph, about=_about(path), **options)


def is_list(source: object) -> bool:
    """Whether the source is ranks only: an array, or a list of numbers."""
    if is_table(source) or isinstance(source, str | bytes | PathLike | RankTable | RankDataset):
        return False
    return isinstance(source, Sequence) or hasattr(source, "__array__")


def _whole(dataset: RankDataset, graph: KnowledgeGraph | None, *, complete: bool) -> RankTable:
    """All rows of a dataset, with the columns that a graph adds."""
    read, said = whole_table(dataset), dataset.reading
    if not (said.ids or dataset.lacks_candidates or (complete and graph is not None)):
        return read
    last = replace(PLAIN, ids=said.ids, filter_splits=said.filter_splits)
    return made(read.frame, last, graph, source=dataset.source, complete=complete, about=read.about)


def _readable(path: Path) -> Path:
    """`path` if it has the suffix of a table or an array of ranks; ValueError otherwise."""
    require_rereadable(path)
    if path.suffix.lower() != ".npy" and not is_rank_table(path):
        hint = "owkg ranks convert makes one from scores (.npz), runs and lists"
        raise ValueError(f"{path}: the name of a rank table must end in {_SUFFIXES}; {hint}.")
    return path


def _array(path: Path) -> np.ndarray:
    """Array in a .npy file; nothing is unpickled, and a false size in its header takes no memory."""
    require_rereadable(path)
    path.open("rb").close()
    with damage_named(path, "not a .npy file of numbers"):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _of_array(name: str, array: object, reading: TableReading) -> tuple[pl.DataFrame, TableReading]:
    """Columns of an array of ranks and their reading; ranks are realistic unless stated otherwise.

    Issues a UserWarning if ranks are taken as realistic, and about the sides of two columns.
    """
    try:
        ranks = np.asarray(array)
    except (ValueError, TypeError) as error:
        raise ArgumentError("ranks", f"must be numbers, [n] or [n, 2], got {error}.") from None
    shown = f"{ranks.dtype} of shape {ranks.shape}"
    if ranks.dtype.kind not in "iuf" or ranks.ndim not in (1, 2) or not ranks.size or ranks.shape[1:] > (2,):
        if isinstance(array, str | bytes | int | float | None) or ranks.dtype.kind not in "iuf":
            shown = type(array).__name__ if ranks.ndim == 0 else shown
        text = f"must be ranks, numbers of shape [n], or [n, 2] for head and tail, got {shown}"
        raise ArgumentError("ranks", f"{text}.") if name == "ranks" else ValueError(f"{name}: {text}.")
    ranks = ranks.reshape(len(ranks), -1)
    table = pl.DataFrame({str(i): np.ascontiguousarray(column) for i, column in enumerate(ranks.T)})
    alone = not reading.columns or bool({"rank", "head_rank", "tail_rank"} & {*reading.columns})
    if alone and not (reading.untied or reading.realistic):
        reading = replace(reading, realistic=True)
        warnings.warn(
            f"{name}: ranks are taken as realistic, the means of the optimistic and the pessimistic "
            "rank; `untied` takes them as free of ties.",
            UserWarning,
            stacklevel=3,
        )
    if reading.columns:
        return table, reading
    if table.width == 1:
        return table, replace(reading, columns={"rank": "0"})
    warnings.warn(
        f"{name}: column 0 is taken as the ranks of heads and column 1 as the ranks of tails, as in "
        "AmpliGraph (`columns` head_rank=1,tail_rank=0 swaps them).",
        UserWarning,
        stacklevel=3,
    )
    return table, replace(reading, columns={"head_rank": "0", "tail_rank": "1"})


def _without_rest(table: RankTable) -> RankTable:
    """Rank table of an array without the array's unused columns."""
    return RankTable.trusted(table.frame.drop("0", "1", strict=False), table.about)


def _about(path: Path) -> dict[str, Any]:
    """Record of how the rank table in a Parquet file was made (`write_ranks`); empty if there is none."""
    try:
        said = json.loads(pl.read_parquet_metadata(path).get(_ABOUT, "{}"))
    except (pl.exceptions.PolarsError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def write_ranks(
    table: RankTable | pl.DataFrame, path: str | PathLike[str], about: dict[str, Any] | None = None
) -> None:
    """Writes a rank table, validated first, as a Parquet, CSV or TSV file.

    The file is written whole or not at all; its folder is created if needed.

    Args:
        table: rank table, as for `validated`.
        path: path that ends in .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        about: record of how it was made, as JSON; Parquet files keep it as metadata, CSV and TSV files do
            not.

    Raises:
        ValueError: as `validated`; if the suffix is unknown; or if a column cannot be written as text.
    """
    write_table(validated(table), path, about)


def write_table(table: pl.DataFrame, path: str | PathLike[str], about: dict[str, Any] | None = None) -> None:
    """Writes any table as `write_ranks` does, without checking its columns."""
    path = path_checked(path)
    mark = separator(path)
    with written_aside(path) as aside:
        try:
            if mark is None:
                table.write_parquet(aside, metadata={_ABOUT: json.dumps(about)} if about else None)
            elif path.suffix.lower() == ".gz":
                # The packed file has no name and no time, so that equal tables give equal bytes.
                with aside.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    table.write_csv(cast(IO[bytes], packed), separator=mark)
            else:
                table.write_csv(aside, separator=mark)
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{path}: {str(error).splitlines()[0]}.") from error


def path_checked(path: str | PathLike[str]) -> Path:
    """`path` if it has the suffix of a rank table; ValueError otherwise."""
    path = checks.path("path", path)
    if path.suffix.lower() != ".parquet" and separator(path) is None:
        raise ValueError(f"{path}: the name of a rank table must end in {_SUFFIXES}.")
    return path
