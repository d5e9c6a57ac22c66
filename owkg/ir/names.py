"""Measures by the names that they have in papers, in ir_measures and in trec_eval."""

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from owkg.errors import ArgumentError
from owkg.ir import measures
from owkg.ir.judged import Judged


class Measure(NamedTuple):
    """A measure by name.

    Attributes:
        name: as in papers: AP, nDCG@10.
        of: the value of each query.
    """

    name: str
    of: Callable[[Judged], np.ndarray]


class _Family(NamedTuple):
    """Measures of one kind.

    Attributes:
        name: as in papers.
        others: lower case, of trec_eval and ir_measures; "_cut" of trec_eval is left out.
        of: the measure, of judged lists and its parameter.
        parameter: what stands behind @: "no", "may", "must" (a rank), "p" (a share, .8 where absent).
        trec: trec_eval's name, and its name with a cutoff; empty where it has none.
    """

    name: str
    others: tuple[str, ...]
    of: Callable[..., np.ndarray]
    parameter: str
    trec: tuple[str, str] = ("", "")


_FAMILIES = (
    _Family("AP", ("map", "average_precision"), measures.average_precision, "may", ("map", "map_cut_")),
    _Family("nDCG", ("ndcg",), measures.ndcg, "may", ("ndcg", "ndcg_cut_")),
    _Family("P", ("precision",), measures.precision, "must", ("", "P_")),
    _Family("Recall", ("r", "recall"), measures.recall, "must", ("", "recall_")),
    _Family("Success", ("success",), measures.success, "must", ("", "success_")),
    _Family("Judged", ("judged",), measures.judged_at, "must"),
    _Family("RR", ("recip_rank", "reciprocal_rank"), measures.reciprocal_rank, "may", ("recip_rank", "")),
    _Family("Rprec", ("r_precision",), measures.r_precision, "no"),
    _Family("Bpref", ("bpref",), measures.bpref, "no", ("bpref", "")),
    _Family("infAP", ("infap", "inf_ap"), measures.inf_ap, "no"),
    _Family("RBP", ("rbp",), measures.rbp, "p"),
)
_BY_NAME = {name: one for one in _FAMILIES for name in (one.name.lower(), *one.others)}
_PATTERN = re.compile(r"(?P<name>[a-z]+(?:_[a-z]+)*)(?:(?:@|[._])(?P<k>\d*\.?\d+)|\(p=(?P<p>\d*\.?\d+)\))?")
_CUT = re.compile(r"_cut[_.]")
_CUTOFF = re.compile(r"\(cutoff=(\d+)\)")
_LEVEL = re.compile(r"\(rel=(\d+)\)")
_PERSISTENCE = 0.8
_MOST = 2**53

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
"""Names of measures, one or two of each kind."""


def measure(name: str) -> Measure | None:
    """The measure of a name: AP, nDCG@10, RBP(p=0.8), or trec_eval's map, ndcg_cut_10; None if none has it.

    Examples:
        >>> [measure(name).name for name in ("map", "P_10", "ndcg_cut.5", "nDCG(cutoff=5)", "rbp@0.5")]
        ['AP', 'P@10', 'nDCG@5', 'nDCG@5', 'RBP(p=0.5)']
    """
    found = _read(name)
    return found if isinstance(found, Measure) else None


def _read(name: str) -> Measure | str | None:
    """The measure of a name, or what is wrong with it; None if it is no name of a measure."""
    found = _PATTERN.fullmatch(_CUTOFF.sub(r"@\1", _CUT.sub("_", name.strip().lower())))
    family = found and _BY_NAME.get(found["name"])
    if not found or not family:
        return None
    given = found["p"] or found["k"]
    if family.parameter == "p":
        p = _PERSISTENCE if given is None else float(given)
        if not 0 < p < 1:
            return f"{family.name} has a persistence between 0 and 1, as in {family.name}(p=0.8)"
        return Measure(f"{family.name}(p={p:g})", lambda judged: family.of(judged, p))
    if family.parameter == "no" and given:
        return f"{family.name} has no cutoff"
    if given is None and family.parameter != "must":
        return Measure(family.name, family.of)
    if found["p"] or given is None or not given.isdecimal() or not 0 < int(given) < _MOST:
        return f"{family.name} has a cutoff, a whole number from 1, as in {family.name}@10"
    return Measure(f"{family.name}@{int(given)}", lambda judged: family.of(judged, int(given)))


def trec_name(name: str) -> str:
    """trec_eval's name of a measure; its own where trec_eval has none.

    Examples:
        >>> [trec_name(name) for name in ("AP", "nDCG@10", "P@5", "RBP(p=0.8)")]
        ['map', 'ndcg_cut_10', 'P_5', 'RBP(p=0.8)']
    """
    stem, _, cutoff = name.partition("@")
    family = _BY_NAME.get(stem.lower())
    if family is None or not family.trec[bool(cutoff)]:
        return name
    return family.trec[bool(cutoff)] + cutoff


def measures_named(names: Any) -> list[Measure] | None:
    """The measures of one name or several, each once; None where none of them is a measure.

    Raises:
        ValueError: if some are and others are not, one has a parameter that it cannot have, or a relevance
            level of its own.
    """
    if names is None or not isinstance(names, str | Iterable):
        return None
    several = [names] if isinstance(names, str) else list(names)
    for one in several:
        if isinstance(one, str) and (level := _LEVEL.search(one)) and measure(_LEVEL.sub("", one)):
            raise ArgumentError(
                "metrics",
                f"must be without a relevance level, which is one for all (owkg ir --level {level[1]}), "
                f"got {one!r}.",
            )
    read = [_read(one) if isinstance(one, str) else None for one in several]
    for one, wrong in zip(several, read, strict=True):
        if isinstance(wrong, str):
            raise ArgumentError("metrics", f"must be valid: {wrong}, got {one!r}.")
    found = [one if isinstance(one, Measure) else None for one in read]
    if not any(found):
        return None
    # Beside measures of lists, MRR is the mean of RR.
    for i, one in enumerate(several):
        if found[i] is None and isinstance(one, str) and one.lower().startswith("mrr"):
            found[i] = measure("RR" + one[3:])
    if None in found:
        other = several[found.index(None)]
        raise ArgumentError(
            "metrics",
            f"must be rank metrics, or else measures of lists such as {', '.join(EXAMPLES[:5])}, not both; "
            f"got {getattr(other, 'name', other)!r} beside them.",
        )
    return list({one.name: one for one in found if one}.values())
