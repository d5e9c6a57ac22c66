"""Metrics of triples whose rank is the mean of both sides."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.metrics.front import MetricNames, metrics_named
from owkg.metrics.ties import Ties
from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import on_numpy, rank_weights
from owkg.ranks import RankTable
from owkg.ranks.seeds import seeds_of
from owkg.ranks.table import SIDES

_TRIPLE = ("head", "relation", "tail")


def side_means(
    ranks: RankTable | pl.DataFrame,
    metrics: MetricNames = ("mr", "mrr", "hits@1", "hits@3", "hits@10"),
    *,
    ties: str | Sequence[str] = "realistic",
) -> pl.DataFrame:
    """Metrics of triples whose rank is the mean of their head and tail ranks, next to metrics over all tasks.

    "The final rank of the triple is computed as an average over both ranks" (Berrendorf et al. 2020, section
    2.1). Usually both ranks count as tasks of their own. The mean rank is then the same, but Hits@K and MRR
    are not, because a triple with ranks 1 and 19 has rank 10.

    Args:
        ranks: rank table from `owkg.rank` or `owkg.read_ranks`, with every triple ranked on both sides.
            Weights and rows of the side relation are ignored.
        metrics: plain micro means, such as hits@K, mrr, mr, gmr, p-mrr@P and other means of a rank weight.
            Default: mr, mrr, hits@1, hits@3, hits@10.
        ties: "optimistic", "realistic", "pessimistic", or several. Default "realistic".

    Returns:
        A frame with the columns model (if the table has models), ties, metric, of_triples (by mean ranks),
        of_tasks (over all tasks), triples.

    Raises:
        ValueError: if a triple does not have exactly one rank on each side, or a metric is not a mean of a
            rank weight.

    Examples:
        >>> row = {"head": "a", "relation": "r", "tail": "b", "candidates": 99}
        >>> ranks = {"head": 1, "tail": 19}
        >>> rows = [row | {"side": s, "optimistic": r, "pessimistic": r} for s, r in ranks.items()]
        >>> side_means(pl.DataFrame(rows), ["mr", "hits@1"]).select("of_triples", "of_tasks").rows()
        [(10.0, 10.0), (0.0, 0.5)]
    """
    table = RankTable.of(ranks, source="ranks").frame
    table = table.filter(pl.col("side").is_in(SIDES))
    if seeds_of(table):
        raise ArgumentError("ranks", "must have one seed for each model: no triple has a rank over seeds.")
    chosen = metrics_named(metrics) or []
    weights = [one.rank_weight for one in chosen if one.rank_weight]
    if len(weights) < len(chosen):
        raise ArgumentError("metrics", "must be plain means over tasks, such as mrr, hits@10 or mr.")
    rules = checks.some_of("ties", ties, [rule.value for rule in Ties if rule is not Ties.EXACT], least=1)
    own = ["model"] if "model" in table.columns else []
    counts = table.group_by(*own, *_TRIPLE, maintain_order=True).agg(pl.col("side").n_unique(), pl.len())
    if (bad := counts.filter((pl.col("side") != 2) | (pl.col("len") != 2))).height:
        triple = " ".join(map(str, bad.select(_TRIPLE).row(0)))
        raise ArgumentError("ranks", f"must hold each triple once on each side, which {triple!r} is not.")
    if not table.height:
        raise ArgumentError("ranks", "must rank heads and tails, got none.")
    rows = []
    for rule in rules:
        weight = {"optimistic": (1.0, 0.0), "pessimistic": (0.0, 1.0), "realistic": (0.5, 0.5)}[rule]
        rank = pl.col("optimistic") * weight[0] + pl.col("pessimistic") * weight[1]
        tasks = table.select(*own, *_TRIPLE, rank.alias("rank"))
        triples = tasks.group_by(*own, *_TRIPLE, maintain_order=True).agg(pl.col("rank").mean())
        for name in table["model"].unique(maintain_order=True) if own else [None]:
            is_own = pl.lit(value=True) if name is None else pl.col("model") == name
            two = [part.filter(is_own)["rank"].to_numpy() for part in (triples, tasks)]
            for metric in weights:
                values = dict(
                    zip(("of_triples", "of_tasks"), (_mean(metric, part) for part in two), strict=True)
                )
                about = {} if name is None else {"model": name}
                rows.append(about | {"ties": rule, "metric": metric.name} | values | {"triples": len(two[0])})
    return pl.DataFrame(rows)


def _mean(metric: RankWeight, ranks: np.ndarray) -> float:
    mean = rank_weights(metric, ranks).mean()
    return float(mean if metric.link is None else on_numpy(metric.link, mean))
