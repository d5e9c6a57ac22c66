"""Systems of a comparison: rank tables and TREC runs, under one or several qrels."""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.errors import ArgumentError, naming
from owkg.files.columns import frame_of, is_pandas, is_table
from owkg.ir.trec import qrels_of, read_run, require_text, run_of
from owkg.judge.named import is_dictionary, names_of, only_name, sources_of
from owkg.judge.qrels import qrels_from_graph, read_judgements
from owkg.judge.relabelled import relabelled
from owkg.judge.schema import QRELS, checked, once
from owkg.judge.scores import Scores, intersected
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.kg.graph import graph_checked
from owkg.kg.names import known_entity, query_text
from owkg.ranks import RankDataset, RankTable, annotated, ranks_from_run
from owkg.ranks.dataset import is_dataset
from owkg.ranks.files import holds_ranks, read_lacking
from owkg.ranks.reading import PLAIN, TableReading
from owkg.ranks.seeds import with_more_seeds
from owkg.ranks.together import file_names

System = Any
"""Ranks of a system: a rank table, a frame of polars or pandas, columns, a run {query: {answer: score}},
or the path of a table or run."""

Qrels = pl.DataFrame | Mapping[Any, Any] | str | PathLike[str]
"""Relevant answers: a frame, {query: {answer: relevance}}, a path of TREC qrels, or a split of the graph."""


SeveralQrels = Mapping[str, Qrels] | Sequence[Qrels] | Qrels | None
"""Qrels, one or several, with or without names; None for ranks as they are."""

AS_RANKED = "as ranked"
"""Name of the results without qrels."""

_FACT = ("side", "entity", "relation", "answer")


class QrelsRanks(NamedTuple):
    """Rank table of every system under one qrels.

    Attributes:
        name: name of the qrels.
        tables: rank tables by system.
        undetermined: largest share, over the files, of ranks of which only bounds are known.
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
    reading: TableReading = PLAIN,
) -> list[QrelsRanks]:
    """Rank tables of the systems under each of `qrels`, or as they are if there are none.

    Args:
        systems: rank tables, runs or paths by name; or paths of files, whose systems are named by their
            column model or tags, and by the file if there are none or two files share a tag.
        qrels: qrels by name; or one or several, named by their files. None: ranks as they are.
        graph: knowledge graph for splits, TREC runs and relation categories.
        intersect: whether to leave out queries and answers that some system lacks. Default False.
        reading: options for the rank tables.

    Raises:
        ValueError: if a file is malformed, a system is given twice, a run has no judgements or no graph, or
            judgements call an answer relevant that a table does not rank.
    """
    what = "several: rank tables or paths by name, or a list of paths"
    if is_pandas(systems) or isinstance(systems, RankTable):
        raise ArgumentError("systems", f"must be {what}, got one table.")
    sources = [(name, _source(name, of)) for name, of in sources_of("systems", systems, what=what)]
    if graph is not None:
        graph_checked(graph)
    if not sources:
        raise ArgumentError("systems", "must name at least two systems, got none.")
    if reading.said and not any(_is_table(of) for _, of in sources):
        raise ArgumentError(reading.said, "applies to rank tables, and every system is a TREC run.")
    given = qrels_named(qrels) or {AS_RANKED: None}
    sets = [_systems(name, sources, one, graph, intersect, reading) for name, one in given.items()]
    return _intersected(sets) if intersect else sets


def _source(called: str | None, of: object) -> Any:
    """System to be read: a path, a run, or a table with a name or a column model."""
    if isinstance(of, RankDataset) or is_dictionary(of):
        return of
    if isinstance(of, Path):
        if not of.exists() and not is_dataset(of):
            raise FileNotFoundError(2, "No such file or directory", str(of))
        return of
    if not (isinstance(of, RankTable) or is_table(of)):
        raise ArgumentError("systems", f"must be rank tables, paths or dictionaries, got {of!r}.")
    own = of if isinstance(of, RankTable) else frame_of(of, "systems")
    columns = own.frame.columns if isinstance(own, RankTable) else own.columns
    if called is None and "model" not in columns:
        raise ArgumentError(
            "systems", "must have names if they are tables without a column model: {name: table, ...}."
        )
    return own


def _intersected(sets: list[QrelsRanks]) -> list[QrelsRanks]:
    """Qrels with the answers that every system ranks; notes if some system loses answers."""
    found = []
    for one in sets:
        tables, left = intersected(one.tables)
        rows = left.rows(named=True) if (left["answers"] < left["of_answers"]).any() else []
        for row in rows:
            note(
                f"{one.name}: {row['system']} keeps {row['queries']:,} of {row['of_queries']:,} queries "
                f"and {row['answers']:,} of {row['of_answers']:,} answers, which every system ranks."
            )
        found.append(one._replace(tables=tables))
    return found


def tie_rule(ties: str | None, sets: list[QrelsRanks]) -> str:
    """Tie rule that was asked for, or the rule that the tables need."""
    open_ = max((one.undetermined for one in sets), default=0.0)
    if open_:
        note(
            f"{open_:.0%} of the ranks of some system depend on the unknown order of answers of equal rank, "
            "so that values are means over these orders. A column score in the rank tables (`score` "
            "of rank_table, --score of owkg rank and owkg ranks convert) gives the order."
        )
        if ties not in (None, "exact"):
            note(f"The tie rule {ties} takes them for ties; exact is the mean over their orders.")
    return ("exact" if open_ else "realistic") if ties is None else ties


def qrels_named(qrels: SeveralQrels) -> dict[str, Any]:
    """Qrels by name: the given names, or file names without endings if these differ."""
    if qrels is None:
        return {}
    if isinstance(qrels, Mapping | list | tuple) and not len(qrels):
        raise ArgumentError("qrels", "must be at least one, or None for ranks as they are.")
    if is_dictionary(qrels):
        return {"qrels": qrels}
    if isinstance(qrels, Mapping):
        return {name: _qrels(one) for name, one in qrels.items()}
    if not isinstance(qrels, Iterable | PathLike):
        raise ArgumentError("qrels", f"must be frames, files or splits, got {type(qrels).__name__}.")
    several = [qrels] if isinstance(qrels, pl.DataFrame | str | PathLike) else list(qrels)
    given = [_qrels(one) for one in several]
    held = (pl.DataFrame, Mapping)
    texts = [f"qrels {i + 1}" if isinstance(one, held) else str(one) for i, one in enumerate(given)]
    stems = [Path(text).name.partition(".")[0] for text in texts]
    if len(set(texts)) < len(texts):
        raise ArgumentError("qrels", f"must be different, got {', '.join(texts)}.")
    return dict(zip(stems if len(set(stems)) == len(stems) else texts, given, strict=True))


def _qrels(one: object) -> Qrels:
    """Qrels of a valid type; ArgumentError otherwise."""
    if not isinstance(one, pl.DataFrame | Mapping | str | PathLike):
        raise ArgumentError("qrels", f"must be a frame, a file or a split, got {one!r}.")
    return one


def _systems(
    name: str,
    sources: list[tuple[str | None, Any]],
    qrels: Qrels | None,
    graph: KnowledgeGraph | None,
    intersect: bool,
    reading: TableReading,
) -> QrelsRanks:
    """Rank tables of all systems under one qrels."""
    found: dict[str, RankTable] = {}
    owner: dict[str, str] = {}
    undetermined = 0.0
    if isinstance(qrels, Mapping):
        qrels = qrels_of("qrels", qrels).select(*_FACT, "query", "relevance")
    judged = _judged(qrels) if any(_is_table(source) for _, source in sources) else None
    named = _folders_named(sources, reading, lacking=graph is not None)
    read = [_tables(called, source, qrels, judged, graph, intersect, reading) for called, source in named]
    files = [Path(_where(source)) for _, source in named]
    stay = [
        called is not None
        or (_is_table(of) and any({"model", "seed"} & set(t.frame.columns) for t in tables.values()))
        for (called, of), (tables, _) in zip(named, read, strict=True)
    ]
    names = names_of(files, [list(tables) for tables, _ in read], stay)
    for (_, source), (tables, share), new in zip(named, read, names, strict=True):
        undetermined = max(undetermined, share)
        for system, table in ((new[name], table) for name, table in tables.items()):
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
    """Source of a system, for messages."""
    if isinstance(source, RankDataset):
        return source.source
    return str(source) if isinstance(source, Path) else "another table"


def _folders_named(
    sources: list[tuple[str | None, Any]], reading: TableReading, *, lacking: bool
) -> list[tuple[str | None, Any]]:
    """Sources; folders and patterns become datasets, named as by `read_datasets`."""
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
    """Issues notes on systems with a single seed, and on seeds with equal scores."""
    if not scores.seeded.any():
        return
    for name, one in zip(scores.systems, scores.seeds, strict=True):
        if one is None:
            note(
                f"{name} has one seed, so that its variation over seeds is unknown and missing from its "
                "intervals and tests, which hold for this run only."
            )
            continue
        for i, j in combinations(range(len(one.seeds)), 2):
            if np.array_equal(one.value[:, i], one.value[:, j]):
                note(
                    f"seeds {one.seeds[i]} and {one.seeds[j]} of {name} score the same on every query: if "
                    "they are the same run, its deviation over seeds is too small."
                )
                break


def _is_table(source: Any) -> bool:
    """Whether a source is a rank table."""
    if isinstance(source, Mapping):
        return False
    return not isinstance(source, Path) or holds_ranks(source) or is_dataset(source)


def _called(qrels: Qrels) -> str:
    """Name of qrels in messages."""
    return "qrels" if isinstance(qrels, pl.DataFrame) else str(qrels)


def _refuse_raw_beside_filtered(tables: dict[str, RankTable]) -> None:
    """ValueError if some systems have raw ranks and others have filtered ranks."""
    raw = [
        name
        for name, table in tables.items()
        if "filtered" in table.frame.columns and not table.frame["filtered"].all()
    ]
    if raw and len(raw) < len(tables):
        other = next(name for name in tables if name not in raw)
        raise ValueError(
            f"`systems`: raw ranks of {raw[0]!r} cannot be compared with filtered ranks of {other!r}."
        )


def _compare_filters(tables: dict[str, RankTable]) -> None:
    """ValueError if keys filter some systems only; a note if different splits filter."""
    said = {name: tuple(table.about["filter"]) for name, table in tables.items() if table.about.get("filter")}
    for name, filters in said.items():
        other, theirs = next(iter(said.items()))
        if set(filters) == set(theirs):
            continue
        text = f"filtered by {', '.join(theirs)} ({other!r}) and by {', '.join(filters)} ({name!r})"
        if "known" in {*filters, *theirs}:
            raise ValueError(f"`systems`: ranks {text} cannot be compared.")
        note(f"ranks are {text}: they can only be compared if these are the same facts.")
        return


def _note_unasked(qrels: str, judged: pl.DataFrame, tables: list[RankTable]) -> None:
    """Notes how many judged queries no system answers."""
    keys = ["side", "entity", "relation"]
    asked = [
        t.frame.select("side", known_entity().cast(pl.String), pl.col("relation").cast(pl.String))
        for t in tables
    ]
    unasked = judged.select(keys).unique().join(pl.concat(asked), on=keys, how="anti")
    if len(unasked):
        note(f"{qrels}: {len(unasked):,} judged queries are answered by no system.")


def _judged(qrels: Qrels | None) -> pl.DataFrame | None:
    """Judgements, and a note of how many answers are unjudged; None for a split."""
    if isinstance(qrels, pl.DataFrame):
        judged = checked("qrels", qrels, (*_FACT, "relevance"))
        once("qrels", judged.with_columns(query_text()), *_FACT)
    elif qrels is None or isinstance(qrels, Mapping) or not Path(qrels).is_file():
        return None
    else:
        judged = read_judgements(qrels)
    if unjudged := int((judged["relevance"] < 0).sum()):
        said = f"{unjudged:,} answers are pooled and not judged; ranks count them as not relevant."
        note(f"{_called(qrels)}: {said}")
    return judged


def _tables(
    called: str | None,
    source: RankTable | pl.DataFrame | RankDataset | Mapping[Any, Any] | Path,
    qrels: Qrels | None,
    judged: pl.DataFrame | None,
    graph: KnowledgeGraph | None,
    intersect: bool,
    reading: TableReading,
) -> tuple[dict[str, RankTable], float]:
    """Rank tables of the systems in a file, and the share of ranks of which only bounds are known."""
    undetermined, about = 0.0, {}
    where: Any = source if isinstance(source, Path) else called
    if isinstance(source, RankDataset):
        where = source.source
    if isinstance(source, Path | Mapping) and not _is_table(source):
        table = _of_run(source, qrels, graph, intersect)
        if called is not None:
            only_name(
                where if isinstance(source, Path) else called, table["model"].unique().to_list(), called
            )
    else:
        read = _table(called, source, graph, reading)
        table, about = read.frame, read.about
        if graph is not None:
            try:
                table = annotated(read, graph)
            except ValueError as error:
                raise ValueError(f"{where}, with `graph`: {error}") from None
        if qrels is not None and read.averaged:
            text = "must be left out, because they change the ranks, and only realistic ranks of"
            raise ArgumentError("qrels", f"{text} {where} are known.")
        if qrels is not None:
            table, undetermined = _relabelled(where, RankTable.trusted(table), qrels, judged, graph)
    if isinstance(source, Path | RankDataset):
        about = {**about, "source": str(where)}
    if called is not None:
        if "model" in table.columns and table["model"].n_unique() > 1:
            only_name(where, table["model"].unique(maintain_order=True).to_list(), called)
        return {called: RankTable.trusted(table, about)}, undetermined
    if "model" not in table.columns:
        return {Path(str(where)).name.partition(".")[0]: RankTable.trusted(table, about)}, undetermined
    parts = table.partition_by("model", as_dict=True, maintain_order=True)
    return {str(model): RankTable.trusted(part, about) for (model,), part in parts.items()}, undetermined


def _table(called: str | None, source: Any, graph: KnowledgeGraph | None, reading: TableReading) -> RankTable:
    """Rank table in one source."""
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
    source: Path | Mapping[Any, Any], qrels: Qrels | None, graph: KnowledgeGraph | None, intersect: bool
) -> pl.DataFrame:
    """Rank table of a run; with `intersect` only for the queries that the run answers."""
    path = source if isinstance(source, Path) else "the run"
    if isinstance(source, Path):
        require_text(source, "a rank table (.parquet, .csv, .tsv) or a run")
    if graph is None or qrels is None:
        raise ValueError(
            f"{path}: does not have the name of a rank table (.parquet, .csv, .tsv). If it is a run, `graph` "
            "must give the candidates and `qrels` the relevant answers. If its queries are topics, "
            "`metrics` must name measures of lists, such as AP,nDCG@10."
        )
    called = "qrels" if isinstance(qrels, pl.DataFrame | Mapping) else str(qrels)
    judged: pl.DataFrame | Path | None = None
    if isinstance(qrels, pl.DataFrame):
        judged = once("qrels", checked("qrels", qrels.with_columns(query_text()), QRELS), "query", "answer")
    elif Path(called).is_file():
        judged = Path(called)
        read_judgements(judged)  # raises an error if a line is not a judgement
    split = called if judged is None else None
    if split:
        _graph_of(split, graph)
    with naming({"unanswered": "`intersect`"}):
        table, notes = ranks_from_run(
            source,
            graph,
            qrels=judged,
            split=split,
            filter_splits=_known(graph, called),
            unanswered=intersect,
        )
    for text in notes:
        note(f"{path}, under {called}: {text}.")
    if not intersect:
        return table
    run = (
        read_run(source)
        if isinstance(source, Path)
        else run_of("systems", source).with_columns(tag=pl.lit("run"))
    )
    asked = run.select(pl.col("tag").alias("model"), "side", "entity", "relation").unique()
    table = table.with_columns(_entity=known_entity())
    keys = ["model", "side", "_entity", "relation"]
    return table.join(asked.rename({"entity": "_entity"}), on=keys, how="semi", maintain_order="left").drop(
        "_entity"
    )


def _relabelled(
    where: object, table: RankTable, qrels: Qrels, judged: pl.DataFrame | None, graph: KnowledgeGraph | None
) -> tuple[pl.DataFrame, float]:
    """Rank table under qrels, and the share of ranks of which only bounds are known."""
    if judged is None:
        facts = _graph_of(str(qrels), graph)
        judged = qrels_from_graph(facts, str(qrels), sides=table.frame["side"].unique().to_list())
    with naming({"table": "the table"}, f"{where}, under {_called(qrels)}: "):
        found = relabelled(table, judged)
    return found.table, found.undetermined


def _graph_of(name: str, graph: KnowledgeGraph | None) -> KnowledgeGraph:
    """Graph that has a split of that name; ArgumentError otherwise."""
    if graph is None:
        raise ArgumentError(
            "qrels", f"must be a file, or a split of `graph`; {name!r} is not a file, and there is no graph."
        )
    known = fact_splits(graph)
    if name not in known:
        raise ArgumentError(
            "qrels", f"must be a file, or a split of `graph` ({', '.join(known)}), got {name!r}."
        )
    return graph


def _known(graph: KnowledgeGraph, qrels: str) -> list[str]:
    """Splits whose known answers are filtered: train and valid, not further facts of the test."""
    return [name for name in ("train", "valid") if name in graph.splits and name != qrels]


def note(text: str) -> None:
    """Issues a warning about an assumption or a limit of the results."""
    warnings.warn(text, UserWarning, stacklevel=2)
