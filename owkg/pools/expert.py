"""Expert check of annotations: a sample of judged candidates that an expert judges again."""

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
    """How far an expert says what the annotators said.

    Attributes:
        agreement: of the annotators' judgements (first) with the expert's (second).
        shares: a row for all candidates (relevance null), and one for each relevance that annotators gave:
            relevance, candidates, equal (how many the expert judges alike), share, lower, upper.
    """

    agreement: AnnotatorAgreement
    shares: pl.DataFrame


def expert_sample(qrels: pl.DataFrame, size: int, *, seed: int) -> pl.DataFrame:
    """A random sample of judged candidates, as many of one relevance as of another.

    Where a relevance has too few, all of them are drawn, and more of the others.

    Args:
        qrels: columns query, side, entity, relation, answer, relevance; what is not judged is not drawn.
        size: of the sample, at least 1 and at most the judged candidates.
        seed: of the draw; it and the candidates decide it, not the order of the rows.

    Returns:
        Columns as `qrels`.

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
    """Compares the judgements of annotators with those of an expert on a sample of them.

    Intervals are Wilson's, of candidates that are drawn independently. After `expert_sample` the share of
    each relevance estimates that of all judgements; the share in total does not, where one is rarer.

    Args:
        qrels: what annotators say: columns query, side, entity, relation, answer, relevance.
        expert: likewise, of some of these candidates; -1 where the expert was unsure.
        level: of the intervals.

    Raises:
        ValueError: if one is malformed, or the expert has judged no candidate that annotators have.
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
