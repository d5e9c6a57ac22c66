"""Rank metrics as data: the one definition that theory, simulation and evaluation share."""

from owkg.metrics.catalogue import FORMS, LOG_MRR, MR, MRR, hits_at, metric, power
from owkg.metrics.metric import Metric, checked

__all__ = ["FORMS", "LOG_MRR", "MR", "MRR", "Metric", "checked", "hits_at", "metric", "power"]
