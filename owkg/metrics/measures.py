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
    """Weighted median rank, or its inverse; the weight of a tie is spread over its ranks."""

    inverse: bool = False


@dataclass(frozen=True)
class Probe:
    """PROBE's rank transformer (r^-a - N^-a) / (1 - N^-a): 1 at rank 1, 0 at rank N (eq. 1 and 2).

    Sharpness 0 is the limit 1 - ln r / ln N, infinity is Hits@1, and -1 is the mean rank: 1 - (r - 1)/(N -
    1).
    """

    sharpness: float


@dataclass(frozen=True)
class BestAnswer:
    """Mean over queries of the weight of the rank of the query's best answer."""

    metric: RankWeight


@dataclass(frozen=True)
class AveragePrecision:
    """Mean over queries of AP@k over the query's answers, as trec_eval's map_cut_k."""

    cutoff: int


@dataclass(frozen=True)
class DiscountedGain:
    """Mean over queries of the gains of the answers in the first k positions.

    The gain is nDCG@k, as trec_eval's ndcg_cut_k, or another entry of `owkg.metrics.list_gains.GAINS`. If no
    list is longer than `longest`, positions after it are ignored.
    """

    cutoff: int
    gain: str = "ndcg"
    longest: int | None = None


class Spread(StrEnum):
    """Kinds of scatter of the ranks, reported without a chance level."""

    COUNT = "count"
    STANDARD_DEVIATION = "standard deviation"
    VARIANCE = "variance"
    MEDIAN_ABSOLUTE_DEVIATION = "median absolute deviation"  # times 1.4826, as for a normal distribution
    MAX_RANK = "max rank"  # the power mean M_inf
    MIN_RANK = "min rank"  # M_-inf


@dataclass(frozen=True)
class Dispersion:
    """Number about the scatter of the ranks, not about how good they are."""

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
    """Factors on top of a task's own weight: (popularity + e)^-b (relation popularity + e)^-c (N - 1)^d."""

    popularity: float = 0.0
    relation_popularity: float = 0.0
    negatives: float = 0.0
    epsilon: float = 1.0


class Adjustment(StrEnum):
    """Adjustments of a metric M, given its chance expectation E and variance V, and its best value B."""

    NONE = "none"
    RATIO = "ratio"  # M / E
    INDEX = "index"  # (M - E) / (B - E)
    Z = "z"  # (M - E) / sqrt(V), signed so that larger is better
    CDF = "cdf"  # Phi(z), between 0 and 1


@dataclass(frozen=True)
class Metric:
    """Metric of a rank table: a measure, a weighting and an adjustment under one name.

    Attributes:
        name: name in tables and files.
        measure: quantity that is averaged.
        weighting: weighting of the tasks, on top of each task's own weight.
        adjustment: adjustment for chance.
    """

    name: str
    measure: Measure
    weighting: Weighting = field(default=Weighting())
    adjustment: Adjustment = Adjustment.NONE

    def __str__(self) -> str:
        return self.name

    @property
    def larger_is_better(self) -> bool:
        """Whether the metric grows as ranks improve; every index, z and cdf metric does."""
        if self.adjustment in (Adjustment.INDEX, Adjustment.Z, Adjustment.CDF):
            return True
        return rises(self.measure)

    @property
    def rank_weight(self) -> RankWeight | None:
        """Rank weight that the metric averages, possibly with a link; None if weighted or adjusted."""
        plain = self.weighting == EQUAL and self.adjustment is Adjustment.NONE
        return self.measure if plain and isinstance(self.measure, RankWeight) else None

    @property
    def is_plain_mean(self) -> bool:
        """Whether the metric is the plain mean of a rank weight."""
        return self.rank_weight is not None and self.rank_weight.link is None

    @property
    def falls_with_rank(self) -> bool:
        """Whether the metric is the plain mean of a rank weight that falls with the rank (MRR, Hits@K)."""
        return self.is_plain_mean and self.larger_is_better

    @property
    def is_mean(self) -> bool:
        """Whether the metric is a ratio of sums over queries: a mean, plain or adjusted as an index."""
        linked = isinstance(self.measure, RankWeight) and self.measure.link is not None
        plain = self.adjustment in (Adjustment.NONE, Adjustment.INDEX)
        return plain and not linked and not isinstance(self.measure, Median | Dispersion)

    @property
    def needs_lists(self) -> bool:
        """Whether the metric is a mean over queries and needs all answers to a query in one list."""
        return isinstance(self.measure, MACRO)


EQUAL = Weighting()


def micro(metric: RankWeight) -> Metric:
    """Plain micro average of a rank weight: over ranking tasks, each with its own weight.

    Raises:
        ValueError: if `metric` is not a RankWeight.
    """
    probed(metric)
    return Metric(metric.name, metric)


def probe(
    sharpness: float, robustness: float = 0.0, relation_robustness: float = 0.0, epsilon: float = 1.0
) -> Metric:
    """PROBE metric: a rank transformer of given sharpness, averaged with weights that fall with popularity.

    Args:
        sharpness: a >= -1 of the rank transformer; the limits 0 and infinity are allowed. Below 0, bad ranks
            count most; -1 is the mean rank.
        robustness: b >= 0 of the weights (popularity of the answer + epsilon)^-b. Default 0.
        relation_robustness: c >= 0 of the weights (relation popularity + epsilon)^-c, from the later
            extension. Default 0.
        epsilon: number above 0. Default 1, so that an answer without training triples has weight 1; the paper
            calls epsilon small and does not give its value.

    Raises:
        ValueError: if an argument is out of range, or a robustness or epsilon is infinite.

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
    """Metric whose tasks have weight (popularity of the answer + 1)^-b (Mohamed et al. 2020).

    The added 1 is the test triple itself, so that an answer absent from training counts as seen once. Mohamed
    et al. also weight tasks by the popularity of their relation; these metrics do not.

    Raises:
        ValueError: if `exponent` is negative or not finite.
    """
    probed(metric)
    b = checks.scalar("exponent", checks.real("exponent", exponent, 0, float("inf")))
    return Metric(f"strat-{metric.name}@{parameter_text(b)}", metric, Weighting(popularity=b))


def stratified_mrr(exponent: float) -> Metric:
    """Metric strat-mrr@B: `stratified` with the mean reciprocal rank."""
    return stratified(MRR, exponent)


def macro(metric: RankWeight) -> Metric:
    """Mean over queries of the weight of the best answer's rank (Zhou et al. 2022).

    Raises:
        ValueError: if the metric has a link, because it is not clear what to average over queries.
    """
    if probed(metric).link is not None:
        raise ArgumentError(
            "metric", f"must be a mean of a rank weight for a macro mean, got {metric.name!r}."
        )
    return Metric(f"macro-{metric.name}", BestAnswer(metric))


# The variance of AP@k under random ranking takes k steps over up to k retrieved answers.
_DEEPEST = 1000


def macro_map(cutoff: float) -> Metric:
    """Mean over queries of AP@k (Zhou et al. 2022 use k = 20), k at most 1,000 as in trec_eval.

    Raises:
        ValueError: if `cutoff` is not a whole number in [1, 1000].
    """
    k = _cutoff(cutoff)
    if k > _DEEPEST:
        raise ArgumentError("k", f"must be at most {_DEEPEST:,} for macro-map, got {k}.")
    return Metric(f"macro-map@{k}", AveragePrecision(k))


def macro_ndcg(cutoff: float) -> Metric:
    """Mean over queries of nDCG@k (Zhou et al. 2022 use k = 20)."""
    return macro_gain("ndcg", cutoff)


def macro_gain(gain: str, cutoff: float) -> Metric:
    """Mean over queries of a metric of `owkg.metrics.list_gains.GAINS` at a cutoff.

    Raises:
        ValueError: if `gain` is unknown, or `cutoff` is not a whole number of at least 1.
    """
    if gain not in GAINS:
        raise ArgumentError("gain", f"must be one of {', '.join(GAINS)}, got {gain!r}.")
    return Metric(f"macro-{gain}@{_cutoff(cutoff)}", DiscountedGain(_cutoff(cutoff), gain))


def _cutoff(k: float) -> int:
    return checks.whole("k", k, 1)


@cache
def probe_loss(sharpness: float) -> RankWeight:
    """Rank weight g of PROBE's score 1 - g(r) / g(N): |1 - r^-a|, computed stably; ln r at a = 0."""
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
