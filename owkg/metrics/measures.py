"""Metrics as data: a measure, the weighting of tasks, the adjustment for chance."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

import numpy as np

from owkg import checks
from owkg.errors import ArgumentError
from owkg.metrics.list_gains import GAINS
from owkg.rank_weights.catalogue import MRR, parameter_text
from owkg.rank_weights.rank_weight import RankWeight, probed


@dataclass(frozen=True)
class Median:
    """The (weighted) median rank, or its inverse; ties spread over their ranks."""

    inverse: bool = False


@dataclass(frozen=True)
class Probe:
    """PROBE's rank transformer (r^-a - N^-a) / (1 - N^-a): 1 at rank 1, 0 at rank N (eq. 1 and 2).

    Sharpness 0 is the limit 1 - ln r / ln N, infinity is Hits@1, and -1 the mean rank: 1 - (r - 1)/(N - 1).
    """

    sharpness: float


@dataclass(frozen=True)
class BestAnswer:
    """Of each query, the weight of its best answer's rank; a mean over queries."""

    metric: RankWeight


@dataclass(frozen=True)
class AveragePrecision:
    """Of each query, AP@k over its answers as trec_eval's map_cut_k; a mean over queries."""

    cutoff: int


@dataclass(frozen=True)
class DiscountedGain:
    """Of each query, gains of the answers in the first k positions; a mean over queries.

    nDCG@k as trec_eval's ndcg_cut_k, or another of `owkg.metrics.list_gains.GAINS`. Where no list
    is longer than `longest`, positions after it are not looked at.
    """

    cutoff: int
    gain: str = "ndcg"
    longest: int | None = None


class Spread(StrEnum):
    """How ranks scatter; numbers without a chance level here."""

    COUNT = "count"
    STANDARD_DEVIATION = "standard deviation"
    VARIANCE = "variance"
    MEDIAN_ABSOLUTE_DEVIATION = "median absolute deviation"  # times 1.4826, as of a normal distribution
    MAX_RANK = "max rank"  # the power mean M_inf
    MIN_RANK = "min rank"  # M_-inf


@dataclass(frozen=True)
class Dispersion:
    """A number about the scatter of the ranks rather than how good they are."""

    kind: Spread


Measure = RankWeight | Median | Dispersion | Probe | BestAnswer | AveragePrecision | DiscountedGain
MACRO = (BestAnswer, AveragePrecision, DiscountedGain)


def rises(measure: Measure) -> bool:
    """Whether the measure grows as ranks improve."""
    if isinstance(measure, Median):
        return measure.inverse
    metric = measure.metric if isinstance(measure, BestAnswer) else measure
    return not isinstance(metric, RankWeight) or metric.larger_is_better


@dataclass(frozen=True)
class Weighting:
    """Weight of a task beside its own: (popularity + e)^-b (relation popularity + e)^-c (N - 1)^d."""

    popularity: float = 0.0
    relation_popularity: float = 0.0
    negatives: float = 0.0
    epsilon: float = 1.0


class Adjustment(StrEnum):
    """What is done with a metric M, its chance expectation E and variance V, and its best value B."""

    NONE = "none"
    RATIO = "ratio"  # M / E
    INDEX = "index"  # (M - E) / (B - E)
    Z = "z"  # (M - E) / sqrt(V), signed so that larger is better
    CDF = "cdf"  # Phi(z), between 0 and 1


@dataclass(frozen=True)
class Metric:
    """One number about a table of ranks.

    Attributes:
        name: what tables and files call it.
        measure: what is averaged.
        weighting: how tasks weigh beside their own weight.
        adjustment: how chance is taken out.
    """

    name: str
    measure: Measure
    weighting: Weighting = field(default=Weighting())
    adjustment: Adjustment = Adjustment.NONE

    def __str__(self) -> str:
        return self.name

    @property
    def larger_is_better(self) -> bool:
        """Which way the number goes as ranks improve; every index and z metric goes up."""
        if self.adjustment in (Adjustment.INDEX, Adjustment.Z, Adjustment.CDF):
            return True
        return rises(self.measure)

    @property
    def rank_weight(self) -> RankWeight | None:
        """What it is the plain mean of, or a function of that mean; None of what is weighted or adjusted."""
        plain = self.weighting == EQUAL and self.adjustment is Adjustment.NONE
        return self.measure if plain and isinstance(self.measure, RankWeight) else None

    @property
    def is_plain_mean(self) -> bool:
        """Whether it is the plain mean of a rank weight."""
        return self.rank_weight is not None and self.rank_weight.link is None

    @property
    def falls_with_rank(self) -> bool:
        """Whether it is the plain mean of a rank weight that falls with the rank, such as MRR and Hits@K."""
        return self.is_plain_mean and self.larger_is_better

    @property
    def is_mean(self) -> bool:
        """Whether it is a ratio of sums over queries: a mean, plain or adjusted as an index."""
        linked = isinstance(self.measure, RankWeight) and self.measure.link is not None
        plain = self.adjustment in (Adjustment.NONE, Adjustment.INDEX)
        return plain and not linked and not isinstance(self.measure, Median | Dispersion)

    @property
    def needs_lists(self) -> bool:
        """Whether it needs all answers to a query in one list: a mean over queries."""
        return isinstance(self.measure, MACRO)


EQUAL = Weighting()


def micro(metric: RankWeight) -> Metric:
    """The plain micro average of a metric: over ranking tasks, each with its own weight.

    Raises:
        ValueError: if `metric` is no RankWeight.
    """
    probed(metric)
    return Metric(metric.name, metric)


def probe(
    sharpness: float, robustness: float = 0.0, relation_robustness: float = 0.0, epsilon: float = 1.0
) -> Metric:
    """PROBE: the rank transformer of a sharpness, averaged with weights that fall with popularity.

    Args:
        sharpness: a >= -1 of the rank transformer; the limits 0 and infinity are allowed. Below 0, bad ranks
            count most; -1 is the mean rank.
        robustness: b >= 0, weights (popularity of the answer + epsilon)^-b.
        relation_robustness: c >= 0, weights (relation popularity + epsilon)^-c, of the later extension.
        epsilon: above 0; the paper calls it small, and does not print it. With 1, an answer without training
            triples has weight 1.

    Raises:
        ValueError: if one is out of range, or a robustness or epsilon is infinite.

    References:
        How Sharp and Bias-Robust is a Model? Dual Evaluation Perspectives on Knowledge Graph Completion,
        WSDM 2026; Generalized Rank-based Evaluation for Knowledge Graph Completion, 2026, eq. 1 to 5.
    """
    sharp = np.asarray(sharpness)
    if not (sharp.ndim == 0 and sharp.dtype.kind == "f" and sharp == np.inf):
        sharp = checks.real("sharpness", sharpness, -1, float("inf"))
    a = checks.scalar("sharpness", sharp)
    b = checks.scalar("robustness", checks.real("robustness", robustness, 0, float("inf")))
    c = checks.scalar(
        "relation_robustness", checks.real("relation_robustness", relation_robustness, 0, float("inf"))
    )
    e = checks.scalar("epsilon", checks.real("epsilon", epsilon, 0, float("inf"), closed=False))
    parameters = [a, b] + ([c] if c or e != 1 else []) + ([e] if e != 1 else [])
    name = f"probe@{','.join(parameter_text(x) for x in parameters)}"
    return Metric(name, Probe(a), Weighting(popularity=b, relation_popularity=c, epsilon=e))


def stratified(metric: RankWeight, exponent: float) -> Metric:
    """A metric whose tasks weigh (popularity of the answer + 1)^-b (Mohamed et al. 2020).

    The one added is the test triple itself: an answer that training never shows is met once. Mohamed et al.
    weigh tasks by the popularity of their relation as well, which these metrics do not.

    Raises:
        ValueError: if `exponent` is negative or not finite.
    """
    probed(metric)
    b = checks.scalar("exponent", checks.real("exponent", exponent, 0, float("inf")))
    return Metric(f"strat-{metric.name}@{parameter_text(b)}", metric, Weighting(popularity=b))


def stratified_mrr(exponent: float) -> Metric:
    """strat-mrr@B, `stratified` of the mean reciprocal rank."""
    return stratified(MRR, exponent)


def macro(metric: RankWeight) -> Metric:
    """The mean over queries of the weight of the best answer's rank (Zhou et al. 2022).

    Raises:
        ValueError: if the metric has a link: what would be averaged over queries is not clear.
    """
    if probed(metric).link is not None:
        raise ArgumentError(
            "metric", f"of a macro mean must be a mean of a rank weight, got {metric.name!r}."
        )
    return Metric(f"macro-{metric.name}", BestAnswer(metric))


# The variance of AP@k by chance takes k steps over up to k answers met.
_DEEPEST = 1000


def macro_map(cutoff: float) -> Metric:
    """The mean over queries of AP@k (Zhou et al. 2022 use k = 20), k at most 1,000 as trec_eval's.

    Raises:
        ValueError: if `cutoff` is no whole number in [1, 1000].
    """
    k = _cutoff(cutoff)
    if k > _DEEPEST:
        raise ArgumentError("k", f"of macro-map must be at most {_DEEPEST:,}, got {k}.")
    return Metric(f"macro-map@{k}", AveragePrecision(k))


def macro_ndcg(cutoff: float) -> Metric:
    """The mean over queries of nDCG@k (Zhou et al. 2022 use k = 20)."""
    return macro_gain("ndcg", cutoff)


def macro_gain(gain: str, cutoff: float) -> Metric:
    """The mean over queries of a metric of `owkg.metrics.list_gains.GAINS` at a cutoff.

    Raises:
        ValueError: if there is no such metric, or `cutoff` is no whole number of at least 1.
    """
    if gain not in GAINS:
        raise ArgumentError("gain", f"must be one of {', '.join(GAINS)}, got {gain!r}.")
    return Metric(f"macro-{gain}@{_cutoff(cutoff)}", DiscountedGain(_cutoff(cutoff), gain))


def _cutoff(k: float) -> int:
    return checks.whole("k", k, 1)


@cache
def probe_loss(sharpness: float) -> RankWeight:
    """g of PROBE's score 1 - g(r) / g(N), as a rank weight: |1 - r^-a|, computed stably; ln r at a = 0."""
    if sharpness == 0:
        return RankWeight(
            "log rank", lambda rank: rank.__array_namespace__().log(rank), larger_is_better=False
        )
    if sharpness == np.inf:
        return RankWeight("missed", lambda rank: (rank > 1).astype(rank.dtype), larger_is_better=False)
    return RankWeight(
        f"|1 - r^{parameter_text(-sharpness)}|",
        lambda rank: abs((xp := rank.__array_namespace__()).expm1(-sharpness * xp.log(rank))),
        larger_is_better=False,
    )
