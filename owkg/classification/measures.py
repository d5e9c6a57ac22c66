"""Measures of triple classification, with the influence of every triple on them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from scipy import special

from owkg.stats.interval import share_limits


class Measured(NamedTuple):
    """Value of a measure on some triples.

    Attributes:
        value: the measure; NaN if it is undefined, such as ROC-AUC if all triples are positive.
        low, high: confidence interval of the measure; NaN if there is none.
        expectation: mean of the measure if scores, or predicted classes, were assigned to the triples at
            random.
    """

    value: float
    low: float
    high: float
    expectation: float


class Curve(NamedTuple):
    """Classifications at every threshold, from the highest score down; tied scores are passed together.

    Attributes:
        true, false: weight of positive triples, and of all other triples, at or above each distinct score.
        place: index of each triple's score among the distinct scores.
    """

    true: Float[np.ndarray, "thresholds"]
    false: Float[np.ndarray, "thresholds"]
    place: np.ndarray


def curve(score: np.ndarray, positive: Bool[np.ndarray, "n"], weight: ArrayLike | None = None) -> Curve:
    """Curve for scores, positive triples and their weights (None: 1 each)."""
    weight = np.ones(len(score)) if weight is None else np.asarray(weight, float)
    distinct, place = np.unique(-score, return_inverse=True)
    size = len(distinct)
    true = np.cumsum(np.bincount(place, weight * positive, size))
    false = np.cumsum(np.bincount(place, weight * ~positive, size))
    return Curve(true, false, place)


def roc_auc(of: Curve) -> float:
    """Area under the receiver operating characteristic: P(positive above other) + P(tie) / 2."""
    true, false = of.true[-1], of.false[-1]
    if not (true and false):
        return np.nan
    steps = np.diff(of.false, prepend=0)
    return float((steps * (of.true + np.concatenate([[0.0], of.true[:-1]]))).sum() / (2 * true * false))


def _average_precision(of: Curve) -> float:
    """Mean over the positive triples of the precision at their scores."""
    if not of.true[-1]:
        return np.nan
    precision = of.true / np.maximum(of.true + of.false, 1e-300)
    return float((np.diff(of.true, prepend=0) * precision).sum() / of.true[-1])


def _pr_auc(of: Curve) -> float:
    """Area under the precision-recall curve by the trapezoidal rule, from recall 0 at precision 1.

    The rule interpolates linearly between thresholds, which is too optimistic (Davis and Goadrich 2006);
    average precision does not interpolate.
    """
    if not of.true[-1]:
        return np.nan
    precision = np.concatenate([[1.0], of.true / np.maximum(of.true + of.false, 1e-300)])
    recall = np.diff(of.true, prepend=0) / of.true[-1]
    return float((recall * (precision[:-1] + precision[1:])).sum() / 2)


def _roc_auc_influence(of: Curve, positive: Bool[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """d ROC-AUC / d weight of each triple (the terms of DeLong et al. 1988)."""
    true, false, area = of.true[-1], of.false[-1], roc_auc(of)
    above = (of.true + np.concatenate([[0.0], of.true[:-1]])) / 2 / true
    below = 1 - (of.false + np.concatenate([[0.0], of.false[:-1]])) / 2 / false
    return np.where(positive, (below[of.place] - area) / true, (above[of.place] - area) / false)


def _average_precision_influence(of: Curve, positive: Bool[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """d average precision / d weight of each triple."""
    count, step = of.true + of.false, np.diff(of.true, prepend=0)
    precision = of.true / np.maximum(count, 1e-300)
    # A positive triple raises, and any other lowers, the precision at each score at or below its own.
    rise = np.cumsum((step / np.maximum(count, 1e-300))[::-1])[::-1]
    fall = np.cumsum((step * precision / np.maximum(count, 1e-300))[::-1])[::-1]
    own = np.where(positive, precision[of.place] - _average_precision(of), 0.0)
    return (own + positive * rise[of.place] - fall[of.place]) / of.true[-1]


def _logit_limits(
    value: float, influence: np.ndarray, weight: np.ndarray, level: float
) -> tuple[float, float]:
    """Limits of a measure between 0 and 1, normal on the logit scale.

    The variance is the sum of weight times squared influence (the infinitesimal jackknife).
    """
    if not 0 < value < 1:
        return np.nan, np.nan
    error = np.sqrt((weight * influence**2).sum()) / (value * (1 - value))
    wide = special.ndtri((1 + level) / 2) * error
    middle = special.logit(value)
    return float(special.expit(middle - wide)), float(special.expit(middle + wide))


# Weight of triples of each label that are added at both ends of the scale, and to each entry of a table of
# labels by predictions, because a perfect classifier of few triples would else have an interval of width 0.
_ADDED = 0.1


def _ranked(
    measure: Callable[[Curve], float],
    influence: Callable[..., np.ndarray] | None,
    chance: Callable[[int, int], float],
) -> Callable[..., Measured]:
    """Measure of the order of scores."""

    def measured(
        label: np.ndarray, score: np.ndarray, predicted: np.ndarray | None, level: float | None
    ) -> Measured:
        positive = label == "positive"
        value = measure(curve(score, positive))
        low = high = np.nan
        if (
            influence is not None
            and level is not None
            and np.isfinite(value)
            and 0 < positive.sum() < len(label)
        ):
            lowest, highest = score.min() - 1, score.max() + 1
            scores = np.concatenate([score, [lowest, highest, lowest, highest]])
            labels = np.concatenate([positive, [True, True, False, False]])
            weight = np.concatenate([np.ones(len(score)), np.full(4, _ADDED)])
            wide = curve(scores, labels, weight)
            low, high = _logit_limits(measure(wide), influence(wide, labels), weight, level)
            low, high = min(low, value), max(high, value)
        return Measured(value, low, high, chance(int(positive.sum()), len(label)))

    return measured


def _random_precision(positive: int, n: int) -> float:
    """Mean average precision of random orders of `n` triples."""
    if not positive:
        return np.nan
    if n == 1:
        return 1.0
    harmonic = special.digamma(n + 1) - special.digamma(1)
    return float(harmonic / n + (positive - 1) / (n - 1) * (1 - harmonic / n))


def _share(right: np.ndarray, of: np.ndarray, expected: float, level: float | None) -> Measured:
    """Share of `right` among the triples `of`."""
    size = int(of.sum())
    if not size:
        return Measured(np.nan, np.nan, np.nan, np.nan)
    value = float(right[of].sum() / size)
    low, high = (np.nan, np.nan) if level is None else _mid_p(value, size, level)
    return Measured(value, low, high, expected)


def _mid_p(share: float, size: int, level: float) -> tuple[float, float]:
    low, high = share_limits(np.array([share]), np.array([float(size)]), (1 - level) / 2)
    return float(low[0]), float(high[0])


def _accuracy(label: np.ndarray, score: np.ndarray, predicted: np.ndarray, level: float | None) -> Measured:
    expected = float(sum(np.mean(label == one) * np.mean(predicted == one) for one in np.unique(label)))
    return _share(label == predicted, np.ones(len(label), bool), expected, level)


def _precision(label: np.ndarray, score: np.ndarray, predicted: np.ndarray, level: float | None) -> Measured:
    return _share(label == "positive", predicted == "positive", float(np.mean(label == "positive")), level)


def _recall(label: np.ndarray, score: np.ndarray, predicted: np.ndarray, level: float | None) -> Measured:
    return _share(
        predicted == "positive", label == "positive", float(np.mean(predicted == "positive")), level
    )


def _f1(
    label: np.ndarray, score: np.ndarray, predicted: np.ndarray, level: float | None, of: str = "positive"
) -> Measured:
    """F1 = 2 J / (1 + J) for the Jaccard index J, a share, whose limits are mapped in the same way."""
    truly, called = label == of, predicted == of
    union = truly | called
    jaccard, low, high, _ = _share(truly & called, union, np.nan, level)
    count = truly.sum() + called.sum()
    expected = 2 * truly.sum() * called.sum() / (len(label) * count) if count else np.nan
    value, low, high = (2 * j / (1 + j) for j in (jaccard, low, high))
    return Measured(value, low, high, float(expected))


def _macro_f1(label: np.ndarray, score: np.ndarray, predicted: np.ndarray, level: float | None) -> Measured:
    """Mean of F1 over the classes that occur; a class that is only predicted has F1 0."""
    table, _, _ = _confusion(label, predicted)
    value, _ = _mean_f1(table)
    low = high = np.nan
    if level is not None and len(table) > 1:
        wide = table + _ADDED
        middle, influence = _mean_f1(wide)
        low, high = _logit_limits(middle, influence.ravel(), wide.ravel(), level)
        low, high = min(low, value), max(high, value)
    truly, called = table.sum(1), table.sum(0)
    expected = np.mean(2 * truly * called / (len(label) * (truly + called)))
    return Measured(value, low, high, float(expected))


def _confusion(label: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Table of labels by predictions over the classes that occur, and each triple's row and column."""
    classes, place = np.unique(np.concatenate([label, predicted]), return_inverse=True)
    k, row, column = len(classes), place[: len(label)], place[len(label) :]
    return np.bincount(row * k + column, minlength=k * k).reshape(k, k) * 1.0, row, column


def _mean_f1(table: Float[np.ndarray, "k k"]) -> tuple[float, Float[np.ndarray, "k k"]]:
    """Macro F1 of a table of labels by predictions, and d macro F1 / d each entry."""
    both = table.sum(1) + table.sum(0)
    f1 = 2 * np.diag(table) / both
    slope = f1 / both
    influence = np.diag(2 / both) - slope[:, None] - slope
    return float(f1.mean()), influence / len(both)


METRICS: dict[str, Callable[..., Measured]] = {
    "accuracy": _accuracy,
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
    "macro-f1": _macro_f1,
    "roc-auc": _ranked(roc_auc, _roc_auc_influence, lambda positive, n: 0.5 if 0 < positive < n else np.nan),
    "pr-auc": _ranked(_pr_auc, None, lambda positive, n: np.nan),
    "average-precision": _ranked(_average_precision, _average_precision_influence, _random_precision),
}
"""Measures by name, as functions of (label, score, predicted, level of the interval or None)."""

NEED_NO_THRESHOLD = ("roc-auc", "pr-auc", "average-precision")
"""Measures that depend only on the scores."""


def _influence_of_order(influence: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    def of(label: np.ndarray, score: np.ndarray, predicted: np.ndarray | None) -> np.ndarray:
        positive = label == "positive"
        if not 0 < positive.sum() < len(label):
            return np.zeros(len(label))
        return influence(curve(score, positive), positive)

    return of


def _influence_of_share(right: np.ndarray, of: np.ndarray) -> np.ndarray:
    size = of.sum()
    return of * (right - (right & of).sum() / size) / size if size else np.zeros(len(of))


def _influence_on_f1(label: np.ndarray, score: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    truly, called = label == "positive", predicted == "positive"
    count, both = truly.sum() + called.sum(), truly & called
    return (
        (2 * both - 2 * both.sum() / count * (truly.astype(float) + called)) / count if count else 0.0 * both
    )


def _influence_on_macro_f1(label: np.ndarray, score: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    table, row, column = _confusion(label, predicted)
    return _mean_f1(table)[1][row, column]


INFLUENCES: dict[str, Callable[..., np.ndarray]] = {
    "accuracy": lambda label, score, called: _influence_of_share(label == called, np.ones(len(label), bool)),
    "precision": lambda label, score, called: _influence_of_share(label == "positive", called == "positive"),
    "recall": lambda label, score, called: _influence_of_share(called == "positive", label == "positive"),
    "f1": _influence_on_f1,
    "macro-f1": _influence_on_macro_f1,
    "roc-auc": _influence_of_order(_roc_auc_influence),
    "average-precision": _influence_of_order(_average_precision_influence),
}
"""Functions of (label, score, predicted) that return d measure / d weight of each triple, by measure."""
