"""The folder that `owkg pool` writes: candidates, judgements so far, the pooled lists, a sheet to fill in."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from owkg.cli.pool import MADE_BY
from owkg.judge.annotation import read_names, write_sheet
from owkg.judge.pools import judged_pool, pool, pool_sizes
from owkg.judge.qrels import judged_for, merged, qrels_from_graph, read_judgements, write_judgements
from owkg.judge.runs import aligned, read_runs, top, without_known, write_run
from owkg.judge.trivial import rule_counts, triples_of, trivial
from owkg.kg import KnowledgeGraph, fact_splits, read_graph
from owkg.metrics import POOLED
from owkg.provenance import checksum, checksums, made_folder, versions, write_metadata
from owkg.ranks.delimited import is_rank_table

_FILTER = ("train", "valid")
_TRUTH = "truth"  # the split that holds what --truth knows
_PAIR = ["question", "answer"]


class _Made(NamedTuple):
    """What goes into the folder."""

    run: pl.DataFrame
    pool: pl.DataFrame  # with rule, grade and judged_by
    qrels: pl.DataFrame
    said: dict[str, Any]


def write_pool(
    runs: Sequence[Path],
    kg: Any,
    out: Path,
    settings: dict[str, Any],
    *,
    names: Path | None,
    overwrite: bool,
) -> dict[str, Any]:
    """Makes the pool of some runs and writes it as a folder; gives what its `metadata.json` says.

    Args:
        runs: TREC runs.
        kg: folder of the graph.
        out: the folder, whole or not there.
        settings: depth, truth, closed_world, filter, trivial, min_share, intersect, seed.
        names: file of readable names, for the sheet; None: none.
        overwrite: whether a folder that this command wrote is replaced.
    """
    with made_folder(out, made_by=MADE_BY, inputs=runs, overwrite=overwrite) as folder:
        labels, descriptions = ({}, {}) if names is None else read_names(names)
        made = _made(runs, Path(kg), settings)
        table = made.pool.with_columns(pl.col("models").list.join(","))
        table.write_csv(folder / "pool.tsv", separator="\t")
        write_judgements(made.qrels, folder / "pool.qrels")
        write_run(made.run, folder / "runs.trec.gz")
        left = made.pool.filter(pl.col("grade") == POOLED)
        if len(left):
            write_sheet(
                left, folder / "sheet.tsv", seed=settings["seed"], labels=labels, descriptions=descriptions
            )
        inputs = [{"file": path.name, "sha256": checksum(path)} for path in runs]
        card = {"made_by": MADE_BY, "versions": versions(), "runs": inputs, "settings": settings}
        card |= made.said | {"to_judge": len(left), "sha256": checksums(folder)}
        write_metadata(folder, card)
    return card


def _made(paths: Sequence[Path], kg: Path, settings: dict[str, Any]) -> _Made:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        graph = read_graph(kg)
    notes = [str(warning.message) for warning in caught]
    splits = _filter_splits(graph, settings["filter"], settings["truth"])
    run, dropped = aligned(read_runs(paths), intersect=settings["intersect"])
    if dropped:
        notes.append(f"{dropped:,} questions are left out, which some system does not answer.")
    tables = [path.name for path in paths if is_rank_table(path)]
    notes += [f"{name} is a rank table: only its tested answers are pooled." for name in tables]
    asked = run["question"].n_unique()
    run = without_known(run, graph, splits) if splits else run
    if run.is_empty():
        raise ValueError("`filter` must leave some answer of the runs, got none left.")
    if gone := asked - run["question"].n_unique():
        notes.append(f"{gone:,} questions have no answers left after the filter, and no row.")
    run = top(run, settings["depth"])
    systems = run["model"].unique().sort().to_list()
    if len(systems) == 1:
        notes.append("the pool is of one system: what only others would find stays unjudged.")
    candidates = pool(run, settings["depth"])
    truth = _truth(graph, settings["truth"], candidates, notes)
    marked = candidates.with_columns(rule=pl.lit(None, pl.String))
    if settings["trivial"]:
        marked = _marked(graph, candidates, truth, splits, settings)
    judged = _graded(marked, truth, settings["closed_world"])
    wrong = judged.filter((pl.col("grade") > 0) & pl.col("rule").is_not_null())
    if len(wrong):
        notes.append(f"{len(wrong):,} relevant answers are taken for trivial; the truth decides.")
    qrels = judged.select("question", "side", "entity", "relation", "answer", "grade")
    if truth is not None and not settings["closed_world"]:
        qrels = merged(qrels, truth)
        if more := len(qrels) - len(judged):
            notes.append(
                f"{more:,} answers that the truth judges are in no list; they are judged all the same."
            )
    rules = rule_counts(marked).drop_nulls("rule").rows() if settings["trivial"] else []
    said = {
        "systems": systems,
        "filter": list(splits),
        "sizes": pool_sizes(candidates, judged).to_dicts(),
        "rules": dict(rules),
        "notes": notes,
    }
    return _Made(run, judged, qrels, said)


def _filter_splits(graph: KnowledgeGraph, named: str | None, truth: str | None) -> list[str]:
    """The splits whose answers leave the lists."""
    facts = fact_splits(graph)
    if named is None:
        return [name for name in _FILTER if name in facts and name != truth]
    if named == "none":
        return []
    splits = [name.strip() for name in named.split(",")]
    for name in splits:
        if name not in facts:
            raise ValueError(f"`filter` must be among {', '.join(facts)}, or none, got {name!r}.")
        if name == truth:
            raise ValueError(f"`filter` must not hold the split that --truth names, got {name!r}.")
    return splits


def _truth(
    graph: KnowledgeGraph, truth: str | None, candidates: pl.DataFrame, notes: list[str]
) -> pl.DataFrame | None:
    """The judgements that are there already, of the questions asked."""
    if truth is None:
        return None
    if truth in fact_splits(graph):
        known = qrels_from_graph(graph, truth)
    elif Path(truth).is_file():
        known = read_judgements(truth)
    else:
        names = ", ".join(fact_splits(graph))
        raise ValueError(f"`truth` must be a split ({names}) or a file of qrels, got {truth!r}.")
    judged, other = judged_for(known, candidates, intersect=True)
    if other:
        notes.append(f"{other:,} questions that the truth answers are not asked.")
    return judged


def _marked(
    graph: KnowledgeGraph,
    candidates: pl.DataFrame,
    truth: pl.DataFrame | None,
    splits: list[str],
    settings: dict[str, Any],
) -> pl.DataFrame:
    """The candidates with the rules that mark them.

    The rules know the truth too, as one who annotates does; not where it stands for the annotator.
    """
    known = splits
    if truth is not None and not settings["closed_world"]:
        facts = triples_of(truth.filter(pl.col("grade") > 0), graph)
        graph, known = graph._replace(splits=graph.splits | {_TRUTH: facts}), [*splits, _TRUTH]
    return trivial(candidates, graph, known=known, min_share=settings["min_share"])


def _graded(marked: pl.DataFrame, truth: pl.DataFrame | None, closed_world: bool) -> pl.DataFrame:
    """The candidates with a grade: of the truth, else 0 by rule, else not judged; and which of these."""
    ruled = pl.col("rule").is_not_null()
    by_rule = pl.when(ruled).then(0).otherwise(POOLED).cast(pl.Int64)
    if truth is None:
        return marked.with_columns(grade=by_rule, judged_by=pl.when(ruled).then(pl.lit("rule")))
    if closed_world:
        judged = judged_pool(marked, truth).select(*_PAIR, "grade")
    else:
        judged = truth.filter(pl.col("grade") != POOLED).select(*_PAIR, "grade")
    found = marked.join(judged, on=_PAIR, how="left", maintain_order="left")
    source = pl.when(pl.col("grade").is_not_null()).then(pl.lit(_TRUTH)).when(ruled).then(pl.lit("rule"))
    return found.with_columns(grade=pl.coalesce("grade", by_rule), judged_by=source)
