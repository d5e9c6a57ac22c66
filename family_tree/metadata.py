"""`metadata.json`: how a folder was made, and the checksums of its files."""

import hashlib
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

METADATA_FILE = "metadata.json"
_PACKAGES = ("owkg", "numpy", "polars", "scipy")


def checksum(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions() -> dict[str, str | None]:
    """The versions of Python and of the packages that decide what is written; None if not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # run from a source tree
            found[package] = None
    return found


def write_metadata(folder: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Writes `metadata.json`: `fields`, versions, and the checksum of every other file in `folder`.

    Returns:
        What is written.
    """
    files = {path.name: checksum(path) for path in sorted(folder.iterdir()) if path.name != METADATA_FILE}
    content = fields | {"versions": versions(), "sha256": files}
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / METADATA_FILE).write_bytes(text.encode())
    return content


def read_metadata(folder: Path) -> dict[str, Any]:
    """What `metadata.json` holds.

    Raises:
        ValueError: if it is not there, or holds no checksums.
    """
    path = folder / METADATA_FILE
    if not path.is_file():
        raise ValueError(f"{folder}: holds no {METADATA_FILE}.")
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: must be JSON ({error}).") from None
    sums = content.get("sha256") if isinstance(content, dict) else None
    if not isinstance(sums, dict) or not all(isinstance(found, str) for found in sums.values()):
        raise ValueError(f"{path}: must hold checksums under sha256, got {sums!r}.")
    return content
