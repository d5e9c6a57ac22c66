"""Random keys with the same numbers on every machine, and the JAX configuration that owkg needs."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Union

import numpy as np

from owkg.errors import ArgumentError

if TYPE_CHECKING:
    import jax

# A seed, or a key of `jax.random.key`.
Key = Union[int, np.integer, "jax.Array"]
# A seed, a key, or one of their `children`; NumPy can draw with each.
Seed = Key | np.random.SeedSequence

_P = ParamSpec("_P")
_R = TypeVar("_R")


def seeded(seed: Key) -> Any:
    """Key of a seed, of JAX's threefry generator whatever `jax_default_prng_impl` is."""
    import jax

    with settled():
        return jax.random.key(seed, impl="threefry2x32")


def _is_key(key: Any) -> bool:
    """Whether it is one key of `jax.random.key`."""
    jax = sys.modules.get("jax")  # if JAX is not imported, there is no key
    if jax is None or not isinstance(key, jax.Array):
        return False
    return jax.numpy.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()


def checked_key(key: Seed, name: str = "key") -> Any:
    """Seed, key of `jax.random.key`, or one of their `children`; ValueError for anything else."""
    is_seed = isinstance(key, int | np.integer) and not isinstance(key, bool) and key >= 0
    if not (is_seed or _is_key(key) or isinstance(key, np.random.SeedSequence)):
        raise ArgumentError(name, f"must be one key of jax.random.key, or a seed, got {key!r}.")
    return key


def as_key(key: Key) -> Any:
    """Key of `jax.random.key`: the given one, or the key of a seed; ValueError for anything else."""
    return key if _is_key(checked_key(key)) else seeded(int(key))


def children(key: Seed, num: int) -> list[np.random.SeedSequence]:
    """Independent seeds for generators, from a seed or a key."""
    of = _sequence(key)
    # `spawn` would give other seeds at the next call.
    return [np.random.SeedSequence(of.entropy, spawn_key=(*of.spawn_key, i)) for i in range(num)]


def generator(key: Seed) -> np.random.Generator:
    """NumPy generator of a seed, a key or one of their `children`; equal arguments draw equal numbers."""
    return np.random.default_rng(_sequence(key))


def _sequence(key: Seed) -> np.random.SeedSequence:
    if isinstance(key, np.random.SeedSequence):
        return key
    if _is_key(checked_key(key)):
        with settled():
            return np.random.SeedSequence(np.asarray(sys.modules["jax"].random.key_data(key)).tolist())
    return np.random.SeedSequence([int(key) >> 32, int(key) & 0xFFFFFFFF])  # as of the key of the seed


@contextmanager
def settled(*, x64: bool | None = None, device: bool = True) -> Iterator[None]:
    """Context, and decorator, with the JAX configuration that owkg's functions assume.

    JAX draws with `jax_threefry_partitionable`; types and ranks are promoted; NaN and infinity are
    allowed; arrays are copied to the device as needed; jit is enabled. The user's own settings return
    afterwards. If JAX has not been imported yet, nothing is set; a function that imports JAX inside has its
    own context.

    Args:
        x64: whether JAX computes in double precision. Default: as the user has set it.
        device: whether a device is needed. Default True.

    Raises:
        RuntimeError: as `require_device`.
    """
    if (jax := sys.modules.get("jax")) is None:
        yield
        return
    if device:
        require_device()
    with ExitStack() as now:
        for one in (
            jax.threefry_partitionable(True),
            jax.numpy_dtype_promotion("standard"),
            jax.numpy_rank_promotion("allow"),
            jax.transfer_guard("allow"),
            jax.debug_nans(False),
            jax.debug_infs(False),
            jax.disable_jit(False),
            *([] if x64 is None else [jax.enable_x64(x64)]),
        ):
            now.enter_context(one)
        yield


def require_device() -> None:
    """Raises RuntimeError if an environment variable of JAX names a device that JAX does not find.

    The variables are `JAX_PLATFORMS`, `JAX_PLATFORM_NAME` and `JAX_DEFAULT_DEVICE`.
    """
    if (jax := sys.modules.get("jax")) is None:
        return
    variables = {
        "JAX_PLATFORMS": jax.config.jax_platforms,
        "JAX_PLATFORM_NAME": os.environ.get("JAX_PLATFORM_NAME", "").lower(),
        "JAX_DEFAULT_DEVICE": jax.config.jax_default_device,
    }
    for name, named in variables.items():
        if not named or named == "cpu" or not isinstance(named, str):  # this device always exists
            continue
        try:
            jax.devices(named) if name == "JAX_DEFAULT_DEVICE" else jax.default_backend()
        except (RuntimeError, AssertionError) as error:
            said = str(error).partition(" (set JAX_PLATFORMS")[0].partition("\n")[0].removesuffix(".")
            why = f" ({said})" if said and name == "JAX_PLATFORMS" else ""
            raise RuntimeError(
                f"{name} is {named!r}, and JAX finds no such device here{why}; leave it unset, or set it "
                "to cpu."
            ) from None


def reproducible(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """`function` in the context `settled` with single precision, so that equal keys give equal bits."""
    return settled(x64=False)(function)


@reproducible
def split(key: "jax.Array", num: int = 2) -> Any:
    """`num` keys from one key."""
    import jax

    return jax.random.split(key, num)
