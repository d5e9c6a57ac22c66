"""IR measures by their names in papers, in ir_measures and in trec_eval."""

import math
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from owkg.errors import ArgumentError
from owkg.ir import measures
from owkg.ir.judged import Judged
from owkg.rank_weights.registry import Entry, Registry, folded_name, parameter


class Measure(NamedTuple):
    """Measure with its name.

    Attributes:
        name: name in papers, such as AP or nDCG@10.
        of: function that returns the value for each query.
    """

    name: str
    of: Callable[[Judged], np.ndarray]


_MOST = 2**53


def _measure(
    name: str,
    of: Callable[..., np.ndarray],
    formula: str,
    aliases: tuple[str, ...] = (),
    trec: tuple[str, str] = ("", ""),
    example: str = "",
) -> Entry:
    """Entry of a measure of judged lists; the letters behind @ in its name say whether it has a cutoff."""
    stem, _, letters = name.partition("@")
    stem = stem.rstrip("[")

    def make(cutoff: float | None = None) -> Measure:
        if cutoff is None and (not letters or "[" in name):
            return Measure(stem, of)
        if not isinstance(cutoff, int) or not 0 < cutoff < _MOST:
            raise ValueError(f"{stem} needs a cutoff, a whole number from 1 to 2^53, as in {stem}@10")
        return Measure(f"{stem}@{cutoff}", lambda judged: of(judged, cutoff))

    example = example or (name if not letters or "[" in name else f"{stem}@10").partition("[")[0]
    entry = Entry(name, example, formula, "[0, 1]", "larger", "-", "trec_eval", make, aliases)
    return entry._replace(trec=trec)


def _rbp(persistence: float = 0.8) -> Measure:
    if not 0 < persistence < 1:
        raise ValueError("RBP needs a persistence between 0 and 1, as in RBP(p=0.8)")
    return Measure(f"RBP(p={persistence:g})", lambda judged: measures.rbp(judged, persistence))


MEASURES = Registry(
    _measure(
        "AP[@K]",
        measures.average_precision,
        "(sum of P@p over positions p <= K of relevant answers) / R",
        ("map", "map-cut", "average-precision"),
        ("map", "map_cut_"),
    ),
    _measure(
        "nDCG[@K]",
        measures.ndcg,
        "(sum of g/log2(1+p) over p <= K) / (sum of a perfect list)",
        ("ndcg-cut",),
        ("ndcg", "ndcg_cut_"),
    ),
    _measure("P@K", measures.precision, "(relevant answers at p <= K) / K", ("precision",), ("", "P_")),
    _measure("Recall@K", measures.recall, "(relevant answers at p <= K) / R", ("r",), ("", "recall_")),
    _measure("Success@K", measures.success, "1 if one of p <= K is relevant", (), ("", "success_")),
    _measure("Judged@K", measures.judged_at, "(judged answers at p <= K) / K"),
    _measure(
        "RR[@K]",
        measures.reciprocal_rank,
        "1 / position of the first relevant answer, if it is <= K",
        ("recip-rank", "reciprocal-rank"),
        ("recip_rank", ""),
    ),
    _measure("Rprec", measures.r_precision, "P@R", ("r-precision",)),
    _measure(
        "Bpref",
        measures.bpref,
        "mean over relevant answers of 1 - (nonrelevant before it) / min(R, nonrelevant), judged only",
        (),
        ("bpref", ""),
    ),
    _measure("infAP", measures.inf_ap, "AP estimated from a judged sample of the pool", ("inf-ap",)),
    Entry(
        "RBP[@P]",
        "RBP(p=0.8)",
        "(1 - P) sum of P^(p-1) over positions p of relevant answers",
        "[0, 1]",
        "larger",
        "-",
        "Moffat and Zobel 2008",
        _rbp,
    ),
)
"""All measures of judged lists. In formulas: R relevant answers, p positions, g relevance."""

_CUTOFF = re.compile(r"\(cutoff=(\d+)\)|\(p=([\d.]+)\)|(?<=[a-z])[._](?=\.?\d)")
_LEVEL = re.compile(r"\(rel=(\d+)\)")

EXAMPLES = (
    "AP",
    "AP@100",
    "nDCG",
    "nDCG@10",
    "P@10",
    "Recall@100",
    "Success@5",
    "RR",
    "Rprec",
    "Bpref",
    "infAP",
)
EXAMPLES += ("RBP(p=0.8)", "Judged@10")
"""Example names of measures, one or two of each kind."""


def measure(name: str) -> Measure | None:
    """Measure by name: AP, nDCG@10, RBP(p=0.8), or trec_eval's map, ndcg_cut_10; None if there is none.

    Examples:
        >>> [measure(name).name for name in ("map", "P_10", "ndcg_cut.5", "nDCG(cutoff=5)", "rbp@0.5")]
        ['AP', 'P@10', 'nDCG@5', 'nDCG@5', 'RBP(p=0.5)']
    """
    found = _read(name)
    return found if isinstance(found, Measure) else None


def _read(name: str) -> Measure | str | None:
    """Measure with a given name, or a text with the error in it; None if it is not the name of a measure."""
    spelt = _CUTOFF.sub(lambda found: f"@{found[1] or found[2] or ''}", name.strip().lower())
    folded = folded_name(spelt)
    for entry in MEASURES:
        try:
            for texts in entry.matches(folded):
                given = zip(entry.parameters, texts, strict=False)
                return entry.make(*(parameter(letter, text) for letter, text in given))
            if folded.partition("@")[0] in entry.words:
                return f"{entry.name} has no cutoff" if not entry.parameters else entry.make(math.nan)
        except ValueError as error:
            return str(error)
    return None


def trec_name(name: str) -> str:
    """trec_eval's name of a measure, or the measure's own name if trec_eval has none.

    Examples:
        >>> [trec_name(name) for name in ("AP", "nDCG@10", "P@5", "RBP(p=0.8)")]
        ['map', 'ndcg_cut_10', 'P_5', 'RBP(p=0.8)']
    """
    stem, _, cutoff = name.partition("@")
    known = [entry.trec[bool(cutoff)] for entry in MEASURES if stem.lower() in entry.words]
    return known[0] + cutoff if any(known) else name


def measures_named(names: object) -> list[Measure] | None:
    """Measures with one name or several, each once; None if none of the names is a measure.

    Raises:
        ValueError: if only some names are measures, a parameter is out of range, or a name sets its own
            relevance level.
    """
    if names is None or not isinstance(names, str | Iterable):
        return None
    several = [names] if isinstance(names, str) else list(names)
    for one in several:
        if isinstance(one, str) and (level := _LEVEL.search(one)) and measure(_LEVEL.sub("", one)):
            raise ArgumentError(
                "metrics",
                "must not set a relevance level, because all measures share one "
                f"(owkg ir --level {level[1]}), got {one!r}.",
            )
    read = [_read(one) if isinstance(one, str) else None for one in several]
    for one, wrong in zip(several, read, strict=True):
        if isinstance(wrong, str):
            raise ArgumentError("metrics", f"must be valid: {wrong}, got {one!r}.")
    found = [one if isinstance(one, Measure) else None for one in read]
    if not any(found):
        return None
    # Together with measures of lists, MRR is the mean of RR.
    for i, one in enumerate(several):
        if found[i] is None and isinstance(one, str) and one.lower().startswith("mrr"):
            found[i] = measure("RR" + one[3:])
    if None in found:
        other = several[found.index(None)]
        raise ArgumentError(
            "metrics",
            f"must all be rank metrics or all be measures of lists such as {', '.join(EXAMPLES[:5])}; "
            f"got {getattr(other, 'name', other)!r} among measures of lists.",
        )
    return list({one.name: one for one in found if one}.values())
