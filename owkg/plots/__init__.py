"""Figures of results, drawn by matplotlib without a screen: as PNG, SVG and PDF, and in notebooks."""

from owkg.plots.acceptance import acceptance_figure
from owkg.plots.audits import audit_figure
from owkg.plots.classification import classification_curves
from owkg.plots.estimates import estimate_figure
from owkg.plots.figure import save_figure
from owkg.plots.judging import sparse_against_full, stability_figure
from owkg.plots.learning import learning_curves
from owkg.plots.values import values

__all__ = [
    "acceptance_figure",
    "audit_figure",
    "classification_curves",
    "estimate_figure",
    "learning_curves",
    "save_figure",
    "sparse_against_full",
    "stability_figure",
    "values",
]
