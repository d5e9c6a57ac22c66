"""Random keys that give one number on every machine, whatever its user has set JAX to draw with."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import jax

_P = ParamSpec("_P")
_R = TypeVar("_R")


def seeded(seed: Any) -> Any:
    """The key of a seed, of JAX's generator threefry, whatever `jax_default_prng_impl` says."""
    return jax.random.key(seed, impl="threefry2x32")


def reproducible(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function`, which draws the same of equal keys, whatever `jax_threefry_partitionable` says."""

    @wraps(function)
    def drawing(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with jax.threefry_partitionable(True):
            return function(*args, **kwargs)

    return drawing
