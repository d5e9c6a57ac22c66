"""Discriminative power: how many pairs of systems a metric tells apart."""

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError


def discriminative_power(p: ArrayLike, alpha: float = 0.05) -> Float64[np.ndarray, "*metrics"]:
    """The share of the pairs whose difference is significant: p < alpha.

    Args:
        p: p-values of the pairs, [..., pairs]; corrected ones (`owkg.stats.corrections`) bound the errors
            among all pairs.
        alpha: significance level, in (0, 1).

    Raises:
        ValueError: if an argument leaves its interval.

    Examples:
        >>> discriminative_power([0.01, 0.2, 0.04, 0.05]).item()
        0.5

    References:
        Sakai (SIGIR 2006), "Evaluating evaluation metrics based on the bootstrap", section 3.
    """
    level = checks.real_number("alpha", alpha, 0, 1, closed=False)
    return np.asarray((_p_values(p) < level).mean(-1))


def asl_curve(p: ArrayLike) -> Float64[np.ndarray, "*metrics pairs"]:
    """The curve of achieved significance levels: the p-values of the pairs, from the largest to the smallest.

    Drawn over the pairs, it is the sooner near 0, the better the metric tells systems apart.

    Args:
        p: p-values of the pairs, [..., pairs].

    Raises:
        ValueError: if a p-value is outside [0, 1].

    Examples:
        >>> asl_curve([0.01, 0.2, 0.04]).tolist()
        [0.2, 0.04, 0.01]

    References:
        Sakai (SIGIR 2006), section 3 and Figure 2.
    """
    return -np.sort(-_p_values(p), axis=-1)


def asl_area(p: ArrayLike, *, trapezoid: bool = False) -> Float64[np.ndarray, "*metrics"]:
    """The area under the curve of achieved significance levels, less is better.

    The pairs fill [0, 1], a step of 1 / pairs each: the area is the mean of the p-values. With `trapezoid`,
    the pairs are points at 0, 1 / (pairs - 1), ..., 1 joined by lines instead.

    Args:
        p: p-values of the pairs, [..., pairs].
        trapezoid: whether the points are joined by lines; at least two pairs.

    Raises:
        ValueError: if a p-value is outside [0, 1], or there are no two points to join.

    Examples:
        >>> round(asl_area([0.1, 0.2, 0.6]).item(), 12), asl_area([0.1, 0.2, 0.6], trapezoid=True).item()
        (0.3, 0.275)
    """
    curve = asl_curve(p)
    if not checks.flag("trapezoid", trapezoid):
        return np.asarray(curve.mean(-1))
    if curve.shape[-1] < 2:
        raise ArgumentError("p", "must be of at least two pairs to be joined by lines, got 1.")
    middle = (curve[..., 1:] + curve[..., :-1]) / 2
    return np.asarray(middle.mean(-1))


def _p_values(p: ArrayLike) -> np.ndarray:
    values = checks.real("p", p, 0, 1)
    if not values.ndim:
        raise ArgumentError("p", f"must have an axis of pairs, got {values.item()}.")
    return values
