"""Assumptions behind the numbers of an audit, as values and as sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg.auditing.box import Judged
from owkg.auditing.calibration import calibrated, most_missing, worlds
from owkg.auditing.drawn import DrawnJudgements
from owkg.auditing.implied import missing_answers
from owkg.auditing.lists import Prepared
from owkg.auditing.result import metric_name
from owkg.auditing.tables import GIVEN, LARGEST, LIMITS, Box, Part
from owkg.files.storage import versions
from owkg.judge.scores import Scores
from owkg.judge.significance import SYMMETRY, PairTest, other_hypothesis
from owkg.metrics import Metric
from owkg.rank_weights import rank_weight
from owkg.rank_weights.tables import rank_weights
from owkg.ranks import RankTable

_INDEPENDENT = "not stated: 0 is assumed"
_RANGE = "not stated: the range on which the coverage of intervals was measured"


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
    """Assumptions of an audit by name, for `Audit.assumptions`."""
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
    """A note if numbers of candidates differ too much for a model with one number for all queries."""
    few, many = (candidates.quantile(q, "nearest") or 0 for q in (0.1, 0.9))
    if 2 * few >= many:
        return []
    return [
        "The model assumes one number of candidates for all queries, but here they are "
        f"{few:,.0f} to {many:,.0f} (for eight tenths of the answers). So implied full-test metrics and "
        "probabilities of orders are rough. Observed values, their intervals and breakdown numbers are not "
        "affected."
    ]


def of_seeds(of: Scores) -> list[str]:
    """A note on systems with several seeds."""
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
        "orders are over queries and seeds, by Student's t. Lower bounds of missing answers are for the mean "
        "over seeds. owkg searches no example and compares no weights, because both need a single run."
    ]


def borrowed(metrics: list[Metric]) -> list[str]:
    """A note on metrics that use the calibrated errors of another metric."""
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
        "Metrics that were not calibrated use the errors of the most similar calibrated metric: "
        f"{', '.join(others)}."
    ]


def beyond_calibration(part: Part, box: Box, pairs: pl.DataFrame) -> list[str]:
    """A note if queries lack more answers than in any closed world of the calibration, where it matters."""
    most = most_missing(part.metric.name)
    # `missing_answers` is proportional to beta / (1 - beta), which is 1 at a sparsity of 0.5.
    last = most / (most + missing_answers(part.seen.answers, 0.5))
    # Without a stated range, values are shown at all sparsities.
    most = pairs["breakdown_sparsity"].fill_null(LIMITS[0]).max() if box.sparsity else LARGEST
    if last >= max(most or 0.0, box.sparsity[1] if box.sparsity else 0.0):
        return []
    return [
        f"Above a sparsity of {last:.2f} the error of the model is extrapolated (means over {part.average}), "
        "because queries would lack more answers on average than in any closed world of the calibration."
    ]


def refuted(models: pl.DataFrame) -> list[str]:
    """Notes on values that are impossible under part of the stated range."""
    some = models.filter(pl.col("refuted") > 0)
    return [
        f"A {metric} of {value:.3f} ({model}) is impossible under {share:.0%} of the stated range; "
        "owkg leaves out that part."
        for model, metric, value, share in some.select("model", "metric", "value", "refuted").rows()
    ]


def uneven(of: Scores) -> list[str]:
    """Notes on means over answers whose intervals may be too narrow, with the means over queries."""
    found = of.heavy_queries()
    if not found:
        return []
    asked = of.weight > 0
    each = np.divide(of.value, of.weight[:, None], out=np.zeros_like(of.value), where=asked[:, None])
    means = each.sum(2) / asked.sum(1)[:, None]
    said = "; ".join(
        f"{metric} {', '.join(f'{value:.3f} ({name})' for name, value in zip(of.systems, own, strict=True))}"
        for metric, own in zip(of.metrics, means, strict=True)
    )
    same = bool((np.argsort(-means, 1, "stable") == np.argsort(-of.mean, 1, "stable")).all())
    order = "the order is the same" if same else "the order differs"
    return [*found, f"If every query has the same weight (owkg audit --average queries), {order}: {said}."]


def wide(models: pl.DataFrame) -> list[str]:
    """A note on implied metrics whose intervals span half of all values or more."""
    some = models.filter(pl.col("full_high") - pl.col("full_low") >= 0.45)
    if not len(some):
        return []
    named = (
        f"{metric_name(metric, average)} of {model} ({low:.2f} to {high:.2f})"
        for model, metric, average, low, high in some.select(
            "model", "metric", "average", "full_low", "full_high"
        ).iter_rows()
    )
    return [f"These full-test metrics may be nearly anything under the stated range: {', '.join(named)}."]


def symmetry(of: Scores, averages: Sequence[str], test: str) -> list[str]:
    """A note on the other hypothesis that Wilcoxon's test has for means over answers."""
    named = other_hypothesis(of) if test == PairTest.WILCOXON and "answers" in averages else []
    return [SYMMETRY.format(", ".join(named))] if named else []


def _rates(box: Box) -> str:
    """A sentence on the missing rates of queries, fitted to complete judgements."""
    one = box.unevenness[0]
    return (
        "The missing rates of queries differ as complete judgements show: their logits have a standard "
        f"deviation of {one.deviation:.2f} over queries of one size, and change by {one.size:.2f} per "
        "standard deviation of the logarithm of the number of answers. Intervals include the errors of "
        "both numbers."
    )


def _of_drawn(drawn: DrawnJudgements) -> str:
    """A sentence on the conclusions from drawn judgements."""
    pool = f"the pool of depth {drawn.pool.depth}"
    return (
        f"The lower bound of the sparsity is estimated for {pool}, by its design; answers below the pool may "
        "be missing as well. If you state a range of the sparsity and whole queries were drawn, "
        "correlations follow for pooled systems, because the missing answers at the top of their lists were "
        "judged. owkg estimate gives the metrics of the completely judged pool."
    )


def _notes(box: Box, ready: Prepared, judged: Judged) -> list[str]:
    """Notes on what the other entries of the assumptions do not say, as sentences."""
    found = []
    if box.found is not None:
        found.append(
            f"Judging ({judged.design.in_words}) shows a sparsity of at least {box.found[0]:.3f} "
            "and gives no upper end, so owkg claims no full-test metric. To get one, state a sparsity or "
            "judge a random sample of queries completely."
        )
    if box.correlation is not None and any(low != 0 or high != 0 for low, high in box.correlation.values()):
        found.append(
            "With a correlation, owkg ranks missing answers among known ones by proportional odds; in Yang "
            "et al. retrieved answers are in random order."
        )
    if box.source.get("unevenness") not in (None, GIVEN):
        found.append(_rates(box))
    if judged.drawn is not None and not box.unused:
        found.append(_of_drawn(judged.drawn))
    elif box.source["sparsity"] not in (None, GIVEN) and box.found is None:
        found.append(
            "The sparsity is estimated from a random sample of the test's queries, of which every candidate "
            "was judged, as you state."
        )
    if judged.sample is not None and not judged.design.estimates and box.correlation is None:
        found.append(
            "The judged candidates were chosen by ranks of systems, or in an unknown way, so they give no "
            "correlation."
        )
    if ready.num_found + ready.num_rejected:
        found.append(
            "Breakdown numbers start from the judged labels. Answers that judging found: "
            f"{ready.num_found:,}; candidates that it ruled out: {ready.num_rejected:,}. Values and tests "
            "use the test set without these labels."
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
            "The judgements are sheets, which owkg uses only as labels: their candidates were chosen, and "
            "are not a random sample from which sparsity or correlations could be estimated."
        )
    if str(box.source["sparsity"]).startswith(GIVEN) and box.sparsity is not None:
        known = ready.num_answers - ready.num_found
        if box.num_found > known * box.sparsity[1] / (1 - box.sparsity[1]):
            found.append(f"Judging found more answers ({box.num_found:,}) than the stated sparsity allows.")
        elif box.limit > box.sparsity[1]:
            found.append(
                f"owkg keeps the stated sparsity of at most {box.sparsity[1]:.3g}, although judging "
                f"({judged.design.in_words}) shows at least {box.limit:.3f}."
            )
    return found
