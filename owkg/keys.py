"""Random keys that give one number on every machine, whatever its user has set JAX to draw with."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

_P = ParamSpec("_P")
_R = TypeVar("_R")


def seeded(seed: Any) -> Any:
    """The key of a seed, of JAX's generator threefry, whatever `jax_default_prng_impl` says."""
    import jax

    return jax.random.key(seed, impl="threefry2x32")


def is_key(key: Any) -> bool:
    """Whether it is one key of `jax.random.key`."""
    jax = sys.modules.get("jax")  # where nobody has imported it, there is none
    if jax is None or not isinstance(key, jax.Array):
        return False
    return jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()


def generator(key: Any) -> np.random.Generator:
    """NumPy's generator of a seed, or of a key of `jax.random.key`; equal ones draw equal numbers."""
    if not is_key(key):
        return np.random.default_rng([key >> 32, key & 0xFFFFFFFF])  # as of the key of the seed
    return np.random.default_rng(np.asarray(sys.modules["jax"].random.key_data(key)).tolist())


def checked_key(key: Any) -> Any:
    """`key`, one of `jax.random.key`; ValueError for anything else."""
    if not is_key(key):
        raise ValueError(f"`key` must be one key of jax.random.key, got {key!r}.")
    return key


def as_key(key: Any) -> Any:
    """A key as it is, or that of a seed."""
    return key if is_key(key) else seeded(key)


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
def split(key: Any, num: int = 2) -> Any:
    """`num` keys out of one."""
    import jax

    return jax.random.split(key, num)
