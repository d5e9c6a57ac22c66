"""The names by which users know metrics, those of PyKEEN among them."""

import difflib
import math
import re
from collections.abc import Callable
from typing import Any

from owkg.metrics import measures
from owkg.metrics.catalogue import GMR, HMR, IGMR, IMR, LOG_MRR, MR, MRR, hits_at, power, power_mean
from owkg.metrics.list_gains import GAINS
from owkg.metrics.measures import (
    Adjustment,
    BestAnswer,
    Dispersion,
    Measure,
    Median,
    Spread,
    Summary,
    Weighting,
)
from owkg.metrics.metric import Metric, traceable

# What a name may look like after folding case and turning "_" and " " into "-".
_METRICS = {
    "mrr": MRR,
    "mean-reciprocal-rank": MRR,
    "inverse-harmonic-mean-rank": MRR,
    "ihmr": MRR,
    "log-mrr": LOG_MRR,
    "mr": MR,
    "mean-rank": MR,
    "arithmetic-mean-rank": MR,
    "sqrt-mrr": power(0.5),
    "imr": IMR,
    "iamr": IMR,
    "inverse-mean-rank": IMR,
    "inverse-arithmetic-mean-rank": IMR,
    "hmr": HMR,
    "harmonic-mean-rank": HMR,
    "gmr": GMR,
    "geometric-mean-rank": GMR,
    "igmr": IGMR,
    "inverse-geometric-mean-rank": IGMR,
}
_WGMR = Summary("wgmr", GMR, Weighting(negatives=1.0))
_SUMMARIES = {
    "median-rank": Summary("median_rank", Median()),
    "median": Summary("median_rank", Median()),
    "inverse-median-rank": Summary("inverse_median_rank", Median(inverse=True)),
    "wgmr": _WGMR,
    "weighted-geometric-mean-rank": _WGMR,
    "count": Summary("count", Dispersion(Spread.COUNT)),
    "standard-deviation": Summary("standard_deviation", Dispersion(Spread.STANDARD_DEVIATION)),
    "rank-std": Summary("standard_deviation", Dispersion(Spread.STANDARD_DEVIATION)),
    "variance": Summary("variance", Dispersion(Spread.VARIANCE)),
    "rank-var": Summary("variance", Dispersion(Spread.VARIANCE)),
    "median-absolute-deviation": Summary(
        "median_absolute_deviation", Dispersion(Spread.MEDIAN_ABSOLUTE_DEVIATION)
    ),
    "rank-mad": Summary("median_absolute_deviation", Dispersion(Spread.MEDIAN_ABSOLUTE_DEVIATION)),
}
# PyKEEN's synonyms that no rule below makes.
_SYNONYMS = {
    "aamr": "amr",
    "aamri": "amri",
    "gmri": "agmri",
    "mad": "rank-mad",
    "rank-count": "count",
    "std": "rank-std",
    "var": "rank-var",
    "zamr": "zmr",
}
_NUMBER = r"([-+]?[\d.]+(?:e[-+]?\d+)?(?:/[-+\d.]+)?|inf|nan)"
_HITS = re.compile(rf"h(?:its?)?(?:@|-at-|-)?{_NUMBER}")
_POWER = re.compile(rf"p-?mrr(?:@|-at-|-){_NUMBER}")
_POWER_MEAN = re.compile(rf"power-mean(?:-rank)?(?:@|-at-|-){_NUMBER}")
_PROBE = re.compile(rf"probe(?:@|-at-|-){_NUMBER}(?:,{_NUMBER})?(?:,{_NUMBER})?")
_STRATIFIED = re.compile(rf"strat(?:ified)?-(.+?)(?:@|-at-){_NUMBER}")
_AVERAGE_PRECISION = re.compile(rf"macro-(?:map|ap)(?:@|-at-){_NUMBER}")
_WORDS = {word: gain.name for gain in GAINS.values() for word in (gain.name, *gain.aliases)}
_LIST_GAIN = re.compile(rf"macro-({'|'.join(_WORDS)})(?:@|-at-){_NUMBER}")

FORMS = ("mrr", "hits@K", "log-mrr", "p-mrr@P", "mr")
"""The canonical names of plain means; K a whole number, P a number or a fraction such as 1/3."""

_KNOWN_METRICS = (
    *_METRICS,
    *("hits@1", "hits@3", "hits@5", "hits@10"),
    *("p-mrr@1/2", "p-mrr@1/3", "p-mrr@1/4", "power-mean@2"),
)
_KNOWN_SUMMARIES = (
    *_KNOWN_METRICS,
    *_SUMMARIES,
    *("amr", "amri", "amrr", "agmri", "ahits@1", "ahits@10", "zmr", "zmrr", "zgmr", "zhits@1", "zhits@10"),
    *("adjusted-mean-rank", "adjusted-mean-rank-index", "adjusted-hits-at-10"),
    *("probe@0.5,0.5", "strat-mrr@0.5", "macro-mrr", "macro-hits@10", "macro-map@20"),
    *(f"macro-{gain}@20" for gain in GAINS),
)


def _folded(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"the name of a metric must be text, got {name!r}.")
    folded = re.sub(r"\s*([@,])\s*", r"\1", name.strip().lower())
    return re.sub(r"[\s_]+", "-", folded)


def _number(name: str, text: str, *, finite: bool) -> float:
    try:
        above, _, under = text.partition("/")
        value = float(above) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if math.isnan(value) or (finite and math.isinf(value)):
        raise ValueError(f"metric {name!r}: {text!r} is not a number.")
    return value


def _made(name: str, factory: Callable[..., Any], *texts: str | None, finite: bool = True) -> Any:
    values = [_number(name, text, finite=finite) for text in texts if text is not None]
    try:
        return factory(*values)
    except ValueError as error:
        raise ValueError(f"metric {name!r}: {error}") from None


def _whole(k: float) -> Any:
    return int(k) if math.isfinite(k) and k.is_integer() else k


def _unknown(name: str, folded: str, known: tuple[str, ...], otherwise: str) -> ValueError:
    near = difflib.get_close_matches(folded, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else otherwise
    return ValueError(f"unknown metric {name!r}: {hint}")


def _metric_or_none(name: str, folded: str) -> Metric | None:
    if folded in _METRICS:
        return _METRICS[folded]
    for pattern, factory in (
        (_HITS, lambda k: hits_at(_whole(k))),
        (_POWER, power),
        (_POWER_MEAN, power_mean),
    ):
        if match := pattern.fullmatch(folded):
            return _made(name, factory, match[1])
    return None


def metric(name: str) -> Metric:
    """The metric of that name; case, `_` against `-`, and the common aliases do not matter.

    Args:
        name: one of `FORMS`, or an alias: `hits_at_10`, `sqrt-mrr`, `inverse_harmonic_mean_rank`, ...

    Raises:
        ValueError: for an unknown name (the message names the near ones), or a bad K or P.

    Examples:
        >>> metric("hits_at_10").name, metric("p-mrr@1/3").name
        ('hits@10', 'p-mrr@1/3')
    """
    folded = _folded(name)
    found = _metric_or_none(name, folded)
    if found is None:
        raise _unknown(name, folded, _KNOWN_METRICS, f"known are {', '.join(FORMS)}.")
    return found


_of_name = metric


def checked(metric: Any) -> Metric:
    """A metric, given as it is or by name, that is a plain mean of a rank weight that JAX can trace.

    Raises:
        ValueError: if it is none, or the name is not known.
    """
    return traceable(_of_name(metric) if isinstance(metric, str) else metric)


def _plain(name: str, folded: str) -> Summary | None:
    """The unadjusted summary of that name."""
    if folded in _SUMMARIES:
        return _SUMMARIES[folded]
    if found := _metric_or_none(name, folded):
        return measures.of(found)
    if match := _PROBE.fullmatch(folded):
        return _made(name, measures.probe, *match.groups(), finite=False)
    if match := _AVERAGE_PRECISION.fullmatch(folded):
        return _made(name, lambda k: measures.macro_map(_whole(k)), match[1])
    if match := _LIST_GAIN.fullmatch(folded):
        gain = _WORDS[match[1]]
        return _made(name, lambda k: measures.macro_gain(gain, _whole(k)), match[2])
    if match := _STRATIFIED.fullmatch(folded):
        base = _metric_or_none(name, match[1])
        return base and _made(name, lambda b: measures.stratified(base, b), match[2])
    if folded.startswith("macro-"):
        base = _metric_or_none(name, folded.removeprefix("macro-"))
        return base and _made(name, lambda: measures.macro(base))
    return None


def _is_summary(summary: Any) -> None:
    if not isinstance(summary, Summary):
        raise ValueError(f"`summary` must be of owkg.metrics.summary, got {summary!r}.")


def adjusted(summary: Any, adjustment: Any) -> Summary:
    """`summary` with chance taken out.

    The name is `z` and the plain name for z; `a` and the plain name for the index of a metric that is
    better large, and for the ratio of one that is better small, whose index ends in `i`: amrr, amr, amri.

    Raises:
        ValueError: if the summary is adjusted already, has no chance level (count, dispersion), or the
            ratio is asked of a metric that is better large.
    """
    _is_summary(summary)
    if adjustment not in list(Adjustment):
        raise ValueError(f"`adjustment` must be of {', '.join(Adjustment)}, got {adjustment!r}.")
    adjustment = Adjustment(adjustment)
    if summary.adjustment is not Adjustment.NONE or isinstance(summary.measure, Dispersion):
        raise ValueError(f"{summary.name} cannot be adjusted for chance.")
    if adjustment is Adjustment.NONE:
        return summary
    if adjustment is Adjustment.RATIO and summary.larger_is_better:
        raise ValueError(f"the ratio to chance is of metrics that are better small, not of {summary.name}.")
    ending = "i" if adjustment is Adjustment.INDEX and not summary.larger_is_better else ""
    beginning = "z" if adjustment is Adjustment.Z else "a"
    return Summary(f"{beginning}{summary.name}{ending}", summary.measure, summary.weighting, adjustment)


def _adjusted(name: str, folded: str) -> Summary | None:
    for prefix in ("z-", "z"):
        if folded.startswith(prefix) and (base := _plain(name, folded.removeprefix(prefix))):
            return adjusted(base, Adjustment.Z)
    for prefix in ("adjusted-", "a"):
        if not folded.startswith(prefix):
            continue
        rest = folded.removeprefix(prefix)
        if base := _plain(name, rest):
            return adjusted(base, Adjustment.INDEX if base.larger_is_better else Adjustment.RATIO)
        for suffix in ("-index", "i"):
            if rest.endswith(suffix) and (base := _plain(name, rest.removesuffix(suffix))):
                return adjusted(base, Adjustment.INDEX)
    return None


def summary(name: str) -> Summary:
    """The summary of ranks of that name; case, `_` against `-`, and the common aliases do not matter.

    Args:
        name: as `owkg metrics --list` prints them, or an alias, PyKEEN's among them.

    Raises:
        ValueError: for an unknown name (the message names the near ones), or a bad parameter.

    Examples:
        >>> summary("adjusted_arithmetic_mean_rank_index").name, summary("AHits_at_10").name
        ('amri', 'ahits@10')
        >>> summary("probe@1/2,0.25").name
        'probe@0.5,0.25'
    """
    folded = _folded(name)
    folded = _SYNONYMS.get(folded, folded)
    try:
        found = _plain(name, folded) or _adjusted(name, folded)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith("metric ") else f"metric {name!r}: {text}") from None
    if found is None:
        raise _unknown(name, folded, _KNOWN_SUMMARIES, "owkg metrics --list shows all.")
    return found


_PYKEEN: dict[Measure, str] = {
    MR: "arithmetic_mean_rank",
    MRR: "inverse_harmonic_mean_rank",
    IMR: "inverse_arithmetic_mean_rank",
    HMR: "harmonic_mean_rank",
    GMR: "geometric_mean_rank",
    IGMR: "inverse_geometric_mean_rank",
    Median(): "median_rank",
    Median(inverse=True): "inverse_median_rank",
    Dispersion(Spread.COUNT): "count",
    Dispersion(Spread.STANDARD_DEVIATION): "standard_deviation",
    Dispersion(Spread.VARIANCE): "variance",
    Dispersion(Spread.MEDIAN_ABSOLUTE_DEVIATION): "median_absolute_deviation",
}


def pykeen_key(summary: Any) -> str | None:
    """PyKEEN's key of a summary: `inverse_harmonic_mean_rank` of mrr; None where PyKEEN has none."""
    _is_summary(summary)
    measure = summary.measure
    if summary.weighting != measures.EQUAL or isinstance(measure, BestAnswer):
        return None
    hits = isinstance(measure, Metric) and re.fullmatch(r"hits@(\d+)", measure.name)
    base = f"hits_at_{hits[1]}" if hits else _PYKEEN.get(measure)
    if base is None:
        return None
    form = {
        Adjustment.NONE: "{}",
        Adjustment.RATIO: "adjusted_{}",
        Adjustment.INDEX: "adjusted_{}" if measure != MR and measure != GMR else "adjusted_{}_index",
        Adjustment.Z: "z_{}",
    }[summary.adjustment]
    key = form.format(base)
    adjustable = {
        "adjusted_arithmetic_mean_rank",
        "adjusted_arithmetic_mean_rank_index",
        "adjusted_geometric_mean_rank_index",
        "adjusted_inverse_harmonic_mean_rank",
        "z_arithmetic_mean_rank",
        "z_geometric_mean_rank",
        "z_inverse_harmonic_mean_rank",
    }
    return key if summary.adjustment is Adjustment.NONE or hits or key in adjustable else None
