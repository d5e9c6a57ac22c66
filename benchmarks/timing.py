"""Common parts of the benchmarks: time, memory, and the description of the machine."""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

# Runs a command, and writes its peak memory in KiB as the last line of standard error.
_PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


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


def measured_elsewhere(option: str, python: Path, script: Path, *arguments: object) -> dict[str, Any]:
    """Result of `script`, run by the interpreter of another environment: its last line, as JSON.

    Args:
        option: option that named the interpreter.
        python: path of the interpreter.
        script: script that prints its measurements.
        *arguments: arguments of the script.

    Raises:
        ValueError: if the script fails; the message names the option.
    """
    command = [str(python), str(script), *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        raise ValueError(f"`{option}` must be an interpreter that can run {script}: {done.stderr[-300:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measured_command(command: list[str]) -> tuple[str, float, float]:
    """(output of a command, its seconds, its peak memory in GiB)."""
    begun = time.perf_counter()
    # A child begins with the memory of its parent; the process in between has little.
    done = subprocess.run([sys.executable, "-c", _PEAK, *command], check=True, capture_output=True, text=True)  # noqa: S603
    return done.stdout, time.perf_counter() - begun, float(done.stderr.splitlines()[-1]) / 2**20


def peak_gib() -> float:
    """Peak memory of the process, in GiB."""
    # Kilobytes on Linux, bytes on macOS.
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def machine() -> str:
    """Devices and memory, in words."""
    import psutil

    device = jax.devices()[0]
    return (
        f"jax {jax.__version__} on {len(jax.devices())} x {device.device_kind} ({device.platform}), "
        f"{psutil.cpu_count()} CPU cores, {psutil.virtual_memory().total / 2**30:.0f} GiB"
    )
