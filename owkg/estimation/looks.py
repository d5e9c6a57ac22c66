"""Several looks at a growing sample: a confidence level for each, so that all intervals hold together.

The error is spent by a function of the O'Brien-Fleming type (Lan and DeMets 1983): little at early looks and
nearly all at the last planned look. The boundaries follow from the recursion of Armitage, McPherson and Rowe
(1969).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError

_LEAST_TAIL = 1e-6
"""Smallest error of a single look; 1 minus it is still distinguishable from 1 in quantiles."""
_NODES = 64  # fewest nodes of the grid over [0, boundary]
_NODES_A_STEP = 6  # nodes for each standard deviation of the next step
_MOST_NODES = 2048


class Look(NamedTuple):
    """One of several planned looks.

    Attributes:
        fraction: information at this look, as a share of the information at the last planned look.
        critical: critical value of the absolute standardised error; the probability of exceeding it at this
            or an earlier look is `spent`.
        level: confidence level to use for the interval at this look.
        spent: probability that this interval or an earlier one is wrong.
    """

    fraction: float
    critical: float
    level: float
    spent: float


def information(
    sizes: Int[np.ndarray, "looks"] | list[int], population: int | None = None
) -> Float[np.ndarray, "looks"]:
    """Information fractions of nested samples of growing sizes.

    Information is the inverse of the variance of a mean. It is proportional to n; if n units were drawn
    without replacement from a population of N and the mean of that population is wanted, it is proportional
    to 1 / (1/n - 1/N). Errors of nested samples then have independent increments.

    Args:
        sizes: number of units drawn at each look, growing.
        population: N. Default None: the mean of units like these is wanted.

    Raises:
        ValueError: if the sizes do not grow, or reach the population, whose information would be infinite.

    Examples:
        >>> information([50, 100, 150, 200]).tolist()
        [0.25, 0.5, 0.75, 1.0]
        >>> information([50, 100], 200).round(4).tolist()
        [0.3333, 1.0]
    """
    n = checks.integer("sizes", sizes, 1)
    if n.ndim != 1 or (np.diff(n) <= 0).any():
        raise ArgumentError("sizes", f"must be a list of growing numbers, got {n.tolist()}.")
    if population is None:
        return n / n[-1]
    total = checks.whole("population", population, 1)
    if n[-1] >= total:
        raise ArgumentError("sizes", f"must be below the {total} units of the population, got {n[-1]}.")
    found = 1 / (1 / n - 1 / total)
    return found / found[-1]


def spent(
    fractions: Float[np.ndarray, "looks"] | list[float], level: float = 0.95
) -> Float[np.ndarray, "looks"]:
    """Cumulative error spent up to each look.

    Each side spends 2 - 2 Phi(z / sqrt(t)), where z is the quantile of 1 - error / 4; at t = 1 this is half
    of the error.

    Args:
        fractions: information fractions, in (0, 1].
        level: confidence level of all looks together. Default 0.95.

    Raises:
        ValueError: if a fraction is outside (0, 1], or the level outside (0, 1).
    """
    t = checks.real("fractions", fractions, 0, 1, closed="high")
    z = -special.ndtri((1 - checks.level("level", level)) / 4)
    return 4 * special.ndtr(-z / np.sqrt(t))


def critical_values(
    fractions: Float[np.ndarray, "looks"] | list[float], level: float = 0.95
) -> Float[np.ndarray, "looks"]:
    """Critical values c_j: P(|Z_1| > c_1 or ... or |Z_j| > c_j) is the error spent up to look j.

    Z_j = B(t_j) / sqrt(t_j) for a Brownian motion B. The density of B within the boundaries so far is carried
    from look to look on a grid. A critical value depends on this look and earlier looks only, so you may
    still change later looks. No critical value exceeds 4.89, where a single look has an error of 1e-6; the
    error saved there goes to later looks.

    Args:
        fractions: information fractions, growing, in (0, 1].
        level: confidence level of all looks together. Default 0.95.

    Raises:
        ValueError: if the fractions do not grow within (0, 1], or the level is outside (0, 1).

    Source: Armitage, McPherson and Rowe (1969); Lan and DeMets (1983); Jennison and Turnbull (2000), "Group
    sequential methods", chapters 7 and 19.

    Examples:
        >>> critical_values([0.25, 0.5, 0.75, 1.0]).round(3).tolist()
        [4.333, 2.963, 2.359, 2.014]
    """
    return np.array([look.critical for look in looks(fractions, level)])


def looks(fractions: Float[np.ndarray, "looks"] | list[float], level: float = 0.95) -> tuple[Look, ...]:
    """Looks at given information fractions, with the confidence level to use at each.

    Args:
        fractions: information fractions, growing, in (0, 1].
        level: confidence level of all looks together. Default 0.95.

    Raises:
        ValueError: if the fractions do not grow within (0, 1], or the level is outside (0, 1).
    """
    allowed = spent(fractions, level)
    t = np.asarray(fractions, np.float64)
    if t.ndim != 1 or (np.diff(t) <= 0).any():
        raise ArgumentError("fractions", f"must be a list of growing numbers, got {t.tolist()}.")
    found, used, inside = [], 0.0, _Inside.start()
    for one, limit in zip(t.tolist(), allowed.tolist(), strict=True):
        critical = inside.critical(one, limit - used)
        used += inside.leaves(one, critical)
        found.append(Look(one, critical, float(2 * special.ndtr(critical) - 1), used))
        inside = inside.next(one, critical)
    return tuple(found)


def look_levels(
    sizes: Int[np.ndarray, "looks"] | list[int], population: int | None = None, level: float = 0.95
) -> Float[np.ndarray, "looks"]:
    """Confidence levels to use at looks after given numbers of drawn units.

    A last look at the whole population spends no error because its interval is a point, so the earlier looks
    share all of the error.

    Args:
        sizes: number of units drawn at each look, growing; the last one as planned.
        population: number of units that could be drawn. Default None: units like these are meant.
        level: confidence level of all looks together. Default 0.95.

    Raises:
        ValueError: as `information` and `looks`.

    Examples:
        >>> look_levels([50, 100, 150, 200]).round(4).tolist()
        [1.0, 0.997, 0.9817, 0.956]
    """
    n = checks.integer("sizes", sizes, 1)
    whole = n.ndim == 1 and population is not None and n[-1] == population
    before = n[:-1] if whole else n
    found = [look.level for look in looks(information(before, population), level)] if len(before) else []
    return np.array([*found, *([checks.level("level", level)] if whole else [])])


@cache
def _rule(nodes: int) -> tuple[Float[np.ndarray, "nodes"], Float[np.ndarray, "nodes"]]:
    """Nodes and weights of Gauss-Legendre quadrature."""
    return np.polynomial.legendre.leggauss(nodes)


class _Inside(NamedTuple):
    """Density of B(t) on a grid over [0, boundary], given that no boundary has been crossed.

    B is symmetric, so half of the range is enough. Before the first look all mass is at 0.
    """

    t: float
    nodes: Float[np.ndarray, "nodes"]
    mass: Float[np.ndarray, "nodes"]  # density times the weight of the node, for both signs

    @classmethod
    def start(cls) -> "_Inside":
        return cls(0.0, np.zeros(1), np.ones(1))

    def leaves(self, t: float, critical: float) -> float:
        """P(no boundary crossed before, |B(t)| > critical sqrt(t))."""
        bound, step = critical * np.sqrt(t), np.sqrt(t - self.t)
        out = special.ndtr((self.nodes - bound) / step) + special.ndtr((-self.nodes - bound) / step)
        return float(self.mass @ out)

    def critical(self, t: float, error: float) -> float:
        """Critical value with exit probability `error`, or with _LEAST_TAIL if `error` is smaller."""
        most = float(-special.ndtri(_LEAST_TAIL / 2))
        if self.leaves(t, most) >= error:
            return most
        from scipy import optimize  # slow to import; few need it

        root = optimize.brentq(lambda c: self.leaves(t, c) - error, 0.0, most, xtol=1e-10)
        assert isinstance(root, float)
        return root

    def next(self, t: float, critical: float) -> "_Inside":
        bound, step = critical * np.sqrt(t), np.sqrt(t - self.t)
        count = int(np.clip(2 ** np.ceil(np.log2(_NODES_A_STEP * bound / step)), _NODES, _MOST_NODES))
        x, weight = _rule(count)
        nodes, weight = bound * (x + 1) / 2, weight * bound / 2
        away = (nodes[:, None] - self.nodes) / step
        back = (nodes[:, None] + self.nodes) / step
        density = (np.exp(-(away**2) / 2) + np.exp(-(back**2) / 2)) / np.sqrt(2 * np.pi) / step
        return _Inside(t, nodes, density @ self.mass * weight)
