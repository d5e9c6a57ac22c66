"""Embeddings and similarities of two graphs in `.npz` files."""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from owkg import checks
from owkg.align.data import Alignment
from owkg.files.storage import written_aside
from owkg.models.embeddings_files import npz_arrays

_SIDES = ("left", "right")


def read_entity_embeddings(path: Path, alignment: Alignment) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of the left and of the right entities, in the order of their ids.

    The file holds `left` [entities, d] and `right` [entities, d]. Rows in another order need `left_labels`
    and `right_labels`, by which they are reordered. The file is never unpickled.

    Raises:
        ValueError: naming the file, if it is not such a file, or its labels differ from the graphs' labels.
        OSError: if it cannot be opened.
    """
    arrays = _needed(path, _SIDES)
    places = _places(path, arrays, alignment, [len(arrays[side]) for side in _SIDES])
    left, right = (arrays[side][place] for side, place in zip(_SIDES, places, strict=True))
    return left, right


def read_similarity(path: Path, alignment: Alignment) -> Float[np.ndarray, "left right"]:
    """Similarities of left and right entities, as for `owkg.align.rank_matrix`.

    The file holds `similarity`, [left entities, right entities] or [test pairs, test pairs], larger for more
    similar entities; and optionally `left_labels` and `right_labels` of all entities. It is never unpickled.

    Raises:
        ValueError: naming the file, if it is not such a file, or its labels differ from the graphs' labels.
        OSError: if it cannot be opened.
    """
    arrays = _needed(path, ("similarity",))
    matrix = arrays["similarity"]
    if matrix.ndim != 2:
        raise ValueError(f"{path}: similarity must be a matrix, got shape {matrix.shape}.")
    rows, columns = _places(path, arrays, alignment, list(matrix.shape))
    labelled = any(f"{side}_labels" in arrays for side in _SIDES)
    return matrix[rows][:, columns] if labelled else matrix


def write_entity_embeddings(path: Path, alignment: Alignment, left: np.ndarray, right: np.ndarray) -> None:
    """Writes a file for `read_entity_embeddings`, with labels, whole or not at all."""
    graphs = zip(_SIDES, (alignment.left, alignment.right), strict=True)
    labels = {f"{side}_labels": np.array(graph.entities, np.str_) for side, graph in graphs}
    with written_aside(checks.path("path", path)) as aside, aside.open("wb") as file:
        np.savez(file, allow_pickle=False, left=left, right=right, **labels)


def _needed(path: Path, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Arrays of a file; ValueError if one is missing or does not hold floats."""
    arrays = npz_arrays(path)
    if missing := [name for name in names if name not in arrays]:
        found = ", ".join(arrays) or "none"
        raise ValueError(f"{path}: holds no array {', '.join(missing)}; arrays found: {found}.")
    for name in names:
        if arrays[name].dtype.kind != "f" or not arrays[name].ndim:
            text = f"must be an array of floats, got {arrays[name].dtype} of shape {arrays[name].shape}"
            raise ValueError(f"{path}: {name} {text}.")
    return arrays


def _places(
    path: Path, arrays: dict[str, np.ndarray], alignment: Alignment, rows: list[int]
) -> list[np.ndarray]:
    """Row of each entity on each side."""
    places = []
    for side, graph, count in zip(_SIDES, (alignment.left, alignment.right), rows, strict=True):
        labels = arrays.get(f"{side}_labels")
        if labels is None:
            places.append(np.arange(count))
            continue
        if labels.dtype.kind != "U" or labels.shape != (count,):
            text = f"must be {count} texts, one per row, got {labels.dtype} of shape {labels.shape}"
            raise ValueError(f"{path}: {side}_labels {text}.")
        place = {label: row for row, label in enumerate(labels.tolist())}
        if len(place) < count:
            raise ValueError(f"{path}: {side}_labels must be unique, got {count - len(place):,} repeated.")
        if missing := [label for label in graph.entities if label not in place]:
            text = f"lack {len(missing):,} of {graph.num_entities:,} entities, such as {missing[0]!r}"
            raise ValueError(f"{path}: {side}_labels {text}.")
        places.append(np.array([place[label] for label in graph.entities]))
    return places
