"""Flattening: slope of the sparse metric against the full one at both ends of a curve."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64

from simulations.open_world.curves import Curves
from simulations.yang2022.resampling import Resampled, with_all
from simulations.yang2022.selection import checked_curves, selected

FEWEST = 3
"""Fewest checkpoints to which a line is fitted."""

# Sum of squares around the mean, relative to the sum of squares, below which it is rounding.
_ROUNDING = 1e-24


class Flattening(NamedTuple):
    """Curvature of each configuration's curve; NaN where it cannot be measured.

    Attributes:
        slope_low, slope_high: slopes of the least-squares lines of the sparse metric against the full one,
            through the checkpoints in the lowest and in the highest third of the curve's range of full
            values.
        slope_ratio: high / low; below 1, the curve flattens.
        r2_linear, r2_log: share of the variance of the sparse metric that a + b full and a + b log(full)
            explain, over the checkpoints above the lowest third: towards full value 0 the logarithm of
            Theorem 4.1 of Yang et al. (2022) falls below all bounds, so that it holds for no model.
        r2_gain: r2_log - r2_linear.
        slope_remarks, fit_remarks: why the slopes and the fits of a curve cannot be measured; "" if they can.
    """

    slope_low: Resampled
    slope_high: Resampled
    slope_ratio: Resampled
    r2_linear: Resampled
    r2_log: Resampled
    r2_gain: Resampled
    slope_remarks: tuple[str, ...]
    fit_remarks: tuple[str, ...]


class Line(NamedTuple):
    """Least-squares lines of a batch; NaN where x, or for `r2` also y, does not vary."""

    slope: Float64[np.ndarray, "batch"]
    r2: Float64[np.ndarray, "batch"]


def line(x: Float64[np.ndarray, "batch points"], y: Float64[np.ndarray, "batch points"]) -> Line:
    """The least-squares line y = a + b x of each row.

    Examples:
        >>> line(np.array([[0.0, 1.0, 2.0]]), np.array([[1.0, 3.0, 5.0]]))
        Line(slope=array([2.]), r2=array([1.]))
    """
    dx, dy = (v - v.mean(axis=1, keepdims=True) for v in (x, y))
    xx, yy, xy = (np.einsum("bp,bp->b", one, two) for one, two in ((dx, dx), (dy, dy), (dx, dy)))
    xx, yy = (
        np.where(squares > _ROUNDING * np.einsum("bp,bp->b", v, v), squares, np.nan)
        for squares, v in ((xx, x), (yy, y))
    )
    return Line(xy / xx, xy**2 / (xx * yy))


def thirds(
    full: Float64[np.ndarray, "points"],
) -> tuple[Bool[np.ndarray, "points"], Bool[np.ndarray, "points"]]:
    """Masks of the points in the lowest and in the highest third of the range of `full`.

    Examples:
        >>> low, high = thirds(np.array([0.0, 1.0, 2.0, 3.0]))
        >>> low.tolist(), high.tolist()
        ([True, True, False, False], [False, False, True, True])
    """
    low, high = full.min(), full.max()
    third = (high - low) / 3
    return full <= low + third, full >= high - third


def flattening(
    curves: Curves, metric: str, test_set: str, counts: Float32[np.ndarray, "replicates queries"]
) -> Flattening:
    """Flattening of every configuration's curve, on the original queries and on every resample.

    The original queries alone decide which checkpoints belong to a third.

    Args:
        curves: curves of one density.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` except the full one.
        counts: counts from `query_counts`.

    Raises:
        ValueError: if the metric or the test set is unknown, or arrays of the curves do not fit together.
    """
    chosen = selected(checked_curves(curves), metric, test_set)
    weights = with_all(counts)
    full, sparse = (weights @ values.T.astype(np.float64) for values in chosen)
    found: list[np.ndarray] = []
    slope_remarks, fit_remarks = [], []
    for config in range(len(curves.labels)):
        own = curves.config == config
        slopes, slope_remark = _slopes(full[:, own], sparse[:, own])
        fits, fit_remark = _fits(full[:, own], sparse[:, own])
        found.append(np.concatenate([slopes, fits]))
        slope_remarks.append(slope_remark)
        fit_remarks.append(fit_remark)
    low, high, ratio, linear, log, gain = (Resampled(rows[0], rows[1:]) for rows in np.stack(found, axis=-1))
    return Flattening(low, high, ratio, linear, log, gain, tuple(slope_remarks), tuple(fit_remarks))


def _slopes(full: np.ndarray, sparse: np.ndarray) -> tuple[np.ndarray, str]:
    """Slope low, slope high and their ratio, [3, 1 + replicates]; or NaN and the reason."""
    nothing = np.full((3, len(full)), np.nan)
    if not full.shape[1]:
        return nothing, "no checkpoints"
    low, high = thirds(full[0])
    few = [
        f"{part.sum()} checkpoints in the {name} third"
        for name, part in (("lowest", low), ("highest", high))
        if part.sum() < FEWEST
    ]
    if full[0].min() == full[0].max():
        return nothing, "all checkpoints have one full value"
    if few:
        return nothing, f"{' and '.join(few)}, {FEWEST} are needed"
    slopes = [line(full[:, part], sparse[:, part]).slope for part in (low, high)]
    if not all(np.isfinite(slope[0]) for slope in slopes):
        return nothing, "all checkpoints of a third have one full value"
    if slopes[0][0] == 0:
        return nothing, "the slope in the lowest third is 0"
    return np.stack([*slopes, slopes[1] / np.where(slopes[0] != 0, slopes[0], np.nan)]), ""


def _fits(full: np.ndarray, sparse: np.ndarray) -> tuple[np.ndarray, str]:
    """R^2 of the linear and of the logarithmic fit and their difference, [3, 1 + replicates]; or NaN."""
    nothing = np.full((3, len(full)), np.nan)
    if not full.shape[1]:
        return nothing, "no checkpoints"
    above = ~thirds(full[0])[0]
    if above.sum() < FEWEST:
        return nothing, f"{above.sum()} checkpoints above the lowest third, {FEWEST} are needed"
    full, sparse = full[:, above], sparse[:, above]
    linear = line(full, sparse).r2
    log = line(np.log(np.where(full > 0, full, np.nan)), sparse).r2
    if not (np.isfinite(linear[0]) and np.isfinite(log[0])):
        return nothing, "all checkpoints have one value"
    return np.stack([linear, log, log - linear]), ""


def over_curves(resampled: Resampled, statistic: Any = np.mean) -> Resampled:
    """A statistic over the measurable curves; NaN if there are none.

    Args:
        resampled: one number for each curve.
        statistic: function of numbers along `axis`.
    """
    measurable = np.isfinite(resampled.value)
    if not measurable.any():
        return Resampled(np.asarray(np.nan), np.full(len(resampled.replicates), np.nan))
    return Resampled(
        np.asarray(statistic(resampled.value[measurable], axis=-1), np.float64),
        np.asarray(statistic(resampled.replicates[:, measurable], axis=-1), np.float64),
    )
