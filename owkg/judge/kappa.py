"""Agreement of two annotators: the share of equal judgements, and Cohen's kappa."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float64

from owkg.judge.frames import ASKED
from owkg.judge.qrels import judgements_checked
from owkg.metrics import POOLED


class AnnotatorAgreement(NamedTuple):
    """How far two annotators agree on the candidates that both have judged.

    Attributes:
        candidates: that both have judged.
        unsure: that both sheets hold, and at least one annotator did not judge.
        unshared: that only one of the sheets holds.
        agreeing: the share of the judged candidates with equal grades.
        kappa: Cohen's; nan where all judgements are of one grade, so that agreement by chance is certain.
        standard_error: of kappa; nan with it.
        disagreements: columns question to answer, and first, second: the two grades.
    """

    candidates: int
    unsure: int
    unshared: int
    agreeing: float
    kappa: float
    standard_error: float
    disagreements: pl.DataFrame


def annotator_agreement(first: Any, second: Any) -> AnnotatorAgreement:
    """Compares the judgements of two annotators.

    Args:
        first: columns question, side, entity, relation, answer, grade; -1 where the annotator was unsure.
        second: likewise.

    Raises:
        ValueError: if one is malformed, or there is no candidate that both have judged.

    Examples:
        >>> asked = {"question": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
        >>> of = lambda grades: pl.DataFrame([asked | {"answer": a, "grade": g} for a, g in grades.items()])
        >>> found = annotator_agreement(of({"b": 1, "c": 0, "d": 0}), of({"b": 1, "c": 0, "d": 1}))
        >>> round(found.agreeing, 4), round(found.kappa, 4), found.disagreements["answer"].to_list()
        (0.6667, 0.4, ['d'])

    References:
        Cohen (1960); the standard error of `kappa`.
    """
    one, two = judgements_checked("first", first), judgements_checked("second", second)
    pair = ["question", "answer"]
    both = one.rename({"grade": "first"}).join(
        two.select(*pair, second="grade"), on=pair, how="inner", maintain_order="left"
    )
    judged = both.filter((pl.col("first") != POOLED) & (pl.col("second") != POOLED))
    if judged.is_empty():
        raise ValueError("`first` and `second` must have judged some candidate both, got none.")
    a, b = judged["first"].to_numpy(), judged["second"].to_numpy()
    value, error = kappa(_table(a, b))
    return AnnotatorAgreement(
        candidates=len(judged),
        unsure=len(both) - len(judged),
        unshared=len(one) + len(two) - 2 * len(both),
        agreeing=float((a == b).mean()),
        kappa=value,
        standard_error=error,
        disagreements=judged.filter(pl.col("first") != pl.col("second")).select(
            *ASKED, "answer", "first", "second"
        ),
    )


def kappa(counts: Float64[np.ndarray, "grades grades"]) -> tuple[float, float]:
    """(kappa, standard error): kappa = (p_o - p_e) / (1 - p_e).

    With p the shares of the pairs of grades, p_o = sum p_ii, p_e = sum p_i. p_.i. The standard error is the
    large-sample one without the assumption of no agreement (by the delta method, multinomial p):
    n (1 - p_e)^2 var = sum p_ii (1 - (p_i. + p_.i)(1 - kappa))^2
    + (1 - kappa)^2 sum_{i != j} p_ij (p_.i + p_j.)^2 - (kappa - p_e (1 - kappa))^2.

    Args:
        counts: how often the first annotator gave grade i and the second grade j, some above 0.

    Returns:
        nan twice where p_e = 1.

    References:
        Cohen (1960), eq. 1; Fleiss, Cohen, Everitt (1969), eq. 13.
    """
    size = counts.sum()
    share = counts / size
    row, column = share.sum(1), share.sum(0)
    observed, chance = float(np.trace(share)), float(row @ column)
    if np.count_nonzero(row) == 1 and np.count_nonzero(row * column) == 1 and observed == 1:
        return float("nan"), float("nan")
    value = (observed - chance) / (1 - chance)
    agreeing = np.diag(share) @ (1 - (row + column) * (1 - value)) ** 2
    crossed = share * (column[:, None] + row[None, :]) ** 2
    differing = (1 - value) ** 2 * (crossed.sum() - np.trace(crossed))
    variance = agreeing + differing - (value - chance * (1 - value)) ** 2
    return value, float(np.sqrt(max(variance, 0) / size) / (1 - chance))


def _table(first: np.ndarray, second: np.ndarray) -> Float64[np.ndarray, "grades grades"]:
    """How often each pair of grades was given."""
    grades, flat = np.unique(np.concatenate([first, second]), return_inverse=True)
    one, two = np.split(flat, 2)
    counts = np.bincount(one * len(grades) + two, minlength=len(grades) ** 2)
    return counts.reshape(len(grades), len(grades)).astype(np.float64)
