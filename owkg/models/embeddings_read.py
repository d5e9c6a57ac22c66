"""Embeddings from a file, checked as far as a file alone can be."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from owkg.models.embeddings import LABELS, Embeddings
from owkg.models.embeddings_npz import read_npz
from owkg.models.embeddings_safetensors import read_safetensors

_READERS = {".npz": read_npz, ".safetensors": read_safetensors}
# The arrays of a row a label; those of other names are the model's affair.
_LABELLED = {
    "entity": "entity_labels",
    "relation": "relation_labels",
    "relation_inverse": "relation_labels",
}


def read_embeddings(path: str | Path) -> Embeddings:
    """The embeddings of a `.npz` or `.safetensors` file; no pickle is ever loaded.

    Raises:
        ValueError: naming the file and the array, if something is missing, is not of floats or complex
            numbers, not finite in single precision, or a label stands there twice or for no row.
        OSError: if the file cannot be read.
    """
    path = suffix_checked(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: is no file.")
    arrays, labels, layouts = _READERS[path.suffix](path)
    for name in ("entity", "relation"):
        if name not in arrays:
            raise ValueError(
                f"{path}: holds no array {name!r}; it has {', '.join(sorted(arrays)) or 'none'}."
            )
    arrays = {name: _finite(path, name, array) for name, array in arrays.items()}
    for name, rows in _LABELLED.items():
        if name not in arrays:
            continue
        # Three axes are pairs of real and imaginary part.
        if not (arrays[name].ndim == 2 or arrays[name].shape[2:] == (2,)) or not arrays[name].shape[1]:
            raise ValueError(
                f"{path}: {name!r} must be a matrix of at least one column, got shape {arrays[name].shape}."
            )
        if len(labels[rows]) != len(arrays[name]):
            raise ValueError(
                f"{path}: {rows!r} must have a label for each of {len(arrays[name])} rows of {name!r}, got "
                f"{len(labels[rows])}."
            )
    entities, relations = (_distinct(path, name, labels[name]) for name in LABELS)
    return Embeddings(arrays, entities, relations, **layouts, source=str(path))


def suffix_checked(path: str | Path) -> Path:
    """`path` if its suffix is that of a file of embeddings; ValueError otherwise."""
    path = Path(path)
    if path.suffix not in _READERS:
        raise ValueError(f"{path}: the name of the file must end in {' or '.join(_READERS)}.")
    return path


def _finite(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    if not jnp.issubdtype(array.dtype, jnp.inexact):
        raise ValueError(f"{path}: {name!r} must be an array of floats, got {array.dtype}.")
    with np.errstate(over="ignore"):
        narrow = array.astype(np.complex64 if np.iscomplexobj(array) else np.float32)
    bad = np.argwhere(~np.isfinite(narrow))
    if len(bad):
        index = tuple(bad[0].tolist())
        raise ValueError(
            f"{path}: {name!r} must be finite in float32, got {array[index]} at index {index}; "
            f"{len(bad):,} entries are not."
        )
    return narrow


def _distinct(path: Path, name: str, labels: list[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    for row, label in enumerate(labels):
        if seen.setdefault(label, row) != row:
            raise ValueError(f"{path}: {name!r} has {label!r} twice, in rows {seen[label]} and {row}.")
    return tuple(labels)
