"""Discriminative power of a metric: how many pairs of systems it tells apart."""

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError


def discriminative_power(p: ArrayLike, alpha: float = 0.05) -> Float64[np.ndarray, "*metrics"]:
    """Share of the pairs whose difference is significant: p < alpha.

    Args:
        p: p-values of the pairs, [..., pairs]. Corrected p-values (`owkg.stats.corrections`) limit the errors
            over all pairs.
        alpha: significance level, in (0, 1). Default 0.05.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> discriminative_power([0.01, 0.2, 0.04, 0.05]).item()
        0.5

    References:
        Sakai (SIGIR 2006), "Evaluating evaluation metrics based on the bootstrap", section 3.
    """
    level = checks.real_number("alpha", alpha, 0, 1, closed=False)
    return np.asarray((_p_values(p) < level).mean(-1))


def asl_curve(p: ArrayLike) -> Float64[np.ndarray, "*metrics pairs"]:
    """Curve of achieved significance levels: the p-values of the pairs, from the largest to the smallest.

    Plotted over the pairs, the curve falls to 0 sooner if the metric tells systems apart better.

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
    """Area under the curve of achieved significance levels; smaller is better.

    The pairs fill [0, 1] in steps of 1 / pairs, so the area is the mean of the p-values. With `trapezoid`,
    the pairs are points at 0, 1 / (pairs - 1), ..., 1, joined by lines.

    Args:
        p: p-values of the pairs, [..., pairs].
        trapezoid: whether to join the points by lines, which needs at least two pairs. Default False.

    Raises:
        ValueError: if a p-value is outside [0, 1], or there are not two points to join.

    Examples:
        >>> round(asl_area([0.1, 0.2, 0.6]).item(), 12), asl_area([0.1, 0.2, 0.6], trapezoid=True).item()
        (0.3, 0.275)
    """
    curve = asl_curve(p)
    if not checks.flag("trapezoid", trapezoid):
        return np.asarray(curve.mean(-1))
    if curve.shape[-1] < 2:
        raise ArgumentError("p", "must have at least two pairs for a trapezoid, got 1.")
    middle = (curve[..., 1:] + curve[..., :-1]) / 2
    return np.asarray(middle.mean(-1))


def _p_values(p: ArrayLike) -> np.ndarray:
    values = checks.real("p", p, 0, 1)
    if not values.ndim:
        raise ArgumentError("p", f"must have an axis of pairs, got {values.item()}.")
    return values
