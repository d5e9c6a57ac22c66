"""The curves of triple classification: what is drawn of each model, and which triples have none."""

import numpy as np
import polars as pl
import pytest

from owkg.classification import classify
from owkg.plots import classification_curves
from owkg.plots.classification import classification_figure

TRIPLES = pl.DataFrame(
    {
        "head": list("abcdef") * 2,
        "relation": "r",
        "tail": list("uvwxyz") * 2,
        "score": [0.9, 0.8, 0.3, 0.6, 0.2, 0.1, 0.9, 0.2, 0.3, 0.8, 0.7, 0.1],
        "label": ["positive", "positive", "positive", "negative", "negative", "negative"] * 2,
        "split": "test",
        "model": ["good"] * 6 + ["bad"] * 6,
    }
)


def test_curves_are_named_by_model_and_area():
    found = classify(TRIPLES, ["roc-auc", "average-precision"])
    fig = found.plot()
    roc, precision = fig.axes
    areas = {(row["model"], row["metric"]): row["value"] for row in found.values.iter_rows(named=True)}
    labels = [text.get_text() for text in roc.get_legend().get_texts()]
    assert labels == [f"{name} ROC-AUC {areas[name, 'roc-auc']:.3f}" for name in ("good", "bad")]
    labels = [text.get_text() for text in precision.get_legend().get_texts()]
    assert labels == [f"{name} AP {areas[name, 'average-precision']:.3f}" for name in ("good", "bad")]
    # Of the good model: two positives, a negative, the third positive, two negatives.
    np.testing.assert_allclose(roc.lines[0].get_ydata(), np.array([0, 1, 2, 2, 3, 3, 3]) / 3)
    np.testing.assert_allclose(roc.lines[0].get_xdata(), np.array([0, 0, 0, 1, 1, 2, 3]) / 3)


def test_triples_without_a_curve_and_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must hold positive and negative triples"):
        classification_curves(TRIPLES.filter(label="positive"))
    with pytest.raises(ValueError, match=r"must end in .png, .pdf or .svg, got 'a.gif'"):
        classification_figure(TRIPLES, tmp_path / "a.gif")
