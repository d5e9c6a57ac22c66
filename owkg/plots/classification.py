"""Figure of triple classification: ROC and precision-recall curves."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from owkg.classification.measures import _average_precision, curve, roc_auc
from owkg.errors import ArgumentError
from owkg.plots.figure import COLOURS, figure, save_figure

if TYPE_CHECKING:
    import matplotlib.figure

# Points of a line; more would not be visible.
_POINTS = 2000


def classification_figure(triples: pl.DataFrame, path: Path) -> None:
    """Writes the figure of `classification_curves` to `path`, a .png, .pdf or .svg file.

    Raises:
        ValueError: as `classification_curves`, or if `path` has another suffix.
    """
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise ArgumentError("path", f"must end in .png, .pdf or .svg, got {path.name!r}.")
    save_figure(classification_curves(triples), path)


def classification_curves(triples: pl.DataFrame) -> "matplotlib.figure.Figure":
    """ROC and precision-recall curves of each model, with points at its thresholds.

    Args:
        triples: the `triples` of `owkg.classify`, or scored triples with the columns `label` and `score`, and
            optionally `model` and `predicted`.

    Returns:
        The figure. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if all triples, or none, are positive.
    """
    models = {"": triples}
    if "model" in triples.columns:
        models = {name: part for (name,), part in triples.group_by("model", maintain_order=True)}
    with figure(1, 2, (7.2, 3.4)) as (fig, (left, right)):
        for i, (name, part) in enumerate(models.items()):
            positive = (part["label"] == "positive").to_numpy()
            if not 0 < positive.sum() < len(positive):
                raise ArgumentError("triples", "must hold positive and negative triples to draw a curve.")
            found = curve(part["score"].to_numpy(), positive)
            true, false = found.true / found.true[-1], found.false / found.false[-1]
            precision = found.true / (found.true + found.false)
            look = {"color": COLOURS[i % len(COLOURS)], "linestyle": ("-", "--", ":")[i // len(COLOURS) % 3]}
            at = np.unique(np.linspace(0, len(true) - 1, _POINTS).round().astype(int))
            roc = [np.concatenate([[0.0], axis[at]]) for axis in (false, true)]
            left.plot(*roc, label=f"{name} ROC-AUC {roc_auc(found):.3f}".strip(), **look)
            text = f"{name} AP {_average_precision(found):.3f}".strip()
            right.plot(true[at], precision[at], drawstyle="steps-pre", label=text, **look)
            if "predicted" in part.columns:
                called = (part["predicted"] == "positive").to_numpy()
                right_ones = (called & positive).sum()
                recall, wrong = right_ones / positive.sum(), (called & ~positive).sum() / (~positive).sum()
                left.plot([wrong], [recall], "o", color=look["color"])
                if called.any():
                    right.plot([recall], [right_ones / called.sum()], "o", color=look["color"])
        left.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
        base = (next(iter(models.values()))["label"] == "positive").mean()
        right.axhline(float(str(base)), color="0.6", linewidth=0.8)
        left.set(xlabel="false positive rate", ylabel="recall", xlim=(0, 1), ylim=(0, 1.02))
        right.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
        left.legend(loc="lower right")
        right.legend(loc="lower left")
        return fig
