"""Conversion of complex embeddings from the layouts of other tools to real parts, then imaginary parts.

Real numbers do not show their layout, and every layout gives scores, so the layout must be declared.
"""

import numpy as np

from owkg.errors import ArgumentError
from owkg.models.embeddings import Embeddings
from owkg.models.kinds import kind
from owkg.models.model import Model

COMPLEX_LAYOUTS = ("complex", "real-imaginary", "interleaved")
RELATION_LAYOUTS = ("complex", "phases", "scaled")

# Largest accepted difference between 1 and the modulus of a rotation.
_APART = 1e-3
_HOW = (
    "`layout` real-imaginary (all real parts, then all imaginary parts) or interleaved "
    "(torch.view_as_real: re, im, re, im, ...)"
)
_HOW_RELATION = (
    "`relation_layout` phases (radians) or scaled (radians when times pi dim / (margin + 2): authors' code, "
    "owkg's own files)"
)


def declared(
    found: Embeddings, name: str, option: str, given: str | None, allowed: tuple[str, ...]
) -> str | None:
    """Layout given by the option or by the file; ValueError if it is unknown or the two differ."""
    if given is not None and given not in allowed:
        raise ArgumentError(option, f"must be one of {', '.join(allowed)}, got {given!r}.")
    said = getattr(found, option)
    if said is not None and said not in allowed:
        raise ValueError(f"{found.source}: {option!r} must be one of {', '.join(allowed)}, got {said!r}.")
    if given is not None and said is not None and given != said:
        raise ValueError(f"{found.source}: has {option} {said}, but `{option}` {given} was given.")
    has = complex_arrays(name) if option == "layout" else kind(name).made().phase_unit
    if given is not None and not has:
        what = "are real" if option == "layout" else "are not rotations"
        raise ArgumentError(option, f"has no effect for {name}, whose embeddings {what}, got {given!r}.")
    return given or said


def complex_arrays(name: str) -> tuple[str, ...]:
    """Names of the complex arrays of a model."""
    return kind(name).made().complex_params


def in_halves(found: Embeddings, name: str, layout: str | None) -> dict[str, np.ndarray]:
    """Arrays of a file as float32, with complex arrays as real parts, then imaginary parts.

    Relations of rotations become complex numbers if they are complex in the file or as wide as entities.

    Raises:
        ValueError: if an array of reals has no stated layout, or an array is complex or has three axes where
            the model has reals; the message names the array.
    """
    arrays = dict(found.arrays)
    of_complex, rotates = complex_arrays(name), kind(name).made().phase_unit
    for key, array in found.arrays.items():
        own = "relation" if key == "relation_inverse" else key
        if own in of_complex:
            numbers = _complex(found, key, array, layout, name)
            arrays[key] = np.concatenate([np.real(numbers), np.imag(numbers)], axis=1).astype(np.float32)
        elif rotates and own == "relation":
            wide = array.ndim == 3 or (layout and array.shape[1:] == _width(found, layout))
            if np.iscomplexobj(array) or wide:
                arrays[key] = _complex(found, key, array, layout, name)
        elif np.iscomplexobj(array):
            raise ValueError(f"{found.source}: {key!r} of {name} must be real numbers, got {array.dtype}.")
        elif key in ("entity", "relation", "relation_inverse") and array.ndim != 2:
            raise ValueError(
                f"{found.source}: {key!r} must be a matrix of at least one column, got shape {array.shape}."
            )
    return arrays


def as_scaled(found: Embeddings, model: Model, array: np.ndarray, layout: str | None) -> np.ndarray:
    """Relations of rotations in the unit of the model.

    Raises:
        ValueError: if they are reals without a stated unit, or complex numbers whose modulus is not 1.
    """
    unit = model.phase_unit
    if np.iscomplexobj(array):
        if layout in ("phases", "scaled"):
            raise ValueError(
                f"{found.source}: 'relation' must be real numbers where `relation_layout` is {layout}, got "
                "complex ones."
            )
        modulus = np.abs(array.astype(np.complex128))
        if (np.abs(modulus - 1) > _APART).any():
            worst = modulus.flat[np.argmax(np.abs(modulus - 1))]
            raise ValueError(
                f"{found.source}: 'relation' of {model.name} must be complex numbers of modulus 1, got "
                f"{worst:.6g}."
            )
        return (np.angle(array.astype(np.complex128)) / unit).astype(np.float32)
    if layout is None or layout == "complex":
        raise ValueError(
            f"{found.source}: 'relation' of {model.name} must be complex numbers of modulus 1; for real "
            f"numbers give {_HOW_RELATION}, got {array.dtype} {array.shape}."
        )
    return array if layout == "scaled" else (array.astype(np.float64) / unit).astype(np.float32)


def _width(found: Embeddings, layout: str) -> tuple[int, ...]:
    """Axes of an entity if it consists of reals; otherwise empty."""
    entity = found.arrays["entity"]
    return () if np.iscomplexobj(entity) or layout == "complex" else entity.shape[1:]


def _complex(found: Embeddings, key: str, array: np.ndarray, layout: str | None, name: str) -> np.ndarray:
    """Array of a file as complex numbers."""
    if np.iscomplexobj(array):
        if layout in ("real-imaginary", "interleaved") or array.ndim != 2:
            raise ValueError(
                f"{found.source}: {key!r} must be a matrix of real numbers where `layout` is {layout}, got "
                f"{array.dtype} {array.shape}."
            )
        return array
    if array.ndim == 2 and array.shape[1] % 2:
        raise ValueError(
            f"{found.source}: {key!r} must have an even number of columns for {name}, got {array.shape[1]}."
        )
    if layout is None or layout == "complex":
        raise ValueError(
            f"{found.source}: {key!r} of {name} must be complex numbers; for real numbers give {_HOW}, got "
            f"{array.dtype} {array.shape}."
        )
    if array.ndim == 3 and layout != "interleaved":
        raise ValueError(
            f"{found.source}: {key!r} must be a matrix where `layout` is {layout}, got shape {array.shape}."
        )
    if layout == "interleaved":
        pairs = array.reshape(len(array), -1, 2)
        return pairs[..., 0] + 1j * pairs[..., 1]
    real, imaginary = np.split(array, 2, axis=1)
    return real + 1j * imaginary
