"""Errors of annotators: labels corrected for known or estimated error rates.

P, Success and RR are multilinear in the labels of a list, so their values under corrected labels are
unbiased where errors are independent. Metrics that are not multilinear need two-phase judging
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
"""Sum of the rates above which a warning is given."""
_MOST_FALSE = 0.05
"""Rate of false positives above which Success@k of k > 1 is refused: one of k false ones decides it."""
_STEP = 1e-4  # of numerical derivatives

Estimates = Float[np.ndarray, "targets"]
Labels = Float[np.ndarray, "candidates"]


@dataclass(frozen=True)
class ErrorRates:
    """How often annotators err.

    Attributes:
        fp: probability that a wrong candidate is judged relevant.
        fn: probability that a true candidate is judged not relevant.
        gold_negative: wrong gold items that `fp` was counted on; None if the rate is known.
        gold_positive: true gold items that `fn` was counted on; None if the rate is known.

    Raises:
        ValueError: if a rate is outside [0, 1), the rates add up to 1 or more, so that labels say nothing,
            or a count is below 1.

    Warns:
        UserWarning: if the rates add up to more than 0.3, since intervals are then some times as wide.
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
                f"must add up with fn to less than 1, got {self.fp:g} + {self.fn:g}: labels say nothing.",
            )
        if self.fp + self.fn > _HIGH + 1e-9:
            warnings.warn(
                f"error rates of {self.fp:g} and {self.fn:g} make intervals several times as wide: take the "
                "majority of several annotators, or have an expert judge a part (two-phase judging).",
                stacklevel=3,
            )

    @property
    def never(self) -> bool:
        """Whether it is known that annotators do not err."""
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
        judged: labels by the annotators, 1 or 0.
        truth: of the same items, 1 or 0.
        fp, fn: a rate that is known, where no gold items of its kind were judged.

    Raises:
        ValueError: if a label is neither 0 nor 1, the lengths differ, or a kind has neither items nor a
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
            raise ArgumentError(name, f"must be given where no gold item is {kind}, got none.")
    return ErrorRates(
        float(said[true == 0].mean()) if fp is None else fp,
        float(1 - said[true == 1].mean()) if fn is None else fn,
        wrong if fp is None else None,
        right if fn is None else None,
    )


def judged_now(people: Population, labels: Int[np.ndarray, "candidates"]) -> Bool[np.ndarray, "candidates"]:
    """The candidates that annotators judged: labelled now, unknown before the draw."""
    return (labels != UNKNOWN) & (people.label == UNKNOWN)


def require_possible_rates(
    people: Population, labels: Int[np.ndarray, "candidates"], rates: ErrorRates
) -> None:
    """Raises ValueError naming `errors`, if no truth gives so few, or so many, relevant labels.

    With fp of the wrong and 1 - fn of the true ones judged relevant, the share lies between both; three
    standard errors are allowed for, those of counted rates included.
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
            f"must allow the labels: {share:.1%} of {len(judged):,} judged candidates are relevant, and with "
            f"fp = {rates.fp:g} and fn = {rates.fn:g} between {rates.fp:.1%} and {1 - rates.fn:.1%} are.",
        )


def corrected(people: Population, labels: Int[np.ndarray, "candidates"], rates: ErrorRates) -> Labels:
    """Labels whose expectation is the truth: (y - fp) / (1 - fp - fn) where an annotator gave y.

    Args:
        people: the population; labels that were known before the draw stay as they are.
        labels: 1, 0 or `UNKNOWN`. Unknown ones become 0.
        rates: of the annotators.

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
    """Variance that counting the rates on gold items adds to estimates, by the delta method.

    (d theta / d fp)^2 fp (1 - fp) / G for G gold items, and the same for fn. The rates of these variances
    count one more error and one more hit, so that gold items without an error do not pass for certainty.

    Args:
        estimate: takes corrected labels to estimates, without limits that clip them.
        people: the population.
        labels: 1, 0 or `UNKNOWN`.
        rates: of the annotators.
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
    """Refuses metrics whose values under corrected labels are biased, or too uncertain to say anything.

    Raises:
        ValueError: naming `errors`: for AP, nDCG and metrics of filtered ranks, which are not multilinear in
            the labels; for Success@k of k > 1 where more than 5 % of wrong candidates are judged relevant.
    """
    if rates.fp == rates.fn == 0 and not rates.estimated:
        return
    expert = "have an expert judge a part of the queries again (two-phase judging)"
    if of.needs is Needs.QUERY:
        raise ArgumentError(
            "errors",
            "must be of a metric that is multilinear in the labels (P, RBP, RR, Success), "
            f"got {of.name}: {expert}.",
        )
    if of.name.startswith("Success@") and (of.depth or 2) > 1 and rates.fp > _MOST_FALSE:
        raise ArgumentError(
            "errors",
            f"must have fp of at most {_MOST_FALSE:g} for {of.name}, got {rates.fp:g}: one false "
            f"positive decides a list; ask for Success@1 or RR, or {expert}.",
        )
