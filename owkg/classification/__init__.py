"""Triple classification: from scores of labelled triples to thresholds, classes and measures."""

from owkg.classification.classify import ClassificationResult, classify
from owkg.classification.differences import differences
from owkg.classification.measures import METRICS
from owkg.classification.negatives import NEGATIVES, drawn_negatives
from owkg.classification.table import LABELS, checked_triples, read_triples, write_triples
from owkg.classification.thresholds import fitted, predicted

__all__ = [
    "LABELS",
    "METRICS",
    "NEGATIVES",
    "ClassificationResult",
    "checked_triples",
    "classify",
    "differences",
    "drawn_negatives",
    "fitted",
    "predicted",
    "read_triples",
    "write_triples",
]
