"""Files and folders that are whole or not there: written aside, then renamed."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """Yields a path beside `path` to write to; on success it becomes `path`, on failure it is removed.

    The parent folder is made if it is not there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield aside
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def writable_folder(path: Path) -> Path:
    """`path`, made if need be and tried by writing to it, so that long work does not end in an error.

    Raises:
        OSError: if nothing can be written there.
    """
    with written_aside(path / "tried") as aside:
        aside.touch()
    (path / "tried").unlink()
    return path


@contextmanager
def folder_aside(path: Path, *, mark: str, overwrite: bool = False) -> Iterator[Path]:
    """Yields an empty folder beside `path` to fill; on success it becomes `path`, on failure it is removed.

    With `overwrite`, the old folder stays whole until the new one is; then it is removed.

    Args:
        path: of the folder.
        mark: the file that such folders hold; a folder of other things is not replaced.
        overwrite: whether a folder that is there may be replaced.

    Raises:
        ValueError: if `path` is there already and `overwrite` is not given, if it is no folder, or if it
            holds files, but not `mark`.
    """
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise ValueError(f"{path}: must be a folder, or not there.")
    if path.exists() and not overwrite:
        raise ValueError(f"{path}: is there already; `overwrite` replaces it as a whole.")
    if path.exists() and any(path.iterdir()) and not (path / mark).is_file():
        raise ValueError(f"{path}: holds no {mark}, so it was not made here; it is not replaced.")
    path = path.absolute()  # "." has no name to write beside
    path.parent.mkdir(parents=True, exist_ok=True)
    aside, old = (path.with_name(f".{path.name}.{os.getpid()}.{state}") for state in ("new", "old"))
    try:
        aside.mkdir()
        yield aside
        if path.exists():
            path.rename(old)
        aside.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    finally:
        for folder in (aside, old):
            shutil.rmtree(folder, ignore_errors=True)
