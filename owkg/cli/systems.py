"""The systems of a comparison: rank tables and TREC runs, under one label set or several."""

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

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
Ties = Annotated[str, typer.Option(help="optimistic, realistic, pessimistic or exact.")]
Intersect = Annotated[
    bool, typer.Option("--intersect", help="Leave out questions that some system lacks, and count them.")
]

DEFAULT = ("mrr", "hits@1", "hits@10", "macro-mrr", "macro-map@20", "macro-ndcg@20")
"""Micro metrics, and the macro metrics that Zhou et al. (2022) recommend."""


class LabelSet(NamedTuple):
    """The rank table of every system where some answers are the relevant ones."""

    name: str
    tables: dict[str, Any]


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


def label_sets(files: list[Path], qrels: list[str] | None, kg: Path | None) -> list[LabelSet]:
    """The systems of the files under each of `qrels`, or as they are ranked where there are none.

    Args:
        files: rank tables and TREC runs.
        qrels: files of TREC judgements, or splits of the graph.
        kg: folder of the graph.

    Raises:
        ValueError: if a file is malformed, a system stands twice, a run has no judgements or no graph, or
            judgements call an answer relevant that a table does not rank.
    """
    graph = None if kg is None else _graph(kg)
    names = _names(qrels or [])
    if not names:
        return [LabelSet("as ranked", _systems(files, None, graph))]
    return [LabelSet(name, _systems(files, given, graph)) for name, given in names.items()]


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


def _systems(files: list[Path], qrels: str | None, graph: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    owner: dict[str, Path] = {}
    for path in files:
        for name, table in _tables(path, qrels, graph).items():
            if name in found:
                raise ValueError(f"{path}: the system {name!r} is in {owner[name]} too.")
            found[name], owner[name] = table, path
    return found


def _tables(path: Path, qrels: str | None, graph: Any) -> dict[str, Any]:
    """The rank tables of the systems in a file."""
    from owkg.ranks import annotated, ranks_from_run, read_ranks
    from owkg.ranks.delimited import separator

    if path.suffix.lower() == ".parquet" or separator(path) is not None:
        table = read_ranks(path)
        if graph is not None:
            try:
                table = annotated(table, graph)
            except ValueError as error:
                raise ValueError(f"{path}, with the graph of --kg: {error}") from None
        if qrels is not None:
            table = _relabelled(path, table, qrels, graph)
    else:
        if graph is None or qrels is None:
            raise ValueError(
                f"{path}: is taken for a TREC run, and of a run `kg` must say what the candidates are and "
                "`qrels` which answers are relevant."
            )
        file = Path(qrels) if Path(qrels).is_file() else None
        split = None if file else _split(qrels, graph)
        table, notes = ranks_from_run(
            path, graph, qrels=file, split=split, filter_splits=_known(graph, qrels)
        )
        for text in notes:
            note(f"{path}: {text}.")
    name = path.name.partition(".")[0]
    if "model" not in table.columns:
        return {name: table}
    by = ["model", "seed"] if "seed" in table.columns and table["seed"].n_unique() > 1 else ["model"]
    parts = table.partition_by(by, as_dict=True, maintain_order=True)
    return {"/".join(map(str, key)): part for key, part in parts.items()}


def _relabelled(path: Path, table: Any, qrels: str, graph: Any) -> Any:
    from owkg.judge.labels import relabelled
    from owkg.judge.qrels import qrels_from_graph, read_judgements

    if Path(qrels).is_file():
        judged = read_judgements(qrels)
    else:
        judged = qrels_from_graph(graph, _split(qrels, graph), sides=table["side"].unique().to_list())
    try:
        found = relabelled(table, judged)
    except ValueError as error:
        raise ValueError(f"{path}, under {qrels}: {error}") from None
    return found.table


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
    print(f"owkg: note: {text}", file=sys.stderr)
