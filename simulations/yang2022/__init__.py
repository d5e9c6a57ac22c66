"""Yang et al. (2022): models measured on sparse and on full test sets during their training."""

from simulations.open_world.curves import CORRELATED, FULL, SPARSE, Curves
from simulations.open_world.experiment import records, require_memory, training_seconds
from simulations.open_world.presets import PRESETS, Configuration
from simulations.open_world.query_values import METRICS, joined, query_values
from simulations.open_world.record import Record, is_recorded, read_record, record
from simulations.open_world.world import ClosedWorld, read_world, read_worlds, with_correlated
from simulations.yang2022.claims import claim, claims
from simulations.yang2022.flattening import flattening
from simulations.yang2022.halves import confirmed
from simulations.yang2022.inconsistency import inconsistency, largest_contradiction
from simulations.yang2022.predicted import measured_strength, predicted, predicted_inversions
from simulations.yang2022.resampled import agreement, resampled
from simulations.yang2022.resampling import interval, query_counts

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
    "predicted_inversions",
    "query_counts",
    "query_values",
    "read_record",
    "read_world",
    "read_worlds",
    "record",
    "records",
    "require_memory",
    "resampled",
    "training_seconds",
    "with_correlated",
]
