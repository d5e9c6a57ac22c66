"""Plans of further judgements: expected widths of intervals by design, before anything is judged."""

from collections.abc import Mapping, Sequence

import polars as pl

from owkg.auditing.lists import Prepared
from owkg.auditing.result import PLANS
from owkg.errors import ArgumentError
from owkg.estimation import free_proxy, measure, plan, population
from owkg.judge.qrels import binary, qrels_from_graph
from owkg.judge.runs import top
from owkg.judge.schema import QRELS
from owkg.kg import KnowledgeGraph, known_splits

DEPTH = 10
"""Depth of the pool to judge; shorter lists give a shallower pool."""
_QUERIES, _CANDIDATES = (50, 100, 200), (100, 400, 1600)
_PAIR = ["query", "answer"]


def judging_plans(
    ready: Prepared,
    lists: Mapping[str, pl.DataFrame],
    graph: KnowledgeGraph,
    labels: pl.DataFrame | None,
    metrics: Sequence[str],
    ci: float,
) -> tuple[pl.DataFrame, int]:
    """Expected widths of intervals from judgements of a random draw, and the depth of the pool.

    Args:
        ready: ranks of the systems.
        lists: list of each system; answers known from train and valid are removed.
        graph: graph whose facts are known.
        labels: judgements so far; None if there are none.
        metrics: metrics of the audit, means over answers. Plans cover the metrics that judged lists can give,
            and RR and P at the depth of the pool, for which drawn prefixes and single candidates suffice.
        ci: level of the intervals.

    Returns:
        (table with columns of `owkg.estimation.plan`, empty if nothing is left to judge; depth of the pool).
    """
    depth = min(DEPTH, ready.depth or DEPTH)
    asked, queries = ready.answers(), ready.queries.select("query")
    known = qrels_from_graph(graph, known_splits(graph, ready.split)).join(asked, on=_PAIR, how="anti")
    runs = pl.concat(
        top(own.join(queries, on="query", how="semi").join(known, on=_PAIR, how="anti"), depth).with_columns(
            model=pl.lit(name)
        )
        for name, own in lists.items()
    )
    truth = asked.select(QRELS)
    if labels is not None:
        judged = binary(labels).filter(pl.col("relevance") >= 0).select(QRELS)
        truth = pl.concat([truth, judged.join(truth, on=_PAIR, how="anti")])
    people = population(runs, depth, truth.join(queries, on="query", how="semi"))
    if not len(people.unknown):
        return pl.DataFrame(schema=PLANS), depth
    names = [*(name for name in metrics if _answered(name, depth)), f"RR@{depth}", f"P@{depth}"]
    frame = plan(people, free_proxy(people), names, ci=ci, queries=_QUERIES, candidates=_CANDIDATES)
    # Whole queries only for metrics without a cheaper design.
    best = pl.col("unit").is_in(["prefixes", "candidates"]).any().over("metric")
    return frame.filter((pl.col("unit") != "queries") | ~best).select(list(PLANS)), depth


def _answered(name: str, depth: int) -> bool:
    """Whether judged lists can give a metric."""
    try:
        measure(name, depth)
    except ArgumentError:
        return False
    return True
