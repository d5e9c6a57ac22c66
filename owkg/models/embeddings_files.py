"""Arrays, labels and layouts in `.npz` and `.safetensors` files."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from owkg.files.storage import damage_named, require_npz_bounded

ROW_LABELS: tuple[str, str] = ("entity_labels", "relation_labels")
SAID: tuple[str, ...] = ("layout", "relation_layout", "model", "options")


class Content(NamedTuple):
    """Content of a file of embeddings.

    Attributes:
        arrays: arrays by name.
        labels: labels by the names in `ROW_LABELS`.
        said: texts by the names in `SAID`; the options of the model are JSON.
    """

    arrays: dict[str, np.ndarray]
    labels: dict[str, list[str]]
    said: dict[str, str]


def _plain(path: Path, found: Any, name: str) -> Any:
    """Entry of an open `.npz` file by name; ValueError if it is an array of Python objects."""
    try:
        return found[name]
    except ValueError as error:
        if "Object arrays" not in str(error):
            raise
        raise ValueError(
            f"{path}: {name!r} must be a plain array, got one of Python objects, which owkg never loads; "
            f"write {name}.astype(str) if they are texts."
        ) from None


def npz_arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays of an `.npz` file by name; owkg never loads a pickle.

    Raises:
        ValueError: if the file is not an `.npz` file; the message names it.
        OSError: if the file cannot be opened.
    """
    # Opened here, because NumPy would leave a damaged file open.
    with path.open("rb") as file:
        if not zipfile.is_zipfile(file):
            raise ValueError(f"{path}: must be an .npz file.")
        require_npz_bounded(path)
        file.seek(0)
        with (
            damage_named(path, "must be an .npz file of plain arrays, no objects"),
            np.load(file, allow_pickle=False) as found,
        ):
            arrays = {name: _plain(path, found, name) for name in found.files}
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise ValueError(f"{path}: {name!r} must be an array.")
    return arrays


def read_npz(path: Path) -> Content:
    """Content of an `.npz` file of embeddings.

    Raises:
        ValueError: if the file is not an `.npz` file or its labels are not texts; the message names it.
        OSError: if the file cannot be opened.
    """
    arrays = npz_arrays(path)
    labels = {}
    for name in ROW_LABELS:
        if name not in arrays:
            continue
        texts = arrays.pop(name)
        if texts.ndim != 1 or texts.dtype.kind != "U":
            raise ValueError(f"{path}: {name!r} must be a list of text, got {texts.dtype} {texts.shape}.")
        try:
            labels[name] = texts.tolist()
        except ValueError as error:
            raise ValueError(f"{path}: {name!r} must be a list of text ({error}).") from None
    said = {name: arrays.pop(name) for name in SAID if name in arrays}
    for name, text in said.items():
        if text.ndim or text.dtype.kind != "U":
            raise ValueError(f"{path}: {name!r} must be a text, got {text.dtype} {text.shape}.")
    return Content(arrays, labels, {name: str(text) for name, text in said.items()})


def write_npz(path: Path, content: Content) -> None:
    """Writes a file for `read_npz`."""
    texts = {name: np.array(values, np.str_) for name, values in (content.labels | content.said).items()}
    np.savez(path, allow_pickle=False, **content.arrays, **texts)


def read_safetensors(path: Path) -> Content:
    """Content of a `.safetensors` file.

    Raises:
        ValueError: if the file is not a `.safetensors` file, has a number type that NumPy lacks, or has
            labels that are not JSON lists of texts; the message names the file.
        OSError: if the file cannot be opened.
    """
    from safetensors import safe_open

    path.open("rb").close()  # an unreadable file raises its own OSError
    with (
        damage_named(path, "must be a .safetensors file of plain arrays"),
        safe_open(path, framework="numpy") as file,
    ):
        metadata = file.metadata() or {}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    labels = {name: _texts(path, name, metadata) for name in ROW_LABELS if name in metadata}
    return Content(arrays, labels, {name: metadata[name] for name in SAID if name in metadata})


def write_safetensors(path: Path, content: Content) -> None:
    """Writes a file for `read_safetensors`."""
    from safetensors.numpy import save_file

    contiguous = {name: np.ascontiguousarray(array) for name, array in content.arrays.items()}
    labels = {name: json.dumps(texts) for name, texts in content.labels.items()}
    save_file(contiguous, path, labels | content.said)


def _texts(path: Path, name: str, metadata: dict[str, str]) -> list[str]:
    try:
        texts = json.loads(metadata[name])
    except RecursionError:
        raise ValueError(f"{path}: {name!r} must be a JSON list that is not nested.") from None
    except ValueError as error:
        raise ValueError(f"{path}: {name!r} must be a JSON list ({error}).") from None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{path}: {name!r} must be a JSON list of text.")
    return texts


FORMATS: dict[str, tuple[Callable[[Path], Content], Callable[[Path, Content], None]]] = {
    ".npz": (read_npz, write_npz),
    ".safetensors": (read_safetensors, write_safetensors),
}
"""Functions that read and write files, by suffix."""
