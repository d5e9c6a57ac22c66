"""Arrays and labels in `.npz` files."""

import zipfile
from pathlib import Path

import numpy as np

from owkg.models.embeddings import LABELS, LAYOUT
from owkg.storage import require_npz_bounded


def read_npz(path: Path) -> tuple[dict[str, np.ndarray], dict[str, list[str]], dict[str, str]]:
    """(arrays, labels by the names in LABELS, layouts) of a file; no pickle is ever loaded.

    Raises:
        ValueError: naming the file, if it is none or has no labels.
        OSError: if it cannot be opened.
    """
    arrays = {}
    # Opened here, as NumPy leaves a file open that turns out to be damaged.
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{path}: must be an .npz file.")
        require_npz_bounded(path)
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as found:
                for name in found.files:
                    arrays[name] = found[name]
        except MemoryError as error:
            raise ValueError(f"{path}: takes more memory than there is ({error}).") from None
        # Of a damaged file, headers are parsed as Python and data unpacked: almost any error comes of it.
        except Exception as error:
            raise ValueError(f"{path}: must be an .npz file of plain arrays, no objects ({error}).") from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path}: {name!r} must be an array.")
    labels = {}
    for name in LABELS:
        if name not in arrays:
            raise ValueError(f"{path}: holds no array {name!r}.")
        texts = arrays.pop(name)
        if texts.ndim != 1 or texts.dtype.kind != "U":
            raise ValueError(f"{path}: {name!r} must be a list of text, got {texts.dtype} {texts.shape}.")
        try:
            labels[name] = texts.tolist()
        except ValueError as error:
            raise ValueError(f"{path}: {name!r} must be a list of text ({error}).") from None
    layouts = {name: arrays.pop(name) for name in LAYOUT if name in arrays}
    for name, text in layouts.items():
        if text.ndim or text.dtype.kind != "U":
            raise ValueError(f"{path}: {name!r} must be a text, got {text.dtype} {text.shape}.")
    return arrays, labels, {name: str(text) for name, text in layouts.items()}


def write_npz(
    path: Path, arrays: dict[str, np.ndarray], labels: dict[str, list[str]], layouts: dict[str, str]
) -> None:
    """Writes what `read_npz` reads."""
    texts = {name: np.array(values, np.str_) for name, values in (labels | layouts).items()}
    np.savez(path, allow_pickle=False, **arrays, **texts)
