"""Significance tests of all pairs of systems, paired over queries."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.judge.scores import Scores
from owkg.keys import Seed
from owkg.stats.nested import nested
from owkg.stats.rank_correlation import round_ties
from owkg.stats.sign_flips import randomisation

# Queries added at each end of the values, to account for differences that a sample does not show.
_ADDED = 0.5
# They are added in full if at most this many queries differ, and in part if more do.
_ADDED_UP_TO = 10
# Number of heavy queries whose share of the variance a sample may lack; chosen by simulation.
_UNSEEN_SHARES = 24
# Squared score (1 on average if large queries do not differ from others) above which they count as different.
_NOTICED = 1.5
# Number of differences of queries in memory at a time.
_CHUNK = 2**22


SYMMETRY = (
    "Wilcoxon's test of {}, whose queries differ in weight, tests that the differences of the queries are "
    "symmetric around 0, not that the metric is equal; t and randomisation test the metric."
)
"""Note that Wilcoxon's test of a micro metric tests another hypothesis."""


class PairTest(StrEnum):
    """Paired two-sided test over queries."""

    T = "t"
    WILCOXON = "wilcoxon"
    RANDOMISATION = "randomisation"


# Differences of values below this share of the largest value are rounding errors.
_EQUAL = 1e-12


class Pairwise(NamedTuple):
    """Tests of all pairs of systems by one metric.

    Attributes:
        metric: name of the metric.
        test: name of the test.
        systems: names of the systems.
        first, second: indices of the systems of each pair, first < second, [pairs].
        difference: metric of the first system minus metric of the second, with the sign reversed if smaller
            is better, [pairs].
        deviation: standard deviation of the contributions of the queries to the difference, [pairs].
        error: standard error of the difference towards 0, from which p is computed, [pairs].
        p: two-sided p-values, in [0, 1], [pairs].
        queries: number of queries.
        effective: number of queries of equal weight that carry the same information.
        wins, losses: number of queries on which the first system is better, and worse, [pairs].
        seed_variance: variance of the difference that the seeds of both systems add, [pairs].
    """

    metric: str
    test: str
    systems: tuple[str, ...]
    first: Int64[np.ndarray, "pairs"]
    second: Int64[np.ndarray, "pairs"]
    difference: Float64[np.ndarray, "pairs"]
    deviation: Float64[np.ndarray, "pairs"]
    error: Float64[np.ndarray, "pairs"]
    p: Float64[np.ndarray, "pairs"]
    queries: int
    effective: float
    wins: Int64[np.ndarray, "pairs"]
    losses: Int64[np.ndarray, "pairs"]
    seed_variance: Float64[np.ndarray, "pairs"]

    @property
    def matrix(self) -> Float64[np.ndarray, "systems systems"]:
        """P-values of all ordered pairs, [systems, systems]; 1 for a system with itself."""
        found = np.ones((len(self.systems),) * 2)
        found[self.first, self.second] = found[self.second, self.first] = self.p
        return found


def contributions(scores: Scores | Any, metric: str) -> Float64[np.ndarray, "systems queries"]:
    """Contribution of each query to the metric of a system: its value over the mean weight of a query.

    Larger is better. The mean over the queries is the metric of the system (`Scores.strength`). For a macro
    metric, contributions are the values of the queries. For a micro metric, they are sums over the answers of
    a query, in units of the mean number of answers, so that the query is the unit that varies and its answers
    stay together.

    Args:
        scores: first result of `owkg.judge.scores`.
        metric: one of `scores.metrics`.

    Raises:
        ValueError: if the metric is unknown, or the queries have no weight.

    Examples:
        >>> import polars as pl
        >>> asked = pl.DataFrame({"side": "tail", "entity": ["a", "b"], "relation": "r"})
        >>> value, weight = np.array([[[1.0, 1.5], [0.5, 3.0]]]), np.array([[1.0, 3.0]])
        >>> contributions(Scores(("x", "y"), ("mrr",), (True,), asked, value, weight), "mrr").tolist()
        [[0.5, 0.75], [0.25, 1.5]]
    """
    if not isinstance(scores, Scores):
        raise ArgumentError(
            "scores", f"must be Scores, the first result of owkg.judge.scores, got {type(scores).__name__}."
        )
    if metric not in scores.metrics:
        raise ArgumentError("metric", f"must be one of {', '.join(scores.metrics)}, got {metric!r}.")
    which = scores.metrics.index(metric)
    weight = scores.weight[which].mean()
    if not weight > 0:
        raise ArgumentError("scores", f"must have queries with a positive weight, got none for {metric}.")
    turned = 1.0 if scores.larger_is_better[which] else -1.0
    return turned * scores.value[which] / weight


def pairwise(
    scores: Scores | Any, metric: str, *, test: str = PairTest.T, key: Seed | None = None, draws: int = 10_000
) -> Pairwise:
    """Two-sided p-values of the difference of each pair of systems, over their common queries.

    If all queries have the same weight (macro metrics), tests use `contributions`, with one difference d_q
    for each query:

    - "t": Student's paired t, mean(d) / (s / sqrt(n)) with n - 1 degrees of freedom.
    - "wilcoxon": signed ranks. Differences of 0 are dropped; the normal approximation is corrected for ties
      and not for continuity (SciPy's `zero_method="wilcox"`, `method="asymptotic"`).
    - "randomisation": Fisher's sign flips, see `owkg.stats.sign_flips.randomisation`.

    If weights differ (micro metrics), the difference is a ratio D = sum d_q / sum w_q, whose weights are as
    random as the queries. "t" then divides D by the standard error of `difference_intervals`, with the same
    degrees of freedom: p < 0.05 if and only if the 95 % interval excludes 0. "randomisation" flips the d_q,
    and reduces the observed D in so far as that interval is wider towards 0 because larger queries differ.
    "wilcoxon" still tests that the d_q are symmetric around 0, which is another hypothesis
    (`other_hypothesis`): of two systems with equal metrics, one may be better on most queries.

    Queries are assumed to be independent.

    If a system of a pair has several seeds, the p-value of the pair comes from Student's t over queries and
    seeds, whatever the test, because the other tests take the seeds as given: 0 is outside the interval of
    `difference_intervals` if and only if p is below 1 - level.

    Args:
        scores: scores of at least two systems on at least two queries.
        metric: one of `scores.metrics`.
        test: one of `PairTest`. Default "t".
        key: seed, or key of `jax.random.key`. Required by the randomisation test.
        draws: number of draws of the randomisation test. Default 10,000.

    Raises:
        ValueError: if an argument is invalid, there is only one system or one query, or the randomisation
            test has no key.

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
    scores = _weighed(scores, metric)
    each = contributions(scores, metric)
    systems, queries = each.shape
    if systems < 2:
        raise ArgumentError("scores", f"must have at least two systems, got {systems}: there is no pair.")
    if queries < 2:
        raise ArgumentError("scores", f"must have at least two queries, got {queries}: nothing varies.")
    if test not in list(PairTest):
        raise ArgumentError("test", f"must be one of {', '.join(PairTest)}, got {test!r}.")
    if test == PairTest.RANDOMISATION and key is None:
        raise ValueError("`key` must be a seed or a jax.random.key for the randomisation test, got None.")
    first, second = np.triu_indices(systems, 1)
    difference, deviation, error, p = (np.empty(len(first)) for _ in range(4))
    wins, losses = (np.empty(len(first), np.int64) for _ in range(2))
    equal = _EQUAL * np.abs(each).max()
    units = _Units.of(scores, metric)
    wider = np.ones(len(first))
    for part, gaps in _gaps(each, first, second):
        difference[part], deviation[part] = middle, scatter = gaps.mean(1), gaps.std(1, ddof=1)
        wins[part], losses[part] = (gaps > equal).sum(1), (gaps < -equal).sum(1)
        error[part] = scatter / np.sqrt(queries)
        if not units.even:
            variance = units.variances(gaps, middle)
            error[part] = np.sqrt(np.where(middle > 0, variance.below, variance.above))
            wider[part] = variance.wider
        if test == PairTest.T:
            p[part] = _student(middle, error[part], units.freedom)
        elif test == PairTest.WILCOXON:
            p[part] = _wilcoxon(gaps)
    seeded = scores.seeded[first] | scores.seeded[second]
    if test == PairTest.RANDOMISATION and key is not None and not seeded.all():
        p = randomisation(key, each, wider=wider, draws=draws)
    more = np.zeros(len(first))
    if seeded.any():
        # Equal means over seeds may differ by rounding errors.
        difference = np.where(seeded & (np.abs(difference) <= equal), 0.0, difference)
        for part, middle, below, above, of_seeds in _nested(scores, metric, each, first, second):
            variance, freedom = (np.where(middle > 0, b, a) for b, a in zip(below, above, strict=True))
            own = _student(difference[part], np.sqrt(variance), freedom)
            p[part] = np.where(seeded[part], own, p[part])
            error[part] = np.where(seeded[part], np.sqrt(variance), error[part])
            more[part] = of_seeds
    of = metric, str(PairTest(test)), scores.systems, first, second
    return Pairwise(*of, difference, deviation, error, p, queries, units.effective, wins, losses, more)


def other_hypothesis(scores: Scores) -> list[str]:
    """Metrics for which Wilcoxon's test does not test equality, because their queries differ in weight.

    The list is empty if every pair has a system with several seeds, because its p-value then comes from
    Student's t.

    Args:
        scores: first result of `owkg.judge.scores`.
    """
    if len(scores.systems) - scores.seeded.sum() < 2:
        return []
    return [name for name in scores.metrics if not _Units.of(_weighed(scores, name), name).even]


def difference_intervals(
    scores: Scores | Any, metric: str, *, level: float = 0.95
) -> tuple[Float64[np.ndarray, "pairs"], Float64[np.ndarray, "pairs"]]:
    """Confidence intervals of the difference of each pair of systems, over the queries.

    D = sum d_q / sum w_q, where d_q is the difference of the values of a query and w_q its weight; Student's
    t has one degree of freedom less than there are queries. Intervals are not corrected for the number of
    pairs.

    If all weights are equal, the variance is the variance of the mean of d_q. Half a query at each end of the
    values is added to it (Agresti and Min 2005), so that systems that agree on every query of a sample have
    an interval too.

    If weights differ, the variance V is the jackknife variance, with u_q = (d_q - D w_q) / (1 - h_q), where
    h_q is the share of query q in the total weight. It is changed twice:

    - V is multiplied by 1 + 24 K (1 - 1.5 / z^2), K = sum u^4 / (sum u^2)^2, on the side towards which
      heavier queries differ, if z^2 > 1.5. The score z is the sum of e_q = (d_q - D w_q) (sqrt w_q - c)
      divided by the root of sum e^2, where c is the weighted mean of sqrt w. The reason: if the difference
      depends on the weight, the sample may lack the heaviest queries, and K is the share of V that a heavy
      query has. Both constants are chosen by simulation.
    - Half a query of mean weight is added at each end of the values if the systems differ on at most 10
      queries, and (10 / number)^2 of it if they differ on more.

    If systems have several seeds, d_q is computed from means over seeds, and the variance of the metric over
    the seeds of each system is added (`owkg.stats.nested`): queries are paired, seeds are not. The degrees of
    freedom are Welch and Satterthwaite's. The half query that is added differs in one seed only, so that it
    adds less to the variance of a mean over several seeds.

    Args:
        scores: scores of at least two systems on at least two queries.
        metric: one of `scores.metrics`.
        level: confidence level, in (0, 1). Default 0.95.

    Returns:
        Lower and upper ends, [pairs] each, with the sign reversed if smaller is better, as in `pairwise`.

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
        Efron and Stein (Annals of Statistics 9, 1981), "The jackknife estimate of variance".
        Agresti and Min (2005), "Simple improved confidence intervals for comparing matched proportions".
    """
    scores = _weighed(scores, metric)
    each = contributions(scores, metric)
    systems, queries = each.shape
    if systems < 2 or queries < 2:
        raise ArgumentError(
            "scores", f"must have at least two systems and two queries, got {systems} and {queries}."
        )
    wanted = checks.scalar("level", checks.real("level", level, 0, 1, closed=False))
    first, second = np.triu_indices(systems, 1)
    low, high = np.empty(len(first)), np.empty(len(first))
    for part, middle, *ends, _ in _nested(scores, metric, each, first, second):
        below, above = (
            special.stdtrit(np.maximum(freedom, 0.5), (1 + wanted) / 2) * np.sqrt(variance)
            for variance, freedom in ends
        )
        low[part], high[part] = middle - below, middle + above
    return low, high


def _nested(
    scores: Scores, metric: str, each: np.ndarray, first: np.ndarray, second: np.ndarray
) -> Iterator[tuple[slice, np.ndarray, tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray]]:
    """Difference, (variance, freedom) below and above it, and variance over seeds, for chunks of pairs."""
    units = _Units.of(scores, metric)
    # The mean over seeds of a query that was not drawn varies less than a single seed.
    less = (1 / scores.num_seeds[first] ** 2 + 1 / scores.num_seeds[second] ** 2) / 2
    component, square = (x[first] + x[second] for x in scores.spread(scores.metrics.index(metric)))
    for part, gaps in _gaps(each, first, second):
        middle = gaps.mean(1)
        variance = units.variances(gaps, middle, less[part])
        of_seeds = component[part], square[part]
        below, above = (nested(v, units.freedom, *of_seeds) for v in (variance.below, variance.above))
        yield part, middle, below, above, np.maximum(of_seeds[0], 0)


def _weighed(scores: Scores | Any, metric: str) -> Scores | Any:
    """Scores of the queries with positive weight, because other queries carry no information."""
    if not isinstance(scores, Scores) or metric not in scores.metrics:
        return scores
    kept = scores.weight[scores.metrics.index(metric)] > 0
    if kept.all() or not kept.any():
        return scores
    return scores.of_queries(np.flatnonzero(kept))


class _Variances(NamedTuple):
    """Variances of the differences of pairs.

    Attributes:
        below, above: variance below and above the difference, [pairs].
        wider: factor of the variance towards 0, because unseen queries may be larger than all seen ones,
            [pairs].
    """

    below: Float64[np.ndarray, "pairs"]
    above: Float64[np.ndarray, "pairs"]
    wider: Float64[np.ndarray, "pairs"] | float = 1.0


class _Units(NamedTuple):
    """Queries as sampling units of one metric.

    Attributes:
        relative: weights divided by their mean, [queries].
        even: whether all weights are equal.
        effective: number of queries of equal weight that carry the same information, (sum w)^2 / sum w^2
            (Kish 1965).
        unseen: variance of half an effective query at each end of the values.
    """

    relative: Float64[np.ndarray, "queries"]
    even: bool
    effective: float
    unseen: float

    @classmethod
    def of(cls, scores: Scores, metric: str) -> "_Units":
        """Sampling units of one of `scores.metrics`."""
        which = scores.metrics.index(metric)
        weight = scores.weight[which]
        values = scores.value[which] / np.where(weight > 0, weight, 1)
        even = bool(np.ptp(weight) <= _EQUAL * weight.max())
        squares = np.einsum("i,i->", weight, weight)
        effective = float(len(weight) if even else weight.sum() ** 2 / squares)
        return cls(weight / weight.mean(), even, effective, unseen_variance(values, effective))

    @property
    def freedom(self) -> int:
        """Degrees of freedom of Student's t."""
        return len(self.relative) - 1

    def variances(
        self,
        gaps: Float64[np.ndarray, "pairs queries"],
        middle: Float64[np.ndarray, "pairs"],
        less: Float64[np.ndarray, "pairs"] | float = 1.0,
    ) -> _Variances:
        """Variances of the mean differences `middle` of contributions that differ by `gaps`.

        The share of `unseen` that a pair gets is `less`, because its values are means over seeds.
        """
        queries = len(self.relative)
        rest = gaps - middle[:, None] * self.relative
        if self.even:
            both = rest.var(1, ddof=1) / queries + less * self.unseen
            return _Variances(both, both)
        largest = np.abs(gaps).max(1)
        rest /= np.where(largest > 0, largest, 1)[:, None]
        rest[np.abs(rest) <= _EQUAL] = 0
        share = 1 - self.relative / queries
        # The jackknife. If one query has all the weight, nothing is left without it.
        squares = np.square(rest / np.where(share > 0, share, np.inf))
        seen = squares.sum(1)
        heavy = np.einsum("pq,pq->p", squares, squares) / np.where(seen > 0, seen, 1) ** 2
        # The score: do larger queries differ?
        root = np.sqrt(self.relative)
        rest *= root - (root * self.relative).mean()
        score, of_score = rest.sum(1), np.einsum("pq,pq->p", rest, rest)
        noticed = np.divide(_NOTICED * of_score, score**2, out=np.ones_like(score), where=score != 0)
        wider = 1 + _UNSEEN_SHARES * heavy * np.maximum(0, 1 - noticed)
        below, above = np.where(score < 0, wider, 1), np.where(score > 0, wider, 1)
        seen *= (largest / queries) ** 2
        differ = np.count_nonzero(np.abs(gaps) > _EQUAL * largest.max(initial=0), axis=1)
        scarce = np.minimum(1, _ADDED_UP_TO / np.maximum(differ, 1)) ** 2
        least = scarce * less * self.unseen * (self.effective / queries) ** 2
        return _Variances(seen * below + least, seen * above + least, np.where(middle > 0, below, above))


def unseen_variance(values: np.ndarray, effective: float) -> float:
    """Variance of a mean difference from half a query at each end of the values (Agresti and Min 2005)."""
    return float(2 * _ADDED * ((np.ptp(values) or np.abs(values).max()) / effective) ** 2)


def _gaps(each: np.ndarray, first: np.ndarray, second: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Differences of the contributions, [pairs, queries], in chunks of pairs."""
    size = max(1, _CHUNK // each.shape[1])
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        yield part, each[first[part]] - each[second[part]]


def _student(mean: np.ndarray, error: np.ndarray, freedom: float | np.ndarray) -> np.ndarray:
    """Two-sided p-values of Student's t; 1 for equal metrics, 0 if every query differs by the same amount."""
    t = np.full(mean.shape, np.inf)
    np.divide(np.abs(mean), error, out=t, where=error > 0)
    return 2 * special.stdtr(freedom, -np.where(mean == 0, 0.0, t))


def _wilcoxon(gaps: np.ndarray) -> np.ndarray:
    """P-values of SciPy's Wilcoxon test; 1 if no query differs."""
    from scipy import stats  # takes a quarter of a second, which only this test needs

    p = np.ones(len(gaps))
    # Equal differences must have equal ranks although their last digits may differ.
    gaps = round_ties(gaps)
    if (some := gaps.any(1)).any():
        p[some] = np.asarray(stats.wilcoxon(gaps[some], axis=1, method="asymptotic"))[1]
    return p
