"""Rank tables of several models."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal

import polars as pl

from owkg.files.lines import read_lines
from owkg.kg.graph import KnowledgeGraph
from owkg.ranks.annotate import annotated, other_candidates
from owkg.ranks.dataset import RankDataset, is_dataset
from owkg.ranks.files import read_lacking
from owkg.ranks.partitions import in_parts
from owkg.ranks.reading import PLAIN, TableReading
from owkg.ranks.reweight import reweighted
from owkg.ranks.seeds import with_more_seeds
from owkg.ranks.table import RankTable


def read_tables(
    files: Sequence[Path],
    graph: KnowledgeGraph | None = None,
    *,
    shares: Mapping[str, float] | Literal["uniform"] | None = None,
    reading: TableReading = PLAIN,
    needed_by: str | None = None,
    names: Sequence[str] | None = None,
) -> list[RankTable | RankDataset]:
    """Rank tables of some files; with several files, rows without a column model get the name of their file.

    Folders and patterns that are too large to be read at once stay datasets. Issues a UserWarning if the
    numbers of candidates in a table differ from those of the graph.

    Args:
        files: paths, as for `owkg.ranks.read_ranks`.
        graph: knowledge graph that adds popularity and category, and missing candidates. Default: nothing is
            added.
        shares: shares of relations, as for `owkg.ranks.reweight.reweighted`, or "uniform". Default: no
            weights.
        reading: options for the tables.
        needed_by: argument that needs all ranks in memory. Default: none.
        names: name of the model of each file, in place of its column model. Default: the column model.

    Raises:
        ValueError: beginning with the file, if it is not a rank table or not of the graph, or holds several
            models although one name is given; naming `needed_by`, if there is not enough memory.
    """
    tables: list[RankTable | RankDataset] = []
    datasets = {
        path: RankDataset.of(path, reading, lacking=graph is not None) for path in files if is_dataset(path)
    }
    needed_by = needed_by or whole_needed(reading, datasets.values())
    stays = bool(datasets) and in_parts(sum(of.rows for of in datasets.values()), needed_by=needed_by)
    for path, name in zip(files, names or file_names(files), strict=True):
        if stays and path in datasets:
            of = datasets[path]
            other = [one for one in of.unique("model") if one not in (None, name)] if names else []
            if other:
                text = f"is read in parts and has {other[0]!r} in column model; it cannot be named {name!r}"
                raise ValueError(f"{path}: {text}.")
            called = (names is not None or len(files) > 1) and "model" not in of.columns
            tables.append(of.called(name) if called else of)
            continue
        read = read_lacking(datasets.get(path, path), graph, reading)
        table = read.frame
        if graph is not None:
            splits = read.about.get("filter")
            try:
                table = annotated(read, graph)
                known = "unseen" not in read.about  # else the table was ranked among fewer entities
                different = other_candidates(table, graph, filter_splits=splits) if known else 0
            except ValueError as error:
                raise ValueError(f"{path} with `graph`: {error}") from None
            if different:
                warnings.warn(
                    f"{path}: {different:,} of {len(table):,} tasks have another number of candidates than "
                    f"in the graph filtered by {_filters(splits)}.",
                    stacklevel=2,
                )
        if read.about.get("lists") == "partial":
            warnings.warn(
                f"{path}: holds partial lists, so that optimistic and pessimistic ranks are the best and the "
                "worst possible ranks, and ranks between them are not known. owkg ranks generated has their "
                "metrics.",
                stacklevel=2,
            )
        if shares is not None:
            table = reweighted(RankTable.trusted(table), None if shares == "uniform" else shares)
        if names is not None and "model" in table.columns and table["model"].n_unique() > 1:
            count = table["model"].n_unique()
            raise ValueError(f"{path}: holds {count} models, which cannot all be named {name!r}.")
        if names is not None or (len(files) > 1 and "model" not in table.columns):
            table = table.with_columns(model=pl.lit(name))
        tables.append(RankTable.trusted(table, read.about))
    _warn_unknown(shares, tables)
    return tables


def whole_needed(reading: TableReading, datasets: Iterable[RankDataset]) -> str | None:
    """Argument that needs all ranks of datasets in memory: ids, or a graph that gives candidates; or None."""
    if reading.ids:
        return "ids"
    return "graph" if any(one.lacks_candidates for one in datasets) else None


def by_model(
    files: Sequence[Path], tables: Sequence[RankTable | RankDataset]
) -> tuple[list[Path], list[RankTable | RankDataset]]:
    """Rank tables in which tables of one model, with different seeds in several files, are joined.

    Args:
        files: files of the tables.
        tables: tables from `read_tables`.

    Returns:
        First file of each table, and the tables.

    Raises:
        ValueError: naming two files, if both have a model, but not with different seeds.
    """
    paths: list[Path] = []
    found: list[RankTable | RankDataset] = []
    models: list[set[str]] = []
    for path, table in zip(files, tables, strict=True):
        own = _models(table)
        at = next((i for i, earlier in enumerate(models) if earlier & own), None)
        if at is None:
            paths.append(path)
            found.append(table)
            models.append(own)
            continue
        named, before = f"the model {min(models[at] & own)!r}", found[at]
        if isinstance(before, RankDataset) or isinstance(table, RankDataset):
            raise ValueError(f"{path}: {named} is in {paths[at]} too, and is too large to be joined.")
        found[at] = with_more_seeds(before, table, named, paths[at], path)
        models[at] |= own
    return paths, found


def _models(table: RankTable | RankDataset) -> set[str]:
    """Names of the models in a table."""
    if isinstance(table, RankDataset):
        return set(table.unique("model")) - {None}
    return set(table.frame["model"].unique()) if "model" in table.frame.columns else set()


def read_datasets(
    sources: Sequence[RankDataset | str | PathLike[str]],
    names: Sequence[str] | None = None,
    reading: TableReading = PLAIN,
) -> list[RankDataset]:
    """Datasets in folders, patterns or files, each with a model, named as by `read_tables`.

    Args:
        sources: sources, as for `RankDataset.of`.
        names: names of the models. Default: their column model, or the file.
        reading: options for sources that are paths.

    Raises:
        ValueError: as `RankDataset.of`; if two have a model in common, or a column model has another name.
    """
    found = [one if isinstance(one, RankDataset) else RankDataset.of(one, reading) for one in sources]
    paths = [Path(one.source) for one in found]
    for i, name in enumerate(names or file_names(paths)):
        if "model" not in found[i].columns:
            found[i] = found[i].called(name)
        elif names is not None and (other := [one for one in found[i].unique("model") if one != name]):
            raise ValueError(f"{paths[i]}: is named {name!r}, but its column model has {other[0]!r}.")
    if len(found) > 1:
        _refuse_shared(paths, [set(one.unique("model")) for one in found])
    return found


def file_names(files: Sequence[Path]) -> list[str]:
    """Default names of the models of files: file names without endings, or paths if these are not unique."""
    stems = [path.name.partition(".")[0] or path.name for path in files]
    return [
        stem if stems.count(stem) == 1 and path.exists() else str(path)
        for path, stem in zip(files, stems, strict=True)
    ]


def _refuse_shared(files: Sequence[Path], models: Sequence[set[str]]) -> None:
    """ValueError if two files have a model in common."""
    for i, path in enumerate(files):
        for earlier in range(i):
            if both := models[i] & models[earlier]:
                raise ValueError(f"{path} and {files[earlier]} both have a model {min(both)!r}.")


def _warn_unknown(
    shares: Mapping[str, float] | Literal["uniform"] | None, tables: Sequence[RankTable | RankDataset]
) -> None:
    """Issues a warning about shares of relations that no table has."""
    if isinstance(shares, Mapping):
        own = (t.frame["relation"].cast(pl.String).unique() for t in tables if isinstance(t, RankTable))
        unknown = set(shares).difference(*own)
        if unknown:
            warnings.warn(
                f"{len(unknown):,} of {len(shares):,} relations with a share are in no rank table, such as "
                f"{min(unknown)!r}.",
                stacklevel=3,
            )


def _filters(splits: list[str] | None) -> str:
    """Names of the splits that filter, for messages."""
    return "train, valid, test and the table's own answers" if splits is None else ", ".join(splits) or "none"


def read_shares(path: Path) -> dict[str, float]:
    """Share of each relation, from a file of lines of relation, tab and share.

    Raises:
        ValueError: beginning with the file and the line.
    """
    shares: dict[str, float] = {}
    for number, line in enumerate(read_lines(path), start=1):
        relation, _, share = line.rpartition("\t")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not relation or not 0 <= value < float("inf") or relation in shares:
            raise ValueError(
                f"{path}, line {number}: must be a new relation, a tab and a share of at least 0, "
                f"got {line!r}."
            )
        shares[relation] = value
    return shares
