"""Definitions of the open-world setting that theory and simulation share, without results of either."""

from owkg.openworld.density import test_share
from owkg.openworld.missing import (
    INDEPENDENT,
    Independent,
    MissingModel,
    NodeBased,
    PopularityBased,
    RelationBased,
)
from owkg.openworld.prediction import CLASSIFICATION, Classification, PredictionModel, Score
from owkg.openworld.setting import (
    PairArguments,
    Setting,
    SettingArguments,
    World,
    conditional_strengths,
    feasible_correlation,
    grid,
)

__all__ = [
    "CLASSIFICATION",
    "INDEPENDENT",
    "Classification",
    "Independent",
    "MissingModel",
    "NodeBased",
    "PairArguments",
    "PopularityBased",
    "PredictionModel",
    "RelationBased",
    "Score",
    "Setting",
    "SettingArguments",
    "World",
    "conditional_strengths",
    "feasible_correlation",
    "grid",
    "test_share",
]
