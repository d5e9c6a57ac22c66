"""Full evaluation: a model and a graph to ranks against all entities, on one device or many."""

from owkg.evaluate.arrays import rank_arrays, scored_rank_arrays
from owkg.evaluate.table import ranks

__all__ = ["rank_arrays", "ranks", "scored_rank_arrays"]
