"""How many queries two ranked systems require, by metrics and by the best rank weights."""

from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int, Real

from owkg.rank_weights.fitted import bin_changes, bin_ends, fitted_weights, queries_for_consistency
from owkg.rank_weights.focus import focus_of
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import rank_weights


class BestWeights(NamedTuple):
    """How many queries it takes to show that one system is ahead of another, by metrics and best weights.

    Attributes:
        metrics: metric, focus, required_queries.
        frontier: of each least focus that was asked for (least_focus): focus of the weight, required_queries
            on the queries that it was fitted on, held_out on others. Infinite where the weight puts the
            second system ahead; a weight that is 0, of focus nan, where no weight puts the first ahead.
        ends: the last rank of each bin; the last of all is the largest number of candidates.
        weights: h on each bin, h(1) = 1, a row for each least focus, fitted on all queries;
            `owkg.rank_weights.binned_weight` makes a metric of a row.
    """

    metrics: pl.DataFrame
    frontier: pl.DataFrame
    ends: Int[np.ndarray, "bins"]
    weights: Float[np.ndarray, "focuses bins"]


def best_weights_of(
    query: Int[np.ndarray, "answers"],
    ranks: Real[np.ndarray, "2 answers"],
    last: int,
    least: Float[np.ndarray, "focuses"],
    metrics: tuple[RankWeight, ...],
    *,
    inconsistency: float,
    macro: bool,
    seed: int,
    gains: Float[np.ndarray, "metrics queries"] | None = None,
) -> BestWeights:
    """Required queries of metrics and of the best weight of each least focus.

    Args:
        query: of each answer: 0, 1, ..., four at least.
        ranks: of each answer by both systems, half ranks among them; the first is taken to be better.
        last: the largest number of candidates, two at least.
        least: focuses.
        metrics: means of rank weights that do not get better as the rank rises.
        inconsistency: tolerated P(the weaker system looks better).
        macro: whether queries weigh alike and not their answers.
        seed: of the halves.
        gains: by each metric, the sum over the answers to each query of the first system minus that of the
            second; None: by `ranks`.
    """
    answers = np.bincount(query)
    share = 1 / answers if macro else np.full(len(answers), len(answers) / answers.sum())
    if gains is None:
        at = (2 * ranks).astype(np.int64) - 2
        values = (rank_weights(metric, np.arange(2, 2 * last + 1) / 2)[at] for metric in metrics)
        gains = np.stack([np.bincount(query, value[0] - value[1]) for value in values])
    signs = [1.0 if metric.larger_is_better else -1.0 for metric in metrics]
    scores = [sign * gain * share for sign, gain in zip(signs, gains, strict=True)]
    of_metrics = {
        "metric": [metric.name for metric in metrics],
        "focus": [focus_of(metric, last) for metric in metrics],
        "required_queries": [queries_for_consistency(s.mean(), s.var(ddof=1), inconsistency) for s in scores],
    }
    ends = bin_ends(last)
    change = bin_changes(query, ranks, ends) * share[:, None]
    found = fitted_weights(change, ends, least, inconsistency, seed)._asdict()
    weights = found.pop("weights")
    return BestWeights(pl.DataFrame(of_metrics), pl.DataFrame({"least_focus": least} | found), ends, weights)
