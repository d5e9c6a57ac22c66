"""Embeddings trained elsewhere, and what files of them hold.

A `.npz` or `.safetensors` file holds `entity` [n, d_e] and `relation` [m, d_r], with the labels of their
rows; for reciprocal relations also `relation_inverse` [m, d_r]; and whatever else the model has, by the names
that its docstring gives. In `.npz` the labels are the text arrays `entity_labels` and `relation_labels`; in
`.safetensors`, which holds no text, they are JSON lists of those names in the metadata.
"""

from typing import NamedTuple

import numpy as np

LABELS: tuple[str, str] = ("entity_labels", "relation_labels")


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
