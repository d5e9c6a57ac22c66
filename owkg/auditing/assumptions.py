"""What the numbers of an audit rest on, as values and in sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg.auditing.box import Judged
from owkg.auditing.calibration import calibrated, most_missing, worlds
from owkg.auditing.drawn import DrawnJudgements
from owkg.auditing.implied import missing_answers
from owkg.auditing.lists import Prepared
from owkg.auditing.tables import GIVEN, LARGEST, LIMITS, Box, Part
from owkg.files.storage import versions
from owkg.judge.scores import Scores
from owkg.judge.significance import SYMMETRY, PairTest, other_hypothesis
from owkg.metrics import Metric
from owkg.rank_weights import rank_weight
from owkg.rank_weights.tables import rank_weights
from owkg.ranks import RankTable

_INDEPENDENT = "nothing: 0 is taken"
_RANGE = "not stated: the range on which intervals were measured"


def assumptions(
    of: Scores,
    tables: Mapping[str, RankTable],
    box: Box,
    ci: float,
    rule: str,
    test: str,
    ready: Prepared,
    judged: Judged,
    further: list[str],
) -> dict[str, Any]:
    """What the numbers rest on."""
    frame = next(iter(tables.values())).frame
    low, high = frame["candidates"].min(), frame["candidates"].max()
    rates = [max(one.deviation, abs(one.size)) for one in box.unevenness]
    ranges = None if box.correlation is None else [list(limits) for limits in box.correlation.values()]
    one = ranges is not None and all(limits == ranges[0] for limits in ranges)
    return {
        "sparsity": box.sparsity and list(box.sparsity),
        "sparsity_at_least": box.found and box.found[0],
        "correlation": ranges
        and (ranges[0] if one else dict(zip(box.correlation or (), ranges, strict=True))),
        "sparsity_from": box.source["sparsity"],
        "correlation_from": box.source["correlation"] or _INDEPENDENT,
        "unevenness": [min(rates), max(rates)],
        "unevenness_from": box.source.get("unevenness") or _RANGE,
        "design": None if judged.sample is None and judged.drawn is None else str(judged.design),
        "level": ci,
        "test": test,
        "ties": str(rule),
        "filtered": bool(frame["filtered"].all()) if "filtered" in frame.columns else True,
        "candidates": [low, high],
        "queries": len(of.queries),
        "answers": len(frame) // max(ready.seeds(next(iter(tables))), 1),
        "lists": ready.depth,
        "judged_labels": [ready.num_found, ready.num_rejected]
        if ready.num_found + ready.num_rejected
        else None,
        "calibration": worlds(),
        "versions": versions(),
        "notes": [*_notes(box, ready, judged), *_of_candidates(frame["candidates"]), *further],
    }


def _of_candidates(candidates: pl.Series) -> list[str]:
    """A sentence where queries have so different numbers of candidates that the model of all alike is off."""
    few, many = (candidates.quantile(q, "nearest") or 0 for q in (0.1, 0.9))
    if 2 * few >= many:
        return []
    return [
        f"The model takes as many candidates for every query, and here they are {few:,.0f} to {many:,.0f} "
        "(of eight tenths of the answers): implied full-test metrics and probabilities of orders are rough. "
        "Observed values, their intervals and breakdown numbers are not concerned."
    ]


def of_seeds(of: Scores) -> list[str]:
    """Sentences on systems with several seeds."""
    if not of.seeded.any():
        return []
    each = [of.by_seed(m) for m in range(len(of.metrics))]
    said = []
    for s, (name, one) in enumerate(zip(of.systems, of.seeds, strict=True)):
        own = [values[s] for values in each]
        deviations = [
            f"{metric} {values.std(ddof=1):.4f}"
            for metric, values in zip(of.metrics, own, strict=True)
            if values is not None
        ]
        said += [f"{name} has {len(one.seeds)} (deviation of {', '.join(deviations)})"] if one else []
    return [
        f"Seeds: {'; '.join(said)}. Values are means over seeds; intervals, p-values and probabilities of "
        "orders are over queries and seeds, by Student's t. Certified numbers are of the mean over seeds; "
        "none is demonstrated, and no weights are compared, because these are of one run."
    ]


def borrowed(metrics: list[Metric]) -> list[str]:
    """A sentence where metrics have the errors of others."""
    ranks = np.arange(1, 100)
    weights = {one.name: rank_weights(one.rank_weight, ranks) for one in metrics if one.rank_weight}
    others = [
        f"{name}: {of}"
        for name, own in weights.items()
        if not np.array_equal(rank_weights(rank_weight(of := calibrated(name)), ranks), own)
    ]
    if not others:
        return []
    return [
        "Metrics that were not calibrated have the errors of the most similar one that was: "
        f"{', '.join(others)}."
    ]


def beyond_calibration(part: Part, box: Box) -> list[str]:
    """A sentence where queries miss more answers than on any world of the calibration."""
    most = most_missing(part.metric.name)
    # As many are missing as known ones count at a sparsity of one half.
    last = most / (most + missing_answers(part.seen.answers, 0.5))
    if last >= max(LARGEST, box.sparsity[1] if box.sparsity else 0.0):
        return []
    return [
        f"Above a sparsity of {last:.2f} the error of the model is extrapolated (means over {part.average}): "
        "queries would miss more answers on average than on any closed world of the calibration."
    ]


def refuted(models: pl.DataFrame) -> list[str]:
    """In sentences, which values the range does not allow."""
    some = models.filter(pl.col("refuted") > 0)
    return [
        f"A {metric} of {value:.3f} ({model}) is not possible in {share:.0%} of the range; that part is "
        "left out."
        for model, metric, value, share in some.select("model", "metric", "value", "refuted").rows()
    ]


def symmetry(of: Scores, averages: Sequence[str], test: str) -> list[str]:
    """What Wilcoxon's test says of means over answers."""
    named = other_hypothesis(of) if test == PairTest.WILCOXON and "answers" in averages else []
    return [SYMMETRY.format(", ".join(named))] if named else []


def _rates(box: Box) -> str:
    """What is taken of the missing rates of queries, as a sentence."""
    source = box.source.get("unevenness")
    if source not in (None, GIVEN):  # fitted, whether a range that holds it was stated or not
        one = box.unevenness[0]
        return (
            "The missing rates of queries differ as complete judgements show: their logits have a standard "
            f"deviation of {one.deviation:.2f} over queries, and of {one.size:.2f} with the number of "
            "answers. Intervals include the errors of both."
        )
    most = max(max(one.deviation, abs(one.size)) for one in box.unevenness)
    if most == 0:
        return "All queries have one missing rate, as you state."
    least = min(max(one.deviation, abs(one.size)) for one in box.unevenness)
    ends = f"{least:g} to {most:g}" if least < most else f"{most:g}"
    stated = "as you state" if source == GIVEN else "because none is stated"
    return (
        f"The missing rates of queries may differ by a standard deviation of their logits of {ends}, "
        f"{stated}: at random, or with the number of answers. Full-test intervals and probabilities of "
        "orders are over that range; the map and what makes both metrics equal are at its middle."
    )


def _of_drawn(drawn: DrawnJudgements) -> str:
    """What judgements that were drawn give, as a sentence."""
    pool = f"the pool of depth {drawn.pool.depth}"
    return (
        f"The least sparsity is that of {pool}, by its design; answers below it may be missing as well. "
        "Where you state a range of the sparsity, and whole queries were drawn, correlations follow for "
        "pooled systems: of the missing answers "
        "those that lead a list were judged. owkg estimate gives the metrics of the completely judged pool."
    )


def _notes(box: Box, ready: Prepared, judged: Judged) -> list[str]:
    """In sentences, what the numbers rest on."""
    found = ["Queries are the sampling unit of every interval and test."]
    if box.found is not None:
        found.append(
            f"Judging ({judged.design.in_words}) shows a sparsity of at least {box.found[0]:.3f} "
            "and gives no upper end: no full-test metric is claimed. State a sparsity for more, or judge a "
            "random sample of queries completely."
        )
    elif box.sparsity is None:
        found.append(
            "No sparsity is stated: no full-test metric is claimed. What each would imply, and what breaks "
            "an order, rest on the model of Yang et al. (2022) and errors calibrated on closed worlds."
        )
    else:
        found.append(
            "Full-test metrics rest on the model of Yang et al. (2022), errors calibrated on closed worlds, "
            "and the sparsity, a share of the answers to the queries of the test. Systems share "
            "errors of the model: an order may be sure where intervals overlap."
        )
    found.append(
        f"What breaks an order is looked for up to a sparsity of {LIMITS[0]:g} and a correlation of "
        f"{LIMITS[1]:g} either way."
    )
    if box.correlation is None:
        found.append("No correlation is stated: being missing and being found are taken as independent.")
    elif any(low != 0 or high != 0 for low, high in box.correlation.values()):
        found.append(
            "With a correlation, answers that are missing stand among the known ones by proportional odds "
            "(docs/understand/audit.md); in Yang et al. the found ones stand in any order."
        )
    found.append(_rates(box))
    if judged.drawn is not None and not box.unused:
        found.append(_of_drawn(judged.drawn))
    elif box.source["sparsity"] not in (None, GIVEN) and box.found is None:
        found.append(
            "The sparsity is estimated from queries that stand for all: a random sample of the test's, of "
            "which every candidate was judged, as you state."
        )
    if judged.sample is not None and not judged.design.estimates and box.correlation is None:
        found.append(
            "The judged candidates were chosen by ranks of systems, or nobody says how: they give no "
            "correlation."
        )
    if ready.num_found + ready.num_rejected:
        found.append(
            "Breakdown numbers start from the judged labels. Answers that judging found: "
            f"{ready.num_found:,}; candidates that can never become any: {ready.num_rejected:,}. Values and "
            "tests are of the test as it is."
        )
    if ready.num_disputed:
        found.append(
            f"Known answers that were judged not relevant: {ready.num_disputed:,}. They stay in values, "
            "tests and breakdown numbers."
        )
    if judged.labels is not None and ready.depth is None:
        found.append("Without lists the judged labels do not change breakdown numbers.")
    if box.unused:
        found.append(box.unused)
    if judged.labels is not None and judged.sample is None and judged.drawn is None:
        found.append(
            "The judgements are sheets, and give labels alone: their candidates were chosen, and are not a "
            "random sample from which sparsity or correlations could be estimated."
        )
    if str(box.source["sparsity"]).startswith(GIVEN) and box.sparsity is not None:
        known = ready.num_answers - ready.num_found
        if box.num_found > known * box.sparsity[1] / (1 - box.sparsity[1]):
            found.append(f"Judging found more answers ({box.num_found:,}) than the stated sparsity allows.")
        elif box.limit > box.sparsity[1]:
            found.append(
                f"The stated sparsity of at most {box.sparsity[1]:.3g} stands, although judging "
                f"({judged.design.in_words}) shows at least {box.limit:.3f}."
            )
    if ready.depth is None:
        found.append(
            "There are no lists: breakdown numbers are certified for the worst lists, none is demonstrated."
        )
    return found
