"""The rows of entities that a step touches: gathered, their gradients added up, moved and written back.

No array here has the length of a table but the tables themselves, which are written in place.
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

# Bytes of rows moved at a time: what stays in a CPU's cache; elsewhere, what fits into memory.
_CPU_BLOCK, _BLOCK = 2**22, 2**30
# No entity.
_NONE = 2**31 - 1

# As `Move`, at a step.
_Moves = Callable[[Params, Params, PyTree[Array]], tuple[Params, PyTree[Array]]]


class Reached(NamedTuple):
    """What stands for whole tables in the objective of a step.

    A place is where a step names an entity: those given by the queries of a side, their answers, then their
    negatives.

    Attributes:
        rows: by side, the rows of the tables of entities for the given and the answers; for all places if
            negatives are shared.
        drawn: by side, the negatives, as places of it.
        tables: the tables themselves, not differentiated.
        sums: of their gradients by slot, to be differentiated by; their numbers do not count.
        candidates, slots: entities, and slots, of the answer and the negatives of each query of both sides,
            [queries, 1 + k]; of no query if negatives are shared.
    """

    rows: tuple[Params, ...]
    drawn: tuple[Drawn, ...]
    tables: Params
    sums: Params
    candidates: Int[Array, "q k"]
    slots: Int[Array, "q k"]


class Places(NamedTuple):
    """The places of one side.

    Attributes:
        entity: of each, [places].
        batch, drawn: the queries and negatives, with places instead of entities.
        held: how many of them, from the first, have rows of their own in the objective.
    """

    entity: Int[Array, "places"]
    batch: SideQueries
    drawn: Drawn
    held: int


def places_of(batch: SideQueries, drawn: Drawn) -> Places:
    """The places of a side."""
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
    """Which rows a step writes.

    Attributes:
        slot: of the entity of each place: equal for equal entities, and one of their places; [places].
        entity: of each slot that is taken; beyond all entities for the others; [places].
    """

    slot: Int[Array, "places"]
    entity: Int[Array, "places"]


def slots_of(entity: Int[Array, "places"], slots: Int[Array, "n"]) -> tuple[Written, Int[Array, "n"]]:
    """The rows of a step, and `slots` for the next: memory that may hold anything.

    Which of their places is the slot of equal entities matters for no result: gradients are added up in the
    order of the places, wherever the sum stands.
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
    """The tables of entities by the rows of the entities of a step alone; `slots` as in `slots_of`."""
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
    """The rows of the entities of each table."""
    return {name: x.at[entity].get(mode="promise_in_bounds") for name, x in tables.items()}


def added(sums: Params, slot: Int[Array, "places"], gradients: Params) -> Params:
    """`sums` and the gradients of places, each at its slot."""
    return {name: x.at[slot].add(gradients[name], mode="promise_in_bounds") for name, x in sums.items()}


def by_side(joined: Array, places: list[Places]) -> list[Array]:
    """What belongs to the places of each side."""
    ends = [sum(len(side.entity) for side in places[: i + 1]) for i in range(len(places) - 1)]
    return jnp.split(joined, ends)


def of_candidates(joined: Array, places: list[Places]) -> Array:
    """What belongs to the answers and the negatives of each query of all sides, [queries, 1 + k]."""
    if places[0].drawn.entity.ndim == 1:  # shared
        return jnp.zeros((0, 0), joined.dtype)

    def side(part: Array, own: Places) -> Array:
        _, answers, negatives = jnp.split(part, [len(own.batch.entity), own.held])
        return jnp.concatenate([answers[:, None], negatives.reshape(own.drawn.entity.shape)], axis=1)

    return jnp.concatenate([side(*pair) for pair in zip(by_side(joined, places), places, strict=True)])


def named(tree: PyTree[Array], names: Collection[str]) -> PyTree[Array]:
    """`tree`, of arrays by the name of their parameter and of others, with the parameters of `names` only."""

    def only(x: PyTree[Array]) -> PyTree[Array]:
        return {name: array for name, array in x.items() if name in names} if isinstance(x, dict) else x

    return jax.tree.map(only, tree, is_leaf=_is_dict)


def united(tree: PyTree[Array], other: PyTree[Array]) -> PyTree[Array]:
    """`tree` with the parameters of both; what is of no parameter as in `tree`."""
    return jax.tree.map(lambda x, y: x | y if isinstance(x, dict) else x, tree, other, is_leaf=_is_dict)


def moved(
    params: Params, optimiser: PyTree[Array], rows: Written, sums: Params, move: _Moves
) -> tuple[Params, PyTree[Array]]:
    """Tables of entities and what the optimiser keeps of them, after a step of their `rows`.

    Blocks of rows are gathered, moved and written while they are in the cache. `sums` are their gradients by
    slot. Numbers of the optimiser that are of no row stay as they are.
    """
    k = len(rows.entity)
    limit = _CPU_BLOCK if jax.default_backend() == "cpu" else _BLOCK
    block = max(1, min(k, limit * k // sum(x.size * x.dtype.itemsize for x in sums.values())))

    def one(i: Array, tables: tuple[Params, PyTree[Array]]) -> tuple[Params, PyTree[Array]]:
        # The last block begins before its turn: what came before its turn is not written again.
        start = jnp.minimum(i * block, k - block)
        entity = jax.lax.dynamic_slice_in_dim(rows.entity, start, block)
        write = jnp.where(start + jnp.arange(block) < i * block, _NONE, entity)
        gradients = {name: jax.lax.dynamic_slice_in_dim(x, start, block) for name, x in sums.items()}
        params, optimiser = tables
        small = _of_tables(lambda x: x.at[entity].get(mode="clip"), tables)
        way, kept = move(gradients, *small)
        # Twice as fast on a CPU as to write sums over the rows that were read.
        params = _of_tables(lambda x, y: x.at[write].add(y, mode="drop"), params, way)
        return params, _of_tables(lambda x, y: x.at[write].set(y, mode="drop"), optimiser, kept)

    return jax.lax.fori_loop(0, -(-k // block), one, (params, optimiser))


def _of_tables(call: Callable[..., Array], tree: PyTree[Array], *others: PyTree[Array]) -> PyTree[Array]:
    """`tree` after `call` of each of its tables, with those of the others."""

    def each(x: PyTree[Array], *more: PyTree[Array]) -> PyTree[Array]:
        if not isinstance(x, dict):
            return x
        return {name: call(table, *(other[name] for other in more)) for name, table in x.items()}

    return jax.tree.map(each, tree, *others, is_leaf=_is_dict)


def _is_dict(x: object) -> bool:
    return isinstance(x, dict)
