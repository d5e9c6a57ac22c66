"""Expert check of annotations: an expert judges a sample of the judged candidates again."""

from typing import NamedTuple

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ir import POOLED
from owkg.judge.qrels import judgements_checked
from owkg.judge.schema import QRELS
from owkg.pools.kappa import AnnotatorAgreement, annotator_agreement
from owkg.stats.interval import wilson

_PAIR = ["query", "answer"]


class ExpertCheck(NamedTuple):
    """Agreement of the annotators with an expert.

    Attributes:
        agreement: agreement of the judgements of annotators (first) with those of the expert (second).
        shares: table with one row for all candidates (relevance null) and one for each relevance that
            annotators gave: relevance, candidates, equal (number of candidates that the expert judges
            equally), share, lower, upper.
    """

    agreement: AnnotatorAgreement
    shares: pl.DataFrame


def expert_sample(qrels: pl.DataFrame, size: int, *, seed: int) -> pl.DataFrame:
    """Random sample of judged candidates with equal numbers of each relevance.

    If a relevance has too few candidates, all of them are drawn, and more of the other relevances.

    Args:
        qrels: table with columns query, side, entity, relation, answer, relevance. Unjudged candidates are
            not drawn.
        size: size of the sample, from 1 to the number of judged candidates.
        seed: seed of the draw. The draw depends on the seed and the candidates, not on the order of the rows.

    Returns:
        Columns as in `qrels`.

    Raises:
        ValueError: if `qrels` is malformed, or `size` is out of range.

    Examples:
        >>> asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
        >>> rows = [asked | {"answer": f"b{i}", "relevance": int(i < 3)} for i in range(100)]
        >>> [expert_sample(pl.DataFrame(rows), n, seed=0)["relevance"].sum() for n in (4, 50)]
        [2, 3]

    References:
        Zhou et al. (SIGIR 2022), section 3.2.
    """
    frame = judgements_checked("qrels", qrels).select(QRELS).filter(pl.col("relevance") != POOLED)
    left, number = checks.whole("size", size, 1), checks.seed("seed", seed)
    if left > len(frame):
        raise ArgumentError("size", f"must be at most the {len(frame):,} judged candidates, got {left:,}.")
    order = np.random.default_rng(number).permutation(len(frame))
    parts = frame.sort(_PAIR)[order].partition_by("relevance", maintain_order=False)
    drawn = []
    for i, part in enumerate(sorted(parts, key=lambda part: (len(part), part["relevance"][0]))):
        take = min(len(part), left // (len(parts) - i))
        drawn.append(part.head(take))
        left -= take
    return pl.concat(drawn)


def expert_check(qrels: pl.DataFrame, expert: pl.DataFrame, *, level: float = 0.95) -> ExpertCheck:
    """Comparison of the judgements of annotators with those of an expert on a sample of them.

    Intervals are Wilson's, for independently drawn candidates. After `expert_sample`, the share for each
    relevance estimates the share among all judgements with this relevance. The share for all candidates
    together does not, unless the relevances are equally frequent.

    Args:
        qrels: judgements of the annotators, columns query, side, entity, relation, answer, relevance.
        expert: judgements of the expert for some of these candidates, with the same columns; -1 if unsure.
        level: confidence level of the intervals. Default 0.95.

    Raises:
        ValueError: if a frame is malformed, or no candidate is judged by both annotators and expert.
    """
    said, confidence = judgements_checked("qrels", qrels), checks.level("level", level)
    agreement = annotator_agreement(said, expert)
    judged = said.join(
        judgements_checked("expert", expert).select(*_PAIR, other="relevance"), on=_PAIR
    ).filter(pl.min_horizontal("relevance", "other") != POOLED)
    equal = judged.with_columns(equal=pl.col("relevance") == pl.col("other"))
    parts = [
        (None, equal),
        *((one, equal.filter(relevance=one)) for one in equal["relevance"].unique().sort()),
    ]
    rows = []
    for relevance, part in parts:
        count, alike = len(part), int(part["equal"].sum())
        lower, upper = wilson(alike / count, count, confidence)
        row = {"relevance": relevance, "candidates": count, "equal": alike, "share": alike / count}
        rows.append(row | {"lower": lower, "upper": upper})
    return ExpertCheck(agreement, pl.DataFrame(rows))
