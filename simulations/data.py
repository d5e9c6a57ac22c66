"""Folder of the published data, named by the environment variable OWKG_DATA."""

import os
from pathlib import Path


def data_file(*parts: str) -> Path | None:
    """The file of that name under the folder that OWKG_DATA names; None when OWKG_DATA is not set.

    Raises:
        ValueError: if OWKG_DATA is set and the file is not there.
    """
    path = _data(*parts)
    if path and not path.is_file():
        raise ValueError(f"OWKG_DATA is set to {os.environ['OWKG_DATA']}, but there is no file {path}.")
    return path


def data_folder(*parts: str) -> Path | None:
    """As `data_file`, for a folder."""
    path = _data(*parts)
    if path and not path.is_dir():
        raise ValueError(f"OWKG_DATA is set to {os.environ['OWKG_DATA']}, but there is no folder {path}.")
    return path


def _data(*parts: str) -> Path | None:
    folder = os.environ.get("OWKG_DATA")
    return Path(folder, *parts) if folder else None
