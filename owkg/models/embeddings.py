"""Embeddings trained elsewhere, and what files of them hold.

A `.npz` or `.safetensors` file holds `entity` [n, d_e] and `relation` [m, d_r], with the labels of their
rows; for reciprocal relations also `relation_inverse` [m, d_r]; and whatever else the model has, by the names
that its docstring gives. In `.npz` the labels are the text arrays `entity_labels` and `relation_labels`; in
`.safetensors`, which holds no text, they are JSON lists of those names in the metadata. Complex embeddings
are complex arrays; how they are made of real ones is said by the texts `layout` and `relation_layout`, or by
those who read the file (`owkg.models.embeddings_layout`).
"""

from typing import NamedTuple

import numpy as np

LABELS: tuple[str, str] = ("entity_labels", "relation_labels")
LAYOUT: tuple[str, str] = ("layout", "relation_layout")


class Embeddings(NamedTuple):
    """What a file of embeddings holds.

    Attributes:
        arrays: by name, float32 or complex64, finite.
        entities: labels of the rows of `entity`.
        relations: labels of the rows of `relation`, and of `relation_inverse`.
        layout: how complex numbers are made of real ones; None: the file does not say.
        relation_layout: what the relations of rotate are; None: likewise.
        source: what messages call it.
    """

    arrays: dict[str, np.ndarray]
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    layout: str | None = None
    relation_layout: str | None = None
    source: str = "embeddings"
