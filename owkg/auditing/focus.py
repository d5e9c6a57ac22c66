"""Metrics that tell two ranked systems apart with the fewest queries, at each focus on the top."""

from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
from numpy.typing import ArrayLike

from owkg import checks
from owkg.auditing.lists import Prepared, joined_ranks
from owkg.auditing.result import WEIGHTS
from owkg.errors import ArgumentError
from owkg.keys import Seed
from owkg.rank_weights import RankWeight, rank_weight
from owkg.rank_weights.compared import BestWeights, best_weights_of
from owkg.ranks import RankTable

_METRICS = ("mrr", "hits@1", "hits@3", "hits@10", "p-mrr@1/2", "p-mrr@1/4")
# From the first rank to no limit: depths of 1, 2, 5, ... ranks.
_FOCUS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0)


def best_weight_of(
    first: RankTable | pl.DataFrame,
    second: RankTable | pl.DataFrame,
    *,
    focus: ArrayLike = _FOCUS,
    metrics: str | RankWeight | Iterable[str | RankWeight] = _METRICS,
    inconsistency: float = 0.05,
    macro: bool = False,
    seed: int = 0,
) -> BestWeights:
    """Queries required to show that `first` is ahead, by metrics and by the best falling weights.

    This many queries, drawn like the queries of the tables, show the wrong order with probability
    `inconsistency` if the observed difference is the true one. Ranks are counted in bins, seven per decade.
    The best weight is constant within each bin, does not rise, and has at least a given focus
    (`owkg.rank_weights.focus_of`). At focus 0 it needs the fewest queries of all weights that do not rise.

    A weight looks too good on the queries that it is fitted on, above all if the systems are close. So
    `required_queries` of the frontier is too small. For `held_out` the queries are split at random into two
    halves, and each half is scored with the weight fitted on the other half. This number is as honest as the
    number of a metric chosen beforehand, if you choose the focus beforehand as well; its weight is fitted on
    half as many queries. If `held_out`, or the number of a metric, exceeds the queries in the tables, these
    do not tell the systems apart.

    Args:
        first, second: rank tables of the same triples and sides with the same filters. `first` is taken to be
            better. A tied rank counts as the mean of its bounds.
        focus: least focuses, numbers in [0, 1]; 1/K looks no deeper than Hits@K.
        metrics: means of rank weights that do not get better as the rank rises, or their names.
        inconsistency: tolerated probability that the weaker system looks better, in (0, 0.5). Default 0.05.
        macro: whether every query has the same weight (True) or every answer (False, default).
        seed: seed of the random halves. Default 0.

    Raises:
        ValueError: if the tables rank other triples, there are fewer than four queries, or an argument is out
            of range.

    References:
        Chernozhukov et al. (Econometrics Journal 21, 2018), cross-fitting.
    """
    least = np.atleast_1d(checks.real("focus", focus, 0, 1))
    tolerated = checks.scalar(
        "inconsistency", checks.real("inconsistency", inconsistency, 0, 0.5, closed=False)
    )
    if least.ndim != 1:
        raise ArgumentError("focus", f"must be a number or several along one axis, got shape {least.shape}.")
    macro, seed = checks.flag("macro", macro), checks.seed("seed", seed)
    several = [metrics] if isinstance(metrics, str | RankWeight) else metrics
    chosen = tuple(rank_weight(one) if isinstance(one, str) else one for one in several)
    ranked = joined_ranks(first, second).sort("query", "answer")
    query = ranked["query"].rank("dense").to_numpy().astype(np.int64) - 1
    ranks = np.stack([ranked[name].to_numpy() for name in ("rank", "rank_right")])
    last = int(ranked["candidates"].to_numpy().max())
    if (queries := int(query.max()) + 1) < 4:
        raise ArgumentError("first", f"must rank four queries at least, got {queries}.")
    if last < 2:
        raise ArgumentError("first", f"must rank among two candidates at least, got {last}.")
    return best_weights_of(query, ranks, last, least, chosen, inconsistency=tolerated, macro=macro, seed=seed)


def weights_of_pairs(
    ready: Prepared, systems: tuple[str, ...], average: str, *, seed: Seed
) -> tuple[pl.DataFrame, list[str]]:
    """Queries that each pair requires, by usual metrics and by the best weight of each focus.

    The numbers of metrics use the tie rule of the audit, like its table of pairs.

    Args:
        ready: ranks of the systems.
        systems: names in order. The first of each pair is taken to be ahead.
        average: "answers" or "queries".
        seed: seed of the random halves.

    Returns:
        (table with the columns of `owkg.auditing.result.WEIGHTS`, without systems that have several seeds,
        and empty if there are fewer than four queries; a note on the pairs whose rows are null because their
        numbers could not be computed).
    """
    least, metrics = np.array(_FOCUS), tuple(map(rank_weight, _METRICS))
    parts: list[pl.DataFrame] = []
    failed: list[str] = []
    single = [name for name in systems if ready.seeds(name) == 1]
    sums = {name: np.stack([ready.values(name, metric).sum(1) for metric in metrics]) for name in single}
    for first, second in combinations(single, 2):
        query, ranks, last = ready.ranks(first, second)
        if last < 2 or query[-1] < 3:
            break
        options: Any = {"inconsistency": 0.05, "macro": average == "queries", "seed": seed}
        options["gains"] = sums[first] - sums[second]
        try:
            found = best_weights_of(query, ranks, last, least, metrics, **options)
            by_metric, by_focus = found.metrics, found.frontier
        except (ArithmeticError, RuntimeError, ValueError) as error:  # LinAlgError is a ValueError
            failed.append(f"{first} and {second} ({error})")
            by_metric, by_focus = pl.DataFrame({"metric": _METRICS}), pl.DataFrame({"least_focus": least})
        named = [
            pl.lit(first).alias("first"),
            pl.lit(second).alias("second"),
            pl.lit(average).alias("average"),
        ]
        parts.append(by_metric.select(*named, pl.all()))
        best = pl.lit("best weight").alias("metric")
        parts.append(by_focus.select(*named, best, pl.all()))
    whole = pl.concat([pl.DataFrame(schema=WEIGHTS), *parts], how="diagonal_relaxed")
    whole = whole.with_columns(pl.when(cs.float().is_finite()).then(cs.float())).cast(pl.Schema(WEIGHTS))
    text = f"The queries required by best weights (means over {average}) could not be computed for "
    return whole, [f"{text}{', '.join(failed)}."] if failed else []
