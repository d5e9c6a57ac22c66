"""Arrays and labels in `.safetensors` files."""

import json
from pathlib import Path

import numpy as np

from owkg.models.embeddings import LABELS, LAYOUT


def read_safetensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, list[str]], dict[str, str]]:
    """(arrays, labels by the names in LABELS, layouts) of a file.

    Raises:
        ValueError: naming the file, if it is none, has a type of numbers that NumPy has not, or no labels.
        OSError: if it cannot be opened.
    """
    from safetensors import safe_open

    path.open("rb").close()  # a file that may not be read is told by its own OSError
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except MemoryError as error:
        raise ValueError(f"{path}: takes more memory than there is ({error}).") from None
    # Types that NumPy has not end in errors of several kinds.
    except Exception as error:
        raise ValueError(f"{path}: must be a .safetensors file of plain arrays ({error}).") from None
    labels = {name: _texts(path, name, metadata) for name in LABELS}
    return arrays, labels, {name: metadata[name] for name in LAYOUT if name in metadata}


def write_safetensors(
    path: Path, arrays: dict[str, np.ndarray], labels: dict[str, list[str]], layouts: dict[str, str]
) -> None:
    """Writes what `read_safetensors` reads."""
    from safetensors.numpy import save_file

    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    save_file(contiguous, path, {name: json.dumps(texts) for name, texts in labels.items()} | layouts)


def _texts(path: Path, name: str, metadata: dict[str, str]) -> list[str]:
    if name not in metadata:
        raise ValueError(f"{path}: holds no {name!r} in its metadata.")
    try:
        texts = json.loads(metadata[name])
    except RecursionError:
        raise ValueError(f"{path}: {name!r} must be a JSON list that is not nested.") from None
    except ValueError as error:
        raise ValueError(f"{path}: {name!r} must be a JSON list ({error}).") from None
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{path}: {name!r} must be a JSON list of text.")
    return texts
