"""Relation categories: whether a relation gives a head one tail or many, and a tail one head or many."""

from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.kg.triples import size, triple_frame, triples_checked

CATEGORIES = ("1-1", "1-N", "N-1", "N-N")


def relation_categories(triples: Any, num_relations: int, *, threshold: float = 1.5) -> np.ndarray:
    """The category of each relation, head side first: "1-1", "1-N", "N-1" or "N-N"; "" without triples.

    A side is N if its average is at least `threshold`, which is at least 1: for the tail side the distinct
    tails of a head, averaged over the heads that the relation has; for the head side the distinct heads of a
    tail. So "1-N" gives a head many tails, each of which has about one head (Bordes et al. 2013, section 4.3,
    where an average below 1.5 makes a side 1). The literature counts training triples, some of it all splits;
    repeated triples count once.

    Raises:
        ValueError: if an id is out of range or `threshold` is below 1.

    Examples:
        >>> relation_categories([[0, 0, 1], [0, 0, 2], [3, 1, 4]], 3).tolist()
        ['1-N', '1-1', '']
    """
    relations = size("num_relations", num_relations)
    limit = checks.scalar("threshold", checks.real("threshold", threshold, 1, np.inf))
    found = (
        triple_frame(triples_checked(triples, None, relations))
        .unique()
        .group_by("relation")
        .agg(pl.len().alias("facts"), pl.col("head", "tail").n_unique())
        .with_columns(head_side=_letter("tail", limit), tail_side=_letter("head", limit))
    )
    categories = np.full(relations, "", dtype="<U3")
    named = (found["head_side"] + "-" + found["tail_side"]).to_list()
    if named:
        categories[found["relation"].to_numpy()] = named
    return categories


def _letter(queries: str, limit: float) -> pl.Expr:
    """What a side is called that answers queries about the entities of the other side."""
    many = pl.col("facts") / pl.col(queries) >= limit
    return pl.when(many).then(pl.lit("N")).otherwise(pl.lit("1"))
