"""Embedding models of knowledge graphs, as data and pure functions, one file each."""

from owkg.models.embeddings import Embeddings, read_embeddings, write_embeddings
from owkg.models.embeddings_import import import_embeddings
from owkg.models.kind import Kind, Peer
from owkg.models.kinds import MODELS, model, register_model
from owkg.models.model import SIDES, Model, Params, Statistics, Trained, score, score_all
from owkg.models.similarity import Similarity

__all__ = [
    "MODELS",
    "SIDES",
    "Embeddings",
    "Kind",
    "Model",
    "Params",
    "Peer",
    "Similarity",
    "Statistics",
    "Trained",
    "import_embeddings",
    "model",
    "read_embeddings",
    "register_model",
    "score",
    "score_all",
    "write_embeddings",
]
