"""Bounds for systems that were not pooled, because candidates that only they list were not judged."""

import numpy as np
import polars as pl
from jaxtyping import Float

from owkg.errors import ArgumentError
from owkg.estimation.judged import DrawnPool
from owkg.estimation.measures import Measure
from owkg.estimation.population import population
from owkg.estimation.targets import population_bounds, prepared

_PAIR = ["query", "answer"]


def unpooled_bounds(
    drawn: DrawnPool, judged: pl.DataFrame, run: pl.DataFrame, of: Measure
) -> tuple[tuple[str, ...], Float[np.ndarray, "systems"], Float[np.ndarray, "systems"]]:
    """Smallest and largest value of a metric that unjudged candidates allow for systems outside the pool.

    Args:
        drawn: the pool.
        judged: judgements of the drawn units, without errors.
        run: lists of systems that are not in the pool, columns model, query, side, entity, relation, answer,
            score, without the known answers of train and valid, as in the pool. Queries that are not in the
            pool are ignored; a query without a row has an empty list.
        of: the metric.

    Returns:
        The names of the systems, and their lower and upper bounds, as means over all queries of the pool.

    Raises:
        ValueError: naming `others`, if a system is pooled, or none lists an answer.
    """
    people = drawn.people
    if pooled := sorted(set(run["model"]) & set(people.models)):
        raise ArgumentError("others", f"must hold systems that were not pooled, got {pooled[0]}.")
    lists = run.join(people.queries, on="query", how="semi", maintain_order="left")
    if lists.is_empty():
        raise ArgumentError("others", "must answer queries of the pool, got none of them.")
    columns = [*_PAIR, "side", "entity", "relation", "relevance"]
    said = pl.concat([one.filter(pl.col("relevance") >= 0).select(columns) for one in (drawn.known, judged)])
    every = people.pairs(np.arange(len(people.answers)))
    other = population(lists, people.depth, said.unique(_PAIR), more=every)
    least, most = population_bounds(np.eye(len(other.models)), prepared(of, other, []))
    return other.models, least, most
