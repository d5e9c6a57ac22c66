"""Processes of JAX that train together, on one host or on many: connected, of one mind, and one that writes.

With one process, everything here is done at once and costs nothing. Files are written by the first process;
the others must see the folder too, as they read from it.
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
# Of the texts that processes tell each other, in bytes.
_TEXT = 2000


def connect(
    coordinator: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    timeout_s: int = 300,
) -> None:
    """Connects this process with the others, by `jax.distributed`; before anything else is done with JAX.

    Args:
        coordinator: HOST:PORT of process 0; None: as the environment of the cluster says (SLURM, Open MPI,
            Kubernetes, TPU), or `JAX_COORDINATOR_ADDRESS`.
        num_processes: that train together.
        process_id: of this one, from 0.
        timeout_s: seconds until the others must be there. JAX would end the process without a word that
            helps; so this ends it, with exit code 2 and one line, where processes are missing.

    Raises:
        ValueError: if something is missing or out of range, or the coordinator does not answer in time.
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
    # JAX would take SIGTERM for itself; here it writes a checkpoint.
    jax.config.update("jax_enable_preemption_service", False)
    here = "the cluster" if coordinator is None else coordinator
    with _ended_after(limit, f"owkg: error: not all processes of {here} came within {timeout_s} seconds"):
        try:
            # Its own limit, later than ours, ends the process.
            jax.distributed.initialize(
                coordinator, num_processes, process_id, initialization_timeout=limit + 60,
                # JAX would listen on all interfaces.
                coordinator_bind_address=coordinator if coordinator and is_loopback(place[0]) else None,
            )  # fmt: skip
        except (RuntimeError, ValueError) as error:
            why = str(error).splitlines()[0]
            if coordinator is None:
                why = f"must be given: JAX finds no whole cluster in the environment ({why})"
            raise ArgumentError("coordinator", why) from None


def _address(coordinator: str) -> tuple[str, int]:
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ArgumentError("coordinator", f"must be HOST:PORT, got {coordinator!r}.")
    return host.strip("[]"), int(port)


def _answered(coordinator: str, place: tuple[str, int], limit: int) -> None:
    """Returns as soon as someone listens at `place`; ValueError if nobody does within `limit` seconds."""
    until = time.monotonic() + limit
    while True:
        try:
            socket.create_connection(place, timeout=max(0.1, until - time.monotonic())).close()
            return
        except socket.gaierror as error:
            raise ArgumentError("coordinator", f"{coordinator!r} is not found: {error.strerror}.") from None
        except OSError:
            if time.monotonic() > until - 0.5:
                raise ArgumentError(
                    "coordinator", f"{coordinator!r} did not answer within {limit} seconds."
                ) from None
            time.sleep(0.25)


@contextmanager
def _ended_after(seconds: int, line: str) -> Iterator[None]:
    """Ends the process with `line` if what is done takes longer: nothing else ends a call of JAX's C++."""

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
    """Whether this is the process that writes."""
    return jax.process_index() == 0


def of_first(number: int) -> int:
    """`number` as process 0 has it."""
    return int(_told(np.int64(number))[0])


def largest(number: int) -> int:
    """The largest `number` of all processes."""
    return int(_told(np.int64(number)).max())


def require_equal(what: str, text: str) -> None:
    """Raises ValueError, in all processes, if `text` is not the same in all of them."""
    told = _texts(text)
    other = next((i for i, found in enumerate(told) if found != told[0]), None)
    if other is not None:
        raise ValueError(f"process {other} has another {what} than process 0; all must have the same.")


def by_first(call: Callable[[], _T], *, made: Iterable[object] = ()) -> _T | None:
    """What `call` gives in process 0, None in the others; where it fails, all raise its error.

    Args:
        call: done by process 0 alone.
        made: what `call` iterates over, and all processes make together.
    """
    return _done(call if is_first() else lambda: None, made)


def by_each(call: Callable[[], _T]) -> _T:
    """What `call` gives in each process; where it fails in one, all raise its error."""
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
    """The text of each process, as far as it is told."""
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
