"""Which metric tells two ranked systems apart with the fewest queries, at each focus on the top."""

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
# Down to no limit, in depths: 1, 2, 5, ... ranks.
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
    """Queries required to show that `first` is ahead of `second`, by metrics and by the best falling weights.

    So many queries, drawn like those of the tables, show the wrong order with probability `inconsistency`, if
    what these show were the truth. Ranks are counted in bins, seven a decade; the best weight is constant on
    them, does not rise, and has at least a focus (`owkg.rank_weights.focus_of`). At focus 0 it is the floor
    of all that do not rise.

    A weight flatters itself on the queries that it is fitted on, above all where the systems are close:
    `required_queries` of the frontier is too small. For `held_out` the queries are split into two halves by
    chance, and each half is scored by the weight fitted on the other. That is as honest as the number of a
    metric chosen beforehand, for a weight fitted on half as many queries; choose the focus beforehand, too.
    Where the number of a metric, or `held_out`, exceeds the queries there are, these do not tell the systems
    apart.

    Args:
        first, second: rank tables of the same triples and sides, filtered alike; `first` is taken to be
            better. A tied rank counts as the mean of its bounds.
        focus: least focuses, numbers in [0, 1]; 1/K looks no deeper than Hits@K.
        metrics: means of rank weights that do not get better as the rank rises, or their names.
        inconsistency: tolerated P(the weaker system looks better), in (0, 0.5).
        macro: whether queries weigh alike and not their answers.
        seed: of the halves.

    Raises:
        ValueError: if the tables rank other triples, there are fewer than four queries, or an argument leaves
            its interval.

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
        raise ArgumentError("first", "must rank among two candidates at least.")
    return best_weights_of(query, ranks, last, least, chosen, inconsistency=tolerated, macro=macro, seed=seed)


def weights_of_pairs(
    ready: Prepared, systems: tuple[str, ...], average: str, *, seed: Seed
) -> tuple[pl.DataFrame, list[str]]:
    """The queries that each pair requires, by usual metrics and by the best weight of each focus.

    The numbers of metrics are by the tie rule of the audit, as those of its pairs are.

    Args:
        ready: ranks of the systems.
        systems: in their order: of each pair, the first of them is taken to be ahead.
        average: answers or queries.
        seed: of the halves.

    Returns:
        (columns of `owkg.auditing.result.WEIGHTS`, no rows where there are fewer than four queries, and none
        of systems with several seeds; a note of the pairs whose rows are null because their numbers could not
        be computed).
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
    text = f"The queries that best weights require (means over {average}) could not be computed for "
    return whole, [f"{text}{', '.join(failed)}."] if failed else []
