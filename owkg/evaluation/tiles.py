"""Candidate rows of all entities, in tiles of one shape that the devices share."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from owkg.models import Trained

AXIS = "entities"
# At least this many tiles, so that as many devices have work, and at most this many entities in a tile.
LEAST_TILES, _TILE = 8, 2048


def mesh_of(devices: Sequence[Any] | None) -> Mesh:
    """One-dimensional mesh of devices that share the entities; all devices that JAX sees if None."""
    return Mesh(jax.devices() if devices is None else list(devices), (AXIS,))


def replicated(mesh: Mesh, tree: Any) -> Any:
    """`tree` with each array on every device."""
    return jax.device_put(tree, NamedSharding(mesh, P()))


def scratch_of(mesh: Mesh, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """Array of tiles to be overwritten, the same number on each device."""
    # Sharded like the arrays that JAX returns; otherwise the second call would be compiled again.
    return jnp.zeros(shape, dtype, device=NamedSharding(mesh, P(AXIS) if mesh.size > 1 else P()))


def tile_size(num_entities: int) -> int:
    """Number of entities in a tile, independent of the devices.

    How a product of matrices is rounded depends on the shapes. Tiles of one shape therefore give the same
    scores and ranks, to the last bit, on any number of devices.
    """
    tiles = max(LEAST_TILES, 1 << (-(-num_entities // _TILE) - 1).bit_length())
    return -(-num_entities // tiles)


@partial(jax.jit, static_argnames=("mesh", "groups"))
def tiled(trained: Trained, mesh: Mesh, groups: int = 1) -> Float[Array, "tiles size d"]:
    """Candidate rows of all entities in tiles, padded with zeros.

    Each device has equally many, which divide into `groups` groups of one size.
    """
    candidates = trained.candidates()
    size, parts = tile_size(len(candidates)), mesh.size * groups
    tiles = -(-len(candidates) // (size * parts)) * parts
    padded = jnp.pad(candidates, ((0, tiles * size - len(candidates)), (0, 0)))
    return jax.lax.with_sharding_constraint(padded.reshape(tiles, size, -1), NamedSharding(mesh, P(AXIS)))
