"""What entities are compared as, in tiles of one shape, shared out among devices."""

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
# At least so many tiles, for as many devices to have work; and at most so many entities in one.
_TILES, _TILE = 8, 2048


def mesh_of(devices: Sequence[Any] | None) -> Mesh:
    """The devices in a row, along which entities are shared out; all that JAX sees if None."""
    return Mesh(jax.devices() if devices is None else list(devices), (AXIS,))


def replicated(mesh: Mesh, tree: Any) -> Any:
    """The arrays of `tree`, each on every device."""
    return jax.device_put(tree, NamedSharding(mesh, P()))


def scratch_of(mesh: Mesh, shape: tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array of tiles, as many on each device, to be overwritten."""
    # Sharded as what JAX returns: otherwise the second call would be compiled again.
    return jnp.zeros(shape, dtype, device=NamedSharding(mesh, P(AXIS) if mesh.size > 1 else P()))


def _tile_size(num_entities: int) -> int:
    """Entities in a tile, whatever the devices.

    How a product of matrices rounds depends on their shapes: tiles of one shape give the same scores, and so
    the same ranks, to the last bit, on any number of devices.
    """
    tiles = max(_TILES, 1 << (-(-num_entities // _TILE) - 1).bit_length())
    return -(-num_entities // tiles)


@partial(jax.jit, static_argnames="mesh")
def tiled(trained: Trained, mesh: Mesh) -> Float[Array, "tiles size d"]:
    """What all entities are compared as, in tiles, as many on each device; behind the last entity, zeros."""
    candidates = trained.candidates()
    size = _tile_size(len(candidates))
    tiles = -(-len(candidates) // (size * mesh.size)) * mesh.size
    padded = jnp.pad(candidates, ((0, tiles * size - len(candidates)), (0, 0)))
    return jax.lax.with_sharding_constraint(padded.reshape(tiles, size, -1), NamedSharding(mesh, P(AXIS)))
