"""Ranks from scores, rank tables and their files, converters, and tie breaking."""

from owkg.ranks.annotate import annotated, other_candidates, triple_ids
from owkg.ranks.build import rank, rank_table
from owkg.ranks.dataset import RankDataset
from owkg.ranks.files import ranks_from_list, read_ranks, write_ranks
from owkg.ranks.imported import Imported, Importer
from owkg.ranks.importers import convert, register_importer
from owkg.ranks.keyed import rank_queries
from owkg.ranks.matrices import ranks_from_matrix
from owkg.ranks.reweight import reweighted
from owkg.ranks.runs import Converted, ranks_from_run
from owkg.ranks.scores import Ranks, ranks_from_scores
from owkg.ranks.sets import EntitySets, known_sets
from owkg.ranks.table import RankTable, validated
from owkg.ranks.ties import random_ranks, realistic

__all__ = [
    "Converted",
    "EntitySets",
    "Imported",
    "Importer",
    "RankDataset",
    "RankTable",
    "Ranks",
    "annotated",
    "convert",
    "known_sets",
    "other_candidates",
    "random_ranks",
    "rank",
    "rank_queries",
    "rank_table",
    "ranks_from_list",
    "ranks_from_matrix",
    "ranks_from_run",
    "ranks_from_scores",
    "read_ranks",
    "realistic",
    "register_importer",
    "reweighted",
    "triple_ids",
    "validated",
    "write_ranks",
]
