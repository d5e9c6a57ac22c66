"""Errors of annotators: labels corrected for known or estimated error rates.

P, Success and RR are multilinear in the labels of a list, so their values under corrected labels are unbiased
if errors are independent. Metrics that are not multilinear need two-phase judging
(`owkg.estimation.two_phase`).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.measures import Measure, Needs
from owkg.estimation.population import UNKNOWN, Population

_HIGH = 0.3
"""Sum of the error rates above which owkg warns."""
_MOST_FALSE = 0.05
"""Largest false positive rate for Success@k with k > 1, where a single false positive decides a list."""
_STEP = 1e-4  # of numerical derivatives

Estimates = Float[np.ndarray, "targets"]
Labels = Float[np.ndarray, "candidates"]


@dataclass(frozen=True)
class ErrorRates:
    """Error rates of annotators.

    Attributes:
        fp: probability that a wrong candidate is judged relevant.
        fn: probability that a true candidate is judged not relevant.
        gold_negative: number of wrong gold items from which `fp` was counted; None if the rate is known.
        gold_positive: number of true gold items from which `fn` was counted; None if the rate is known.

    Raises:
        ValueError: if a rate is outside [0, 1), a count is below 1, or the rates add up to 1 or more, because
            labels then carry no information.

    Warns:
        UserWarning: if the rates add up to more than 0.3, because intervals are then several times as wide.
    """

    fp: float
    fn: float
    gold_negative: int | None = None
    gold_positive: int | None = None

    def __post_init__(self) -> None:
        for name in ("fp", "fn"):
            object.__setattr__(self, name, checks.real_number(name, getattr(self, name), 0, 1, closed="low"))
        for name in ("gold_negative", "gold_positive"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, checks.whole(name, getattr(self, name), 1))
        if self.fp + self.fn >= 1:
            raise ArgumentError(
                "fp",
                f"must add up with fn to less than 1, got {self.fp:g} + {self.fn:g}: labels tell nothing.",
            )
        if self.fp + self.fn > _HIGH + 1e-9:
            warnings.warn(
                f"error rates of {self.fp:g} and {self.fn:g} make intervals several times as wide: use the "
                "majority of several annotators, or have an expert judge a part again (two-phase judging).",
                stacklevel=3,
            )

    @property
    def never(self) -> bool:
        """Whether the rates are known to be zero."""
        return self.fp == self.fn == 0 and not self.estimated

    @property
    def estimated(self) -> bool:
        """Whether a rate was counted on gold items."""
        return self.gold_negative is not None or self.gold_positive is not None


def counted_rates(
    judged: Int[np.ndarray, "gold"],
    truth: Int[np.ndarray, "gold"],
    *,
    fp: float | None = None,
    fn: float | None = None,
) -> ErrorRates:
    """Error rates counted on gold items, whose truth is known and was hidden from the annotators.

    Args:
        judged: labels that annotators gave to the gold items, 1 or 0.
        truth: true labels of the same items, 1 or 0.
        fp, fn: known rate, needed if no gold item of its kind was judged. Default None: counted.

    Raises:
        ValueError: if a label is neither 0 nor 1, the lengths differ, or a kind has neither gold items nor a
            known rate.
    """
    said, true = checks.integer("judged", judged, 0), checks.integer("truth", truth, 0)
    for name, labels in (("judged", said), ("truth", true)):
        checks.require(name, labels, labels <= 1, "0 or 1")
    if said.shape != true.shape:
        raise ArgumentError("judged", f"must have as many labels as truth, got {said.size} and {true.size}.")
    wrong, right = int((true == 0).sum()), int((true == 1).sum())
    for name, known, count, kind in (("fp", fp, wrong, "wrong"), ("fn", fn, right, "true")):
        if known is None and count == 0:
            raise ArgumentError(name, f"must be given if no gold item is {kind}, got none.")
    return ErrorRates(
        float(said[true == 0].mean()) if fp is None else fp,
        float(1 - said[true == 1].mean()) if fn is None else fn,
        wrong if fp is None else None,
        right if fn is None else None,
    )


def judged_now(people: Population, labels: Int[np.ndarray, "candidates"]) -> Bool[np.ndarray, "candidates"]:
    """Mask of the candidates that annotators judged: labelled now, unknown before the draw."""
    return (labels != UNKNOWN) & (people.label == UNKNOWN)


def require_possible_rates(
    people: Population, labels: Int[np.ndarray, "candidates"], rates: ErrorRates
) -> None:
    """Check that some truth explains the share of relevant labels under the error rates.

    Annotators judge a share fp of wrong candidates and a share 1 - fn of true candidates relevant, so the
    share of relevant labels lies between these two. The check allows three standard errors, including the
    error of counted rates.

    Raises:
        ValueError: naming `errors`, if too few or too many labels are relevant.
    """
    judged = labels[judged_now(people, labels)]
    if not len(judged):
        return
    share = float((judged > 0).mean())

    def error(rate: float, count: int | None) -> float:
        return 3 * np.sqrt(rate * (1 - rate) * (1 / len(judged) + (1 / count if count else 0)))

    least = rates.fp - error(rates.fp, rates.gold_negative)
    most = 1 - rates.fn + error(rates.fn, rates.gold_positive)
    if not least <= share <= most:
        raise ArgumentError(
            "errors",
            f"must fit the labels: {share:.1%} of {len(judged):,} judged candidates are relevant, but "
            f"fp = {rates.fp:g} and fn = {rates.fn:g} allow {rates.fp:.1%} to {1 - rates.fn:.1%}.",
        )


def corrected(people: Population, labels: Int[np.ndarray, "candidates"], rates: ErrorRates) -> Labels:
    """Labels whose expectation is the truth: (y - fp) / (1 - fp - fn) where an annotator gave y.

    Args:
        people: the population. Labels known before the draw keep their values.
        labels: 1, 0 or `UNKNOWN`. Unknown labels become 0.
        rates: error rates of the annotators.

    Source: Rogan and Gladen (1978), applied to each label.
    """
    y = np.maximum(labels, 0).astype(np.float64)
    return np.where(judged_now(people, labels), (y - rates.fp) / (1 - rates.fp - rates.fn), y)


def rate_variance(
    estimate: Callable[[Labels], Estimates],
    people: Population,
    labels: Int[np.ndarray, "candidates"],
    rates: ErrorRates,
) -> Estimates:
    """Variance that counted error rates add to estimates, by the delta method.

    The variance is (d theta / d fp)^2 fp (1 - fp) / G for G gold items, plus the same term for fn. In fp (1 -
    fp), each rate counts one more error and one more hit, so that gold items without an error do not yield a
    variance of 0.

    Args:
        estimate: function from corrected labels to estimates, without limits that clip them.
        people: the population.
        labels: 1, 0 or `UNKNOWN`.
        rates: error rates of the annotators.
    """
    total = np.zeros_like(estimate(corrected(people, labels, rates)))
    for name, count in (("fp", rates.gold_negative), ("fn", rates.gold_positive)):
        if count is None:
            continue
        slope = _slope(
            lambda value, name=name: estimate(_at(people, labels, rates, name, value)), getattr(rates, name)
        )
        rate = (getattr(rates, name) * count + 1) / (count + 2)
        total = total + slope**2 * rate * (1 - rate) / count
    return total


def _at(people: Population, labels: np.ndarray, rates: ErrorRates, name: str, value: float) -> Labels:
    fp, fn = (value if name == one else getattr(rates, one) for one in ("fp", "fn"))
    y = np.maximum(labels, 0).astype(np.float64)
    return np.where(judged_now(people, labels), (y - fp) / (1 - fp - fn), y)


def _slope(of: Callable[[float], Estimates], at: float) -> Estimates:
    return (of(at + _STEP) - of(at - _STEP)) / (2 * _STEP)


def require_correctable(of: Measure, rates: ErrorRates) -> None:
    """Check that a metric can be estimated from corrected labels.

    Raises:
        ValueError: naming `errors`, for AP, nDCG and metrics of filtered ranks, because they are not
            multilinear in the labels; and for Success@k with k > 1 if more than 5 % of wrong candidates are
            judged relevant.
    """
    if rates.fp == rates.fn == 0 and not rates.estimated:
        return
    expert = "have an expert judge a part of the queries again (two-phase judging)"
    if of.needs is Needs.QUERY:
        raise ArgumentError(
            "errors",
            "must be used with a metric that is multilinear in the labels (P, RBP, RR, Success), "
            f"got {of.name}: {expert}.",
        )
    if of.name.startswith("Success@") and (of.depth or 2) > 1 and rates.fp > _MOST_FALSE:
        raise ArgumentError(
            "errors",
            f"must have fp of at most {_MOST_FALSE:g} for {of.name}, got {rates.fp:g}: one false "
            f"positive decides a list. Ask for Success@1 or RR, or {expert}.",
        )
