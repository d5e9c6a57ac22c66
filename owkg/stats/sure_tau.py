"""Confidence interval of Kendall's tau at infinitely many queries."""

import numpy as np
from jaxtyping import Bool, Float64


def sure_tau(
    first: Float64[np.ndarray, "systems"],
    second: Float64[np.ndarray, "systems"],
    firsts: Float64[np.ndarray, "replicates systems"],
    seconds: Float64[np.ndarray, "replicates systems"],
    level: float,
) -> tuple[float, float]:
    """Interval (low, high) of tau, given the pairs of systems whose order is certain under both qrels.

    The differences of all pairs under either qrels are tested together, by max |t| with bootstrapped
    deviations, step by step. With probability `level` (in large samples), every order that the test calls
    certain is right. A pair that is certain under both qrels adds its agreement to tau; any other pair may
    add -1 or 1.

    Noise pulls the tau of a sample, and with it every percentile of its resamples, towards 0. This interval
    is not biased in that way. It is wide if the systems hardly differ, because their order is then open.

    Args:
        first, second: metrics of the systems under each qrels, larger is better, at least two systems.
        firsts, seconds: the same metrics on bootstrap resamples, [replicates, systems]; equal rows use the
            same queries.
        level: confidence level, in (0, 1).

    References:
        Romano, Wolf (Econometrica 73, 2005), "Stepwise multiple testing as formalized data snooping".
    """
    above, below = np.triu_indices(len(first), 1)
    gap = np.concatenate([value[above] - value[below] for value in (first, second)])
    moved = np.concatenate([value[:, above] - value[:, below] for value in (firsts, seconds)], axis=1) - gap
    deviation = moved.std(0, ddof=1)
    sure = _sure(gap, moved, deviation, level)
    sign = np.where(sure, np.sign(gap), 0).astype(np.int8)
    one, two = np.split(sign, 2)
    pairs, agreeing = len(above), int((one * two).sum())
    open_ = int((one * two == 0).sum())
    return (agreeing - open_) / pairs, (agreeing + open_) / pairs


def _sure(
    gap: Float64[np.ndarray, "pairs"],
    moved: Float64[np.ndarray, "replicates pairs"],
    deviation: Float64[np.ndarray, "pairs"],
    level: float,
) -> Bool[np.ndarray, "pairs"]:
    """Differences that are not 0. Each step removes them from the family, until it finds no more."""
    varies = deviation > 0
    scale = np.where(varies, deviation, 1.0)
    t, resampled = np.abs(gap) / scale, np.abs(moved) / scale
    # A difference that never varies is certain unless it is 0.
    sure = ~varies & (gap != 0)
    left = varies.copy()
    while left.any():
        limit = np.quantile(resampled[:, left].max(1), level, method="higher")
        found = left & (t > limit)
        if not found.any():
            break
        sure |= found
        left &= ~found
    return sure
