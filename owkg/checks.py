"""Checks of the arguments of public functions; an error names the argument and shows the bad value.

Values that JAX is tracing (under `jax.grad`, `jax.vmap`, `jax.jit`) cannot be inspected, so they pass.
"""

import sys
from collections.abc import Collection, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from owkg.errors import ArgumentError

StrPath = str | PathLike[str]

# Up to this number, every integer is exact in float64.
_EXACT = 2**53


def is_traced(*values: object) -> bool:
    """Whether JAX is tracing any of `values`, so that their numbers are not known yet."""
    jax = sys.modules.get("jax")  # JAX traces nothing if it is not imported
    return jax is not None and any(isinstance(value, jax.core.Tracer) for value in values)


def library_of(*values: object) -> Any:
    """`jax.numpy` if JAX is tracing any of `values`, otherwise NumPy."""
    if not is_traced(*values):
        return np
    import jax.numpy as jnp

    return jnp


def _shown(array: np.ndarray, bad: np.ndarray) -> str:
    """First bad entry, with its index if there is more than one entry."""
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    value = array[index].item() if hasattr(array[index], "item") else array[index]
    where = f" at index {index}" if array.size > 1 else ""
    return f"{value!r}{where}"


def require(name: str, array: np.ndarray, good: ArrayLike, expected: str) -> None:
    """Raises ArgumentError naming `name` and its first entry for which `good` is false."""
    bad = np.broadcast_to(~np.asarray(good), array.shape)
    if bad.any():
        raise ArgumentError(name, f"must be {expected}, got {_shown(array, bad)}.")


def _numeric(name: str, value: object, expected: str, *, large: bool = False) -> np.ndarray:
    """`value` as an array of numbers; with `large`, also integers beyond 64 bits, as objects."""
    try:
        array = np.asarray(value)
    except ValueError:  # nested lists of different lengths
        raise ArgumentError(name, f"must be {expected}, got {value!r}.") from None
    # Booleans, text and complex numbers have other kinds, and masked entries have no value.
    numbers = array.dtype.kind in "iuf" or (large and all(type(entry) is int for entry in array.flat))
    if isinstance(value, np.ma.MaskedArray) or not numbers:
        raise ArgumentError(name, f"must be {expected}, got {value!r}.")
    if array.size == 0:
        raise ArgumentError(name, f"must be {expected}, got an empty array.")
    return array


def real(
    name: str, value: object, low: float, high: float, *, closed: bool | Literal["low", "high"] = True
) -> np.ndarray:
    """`value` as float64, every entry between `low` and `high`; `closed` tells which ends are allowed."""
    from_low, to_high = closed in (True, "low"), closed in (True, "high")
    if np.isinf(low) and np.isinf(high):
        expected = "finite"
    elif np.isinf(high):
        expected = f"finite and {'at least' if from_low else 'above'} {low:g}"
    else:
        expected = f"in {'[' if from_low else '('}{low:g}, {high:g}{']' if to_high else ')'}"
    array = _numeric(name, value, expected).astype(np.float64)
    inside = (array >= low if from_low else array > low) & (array <= high if to_high else array < high)
    require(name, array, inside & np.isfinite(array), expected)
    return array


def real_number(
    name: str, value: object, low: float, high: float, *, closed: bool | Literal["low", "high"] = True
) -> float:
    """`value` as one number between `low` and `high`, as in `real`."""
    return scalar(name, real(name, value, low, high, closed=closed))


def level(name: str, value: object) -> float:
    """`value` as a confidence level that float64 quantiles can distinguish from 0 and 1."""
    return real_number(name, value, 1e-6, 1 - 1e-6)


def integer(name: str, value: object, low: int) -> np.ndarray:
    """`value` as int64; every entry is an integer of at least `low` and below 2^53, so exact in float64."""
    expected = f"a whole number of at least {low}"
    array = _numeric(name, value, expected, large=True)
    exact = array.astype(np.float64) if array.dtype.kind == "f" else array
    is_whole = np.isfinite(exact) & (exact == np.floor(exact)) if array.dtype.kind == "f" else True
    require(name, array, is_whole & (exact >= low), expected)
    require(name, array, exact < _EXACT, f"{expected} and below 2**53")
    return array.astype(np.int64)


def whole(name: str, value: object, low: int) -> int:
    """`value` as one integer of at least `low`."""
    return scalar(name, integer(name, value, low))


def seed(name: str, value: object) -> int:
    """`value` as an integer of at least 0, however large."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return whole(name, value, 0)


def flag(name: str, value: object) -> bool:
    """`value` as True or False; no other type is accepted."""
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(name, f"must be True or False, got {value!r}.")
    return bool(value)


def names(name: str, value: object) -> list[str]:
    """`value`, one text or several, as a list."""
    several: list[Any] = [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)
    if not all(isinstance(one, str) for one in several):
        raise ArgumentError(name, f"must be text, or a list of it, got {value!r}.")
    return several


def some_of(name: str, value: object, of: Collection[str], *, least: int = 0) -> list[str]:
    """`value`, one or several of the names `of`, without repeats and at least `least` of them."""
    several = list(dict.fromkeys(names(name, value)))
    if set(several) - set(of) or len(several) < least:
        raise ArgumentError(name, f"must be of {', '.join(of)}, got {', '.join(several) or 'none'}.")
    return several


def path(name: str, value: object) -> Path:
    """`value`, text or a path, as a path."""
    if not isinstance(value, str | PathLike) or value == "":
        raise ArgumentError(name, f"must be a path, got {value!r}.")
    return Path(value)


def memory(name: str, needed: float, free: int | None, what: str) -> None:
    """Raises ArgumentError if `needed` bytes exceed `free`; passes if `free` is unknown (None)."""
    if free is not None and needed > free:
        sizes = f"{needed / 2**30:,.2f} GiB are needed at least, and {free / 2**30:,.2f} are free"
        raise ArgumentError(name, f"must leave memory for {what}: {sizes}.")


def scalar(name: str, array: np.ndarray) -> Any:
    """Single number of `array` as a Python number; ValueError if the array has an axis."""
    if array.ndim:
        raise ArgumentError(name, f"must be a single number, got an array of shape {array.shape}.")
    return array.item()


def common_shape(**arrays: ArrayLike) -> tuple[int, ...]:
    """Broadcast shape of the arguments; ValueError naming them with their shapes if they have none."""
    try:
        return np.broadcast_shapes(*(np.shape(array) for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {np.shape(array)}" for name, array in arrays.items())
        raise ValueError(f"the arguments do not broadcast to one shape: {shapes}.") from None
