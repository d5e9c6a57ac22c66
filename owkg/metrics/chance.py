"""Chance level: mean and variance of a metric when every rank is uniform on 1 .. its number of candidates.

Closed forms exist for means of a rank weight, and for the geometric mean and its inverse, because these are
products of independent factors. The reciprocal of a mean, and its powers, come from the Laplace transform of
the mean by a quadrature that converges exponentially. All other chance levels are drawn
(`owkg.metrics.monte_carlo`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.storage import free_memory
from owkg.rank_weights.many import Points, points
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import has_table, kept_by_size, padded_size, prefix_sums, rank_weights, sums_at


class Chance(NamedTuple):
    """Mean and variance under random ranking, with standard errors that are 0 unless random ranks were drawn.

    The fields are numbers, or arrays of one shape.
    """

    expectation: Any
    variance: Any
    expectation_standard_error: float = 0.0
    variance_standard_error: float = 0.0


def _new_moments(metric: RankWeight, size: int) -> Float[np.ndarray, "2 ranks"]:
    moments = _of_sums(prefix_sums(metric, size)[:, : size + 1], np.maximum(np.arange(size + 1), 1))
    moments.flags.writeable = False
    return moments


def _of_sums(sums: Float[np.ndarray, "2 n"], sizes: Int[np.ndarray, "n"]) -> Float[np.ndarray, "2 n"]:
    first, second = sums / sizes
    variance = second - first**2
    # If all weights are equal, the remaining difference is rounding.
    return np.stack([first, np.where(variance > 1e-13 * second, variance, 0.0)])


_moments = kept_by_size(_new_moments)


def rank_moments(metric: RankWeight, sizes: Int[np.ndarray, "sizes"]) -> Float[np.ndarray, "2 sizes"]:
    """Mean and variance of h(rank) for each size N, with the rank uniform on 1 .. N.

    E = S1(N) / N and V = S2(N) / N - E^2, where S_i(N) is the sum of h^i over 1 .. N. Hoyt et al. 2022,
    appendix B, give them for h = r, 1/r and [r <= k]; this function takes any h.
    """
    largest = int(sizes.max())
    if has_table(largest):
        return _moments(metric, padded_size(largest))[:, sizes]
    return _of_sums(sums_at(metric, sizes), sizes)


# Below this share of the whole weight a task's cumulant series is exact: 0.01^9 / 9 is 1e-19.
_SMALL_SHARE = 0.01
_CUMULANTS = 8
# Up to this rank, tables hold every rank; sums beyond it use the Euler-Maclaurin formula.
_DENSE = 2**20
# Number of arrays over all ranks that the mean and variance of a reciprocal or a median need.
_ARRAYS = 12
# From this number of tasks, tasks of one size are summed together.
_MANY = 2**16


class Shapes(NamedTuple):
    """Inputs of a chance level: candidates and weights of tasks, and how many tasks are identical.

    Attributes:
        candidates: number of candidates of each task, or of each group of identical tasks.
        weight: weight of each such task; None: equal weights.
        many: number of tasks in each group; None: one each.
    """

    candidates: Int[np.ndarray, "shapes"]
    weight: Float[np.ndarray, "shapes"] | None = None
    many: Int[np.ndarray, "shapes"] | None = None

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.candidates) if self.many is None else int(self.many.sum())

    def by_size(self, power: int) -> Float[np.ndarray, "sizes"]:
        """Sum of a power of the weights, by number of candidates."""
        weight = self.weight
        each = None if weight is None or power == 0 else weight**power
        if self.many is not None:
            each = self.many.astype(np.float64) if each is None else each * self.many
        return np.bincount(self.candidates, each).astype(np.float64)

    def sizes(self) -> tuple[Int[np.ndarray, "sizes"], Float[np.ndarray, "sizes"]]:
        """Distinct numbers of candidates, ascending, and the number of tasks with each."""
        if self.candidates.max() <= _DENSE:
            count = self.by_size(0)
            found = np.flatnonzero(count)
            return found, count[found]
        found, place = np.unique(self.candidates, return_inverse=True)
        return found, np.bincount(place, self.many).astype(np.float64)

    def each(self) -> "Shapes":
        """Shapes with every task listed separately."""
        if self.many is None:
            return self
        weight = None if self.weight is None else np.repeat(self.weight, self.many)
        return Shapes(np.repeat(self.candidates, self.many), weight)

    def unless_equal(self) -> "Shapes":
        """Shapes without weights if all weights are equal."""
        weight = self.weight
        return self if weight is None or (weight != weight[0]).any() else self._replace(weight=None)

    def alike(self) -> "Shapes":
        """Shapes with many tasks of one size grouped, if the size of a task determines its weight."""
        size, weight, many = self
        if weight is None or many is not None or len(size) < _MANY:
            return self
        if size.max() > _DENSE:
            sizes, place = np.unique(size, return_inverse=True)
        else:
            sizes, place = np.arange(int(size.max()) + 1), size
        count, of_size = np.bincount(place), np.zeros(len(sizes))
        of_size[place] = weight
        if (of_size[place] != weight).any():
            return self
        some = np.flatnonzero(count)
        return Shapes(sizes[some], of_size[some], count[some])


def geometric_chance(shapes: Shapes, *, inverse: bool) -> Chance:
    """Exact mean and variance of the weighted geometric mean of random ranks, or of its inverse.

    With shares e_i = w_i / sum w, the mean is prod E[r_i^e_i] and the mean square is prod E[r_i^(2 e_i)]
    (Hoyt et al. 2022, appendix B, for equal weights). Tasks with small shares use the cumulants of log r, so
    that the variance loses no digits to cancellation; at most 100 tasks can have a share above 1/100.

    Args:
        shapes: candidates and weights of the tasks.
        inverse: True for 1 / GMR, False for GMR.
    """
    candidates, weight, counts = shapes
    sign = -1.0 if inverse else 1.0
    if weight is None:
        # Equal shares: all tasks of one size make one term.
        sizes, many = shapes.sizes()
        share = np.full(len(sizes), 1 / shapes.tasks)
    else:
        sizes, own, counts = shapes.alike()
        own = np.asarray(own)
        many = np.ones(len(sizes)) if counts is None else counts.astype(np.float64)
        share = own / (own * many).sum()
    small = share <= _SMALL_SHARE
    at, e = (sizes, share) if small.all() else (sizes[small], share[small])
    if candidates.max() <= _DENSE:
        kappa = log_rank_cumulants(int(candidates.max()))
    else:
        places, at = np.unique(at, return_inverse=True)
        kappa = _cumulants_of(log_power_sums(places), places)
    # log E[r^e] = sum of kappa_k e^k / k!; log E[r^2e] - 2 log E[r^e] starts at the second cumulant.
    log_mean = log_ratio = 0.0
    power = many[small] * e
    for k in range(1, _CUMULANTS + 1):
        # Summed by size first, because there may be far more tasks than ranks.
        by_size = np.bincount(at, power)
        total = float(
            np.einsum("i,i->", kappa[k - 1][: len(by_size)], by_size)
        )  # not np.dot, because BLAS would wake its threads
        term = total * sign**k / special.factorial(k)
        log_mean += term
        log_ratio += term * (2.0**k - 2.0)
        power *= e
    for n, e, times in zip(sizes[~small], share[~small], many[~small], strict=True):
        once, twice = (_log_mean_power(int(n), sign * m * e) for m in (1, 2))
        log_mean += times * once
        log_ratio += times * (twice - 2 * once)
    mean = np.exp(log_mean)
    return Chance(float(mean), float(mean**2 * np.expm1(max(log_ratio, 0.0))))


def _new_cumulants(size: int) -> Float[np.ndarray, "cumulants ranks"]:
    numbers = np.maximum(np.arange(size + 1), 1)
    power, sums = np.where(np.arange(size + 1) > 0, 1.0, 0.0), []
    for _ in range(_CUMULANTS):
        power *= np.log(numbers)
        sums.append(np.cumsum(power))
    return _cumulants_of(np.stack(sums), numbers)


def log_power_sums(sizes: Int[np.ndarray, "sizes"]) -> Float[np.ndarray, "cumulants sizes"]:
    """Sums of log(r)^k over r = 1 .. N for k = 1 .. 8 and each size N; exact to double precision.

    The first 2^20 terms are added up. For a larger N, the remaining terms are replaced by the integral with
    the corrections of Euler and Maclaurin; the next correction would be below 1e-17 of the sum.
    """
    within = np.minimum(sizes, _DENSE)
    table = np.log(np.arange(1, int(within.max(initial=1)) + 1))
    power, sums = np.ones(len(table)), []
    for k in range(1, _CUMULANTS + 1):
        power *= table
        sums.append(np.cumsum(power)[within - 1] + _beyond(k, sizes) - _beyond(k, within))
    return np.stack(sums)


def _beyond(k: int, sizes: Int[np.ndarray, "sizes"]) -> Float[np.ndarray, "sizes"]:
    """Sum of log(r)^k up to N, without its constant term."""
    x = sizes.astype(np.float64)
    log = np.log(x)
    # The integral is x (log^k - k log^(k-1) + k (k-1) log^(k-2) - ...).
    integral = np.ones(len(x))
    for j in range(1, k + 1):
        integral = log**j - j * integral
    return x * integral + log**k / 2 + k * log ** (k - 1) / x / 12


def _log_mean_power(size: int, power: float) -> float:
    """Logarithm of the mean of r^power over r = 1 .. N, for |power| up to 2."""
    within = min(size, _DENSE)
    total = float(np.sum(np.arange(1, within + 1, dtype=np.float64) ** power))
    if size > within:
        low, high = float(within), float(size)
        # The integral, stable near power -1, and the corrections of Euler and Maclaurin.
        ratio, more = np.log(high / low), power + 1
        total += low**more * (np.expm1(more * ratio) / more if more else ratio)
        total += (high**power - low**power) / 2
        total += power * (high ** (power - 1) - low ** (power - 1)) / 12
    return float(np.log(total) - np.log(size))


def _cumulants_of(
    sums: Float[np.ndarray, "cumulants sizes"], numbers: Int[np.ndarray, "sizes"]
) -> Float[np.ndarray, "cumulants sizes"]:
    """Cumulants of log r for each N, r uniform on 1 .. N, from the sums of the powers of log r."""
    logs = np.log(numbers)
    # Moments about log N are moments of log(rank / N), as small as an exponential's, so nothing cancels.
    raw, down = [np.ones(len(numbers))], [np.ones(len(numbers))]  # powers of -log N
    for k in range(1, _CUMULANTS + 1):
        down.append(down[-1] * -logs)
        moment = down[k].copy()
        for j in range(1, k + 1):
            moment += special.comb(k, j) * (sums[j - 1] / numbers) * down[k - j]
        raw.append(moment)
    kappa: list[np.ndarray] = []
    for k in range(1, _CUMULANTS + 1):
        lower = sum(special.comb(k - 1, j - 1) * kappa[j - 1] * raw[k - j] for j in range(1, k))
        kappa.append(raw[k] - lower)
    kappa[0] = kappa[0] + logs
    return np.stack(kappa)


@lru_cache(maxsize=16)
def _cumulants(size: int) -> np.ndarray:
    cumulants = _new_cumulants(size)
    cumulants.flags.writeable = False
    return cumulants


def log_rank_cumulants(largest: int) -> Float[np.ndarray, "cumulants ranks"]:
    """First eight cumulants of log r, r uniform on 1 .. N, at index N = 1 .. `largest` or beyond."""
    return _cumulants(padded_size(largest))


def _require_memory(largest: int) -> None:
    """Raises ArgumentError if arrays over this many ranks do not fit in memory."""
    checks.memory("metric", 8 * _ARRAYS * largest, free_memory(), f"its chance level at {largest:,} ranks")


def _weight_cumulants(
    weights: np.ndarray, averages: Callable[[np.ndarray], np.ndarray], counts: np.ndarray
) -> tuple[Float[np.ndarray, "cumulants"], float]:
    """Terms kappa_k / k!, k = 1 .. 8, of weights in (0, 1], summed over tasks, and a bound of the ninth term.

    The bound follows from |kappa_n| <= n^n E|X - E X|^n, and E|X - E X|^n <= 2 E[X^n] for X >= 0.
    """
    raw, power = [np.ones(len(counts))], np.ones(len(weights))
    for _ in range(_CUMULANTS + 1):
        power *= weights
        raw.append(averages(power))
    kappa: list[np.ndarray] = []
    for k in range(1, _CUMULANTS + 1):
        lower = sum(special.comb(k - 1, j - 1) * kappa[j - 1] * raw[k - j] for j in range(1, k))
        kappa.append(raw[k] - lower)
    sums = [np.dot(counts, own) / special.factorial(k) for k, own in enumerate(kappa, start=1)]
    n = _CUMULANTS + 1
    return np.array(sums), 2 * n**n / special.factorial(n) * float(np.dot(counts, raw[-1]))


# Nodes of the trapezoidal rule in log t: spacing 0.25 leaves an error of about exp(-pi^2 / 0.25) = 1e-17
# for s up to 1; t^s exp(-t) is narrower by sqrt(s) above.
_SPACING = 0.25


def reciprocal_chance(metric: RankWeight, power: float, shapes: Shapes) -> Chance:
    """Mean and variance of (mean of h(r_i))^-s over independent random ranks, each of equal weight.

    E[M^-s] = 1/Gamma(s) * integral of t^(s-1) L(t) dt with L(t) = E[exp(-t M)] = prod_i L_i(t / n). The
    Laplace transform of one h(r) is a running sum over the ranks. In log t the integrand is analytic in a
    strip of width pi, so that the trapezoidal rule converges exponentially.

    Args:
        metric: rank weight h > 0.
        power: s > 0; 1 for the inverse and the harmonic mean rank.
        shapes: candidates of the tasks, which must have equal weights.
    """
    sizes, counts = shapes.sizes()
    total = shapes.tasks
    largest = int(sizes[-1])
    if (some := points(metric, sizes) if largest > _DENSE else None) is None:
        _require_memory(largest)
        some = Points(np.arange(1, largest + 1), np.ones(1), sizes - 1)
    ranks, share, ends = some
    weights = rank_weights(metric, ranks)
    lowest = float(weights.min())
    if not lowest > 1e-300:
        raise ArgumentError(
            "metric",
            f"must weigh all {largest:,} ranks with numbers above 1e-300 for its chance level, "
            f"got {lowest:g} from {metric.name}.",
        )
    mean = float(np.dot(counts, rank_moments(metric, sizes)[0])) / total

    greatest = float(weights.max())

    def averages(of_ranks: Float[np.ndarray, "points"]) -> Float[np.ndarray, "sizes"]:
        """Means over the ranks up to each size."""
        return np.cumsum(of_ranks * share if len(share) > 1 else of_ranks)[ends] / sizes

    cumulants, ninth = _weight_cumulants(weights / greatest, averages, counts)

    def log_transform(t: float) -> float:
        # If each task hardly counts, the cumulant series.
        step = t / total * greatest
        if step < 1 and ninth * step ** (_CUMULANTS + 1) < 1e-14:
            return float(np.polyval(cumulants[::-1], -step) * -step)
        # log1p of the mean of expm1 keeps its digits if a task hardly counts ...
        below = averages(np.expm1(-t / total * weights))
        logs = np.log1p(np.maximum(below, -0.5))
        if (below < -0.5).any():  # ... and the mean of exp if it counts much, with few tasks.
            means = averages(np.exp(-t / total * (weights - lowest)))
            with np.errstate(divide="ignore"):  # a transform of 0
                logs = np.where(below < -0.5, np.log(means) - t / total * lowest, logs)
        return float(np.dot(counts, logs))

    # The nodes lie around t = s / mean. To the left the integrand falls as t^s, to the right as L, which
    # falls at least as fast as exp(-t * smallest possible mean).
    centre = np.log(power / mean)
    left = centre - 40 / min(power, 1.0)
    spacing = _SPACING / np.sqrt(max(power, 1.0))
    nodes: list[tuple[float, float]] = []
    x, best = left, -np.inf
    while True:
        value = log_transform(np.exp(x))
        nodes.append((x, value))
        height = power * x + value
        best = max(best, height)
        # The second moment weighs the right end by another factor t^s.
        if x > centre and 2 * power * x + value < max(2 * power * y + v for y, v in nodes) - 45:
            break
        x += spacing
    x_nodes, log_l = (np.array(column) for column in zip(*nodes, strict=True))
    log_first, log_second = (
        special.logsumexp(s * x_nodes + log_l) + np.log(spacing) - special.gammaln(s)
        for s in (power, 2 * power)
    )
    first = np.exp(log_first)
    return Chance(float(first), float(max(first**2 * np.expm1(log_second - 2 * log_first), 0.0)))


# Number of standard deviations from half beyond which the side of a count is certain; largest table entries.
_CERTAIN = 12.0
_ENTRIES = 2**19


def median_chance(shapes: Shapes, *, inverse: bool = False) -> Chance:
    """Mean and variance of the weighted median of many random ranks, from the distribution of a count.

    The median is above x if less than half of the weight lies on ranks up to x. This weight is a sum of
    independent terms. Its distribution is binomial if all weights and all sizes are equal. If only the
    weights are equal, a saddlepoint approximation is used, whose relative error is of order 1/n, also in the
    tails (Daniels 1987). If weights differ, the normal distribution is used: the error of the mean is of
    order 1/n, and a small variance, where only few ranks are likely, has a relative error.

    With an even number of equal weights, the median is the mean of the two middle ranks; if exactly half of
    the ranks lie up to x, then x lies between these two.

    Args:
        shapes: candidates and weights of the tasks, at least some hundred.
        inverse: True for 1 / median, False for the median.

    References:
        Daniels (International Statistical Review 55, 1987), "Tail probability approximations".
    """
    _require_memory(int(shapes.candidates.max()))
    once, twice = shapes.by_size(1), shapes.by_size(2)
    x = np.arange(len(once))

    def above(by_size: np.ndarray) -> np.ndarray:
        """Sum over tasks with more than x candidates, x = 0 .. largest."""
        return by_size.sum() - np.cumsum(by_size)

    sizes = np.maximum(x, 1)
    total = once.sum()
    mean = total - above(once) + x * above(once / sizes)
    variance = x * above(twice / sizes) - x.astype(np.float64) ** 2 * above(twice / sizes**2.0)
    variance = np.where(variance > 1e-12 * total**2 / shapes.tasks, variance, 0.0)
    deviation = np.sqrt(np.where(variance > 0, variance, 1.0))
    z = (mean - total / 2) / deviation
    upper = np.where(variance > 0, special.ndtr(-z), np.heaviside(total / 2 - mean, 0.5))  # P(median > x)
    between = np.zeros(len(x))
    if shapes.weight is None:
        near = np.flatnonzero((variance > 0) & (np.abs(z) < _CERTAIN))
        lower, exactly = _half(once, near)
        upper[near] = 1 - lower
        if shapes.tasks % 2 == 0:  # a coin chooses between the two ranks A <= B in the middle
            upper[near] += exactly / 2
            # x lies between them with this probability; the distance of the two is then nearly geometric.
            expected = np.maximum(above(once / sizes), 1e-300)  # ranks at x + 1
            between[near] = exactly * (1 + np.exp(-expected[near])) / -np.expm1(-expected[near])
    probability = -np.diff(upper, prepend=1.0)[1:]  # of a median of x = 1, 2, ...
    between, x = between[1:], x[1:].astype(np.float64)

    def average(of: Callable[[np.ndarray], np.ndarray]) -> float:
        """Mean of a function of the median; f((A + B) / 2) differs from the mean of f(A) and f(B)."""
        bend = (of(x) + of(x + 1)) / 2 - of(x + 0.5)
        return float(np.dot(probability, of(x)) - np.dot(between, bend))

    def value(rank: np.ndarray) -> np.ndarray:
        return 1 / rank if inverse else rank

    first = average(value)
    return Chance(first, max(average(lambda rank: (value(rank) - first) ** 2), 0.0))


def _half(
    by_size: Float[np.ndarray, "sizes"], x: Int[np.ndarray, "n"]
) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """P(at least half of the ranks are up to x) and P(exactly half are), given the tasks of each size.

    Args:
        by_size: number of tasks, indexed by their number of candidates.
        x: ranks, ascending.
    """
    sizes = np.flatnonzero(by_size)
    many = by_size[sizes]
    tasks = many.sum()
    half = np.ceil(tasks / 2)
    if len(sizes) == 1:
        p = x / sizes[0]
        ways = -np.log1p(tasks) - special.betaln(tasks - half + 1, half + 1)
        exactly = np.exp(ways + special.xlogy(half, p) + special.xlog1py(tasks - half, -p))
        return special.bdtrc(half - 1, int(tasks), p), exactly
    if len(x) * len(sizes) > _ENTRIES:
        # Both are smooth in x: the normal quantile of one and the logarithm of the other are nearly linear.
        at = np.unique(np.linspace(0, len(x) - 1, max(2, _ENTRIES // len(sizes))).astype(np.int64))
        lower, exactly = _half(by_size, x[at])
        inside = (lower > 0) & (lower < 1) & (exactly > 0)
        at, lower, exactly = at[inside], lower[inside], exactly[inside]
        every = np.arange(len(x))
        found = special.ndtr(np.interp(every, at, special.ndtri(lower)))
        return found, np.exp(np.interp(every, at, np.log(exactly)))
    p = np.minimum(x[:, None] / sizes, 1)
    possible = (p == 1) @ many < half
    p = p[possible]
    # The tilt s under which, on average, half of the ranks are up to x: K'(s) = half.
    s = np.zeros((len(p), 1))
    for _ in range(50):
        tilted = p / (p + (1 - p) * np.exp(-s))
        curve = (tilted * (1 - tilted)) @ many
        step = np.clip((half - tilted @ many) / curve, -1, 1)
        s[:, 0] += step
        if np.abs(step).max(initial=0) < 1e-12:
            break
    tilted = p / (p + (1 - p) * np.exp(-s))
    curve, s = (tilted * (1 - tilted)) @ many, s[:, 0]
    height = np.log1p(p * np.expm1(s)[:, None]) @ many - s * half
    root = np.sign(s) * np.sqrt(np.maximum(-2 * height, 0))
    skew = (tilted * (1 - tilted) * (1 - 2 * tilted)) @ many
    more = (skew / curve / 6 - 0.5) / np.sqrt(curve)  # the limit at s = 0
    far = np.abs(root) > 1e-5
    more[far] = np.log(-np.expm1(-s[far]) * np.sqrt(curve[far]) / root[far]) / root[far]
    lower, exactly = np.ones(len(x)), np.zeros(len(x))
    lower[possible] = special.ndtr(-(root + more))
    exactly[possible] = np.exp(height) / np.sqrt(2 * np.pi * curve)
    return lower, exactly
