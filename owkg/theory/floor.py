"""Fewest queries with which a rank weight can tell two models apart, overall and for a given focus."""

from typing import NamedTuple, Unpack

import numpy as np
from jaxtyping import Float64
from numpy.typing import ArrayLike
from scipy import linalg, special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.openworld import INDEPENDENT, MissingModel, PairArguments, Setting
from owkg.openworld.setting import pair
from owkg.rank_weights.fitted import queries_for_consistency
from owkg.rank_weights.focus import best_decreasing, focus_of_bins
from owkg.theory import missing_counts
from owkg.theory.grids import log_factorials


class Floor(NamedTuple):
    """Fewest queries over all rank weights that are constant beyond the full-test answers of a query.

    Attributes:
        queries: minimum over such weights h(r), which may rise or fall. A weight that also changes at
            later ranks may need fewer queries.
        weight: weight that attains `queries`: h(1), h(2), ..., and 0 at later ranks, scaled so that the
            largest absolute value is 1.
        decreasing_queries: minimum over the weights among these that never rise with the rank.
        decreasing_weight: weight that attains `decreasing_queries`, with h(1) = 1.
    """

    queries: float
    weight: Float64[np.ndarray, "ranks"]
    decreasing_queries: float
    decreasing_weight: Float64[np.ndarray, "ranks"]


class RankMoments(NamedTuple):
    """Moments of the rank counts X of a query, where X(r) is the share of its test answers with rank r.

    Attributes:
        given: E[X | m missing answers], [m, ranks].
        chances: P(m), [m].
        covariance: covariance of X, [ranks, ranks].
    """

    given: Float64[np.ndarray, "missing ranks"]
    chances: Float64[np.ndarray, "missing"]
    covariance: Float64[np.ndarray, "ranks ranks"]

    @property
    def mean(self) -> Float64[np.ndarray, "ranks"]:
        """E[X], [ranks]."""
        return self.chances @ self.given


def query_floor(
    *,
    inconsistency: float,
    paired: bool = False,
    missing: MissingModel = INDEPENDENT,
    **models: Unpack[PairArguments],
) -> Floor:
    """Fewest queries with which some rank weight ranks two models in the right order.

    The weights are constant beyond the full-test answers of a query, where ranks are uniform under the model.

    The mean of h(rank) over the answers of a query is h'X, where X counts the answers by rank. Let d be the
    difference of E[X] between the models and S the covariance of a query's difference. Then h needs
    z^2 h'Sh / (h'd)^2 queries (`required_queries`). The minimum over all such h is z^2 / (d' S^-1 d). The
    minimum over decreasing h is a quadratic program, because such an h is a sum of steps with nonnegative
    weights.

    Args:
        inconsistency: tolerated P(the weaker model looks better), in (0, 0.5).
        paired: whether both models are measured on the same test set. Default False.
        missing: missing-fact model. Default `INDEPENDENT`.
        models: one setting and the second model (`owkg.openworld.PairArguments`).

    Raises:
        ValueError: if an argument is out of range, the strengths are equal, or an argument is an array.

    Examples:
        >>> pair = dict(strength=0.7, other_strength=0.75, inconsistency=0.05)
        >>> found = query_floor(**pair, sparsity=0.35, num_answers=43, num_entities=14505)
        >>> round(found.queries), round(found.decreasing_queries)
        (14, 16)
    """
    change, spread, tolerated = _change(inconsistency, paired, missing, models)
    # Ranks that no answer reaches have no variance.
    reached = np.diag(spread) > 1e-18
    scale = np.sqrt(np.diag(spread)[reached])
    correlation = spread[np.ix_(reached, reached)] / np.outer(scale, scale)
    # If every rank can be reached, the counts add up to 1 and their covariance is singular.
    root = linalg.cholesky(correlation + 1e-12 * np.eye(len(scale)), lower=True)
    weight = np.zeros(len(change))
    weight[reached] = linalg.cho_solve((root, True), change[reached] / scale) / scale
    decreasing = best_decreasing(change, spread, np.arange(1, len(change) + 1))
    largest = np.abs(weight).max()
    return Floor(
        _needed(weight, change, spread, tolerated),
        weight / largest if largest > 0 else weight,
        _needed(decreasing, change, spread, tolerated),
        decreasing,
    )


class FocusCurve(NamedTuple):
    """Best weights that never rise with the rank, one for each minimum focus.

    Attributes:
        focus: focus of each weight, at least the requested minimum; NaN if no weight of that focus suffices.
        queries: queries that each weight needs; infinite if no weight suffices.
        weight: h(1), h(2), ..., and 0 at later ranks, with h(1) = 1. `owkg.rank_weights.binned_weight`
            turns a weight into a metric.
    """

    focus: Float64[np.ndarray, "focuses"]
    queries: Float64[np.ndarray, "focuses"]
    weight: Float64[np.ndarray, "focuses ranks"]


class FocusedWeight(NamedTuple):
    """One weight of a `FocusCurve`.

    Attributes:
        focus: focus of the weight; NaN if no weight suffices.
        queries: queries that the weight needs; infinite if no weight suffices.
        weight: h(1), h(2), ..., and 0 at later ranks.
    """

    focus: float
    queries: float
    weight: Float64[np.ndarray, "ranks"]


def focus_curve(
    *,
    focus: ArrayLike,
    inconsistency: float,
    paired: bool = False,
    missing: MissingModel = INDEPENDENT,
    **models: Unpack[PairArguments],
) -> FocusCurve:
    """Fewest queries for each minimum focus on the top ranks, with the weights that attain them.

    The weights never rise with the rank and are constant beyond the full-test answers of a query. Focus is
    defined in `owkg.rank_weights.focus_of` as 1 / expected browsing depth; a focus of 0.1 looks no deeper
    than Hits@10. Focus 0 gives the decreasing weight of `query_floor`; a larger focus needs more queries.

    Args:
        focus: minimum focuses, a one-dimensional array of numbers in [0, 1].
        inconsistency: tolerated P(the weaker model looks better), in (0, 0.5).
        paired: whether both models are measured on the same test set. Default False.
        missing: missing-fact model. Default `INDEPENDENT`.
        models: one setting and the second model (`owkg.openworld.PairArguments`).

    Raises:
        ValueError: if an argument is out of range, the strengths are equal, or an argument other than
            `focus` is an array.

    Examples:
        >>> pair = dict(strength=0.7, other_strength=0.75, inconsistency=0.05)
        >>> world = dict(sparsity=0.35, num_answers=43, num_entities=14505)
        >>> focus_curve(focus=[0, 0.05, 0.1, 0.2], **pair, **world).queries.tolist()
        [16.0, 16.0, 28.0, 138.0]
    """
    least = checks.real("focus", focus, 0, 1)
    if least.ndim != 1:
        raise ArgumentError("focus", f"must have one axis, got an array of shape {least.shape}.")
    change, spread, tolerated = _change(inconsistency, paired, missing, models)
    ends = np.arange(1, len(change) + 1)
    weight = np.stack([best_decreasing(change, spread, ends, float(one)) for one in least])
    return FocusCurve(
        np.array([focus_of_bins(one, ends) for one in weight]),
        np.array([_needed(one, change, spread, tolerated) for one in weight]),
        weight,
    )


def best_weight(
    *,
    focus: float,
    inconsistency: float,
    paired: bool = False,
    missing: MissingModel = INDEPENDENT,
    **models: Unpack[PairArguments],
) -> FocusedWeight:
    """Rank weight that needs the fewest queries among the weights with a given minimum focus.

    Args:
        focus: minimum focus, in [0, 1]; 1 / K looks no deeper than Hits@K.
        inconsistency, paired, missing, models: as in `focus_curve`; the result is one point of that curve.

    Raises:
        ValueError: as `focus_curve`.

    Examples:
        >>> from owkg.rank_weights import MRR, focus_of
        >>> pair = dict(strength=0.7, other_strength=0.75, inconsistency=0.05)
        >>> world = dict(sparsity=0.35, num_answers=43, num_entities=14505)
        >>> int(best_weight(focus=focus_of(MRR, 14505), **pair, **world).queries)  # MRR needs 1,692
        33
    """
    one = checks.real_number("focus", focus, 0, 1)
    found = focus_curve(focus=[one], inconsistency=inconsistency, paired=paired, missing=missing, **models)
    return FocusedWeight(float(found.focus[0]), float(found.queries[0]), found.weight[0])


def _change(
    inconsistency: float, paired: bool, missing: MissingModel, models: PairArguments
) -> tuple[np.ndarray, np.ndarray, float]:
    """d (stronger minus weaker model), S (covariance of a query's difference) and checked inconsistency."""
    tolerated = checks.scalar(
        "inconsistency", checks.real("inconsistency", inconsistency, 0, 0.5, closed=False)
    )
    settings = pair(**models)
    if settings[0].shape:
        raise ArgumentError("strength", "and the other arguments must be single numbers, not arrays.")
    if settings[0].strength == settings[1].strength:
        raise ArgumentError(
            "other_strength", f"must differ from `strength`, got {models['other_strength']!r}."
        )
    one, two = (rank_count_moments(setting, missing) for setting in settings)
    spread = one.covariance + two.covariance
    if checks.flag("paired", paired):
        apart = [moments.given - moments.mean for moments in (one, two)]
        shared = (apart[0] * one.chances[:, None]).T @ apart[1]
        spread = spread - shared - shared.T
    hits = np.cumsum([one.mean, two.mean], axis=1)
    gap = hits[1] - hits[0]
    # As in `required_queries`, a gap smaller than the rounding error counts as 0.
    change = np.diff(np.where(np.abs(gap) < 1e-14 * hits.max(axis=0), 0.0, gap), prepend=0.0)
    if settings[1].strength < settings[0].strength:
        change = -change
    return change, spread, tolerated


def _needed(weight: np.ndarray, change: np.ndarray, spread: np.ndarray, tolerated: float) -> float:
    return float(queries_for_consistency(weight @ change, weight @ spread @ weight, tolerated))


def rank_count_moments(setting: Setting, missing: MissingModel = INDEPENDENT) -> RankMoments:
    """Exact moments of the rank counts of one setting, over the ranks 1, ..., number of answers + 1.

    Given m missing answers of which k are positive, a positive test answer has a uniform rank on 1 .. k + 1
    and a negative one on k + 1 .. N - n + m + 1, where N counts entities and n counts answers. Two test
    answers of the same class have P(r, s) = (1 + [r = s]) / (c (c + 1)), where c is the number of possible
    ranks; two test answers of different classes have independent ranks.
    """
    answers, entities = int(setting.num_answers), int(setting.num_entities)
    l1, l2 = (float(p) for p in setting.conditional_strengths())
    ranks = np.arange(1, answers + 2)
    row = tuple(np.asarray(part) for part in missing_counts.parameters(missing, setting, answers))
    with np.errstate(divide="ignore"):
        log_factorial = log_factorials(answers + 1)
        chances = missing_counts.missing_count_pmf(missing, row, np.asarray(answers), log_factorial)
    chances = chances[:answers]
    given = np.zeros((answers, len(ranks)))
    second = np.zeros((answers, len(ranks), len(ranks)))
    equal = np.eye(len(ranks))
    for m in range(answers):
        tests = answers - m
        for k, chance in enumerate(_binomial(m, l1)):
            last = entities - answers + m + 1
            up, rest = (ranks <= k + 1) * 1.0, ((ranks > k) & (ranks <= last)) * 1.0
            n = last - k
            hit, miss = up / (k + 1), rest / n
            mean = l2 * hit + (1 - l2) * miss
            two = l2**2 * (np.outer(up, up) + equal * up) / ((k + 1) * (k + 2))
            two += (1 - l2) ** 2 * (np.outer(rest, rest) + equal * rest) / (n * (n + 1))
            two += l2 * (1 - l2) * (np.outer(hit, miss) + np.outer(miss, hit))
            given[m] += chance * mean
            second[m] += chance * (np.diag(mean) / tests + (1 - 1 / tests) * two)
    mean = chances @ given
    covariance = np.einsum("m,mrs->rs", chances, second) - np.outer(mean, mean)
    return RankMoments(given, chances, covariance)


def _binomial(n: int, p: float) -> Float64[np.ndarray, "counts"]:
    """P(Binomial(n, p) = k) for k = 0 .. n."""
    k = np.arange(n + 1)
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.exp(ways + special.xlogy(k, p) + special.xlog1py(n - k, -p))
