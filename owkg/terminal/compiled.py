"""Compiled programs of JAX, kept on disk for the next commands of the same user."""

import os
import platform
import warnings
import zlib
from pathlib import Path

_FOLDER, _SWITCH = "JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"
# Seconds of compiling that are kept; reading a program takes some milliseconds.
_LEAST = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
_LEAST_S = 0.2
# Bytes of /proc/cpuinfo that describe the first processor.
_FIRST_PROCESSOR = 4096


def keep_compiled() -> None:
    """Makes JAX keep what takes long to compile in the user's cache folder, unless told otherwise.

    Sets variables of the environment, which processes that the command starts inherit. Nothing is set if
    `JAX_COMPILATION_CACHE_DIR` or `JAX_ENABLE_COMPILATION_CACHE` is, or if the folder cannot be written.
    """
    if _FOLDER in os.environ or _SWITCH in os.environ:
        return
    try:
        home, cache = Path.home(), Path(os.environ.get("XDG_CACHE_HOME", ""))
        # A relative path is to be ignored, and "/" is the home of a user without one.
        if not cache.is_absolute() and (cache := home / ".cache").parent == Path(home.anchor or "."):
            return
        folder = cache / "owkg" / "compiled" / _processor()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        return
    os.environ[_FOLDER] = str(folder)
    os.environ.setdefault(_LEAST, str(_LEAST_S))
    # An entry that is damaged, or for which the disk has no room, is compiled as if there were none.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache", UserWarning)


def _processor() -> str:
    """Name of this machine's kind of processor, whose programs another kind may not be able to run."""
    try:
        with Path("/proc/cpuinfo").open("rb") as file:
            first = file.read(_FIRST_PROCESSOR)
    except OSError:
        first = platform.processor().encode()
    kept = (line for line in first.splitlines() if line.startswith((b"model name", b"flags", b"Features")))
    known = b"\n".join(kept) or first
    return f"{platform.machine()}-{zlib.crc32(known):08x}"
