"""Agreement of two rankings of the same systems: Kendall's tau, AP correlation, Spearman's rho.

Values are [..., systems], larger is better; leading axes broadcast. Systems tie if their values are equal to
the last bit; use `round_ties` if the last digits are noise. A ranking in which all systems tie has no order,
and every coefficient with it is NaN.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError

# Comparisons of systems at a time, about 30 bytes each.
_CHUNK = 2**20


def kendall_tau(first: ArrayLike, second: ArrayLike) -> Float64[np.ndarray, "*rankings"]:
    """Kendall's tau-b of two rankings, in [-1, 1].

    tau_b = (C - D) / sqrt(P_1 P_2). C and D count the pairs of systems in the same and in opposite order. P_1
    and P_2 count the pairs that the first and the second ranking do not tie. Without ties, tau_b is
    1 - 2 D / (n (n - 1) / 2).

    Args:
        first, second: metric of each system, [..., systems].

    Raises:
        ValueError: if a value is not finite, or the two do not have the same number of systems, at least two.

    Examples:
        >>> kendall_tau([0.4, 0.3, 0.2], [0.5, 0.6, 0.1]).item()
        0.3333333333333333

    References:
        Kendall (Biometrika 33, 1945), "The treatment of ties in ranking problems".
    """
    return _by_chunks(first, second, _tau_b, ("first", "second"))


def tau_ap(truth: ArrayLike, estimate: ArrayLike) -> Float64[np.ndarray, "*rankings"]:
    """AP correlation of an estimated ranking with the true one, in [-1, 1]; errors at the top weigh more.

    tau_ap = 2 / (n - 1) sum over i = 2..n of C(i) / (i - 1), minus 1. C(i) counts the systems that both the
    estimate and the truth rank above the system at rank i of the estimate. The coefficient is not symmetric,
    because the ranks come from the estimate. With ties, it is the expectation over random tie breaking in
    either ranking, with all orders of tied systems equally likely; therefore a ranking with ties has less
    than 1 with itself.

    Args:
        truth, estimate: metric of each system, [..., systems].

    Raises:
        ValueError: if a value is not finite, or the two do not have the same number of systems, at least two.

    Examples:
        >>> truth = [0.4, 0.3, 0.2]
        >>> tau_ap(truth, [0.5, 0.6, 0.1]).item(), tau_ap(truth, [0.5, 0.1, 0.2]).item()
        (0.0, 0.5)

    References:
        Yilmaz, Aslam, Robertson (SIGIR 2008), "A new rank correlation coefficient for information retrieval";
        for ties, Urbano, Marrero (ICTIR 2017), "The treatment of ties in AP correlation".
    """
    return _by_chunks(truth, estimate, _tau_ap, ("truth", "estimate"))


def symmetric_tau_ap(first: ArrayLike, second: ArrayLike) -> Float64[np.ndarray, "*rankings"]:
    """Mean of the two AP correlations, with each ranking as the truth once.

    Args:
        first, second: metric of each system, [..., systems].

    Raises:
        ValueError: if a value is not finite, or the two do not have the same number of systems, at least two.

    Examples:
        >>> round(symmetric_tau_ap([3, 2, 1, 0], [3, 1, 0, 2]).item(), 12)
        0.5
    """
    return np.asarray((tau_ap(first, second) + tau_ap(second, first)) / 2)


def spearman(first: ArrayLike, second: ArrayLike) -> Float64[np.ndarray, "*rankings"]:
    """Spearman's rho, Pearson's correlation of the ranks; tied systems share the mean of their ranks.

    Args:
        first, second: metric of each system, [..., systems].

    Raises:
        ValueError: if a value is not finite, or the two do not have the same number of systems, at least two.

    Examples:
        >>> spearman([0.4, 0.3, 0.2], [0.5, 0.6, 0.1]).item()
        0.5

    References:
        Spearman (American Journal of Psychology 15, 1904), "The proof and measurement of association".
    """
    return _by_chunks(first, second, _rho, ("first", "second"))


COEFFICIENTS: dict[str, Callable[[Any, Any], Float64[np.ndarray, "*rankings"]]] = {
    "tau": kendall_tau,
    "tau-ap": tau_ap,
    "spearman": spearman,
}
"""Rank correlations by name; each takes the truth first."""


def round_ties(values: Float64[np.ndarray, "*rankings systems"]) -> Float64[np.ndarray, "*rankings systems"]:
    """Finite values rounded to 2^-40 of the largest value of their ranking.

    Sums of the same numbers in different orders differ in their last digits. After rounding, they tie.

    Args:
        values: values of the systems, [..., systems].

    Examples:
        >>> values = np.array([0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1])
        >>> np.unique(values).size, np.unique(round_ties(values)).size
        (2, 1)
    """
    step = np.frexp(np.abs(values).max(-1, keepdims=True))[1] - 40
    return np.ldexp(np.round(np.ldexp(values, -step)), step)


def _by_chunks(
    first: ArrayLike,
    second: ArrayLike,
    coefficient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    names: tuple[str, str],
) -> np.ndarray:
    """`coefficient` of rankings, [rankings, systems], computed for a bounded number of them at a time."""
    one, two = (checks.real(n, v, -np.inf, np.inf) for n, v in zip(names, (first, second), strict=True))
    for name, values in zip(names, (one, two), strict=True):
        if not values.ndim or values.shape[-1] < 2:
            found = values.shape[-1] if values.ndim else 1
            raise ArgumentError(name, f"must have at least two systems: {found} alone cannot be ranked.")
    systems = one.shape[-1]
    if two.shape[-1] != systems:
        shapes = f"{systems} and {two.shape[-1]}"
        raise ValueError(f"`{names[0]}` and `{names[1]}` must be of the same systems, got {shapes} of them.")
    leading = checks.common_shape(**{names[0]: one[..., 0], names[1]: two[..., 0]})
    # A single ranking compared with many is not repeated.
    one, two = (
        values.reshape(1, systems)
        if values.size == systems
        else np.broadcast_to(values, (*leading, systems)).reshape(-1, systems)
        for values in (one, two)
    )
    count, size = int(np.prod(leading)), max(1, _CHUNK // systems**2)
    found = np.empty(count)
    for start in range(0, count, size):
        part = slice(start, start + size)
        found[part] = coefficient(*(v if len(v) == 1 else v[part] for v in (one, two)))
    return found.reshape(leading)


def _over(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Ratio, NaN over 0, with rounding errors beyond 1 cut off."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    ratio = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=ratio, where=denominator > 0)
    return np.clip(ratio, -1, 1)


def _tau_b(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    above, below = np.triu_indices(first.shape[-1], 1)
    # Compared, not subtracted, because a difference may overflow.
    one, two = (
        (v[:, above] > v[:, below]).astype(np.int8) - (v[:, above] < v[:, below]) for v in (first, second)
    )
    agreeing = (one * two).sum(-1, dtype=np.int64)
    untied = [np.count_nonzero(signs, axis=-1).astype(np.float64) for signs in (one, two)]
    return _over(agreeing, np.sqrt(untied[0] * untied[1]))


def _tau_ap(truth: np.ndarray, estimate: np.ndarray) -> np.ndarray:
    """Expectation of tau_ap, computed for each group of systems tied in the estimate.

    Take a group of t tied systems with a systems above it. Each of its systems is equally often at place
    k = 0..t-1, with a + k systems above it. Among the a systems, those also above it in the truth count (a
    tie counts half). Among the k systems, half count on average over the group: in any pair of the group,
    either system may come first, and the truth agrees with one of the two orders.
    """
    systems = estimate.shape[-1]
    higher = estimate[:, None, :] > estimate[:, :, None]
    truly = (truth[:, None, :] > truth[:, :, None]) + 0.5 * (truth[:, None, :] == truth[:, :, None])
    above = higher.sum(-1)
    level = (estimate[:, None, :] == estimate[:, :, None]).sum(-1)
    right = (higher * truly).sum(-1)
    harmonic = np.concatenate([[0.0, 0.0], np.cumsum(1 / np.arange(1.0, systems))])  # for -1, 0, 1, ...
    per_place = (harmonic[above + level] - harmonic[above]) / level
    inside = 0.5 * (1 - (above == 0) / level - above * per_place)
    tau = 2 / (systems - 1) * (right * per_place + inside).sum(-1) - 1
    ordered = [(v != v[:, :1]).any(-1) for v in (truth, estimate)]
    return np.where(ordered[0] & ordered[1], np.clip(tau, -1, 1), np.nan)


def _rho(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    from scipy import stats  # a quarter of a second

    mean = (first.shape[-1] + 1) / 2
    one, two = (stats.rankdata(values, axis=-1) - mean for values in (first, second))
    return _over((one * two).sum(-1), np.sqrt((one**2).sum(-1) * (two**2).sum(-1)))
