"""The systems of a comparison: rank tables and TREC runs, under one qrels or several."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError, naming
from owkg.files.columns import frame_of, is_pandas
from owkg.ir.trec import read_run
from owkg.judge.qrels import qrels_from_graph, read_judgements, write_judgements
from owkg.judge.relabelled import relabelled
from owkg.judge.schema import checked, once
from owkg.judge.scores import Scores, intersected
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.kg.graph import graph_checked
from owkg.kg.names import known_entity, query_text
from owkg.ranks import RankDataset, RankTable, annotated, ranks_from_run
from owkg.ranks.dataset import is_dataset
from owkg.ranks.files import holds_ranks, read_lacking
from owkg.ranks.reading import PLAIN, Reading
from owkg.ranks.seeds import with_more_seeds
from owkg.ranks.together import file_names

System = Any
"""Ranks of a system: a rank table, a frame of polars or pandas, columns; where a table or a TREC run is."""

Qrels = pl.DataFrame | str | PathLike[str]
"""Which answers are relevant: qrels, their path, or the name of a split of the graph."""


SeveralQrels = Mapping[str, Qrels] | Sequence[Qrels] | Qrels | None
"""Qrels by name, one or several; None for ranks as they are."""

AS_RANKED = "as ranked"
"""What no qrels are called."""

_FACT = ("side", "entity", "relation", "answer")


class QrelsRanks(NamedTuple):
    """The rank table of every system under one qrels.

    `undetermined` is the largest share of ranks, of any file, that are known between two ends only.
    """

    name: str
    tables: dict[str, RankTable]
    undetermined: float = 0.0


def qrels_ranks(
    systems: Mapping[str, System] | Iterable[str | PathLike[str]],
    qrels: SeveralQrels,
    graph: KnowledgeGraph | None,
    *,
    intersect: bool = False,
    reading: Reading = PLAIN,
) -> list[QrelsRanks]:
    """The systems under each of `qrels`, or as they are ranked where there are none.

    Args:
        systems: by name; or the paths of files, whose systems are called by their column model, or else by
            the name of the file.
        qrels: by name; or one or several, called by the names of their files. None: as ranked.
        graph: for splits, for TREC runs, and for relation categories.
        intersect: whether systems may leave out queries and answers, which then leave all.
        reading: what is said of the rank tables.

    Raises:
        ValueError: if a file is malformed, a system stands twice, a run has no judgements or no graph, or
            judgements call an answer relevant that a table does not rank.
    """
    alone = isinstance(systems, str | PathLike | RankTable | pl.DataFrame) or is_pandas(systems)
    if alone or not isinstance(systems, Iterable):
        must = "must be several: rank tables or paths by name, or a list of paths"
        raise ArgumentError("systems", f"{must}, got {type(systems).__name__}.")
    if graph is not None:
        graph_checked(graph)
    by_name: Mapping[Any, Any] = systems if isinstance(systems, Mapping) else {}
    pairs = by_name.items() if by_name else [(None, path) for path in systems]
    sources = [(n, _source(n, of)) for n, of in pairs]
    if bad := [name for name in by_name if not isinstance(name, str) or not name]:
        raise ArgumentError("systems", f"must be called by text that is not empty, got {bad[0]!r}.")
    if not sources:
        raise ArgumentError("systems", "must name two systems at least, got none.")
    if reading.said and not any(_is_table(of) for _, of in sources):
        raise ArgumentError(reading.said, "is of rank tables, and every system is a TREC run.")
    given = qrels_named(qrels) or {AS_RANKED: None}
    sets = [_systems(name, sources, one, graph, intersect, reading) for name, one in given.items()]
    return _intersected(sets) if intersect else sets


def _source(called: str | None, of: object) -> Any:
    """A system as it is read: a path, or a table of Python, which has a name or a column model."""
    if isinstance(of, RankDataset):
        return of
    if isinstance(of, str | PathLike):
        return checks.path("systems", of)
    with naming({"table": "`systems`"}):
        own = of if isinstance(of, RankTable) else frame_of(of, "systems")
    columns = own.frame.columns if isinstance(own, RankTable) else own.columns
    if called is None and "model" not in columns:
        raise ArgumentError(
            "systems", "must have names where they are tables without a column model: {name: table, ...}."
        )
    return own


def _intersected(sets: list[QrelsRanks]) -> list[QrelsRanks]:
    """The qrels with what every system ranks; notes of what is left of each where one loses some."""
    found = []
    for one in sets:
        tables, left = intersected(one.tables)
        rows = left.rows(named=True) if (left["answers"] < left["of_answers"]).any() else []
        for row in rows:
            note(
                f"{one.name}: of {row['system']}, {row['queries']:,} of {row['of_queries']:,} queries "
                f"and {row['answers']:,} of {row['of_answers']:,} answers are left, which every system ranks."
            )
        found.append(one._replace(tables=tables))
    return found


def tie_rule(ties: str | None, sets: list[QrelsRanks]) -> str:
    """The rule that was asked for, or else the one that the tables need."""
    open_ = max((one.undetermined for one in sets), default=0.0)
    if open_:
        note(
            f"{open_:.0%} of the ranks of some system depend on the order of answers of equal rank: values "
            "are means over that order, which are approximations. A column score in the rank tables (`score` "
            "of rank_table, --score of owkg evaluate and owkg ranks convert) gives the order."
        )
        if ties not in (None, "exact"):
            note(f"The tie rule {ties} takes them for ties; exact is the mean over their order.")
    return ("exact" if open_ else "realistic") if ties is None else ties


def qrels_named(qrels: SeveralQrels) -> dict[str, Any]:
    """Qrels by name: given, or those of their files without endings, where these are different."""
    if qrels is None:
        return {}
    if isinstance(qrels, Mapping | list | tuple) and not len(qrels):
        raise ArgumentError("qrels", "must be at least one; None for ranks as they are.")
    if isinstance(qrels, Mapping):
        return {name: _qrels(one) for name, one in qrels.items()}
    if not isinstance(qrels, Iterable | PathLike):
        raise ArgumentError("qrels", f"must be frames, files or splits, got {type(qrels).__name__}.")
    several = [qrels] if isinstance(qrels, pl.DataFrame | str | PathLike) else list(qrels)
    given = [_qrels(one) for one in several]
    texts = [f"qrels {i + 1}" if isinstance(one, pl.DataFrame) else str(one) for i, one in enumerate(given)]
    stems = [Path(text).name.partition(".")[0] for text in texts]
    if len(set(texts)) < len(texts):
        raise ArgumentError("qrels", f"must be different, got {', '.join(texts)}.")
    return dict(zip(stems if len(set(stems)) == len(stems) else texts, given, strict=True))


def _qrels(one: object) -> Qrels:
    if not isinstance(one, pl.DataFrame | str | PathLike):
        raise ArgumentError("qrels", f"must be a frame, a file or a split, got {one!r}.")
    return one


def _systems(
    name: str,
    sources: list[tuple[str | None, Any]],
    qrels: Qrels | None,
    graph: KnowledgeGraph | None,
    intersect: bool,
    reading: Reading,
) -> QrelsRanks:
    found: dict[str, RankTable] = {}
    owner: dict[str, str] = {}
    undetermined = 0.0
    judged = _judged(qrels) if any(_is_table(source) for _, source in sources) else None
    for called, source in _folders_named(sources, reading, lacking=graph is not None):
        tables, share = _tables(called, source, qrels, judged, graph, intersect, reading)
        undetermined = max(undetermined, share)
        for system, table in tables.items():
            if system in found:
                both = owner[system], _where(source)
                table = with_more_seeds(found[system], table, f"the system {system!r}", *both)
            found[system], owner[system] = table, _where(source)
    _refuse_raw_beside_filtered(found)
    _compare_filters(found)
    if judged is not None and qrels is not None:
        _note_unasked(_called(qrels), judged, list(found.values()))
    return QrelsRanks(name, found, undetermined)


def _where(source: object) -> str:
    """What messages call the source of a system."""
    if isinstance(source, RankDataset):
        return source.source
    return str(source) if isinstance(source, Path) else "another table"


def _folders_named(
    sources: list[tuple[str | None, Any]], reading: Reading, *, lacking: bool
) -> list[tuple[str | None, Any]]:
    """The sources; folders and patterns are datasets with a model, called as `read_datasets` does."""
    read = [
        RankDataset.of(of, reading, lacking=lacking) if isinstance(of, Path) and is_dataset(of) else of
        for _, of in sources
    ]
    paths = [Path(of.source) for of in read if isinstance(of, RankDataset)]
    names = dict(zip(paths, file_names(paths), strict=True))
    return [
        (called, of.called(called or names[Path(of.source)]))
        if isinstance(of, RankDataset) and "model" not in of.columns
        else (called, of)
        for (called, _), of in zip(sources, read, strict=True)
    ]


def seed_notes(scores: Scores) -> None:
    """Notes of what is known of the seeds of systems, and of what is not."""
    if not scores.seeded.any():
        return
    for name, one in zip(scores.systems, scores.seeds, strict=True):
        if one is None:
            note(
                f"{name} has one seed: how much it differs over seeds is not known, and is in none of its "
                "intervals and tests. They hold for this run of it."
            )
            continue
        for i, j in combinations(range(len(one.seeds)), 2):
            if np.array_equal(one.value[:, i], one.value[:, j]):
                note(
                    f"seeds {one.seeds[i]} and {one.seeds[j]} of {name} score the same on every query: if "
                    "they are one run twice, its deviation over seeds is too small."
                )
                break


def _is_table(source: RankTable | pl.DataFrame | RankDataset | Path) -> bool:
    return not isinstance(source, Path) or holds_ranks(source) or is_dataset(source)


def _called(qrels: Qrels) -> str:
    """The name of qrels in messages."""
    return "qrels" if isinstance(qrels, pl.DataFrame) else str(qrels)


def _refuse_raw_beside_filtered(tables: dict[str, RankTable]) -> None:
    """ValueError if the other answers to a query left the candidates of some systems only."""
    raw = [
        name
        for name, table in tables.items()
        if "filtered" in table.frame.columns and not table.frame["filtered"].all()
    ]
    if raw and len(raw) < len(tables):
        other = next(name for name in tables if name not in raw)
        raise ValueError(
            f"`systems`: raw ranks, of {raw[0]!r}, cannot be compared with filtered ones, of {other!r}."
        )


def _compare_filters(tables: dict[str, RankTable]) -> None:
    """ValueError if keys filter some systems and not others; a note where other splits do."""
    said = {name: tuple(table.about["filter"]) for name, table in tables.items() if table.about.get("filter")}
    for name, filters in said.items():
        other, theirs = next(iter(said.items()))
        if set(filters) == set(theirs):
            continue
        text = f"filtered by {', '.join(theirs)}, of {other!r}, and by {', '.join(filters)}, of {name!r}"
        if "known" in {*filters, *theirs}:
            raise ValueError(f"`systems`: ranks {text}, cannot be compared.")
        note(f"ranks are {text}: they can be compared if these are the same facts.")
        return


def _note_unasked(qrels: str, judged: pl.DataFrame, tables: list[RankTable]) -> None:
    """Says how many judged queries no system answers."""
    keys = ["side", "entity", "relation"]
    asked = [
        t.frame.select("side", known_entity().cast(pl.String), pl.col("relation").cast(pl.String))
        for t in tables
    ]
    unasked = judged.select(keys).unique().join(pl.concat(asked), on=keys, how="anti")
    if len(unasked):
        note(f"{qrels}: {len(unasked):,} judged queries are answered by no system.")


def _judged(qrels: Qrels | None) -> pl.DataFrame | None:
    """Judgements, and a note of how many answers nobody judged; None of a split."""
    if isinstance(qrels, pl.DataFrame):
        judged = checked("qrels", qrels, (*_FACT, "relevance"))
        once("qrels", judged.with_columns(query_text()), *_FACT)
    elif qrels is None or not Path(qrels).is_file():
        return None
    else:
        judged = read_judgements(qrels)
    if unjudged := int((judged["relevance"] < 0).sum()):
        said = f"{unjudged:,} answers are pooled and not judged; ranks take them for not relevant."
        note(f"{_called(qrels)}: {said}")
    return judged


def _tables(
    called: str | None,
    source: RankTable | pl.DataFrame | RankDataset | Path,
    qrels: Qrels | None,
    judged: pl.DataFrame | None,
    graph: KnowledgeGraph | None,
    intersect: bool,
    reading: Reading,
) -> tuple[dict[str, RankTable], float]:
    """The rank tables of the systems in a file, and the share of ranks that are not determined."""
    undetermined, about = 0.0, {}
    where: Any = source if isinstance(source, Path) else called
    if isinstance(source, RankDataset):
        where = source.source
    if isinstance(source, Path) and not _is_table(source):
        table = _of_run(source, qrels, graph, intersect)
    else:
        read = _table(called, source, graph, reading)
        table, about = read.frame, read.about
        if graph is not None:
            try:
                table = annotated(read, graph)
            except ValueError as error:
                raise ValueError(f"{where}, with `graph`: {error}") from None
        if qrels is not None and read.averaged:
            text = "must be absent: under them other ranks follow, and of"
            raise ArgumentError(
                "qrels", f"{text} {where} only means of optimistic and pessimistic ones are known."
            )
        if qrels is not None:
            table, undetermined = _relabelled(where, RankTable.trusted(table), qrels, judged, graph)
    if isinstance(source, Path | RankDataset):
        about = {**about, "source": str(where)}
    if called is not None:
        if "model" in table.columns and table["model"].n_unique() > 1:
            raise ArgumentError("systems", f"must hold one model each, got several in {called!r}.")
        return {called: RankTable.trusted(table, about)}, undetermined
    if "model" not in table.columns:
        return {Path(str(where)).name.partition(".")[0]: RankTable.trusted(table, about)}, undetermined
    parts = table.partition_by("model", as_dict=True, maintain_order=True)
    return {str(model): RankTable.trusted(part, about) for (model,), part in parts.items()}, undetermined


def _table(
    called: str | None,
    source: RankTable | pl.DataFrame | RankDataset | Path,
    graph: KnowledgeGraph | None,
    reading: Reading,
) -> RankTable:
    if isinstance(source, Path | RankDataset):
        return read_lacking(source, graph, reading)
    try:
        return RankTable.of_entities(read_lacking(source, graph, reading), source=str(called))
    except ArgumentError:
        raise
    except ValueError as error:
        text = re.sub("^table(?=[,:])", str(called), str(error))
        raise ArgumentError("systems", f"must hold rank tables: {text}") from None


def _of_run(
    path: Path, qrels: Qrels | None, graph: KnowledgeGraph | None, intersect: bool, called: str | None = None
) -> pl.DataFrame:
    """The rank table of a TREC run; where queries may be left out, of those that it asks."""
    if graph is None or qrels is None:
        raise ValueError(
            f"{path}: is taken for a TREC run, and of a run `graph` must say what the candidates are and "
            "`qrels` which answers are relevant. Of TREC topics `metrics` must name measures of lists, such "
            "as AP,nDCG@10."
        )
    if isinstance(qrels, pl.DataFrame):
        with TemporaryDirectory() as folder:
            file = Path(folder) / "qrels"
            write_judgements(qrels.with_columns(query_text()), file)
            return _of_run(path, file, graph, intersect, called="qrels")
    file = Path(qrels) if Path(qrels).is_file() else None
    if file:
        read_judgements(file)  # refuses what no judgement is
    split = None if file else str(qrels)
    if split:
        _graph_of(split, graph)
    with naming({"unanswered": "`intersect`"}):
        table, notes = ranks_from_run(
            path,
            graph,
            qrels=file,
            split=split,
            filter_splits=_known(graph, str(qrels)),
            unanswered=intersect,
        )
    for text in notes:
        note(f"{path}, under {called or qrels}: {text}.")
    if not intersect:
        return table
    asked = read_run(path).select(pl.col("tag").alias("model"), "side", "entity", "relation").unique()
    table = table.with_columns(_entity=known_entity())
    keys = ["model", "side", "_entity", "relation"]
    return table.join(asked.rename({"entity": "_entity"}), on=keys, how="semi", maintain_order="left").drop(
        "_entity"
    )


def _relabelled(
    where: object, table: RankTable, qrels: Qrels, judged: pl.DataFrame | None, graph: KnowledgeGraph | None
) -> tuple[pl.DataFrame, float]:
    if judged is None:
        facts = _graph_of(str(qrels), graph)
        judged = qrels_from_graph(facts, str(qrels), sides=table.frame["side"].unique().to_list())
    with naming({"table": "the table"}, f"{where}, under {_called(qrels)}: "):
        found = relabelled(table, judged)
    return found.table, found.undetermined


def _graph_of(name: str, graph: KnowledgeGraph | None) -> KnowledgeGraph:
    """The graph, which has a split of that name."""
    if graph is None:
        raise ArgumentError(
            "qrels", f"must be a file, or a split of `graph`; {name!r} is no file, and there is no graph."
        )
    known = fact_splits(graph)
    if name not in known:
        raise ArgumentError(
            "qrels", f"must be a file, or a split of `graph` ({', '.join(known)}), got {name!r}."
        )
    return graph


def _known(graph: KnowledgeGraph, qrels: str) -> list[str]:
    """The splits whose known answers are filtered: train and valid, not other facts of the test."""
    return [name for name in ("train", "valid") if name in graph.splits and name != qrels]


def note(text: str) -> None:
    """Warns of what the numbers rest on."""
    warnings.warn(text, UserWarning, stacklevel=2)
