"""Embeddings trained elsewhere: `.npz` and `.safetensors` files of named arrays and labels, both ways.

A file holds `entity` [n, d_e] and `relation` [m, d_r], with the labels of their rows; for reciprocal
relations also `relation_inverse` [m, d_r]; and whatever else the model has, by the names that its docstring
gives. In `.npz` the labels are the text arrays `entity_labels` and `relation_labels`; in `.safetensors`,
which holds no text, they are JSON lists of those names in the metadata.
"""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from owkg.files import written_aside
from owkg.kg import KnowledgeGraph
from owkg.models.kinds import kind, model
from owkg.models.model import Model, Params, Statistics

_LABELS = ("entity_labels", "relation_labels")
_SHOWN = 3  # labels in a message


class Embeddings(NamedTuple):
    """What a file of embeddings holds.

    Attributes:
        arrays: by name, float32, finite.
        entities: labels of the rows of `entity`.
        relations: labels of the rows of `relation`, and of `relation_inverse`.
    """

    arrays: dict[str, np.ndarray]
    entities: tuple[str, ...]
    relations: tuple[str, ...]


def read_embeddings(path: str | Path) -> Embeddings:
    """The embeddings of a `.npz` or `.safetensors` file; no pickle is ever loaded.

    Raises:
        ValueError: naming the file and the array, if something is missing, is not of floats, not finite in
            float32, or a label stands there twice or for no row.
        OSError: if the file cannot be read.
    """
    path = Path(path)
    arrays, labels = _reader(path)(path)
    for name in ("entity", "relation"):
        if name not in arrays:
            raise ValueError(
                f"{path}: holds no array {name!r}; it has {', '.join(sorted(arrays)) or 'none'}."
            )
    arrays = {name: _finite(path, name, array) for name, array in arrays.items()}
    tables = {name: name.partition("_")[0] for name in arrays if name.startswith("relation")}
    for name, rows in ({"entity": "entity"} | tables).items():
        if arrays[name].ndim != 2:
            raise ValueError(f"{path}: {name!r} must be a matrix, got shape {arrays[name].shape}.")
        if len(labels[f"{rows}_labels"]) != len(arrays[name]):
            raise ValueError(
                f"{path}: '{rows}_labels' must have a label for each of {len(arrays[name])} rows of "
                f"{name!r}, got {len(labels[f'{rows}_labels'])}."
            )
    return Embeddings(arrays, *(_distinct(path, name, labels[name]) for name in _LABELS))


def import_embeddings(
    path: str | Path, graph: KnowledgeGraph, name: str, **options: Any
) -> tuple[Model, Params, Statistics]:
    """A model whose parameters are those of a file, rows in the order of a graph's ids.

    Args:
        path: of the file.
        graph: whose labels the file has, in any order.
        name: of the model.
        **options: of the model. `dim`, `relation_dim` and `reciprocal` follow from the file where not given.

    Raises:
        ValueError: as `read_embeddings`; if the labels are not those of the graph, naming some; or if the
            arrays are not those of the model, naming one.
    """
    found = read_embeddings(path)
    entity_order = _order(path, "entity", found.entities, graph.entities)
    relation_order = _order(path, "relation", found.relations, graph.relations)
    # Arrays of a row an entity are those whose name says so.
    orders = {"entity": entity_order, "relation": relation_order}
    arrays = {
        key: array[orders[prefix]] if (prefix := key.partition("_")[0]) in orders else array
        for key, array in found.arrays.items()
    }
    chosen = model(name, **_deduced(path, name, arrays) | options)
    inverse = arrays.pop("relation_inverse", None)
    if (inverse is not None) != chosen.config.reciprocal:
        has = "no" if inverse is None else "an"
        raise ValueError(
            f"{path}: holds {has} array 'relation_inverse', but `reciprocal` is {chosen.config.reciprocal}."
        )
    if inverse is not None:
        if inverse.shape != arrays["relation"].shape:
            raise ValueError(
                f"{path}: 'relation_inverse' must have the shape of 'relation', {arrays['relation'].shape}, "
                f"got {inverse.shape}."
            )
        arrays["relation"] = np.concatenate([arrays["relation"], inverse])
    return chosen, *_fitted(path, chosen, arrays, graph)


def write_embeddings(
    path: str | Path,
    model: Model,
    params: Params,
    statistics: Statistics,
    *,
    entities: Sequence[str],
    relations: Sequence[str],
) -> None:
    """Writes what `import_embeddings` reads.

    Args:
        path: ending in `.npz` or `.safetensors`.
        model: whose parameters they are.
        params: of the model.
        statistics: of the model.
        entities: labels of entity ids.
        relations: labels of relation ids.

    Raises:
        ValueError: if the file's name ends otherwise, or the labels are not as many as the rows.
    """
    path = Path(path)
    _reader(path)
    arrays = {name: np.asarray(array, np.float32) for name, array in (params | statistics).items()}
    rows = len(arrays["relation"]) // (2 if model.config.reciprocal else 1)
    for name, labels, count in (
        ("entities", entities, len(arrays["entity"])),
        ("relations", relations, rows),
    ):
        if len(labels) != count:
            raise ValueError(f"`{name}` must be {count} labels, one a row, got {len(labels)}.")
    if model.config.reciprocal:
        arrays["relation"], arrays["relation_inverse"] = np.split(arrays["relation"], 2)
    labels = dict(zip(_LABELS, (list(entities), list(relations)), strict=True))
    with written_aside(path) as aside:
        if path.suffix == ".npz":
            texts = {name: np.array(values, np.str_) for name, values in labels.items()}
            np.savez(aside, allow_pickle=False, **arrays, **texts)
        else:
            from safetensors.numpy import save_file

            contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
            save_file(contiguous, aside, {name: json.dumps(texts) for name, texts in labels.items()})


def _reader(path: Path):
    readers = {".npz": _read_npz, ".safetensors": _read_safetensors}
    if path.suffix not in readers:
        raise ValueError(f"{path}: the name of the file must end in .npz or .safetensors.")
    return readers[path.suffix]


def _read_npz(path: Path) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{path}: must be an .npz file.")
    arrays = {}
    try:
        with np.load(path, allow_pickle=False) as file:
            for name in file.files:
                arrays[name] = file[name]
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path}: must be an .npz file of plain arrays, no objects ({error}).") from None
    labels = {}
    for name in _LABELS:
        if name not in arrays:
            raise ValueError(f"{path}: holds no array {name!r}.")
        texts = arrays.pop(name)
        if texts.ndim != 1 or texts.dtype.kind != "U":
            raise ValueError(f"{path}: {name!r} must be a list of text, got {texts.dtype} {texts.shape}.")
        labels[name] = texts.tolist()
    return arrays, labels


def _read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise FileNotFoundError(f"{path}: is no file.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, TypeError) as error:
        raise ValueError(f"{path}: must be a .safetensors file of plain arrays ({error}).") from None
    labels = {}
    for name in _LABELS:
        try:
            labels[name] = json.loads(metadata[name])
        except KeyError:
            raise ValueError(f"{path}: holds no {name!r} in its metadata.") from None
        except ValueError as error:
            raise ValueError(f"{path}: {name!r} must be a JSON list ({error}).") from None
        if not isinstance(labels[name], list) or not all(isinstance(text, str) for text in labels[name]):
            raise ValueError(f"{path}: {name!r} must be a JSON list of text.")
    return arrays, labels


def _finite(path: Path, name: str, array: np.ndarray) -> np.ndarray:
    if not jnp.issubdtype(array.dtype, jnp.floating):
        raise ValueError(f"{path}: {name!r} must be an array of floats, got {array.dtype}.")
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
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


def _order(path: str | Path, what: str, found: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Where in the file the row of each label of the graph is."""
    place = {label: row for row, label in enumerate(found)}
    for who, missing in (
        ("are not in the file", [label for label in wanted if label not in place]),
        ("are not in the graph", sorted(place.keys() - set(wanted))),
    ):
        if missing:
            some = ", ".join(map(repr, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
            raise ValueError(
                f"{path}: its {what} labels must be those of the graph, but {len(missing):,} {who}: {some}."
            )
    return np.array([place[label] for label in wanted], np.int64)


def _deduced(path: str | Path, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The options that the shapes of a file decide."""
    chosen = kind(name)
    columns = arrays["entity"].shape[1]
    if columns % chosen.columns:
        raise ValueError(f"{path}: 'entity' must have an even number of columns for {name}, got {columns}.")
    deduced = {
        "dim": columns // chosen.columns,
        "relation_dim": arrays["relation"].shape[1],
        "reciprocal": "relation_inverse" in arrays,
    }
    return {option: value for option, value in deduced.items() if option in chosen.options}


def _fitted(
    path: str | Path, model: Model, arrays: dict[str, np.ndarray], graph: KnowledgeGraph
) -> tuple[Params, Statistics]:
    """The arrays as parameters and statistics, if they are those of the model."""
    wanted = jax.eval_shape(
        lambda key: model.init(key, graph.num_entities, graph.num_relations), jax.random.key(0)
    )
    shapes = {name: array.shape for part in wanted for name, array in part.items()}
    for name in sorted(arrays.keys() - shapes.keys()):
        raise ValueError(f"{path}: {model.name} has no array {name!r}; it has {', '.join(shapes)}.")
    for name, shape in shapes.items():
        if name not in arrays:
            raise ValueError(f"{path}: holds no array {name!r}, which {model.name} needs, of shape {shape}.")
        if arrays[name].shape != shape:
            raise ValueError(
                f"{path}: {name!r} must have shape {shape} for {model.name} of dim {model.config.dim}, got "
                f"{arrays[name].shape}."
            )
    params, statistics = ({name: jnp.asarray(arrays[name]) for name in part} for part in wanted)
    return params, statistics
