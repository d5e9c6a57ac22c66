"""Significance tests of all pairs of systems, paired over queries."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

from owkg import checks
from owkg.checks import ArgumentError
from owkg.judge.scores import Scores
from owkg.stats.nested import nested
from owkg.stats.rank_correlation import round_ties
from owkg.stats.sign_flips import randomisation

# Queries added at each end of the values, for what a sample does not show.
_ADDED = 0.5
# Differences of queries at a time.
_CHUNK = 2**22


class PairTest(StrEnum):
    """A paired test over queries, two-sided."""

    T = "t"
    WILCOXON = "wilcoxon"
    RANDOMISATION = "randomisation"


# Differences of values, as a share of the largest, that are rounding.
_EQUAL = 1e-12


class Pairwise(NamedTuple):
    """All pairs of systems, compared by one metric.

    Attributes:
        metric: its name.
        test: that made the p-values.
        systems: their names.
        first, second: indices of the systems of a pair, first < second, [pairs].
        difference: what the first reads less what the second reads, turned where smaller is better, [pairs].
        deviation: standard deviation of the contributions of the queries to it, [pairs].
        p: two-sided p-values, in [0, 1], [pairs].
        queries: how many there are.
        wins, losses: queries on which the first is better, and worse, [pairs].
        seed_variance: what the seeds of both systems add to the variance of the difference, [pairs].
    """

    metric: str
    test: str
    systems: tuple[str, ...]
    first: Int64[np.ndarray, "pairs"]
    second: Int64[np.ndarray, "pairs"]
    difference: Float64[np.ndarray, "pairs"]
    deviation: Float64[np.ndarray, "pairs"]
    p: Float64[np.ndarray, "pairs"]
    queries: int
    wins: Int64[np.ndarray, "pairs"]
    losses: Int64[np.ndarray, "pairs"]
    seed_variance: Float64[np.ndarray, "pairs"]

    @property
    def matrix(self) -> Float64[np.ndarray, "systems systems"]:
        """The p-values of all ordered pairs; 1 of a system with itself."""
        found = np.ones((len(self.systems),) * 2)
        found[self.first, self.second] = found[self.second, self.first] = self.p
        return found


def contributions(scores: Scores | Any, metric: Any) -> Float64[np.ndarray, "systems queries"]:
    """Contribution of each query to the metric of a system, larger is better: value / mean weight of a query.

    The mean over the queries is the metric of the system (`Scores.strength`). Of a macro metric, these are
    the values of the queries; of a micro metric, sums over the answers of a query in units of the mean
    number of answers, so that the unit that varies is the query, and its answers stay together.

    Args:
        scores: of `owkg.judge.scores`.
        metric: one of `scores.metrics`.

    Raises:
        ValueError: if the metric is not known, or the queries have no weight.

    Examples:
        >>> import polars as pl
        >>> asked = pl.DataFrame({"side": "tail", "entity": ["a", "b"], "relation": "r"})
        >>> value, weight = np.array([[[1.0, 1.5], [0.5, 3.0]]]), np.array([[1.0, 3.0]])
        >>> contributions(Scores(("x", "y"), ("mrr",), (True,), asked, value, weight), "mrr").tolist()
        [[0.5, 0.75], [0.25, 1.5]]
    """
    if not isinstance(scores, Scores):
        raise ArgumentError(
            "scores", f"must be of owkg.judge.scores, the first of its pair, got {type(scores).__name__}."
        )
    if metric not in scores.metrics:
        raise ArgumentError("metric", f"must be one of {', '.join(scores.metrics)}, got {metric!r}.")
    which = scores.metrics.index(metric)
    weight = scores.weight[which].mean()
    if not weight > 0:
        raise ArgumentError("scores", f"must have queries of some weight, got none of {metric}.")
    turned = 1.0 if scores.larger_is_better[which] else -1.0
    return turned * scores.value[which] / weight


def pairwise(
    scores: Scores | Any, metric: Any, *, test: Any = PairTest.T, key: Any = None, draws: Any = 10_000
) -> Pairwise:
    """Two-sided p-values of the difference of each pair of systems, over the queries they share.

    Tests are of `contributions`, one difference d_q of each query:

    - "t": Student's paired t, mean(d) / (s / sqrt(n)) with n - 1 degrees of freedom.
    - "wilcoxon": signed ranks; differences of 0 are dropped, the normal approximation with its correction
      for ties and without one for continuity (SciPy's `zero_method="wilcox"`, `method="asymptotic"`).
    - "randomisation": Fisher's sign flips, see `owkg.stats.sign_flips.randomisation`.

    Queries are taken as independent. The weights of a micro metric are taken as given: that their mean
    would be another one in another sample is left out, which is exact for the sign flips and does not matter
    for the others where the systems do not differ.

    If a system of a pair has several seeds, the p-value of the pair is of Student's t over queries and seeds,
    whatever the test, because the others take the seeds as given: 0 is outside the interval of
    `difference_intervals` if and only if p is below 1 - level.

    Args:
        scores: of at least two systems on at least two queries.
        metric: one of `scores.metrics`.
        test: one of `PairTest`.
        key: a seed, or a key of `jax.random.key`; of the randomisation test.
        draws: of the randomisation test.

    Raises:
        ValueError: if an argument is none of these, there is one system or one query only, or the
            randomisation test has no key.

    Examples:
        >>> import polars as pl
        >>> asked = pl.DataFrame({"side": "tail", "entity": ["a", "b", "c"], "relation": "r"})
        >>> value = np.array([[[0.5, 0.6, 0.9], [0.4, 0.3, 0.4]]])
        >>> scores = Scores(("x", "y"), ("mrr",), (True,), asked, value, np.ones((1, 3)))
        >>> found = pairwise(scores, "mrr")
        >>> found.difference.round(3).tolist(), found.p.round(3).tolist()
        ([0.3], [0.122])

    References:
        Smucker, Allan, Carterette (CIKM 2007), "A comparison of statistical significance tests for
        information retrieval evaluation".
    """
    each = contributions(scores, metric)
    systems, queries = each.shape
    if systems < 2:
        raise ArgumentError("scores", f"must have at least two systems, got {systems}: no pair to compare.")
    if queries < 2:
        raise ArgumentError("scores", f"must have at least two queries, got {queries}: nothing varies.")
    if test not in list(PairTest):
        raise ArgumentError("test", f"must be one of {', '.join(PairTest)}, got {test!r}.")
    if test == PairTest.RANDOMISATION and key is None:
        raise ValueError('`key` must be one of jax.random.key for the test "randomisation", got None.')
    first, second = np.triu_indices(systems, 1)
    difference, deviation, p = (np.empty(len(first)) for _ in range(3))
    wins, losses = (np.empty(len(first), np.int64) for _ in range(2))
    equal = _EQUAL * np.abs(each).max()
    for part, gaps in _gaps(each, first, second):
        difference[part], deviation[part] = gaps.mean(1), gaps.std(1, ddof=1)
        wins[part], losses[part] = (gaps > equal).sum(1), (gaps < -equal).sum(1)
        if test == PairTest.T:
            p[part] = _student(difference[part], deviation[part] / np.sqrt(queries), queries - 1)
        elif test == PairTest.WILCOXON:
            p[part] = _wilcoxon(gaps)
    seeded = scores.seeded[first] | scores.seeded[second]
    if test == PairTest.RANDOMISATION and not seeded.all():
        p = randomisation(key, each, draws=draws)
    more = np.zeros(len(first))
    if seeded.any():
        # Means over seeds that are equal differ by rounding.
        difference = np.where(seeded & (np.abs(difference) <= equal), 0.0, difference)
        variance, freedom, more = _with_seeds(scores, metric, first, second)
        p = np.where(seeded, _student(difference, np.sqrt(variance), freedom), p)
    of = metric, str(PairTest(test)), scores.systems, first, second
    return Pairwise(*of, difference, deviation, p, queries, wins, losses, more)


def difference_intervals(
    scores: Scores | Any, metric: Any, *, level: Any = 0.95
) -> tuple[Float64[np.ndarray, "pairs"], Float64[np.ndarray, "pairs"]]:
    """(low, high): confidence intervals of the difference of each pair of systems, over the queries.

    D = sum d_q / sum w_q, d_q the difference of the values of a query and w_q its weight; by Student's t
    with the deviation of d_q - D w_q over the mean weight, so that queries of many answers count for as
    much as they move D. Student's t has the degrees of freedom of the effective number of queries,
    (sum w)^2 / sum w^2. Half a query at each end of the values is added to the variance (Agresti and Min
    2005), so that systems that agree on every query of a sample have an interval too. Of each pair by
    itself: no correction for many pairs.

    If systems have several seeds, d_q is of the means over seeds, and the variance of the metric over the
    seeds of each system is added (`owkg.stats.nested`): queries are paired, seeds are not. The degrees of
    freedom are those of Welch and Satterthwaite. Half a query of one seed is added at each end.

    Args:
        scores: of at least two systems on at least two queries.
        metric: one of `scores.metrics`.
        level: of confidence, in (0, 1).

    Returns:
        Of the pairs, and turned where smaller is better, as in `pairwise`.

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> import polars as pl
        >>> asked = pl.DataFrame({"side": "tail", "entity": ["a", "b", "c"], "relation": "r"})
        >>> value = np.array([[[0.5, 0.6, 0.9], [0.4, 0.3, 0.4]]])
        >>> scores = Scores(("x", "y"), ("mrr",), (True,), asked, value, np.ones((1, 3)))
        >>> low, high = difference_intervals(scores, "mrr")
        >>> low.round(3).tolist(), high.round(3).tolist()
        ([-0.694], [1.294])

    References:
        Cochran (1977), "Sampling techniques", section 6.4, of the ratio of two means.
        Agresti and Min (2005), "Simple improved confidence intervals for comparing matched proportions".
    """
    each = contributions(scores, metric)
    systems, queries = each.shape
    if systems < 2 or queries < 2:
        raise ArgumentError(
            "scores", f"must have two systems and queries at least, got {systems}, {queries}."
        )
    wanted = checks.scalar("level", checks.real("level", level, 0, 1, closed=False))
    first, second = np.triu_indices(systems, 1)
    mean = each.mean(1)
    middle = mean[first] - mean[second]
    variance, freedom, _ = _with_seeds(scores, metric, first, second)
    half = special.stdtrit(np.maximum(freedom, 0.5), (1 + wanted) / 2) * np.sqrt(variance)
    return middle - half, middle + half


def _with_seeds(
    scores: Scores, metric: str, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Variance of the difference of each pair over queries and seeds, its freedom, and the part of seeds."""
    which, each = scores.metrics.index(metric), contributions(scores, metric)
    weight = scores.weight[which]
    relative = weight / weight.mean()
    effective = weight.sum() ** 2 / np.einsum("i,i->", weight, weight)
    seen = np.empty(len(first))
    for part, gaps in _gaps(each, first, second):
        seen[part] = (gaps - gaps.mean(1)[:, None] * relative).var(1, ddof=1) / each.shape[1]
    # Half a query of one seed: the mean over seeds of a query that was not drawn scatters by less.
    less = (1 / scores.num_seeds[first] ** 2 + 1 / scores.num_seeds[second] ** 2) / 2
    unseen = unseen_variance(scores.value[which] / np.where(weight > 0, weight, 1), effective)
    of_queries = seen + less * unseen
    spread = scores.spread(which)
    component, square = (x[first] + x[second] for x in spread)
    variance, freedom = nested(of_queries, np.maximum(effective - 1, 0.5), component, square)
    return variance, freedom, variance - of_queries


def unseen_variance(values: np.ndarray, effective: float) -> float:
    """Variance of a mean difference by half a query more at each end of all values (Agresti and Min 2005)."""
    return float(2 * _ADDED * ((np.ptp(values) or np.abs(values).max()) / effective) ** 2)


def _gaps(each: np.ndarray, first: np.ndarray, second: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Differences of the contributions, [pairs, queries], a bounded number of pairs at a time."""
    size = max(1, _CHUNK // each.shape[1])
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        yield part, each[first[part]] - each[second[part]]


def _student(mean: np.ndarray, error: np.ndarray, freedom: Any) -> np.ndarray:
    """1 where the metrics of both systems are equal; 0 where every query differs by the same amount."""
    t = np.full(mean.shape, np.inf)
    np.divide(np.abs(mean), error, out=t, where=error > 0)
    return 2 * special.stdtr(freedom, -np.where(mean == 0, 0.0, t))


def _wilcoxon(gaps: np.ndarray) -> np.ndarray:
    """Of SciPy; 1 where there is no difference on any query."""
    from scipy import stats  # a quarter of a second, that no other test needs

    p = np.ones(len(gaps))
    # Equal differences have equal ranks, whatever their last digits.
    gaps = round_ties(gaps)
    if (some := gaps.any(1)).any():
        p[some] = np.asarray(stats.wilcoxon(gaps[some], axis=1, method="asymptotic"))[1]
    return p
