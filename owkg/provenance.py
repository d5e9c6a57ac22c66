"""Where files come from: versions, checksums, and the `metadata.json` that says so."""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

__version__ = "0.1.0"
METADATA_FILE = "metadata.json"


def versions() -> dict[str, str]:
    """The versions of owkg, Python, and the packages that decide what is drawn and written."""
    packages = {package: version(package) for package in ("numpy", "polars", "scipy")}
    return {"owkg": __version__, "python": platform.python_version()} | packages


def checksum(path: Path) -> str:
    """The SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file in `folder`, its own folders included, but for `metadata.json` at the top."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / METADATA_FILE)
    return {path.relative_to(folder).as_posix(): checksum(path) for path in paths}


def write_metadata(folder: Path, content: dict[str, Any]) -> None:
    """Writes `content` as `metadata.json`."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / METADATA_FILE).write_text(text, encoding="utf-8")


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
