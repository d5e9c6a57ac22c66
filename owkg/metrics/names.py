"""The names by which users know metrics, those of PyKEEN among them."""

import re
from typing import Any

from owkg.checks import ArgumentError
from owkg.metrics import measures
from owkg.metrics.list_gains import GAINS
from owkg.metrics.measures import (
    Adjustment,
    BestAnswer,
    Dispersion,
    Measure,
    Median,
    Metric,
    Spread,
    Weighting,
)
from owkg.rank_weights.catalogue import GMR, HMR, IGMR, IMR, MR, MRR
from owkg.rank_weights.names import (
    KNOWN,
    NUMBER,
    folded_name,
    made,
    rank_weight_or_none,
    unknown_name,
    whole,
)
from owkg.rank_weights.rank_weight import RankWeight

_WGMR = Metric("wgmr", GMR, Weighting(negatives=1.0))
_OTHERS = {
    "median-rank": Metric("median_rank", Median()),
    "median": Metric("median_rank", Median()),
    "inverse-median-rank": Metric("inverse_median_rank", Median(inverse=True)),
    "wgmr": _WGMR,
    "weighted-geometric-mean-rank": _WGMR,
    "count": Metric("count", Dispersion(Spread.COUNT)),
    "standard-deviation": Metric("standard_deviation", Dispersion(Spread.STANDARD_DEVIATION)),
    "rank-std": Metric("standard_deviation", Dispersion(Spread.STANDARD_DEVIATION)),
    "variance": Metric("variance", Dispersion(Spread.VARIANCE)),
    "rank-var": Metric("variance", Dispersion(Spread.VARIANCE)),
    "median-absolute-deviation": Metric(
        "median_absolute_deviation", Dispersion(Spread.MEDIAN_ABSOLUTE_DEVIATION)
    ),
    "rank-mad": Metric("median_absolute_deviation", Dispersion(Spread.MEDIAN_ABSOLUTE_DEVIATION)),
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
_PROBE = re.compile(rf"probe(?:@|-at-|-){NUMBER}(?:,{NUMBER})?(?:,{NUMBER})?")
_STRATIFIED = re.compile(rf"strat(?:ified)?-(.+?)(?:@|-at-){NUMBER}")
_AVERAGE_PRECISION = re.compile(rf"macro-(?:map|ap)(?:@|-at-){NUMBER}")
_WORDS = {word: gain.name for gain in GAINS.values() for word in (gain.name, *gain.aliases)}
_LIST_GAIN = re.compile(rf"macro-({'|'.join(_WORDS)})(?:@|-at-){NUMBER}")

_KNOWN_NAMES = (
    *KNOWN,
    *_OTHERS,
    *("amr", "amri", "amrr", "agmri", "ahits@1", "ahits@10", "zmr", "zmrr", "zgmr", "zhits@1", "zhits@10"),
    *("adjusted-mean-rank", "adjusted-mean-rank-index", "adjusted-hits-at-10"),
    *("probe@0.5,0.5", "strat-mrr@0.5", "macro-mrr", "macro-hits@10", "macro-map@20"),
    *(f"macro-{gain}@20" for gain in GAINS),
)


def _plain(name: str, folded: str) -> Metric | None:
    """The unadjusted metric of that name."""
    if folded in _OTHERS:
        return _OTHERS[folded]
    if found := rank_weight_or_none(name, folded):
        return measures.micro(found)
    if match := _PROBE.fullmatch(folded):
        return made(name, measures.probe, *match.groups(), finite=False)
    if match := _AVERAGE_PRECISION.fullmatch(folded):
        return made(name, lambda k: measures.macro_map(whole(k)), match[1])
    if match := _LIST_GAIN.fullmatch(folded):
        gain = _WORDS[match[1]]
        return made(name, lambda k: measures.macro_gain(gain, whole(k)), match[2])
    if match := _STRATIFIED.fullmatch(folded):
        base = rank_weight_or_none(name, match[1])
        return base and made(name, lambda b: measures.stratified(base, b), match[2])
    if folded.startswith("macro-"):
        base = rank_weight_or_none(name, folded.removeprefix("macro-"))
        return base and made(name, lambda: measures.macro(base))
    return None


def _is_metric(metric: Any) -> None:
    if not isinstance(metric, Metric):
        raise ArgumentError("metric", f"must be of owkg.metrics.metric, got {metric!r}.")


def adjusted(metric: Any, adjustment: Any) -> Metric:
    """`metric` with chance taken out.

    The name is `z` and the plain name for z; `a` and the plain name for the index of a metric that is
    better large, and for the ratio of one that is better small, whose index ends in `i`: amrr, amr, amri.

    Raises:
        ValueError: if the metric is adjusted already, has no chance level (count, dispersion), or the
            ratio is asked of a metric that is better large.
    """
    _is_metric(metric)
    if adjustment not in list(Adjustment):
        raise ArgumentError("adjustment", f"must be of {', '.join(Adjustment)}, got {adjustment!r}.")
    adjustment = Adjustment(adjustment)
    if metric.adjustment is not Adjustment.NONE or isinstance(metric.measure, Dispersion):
        raise ValueError(f"{metric.name} cannot be adjusted for chance.")
    if adjustment is Adjustment.NONE:
        return metric
    if adjustment is Adjustment.RATIO and metric.larger_is_better:
        raise ValueError(f"the ratio to chance is of metrics that are better small, not of {metric.name}.")
    ending = "i" if adjustment is Adjustment.INDEX and not metric.larger_is_better else ""
    beginning = "z" if adjustment is Adjustment.Z else "a"
    return Metric(f"{beginning}{metric.name}{ending}", metric.measure, metric.weighting, adjustment)


def _adjusted(name: str, folded: str) -> Metric | None:
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


def metric(name: str) -> Metric:
    """The metric of ranks of that name; case, `_` against `-`, and the common aliases do not matter.

    Args:
        name: as `owkg metrics --list` prints them, or an alias, PyKEEN's among them.

    Raises:
        ValueError: for an unknown name (the message names the near ones), or a bad parameter.

    Examples:
        >>> metric("adjusted_arithmetic_mean_rank_index").name, metric("AHits_at_10").name
        ('amri', 'ahits@10')
        >>> metric("probe@1/2,0.25").name
        'probe@0.5,0.25'
    """
    folded = folded_name(name)
    folded = _SYNONYMS.get(folded, folded)
    try:
        found = _plain(name, folded) or _adjusted(name, folded)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith("metric ") else f"metric {name!r}: {text}") from None
    if found is None:
        raise unknown_name(name, folded, _KNOWN_NAMES, "owkg metrics --list shows all.")
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


def pykeen_key(metric: Any) -> str | None:
    """PyKEEN's key of a metric: `inverse_harmonic_mean_rank` of mrr; None where PyKEEN has none."""
    _is_metric(metric)
    measure = metric.measure
    if metric.weighting != measures.EQUAL or isinstance(measure, BestAnswer):
        return None
    hits = isinstance(measure, RankWeight) and re.fullmatch(r"hits@(\d+)", measure.name)
    base = f"hits_at_{hits[1]}" if hits else _PYKEEN.get(measure)
    if base is None:
        return None
    form = {
        Adjustment.NONE: "{}",
        Adjustment.RATIO: "adjusted_{}",
        Adjustment.INDEX: "adjusted_{}" if measure != MR and measure != GMR else "adjusted_{}_index",
        Adjustment.Z: "z_{}",
    }[metric.adjustment]
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
    return key if metric.adjustment is Adjustment.NONE or hits or key in adjustable else None
