"""Embeddings to a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from owkg.checks import ArgumentError
from owkg.models.embeddings import LABELS
from owkg.models.embeddings_npz import write_npz
from owkg.models.embeddings_read import suffix_checked
from owkg.models.embeddings_safetensors import write_safetensors
from owkg.models.model import Model, Params, Statistics
from owkg.storage import written_aside


def write_embeddings(
    path: str | Path,
    model: Model,
    params: Params,
    statistics: Statistics,
    *,
    entities: Sequence[str],
    relations: Sequence[str],
) -> None:
    """Writes what `import_embeddings` reads; complex embeddings with their layout.

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
    path = suffix_checked(path)
    arrays = {name: np.asarray(array, np.float32) for name, array in (params | statistics).items()}
    rows = len(arrays["relation"]) // (2 if model.config.reciprocal else 1)
    for name, labels, count in (
        ("entities", entities, len(arrays["entity"])),
        ("relations", relations, rows),
    ):
        if len(labels) != count:
            raise ArgumentError(name, f"must be {count} labels, one a row, got {len(labels)}.")
    if model.config.reciprocal:
        arrays["relation"], arrays["relation_inverse"] = np.split(arrays["relation"], 2)
    labels = dict(zip(LABELS, (list(entities), list(relations)), strict=True))
    layouts = {"layout": "real-imaginary"} if model.complex_params else {}
    layouts |= {"relation_layout": "scaled"} if model.name == "rotate" else {}
    write = write_npz if path.suffix == ".npz" else write_safetensors
    with written_aside(path) as aside:
        write(aside, arrays, labels, layouts)
