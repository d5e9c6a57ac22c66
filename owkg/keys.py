"""Random keys that give one number on every machine, whatever its user has set JAX to draw with."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Union

import numpy as np

from owkg.errors import ArgumentError

if TYPE_CHECKING:
    import jax

# A seed, or a key of `jax.random.key`.
Key = Union[int, np.integer, "jax.Array"]
# Either, or one of their `children`: all that NumPy draws with.
Seed = Key | np.random.SeedSequence

_P = ParamSpec("_P")
_R = TypeVar("_R")


def seeded(seed: Key) -> Any:
    """The key of a seed, of JAX's generator threefry, whatever `jax_default_prng_impl` says."""
    import jax

    return jax.random.key(seed, impl="threefry2x32")


def _is_key(key: Any) -> bool:
    """Whether it is one key of `jax.random.key`."""
    jax = sys.modules.get("jax")  # where nobody has imported it, there is none
    if jax is None or not isinstance(key, jax.Array):
        return False
    return jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()


def checked_key(key: Seed, name: str = "key") -> Any:
    """A seed, one key of `jax.random.key`, or one of their `children`; ValueError for anything else."""
    is_seed = isinstance(key, int | np.integer) and not isinstance(key, bool) and key >= 0
    if not (is_seed or _is_key(key) or isinstance(key, np.random.SeedSequence)):
        raise ArgumentError(name, f"must be one key of jax.random.key, or a seed, got {key!r}.")
    return key


def as_key(key: Key) -> Any:
    """A key of `jax.random.key` as it is, or that of a seed; ValueError for anything else."""
    return key if _is_key(checked_key(key)) else seeded(int(key))


def children(key: Seed, num: int) -> list[np.random.SeedSequence]:
    """Independent seeds of generators, out of a seed or a key."""
    of = _sequence(key)
    # `spawn` would give others the next time.
    return [np.random.SeedSequence(of.entropy, spawn_key=(*of.spawn_key, i)) for i in range(num)]


def generator(key: Seed) -> np.random.Generator:
    """NumPy's generator of a seed, a key or one of their `children`; equal ones draw equal numbers."""
    return np.random.default_rng(_sequence(key))


def _sequence(key: Seed) -> np.random.SeedSequence:
    if isinstance(key, np.random.SeedSequence):
        return key
    if _is_key(checked_key(key)):
        return np.random.SeedSequence(np.asarray(sys.modules["jax"].random.key_data(key)).tolist())
    return np.random.SeedSequence([int(key) >> 32, int(key) & 0xFFFFFFFF])  # as of the key of the seed


def reproducible(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function`, which draws the same of equal keys, whatever `jax_threefry_partitionable` says.

    Where nobody has imported JAX yet, there is no key to draw with; what imports it within `function` has to
    be reproducible itself.
    """

    @wraps(function)
    def drawing(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if (jax := sys.modules.get("jax")) is None:
            return function(*args, **kwargs)
        with jax.threefry_partitionable(True):
            return function(*args, **kwargs)

    return drawing


@reproducible
def split(key: "jax.Array", num: int = 2) -> Any:
    """`num` keys out of one."""
    import jax

    return jax.random.split(key, num)
