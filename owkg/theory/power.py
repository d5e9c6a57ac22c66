"""Theorem 4.2 and Corollary 4.4: how often the weaker model looks better, and how many queries prevent it."""

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.openworld import INDEPENDENT, MissingModel, PairArguments
from owkg.openworld.setting import pair
from owkg.rank_weights import RankWeight
from owkg.rank_weights.fitted import queries_for_consistency
from owkg.rank_weights.registry import checked_metric
from owkg.theory.moments import covariance, moments

# Relative error of an expectation, a sum of some hundred rounded products.
_ROUNDING = 1e-14


def _gap_and_variance(
    metric: RankWeight | str,
    models: PairArguments,
    paired: bool,
    missing: MissingModel,
    answer_weights: ArrayLike | None,
) -> tuple[np.ndarray | np.floating, np.ndarray | np.floating]:
    """By how much the stronger model's mean is better, and the variance of one query's difference."""
    settings = pair(**models)
    difference = settings[1].strength - settings[0].strength
    if np.any(difference == 0):
        raise ArgumentError(
            "other_strength", f"must differ from `strength`, got {models['other_strength']!r}."
        )
    one, two = (
        moments(metric, missing=missing, answer_weights=answer_weights, **setting.arguments())
        for setting in settings
    )
    better = np.sign(difference) * (1 if checked_metric(metric).larger_is_better else -1)
    if answer_weights is not None:
        if np.any(better != better[..., :1]):
            raise ArgumentError("strength", "and `other_strength` must keep their order along the histogram.")
        better = better[..., 0]
    gap = better * (two.expectation - one.expectation)
    # Hits@1 among many missing facts hardly depends on strength: below rounding there is no gap to see.
    rounding = _ROUNDING * np.maximum(np.abs(one.expectation), np.abs(two.expectation))
    gap = np.where(np.abs(gap) < rounding, 0.0, gap)
    spread = one.variance + two.variance
    if paired:
        spread = spread - 2 * covariance(metric, missing=missing, answer_weights=answer_weights, **models)
    return gap, np.maximum(spread, 0)


def inconsistency_probability(
    metric: RankWeight | str,
    *,
    num_queries: ArrayLike,
    paired: bool = False,
    missing: MissingModel = INDEPENDENT,
    answer_weights: ArrayLike | None = None,
    **models: Unpack[PairArguments],
) -> Any:
    """P(the weaker of two models shows the better mean over `num_queries` queries).

    Theorem 4.2 with the exact moments of both models in the place of the logarithm and one estimated
    variance: Phi(-gap sqrt(Q) / sqrt(V_A + V_B)), less 2 Cov under the root when `paired`. Normal in the
    mean over queries, exact otherwise. Above 1/2 where correlation reverses the order of the means: then more
    queries make it worse.

    Args:
        metric: the rank metric, or its name.
        num_queries: Q, at least 1.
        paired: whether both are measured on one test set, so that they share its missing facts.
        missing, answer_weights: as in `moments`.
        models: the setting and the second model; the larger strength is the stronger
            (`owkg.openworld.PairArguments`).

    Raises:
        ValueError: if an argument leaves its interval, or the strengths are equal.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Theorem 4.2.
    """
    queries = checks.integer("num_queries", num_queries, 1)
    gap, spread = _gap_and_variance(metric, models, paired, missing, answer_weights)
    checks.common_shape(num_queries=queries, models=gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gap * np.sqrt(queries / spread)
    # No gap at all, as for Hits@K with K above every rank: a coin toss.
    return np.where(gap == 0, 0.5, special.ndtr(-z))[()]


def required_queries(
    metric: RankWeight | str,
    *,
    inconsistency: ArrayLike,
    paired: bool = False,
    missing: MissingModel = INDEPENDENT,
    answer_weights: ArrayLike | None = None,
    **models: Unpack[PairArguments],
) -> Any:
    """The fewest queries for which `inconsistency_probability` is at most `inconsistency`, in (0, 0.5).

    Corollary 4.4 with exact moments: ceil(z^2 (V_A + V_B [- 2 Cov]) / gap^2), z = Phi^-1(1 - inconsistency).
    A whole number as float; infinite where no number suffices, because correlation makes the weaker model's
    mean the better one, or because the two means do not differ in double precision. The other arguments are
    those of `inconsistency_probability`.

    Raises:
        ValueError: if an argument leaves its interval, or the strengths are equal.

    Examples:
        >>> from owkg.rank_weights import MRR
        >>> pair = dict(strength=0.7, other_strength=0.75, inconsistency=0.05)
        >>> world = dict(sparsity=0.35, num_answers=43, num_entities=14505)
        >>> int(required_queries(MRR, **pair, **world))
        1692
        >>> int(required_queries(MRR, **pair, **world, paired=True))
        1482

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.4.
    """
    tolerated = checks.real("inconsistency", inconsistency, 0, 0.5, closed=False)
    gap, spread = _gap_and_variance(metric, models, paired, missing, answer_weights)
    checks.common_shape(inconsistency=tolerated, models=gap)
    return queries_for_consistency(gap, spread, tolerated)


def log_inconsistency_probability(
    *,
    strength: ArrayLike,
    other_strength: ArrayLike,
    sparsity: ArrayLike,
    num_answers: ArrayLike,
    num_queries: ArrayLike,
    variance: ArrayLike,
    other_variance: ArrayLike | None = None,
) -> Any:
    """Theorem 4.2 in the paper's form, for MRR without correlation: both means by the logarithm.

    Phi(-|ln(l'/l)| sqrt(Q) / (beta (N+1) sqrt(V + V'))).

    Args:
        strength, other_strength: l of the two models, in (0, 1].
        sparsity, num_answers, num_queries: beta, N and Q.
        variance, other_variance: V of one query's MRR, of each model, above 0, measured or from `moments`.
            Without the second, the first is of both, as in Corollary 4.4.

    Raises:
        ValueError: if an argument leaves its interval.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Theorem 4.2, equation 5.
    """
    l = _positive("strength", strength)
    other = _positive("other_strength", other_strength)
    beta = checks.real("sparsity", sparsity, 0, 1, closed=False)
    answers = checks.integer("num_answers", num_answers, 1)
    queries = checks.integer("num_queries", num_queries, 1)
    v = checks.real("variance", variance, 0, np.inf, closed=False)
    w = v if other_variance is None else other_variance
    w = checks.real("other_variance", w, 0, np.inf, closed=False)
    checks.common_shape(
        strength=l,
        other_strength=other,
        sparsity=beta,
        num_answers=answers,
        num_queries=queries,
        variance=v,
        other_variance=w,
    )
    gap = np.abs(np.log(other / l)) / (beta * (answers + 1))
    return special.ndtr(-gap * np.sqrt(queries / (v + w)))[()]


def log_required_queries(
    *,
    strength: ArrayLike,
    difference: ArrayLike,
    sparsity: ArrayLike,
    num_answers: ArrayLike,
    variance: ArrayLike,
    inconsistency: ArrayLike,
) -> Any:
    """Corollary 4.4 in the paper's form, for MRR: c / difference^2, c = 2 (beta l (N+1) z)^2 V; not rounded.

    The corollary linearises the logarithm around l. `required_queries` needs neither.

    Args:
        strength, difference: l in (0, 1], and l' - l above 0.
        sparsity, num_answers: beta and N.
        variance: V of one query's MRR, above 0.
        inconsistency: tolerated probability of the wrong order, in (0, 0.5).

    Raises:
        ValueError: if an argument leaves its interval.

    Examples:
        >>> c = dict(strength=0.7, sparsity=0.35, num_answers=43, inconsistency=0.05)
        >>> round(float(log_required_queries(**c, difference=1, variance=7.4e-3)), 2)
        4.65

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.4; docs/evidence/errata.md corrects its example.
    """
    l = _positive("strength", strength)
    change = checks.real("difference", difference, 0, np.inf, closed=False)
    beta = checks.real("sparsity", sparsity, 0, 1, closed=False)
    answers = checks.integer("num_answers", num_answers, 1)
    v = checks.real("variance", variance, 0, np.inf, closed=False)
    tolerated = checks.real("inconsistency", inconsistency, 0, 0.5, closed=False)
    checks.common_shape(
        strength=l, difference=change, sparsity=beta, num_answers=answers, variance=v, inconsistency=tolerated
    )
    z = special.ndtri(tolerated)
    return (2 * v * (beta * l * (answers + 1) * z / change) ** 2)[()]


def _positive(name: str, value: ArrayLike) -> np.ndarray:
    strength = checks.real(name, value, 0, 1)
    checks.require(name, strength, strength > 0, "in (0, 1]")
    return strength
