"""Theorem 4.2 and Corollary 4.4: probability of the wrong order, and the queries that keep it small."""

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

# Relative error of an expectation, which is a sum of about a hundred rounded products.
_ROUNDING = 1e-14


def _gap_and_variance(
    metric: RankWeight | str,
    models: PairArguments,
    paired: bool,
    missing: MissingModel,
    answer_weights: ArrayLike | None,
) -> tuple[np.ndarray | np.floating, np.ndarray | np.floating]:
    """Advantage of the stronger model's mean, and variance of one query's difference."""
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
            raise ArgumentError("strength", "and `other_strength` must be in the same order in every bin.")
        better = better[..., 0]
    gap = better * (two.expectation - one.expectation)
    # Hits@1 with many missing facts hardly depends on strength. A gap below the rounding error counts as 0.
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
    """P(the weaker of two models has the better mean over `num_queries` queries).

    This is Theorem 4.2 with the exact moments of both models, instead of the logarithm and one estimated
    variance: Phi(-gap sqrt(Q) / sqrt(V_A + V_B)), and V_A + V_B - 2 Cov under the root if `paired`. The only
    approximation is that the mean over queries is normal. The probability exceeds 1/2 if correlation reverses
    the order of the means; more queries then make it larger.

    Args:
        metric: rank metric or its name.
        num_queries: Q, at least 1.
        paired: whether both models are measured on the same test set and share its missing facts. Default
            False.
        missing, answer_weights: as in `moments`.
        models: the setting and the second model (`owkg.openworld.PairArguments`). The model with the larger
            strength is the stronger one.

    Raises:
        ValueError: if an argument is out of range, or the strengths are equal.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Theorem 4.2.
    """
    queries = checks.integer("num_queries", num_queries, 1)
    gap, spread = _gap_and_variance(metric, models, paired, missing, answer_weights)
    checks.common_shape(num_queries=queries, models=gap)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = gap * np.sqrt(queries / spread)
    # Without any gap, as for Hits@K with K above every rank, the order is a coin toss.
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
    """Fewest queries for which `inconsistency_probability` is at most `inconsistency`.

    This is Corollary 4.4 with exact moments: ceil(z^2 (V_A + V_B [- 2 Cov]) / gap^2) with
    z = Phi^-1(1 - inconsistency). The result is a whole number as float. It is infinite if no number
    suffices, because correlation gives the weaker model the better mean, or because the two means are equal
    in double precision.

    Args:
        metric, paired, missing, answer_weights, models: as in `inconsistency_probability`.
        inconsistency: tolerated P(the weaker model looks better), in (0, 0.5).

    Raises:
        ValueError: if an argument is out of range, or the strengths are equal.

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
    """Theorem 4.2 in the paper's form, for MRR without correlation, with both means from the logarithm.

    Phi(-|ln(l'/l)| sqrt(Q) / (beta (N+1) sqrt(V + V'))).

    Args:
        strength, other_strength: l and l' of the two models, in (0, 1].
        sparsity: beta, in (0, 1).
        num_answers: N, at least 1.
        num_queries: Q, at least 1.
        variance: V, variance of one query's MRR under the first model, above 0, measured or from `moments`.
        other_variance: V' of the second model. Default: `variance`, as in Corollary 4.4.

    Raises:
        ValueError: if an argument is out of range.

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

    The corollary replaces the mean by the logarithm and linearises it around l; `required_queries` does
    neither.

    Args:
        strength: l of the first model, in (0, 1].
        difference: l' - l, above 0.
        sparsity: beta, in (0, 1).
        num_answers: N, at least 1.
        variance: V, variance of one query's MRR, above 0.
        inconsistency: tolerated probability of the wrong order, in (0, 0.5).

    Raises:
        ValueError: if an argument is out of range.

    Examples:
        >>> c = dict(strength=0.7, sparsity=0.35, num_answers=43, inconsistency=0.05)
        >>> round(float(log_required_queries(**c, difference=1, variance=7.4e-3)), 2)
        4.65

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.4; docs/evidence/errata.md corrects its worked example.
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
