"""Triple classification in one call: `owkg.classify`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from owkg import checks
from owkg.classification.differences import differences
from owkg.classification.measures import METRICS, NEED_NO_THRESHOLD
from owkg.classification.table import LABELS, checked_triples
from owkg.classification.thresholds import THRESHOLDS, fitted, predicted
from owkg.errors import ArgumentError

if TYPE_CHECKING:
    import matplotlib.figure

_ALIASES = {
    "auc": "roc-auc",
    "auc-roc": "roc-auc",
    "auroc": "roc-auc",
    "auc-pr": "pr-auc",
    "ap": "average-precision",
}
# Column with the classes of a constant scorer, in addition to the classes of the scores.
_CONSTANT = "predicted_by_constant"
_NO_SCORE = pl.lit(0.0).alias("score")
_NUMBERS = ("value", "ci_low", "ci_high", "expectation", "constant")
# Columns of results and other columns that `by` cannot name.
_RESERVED = ("metric", "triples", "score", "split", *LABELS, *_NUMBERS)


class ClassificationResult(NamedTuple):
    """Result of `classify`.

    Attributes:
        values: one row for each group and metric, with the columns of `by`, metric, value, ci_low, ci_high,
            expectation (if scores and classes were assigned to the triples at random), constant (for a scorer
            that gives every triple the same score and fits its thresholds in the same way, which shows how
            much the relations alone tell; null if you set the threshold), triples, positive, negative,
            unknown.
        thresholds: frame with the columns relation, lower, upper, triples; see `fitted`. None if nothing was
            fitted.
        triples: measured triples with the column predicted; without this column if there are no thresholds.
        pairs: differences of pairs of models, see `owkg.classification.differences`; None unless there are
            several models, intervals and no groups.
    """

    values: pl.DataFrame
    thresholds: pl.DataFrame | None
    triples: pl.DataFrame
    pairs: pl.DataFrame | None = None

    def plot(self) -> "matplotlib.figure.Figure":
        """Figure of the ROC and precision-recall curves of each model.

        Raises:
            ValueError: if all triples, or none, are positive.
        """
        from owkg.plots.classification import classification_curves

        return classification_curves(self.triples)


def classify(
    triples: Any,
    metrics: str | Sequence[str] | None = None,
    *,
    thresholds: str | float = "relation",
    split: str = "test",
    fit: str = "valid",
    by: str | Sequence[str] = (),
    ci: float | None = 0.95,
) -> ClassificationResult:
    """Measures of triple classification, with thresholds fitted on the validation set.

    Args:
        triples: scored triples with labels, as for `owkg.classification.checked_triples`. If there is a
            column model, each model is fitted and measured separately, and all pairs are compared.
        metrics: one or several of accuracy, precision, recall, f1, macro-f1, roc-auc, pr-auc,
            average-precision. The last three need no threshold. None: all.
        thresholds: "relation" for one threshold per relation (default), "global" for one threshold for all
            relations, or a number as the threshold.
        split: split that is measured. Default "test".
        fit: split on which the thresholds maximise accuracy. Default "valid". If the table has no split
            valid, only metrics without thresholds are measured.
        by: columns of the table that divide the triples, such as relation. Default: none.
        ci: level of the confidence intervals, over triples at fixed thresholds. Default 0.95. None: no
            intervals.

    Returns:
        The measures with intervals, by model and part, and the thresholds.

    Raises:
        ValueError: naming the argument, if the table is malformed or an argument is out of range.

    Examples:
        >>> rows = {"head": ["a", "b", "c"] * 2, "relation": ["r"] * 6, "tail": ["d"] * 6,
        ...         "split": ["valid"] * 3 + ["test"] * 3, "label": [1, 1, 0] * 2,
        ...         "score": [3.0, 2.0, 1.0, 5.0, 1.0, 2.0]}
        >>> classify(pl.DataFrame(rows), ["accuracy", "roc-auc"]).values["value"].to_list()
        [0.3333333333333333, 0.5]
    """
    table = checked_triples(triples)
    table = table.drop("predicted", _CONSTANT, strict=False)
    names = _metrics(metrics)
    if ci is not None:
        checks.level("ci", ci)
    groups = list(dict.fromkeys(checks.names("by", by)))
    own = ["model"] if "model" in table.columns else []
    if bad := [name for name in groups if name not in table.columns or name in (*_RESERVED, *own)]:
        raise ArgumentError("by", f"must be columns of the table such as relation, got {', '.join(bad)}.")
    if isinstance(thresholds, str):
        if thresholds not in THRESHOLDS:
            raise ArgumentError("thresholds", f"must be relation, global or a number, got {thresholds!r}.")
    else:
        checks.real_number("thresholds", thresholds, -np.inf, np.inf)
    measured = table.filter(pl.col("split") == split)
    if not measured.height:
        there = ", ".join(table["split"].unique().sort())
        raise ArgumentError("split", f"must be one of {there}, got {split!r}.")
    valid = table.filter(pl.col("split") == fit)
    if fit == split or (fit != "valid" and not valid.height):
        raise ArgumentError("fit", f"must be a split of the table other than `split`, got {fit!r}.")
    whole, limits, classes = [], [], []
    models = measured["model"].unique(maintain_order=True) if own else [None]
    for name in models:
        first, is_own = [], pl.lit(value=True)
        if name is not None:
            first, is_own = [pl.lit(name).alias("model")], pl.col("model") == name
        part, known = measured.filter(is_own), valid.filter(is_own)
        chosen = _thresholds(known, thresholds)
        if chosen is not None:
            part = part.with_columns(predicted(part, chosen))
            if isinstance(thresholds, str):
                flat = predicted(
                    part.with_columns(_NO_SCORE), fitted(known.with_columns(_NO_SCORE), thresholds)
                )
                part = part.with_columns(flat.alias(_CONSTANT))
            limits.append(chosen.select(*first, pl.all()))
        classes.append(part)
        values = _values(part, names if chosen is not None else _only_scores(names), groups, ci)
        whole.append(values.select(*first, pl.all()))
    called = pl.concat(classes).drop(_CONSTANT, strict=False)
    pairs = None
    if len(classes) > 1 and ci is not None and not groups:
        pairs = differences(called, names if limits else _only_scores(names), ci)
    return ClassificationResult(pl.concat(whole), pl.concat(limits) if limits else None, called, pairs)


def _metrics(metrics: str | Sequence[str] | None) -> list[str]:
    names = list(METRICS) if metrics is None else checks.names("metrics", metrics)
    found = [_ALIASES.get(name.lower(), name.lower().replace("_", "-")) for name in names]
    if bad := [name for name, real in zip(names, found, strict=True) if real not in METRICS]:
        raise ArgumentError("metrics", f"must be from {', '.join(METRICS)}, got {', '.join(bad)}.")
    if not found:
        raise ArgumentError("metrics", "must name at least one metric, got none.")
    return list(dict.fromkeys(found))


def _only_scores(names: list[str]) -> list[str]:
    if left := [name for name in names if name in NEED_NO_THRESHOLD]:
        return left
    raise ArgumentError(
        "fit", f"must be a split of the table, because thresholds for {', '.join(names)} are fitted on it."
    )


def _thresholds(valid: pl.DataFrame, thresholds: str | float) -> pl.DataFrame | None:
    if isinstance(thresholds, str):
        return fitted(valid, thresholds) if valid.height else None
    one = float(thresholds)
    return pl.DataFrame(
        {"relation": pl.Series([None], dtype=pl.String), "lower": [one], "upper": [one], "triples": [0]}
    )


def _values(part: pl.DataFrame, names: list[str], groups: list[str], ci: float | None) -> pl.DataFrame:
    rows = []
    for key, own in part.group_by(groups, maintain_order=True) if groups else [((), part)]:
        label, score = own["label"].to_numpy().astype(str), own["score"].to_numpy()
        called, of_constant = (
            own[name].to_numpy().astype(str) if name in own.columns else None
            for name in ("predicted", _CONSTANT)
        )
        counts = {one: int((label == one).sum()) for one in LABELS}
        for name in names:
            found = METRICS[name](label, score, called, ci)
            fields = {"value": found.value, "ci_low": found.low, "ci_high": found.high}
            known = name in NEED_NO_THRESHOLD or of_constant is not None
            constant = METRICS[name](label, 0 * score, of_constant, None).value if known else np.nan
            about = fields | {"expectation": found.expectation, "constant": constant}
            about |= {"triples": own.height} | counts
            rows.append(dict(zip(groups, key, strict=True)) | {"metric": name} | about)
    frame = pl.DataFrame(rows, infer_schema_length=None)
    if groups:
        frame = frame.with_columns(pl.Series("_at", range(frame.height))).sort(*groups, "_at").drop("_at")
    return frame.with_columns(pl.col(_NUMBERS).fill_nan(None))
