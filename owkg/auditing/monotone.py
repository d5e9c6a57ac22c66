"""Monotone cubics through the points of many curves at once.

scipy interpolates one curve at a time, and making its objects took most of the time of an audit.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

# Numbers compared at once to find the pieces of values.
_AT_ONCE = 2**24


class Curves(NamedTuple):
    """Curves of different numbers of points with increasing x, one a row; entries after the last are unused.

    Attributes:
        x, y: points, [curves, points].
        number: number of points of each curve, at least 1, [curves].
    """

    x: Float64[np.ndarray, "curves points"]
    y: Float64[np.ndarray, "curves points"]
    number: Int[np.ndarray, "curves"]


def curves(
    x: Float[np.ndarray, "curves points"],
    y: Float[np.ndarray, "curves points"],
    used: Bool[np.ndarray, "curves points"],
) -> Curves:
    """`Curves` through the points that are used, of which each curve has at least one."""
    first = np.argsort(~used, axis=1, kind="stable")
    count = used.sum(axis=1)
    return Curves(np.take_along_axis(x, first, 1), np.take_along_axis(y, first, 1), count)


def interpolated(
    of: Curves, values: Float[np.ndarray, "values curves"]
) -> Float64[np.ndarray, "values curves"]:
    """y of each curve at values between its first and last x, by the monotone cubic.

    It is `scipy.interpolate.PchipInterpolator` of each curve; a curve of one point is constant.

    References:
        Fritsch and Butland (SIAM J. Sci. Stat. Comput. 5, 1984), equation (4) and the ends of scipy.
    """
    x, y, count = of
    if x.shape[1] < 2:
        return np.broadcast_to(y[:, 0], values.shape).copy()
    piece = np.arange(x.shape[1] - 1) < count[:, None] - 1
    width = np.where(piece, np.diff(x, axis=1), 1.0)
    rise = np.where(piece, np.diff(y, axis=1), 0.0) / width
    slope = _slopes(width, rise, count)
    at = _pieces(x, count, values)
    rows = np.arange(len(x))
    step, secant, begin = width[rows, at], rise[rows, at], slope[rows, at]
    bend = (begin + slope[rows, at + 1] - 2 * secant) / step
    away = values - x[rows, at]
    cubic = y[rows, at] + away * (begin + away * ((secant - begin) / step - bend + away * (bend / step)))
    return np.where(count == 1, y[:, 0], cubic)


def _slopes(width: np.ndarray, rise: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Slope of the cubic at each point, [curves, points]."""
    slope = np.zeros((len(width), width.shape[1] + 1))
    before, after = rise[:, :-1], rise[:, 1:]
    first, second = 2 * width[:, 1:] + width[:, :-1], width[:, 1:] + 2 * width[:, :-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (first / before + second / after) / (first + second)
        slope[:, 1:-1] = np.where(before * after > 0, 1 / mean, 0.0)
    rows, first, last = np.arange(len(width)), np.zeros_like(count), np.maximum(count - 2, 0)
    for point, piece, inner in (
        (first, first, np.minimum(1, last)),
        (last + 1, last, np.maximum(last - 1, 0)),
    ):
        three = (width[rows, piece], width[rows, inner], rise[rows, piece], rise[rows, inner])
        slope[rows, point] = _end(*three)
    few = count == 2
    slope[few, 0] = slope[few, 1] = rise[few, 0]
    return slope


def _end(width: np.ndarray, next_width: np.ndarray, rise: np.ndarray, next_rise: np.ndarray) -> np.ndarray:
    """Slope at an end, from three points, that keeps the shape."""
    slope = ((2 * width + next_width) * rise - width * next_rise) / (width + next_width)
    too_steep = (np.sign(rise) != np.sign(next_rise)) & (np.abs(slope) > 3 * np.abs(rise))
    return np.where(np.sign(slope) != np.sign(rise), 0.0, np.where(too_steep, 3 * rise, slope))


def _pieces(x: np.ndarray, count: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Number of the piece of each value, [values, curves]."""
    last = np.maximum(count - 2, 0)
    inner = np.where(np.arange(x.shape[1]) < count[:, None], x, np.inf)
    at = np.empty(values.shape, np.intp)
    if len(values) > len(x):
        for curve, points in enumerate(inner):
            at[:, curve] = np.searchsorted(points, values[:, curve], side="right") - 1
        return np.clip(at, 0, last)
    some = max(1, _AT_ONCE // max(1, values.shape[0] * x.shape[1]))
    for begin in range(0, len(x), some):
        own = slice(begin, begin + some)
        at[:, own] = (values[:, own, None] >= inner[own]).sum(-1) - 1
    return np.clip(at, 0, last)
