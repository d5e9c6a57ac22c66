"""The systems of a comparison: rank tables and TREC runs, under one label set or several."""

import re
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from owkg.cli.tables import plain

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        help="Rank tables (.parquet, .csv, .tsv; a column model tells systems apart) or TREC runs.",
    ),
]
Graph = Annotated[
    Path | None,
    typer.Option(
        "--kg", metavar="DIR", help="Folder of the graph: relation categories, splits, and what runs need."
    ),
]
Metrics = Annotated[
    list[str] | None,
    typer.Option("--metric", help="A mean that owkg metrics --list shows; several with commas."),
]
Ties = Annotated[
    str | None,
    typer.Option(
        help="optimistic, realistic, pessimistic or exact. Absent: realistic, but exact where --qrels leave "
        "open which of several answers of equal rank stands first."
    ),
]
Intersect = Annotated[
    bool,
    typer.Option(
        "--intersect", help="Leave out questions and answers that some system lacks, and count them."
    ),
]

DEFAULT = ("mrr", "hits@1", "hits@10", "macro-mrr", "macro-map@20", "macro-ndcg@20")
"""Micro metrics, and the macro metrics that Zhou et al. (2022) recommend."""


class LabelSet(NamedTuple):
    """The rank table of every system where some answers are the relevant ones.

    `undetermined` is the largest share of ranks, of any file, that are known between two ends only.
    """

    name: str
    tables: dict[str, Any]
    undetermined: float = 0.0


class _Read(NamedTuple):
    """The rank tables of the systems in a file."""

    tables: dict[str, Any]
    undetermined: float = 0.0


def summaries(names: list[str] | None) -> list[Any]:
    """The summaries that --metric names, each once.

    Raises:
        ValueError: naming the option, if one is not known.
    """
    from owkg.cli.metrics import split_names
    from owkg.metrics import summary

    try:
        found = [summary(part) for name in names or DEFAULT for part in split_names(name)]
    except ValueError as error:
        raise ValueError(f"--metric: {error}") from None
    return list({one.name: one for one in found}.values())


def label_sets(
    files: list[Path], qrels: list[str] | None, kg: Path | None, *, intersect: bool = False
) -> list[LabelSet]:
    """The systems of the files under each of `qrels`, or as they are ranked where there are none.

    With `intersect`, what every system ranks.

    Args:
        files: rank tables and TREC runs.
        qrels: files of TREC judgements, or splits of the graph.
        kg: folder of the graph.
        intersect: whether systems may leave out questions and answers, which then leave all.

    Raises:
        ValueError: if a file is malformed, a system stands twice, a run has no judgements or no graph, or
            judgements call an answer relevant that a table does not rank.
    """
    graph = None if kg is None else _graph(kg)
    names = _names(qrels or [])
    given = names or {"as ranked": None}
    sets = [_systems(name, files, one, graph, intersect) for name, one in given.items()]
    return _intersected(sets) if intersect else sets


def _intersected(sets: list[LabelSet]) -> list[LabelSet]:
    """The label sets with what every system ranks; notes of what is left of each where one loses some."""
    from owkg.judge.scores import intersected

    found = []
    for one in sets:
        tables, left = intersected(one.tables)
        rows = left.rows(named=True) if (left["answers"] < left["of_answers"]).any() else []
        for row in rows:
            note(
                f"{one.name}: of {row['system']}, {row['questions']:,} of {row['of_questions']:,} questions "
                f"and {row['answers']:,} of {row['of_answers']:,} answers are left, which every system ranks."
            )
        found.append(one._replace(tables=tables))
    return found


def tie_rule(ties: str | None, sets: list[LabelSet]) -> str:
    """The rule that was asked for, or else the one that the tables need."""
    open_ = max(one.undetermined for one in sets)
    if open_:
        note(
            f"{open_:.0%} of the ranks of some system depend on the order of answers of equal rank; a column "
            "score in the rank tables (--score of owkg evaluate and owkg ranks convert) would tell it."
        )
        if ties not in (None, "exact"):
            note(f"--ties {ties} takes them for ties; exact is the mean over their order.")
    return ties or ("exact" if open_ else "realistic")


def _graph(folder: Path) -> Any:
    from owkg.kg import read_graph

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        graph = read_graph(folder)
    for warning in caught:
        note(str(warning.message))
    return graph


def _names(qrels: list[str]) -> dict[str, str]:
    """What label sets are called: the names of their files without endings, where those are different."""
    stems = [Path(one).name.partition(".")[0] for one in qrels]
    if len(set(qrels)) < len(qrels):
        raise ValueError(f"`qrels` must be different, got {', '.join(qrels)}.")
    return dict(zip(stems if len(set(stems)) == len(stems) else qrels, qrels, strict=True))


def _systems(labels: str, files: list[Path], qrels: str | None, graph: Any, intersect: bool) -> LabelSet:
    from owkg.ranks.delimited import is_rank_table

    found: dict[str, Any] = {}
    owner: dict[str, Path] = {}
    undetermined = 0.0
    judged = _judged(qrels) if any(map(is_rank_table, files)) else None
    for path in files:
        read = _tables(path, qrels, judged, graph, intersect)
        undetermined = max(undetermined, read.undetermined)
        for name, table in read.tables.items():
            if name in found:
                raise ValueError(f"{path}: the system {name!r} is in {owner[name]} too.")
            found[name], owner[name] = table, path
    _refuse_raw_beside_filtered(found)
    if judged is not None:
        _note_unasked(qrels, judged, list(found.values()))
    return LabelSet(labels, found, undetermined)


def _refuse_raw_beside_filtered(tables: dict[str, Any]) -> None:
    """ValueError if the other answers to a question left the candidates of some systems only."""
    raw = [
        name for name, table in tables.items() if "filtered" in table.columns and not table["filtered"].all()
    ]
    if raw and len(raw) < len(tables):
        other = next(name for name in tables if name not in raw)
        raise ValueError(
            f"FILE: raw ranks, of {raw[0]!r}, cannot be compared with filtered ones, of {other!r}."
        )


def _note_unasked(qrels: str | None, judged: Any, tables: list[Any]) -> None:
    """Says how many judged questions no system answers."""
    import polars as pl

    from owkg.judge.frames import known_entity

    keys = ["side", "entity", "relation"]
    asked = [
        t.select("side", known_entity().cast(pl.String), pl.col("relation").cast(pl.String)) for t in tables
    ]
    unasked = judged.select(keys).unique().join(pl.concat(asked), on=keys, how="anti")
    if len(unasked):
        note(f"{qrels}: {len(unasked):,} judged questions are answered by no system.")


def _judged(qrels: str | None) -> Any:
    """The judgements of a file, and a note of how many answers nobody judged; None where it is no file."""
    from owkg.judge.qrels import read_judgements

    if qrels is None or not Path(qrels).is_file():
        return None
    judged = read_judgements(qrels)
    if unjudged := int((judged["grade"] < 0).sum()):
        note(f"{qrels}: {unjudged:,} answers are pooled and not judged; ranks take them for not relevant.")
    return judged


def _tables(path: Path, qrels: str | None, judged: Any, graph: Any, intersect: bool) -> _Read:
    from owkg.ranks import annotated, read_ranks
    from owkg.ranks.delimited import is_rank_table

    undetermined = 0.0
    if is_rank_table(path):
        table = read_ranks(path)
        if graph is not None:
            try:
                table = annotated(table, graph)
            except ValueError as error:
                raise ValueError(f"{path}, with the graph of --kg: {error}") from None
        if qrels is not None:
            table, undetermined = _relabelled(path, table, qrels, judged, graph)
    else:
        table = _of_run(path, qrels, graph, intersect)
    name = path.name.partition(".")[0]
    if "model" not in table.columns:
        return _Read({name: table}, undetermined)
    by = ["model", "seed"] if "seed" in table.columns and table["seed"].n_unique() > 1 else ["model"]
    parts = table.partition_by(by, as_dict=True, maintain_order=True)
    return _Read({"/".join(map(str, key)): part for key, part in parts.items()}, undetermined)


def _of_run(path: Path, qrels: str | None, graph: Any, intersect: bool) -> Any:
    """The rank table of a TREC run; where questions may be left out, of those that it asks."""
    import polars as pl

    from owkg.judge.frames import known_entity
    from owkg.judge.qrels import read_judgements
    from owkg.ranks import ranks_from_run
    from owkg.ranks.trec import read_run

    if graph is None or qrels is None:
        raise ValueError(
            f"{path}: is taken for a TREC run, and of a run `kg` must say what the candidates are and "
            "`qrels` which answers are relevant."
        )
    file = Path(qrels) if Path(qrels).is_file() else None
    if file:
        read_judgements(file)  # refuses what no judgement is
    split = None if file else _split(qrels, graph)
    try:
        table, notes = ranks_from_run(
            path, graph, qrels=file, split=split, filter_splits=_known(graph, qrels), unanswered=intersect
        )
    except ValueError as error:
        text = str(error)
        raise ValueError(
            re.sub("with `unanswered` .*", "--intersect leaves such questions out.", text)
        ) from None
    for text in notes:
        note(f"{path}, under {qrels}: {text}.")
    if not intersect:
        return table
    asked = read_run(path).select(pl.col("tag").alias("model"), "side", "entity", "relation").unique()
    table = table.with_columns(_entity=known_entity())
    keys = ["model", "side", "_entity", "relation"]
    return table.join(asked.rename({"entity": "_entity"}), on=keys, how="semi", maintain_order="left").drop(
        "_entity"
    )


def _relabelled(path: Path, table: Any, qrels: str, judged: Any, graph: Any) -> tuple[Any, float]:
    from owkg.judge.labels import relabelled
    from owkg.judge.qrels import qrels_from_graph

    if judged is None:
        judged = qrels_from_graph(graph, _split(qrels, graph), sides=table["side"].unique().to_list())
    try:
        found = relabelled(table, judged)
    except ValueError as error:
        text = str(error).replace("`table`", "the table")
        raise ValueError(f"{path}, under {qrels}: {text}") from None
    return found.table, found.undetermined


def _split(name: str, graph: Any) -> str:
    from owkg.kg import fact_splits

    if graph is None:
        raise ValueError(
            f"`qrels` must be a file, or a split of `kg`; {name!r} is no file, and there is no kg."
        )
    known = fact_splits(graph)
    if name not in known:
        raise ValueError(f"`qrels` must be a file, or a split of `kg` ({', '.join(known)}), got {name!r}.")
    return name


def _known(graph: Any, qrels: str) -> list[str]:
    """The splits that leave the candidates: train and valid, not other labels of the test."""
    return [name for name in ("train", "valid") if name in graph.splits and name != qrels]


def note(text: str) -> None:
    """Says something beside the output."""
    print(f"owkg: note: {plain(text)}", file=sys.stderr)
