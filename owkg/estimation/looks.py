"""Several looks at a growing sample: the level of confidence at each, so that all intervals hold together.

Error is spent by the function of O'Brien and Fleming's kind (Lan and DeMets 1983): little at early looks,
nearly all at the last planned one. Boundaries follow from the recursion of Armitage, McPherson and Rowe
(1969).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import optimize, special

from owkg import checks
from owkg.errors import ArgumentError

_LEAST_TAIL = 1e-6
"""The least error of a single look: quantiles tell a level of 1 minus this from 1."""
_NODES = 64  # of the grid over [0, boundary], at least
_NODES_A_STEP = 6  # for each standard deviation of the next step
_MOST_NODES = 2048


class Look(NamedTuple):
    """One of several planned looks.

    Attributes:
        fraction: information at the look, as a share of the information at the last planned one.
        critical: value that the absolute standardised error exceeds somewhere with the spent probability.
        level: level of confidence to use for the interval at this look.
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

    Information is the inverse of the variance of a mean: proportional to n, or, for the mean of a population
    of N of whom n were drawn without replacement, to 1 / (1/n - 1/N). Errors of nested samples then have
    independent increments.

    Args:
        sizes: units drawn at each look, growing.
        population: N; None if units like these are meant.

    Raises:
        ValueError: if the sizes do not grow, or reach the population, of which information would be infinite.

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
    """Error spent at each look and before.

    Each side spends 2 - 2 Phi(z / sqrt(t)), with z the quantile of 1 - error / 4: half of the error at t = 1.

    Args:
        fractions: information fractions, in (0, 1].
        level: level of confidence of all looks together.

    Raises:
        ValueError: if a fraction is outside (0, 1], or the level outside (0, 1).
    """
    t = checks.real("fractions", fractions, 0, 1, closed="high")
    z = -special.ndtri((1 - checks.level("level", level)) / 4)
    return 4 * special.ndtr(-z / np.sqrt(t))


def critical_values(
    fractions: Float[np.ndarray, "looks"] | list[float], level: float = 0.95
) -> Float[np.ndarray, "looks"]:
    """Critical values c_j: P(|Z_1| > c_1 or ... or |Z_j| > c_j) is the error spent at look j.

    Z_j = B(t_j) / sqrt(t_j) of a Brownian motion B. Its density within the boundaries so far is carried from
    look to look on a grid. A critical value depends on this look and earlier ones only, so later looks may
    still be changed. None exceeds 4.89, where a look has an error of 1e-6; later ones make up for it.

    Args:
        fractions: information fractions, growing, in (0, 1].
        level: level of confidence of all looks together.

    Raises:
        ValueError: if the fractions do not grow within (0, 1], or the level is outside (0, 1).

    Source: Armitage, McPherson and Rowe (1969); Lan and DeMets (1983); Jennison and Turnbull (2000), Group
    sequential methods, chapters 7 and 19.

    Examples:
        >>> critical_values([0.25, 0.5, 0.75, 1.0]).round(3).tolist()
        [4.333, 2.963, 2.359, 2.014]
    """
    return np.array([look.critical for look in looks(fractions, level)])


def looks(fractions: Float[np.ndarray, "looks"] | list[float], level: float = 0.95) -> tuple[Look, ...]:
    """The looks at some information fractions, with the level of confidence to use at each.

    Args:
        fractions: information fractions, growing, in (0, 1].
        level: level of confidence of all looks together.

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
    """Levels of confidence to use at looks after so many drawn units.

    A last look at the whole population needs none of the error, since its interval is a point; the others
    share it.

    Args:
        sizes: units drawn at each look, growing; the last one as planned.
        population: units that could be drawn; None if units like these are meant.
        level: level of confidence of all looks together.

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
    """Gauss and Legendre's nodes and weights."""
    return np.polynomial.legendre.leggauss(nodes)


class _Inside(NamedTuple):
    """The density of B(t) on a grid over [0, boundary], where no boundary has been crossed. B is symmetric.

    Before the first look all mass is at 0.
    """

    t: float
    nodes: Float[np.ndarray, "nodes"]
    mass: Float[np.ndarray, "nodes"]  # density times the weight of the node, of both signs

    @classmethod
    def start(cls) -> "_Inside":
        return cls(0.0, np.zeros(1), np.ones(1))

    def leaves(self, t: float, critical: float) -> float:
        """P(no boundary crossed before, |B(t)| > critical sqrt(t))."""
        bound, step = critical * np.sqrt(t), np.sqrt(t - self.t)
        out = special.ndtr((self.nodes - bound) / step) + special.ndtr((-self.nodes - bound) / step)
        return float(self.mass @ out)

    def critical(self, t: float, error: float) -> float:
        """The critical value at which so much is left, at most that of the least error."""
        most = float(-special.ndtri(_LEAST_TAIL / 2))
        if self.leaves(t, most) >= error:
            return most
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
