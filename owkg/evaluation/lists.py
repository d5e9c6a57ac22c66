"""Best answers of a model to queries, as ranked lists for a pool."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.evaluation.blocks import flat_known
from owkg.evaluation.memory import query_numbers, whole_bytes
from owkg.keys import settled
from owkg.kg import KnownAnswers
from owkg.kg.triples import ids, side_checked
from owkg.models import Trained
from owkg.models.kinds import unscored
from owkg.ranks import known_sets


class TopAnswers(NamedTuple):
    """Best candidates of each query, best first.

    Attributes:
        answer: entity ids, [queries, depth]; -1 after the last candidate.
        score: scores of the answers, [queries, depth]; minus infinity after the last candidate.
    """

    answer: Int32[np.ndarray, "queries depth"]
    score: Float[np.ndarray, "queries depth"]


@settled()
def top_answers(
    trained: Trained,
    entity: ArrayLike,
    relation: ArrayLike,
    side: str,
    *,
    known: KnownAnswers | None,
    depth: int,
) -> TopAnswers:
    """The `depth` best candidates of each query; of equal scores, the smaller id comes first.

    Args:
        trained: model with its parameters.
        entity, relation: ids given by each query, [queries].
        side: side to answer, "head" or "tail".
        known: `KnownAnswers` to leave out of the lists, for example the answers known from train. None: list
            all entities.
        depth: length of the lists, at most the number of entities.

    Raises:
        ValueError: if an argument is out of range, or if a score is not finite; the message names the query.

    Examples:
        >>> import jax
        >>> from owkg.models import Trained, model
        >>> params = {"entity": jax.numpy.array([[0.0], [2.0], [1.0]]), "relation": jax.numpy.array([[1.0]])}
        >>> trained = Trained(model("transe", dim=1), params)
        >>> top_answers(trained, [0], [0], "tail", known=None, depth=2).answer.tolist()
        [[2, 0]]
    """
    side, num_entities = side_checked(side), trained.num_entities
    entity = ids("entity", entity, num_entities)
    relation = ids("relation", relation, trained.num_relations)
    if entity.ndim != 1 or entity.shape != relation.shape:
        raise ArgumentError(
            "entity",
            f"and `relation` must be one id a query, got the shapes {entity.shape} and {relation.shape}.",
        )
    deep = checks.whole("depth", depth, 1)
    if deep > num_entities:
        raise ArgumentError("depth", f"must be at most {num_entities}, the entities, got {deep}.")
    if known is not None and not isinstance(known, KnownAnswers):
        raise ArgumentError("known", f"must be KnownAnswers, or None, got {known!r}.")
    if known is not None and known.side != side:
        raise ArgumentError("known", f"must be for the side {side}, got {known.side}.")
    answer = np.empty((len(entity), deep), np.int32)
    score = np.empty((len(entity), deep), wide := jnp.result_type(trained.params["entity"], np.float32))
    # At least two queries, because the product of a single row is rounded differently from the same row among
    # others.
    trained = trained.encoded()
    most = whole_bytes(jax.devices()[0], numbers := query_numbers(trained))
    size = max(2, min(len(entity), most // (wide.itemsize * numbers)))
    top = partial(_top, trained, side, deep)
    row, out = np.empty(0, np.int64), np.empty(0, np.int32)
    if known is not None:
        row, out = flat_known(known_sets(known, entity, relation), np.arange(len(entity)))
    bounds = np.searchsorted(row, np.arange(0, len(entity) + size, size))
    deepest = int(np.diff(bounds).max(initial=0))
    for block, begin in enumerate(range(0, len(entity), size)):
        own = slice(begin, min(begin + size, len(entity)))
        inside = slice(bounds[block], bounds[block + 1])
        filled = np.arange(begin, begin + size) % len(entity)
        gone = np.full((2, deepest), size, np.int32)
        gone[:, : inside.stop - inside.start] = row[inside] - begin, out[inside]
        best, found, finite = top(entity[filled], relation[filled], *gone)
        if not (whole := np.asarray(finite)).all():
            at = int(filled[np.argmin(whole)])
            raise unscored(trained.model, f"the {side} of entity {entity[at]}, relation {relation[at]}")
        answer[own], score[own] = (np.asarray(part)[: own.stop - begin] for part in (best, found))
    return TopAnswers(answer, score)


@partial(jax.jit, static_argnames=("side", "depth"))
def _top(
    trained: Trained, side: str, depth: int, entity: Array, relation: Array, row: Array, out: Array
) -> tuple[Array, Array, Array]:
    """Best candidates, their scores, and whether all scores of each query are finite."""
    queries = trained.queries(entity, relation, side)
    scores = trained.model.similarity.all(queries, trained.candidates())
    scores = scores.astype(jnp.result_type(scores, jnp.float32))
    finite = jnp.isfinite(scores).all(axis=1)
    scores = scores.at[row, out].set(-jnp.inf, mode="drop")
    found, best = jax.lax.top_k(scores, depth)
    return jnp.where(jnp.isfinite(found), best, -1), found, finite
