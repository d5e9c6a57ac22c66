"""What a process does before it imports anything large: it has streams, and an interrupt is one line."""

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


# KiB of addresses below which libraries cannot be imported, and end the process in words of their own.
_LEAST_KIB = 1_300_000
# What needs no libraries.
_SMALL = {"--help", "-h", "--version"}


def require_addresses(name: str, words: Sequence[str]) -> None:
    """Ends the process, in one line, where `ulimit -v` leaves too little to import numpy and polars.

    Args:
        name: of the command, before ": error".
        words: the arguments of the command.
    """
    try:
        import resource
    except ImportError:  # no such limits
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY or limit >= 1024 * _LEAST_KIB or not words or _SMALL & set(words):
        return
    print(
        f"{name}: error: needs {_LEAST_KIB:,} KiB of memory at least, got {limit // 1024:,} by ulimit -v.",
        file=sys.stderr,
    )
    raise SystemExit(2)


def begun(name: str) -> None:
    """Makes the standard streams usable, and Ctrl-C end the imports that follow with one line.

    A stream that whoever started the process has closed takes what is written and drops it. Letters that
    standard output cannot encode are written as escapes, and a note says so. Text for standard error that
    cannot be written is dropped, and the work goes on.

    Args:
        name: of the command, before ": interrupted".
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number: otherwise the next file that is opened would be the stream.
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or open(0, closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False, encoding="utf-8")  # noqa: SIM115
    codecs.register_error(_ESCAPED, _escaped)
    if isinstance(out := sys.stdout, io.TextIOWrapper):
        sys.stdout = _Output(out.buffer, out.encoding, _ESCAPED, line_buffering=out.line_buffering)
    if isinstance(err := sys.stderr, io.TextIOWrapper):
        sys.stderr = _Patient(err.buffer, err.encoding, "backslashreplace", line_buffering=True)
    # The streams before them would close what they write to when they are collected.
    _KEPT.extend([sys.__stdout__, sys.__stderr__, out, err])
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr

    def interrupted(*_: int | FrameType | None) -> None:
        # Nothing has been begun. An exception within an import may be swallowed, or become another one.
        os.write(2, f"{name}: interrupted\n".encode())
        os._exit(128 + signal.SIGINT)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)


class _Output(io.TextIOWrapper):
    """Standard output, which errors name."""

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
    """Makes streams drop what is still written to them, as when the interpreter ends."""
    for stream in streams:
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Patient(io.TextIOWrapper):
    """A stream whose text is dropped where it cannot be written: a closed pipe, a full disk."""

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
            f"owkg: note: standard output takes {error.encoding} alone: other letters are written as escapes "
            "such as \\xe9; PYTHONUTF8=1 writes them as they are",
            file=sys.stderr,
        )
    return codecs.backslashreplace_errors(error)
