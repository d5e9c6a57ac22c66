"""Entity alignment: pairs of graphs, GCN-Align, ranks in both directions, one-to-one assignment."""

from owkg.align.assign import assigned
from owkg.align.data import Alignment, read_alignment, split_pairs
from owkg.align.files import read_entity_embeddings, read_similarity, write_entity_embeddings
from owkg.align.gcn import Config, initial_embeddings, train_gcn
from owkg.align.ranks import SIMILARITIES, rank_embeddings, rank_matrix, similarity_named, similarity_of_pairs

__all__ = [
    "SIMILARITIES",
    "Alignment",
    "Config",
    "assigned",
    "initial_embeddings",
    "rank_embeddings",
    "rank_matrix",
    "read_alignment",
    "read_entity_embeddings",
    "read_similarity",
    "similarity_named",
    "similarity_of_pairs",
    "split_pairs",
    "train_gcn",
    "write_entity_embeddings",
]
