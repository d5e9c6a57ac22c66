"""Numbers and assumptions of an audit, in words."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl
import polars.selectors as cs

from owkg.auditing.result import Audit, metric_name, verdict_in_words
from owkg.pools.design import Design
from owkg.terminal import tables

NONE = "–"
"""Text in place of a missing number."""

_MODEL = "the model of Yang et al. (2022)"


def prepared(audit: Audit) -> Audit:
    """Audit with columns `label` (metric and average) and `place` (index of the label), and without NaN."""
    names = pl.concat([audit.models.select("metric", "average"), audit.pairs.select("metric", "average")])
    names = names.unique(maintain_order=True)
    texts = [metric_name(*row) for row in names.select("metric", "average").rows()]
    names = names.with_columns(label=pl.Series(texts, dtype=pl.String)).with_row_index("place")

    def of(frame: pl.DataFrame) -> pl.DataFrame:
        frame = frame.with_columns(pl.when(cs.float().is_finite()).then(cs.float()))
        shared = [name for name in ("metric", "average") if name in frame.columns]
        if not shared:
            return frame
        return frame.join(names, on=shared, how="left", maintain_order="left")

    frames = {name: of(frame) for name, frame in audit.items()}
    out = frames["models"].select("place", "model", pl.col("refuted").fill_null(0.0))
    pairs, lost = frames["pairs"], []
    for end in ("first", "second"):
        both = pairs.join(out, left_on=["place", end], right_on=["place", "model"], maintain_order="left")
        lost.append(both["refuted"])
    frames["pairs"] = pairs.with_columns(refuted=pl.max_horizontal(*lost))
    return replace(audit, **frames)


def labels(audit: Audit) -> list[str]:
    """Labels of the metrics of a prepared audit, by place."""
    both = pl.concat([frame.select("place", "label") for frame in (audit.models, audit.pairs)])
    return both.unique().sort("place")["label"].to_list()


def number_text(value: float | None, digits: int = 4) -> str:
    """Number with about `digits` decimals."""
    return NONE if value is None else tables.shown(value, digits)


def estimate_text(value: float | None, low: float | None, high: float | None) -> str:
    """Number with its interval."""
    if low is None or high is None:
        return number_text(value)
    return f"{number_text(value)} [{number_text(low)}, {number_text(high)}]"


def range_text(middle: float | None, low: float | None, high: float | None, digits: int = 4) -> str:
    """Range of an implied number, with its value in the middle of the assumptions."""
    if low is None or high is None:
        return number_text(middle, digits)
    inside = "impossible in the middle" if middle is None else f"middle {number_text(middle, digits)}"
    return f"{number_text(low, digits)} to {number_text(high, digits)} ({inside})"


def p_text(value: float | None) -> str:
    """P-value; at the floor of the randomisation test as less than 0.0002."""
    if value is None:
        return NONE
    return "<\u00a00.0002" if value < 0.0002 else f"{value:.4f}"


def p_said(value: float | None) -> str:
    """P-value within a sentence."""
    return f"p = {p_text(value)}".replace("= <", "<")


def chance_text(low: float | None, high: float | None) -> str:
    """Smallest and largest of several probabilities."""
    return NONE if low is None or high is None else tables.probability_range(low, high)


def certified(value: int | None) -> str:
    """Lower bound of the missing answers that reverse an order."""
    return "none reverses it" if value is None else f"{value:,}"


def demonstrated(value: int | None, searched: bool) -> str:
    """Size of the example found that reverses an order; without lists no example is searched."""
    if value is None:
        return "none found" if searched else NONE
    return f"{value:,}"


def reversing(row: Mapping[str, Any]) -> str:
    """Number of missing answers that reverse the order of a pair: a lower bound, or with an example found."""
    least, found = row["certified"], row["demonstrated"]
    if row["difference"] == 0:
        return "0"
    if least is None:
        return "none reverse it"
    if found is None:
        return f"at least {least:,}"
    return f"{least:,}" if found == least else f"{least:,} to {found:,}"


def rests(audit: Audit) -> dict[str, str]:
    """Assumptions of each table of a prepared audit, in a sentence or two, by the name of its frame."""
    said = audit.assumptions
    level = said.get("level")
    over = "intervals over queries" if level is None else f"{100 * level:g} % intervals over queries"
    known, rest, labels = known_text(said), model_text(said), labels_text(said)
    return {
        "models": f"Rests on {known}; {over}; the values assume nothing about missing answers."
        + f" Strength and full test rest on {rest}." * audit.models["full"].is_not_null().any(),
        "judged": judged_text(said),
        "plans": plans_rest(said),
        "pairs": f"Rests on {known}; {over}. The missing answers to reverse an order need no model.{labels} "
        f"P(better), and where it becomes unsure, rest on {rest}; "
        "the queries to see it assume that the observed difference is the true one.",
    }


def known_text(said: Mapping[str, Any]) -> str:
    """Observed answers, queries and ranks."""
    counts = _counted(said, "answers"), _counted(said, "queries")
    return f"the known answers ({counts[0]}) to {counts[1]} queries, {_ranks(said)}"


def model_text(said: Mapping[str, Any]) -> str:
    """Assumptions about missing answers."""
    sparsity = sparsity_text(said)
    if said.get("sparsity") is None:
        least = said.get("sparsity_at_least")
        why = (
            "none is stated"
            if least is None
            else f"judging shows no more than that it is at least {least:.3g}"
        )
        sparsity = f"the sparsities of a grid ({why})"
    return f"{sparsity}, {correlation_text(said)}, and {_MODEL}, {_error(said)}; {_unevenness(said)}"


def labels_text(said: Mapping[str, Any]) -> str:
    """Sentence, after a space, on the judged labels that breakdown numbers start from; "" without any."""
    found, rejected = said.get("judged_labels") or (0, 0)
    counted = f" Judged labels are included: {found:,} found answers, {rejected:,} ruled-out candidates."
    return counted if found + rejected else ""


def assumed(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Assumptions of the verdicts, each once, as (name, sentence)."""
    depth, level = said.get("lists"), said.get("level")
    lists = (
        "none given, so owkg knows only how few missing answers cannot reverse an order."
        if depth is None
        else f"depth {depth}; owkg searches their candidates for answers that reverse an order."
    )
    over = "over queries" if level is None else f"{100 * level:g} %, over queries"
    return [
        (
            "Observed",
            f"{_counted(said, 'answers')} known answers to {_counted(said, 'queries')} queries, "
            f"{_ranks(said)}.",
        ),
        ("Sparsity", f"{_sparsity(said)}."),
        ("Correlation", f"{_correlation(said)}."),
        ("Unevenness", f"{_unevenness(said)}."),
        ("Model", f"{_model(said)}."),
        ("Lists", lists + labels_text(said)),
        ("Intervals", f"{over}: whole queries, not single answers, are the sampling unit."),
    ]


def _sparsity(said: Mapping[str, Any]) -> str:
    least, stated = said.get("sparsity_at_least"), said.get("sparsity")
    if least is not None:
        return (
            f"at least {least:.3g} ({said.get('sparsity_from')}), with no upper end, so owkg claims no "
            "full-test metric"
        )
    if stated is None:
        return "not stated, so owkg claims no full-test metric (--sparsity LOW,HIGH states it)"
    return f"{_range(stated)} ({said.get('sparsity_from')}): share of the true answers that the test lacks"


def _correlation(said: Mapping[str, Any]) -> str:
    stated = said.get("correlation")
    if stated is None:
        return "not stated: 0 is assumed, so that a model retrieves missing answers as often as known ones"
    own = isinstance(stated, Mapping)
    ranges = "; ".join(f"{name} {_range(ends)}" for name, ends in stated.items()) if own else _range(stated)
    return (
        f"{ranges} ({said.get('correlation_from')}): between being missing and being retrieved by the model"
    )


def _model(said: Mapping[str, Any]) -> str:
    stated = said.get("sparsity") is not None
    rest = "full-test metrics and P(better) rest" if stated else "sparsities below which orders are sure rest"
    middle = "; a range of a full-test metric covers all that you stated"
    return f"{rest} on {_MODEL}, {_error(said)}" + middle * stated


def plans_rest(said: Mapping[str, Any]) -> str:
    """Assumptions of the plans of further judgements, and the commands that carry them out."""
    depth = said.get("plan")
    return (
        f"For the pool of the first {depth} answers in every list, judged completely; medians over systems "
        "and over pairs. Widths rest on a prediction of the labels by the known answers; the intervals "
        "themselves will rest on the random draw alone. To carry out a line, run owkg pool --draw with "
        "its second column and this depth, label the sheet, and run owkg estimate --pool."
    )


def verdict(row: Mapping[str, Any]) -> str:
    """Verdict on a pair."""
    return verdict_in_words(row["verdict"], row["refuted"]) if row["verdict"] else "no verdict"


def protocol(said: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All assumptions except the notes, as (name, value)."""
    some = {name: value for name, value in said.items() if name != "notes"}
    if some.get("judged_labels"):  # two counts, not a range
        found, rejected = some["judged_labels"]
        some["judged_labels"] = f"{found:,} found answers, {rejected:,} ruled-out candidates"
    return [(name.replace("_", " "), _plain(value)) for name, value in some.items()]


def limits(said: Mapping[str, Any], first: str, second: str) -> list[float] | None:
    """Stated range as [lowest and highest sparsity, lowest and highest difference of correlations].

    The difference is second minus first.
    """
    sparsity, correlation = said.get("sparsity"), said.get("correlation")
    if sparsity is None:
        return None
    if isinstance(correlation, Mapping):
        one, other = correlation.get(first), correlation.get(second)
    else:
        one = other = correlation
    one, other = one or (0.0, 0.0), other or (0.0, 0.0)
    return [sparsity[0], sparsity[1], other[0] - one[1], other[1] - one[0]]


def _plain(value: object) -> str:
    if value is None or value == "":
        return "not stated"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_plain(entry)}" for name, entry in value.items())
    if isinstance(value, list | tuple):
        return _range(value) if _is_range(value) else ", ".join(map(_plain, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _is_range(value: list | tuple) -> bool:
    return len(value) == 2 and all(isinstance(end, int | float) for end in value)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def judged_text(said: Mapping[str, Any]) -> str:
    """Assumptions of the numbers from judgements."""
    if said.get("design") == Design.COMPLETE:
        return f"Rests on {Design.COMPLETE.in_words}, as stated; intervals over queries."
    return (
        "Rests on judgements: answers that nobody judged may be missing as well, so sparsities are lower "
        "bounds. The judged candidates were chosen, so they give no correlation."
    )


def _range(ends: list | tuple) -> str:
    low, high = (f"{end:,}" if isinstance(end, int) else f"{end:.3g}" for end in ends)
    return low if low == high else f"{low} to {high}"


def sparsity_text(said: Mapping[str, Any]) -> str:
    """Stated sparsity with its source."""
    if said.get("sparsity_at_least") is not None:
        least = f"a sparsity of at least {said['sparsity_at_least']:.3g}, with no upper end"
        return f"{least} ({said.get('sparsity_from')})"
    if said.get("sparsity") is None:
        return "no stated sparsity"
    source = said.get("sparsity_from")
    return f"a sparsity of {_range(said['sparsity'])}" + (f" ({source})" if source else "")


def correlation_text(said: Mapping[str, Any], models: tuple[str, ...] = ()) -> str:
    """Stated correlation; with `models`, the ranges of these models if each has its own."""
    stated = said.get("correlation")
    if stated is None:
        return "a correlation of 0 (none is stated: missing and retrieved are taken as independent)"
    if not isinstance(stated, Mapping):
        return f"a correlation of {_range(stated)}"
    if not models:
        return "the correlation of each model that the protocol names"
    own = (f"{_range(stated[model])} of {model}" for model in models if model in stated)
    return f"a correlation of {', '.join(own)}"


def _unevenness(said: Mapping[str, Any]) -> str:
    ends = said.get("unevenness")
    if not ends:
        return "queries may lack any shares of their answers"
    if max(ends) == 0:
        return "all queries lack the same share of their answers"
    source = said.get("unevenness_from")
    return (
        f"queries lack different shares of their answers; the logits of these shares have a standard "
        f"deviation of {_range(ends)} ({source})"
    )


def _error(said: Mapping[str, Any]) -> str:
    found = said.get("calibration")
    if isinstance(found, list):
        return "with errors measured only on simulated worlds of families"
    return f"with the calibration {found}" if found else "without a named calibration"


def _ranks(said: Mapping[str, Any]) -> str:
    filtered = said.get("filtered")
    kind = "ranks" if filtered is None else "filtered ranks" if filtered else "raw ranks"
    return f"{kind}, {said['ties']} ties" if said.get("ties") else kind


def _counted(said: Mapping[str, Any], name: str) -> str:
    return "not counted" if said.get(name) is None else f"{said[name]:,}"
