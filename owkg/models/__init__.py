"""Embedding models of knowledge graphs: data and pure functions, one file each."""

from owkg.models.kinds import MODELS, Kind, model
from owkg.models.model import SIDES, Model, Params, Statistics, score, score_all
from owkg.models.similarity import Similarity

__all__ = [
    "MODELS",
    "SIDES",
    "Kind",
    "Model",
    "Params",
    "Similarity",
    "Statistics",
    "model",
    "score",
    "score_all",
]
