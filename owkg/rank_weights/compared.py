"""Queries required to rank two systems, by metrics and by the best rank weights."""

from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int, Real

from owkg.rank_weights.fitted import bin_changes, bin_ends, fitted_weights, queries_for_consistency
from owkg.rank_weights.focus import focus_of
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import rank_weights


class BestWeights(NamedTuple):
    """Queries required to show that one system is ahead of another, by metrics and by the best rank weights.

    Attributes:
        metrics: frame with the columns metric, focus, required_queries.
        frontier: frame with a row for each least focus that was asked for: least_focus, focus of the weight,
            required_queries on the queries that the weight was fitted on, held_out on the remaining queries.
            Infinite if the weight puts the second system ahead. If no weight puts the first system ahead, the
            weight is 0 and its focus is nan.
        ends: last rank of each bin; the last entry is the largest number of candidates.
        weights: h on each bin, with h(1) = 1, one row for each least focus, fitted on all queries;
            `owkg.rank_weights.binned_weight` makes a metric from a row.
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
    """Required queries for metrics, and for the best weight of each least focus.

    Args:
        query: query of each answer, 0, 1, ..., at least four queries.
        ranks: rank of each answer by both systems, shape [2, answers], half ranks included; the first system
            is taken to be better.
        last: largest number of candidates, at least two.
        least: least focuses.
        metrics: means of rank weights that do not improve as the rank rises.
        inconsistency: tolerated probability that the weaker system looks better.
        macro: True: each query has the same weight; False: each answer has.
        seed: seed of the split of the queries into halves.
        gains: for each metric, the sum over the answers to each query of the first system minus the second;
            None: computed from `ranks`.
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
