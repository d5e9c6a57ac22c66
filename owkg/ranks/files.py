"""The rank table as a file: Parquet, CSV or TSV, by the suffix of its name."""

import gzip
import json
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from owkg import checks, plugins
from owkg.files.delimited import is_rank_table, read_text_table, separator
from owkg.files.parquet import read_parquet
from owkg.files.storage import written_aside
from owkg.ir.trec import looks_like_run
from owkg.kg import KnowledgeGraph
from owkg.ranks import lists
from owkg.ranks.imported import OWN, Importer
from owkg.ranks.table import RankTable, validated, validated_at

# The key of the metadata of a Parquet file under which it is said how a rank table was made.
_ABOUT = "owkg"
_SUFFIXES = ".parquet, .csv, .tsv, .csv.gz or .tsv.gz"


def read_ranks(
    path: str | PathLike[str], *, graph: KnowledgeGraph | None = None, untied: bool = False
) -> RankTable:
    """The rank table in a Parquet, CSV or TSV file, validated.

    CSV and TSV files begin with a line of column names and say no types: labels and ids, and the columns
    that a rank table does not know, come back as text. Parquet keeps every type.

    Args:
        path: ends in .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        graph: whose triples are ranked. It adds popularity and category, and where the file has no column
            candidates, it gives them: filtered by train, valid, test and the split that is ranked
            (`ranks_from_list` takes other filters). None: nothing is added.
        untied: take a column rank, in the place of optimistic and pessimistic, as free of ties.

    Returns:
        The table, and how it was made, which only Parquet files can say: `split`, `filter` (the splits whose
        answers left the candidates), and where they were asked for `queries` and `unseen`.

    Raises:
        ValueError: naming the file and the row, for CSV and TSV its line, as `validated`; if the suffix
            is unknown; if the file is not what its suffix says; or if its triples are not those of `graph`.
        OSError: if the file cannot be opened.
    """
    return _read(path, graph, untied=untied, complete=True)


def own_importer(path: Path) -> Importer | None:
    """The importer of a user's own that holds a file for one of its kind; None where none does."""
    plugins.load()
    return next((one for one in OWN.values() if path.is_file() and one.is_of(path)), None)


def holds_ranks(path: Path) -> bool:
    """Whether a file is a rank table by its name and first line, or of a kind that a user has registered."""
    return (is_rank_table(path) and not looks_like_run(path)) or own_importer(path) is not None


def read_lacking(
    path: str | PathLike[str], graph: KnowledgeGraph | None = None, *, untied: bool = False
) -> RankTable:
    """As `read_ranks`; the graph gives candidates where they lack, and adds nothing else to other tables."""
    return _read(path, graph, untied=untied, complete=False)


def _read(
    path: str | PathLike[str], graph: KnowledgeGraph | None, *, untied: bool, complete: bool
) -> RankTable:
    own = own_importer(checks.path("path", path))
    path = Path(path) if own else path_checked(path)
    about: dict[str, Any] = {}
    where: dict[str, Any] = {"source": str(path), "place": lambda row: f"{path}, row {row + 1}"}
    if own:
        table, about, _ = own.imported(path, graph if "graph" in own.options else None)
    elif separator(path) is not None:
        table, where["place"] = read_text_table(path)
    else:
        table, about = read_parquet(path), _about(path)
    if untied:
        table = lists.untied(table, **where)
    if graph is not None and (complete or lists.lacks_candidates(table.columns)):
        table, more = lists.with_graph(table, graph, **where)
        about = about | more
    return RankTable.trusted(validated_at(table, **where), about)


def _about(path: Path) -> dict[str, Any]:
    """How the rank table in a Parquet file was made, as `write_ranks` was told; empty if it does not say."""
    try:
        said = json.loads(pl.read_parquet_metadata(path).get(_ABOUT, "{}"))
    except (pl.exceptions.PolarsError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def write_ranks(
    table: RankTable | pl.DataFrame, path: str | PathLike[str], about: dict[str, Any] | None = None
) -> None:
    """Writes the rank table `table`, validated first, as a Parquet, CSV or TSV file.

    The file is whole or not there; its folder is made if need be.

    Args:
        table: as `validated` takes it.
        path: ends in .parquet, .csv, .tsv, .csv.gz or .tsv.gz.
        about: how it was made, as JSON; Parquet files keep it as metadata, CSV and TSV files do not.

    Raises:
        ValueError: as `validated`; if the suffix is unknown; or if a column cannot be written as text.
    """
    write_table(validated(table), path, about)


def write_table(table: pl.DataFrame, path: str | PathLike[str], about: dict[str, Any] | None = None) -> None:
    """Writes any table as `write_ranks` does, without looking at its columns."""
    path = path_checked(path)
    mark = separator(path)
    with written_aside(path) as aside:
        try:
            if mark is None:
                table.write_parquet(aside, metadata={_ABOUT: json.dumps(about)} if about else None)
            elif path.suffix.lower() == ".gz":
                # No name and no time in the packed file, so that equal tables give equal bytes.
                with aside.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    table.write_csv(cast(IO[bytes], packed), separator=mark)
            else:
                table.write_csv(aside, separator=mark)
        except pl.exceptions.PolarsError as error:
            raise ValueError(f"{path}: {str(error).splitlines()[0]}.") from error


def path_checked(path: str | PathLike[str]) -> Path:
    """`path` if its suffix is that of a rank table; ValueError otherwise."""
    path = checks.path("path", path)
    if path.suffix.lower() != ".parquet" and separator(path) is None:
        raise ValueError(f"{path}: a rank table's name ends in {_SUFFIXES}.")
    return path
