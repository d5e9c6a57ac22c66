"""How long things take, how much memory, on what machine: what the benchmarks share."""

import resource
import sys
import time
from collections.abc import Callable

import jax


def fastest(call: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of `repeats` calls, after one that compiles."""
    call()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def once(call: Callable[[], object]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def peak_gib() -> float:
    """The most memory that the process has had, in GiB."""
    # Kilobytes on Linux, bytes on macOS.
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def machine() -> str:
    """The devices and the memory, in words."""
    import psutil

    device = jax.devices()[0]
    return (
        f"jax {jax.__version__} on {len(jax.devices())} x {device.device_kind} ({device.platform}), "
        f"{psutil.cpu_count()} CPU cores, {psutil.virtual_memory().total / 2**30:.0f} GiB"
    )
