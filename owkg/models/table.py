"""Table model: scores that are looked up, such as the scores of rules."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from owkg.models import options
from owkg.models.kind import Kind
from owkg.models.model import SIDES, Facts, Ids, Model, Params, Statistics, Trained
from owkg.models.similarity import Similarity

# Number of answers of a query to write in one pass.
_PASS = 128


@dataclass(frozen=True)
class Table:
    """Options of the table model.

    Attributes:
        dim: reals per entity, which have no effect.
        reciprocal: must be False, because a table has both sides of a relation.
    """

    dim: int = 1
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim")
        options.one_of(self, "reciprocal", False)


def table_model(config: Table) -> Model:
    """Table model, with scores looked up for the answers of each query.

        score(h, r, t) = table score of the answer t to (h, r, ?), or h to (?, r, t); 0 if there is none

    All scores of a query that was not put to the table are NaN, so that nothing ranks them.

    The row of a query holds its scores for all entities, and the row of a candidate its id. Statistics:
    `start`, the start of the answers of each query, by side (tail, head), relation and entity, and finally
    their number; `candidate` and `score` of each answer; `asked`, whether each query was put to the table.
    `graph` makes a table whose answers are the tails of train facts. Ids are exact up to 2^24 entities.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        params = {
            "entity": jnp.zeros((num_entities, config.dim), jnp.float32),
            "relation": jnp.zeros((num_relations, 1), jnp.float32),
        }
        start = jnp.zeros(2 * num_relations * num_entities + 1, jnp.int32)
        return params, {
            "asked": jnp.ones(len(start) - 1, bool),
            "start": start,
            "candidate": jnp.zeros(1, jnp.int32),
            "score": jnp.zeros(1, jnp.int32),
        }

    def graph(facts: Facts, num_entities: int, num_relations: int) -> Statistics:
        rows = jnp.asarray(facts)
        queries = rows[:, 1] * num_entities + rows[:, 0]
        order = jnp.argsort(queries)
        numbers = jnp.arange(2 * num_relations * num_entities + 1)
        return {
            "asked": jnp.ones(len(numbers) - 1, bool),
            "start": jnp.searchsorted(queries[order], numbers).astype(jnp.int32),
            "candidate": rows[order, 2].astype(jnp.int32),
            "score": jnp.ones(len(rows), jnp.int32),
        }

    def query(
        params: Params,
        statistics: Statistics,
        entity: Ids,
        relation: Ids,
        side: str,
        *,
        key: Array | None = None,
    ) -> tuple[Array, Statistics]:
        n, count = len(params["entity"]), len(params["relation"])
        at = (jnp.asarray(relation) + count * SIDES[::-1].index(side)) * n + jnp.asarray(entity)
        start, stop = statistics["start"][at], statistics["start"][at + 1]
        rows = jnp.arange(len(at))[:, None]

        def written(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            begin, scores = carry
            place = start[:, None] + begin + jnp.arange(_PASS)
            answer = jnp.where(place < stop[:, None], statistics["candidate"][place], n)
            score = statistics["score"][place].astype(scores.dtype)
            return begin + _PASS, scores.at[rows, answer].set(score, mode="drop")

        most = jnp.max(stop - start, initial=0)
        begun = jnp.int32(0), jnp.zeros((len(at), n), params["entity"].dtype)
        scores = jax.lax.while_loop(lambda carry: carry[0] < most, written, begun)[1]
        return jnp.where(statistics["asked"][at][:, None], scores, jnp.nan), statistics

    def candidates(params: Params, entity: Ids | None = None) -> Array:
        ids = jnp.arange(len(params["entity"])) if entity is None else jnp.asarray(entity)
        return ids[..., None].astype(params["entity"].dtype)

    return Model("table", config, init, query, candidates, _LOOKED_UP, graph=graph)


def table_of(
    query: Int[np.ndarray, "predictions"],
    candidate: Int[np.ndarray, "predictions"],
    score: Int[np.ndarray, "predictions"],
    asked: Int[np.ndarray, "queries"] | None = None,
    *,
    num_entities: int,
    num_relations: int,
) -> Trained:
    """Table of predictions, with scores of at least 1, larger for better answers.

    Args:
        query: relation * num_entities + entity, where the relation is increased by the number of relations if
            the head is asked for.
        candidate: answers.
        score: scores of the answers; entities without a score rank below all of them.
        asked: numbers of the queries that were put to the table. None: all queries.
        num_entities, num_relations: size of the graph.
    """
    model = KIND.made()
    order = np.argsort(query, kind="stable")
    params, _ = model.init(jax.random.key(0), num_entities, num_relations)
    numbers = np.arange(2 * num_relations * num_entities + 1)
    arrays = np.searchsorted(query[order], numbers), candidate[order], score[order]
    names = "start", "candidate", "score"
    held = {n: jnp.asarray(x, jnp.int32) for n, x in zip(names, arrays, strict=True)}
    whether = np.ones(len(numbers) - 1, bool) if asked is None else np.isin(numbers[:-1], asked)
    return Trained(model, params, held | {"asked": jnp.asarray(whether)})


def _one(query: Array, candidate: Array) -> Array:
    ids = candidate[..., 0].astype(jnp.int32)
    shape = jnp.broadcast_shapes(query.shape[:-1], ids.shape)
    rows = jnp.broadcast_to(query, (*shape, query.shape[-1]))
    return jnp.take_along_axis(rows, jnp.broadcast_to(ids, shape)[..., None], axis=-1)[..., 0]


@jax.jit
def _all(queries: Array, candidates: Array) -> Array:
    return queries[:, candidates[:, 0].astype(jnp.int32)]


_LOOKED_UP = Similarity(_one, _all, lambda queries, tiles: jax.lax.map(partial(_all, queries), tiles))


KIND = Kind("table", Table, table_model, "looked up", "owkg rules", made_by="owkg rules")
