"""Entity rows that a step uses: gathering them, adding up their gradients, updating and writing them back.

Only the tables themselves have the length of a table here, and they are written in place.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PyTree

from owkg.models import Params
from owkg.train.drawn import Drawn
from owkg.train.queries import SideQueries
from owkg.train.reach import At, Move, Reach

# Bytes of rows to update at a time: the size of a CPU's cache; elsewhere, an amount that fits in memory.
_CPU_BLOCK, _BLOCK = 2**22, 2**30
# Id of no entity.
_NONE = 2**31 - 1

# `Move` with its step fixed.
_Moves = Callable[[Params, Params, PyTree[Array]], tuple[Params, PyTree[Array]]]


class Reached(NamedTuple):
    """Substitute for whole tables in the objective of a step.

    A place is a position at which a step names an entity: first the entities given by the queries of a side,
    then their answers, then their negatives.

    Attributes:
        rows: by side, the rows of the entity tables for the given entities and the answers; for all places if
            negatives are shared.
        drawn: by side, the negatives, as places of the side.
        tables: the tables themselves, not differentiated.
        sums: arrays for the sums of their gradients by slot; the objective is differentiated by them, and
            their values do not matter.
        candidates, slots: entities and slots of the answer and the negatives of each query of both sides,
            [queries, 1 + k]; empty if negatives are shared.
    """

    rows: tuple[Params, ...]
    drawn: tuple[Drawn, ...]
    tables: Params
    sums: Params
    candidates: Int[Array, "q k"]
    slots: Int[Array, "q k"]


class Places(NamedTuple):
    """Places of one side.

    Attributes:
        entity: entity at each place, [places].
        batch, drawn: queries and negatives, with places instead of entities.
        held: number of places, from the first, that have rows of their own in the objective.
    """

    entity: Int[Array, "places"]
    batch: SideQueries
    drawn: Drawn
    held: int


def places_of(batch: SideQueries, drawn: Drawn) -> Places:
    """Places of a side."""
    q, shared = len(batch.entity), drawn.entity.ndim == 1
    place = jnp.arange(q, dtype=jnp.int32)
    negatives = 2 * q + jnp.arange(drawn.entity.size, dtype=jnp.int32).reshape(drawn.entity.shape)
    return Places(
        jnp.concatenate([batch.entity, batch.answer, drawn.entity.ravel()]),
        batch._replace(entity=place, answer=q + place),
        drawn._replace(entity=negatives),
        2 * q + (drawn.entity.size if shared else 0),
    )


class Written(NamedTuple):
    """Rows that a step writes.

    Attributes:
        slot: slot of the entity at each place, [places]; equal entities share a slot, which is one of their
            places.
        entity: entity of each used slot, [places]; an id above all entities for unused slots.
    """

    slot: Int[Array, "places"]
    entity: Int[Array, "places"]


def slots_of(entity: Int[Array, "places"], slots: Int[Array, "n"]) -> tuple[Written, Int[Array, "n"]]:
    """Rows of a step, and `slots` for the next one; `slots` is memory with arbitrary content.

    The choice of the slot among the places of equal entities changes no result, because gradients are added
    in the order of the places whichever slot holds the sum.
    """
    place = jnp.arange(len(entity), dtype=jnp.int32)
    slots = slots.at[entity].set(place, mode="promise_in_bounds")
    slot = slots.at[entity].get(mode="promise_in_bounds")
    return Written(slot, jnp.where(slot == place, entity, len(slots) + place)), slots


def by_rows(
    tables: Params,
    slots: Int[Array, "n"],
    batches: tuple[SideQueries, ...],
    counts: tuple[Bool[Array, "q"], ...],
    drawn: tuple[Drawn, ...],
) -> Reach:
    """Access to the entity tables by the rows of a step alone; `slots` as in `slots_of`."""
    places = [places_of(batch, of_side) for batch, of_side in zip(batches, drawn, strict=True)]
    entity = jnp.concatenate([side.entity for side in places])
    written, slots = slots_of(entity, slots)
    whole = Reached(
        rows=tuple(gather(tables, side.entity[: side.held]) for side in places),
        drawn=tuple(side.drawn for side in places),
        tables=tables,
        sums={name: jnp.zeros((len(entity), *x.shape[1:]), x.dtype) for name, x in tables.items()},
        candidates=of_candidates(entity, places),
        slots=of_candidates(written.slot, places),
    )

    def summed(of_rows: tuple[Params, ...], sums: Params) -> Params:
        for slot, side, gradients in zip(by_side(written.slot, places), places, of_rows, strict=True):
            sums = added(sums, slot[: side.held], gradients)
        return sums

    def moved_rows(
        sums: Params, optimiser: PyTree[Array], at: At, move: Move
    ) -> tuple[Params, PyTree[Array], Array]:
        return *moved(tables, optimiser, written, sums, partial(move, at)), slots

    return Reach(
        tuple(side.batch for side in places),
        counts,
        whole.rows,
        whole.sums,
        lambda rows, sums: whole._replace(rows=rows, sums=sums),
        summed,
        moved_rows,
    )


def gather(tables: Params, entity: Int[Array, "places"]) -> Params:
    """Rows of the entities in each table."""
    return {name: x.at[entity].get(mode="promise_in_bounds") for name, x in tables.items()}


def added(sums: Params, slot: Int[Array, "places"], gradients: Params) -> Params:
    """`sums` plus the gradients of places, each added at its slot."""
    return {name: x.at[slot].add(gradients[name], mode="promise_in_bounds") for name, x in sums.items()}


def by_side(joined: Array, places: list[Places]) -> list[Array]:
    """`joined` split into the places of each side."""
    ends = [sum(len(side.entity) for side in places[: i + 1]) for i in range(len(places) - 1)]
    return jnp.split(joined, ends)


def of_candidates(joined: Array, places: list[Places]) -> Array:
    """Entries of `joined` for the answer and the negatives of each query of all sides, [queries, 1 + k]."""
    if places[0].drawn.entity.ndim == 1:  # shared
        return jnp.zeros((0, 0), joined.dtype)

    def side(part: Array, own: Places) -> Array:
        _, answers, negatives = jnp.split(part, [len(own.batch.entity), own.held])
        return jnp.concatenate([answers[:, None], negatives.reshape(own.drawn.entity.shape)], axis=1)

    return jnp.concatenate([side(*pair) for pair in zip(by_side(joined, places), places, strict=True)])


def named(tree: PyTree[Array], names: Collection[str]) -> PyTree[Array]:
    """`tree`, whose dicts map names of parameters to arrays, with the parameters in `names` only."""

    def only(x: PyTree[Array]) -> PyTree[Array]:
        return {name: array for name, array in x.items() if name in names} if isinstance(x, dict) else x

    return jax.tree.map(only, tree, is_leaf=_is_dict)


def united(tree: PyTree[Array], other: PyTree[Array]) -> PyTree[Array]:
    """`tree` with the parameters of both trees; everything else comes from `tree`."""
    return jax.tree.map(lambda x, y: x | y if isinstance(x, dict) else x, tree, other, is_leaf=_is_dict)


def moved(
    params: Params, optimiser: PyTree[Array], rows: Written, sums: Params, move: _Moves
) -> tuple[Params, PyTree[Array]]:
    """Entity tables and their optimiser state after a step that updates `rows`.

    Blocks of rows are gathered, updated and written while they are in the cache. `sums` holds their gradients
    by slot. Numbers of the optimiser that belong to no row stay unchanged.
    """
    k = len(rows.entity)
    limit = _CPU_BLOCK if jax.default_backend() == "cpu" else _BLOCK
    block = max(1, min(k, limit * k // sum(x.size * x.dtype.itemsize for x in sums.values())))

    def one(i: Array, tables: tuple[Params, PyTree[Array]]) -> tuple[Params, PyTree[Array]]:
        # The last block starts earlier so that it is full; rows before its turn are not written again.
        start = jnp.minimum(i * block, k - block)
        entity = jax.lax.dynamic_slice_in_dim(rows.entity, start, block)
        write = jnp.where(start + jnp.arange(block) < i * block, _NONE, entity)
        gradients = {name: jax.lax.dynamic_slice_in_dim(x, start, block) for name, x in sums.items()}
        params, optimiser = tables
        small = _of_tables(lambda x: x.at[entity].get(mode="clip"), tables)
        way, kept = move(gradients, *small)
        # On a CPU, this is twice as fast as writing sums over the rows that were read.
        params = _of_tables(lambda x, y: x.at[write].add(y, mode="drop"), params, way)
        return params, _of_tables(lambda x, y: x.at[write].set(y, mode="drop"), optimiser, kept)

    return jax.lax.fori_loop(0, -(-k // block), one, (params, optimiser))


def _of_tables(call: Callable[..., Array], tree: PyTree[Array], *others: PyTree[Array]) -> PyTree[Array]:
    """`tree` after `call` on each of its tables, together with the same tables of `others`."""

    def each(x: PyTree[Array], *more: PyTree[Array]) -> PyTree[Array]:
        if not isinstance(x, dict):
            return x
        return {name: call(table, *(other[name] for other in more)) for name, table in x.items()}

    return jax.tree.map(each, tree, *others, is_leaf=_is_dict)


def _is_dict(x: object) -> bool:
    return isinstance(x, dict)
