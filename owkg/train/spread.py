"""Exchange of entity rows between the devices that hold them and the devices that need them.

A step names entities by places. A place is on the device of its query, and its row is on the device that
holds the entity. Each direction takes two collectives of all places: the memory of the tables is shared among
the devices, the memory of the places is not.
"""

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Bool, Int, PyTree

from owkg.models import Params
from owkg.train.drawn import Drawn
from owkg.train.layout import MESH_AXIS, MeshLayout, shared_out
from owkg.train.queries import SideQueries
from owkg.train.reach import At, Move, Reach
from owkg.train.rows import added, moved, places_of, slots_of

_T = TypeVar("_T")


class ReachedByDevices(NamedTuple):
    """Substitute for whole tables in the objective of a step on several devices.

    Attributes:
        rows: by side, the rows of the entity tables for the given entities and the answers, and for the
            negatives if they are shared; on every device.
        drawn: by side, the negatives, as places of the side.
        candidates: by side, the rows of the answer and the negatives of each query, [queries, 1 + k, ...],
            each on the device of its query; empty if negatives are shared.
    """

    rows: tuple[Params, ...]
    drawn: tuple[Drawn, ...]
    candidates: tuple[Params, ...]


def by_devices(
    layout: MeshLayout,
    tables: Params,
    slots: Array,
    batches: tuple[SideQueries, ...],
    counts: tuple[Bool[Array, "q"], ...],
    drawn: tuple[Drawn, ...],
    *,
    dense: bool,
) -> Reach:
    """Access to the entity tables by rows, on devices that share the queries and the entities.

    `dense` tells whether whole tables are updated; `slots` is then unused. Otherwise it comes from `no_slots`
    or from the step before.
    """
    places = [places_of(batch, of_side) for batch, of_side in zip(batches, drawn, strict=True)]
    held = [side.entity[: side.held] for side in places]
    compared = [] if drawn[0].entity.ndim == 1 else [
        jnp.concatenate([batch.answer[:, None], of_side.entity], axis=1)
        for batch, of_side in zip(batches, drawn, strict=True)
    ]  # fmt: skip
    of_sides = tuple(side.drawn for side in places)

    def summed(of_rows: tuple[Params, ...], of_candidates: tuple[Params, ...]) -> Params | Sent:
        sent = Sent(tuple(zip(compared, of_candidates, strict=True)), tuple(zip(held, of_rows, strict=True)))
        return gradients_of_tables(layout, tables, sent) if dense else sent

    def moved_by(
        found: Any, optimiser: PyTree[Array], at: At, move: Move
    ) -> tuple[Params, PyTree[Array], Array]:
        if not dense:
            return moved_rows(layout, tables, optimiser, slots, found, at, move)
        way, optimiser = move(at, found, tables, optimiser)
        return {name: x + way[name] for name, x in tables.items()}, optimiser, slots

    return Reach(
        tuple(_divided(layout, side.batch) for side in places),
        shared_out(layout, counts),
        tuple(rows_everywhere(layout, tables, entity) for entity in held),
        tuple(rows_by_query(layout, tables, entity) for entity in compared),
        lambda rows, candidates: ReachedByDevices(rows, of_sides, candidates),
        summed,
        moved_by,
    )


def _divided(layout: MeshLayout, batch: SideQueries) -> SideQueries:
    """Queries split among the devices; the known answers stay on all devices."""
    own = {name: getattr(batch, name) for name in batch._fields if name != "answers"}
    return batch._replace(**shared_out(layout, own))


def rows_everywhere(layout: MeshLayout, tables: Params, entity: Int[Array, "places"]) -> Params:
    """Rows of the entities in each table, on every device."""

    def share(tables: Params, entity: Array) -> Params:
        return jax.lax.psum(_own(layout, tables, entity), MESH_AXIS)

    return _mapped(layout, share, (P(MESH_AXIS), P()), P())(tables, entity)


def rows_by_query(layout: MeshLayout, tables: Params, entity: Int[Array, "q c"]) -> Params:
    """Rows of the entities in each table, [q, c, ...], each on the device of its query."""
    q = len(entity)
    # After the last query comes an id that no device holds.
    even = jnp.pad(entity, ((0, -q % layout.mesh.size), (0, 0)), constant_values=-1)

    def share(tables: Params, entity: Array) -> Params:
        return jax.lax.psum_scatter(_own(layout, tables, entity), MESH_AXIS, tiled=True)

    found = _mapped(layout, share, (P(MESH_AXIS), P()), P(MESH_AXIS))(tables, even)
    return {name: x[:q] for name, x in found.items()}


class Sent(NamedTuple):
    """Gradients to send to the devices that hold the rows, in the order in which they are added up.

    Attributes:
        by_query: pairs of entities [q, c] and gradients [q, c, ...], each on the device of its query.
        everywhere: pairs of entities [places] and gradients [places, ...], on every device.
    """

    by_query: tuple[tuple[Array, Params], ...]
    everywhere: tuple[tuple[Array, Params], ...]


def moved_rows(
    layout: MeshLayout,
    tables: Params,
    optimiser: PyTree[Array],
    slots: Array,
    sent: Sent,
    shared: At,
    move: Move,
) -> tuple[Params, PyTree[Array], Array]:
    """(Tables, their optimiser state, slots) after a step that updates only the rows of `sent`.

    `slots` comes from `no_slots` or from the step before.
    """

    def share(
        tables: Params, optimiser: PyTree[Array], slots: Array, sent: Sent, shared: At
    ) -> tuple[Params, PyTree[Array], Array]:
        entities, gradients = zip(*_received(layout, sent), strict=True)
        rows, slots = slots_of(jnp.concatenate(entities), slots)
        sums = {name: jnp.zeros((len(rows.slot), *x.shape[1:]), x.dtype) for name, x in tables.items()}
        ends = list(accumulate(map(len, entities)))[:-1]
        for slot, own in zip(jnp.split(rows.slot, ends), gradients, strict=True):
            sums = added(sums, slot, own)
        return *moved(tables, optimiser, rows, sums, partial(move, shared)), slots

    specs = P(MESH_AXIS), layout.specs(optimiser), P(MESH_AXIS)
    call = _mapped(layout, share, (*specs, _spec_of(sent), P()), specs)
    return call(tables, optimiser, slots, _even(layout, sent), shared)


def gradients_of_tables(layout: MeshLayout, tables: Params, sent: Sent) -> Params:
    """Sum of the gradients for each row of the tables, on the device that holds it."""

    def share(tables: Params, sent: Sent) -> Params:
        sums = jax.tree.map(jnp.zeros_like, tables)
        for at, own in _received(layout, sent):
            sums = {name: x.at[at].add(own[name], mode="drop") for name, x in sums.items()}
        return sums

    return _mapped(layout, share, (P(MESH_AXIS), _spec_of(sent)), P(MESH_AXIS))(tables, _even(layout, sent))


def no_slots(layout: MeshLayout) -> Array:
    """Memory for `moved_rows`: one number per row, and one for entities of other devices; to be traced."""
    slots = jnp.zeros(layout.mesh.size * (layout.rows + 1), jnp.int32)
    return jax.lax.with_sharding_constraint(slots, layout.sharding(MESH_AXIS))


def _mapped(
    layout: MeshLayout, share: Callable[..., _T], in_specs: PyTree[P], out_specs: PyTree[P]
) -> Callable[..., _T]:
    """`share` on each device; unchecked, because inner loops begin with zeros that all devices share."""
    return jax.shard_map(share, mesh=layout.mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False)


def _local(layout: MeshLayout, entity: Array) -> Array:
    """Positions of entities among the rows of this device; after the last row if held elsewhere."""
    at = entity - jax.lax.axis_index(MESH_AXIS) * layout.rows
    return jnp.where((at >= 0) & (at < layout.rows), at, layout.rows)


def _own(layout: MeshLayout, tables: Params, entity: Array) -> Params:
    """Rows that this device holds, and zeros for all other rows."""
    at = _local(layout, entity)
    return {name: x.at[at].get(mode="fill", fill_value=0) for name, x in tables.items()}


def _even(layout: MeshLayout, sent: Sent) -> Sent:
    """`sent` padded to the same number of queries on each device; the padding names no entity."""

    def pad(x: Array, value: int) -> Array:
        widths = ((0, -len(x) % layout.mesh.size),) + ((0, 0),) * (x.ndim - 1)
        return jnp.pad(x, widths, constant_values=value)

    pairs = ((pad(ids, -1), {k: pad(x, 0) for k, x in own.items()}) for ids, own in sent.by_query)
    return sent._replace(by_query=tuple(pairs))


def _spec_of(sent: Sent) -> PyTree[P]:
    """`PartitionSpec` of each part of `sent`."""
    return sent._replace(by_query=((P(), P(MESH_AXIS)),) * len(sent.by_query), everywhere=P())


def _received(layout: MeshLayout, sent: Sent) -> list[tuple[Array, Params]]:
    """(Places of the entities among the rows of this device, gradients) for each part of `sent`."""

    def joined(x: Array) -> Array:
        return jax.lax.all_gather(x, MESH_AXIS, tiled=True).reshape(-1, *x.shape[2:])

    parts = [(ids.ravel(), {k: joined(x) for k, x in own.items()}) for ids, own in sent.by_query]
    return [(_local(layout, ids), own) for ids, own in [*parts, *sent.everywhere]]
