"""Files of embeddings trained elsewhere.

A `.npz` or `.safetensors` file holds `entity` [n, d_e] and `relation` [m, d_r], with the labels of their
rows. For reciprocal relations it also holds `relation_inverse` [m, d_r], or `relation` [2 m, d_r] with the
inverse relations in its second half. Other arrays of the model are named as in the docstring of the model.
Without labels, rows are in the order of a graph's ids. In `.npz`, the labels are the text arrays
`entity_labels` and `relation_labels`; in `.safetensors`, which holds no text arrays, they are JSON lists of
these names in the metadata. Complex embeddings are complex arrays, or real arrays whose layout is given by
the texts `layout` and `relation_layout` or by the reader of the file (`owkg.models.embeddings_layout`). Files
that owkg writes also name their model in the text `model`, and its options, such as the norm of a distance,
as JSON in the text `options`.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from owkg.errors import ArgumentError
from owkg.files.storage import written_aside
from owkg.models.embeddings_files import FORMATS, ROW_LABELS, Content
from owkg.models.model import Trained

_STATE = "; owkg.interop.embeddings_of_state reads a state of torch"
# Advice for files of other kinds.
_HINTS = dict.fromkeys((".pt", ".pth", ".bin", ".ckpt"), _STATE) | {
    ".npy": "; write both arrays into one: numpy.savez('embeddings.npz', entity=..., relation=...)",
    ".pkl": "; pickles are never loaded: save the arrays with numpy.savez",
    ".pickle": "; pickles are never loaded: save the arrays with numpy.savez",
}
# Arrays with one row per label.
_LABELLED = {"entity": "entity_labels", "relation": "relation_labels", "relation_inverse": "relation_labels"}


class Embeddings(NamedTuple):
    """Content of a file of embeddings.

    Attributes:
        arrays: arrays by name, float32 or complex64, finite.
        entities: labels of the rows of `entity`; None if the file has none.
        relations: labels of the rows of `relation` and `relation_inverse`; None if the file has none.
        layout: layout of complex numbers as reals; None if the file does not name it.
        relation_layout: meaning of the relations of rotate; None if the file does not name it.
        model: name of the model; None if the file does not name it.
        options: options of the model that the file gives.
        source: name of the file in messages.
    """

    arrays: dict[str, np.ndarray]
    entities: tuple[str, ...] | None
    relations: tuple[str, ...] | None
    layout: str | None = None
    relation_layout: str | None = None
    model: str | None = None
    options: Mapping[str, object] = MappingProxyType({})
    source: str = "embeddings"


def read_embeddings(path: str | Path) -> Embeddings:
    """Embeddings from a `.npz` or `.safetensors` file; owkg never loads a pickle.

    Raises:
        ValueError: if an array is missing, does not hold floats or complex numbers, or is not finite in
            single precision, or if a label is repeated or has no row; the message names file and array.
        OSError: if the file cannot be read.
    """
    path = suffix_checked(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: must be a file, and there is none.")
    read, _ = FORMATS[path.suffix]
    arrays, labels, said = read(path)
    for name in ("entity", "relation"):
        if name not in arrays:
            raise ValueError(
                f"{path}: must have an array {name!r}; it has {', '.join(sorted(arrays)) or 'none'}."
            )
    arrays = {name: _finite(path, name, array) for name, array in arrays.items()}
    if ROW_LABELS[1] in labels:
        with_inverse(str(path), arrays, len(labels[ROW_LABELS[1]]))
    for name, rows in _LABELLED.items():
        if name not in arrays:
            continue
        # An array with three axes has pairs of real and imaginary parts.
        if not (arrays[name].ndim == 2 or arrays[name].shape[2:] == (2,)) or not arrays[name].shape[1]:
            raise ValueError(
                f"{path}: {name!r} must be a matrix of at least one column, got shape {arrays[name].shape}."
            )
        if rows in labels and len(labels[rows]) != len(arrays[name]):
            raise ValueError(
                f"{path}: {rows!r} must have a label for each of {len(arrays[name])} rows of {name!r}, got "
                f"{len(labels[rows])}."
            )
    entities, relations = (
        _distinct(path, name, labels[name]) if name in labels else None for name in ROW_LABELS
    )
    options = _options(path, said.pop("options", "{}"))
    return Embeddings(arrays, entities, relations, **said, options=options, source=str(path))


def with_inverse(source: str, arrays: dict[str, np.ndarray], relations: int) -> None:
    """Splits `relation` into `relation` and `relation_inverse` if it has two rows per relation; warns."""
    if "relation_inverse" in arrays or len(arrays["relation"]) != 2 * relations or not relations:
        return
    arrays["relation"], arrays["relation_inverse"] = np.split(arrays["relation"], 2)
    warnings.warn(
        f"{source}: 'relation' has two rows for each of {relations:,} relations: row i + {relations:,} is "
        "taken as the inverse of relation i, by which heads are predicted (as in LibKGE; in PyKEEN's states "
        "the two are adjacent, which owkg.interop.embeddings_of_state reads).",
        stacklevel=3,
    )


def _options(path: Path, text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{path}: 'options' must be a JSON object, got {text[:80]!r}.")
    return found


def suffix_checked(path: str | Path) -> Path:
    """`path` as a Path; ValueError unless its suffix belongs to a file of embeddings."""
    path = Path(path)
    if path.suffix not in FORMATS:
        hint = _HINTS.get(path.suffix, "")
        raise ValueError(f"{path}: the name of the file must end in {' or '.join(FORMATS)}{hint}.")
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
            f"{len(bad):,} entries are not finite."
        )
    return narrow


def _distinct(path: Path, name: str, labels: list[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    for row, label in enumerate(labels):
        if seen.setdefault(label, row) != row:
            raise ValueError(f"{path}: {name!r} has {label!r} twice, in rows {seen[label]} and {row}.")
    return tuple(labels)


def write_embeddings(
    path: str | Path, trained: Trained, *, entities: Sequence[str], relations: Sequence[str]
) -> None:
    """Writes a file for `import_embeddings`, with the layout of complex embeddings.

    Statistics that the model derives from train facts are left out, because the graph that is read with the
    file has these facts.

    Args:
        path: file to write, ending in `.npz` or `.safetensors`.
        trained: model to write.
        entities, relations: labels, in the order of the ids.

    Raises:
        ValueError: if the file has another suffix, or the number of labels differs from the number of rows.
    """
    path = suffix_checked(path)
    model, every = trained.model, trained.params | trained.statistics
    known = model.graph_shapes(trained.num_entities, trained.num_relations)
    arrays = {name: np.asarray(array, np.float32) for name, array in every.items() if name not in known}
    for name, labels, count in (
        ("entities", entities, len(arrays["entity"])),
        ("relations", relations, trained.num_relations),
    ):
        if len(labels) != count:
            raise ArgumentError(name, f"must be {count} labels, one per row, got {len(labels)}.")
    if model.config.reciprocal:
        arrays["relation"], arrays["relation_inverse"] = np.split(arrays["relation"], 2)
    labels = dict(zip(ROW_LABELS, (list(entities), list(relations)), strict=True))
    said = {"layout": "real-imaginary"} if model.complex_params else {}
    said |= {"relation_layout": "scaled"} if model.phase_unit else {}
    said |= {"model": model.name, "options": json.dumps(asdict(model.config))}
    _, write = FORMATS[path.suffix]
    with written_aside(path) as aside:
        write(aside, Content(arrays, labels, said))
