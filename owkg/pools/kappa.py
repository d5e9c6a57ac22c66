"""Agreement of annotators: share of equal judgements, Cohen's kappa for two, Fleiss' kappa for several."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float64

from owkg.errors import ArgumentError
from owkg.ir import POOLED
from owkg.judge.qrels import judgements_checked
from owkg.judge.schema import ASKED


class AnnotatorAgreement(NamedTuple):
    """Agreement of two annotators on the candidates that both have judged.

    Attributes:
        candidates: number of candidates that both have judged.
        unsure: number of candidates in both sheets that at least one annotator did not judge.
        unshared: number of candidates in only one of the sheets.
        agreeing: share of the candidates judged by both with equal relevances.
        kappa: Cohen's kappa; nan if all judgements have one relevance, so that agreement is certain by
            chance.
        standard_error: standard error of kappa; nan if kappa is nan.
        disagreements: columns query to answer, and the two relevances first and second.
    """

    candidates: int
    unsure: int
    unshared: int
    agreeing: float
    kappa: float
    standard_error: float
    disagreements: pl.DataFrame


def annotator_agreement(first: pl.DataFrame, second: pl.DataFrame) -> AnnotatorAgreement:
    """Comparison of the judgements of two annotators.

    Args:
        first: judgements of the first annotator, columns query, side, entity, relation, answer, relevance; -1
            if unsure.
        second: judgements of the second annotator, with the same columns.

    Raises:
        ValueError: if a frame is malformed, or there is no candidate that both have judged.

    Examples:
        >>> asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
        >>> of = lambda by: pl.DataFrame([asked | {"answer": a, "relevance": g} for a, g in by.items()])
        >>> found = annotator_agreement(of({"b": 1, "c": 0, "d": 0}), of({"b": 1, "c": 0, "d": 1}))
        >>> round(found.agreeing, 4), round(found.kappa, 4), found.disagreements["answer"].to_list()
        (0.6667, 0.4, ['d'])

    References:
        Cohen (1960); the standard error of `kappa`.
    """
    one, two = judgements_checked("first", first), judgements_checked("second", second)
    pair = ["query", "answer"]
    both = one.rename({"relevance": "first"}).join(
        two.select(*pair, second="relevance"), on=pair, how="inner", maintain_order="left"
    )
    judged = both.filter((pl.col("first") != POOLED) & (pl.col("second") != POOLED))
    if judged.is_empty():
        raise ArgumentError("first", "must share a judged candidate with `second`, got none.")
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


def kappa(counts: Float64[np.ndarray, "relevances relevances"]) -> tuple[float, float]:
    """(kappa, standard error): kappa = (p_o - p_e) / (1 - p_e).

    Let p be the shares of the pairs of relevances; then p_o = sum p_ii and p_e = sum p_i. p_.i. The standard
    error is for large samples and does not assume zero agreement (delta method, multinomial p): n (1 - p_e)^2
    var = sum p_ii (1 - (p_i. + p_.i)(1 - kappa))^2 + (1 - kappa)^2 sum_{i != j} p_ij (p_.i + p_j.)^2 - (kappa
    - p_e (1 - kappa))^2.

    Args:
        counts: number of candidates with relevance i by the first annotator and j by the second; at least one
            is positive.

    Returns:
        (nan, nan) if p_e = 1.

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


def majority(sheets: Sequence[Any]) -> pl.DataFrame:
    """Majority of several annotators: the relevance that more than half of those who judged a candidate gave.

    Args:
        sheets: judgements of each annotator, columns query, side, entity, relation, answer, relevance; -1 if
            unsure.

    Returns:
        Columns query, side, entity, relation, answer; relevance, -1 if the candidate is unjudged or no
        relevance has a majority; relevances, the relevance in each sheet, null if the sheet does not hold the
        candidate.

    Raises:
        ValueError: if there is no sheet, or one is malformed.

    Examples:
        >>> asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r", "answer": "b"}
        >>> of = lambda *by: majority([pl.DataFrame([asked | {"relevance": one}]) for one in by])
        >>> [of(*relevances)["relevance"].item() for relevances in ((1, 1, 0), (1, 0), (1, -1), (1, 1, 0, 0))]
        [1, -1, 1, -1]
    """
    frames = [judgements_checked("sheets", sheet) for sheet in sheets]
    if not frames:
        raise ArgumentError("sheets", "must hold at least one sheet, got none.")
    names = [f"_{i}" for i in range(len(frames))]
    keys = [*ASKED, "answer"]
    both = frames[0].rename({"relevance": names[0]})
    for name, frame in zip(names[1:], frames[1:], strict=True):
        other = frame.rename({"relevance": name})
        both = both.join(other, on=keys, how="full", coalesce=True, maintain_order="left_right")
    given = pl.concat_list(names)
    judged = given.list.eval(pl.element().filter(pl.element() >= 0))
    best = judged.list.eval(pl.element().mode().first()).list.first()
    count = pl.col("_judged").list.eval((pl.element() == pl.element().mode().first()).sum()).list.first()
    clear = count > pl.col("_judged").list.len() / 2
    relevance = pl.when(clear).then("_best").otherwise(pl.lit(POOLED, pl.Int64))
    return both.with_columns(relevances=given, _judged=judged, _best=best).select(
        *keys, relevance=relevance, relevances="relevances"
    )


def fleiss_kappa(sheets: Sequence[Any]) -> tuple[float, int]:
    """(kappa, candidates): agreement of several annotators on the candidates that all of them judged.

    If n_ij of n annotators give candidate i the relevance j, then P_i = (sum_j n_ij^2 - n) / (n (n - 1)).
    With p_j the share of relevance j among all judgements, kappa = (mean P_i - sum p_j^2) / (1 - sum p_j^2).

    Args:
        sheets: at least two sheets, as in `majority`.

    Returns:
        kappa is nan if there is no such candidate, or all judgements have one relevance.

    Raises:
        ValueError: if there are fewer than two sheets, or one is malformed.

    References:
        Fleiss (Psychological Bulletin 76, 1971), eqs. 2 to 7.
    """
    if len(sheets) < 2:
        raise ArgumentError("sheets", f"must hold at least two sheets, got {len(sheets)}.")
    found = majority(sheets)["relevances"].to_list()
    given = np.array(
        [relevances for relevances in found if None not in relevances and POOLED not in relevances]
    )
    if not len(given):
        return float("nan"), 0
    counts = (given[..., None] == np.unique(given)).sum(1)
    share = counts.sum(0) / counts.sum()
    chance = float((share**2).sum())
    if len(share) == 1:
        return float("nan"), len(given)
    n = len(sheets)
    observed = float((((counts**2).sum(1) - n) / (n * (n - 1))).mean())
    return (observed - chance) / (1 - chance), len(given)


def _table(first: np.ndarray, second: np.ndarray) -> Float64[np.ndarray, "relevances relevances"]:
    """Counts of each pair of relevances."""
    relevances, flat = np.unique(np.concatenate([first, second]), return_inverse=True)
    one, two = np.split(flat, 2)
    counts = np.bincount(one * len(relevances) + two, minlength=len(relevances) ** 2)
    return counts.reshape(len(relevances), len(relevances)).astype(np.float64)
