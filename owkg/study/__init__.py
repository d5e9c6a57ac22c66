"""Closed worlds as witnesses: models measured on sparse and on full test sets along their training."""

from owkg.study.claims import claim, claims
from owkg.study.curves import CORRELATED, FULL, SPARSE, Curves
from owkg.study.experiment import records, require_memory, training_seconds
from owkg.study.flattening import flattening
from owkg.study.halves import confirmed
from owkg.study.inconsistency import inconsistency, largest_contradiction
from owkg.study.predicted import measured_strength, predicted, predicted_misorder
from owkg.study.presets import PRESETS, Configuration
from owkg.study.readings import METRICS, joined, readings
from owkg.study.record import Record, is_recorded, read_record, record
from owkg.study.redrawn import agreement, redrawn
from owkg.study.resampling import interval, question_counts
from owkg.study.world import ClosedWorld, read_world, read_worlds, with_correlated

__all__ = [
    "CORRELATED",
    "FULL",
    "METRICS",
    "PRESETS",
    "SPARSE",
    "ClosedWorld",
    "Configuration",
    "Curves",
    "Record",
    "agreement",
    "claim",
    "claims",
    "confirmed",
    "flattening",
    "inconsistency",
    "interval",
    "is_recorded",
    "joined",
    "largest_contradiction",
    "measured_strength",
    "predicted",
    "predicted_misorder",
    "question_counts",
    "read_record",
    "read_world",
    "read_worlds",
    "readings",
    "record",
    "records",
    "redrawn",
    "require_memory",
    "training_seconds",
    "with_correlated",
]
