"""Ranks: the rank table and its files, one rank out of a tie."""

from owkg.ranks.files import read_ranks, write_ranks
from owkg.ranks.table import validated
from owkg.ranks.ties import random_ranks, realistic

__all__ = ["random_ranks", "read_ranks", "realistic", "validated", "write_ranks"]
