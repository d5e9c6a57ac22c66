"""Steps that touch only the rows of their entities, in memory and time that no table's length enters.

The rows of the given entities, answers and negatives are gathered, the loss is differentiated by them, the
gradients of equal entities are added up, the optimiser moves the rows, and these are written where they came
from. Relations, layers and statistics are updated as ever.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from owkg.models import Params
from owkg.train.drawn import Drawn
from owkg.train.queries import Queries


class Places(NamedTuple):
    """What one side of a step names by place.

    Attributes:
        entity: of each place, [places].
        batch, drawn: with places instead of entities.
    """

    entity: Int[Array, "places"]
    batch: Queries
    drawn: Drawn


def placed(batch: Queries, drawn: Drawn) -> Places:
    """The places of a side: given entities, answers, then negatives."""
    q = len(batch.entity)
    place = jnp.arange(q, dtype=jnp.int32)
    negatives = 2 * q + jnp.arange(drawn.entity.size, dtype=jnp.int32).reshape(drawn.entity.shape)
    return Places(
        jnp.concatenate([batch.entity, batch.answer, drawn.entity.ravel()]),
        batch._replace(entity=place, answer=q + place),
        drawn._replace(entity=negatives),
    )


class Rows(NamedTuple):
    """Which rows a step writes.

    Attributes:
        slot: the place that stands for the entity of each place, equal for equal entities, [places].
        write: the entity of each place that stands for one; beyond all entities for the others, [places].
        read: the entity of each place, [places].
    """

    slot: Int[Array, "places"]
    write: Int[Array, "places"]
    read: Int[Array, "places"]


def rows_of(entity: Int[Array, "places"], slots: Int[Array, "n"]) -> tuple[Rows, Int[Array, "n"]]:
    """The rows of a step, and `slots` for the next: memory that may hold anything.

    Which of equal entities stands for them matters for no result: their gradients are added up in the order
    of their places, wherever the sum stands.
    """
    place = jnp.arange(len(entity), dtype=jnp.int32)
    slots = slots.at[entity].set(place, mode="promise_in_bounds")
    slot = slots.at[entity].get(mode="promise_in_bounds")
    return Rows(slot, jnp.where(slot == place, entity, len(slots) + place), entity), slots


def gather(tables: Params, entity: Int[Array, "places"]) -> Params:
    """The rows of the entities of each table."""
    return {name: x.at[entity].get(mode="promise_in_bounds") for name, x in tables.items()}


def summed(gradients: tuple[Params, ...], rows: Rows) -> Params:
    """The gradients of the places of each side, added up where the entity has its slot; 0 elsewhere."""
    total, begin = {name: jnp.zeros((len(rows.slot), *x.shape[1:])) for name, x in gradients[0].items()}, 0
    for part in gradients:
        size = len(next(iter(part.values())))
        slot = rows.slot[begin : begin + size]
        total = {name: x.at[slot].add(part[name], mode="promise_in_bounds") for name, x in total.items()}
        begin += size
    return total


def is_table(path: tuple[Any, ...], names: tuple[str, ...]) -> bool:
    """Whether a leaf at this place of a tree of params, or of the optimiser's means of them, is of entities."""
    return bool(path) and getattr(path[-1], "key", None) in names


def gathered_tree(tree: Any, names: tuple[str, ...], rows: Rows) -> Any:
    """`tree` with the rows read of the tables of these names, in place of the tables."""

    def leaf(path: tuple[Any, ...], x: Array) -> Array:
        return x.at[rows.read].get(mode="promise_in_bounds") if is_table(path, names) else x

    return jax.tree_util.tree_map_with_path(leaf, tree)


def scattered_tree(tree: Any, names: tuple[str, ...], rows: Rows, small: Any) -> Any:
    """`tree` with the rows of `small` written into its tables, and the other leaves of `small`."""

    def leaf(path: tuple[Any, ...], x: Array, y: Array) -> Array:
        if not is_table(path, names):
            return y
        return x.at[rows.write].set(y, mode="drop", unique_indices=True)

    return jax.tree_util.tree_map_with_path(leaf, tree, small)
