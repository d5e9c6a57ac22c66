"""Differences between models that classify the same triples."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import polars as pl
from scipy import special

from owkg.classification.measures import INFLUENCES, METRICS
from owkg.errors import ArgumentError
from owkg.kg.triples import COLUMNS


def differences(triples: pl.DataFrame, metrics: Sequence[str], ci: float) -> pl.DataFrame:
    """Difference of every pair of models in each metric, with its interval and p-value over triples.

    Both models classify the same triples, so each triple's contributions to both are paired: the variance is
    the sum of the squared differences of influence, times n / (n - 1). For ROC-AUC, positive triples and all
    other triples each have their own n, which gives the test of DeLong et al. (1988). Accuracy has the exact
    test of McNemar (1947), and limits with half a triple added to each of the four outcomes (Agresti and Min
    2005).

    Args:
        triples: frame with the columns model, label, score and, if there are thresholds, predicted.
        metrics: names of metrics; metrics without influences (pr-auc) are left out.
        ci: level of the intervals.

    Returns:
        A frame with the columns model_a, model_b, metric, difference (a minus b), ci_low, ci_high, p; p is
        not corrected for the number of pairs (see `owkg.stats.holm`).

    Raises:
        ValueError: if two models have different triples, or give them different labels.
    """
    parts = {name: part.sort(COLUMNS) for (name,), part in triples.group_by("model", maintain_order=True)}
    rows = []
    for (a, one), (b, other) in combinations(parts.items(), 2):
        same = [*COLUMNS, "label"]
        if one.height != other.height or not one.select(same).equals(other.select(same)):
            raise ArgumentError("triples", f"must be the same for all models, but differ for {a} and {b}.")
        for name in metrics:
            if name in INFLUENCES:
                found = dict(
                    zip(("difference", "ci_low", "ci_high", "p"), _one(name, one, other, ci), strict=True)
                )
                rows.append({"model_a": a, "model_b": b, "metric": name} | found)
    floats = dict.fromkeys(("difference", "ci_low", "ci_high", "p"), pl.Float64)
    return pl.DataFrame(
        rows, {"model_a": pl.String, "model_b": pl.String, "metric": pl.String} | floats
    ).fill_nan(None)


def _one(name: str, one: pl.DataFrame, other: pl.DataFrame, ci: float) -> tuple[float, float, float, float]:
    columns = [_columns(part) for part in (one, other)]
    values = [METRICS[name](*part, None).value for part in columns]
    difference, n = values[0] - values[1], one.height
    z = special.ndtri((1 + ci) / 2)
    if name == "accuracy":
        right = [part[0] == part[2] for part in columns]
        only = [int((right[i] & ~right[1 - i]).sum()) for i in (0, 1)]
        p = min(2 * float(special.bdtr(min(only), sum(only), 0.5)), 1.0)
        middle = (only[0] - only[1]) / (n + 2)
        wide = z * np.sqrt((sum(only) + 1) / (n + 2) - middle**2) / np.sqrt(n + 2)
        return difference, max(middle - wide, -1.0), min(middle + wide, 1.0), p
    apart = INFLUENCES[name](*columns[0]) - INFLUENCES[name](*columns[1])
    strata = np.ones(n, bool) if name != "roc-auc" else columns[0][0] == "positive"
    error = np.sqrt(sum((apart[of] ** 2).sum() * of.sum() / max(of.sum() - 1, 1) for of in (strata, ~strata)))
    if not error:  # no triple distinguishes the models, or the metric is undefined
        return difference, np.nan, np.nan, 1.0 if difference == 0 else np.nan
    p = float(2 * special.ndtr(-abs(difference) / error))
    return difference, max(difference - z * error, -1.0), min(difference + z * error, 1.0), p


def _columns(part: pl.DataFrame) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    called = part["predicted"].to_numpy().astype(str) if "predicted" in part.columns else None
    return part["label"].to_numpy().astype(str), part["score"].to_numpy(), called
