"""Registry of metrics: each entry is a metric with its names, formula, chance level and source.

The rank weights come from `owkg.rank_weights.registry`, the gains over lists from `list_gains`. The parser of
names, the listing, the suggestions in errors and PyKEEN's keys are derived from the entries.
"""

from typing import Any

import numpy as np

from owkg.errors import ArgumentError
from owkg.ir.names import MEASURES, Measure, measure
from owkg.metrics import measures
from owkg.metrics.list_gains import GAINS, ListGain
from owkg.metrics.measures import Adjustment, Dispersion, Median, Metric, Spread, Weighting
from owkg.rank_weights.catalogue import GMR
from owkg.rank_weights.rank_weight import RankWeight, probed
from owkg.rank_weights.registry import (
    RANK_WEIGHTS,
    Entry,
    Registry,
    folded_name,
    rank_weight_or_none,
    unknown_name,
)

_ZHOU = "Zhou et al. 2022"
_BERRENDORF = "Berrendorf et al. 2020"
_HOYT = "Hoyt et al. 2022"


def _spread(
    kind: Spread, formula: str, aliases: tuple[str, ...], *, low: str = "[0, inf)", source: str = "PyKEEN"
) -> Entry:
    name = kind.value.replace(" ", "_")
    entry = Entry(name, name, formula, low, "-", "-", source, lambda: Metric(name, Dispersion(kind)))
    return entry._replace(aliases=aliases, pykeen=name if source == "PyKEEN" else "")


def _median(name: str, formula: str, values: str, better: str, aliases: tuple[str, ...]) -> Entry:
    measure = Median(inverse=better == "larger")
    chance = "normal distribution, drawn"
    entry = Entry(name, name, formula, values, better, chance, "PyKEEN", lambda: Metric(name, measure))
    return entry._replace(aliases=aliases, pykeen=name)


def _of_gain(gain: ListGain) -> Entry:
    return Entry(
        f"macro-{gain.name}@K",
        f"macro-{gain.name}@20",
        gain.formula,
        "[0, 1]",
        "larger",
        "closed",
        gain.source,
        lambda k: measures.macro_gain(gain.name, k),
        tuple(f"macro-{alias}" for alias in gain.aliases),
    )


METRICS = Registry(
    _median("median_rank", "median of r", "[1, N]", "smaller", ("median",)),
    _median("inverse_median_rank", "1 / median_rank", "(0, 1]", "larger", ()),
    Entry(
        "wgmr",
        "wgmr",
        "gmr with weights w (N-1)",
        "[1, N]",
        "smaller",
        "closed",
        "Tiwari et al. 2021",
        lambda: Metric("wgmr", GMR, Weighting(negatives=1.0)),
        ("weighted-geometric-mean-rank",),
    ),
    Entry(
        "probe@A,B[,C[,E]]",
        "probe@0.5,0.5",
        "mean of (r^-A - N^-A)/(1 - N^-A), weights w (popularity+E)^-B (relation popularity+E)^-C",
        "[0, 1]",
        "larger",
        "closed",
        "PROBE 2026",
        measures.probe,
    ),
    Entry(
        "macro-map@K",
        "macro-map@20",
        "mean over queries of (sum of i/p_i over p_i <= K) / (number of answers); p_i position of the i-th",
        "[0, 1]",
        "larger",
        "closed",
        f"{_ZHOU}, trec_eval",
        measures.macro_map,
        ("macro-ap",),
    ),
    *map(_of_gain, GAINS.values()),
    _spread(Spread.COUNT, "n", ("rank-count",), low="[1, inf)"),
    _spread(Spread.STANDARD_DEVIATION, "standard deviation of r", ("rank-std", "std")),
    _spread(Spread.VARIANCE, "variance of r", ("rank-var", "var")),
    _spread(Spread.MEDIAN_ABSOLUTE_DEVIATION, "1.4826 median of |r - median|", ("rank-mad", "mad")),
    _spread(Spread.MAX_RANK, "max of r, power-mean@inf", (), low="[1, N]", source=f"{_HOYT}, Table 3"),
    _spread(Spread.MIN_RANK, "min of r, power-mean@-inf", (), low="[1, N]", source=f"{_HOYT}, Table 3"),
)
"""Metrics that are not built from other metrics, in addition to the micro means of rank weights."""

PLAIN = Registry(RANK_WEIGHTS, METRICS)
"""All metrics that are not built from other metrics."""

OF_RANK_WEIGHTS = Registry(
    Entry(
        "strat-M@B",
        "strat-mrr@0.5",
        "M with weights w (popularity+1)^-B",
        "as M",
        "as M",
        "as M",
        "Mohamed et al. 2020",
        measures.stratified,
        ("stratified-M",),
    ),
    Entry(
        "macro-M",
        "macro-mrr",
        "mean over queries of h(best answer's r)",
        "as M",
        "as M",
        "closed",
        _ZHOU,
        measures.macro,
    ),
)
"""Metrics built from a rank weight M."""


def _ratio_or_index(metric: Metric) -> Metric:
    return adjusted(metric, Adjustment.INDEX if metric.larger_is_better else Adjustment.RATIO)


ADJUSTED = Registry(
    Entry(
        "aM",
        "amr",
        "M / E, if small M is better",
        "[0, inf)",
        "smaller",
        "as M",
        _BERRENDORF,
        _ratio_or_index,
        ("adjusted-M",),
    ),
    Entry(
        "aM",
        "amrr",
        "(M - E)/(B - E), if large M is better",
        "(-inf, 1]",
        "larger",
        "as M",
        _HOYT,
        _ratio_or_index,
    ),
    Entry(
        "aMi",
        "amri",
        "(M - E)/(B - E), if small M is better",
        "(-inf, 1]",
        "larger",
        "as M",
        f"{_BERRENDORF}, {_HOYT}",
        lambda metric: adjusted(metric, Adjustment.INDEX),
        ("adjusted-M-index",),
    ),
    Entry(
        "zM",
        "zmrr",
        "+-(M - E)/sqrt(V)",
        "(-inf, inf)",
        "larger",
        "as M",
        _HOYT,
        lambda metric: adjusted(metric, Adjustment.Z),
        ("z-M",),
    ),
    Entry(
        "cdf-zM",
        "cdf-zmrr",
        "Phi(zM)",
        "[0, 1]",
        "larger",
        "normal distribution",
        f"{_HOYT}, section 4.1",
        lambda metric: adjusted(metric, Adjustment.CDF),
    ),
)
"""Plain metrics M adjusted for chance."""

LISTING = Registry(PLAIN, OF_RANK_WEIGHTS, ADJUSTED)
"""All metrics."""

# PyKEEN's synonyms that follow from no entry.
_SYNONYMS = {
    "power-mean@inf": "max-rank",
    "power-mean@-inf": "min-rank",
    "aamr": "amr",
    "adjusted-hits-at-k": "ahits@10",  # PyKEEN's K if its key names none
    "z-hits-at-k": "zhits@10",
    "aamri": "amri",
    "gmri": "agmri",
    "zamr": "zmr",
}


def adjusted(metric: Metric, adjustment: Adjustment | str) -> Metric:
    """Metric adjusted for chance.

    The name is `z` and the plain name for z, and `cdf-z` and the plain name for the normal cdf of z. It is
    `a` and the plain name for the index of a metric that is better large (amrr), and for the ratio of a
    metric that is better small (amr), whose index ends in `i` (amri).

    Args:
        metric: plain metric.
        adjustment: "ratio", "index", "z" or "cdf"; "none" returns `metric` itself.

    Raises:
        ValueError: if the metric is adjusted already, has no chance level (count, dispersion), or the ratio
            is asked for a metric that is better large.
    """
    _is_metric(metric)
    if adjustment not in list(Adjustment):
        raise ArgumentError("adjustment", f"must be one of {', '.join(Adjustment)}, got {adjustment!r}.")
    adjustment = Adjustment(adjustment)
    if metric.adjustment is not Adjustment.NONE or isinstance(metric.measure, Dispersion):
        raise ValueError(f"{metric.name} cannot be adjusted for chance.")
    if adjustment is Adjustment.NONE:
        return metric
    if adjustment is Adjustment.RATIO and metric.larger_is_better:
        raise ValueError(f"the ratio to chance needs a metric that is better small, got {metric.name}.")
    ending = "i" if adjustment is Adjustment.INDEX and not metric.larger_is_better else ""
    beginning = {Adjustment.Z: "z", Adjustment.CDF: "cdf-z"}.get(adjustment, "a")
    return Metric(f"{beginning}{metric.name}{ending}", metric.measure, metric.weighting, adjustment)


def _is_metric(metric: object) -> None:
    if not isinstance(metric, Metric):
        raise ArgumentError("metric", f"must be a metric, as from owkg.metrics.metric, got {metric!r}.")


def _plain(name: str, folded: str) -> Metric | None:
    """Unadjusted metric of that name; None if there is none."""
    if found := rank_weight_or_none(name, folded):
        return measures.micro(found)
    for entry in METRICS:
        for texts in entry.matches(folded):
            return entry.made(name, texts)
    for entry in OF_RANK_WEIGHTS:
        for of, *texts in entry.matches(folded):
            if base := rank_weight_or_none(name, of):
                return entry.made(name, texts, base)
    return None


def _adjusted(name: str, folded: str) -> Metric | None:
    for entry in ADJUSTED:
        for (of,) in entry.matches(folded):
            if base := _plain(name, of):
                return entry.made(name, (), base)
    return None


def _found(name: str, folded: str) -> Metric | None:
    folded = _SYNONYMS.get(folded, folded)
    return _plain(name, folded) or _adjusted(name, folded)


def metric(name: str) -> Metric:
    """Metric of ranks with a given name; case does not matter, nor does `_` in place of `-`.

    Args:
        name: name that `owkg metrics --list` prints, or an alias, PyKEEN's names included.

    Raises:
        ValueError: if the name is unknown (the message lists similar names), or a parameter is out of range.

    Examples:
        >>> metric("adjusted_arithmetic_mean_rank_index").name, metric("AHits_at_10").name
        ('amri', 'ahits@10')
        >>> metric("probe@1/2,0.25").name
        'probe@0.5,0.25'
    """
    folded = folded_name(name)
    found = _found(name, folded)
    if found is None:
        word, at, cutoff = folded.partition("@")
        if word in _IR:
            meant = f"did you mean {_IR[word]}@{cutoff if at else 10}?"
            raise ValueError(f"unknown metric {name!r}: {meant} For TREC runs, use `owkg ir`.")
        raise unknown_name(name, LISTING, "owkg metrics --list shows all.", _MORE)
    return found


# Entries that `register_metric` has added, by name.
_OWN: dict[str, Entry] = {}


def register_metric(entry: Entry | ListGain) -> None:
    """Adds a user-defined metric: its name then works wherever owkg's own do, and the metric is listed.

    It works in `evaluate`, `compare`, `audit` and all commands. A rank weight that is a plain mean and
    written with `jax.numpy` also works in theory and simulation. Commands first import the modules that the
    environment variable `OWKG_PLUGINS` names. An entry registered earlier under the same name is replaced.

    Args:
        entry: entry whose `make` returns a `RankWeight`, which gives the micro mean, macro-, strat- and the
            adjusted forms; a `Metric`; or an `owkg.ir.Measure` of judged lists, for TREC runs. Or a
            `ListGain`, which becomes macro-NAME@K.

    Raises:
        ValueError: if `entry` is not such an entry, its name or an alias belongs to another metric, its
            example does not match its name, or the object it makes is not a metric, has another name, or is
            better in the other direction.

    Examples:
        >>> from owkg.rank_weights import RankWeight
        >>> squared = RankWeight("squared-rr", lambda rank: rank**-2.0)
        >>> said = "squared-rr", "squared-rr", "mean of r^-2", "(0, 1]", "larger", "closed", "own"
        >>> register_metric(Entry(*said, lambda: squared))
        >>> metric("macro-squared-rr").name, metric("asquared-rr").name
        ('macro-squared-rr', 'asquared-rr')
        >>> unregister_metric("squared-rr")
    """
    gain = _gain_checked(entry) if isinstance(entry, ListGain) else None
    if isinstance(entry, ListGain):
        entry = _of_gain(entry)
    if not isinstance(entry, Entry) or not all(isinstance(text, str) for text in entry[:7]):
        raise ArgumentError("entry", f"must be an owkg.metrics.Entry or ListGain, got {entry!r}.")
    if entry.better not in ("larger", "smaller", "-"):
        raise ArgumentError("entry", f"must have `better` larger, smaller or -, got {entry.better!r}.")
    if not isinstance(entry.aliases, tuple) or not callable(entry.make):
        raise ArgumentError("entry", "must have a tuple of aliases, and a function that makes the metric.")
    if any(word != folded_name(word) or not word or "," in word for word in entry.words):
        must = "must have names and aliases in lower case, without commas, and no M"
        raise ArgumentError("entry", f"{must}, got {entry.words}.")
    before = _OWN.get(entry.name)
    for word in (entry.example, *entry.aliases):
        if before is not None and next(before.matches(folded_name(word)), None) is not None:
            continue
        if found := _found(word, folded_name(word)) or measure(word):
            raise ArgumentError("entry", f"must have unused names, got {word!r}, which is {found.name}.")
    texts = next(entry.matches(folded_name(entry.example)), None)
    if texts is None:
        raise ArgumentError("entry", f"must have an example of {entry.name!r}, got {entry.example!r}.")
    if gain is not None:
        GAINS[gain.name] = gain  # the checks above exclude the name of a gain of owkg
    try:
        made = entry.made(entry.example, texts)
    except TypeError as error:
        raise ArgumentError("entry", f"must make the metric of its parameters: {error}") from None
    kinds = {RankWeight: RANK_WEIGHTS, Metric: METRICS, Measure: MEASURES}
    if type(made) not in kinds:
        raise ArgumentError("entry", f"must make a RankWeight, a Metric or a Measure, got {made!r}.")
    if next(entry.matches(folded_name(made.name)), None) is None:
        raise ArgumentError("entry", f"must make a metric called {entry.name}, got {made.name!r}.")
    if isinstance(made, RankWeight):
        probed(made)
    if entry.better != "-" and getattr(made, "larger_is_better", True) != (entry.better == "larger"):
        raise ArgumentError(
            "entry", f"must make a metric for which {entry.better} is better, got one for which it is not."
        )
    unregister_metric(entry.name)
    if gain is not None:
        GAINS[gain.name] = gain
    _OWN[entry.name] = entry
    kinds[type(made)].add(entry)


def _gain_checked(gain: ListGain) -> ListGain:
    """Gain over lists, tested on a few positions; raises ValueError if its numbers are not finite."""
    if not isinstance(gain.name, str) or not callable(gain.discount) or not callable(gain.ideal):
        raise ArgumentError("entry", f"must have a name, a discount and an ideal, got {gain!r}.")
    with np.errstate(all="ignore"):
        discount: Any = gain.discount(np.arange(1, 6))
    if np.shape(discount) != (5,) or not np.isfinite(np.asarray(discount, np.float64)).all():
        must = "must have a discount of positions [n] that is n finite numbers"
        raise ArgumentError("entry", f"{must}, got {discount!r}.")
    ideal: Any = gain.ideal(np.cumsum(discount), np.array([1, 2, 3]), 5)
    if np.shape(ideal) != (3,) or not (np.asarray(ideal, np.float64) > 0).all():
        must = "must have an ideal of lists [n] that is n numbers above 0"
        raise ArgumentError("entry", f"{must}, got {ideal!r}.")
    return gain


def unregister_metric(name: str) -> None:
    """Removes an entry that `register_metric` has added; does nothing if the name was not registered."""
    entry = _OWN.pop(name, None)
    if entry is not None:
        GAINS.pop(name.removeprefix("macro-").partition("@")[0], None)
        for registry in (RANK_WEIGHTS, METRICS, MEASURES):
            registry.remove(entry)


# Further names that errors may suggest, in addition to the names of the entries.
_MORE = (
    *("hits@1", "hits@3", "hits@5", "ahits@1", "ahits@10", "agmri", "zmr", "zgmr", "zhits@1", "zhits@10"),
    *("adjusted-mean-rank", "adjusted-mean-rank-index", "adjusted-hits-at-10", "macro-hits@10"),
)
# Metrics of rank tables by their names in information retrieval.
_IR = {
    **dict.fromkeys(("map", "ap"), "macro-map"),
    "ndcg": "macro-ndcg",
    "recall": "macro-recall",
    **dict.fromkeys(("p", "precision"), "macro-precision"),
    **dict.fromkeys(("f1", "f"), "macro-f1"),
    **dict.fromkeys(("success", "hit-rate", "hr", "accuracy"), "hits"),
}


def pykeen_key(metric: Metric) -> str | None:
    """PyKEEN's key of a metric, such as `inverse_harmonic_mean_rank` for mrr; None if PyKEEN has none."""
    _is_metric(metric)
    for entry in PLAIN:
        if not entry.pykeen or metric.weighting != measures.EQUAL:
            continue
        for texts in entry.matches(folded_name(getattr(metric.measure, "name", metric.name))):
            made = entry.made(metric.name, texts)
            if metric.measure != getattr(made, "measure", made):
                return None
            key = entry.pykeen.format(*texts)
            if metric.adjustment is Adjustment.NONE:
                return key
            if metric.adjustment.value not in entry.pykeen_adjusted:
                return None
            ending = "_index" if metric.adjustment is Adjustment.INDEX and entry.better == "smaller" else ""
            return f"{'z' if metric.adjustment is Adjustment.Z else 'adjusted'}_{key}{ending}"
    return None
