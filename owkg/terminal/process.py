"""Preparation of a process before large imports: usable streams, and one line for an interrupt."""

import codecs
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TextIO

_KEPT: list[TextIO | None] = []


# Address space in KiB below which numpy and polars end the process with messages of their own.
_LEAST_KIB = 1_300_000
# Arguments that work without these libraries.
_SMALL = {"--help", "-h", "--version"}


def require_addresses(name: str, words: Sequence[str]) -> None:
    """Ends the process with one line if `ulimit -v` leaves too little memory to import numpy and polars.

    Args:
        name: name of the command, printed before ": error".
        words: arguments of the command.
    """
    try:
        import resource
    except ImportError:  # the system has no such limits
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= 1024 * _LEAST_KIB or not words or _SMALL & set(words):
        return
    print(
        f"{name}: error: needs at least {_LEAST_KIB:,} KiB of memory, got {limit // 1024:,} from ulimit -v.",
        file=sys.stderr,
    )
    raise SystemExit(2)


def begun(name: str) -> None:
    """Makes the standard streams usable, and lets Ctrl-C end the imports that follow with one line.

    If a stream was closed before the process started, text written to it is dropped. Characters that
    standard output cannot encode are written as escapes, and owkg prints a note. Text that cannot be written
    to standard error is dropped, and the command continues.

    Args:
        name: name of the command, printed before ": interrupted".
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # os.open takes the lowest free number; otherwise the next opened file would become the stream.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0, closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    codecs.register_error(_ESCAPED, _escaped)
    if isinstance(out := sys.stdout, io.TextIOWrapper):
        sys.stdout = _Output(out.buffer, out.encoding, _ESCAPED, line_buffering=out.line_buffering)
    if isinstance(err := sys.stderr, io.TextIOWrapper):
        sys.stderr = _Patient(err.buffer, err.encoding, "backslashreplace", line_buffering=True)
    # Keep the old streams: they would close their files when they are garbage-collected.
    _KEPT.extend([sys.__stdout__, sys.__stderr__, out, err])
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr

    def interrupted(*_: int | FrameType | None) -> None:
        # No work has started yet. An exception inside an import may be swallowed or replaced by another.
        os.write(2, f"{name}: interrupted\n".encode())
        os._exit(128 + signal.SIGINT)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)


class _Output(io.TextIOWrapper):
    """Standard output whose errors name it."""

    def write(self, text: str, /) -> int:
        with self._named():
            return super().write(text)

    def flush(self) -> None:
        with self._named():
            super().flush()

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            dropped(self)
            raise OSError(f"standard output cannot be written: {error.strerror}.") from None


def dropped(*streams: TextIO | None) -> None:
    """Makes streams drop all further text, such as what the interpreter flushes when it ends."""
    for stream in streams:
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Patient(io.TextIOWrapper):
    """Stream that drops text which cannot be written, because of a closed pipe or a full disk."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            return


_ESCAPED = "owkg.escaped"
_noted = False


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    global _noted
    if not _noted and isinstance(error, UnicodeEncodeError):
        _noted = True
        print(
            f"owkg: note: standard output accepts only {error.encoding}: other letters are written as "
            "escapes such as \\xe9; set PYTHONUTF8=1 to write them unchanged",
            file=sys.stderr,
        )
    return codecs.backslashreplace_errors(error)
