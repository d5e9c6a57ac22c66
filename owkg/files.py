"""Files that are whole or not there: written aside, then renamed."""

import errno
import os
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
        OSError: if nothing can be written there; NotADirectoryError if a file of that name is there.
    """
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "is a file; choose a folder", str(path))
    with written_aside(path / "tried") as aside:
        aside.touch()
    (path / "tried").unlink()
    return path
