"""Layout on several devices: which rows of entity embeddings each device holds; all else is replicated."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.tree_util import KeyPath
from jaxtyping import Array, PyTree

from owkg import checks
from owkg.errors import ArgumentError
from owkg.train.config import Training
from owkg.train.updates import updates_of

_T = TypeVar("_T")
MESH_AXIS = "devices"
# Bytes of a table that leave the devices at a time.
_BLOCK = 2**26


@dataclass(frozen=True)
class MeshLayout:
    """Layout of entity tables that are split by rows.

    Attributes:
        mesh: devices, along one axis.
        num_entities: number of entities of the graph.
        tables: names of the parameters with one row per entity; the optimiser's state for them is laid out in
            the same way.
    """

    mesh: Mesh
    num_entities: int
    tables: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Rows of a table on each device; after the last entity come unused rows of zeros."""
        return -(-self.num_entities // self.mesh.size)

    @property
    def padded(self) -> int:
        """Rows of a table on all devices together."""
        return self.rows * self.mesh.size

    def sharding(self, *axes: str) -> NamedSharding:
        """Sharding by rows if `axes` is `MESH_AXIS`; without axes, replication on every device."""
        return NamedSharding(self.mesh, P(*axes))

    def spec(self, place: KeyPath) -> P:
        """`PartitionSpec` of the array at a place in a tree of parameters or of an optimiser."""
        return P(MESH_AXIS) if getattr(place[-1], "key", None) in self.tables else P()

    def specs(self, tree: PyTree) -> PyTree[P]:
        """`PartitionSpec` of each array of a tree."""
        return jax.tree_util.tree_map_with_path(lambda place, _: self.spec(place), tree)

    def shardings(self, tree: PyTree) -> PyTree[NamedSharding]:
        """`NamedSharding` of each array of a tree."""
        return jax.tree.map(partial(NamedSharding, self.mesh), self.specs(tree))


def layout_of(config: Training, num_entities: int, devices: int | None) -> MeshLayout | None:
    """Layout of the tables on several devices; None for one device.

    Args:
        config: configuration of the training.
        num_entities: number of entities of the graph.
        devices: number of devices to use of those that JAX sees. None: one, or all if several processes are
            connected.

    Raises:
        ValueError: if there are too few devices, a process would have none, the batch size is not a multiple
            of their number, or the model's scores depend on neighbours, which other devices would hold.
    """
    seen, processes = jax.device_count(), jax.process_count()
    if devices is None:
        devices = seen if processes > 1 else 1
    devices = checks.whole("devices", devices, 1)
    if processes > 1 and devices != seen:
        raise ArgumentError(
            "devices", f"must be all {seen} of the {processes} processes, or not given, got {devices}."
        )
    if devices > 1 and config.built().of_neighbours:
        raise ArgumentError(
            "devices", f"must be 1 for {config.model}, whose scores depend on neighbours, got {devices}."
        )
    if devices > seen:
        raise ArgumentError("devices", f"must be at most {seen}, the number that JAX sees, got {devices}.")
    if devices == 1:
        return None
    if config.training_loop == "negatives" and config.batch_size % devices:
        raise ArgumentError(
            "batch_size", f"must be a multiple of the {devices} devices, got {config.batch_size}."
        )
    if config.gradient_clip and updates_of(config, num_entities).how == "rows":
        raise ArgumentError(
            "gradient_clip",
            f"must be 0 on several devices with rows updates (`updates` dense can), got "
            f"{config.gradient_clip!r}.",
        )
    mesh = Mesh(np.array(jax.devices()[:devices]), (MESH_AXIS,))
    return MeshLayout(mesh, num_entities, config.built().entity_params)


def padded(layout: MeshLayout, tree: _T) -> _T:
    """Arrays with each table padded to the rows of all devices; to be traced."""

    def each(x: Array, spec: P) -> Array:
        if spec == P():
            return x
        return jnp.pad(x, ((0, layout.padded - len(x)),) + ((0, 0),) * (x.ndim - 1))

    return jax.tree.map(each, tree, layout.specs(tree))


def unpadded(layout: MeshLayout, params: _T) -> _T:
    """Arrays without the padding rows; to be traced."""
    n = layout.num_entities
    return jax.tree.map(lambda x, spec: x if spec == P() else x[:n], params, layout.specs(params))


def shared_out(layout: MeshLayout, tree: _T) -> _T:
    """Arrays split among the devices along their first axis, the axis of queries; to be traced."""
    return jax.lax.with_sharding_constraint(tree, layout.sharding(MESH_AXIS))


def on_all(layout: MeshLayout, tree: _T) -> _T:
    """Arrays that every process has, replicated on every device."""
    return jax.tree.map(lambda x: _put(np.asarray(x), layout.sharding()), tree)


def put_at(layout: MeshLayout, array: np.ndarray, place: KeyPath) -> Array:
    """Array of the host, without padding, placed on the devices as the layout of its place requires."""
    if layout.spec(place) == P():
        return _put(array, layout.sharding())
    shape, n = (layout.padded, *array.shape[1:]), len(array)

    def part(index: Any) -> np.ndarray:
        start, stop, _ = index[0].indices(layout.padded)
        filled = np.zeros((stop - start, *array.shape[1:]), array.dtype)
        filled[: max(0, n - start)] = array[start:stop]
        return filled

    return jax.make_array_from_callback(shape, layout.sharding(MESH_AXIS), part)


def _put(array: np.ndarray, sharding: NamedSharding) -> Array:
    # Unlike `device_put`, this does not compare the arrays of the processes.
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def unpadded_on_all(layout: MeshLayout | None, params: _T) -> _T:
    """Parameters without padding, replicated on every device."""
    return params if layout is None else _unpadded_on_all(layout)(params)


@cache
def _unpadded_on_all(layout: MeshLayout) -> Callable[[_T], _T]:
    return jax.jit(partial(unpadded, layout), out_shardings=layout.sharding())


def host_blocks(layout: MeshLayout | None, array: Array | np.ndarray, place: KeyPath) -> Iterator[np.ndarray]:
    """Array at a place of a state, without padding, as blocks of rows in the memory of the host.

    All processes must ask for the same blocks together. On one device there is one block.
    """
    if layout is None or layout.spec(place) == P():
        yield np.asarray(array)
        return
    n = layout.num_entities
    rows = max(1, min(n, _BLOCK * n // max(1, array.size * array.dtype.itemsize)))
    for start in range(0, n, rows):
        # The last block starts earlier so that it is full; its first rows are not yielded twice.
        at = min(start, n - rows)
        yield np.asarray(_block(layout, rows)(array, at))[start - at :]


@cache
def _block(layout: MeshLayout, rows: int) -> Callable[..., Array]:
    """Function from (array, first row) to `rows` rows of it, on every device."""
    call = partial(jax.lax.dynamic_slice_in_dim, slice_size=rows)
    return jax.jit(call, out_shardings=layout.sharding())
