"""What a knowledge-graph-embedding model is: data and pure functions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.models.similarity import Similarity

Params = dict[str, Array]
Statistics = dict[str, Array]

SIDES = ("head", "tail")
# (params, statistics, entity [q], relation [q], side, *, key=None) to (queries [q, d_c], statistics)
Query = Callable[..., tuple[Array, Statistics]]


@dataclass(frozen=True)
class Model:
    """A model whose score is the similarity of a query and a candidate; larger is more plausible.

    Models made from equal options are one object, so they share compiled code.

    Attributes:
        name: in `owkg.models.MODELS`.
        config: its options, a frozen dataclass.
        init: (key, num_entities, num_relations) to (params, statistics). params are float32 arrays by name:
            `entity` [num_entities, d_e] and `relation` [num_relations, d_r], twice the relations if they are
            reciprocal, row r + num_relations the inverse of r; others by model. statistics are running
            means and variances of batch normalisation; none for most models.
        query: (params, statistics, entity [q], relation [q], side, *, key=None) to (queries [q, d_c],
            statistics). The query (entity, relation, ?) of side "tail", (?, relation, entity) of side
            "head". A key means training: dropout, and batches normalised by themselves.
        candidates: (params, entity=None) to what entities are compared as, [n, d_c], or [..., d_c] for
            ids [...].
        similarity: of queries and candidates: the score.
        complex_params: the arrays whose rows are real parts, then as many imaginary parts.
        entity_params: the arrays with a row an entity.
    """

    name: str
    config: Any
    init: Callable[[Array, int, int], tuple[Params, Statistics]]
    query: Query
    candidates: Callable[..., Array]
    similarity: Similarity
    complex_params: tuple[str, ...] = ()
    entity_params: tuple[str, ...] = ("entity",)


# (params, statistics, rows of entities, rows of relations, key) to (queries, statistics)
Form = Callable[[Params, Statistics, Array, Array, Array | None], tuple[Array, Statistics]]


def plain(form: Callable[[Array, Array], Array]) -> Form:
    """The form of a model without dropout, statistics, or parameters beyond the embeddings."""
    return lambda params, statistics, entity, relation, key: (form(entity, relation), statistics)


def sided(tail: Form, head: Form | None, *, reciprocal: bool) -> Query:
    """The `query` of a model from its forms of (entity, relation, ?) and of (?, relation, entity).

    Reciprocal models need no form for heads: they ask (entity, inverse of relation, ?).
    """
    if head is None and not reciprocal:
        raise ArgumentError(
            "reciprocal", f"must be True for a model without a head form, got {reciprocal!r}."
        )

    def query(
        params: Params,
        statistics: Statistics,
        entity: Any,
        relation: Any,
        side: str,
        *,
        key: Array | None = None,
    ) -> tuple[Array, Statistics]:
        if side not in SIDES:
            raise ArgumentError("side", f"must be head or tail, got {side!r}.")
        form = tail
        if side == "head" and reciprocal:
            relation = relation + params["relation"].shape[0] // 2
        elif side == "head" and head is not None:
            form = head
        return form(params, statistics, params["entity"][entity], params["relation"][relation], key)

    return query


def entity_rows(params: Params, entity: Any = None) -> Array:
    """The embeddings of all entities, or of `entity`: the candidates of most models."""
    return params["entity"] if entity is None else params["entity"][entity]


def score(
    model: Model, params: Params, statistics: Statistics, head: Any, relation: Any, tail: Any
) -> Float[Array, "..."]:
    """The scores of triples, by the query of their tails; `head`, `relation` and `tail`, ids, broadcast.

    Raises:
        ValueError: if an id is out of range.

    Examples:
        >>> import jax
        >>> from owkg.models import model
        >>> transe = model("transe", dim=2)
        >>> params = {"entity": jax.numpy.eye(2), "relation": jax.numpy.array([[-1.0, 0.5]])}
        >>> score(transe, params, {}, 0, 0, [0, 1]).tolist()
        [-1.5, -0.5]
    """
    shape = checks.common_shape(head=head, relation=relation, tail=tail)
    n = len(params["entity"])
    sizes = {"head": (head, n), "tail": (tail, n), "relation": (relation, num_relations(model, params))}
    head, tail, relation = (
        jnp.broadcast_to(_ids(name, ids, size), shape).ravel() for name, (ids, size) in sizes.items()
    )
    queries, _ = model.query(params, statistics, head, relation, "tail")
    return model.similarity.one(queries, model.candidates(params, tail)).reshape(shape)


def score_all(
    model: Model,
    params: Params,
    statistics: Statistics,
    entity: Any,
    relation: Any,
    side: str,
    candidates: Any = None,
) -> Float[Array, "q c"]:
    """The scores of all entities, or a shard of them, as answers to queries.

    Args:
        model, params, statistics: what scores.
        entity, relation: ids that the queries give, [q].
        side: that is asked for, "head" or "tail".
        candidates: entity ids to score, [c]; None: all.

    Raises:
        ValueError: if an id is out of range, or the side none.
    """
    n = len(params["entity"])
    entity = _ids("entity", entity, n)
    relation = _ids("relation", relation, num_relations(model, params))
    if candidates is not None:
        candidates = _ids("candidates", candidates, n)
    queries, _ = model.query(params, statistics, entity, relation, side)
    return model.similarity.all(queries, model.candidates(params, candidates))


def num_relations(model: Model, params: Params) -> int:
    """Number of relations, reciprocal ones counted once."""
    return len(params["relation"]) // (2 if model.config.reciprocal else 1)


def _ids(name: str, ids: Any, size: int) -> Int[Array, "..."]:
    """`ids` below `size`; those that JAX is tracing pass."""
    if checks.is_traced(ids):
        return ids
    array = checks.integer(name, ids, 0)
    checks.require(name, array, array < size, f"ids below {size}")
    return jnp.asarray(array.astype(np.int32))
