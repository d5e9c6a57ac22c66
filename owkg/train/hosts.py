"""JAX processes that train together on one or more hosts: connecting them, and agreeing on values.

With one process, everything here returns at once and costs nothing. The first process writes files; the other
processes read them and must see the same folder.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from owkg import checks
from owkg.errors import ArgumentError
from owkg.train.workers import is_loopback

_T = TypeVar("_T")
# Longest text that processes send to each other, in bytes.
_TEXT = 2000


def connect(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    timeout_s: int = 300,
) -> None:
    """Connects this process with the others by `jax.distributed`; to be called before any other use of JAX.

    Args:
        coordinator: address of process 0, as HOST:PORT. None: from the environment of the cluster (SLURM,
            Open MPI, Kubernetes, TPU) or from `JAX_COORDINATOR_ADDRESS`.
        num_processes: number of processes that train together.
        process_id: number of this process, from 0.
        timeout_s: seconds to wait for the other processes. If some are missing by then, owkg ends this
            process with one line and exit code 2, because JAX would end it without a useful message.

    Raises:
        ValueError: if an argument is missing or out of range, or the coordinator does not answer in time.
    """
    limit, place = checks.whole("timeout_s", timeout_s, 1), ("", 0)
    if coordinator is not None:
        place = _address(coordinator)
        if num_processes is None or process_id is None:
            missing = "num_processes" if num_processes is None else "process_id"
            raise ArgumentError(missing, f"must be given with the coordinator {coordinator!r}.")
        count = checks.whole("num_processes", num_processes, 1)
        number = checks.whole("process_id", process_id, 0)
        if number >= count:
            raise ArgumentError(
                "process_id", f"must be below {count}, the number of processes, got {number}."
            )
        began = time.monotonic()
        if number:
            _answered(coordinator, place, limit)
        limit = max(1, limit - int(time.monotonic() - began))
    # JAX would handle SIGTERM itself; in owkg, the signal writes a checkpoint.
    jax.config.update("jax_enable_preemption_service", False)
    here = "the cluster" if coordinator is None else coordinator
    with _ended_after(limit, f"owkg: error: not all processes of {here} came within {timeout_s} seconds"):
        try:
            # JAX's own limit ends the process, so it must come after ours.
            jax.distributed.initialize(
                coordinator, num_processes, process_id, initialization_timeout=limit + 60,
                # JAX would otherwise listen on all interfaces.
                coordinator_bind_address=coordinator if coordinator and is_loopback(place[0]) else None,
            )  # fmt: skip
        except (RuntimeError, ValueError) as error:
            why = str(error).splitlines()[0]
            if coordinator is None:
                why = f"must be given, because JAX finds no complete cluster in the environment ({why})"
            raise ArgumentError("coordinator", why) from None


def _address(coordinator: str) -> tuple[str, int]:
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ArgumentError("coordinator", f"must be HOST:PORT, got {coordinator!r}.")
    return host.strip("[]"), int(port)


def _answered(coordinator: str, place: tuple[str, int], limit: int) -> None:
    """Waits until a process listens at `place`; ValueError if none does within `limit` seconds."""
    until = time.monotonic() + limit
    while True:
        try:
            socket.create_connection(place, timeout=max(0.1, until - time.monotonic())).close()
            return
        except socket.gaierror as error:
            raise ArgumentError("coordinator", f"{coordinator!r} was not found: {error.strerror}.") from None
        except OSError:
            if time.monotonic() > until - 0.5:
                raise ArgumentError(
                    "coordinator", f"{coordinator!r} did not answer within {limit} seconds."
                ) from None
            time.sleep(0.25)


@contextmanager
def _ended_after(seconds: int, line: str) -> Iterator[None]:
    """Ends the process with `line` if the block takes too long; nothing else ends a call of JAX's C++."""

    def end() -> None:
        print(line, file=sys.stderr, flush=True)  # noqa: T201
        os._exit(2)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def is_first() -> bool:
    """Whether this process writes the files."""
    return jax.process_index() == 0


def of_first(number: int) -> int:
    """`number` from process 0."""
    return int(_told(np.int64(number))[0])


def largest(number: int) -> int:
    """Largest `number` of all processes."""
    return int(_told(np.int64(number)).max())


def require_equal(what: str, text: str) -> None:
    """Raises ValueError in all processes unless `text` is the same in all of them."""
    told = _texts(text)
    other = next((i for i, found in enumerate(told) if found != told[0]), None)
    if other is not None:
        raise ValueError(f"process {other} has another {what} than process 0; all must have the same.")


def by_first(call: Callable[[], _T], *, made: Iterable[object] = ()) -> _T | None:
    """Result of `call` in process 0 and None in the other processes; if it fails, all raise its error.

    Args:
        call: function that only process 0 calls.
        made: iterable that `call` consumes and that all processes must produce together.
    """
    return _done(call if is_first() else lambda: None, made)


def by_each(call: Callable[[], _T]) -> _T:
    """Result of `call` in each process; if it fails in one, all raise its error."""
    return _done(call, ())


def _done(call: Callable[[], _T], made: Iterable[object]) -> _T:
    if jax.process_count() == 1:
        return call()
    failed, found = None, None
    try:
        found = call()
    except (ValueError, OSError) as error:
        failed = error
    for _ in made:
        pass
    texts = _texts("" if failed is None else str(failed) or type(failed).__name__)
    if failed is not None:
        raise failed
    for number, text in enumerate(texts):
        if text:
            raise ValueError(f"{text} (process {number})")
    return found  # pyright: ignore[reportReturnType]


def _texts(text: str) -> list[str]:
    """Text of each process, cut to the length that processes send."""
    if jax.process_count() == 1:
        return [text]
    line = np.zeros(_TEXT, np.uint8)
    cut = text.encode()[:_TEXT]
    line[: len(cut)] = np.frombuffer(cut, np.uint8)
    return [bytes(one).rstrip(b"\0").decode(errors="replace") for one in _told(line)]


def _told(value: np.ndarray | np.generic) -> np.ndarray:
    """`value` of each process, [processes, ...]."""
    if jax.process_count() == 1:
        return np.asarray(value)[None]
    return np.asarray(multihost_utils.process_allgather(np.asarray(value)))
