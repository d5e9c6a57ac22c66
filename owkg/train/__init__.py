"""Training of a model on a graph, into the folder of a run that can be resumed exactly."""

from owkg.train.config import LOSSES, Training, changed, config_text, read_config, training
from owkg.train.folder import facts_checksums
from owkg.train.hosts import connect
from owkg.train.run import Run, config_file, load_run, run_config, run_path, run_reading, saved_steps, train
from owkg.train.seeds import seed_runs, train_seeds
from owkg.train.state import state_shape as state_shape
from owkg.train.sweep import SweptRun, train_many
from owkg.train.updates import Updates, updates_of

__all__ = [
    "LOSSES",
    "Run",
    "SweptRun",
    "Training",
    "Updates",
    "changed",
    "config_file",
    "config_text",
    "connect",
    "facts_checksums",
    "load_run",
    "read_config",
    "run_config",
    "run_path",
    "run_reading",
    "saved_steps",
    "seed_runs",
    "state_shape",
    "train",
    "train_many",
    "train_seeds",
    "training",
    "updates_of",
]
