"""How many bytes of scores may be there at a time."""

from pathlib import Path
from typing import Any

# Where Linux says what is free.
_MEMINFO = Path("/proc/meminfo")
# On a processor as much as its caches hold, elsewhere enough to outweigh the call.
_CPU_BYTES, _OTHER_BYTES = 2**24, 2**28
# Questions that outweigh the reading of all entities for them, and the bounds on what they may take.
_QUESTIONS, _MOST_BYTES, _SHARE = 256, 2**30, 8


def block_bytes(device: Any, num_entities: int) -> int:
    """Bytes of scores of a block of questions: what 256 take, within 1 GiB and an eighth of what is free.

    At least 16 MiB, or 256 MiB on an accelerator.

    Args:
        device: that scores; one of those that share the entities.
        num_entities: that are scored.
    """
    least = _CPU_BYTES if device.platform == "cpu" else _OTHER_BYTES
    free = free_bytes(device)
    most = _MOST_BYTES if free is None else min(_MOST_BYTES, free // _SHARE)
    return max(least, min(most, 4 * num_entities * _QUESTIONS))


def free_bytes(device: Any) -> int | None:
    """Bytes that are free on a device; None where nothing says so."""
    if device.platform != "cpu":
        stats = device.memory_stats() or {}
        limit = stats.get("bytes_limit")
        return None if limit is None else int(limit) - int(stats.get("bytes_in_use", 0))
    if not _MEMINFO.is_file():
        return None
    lines = dict(line.split(":", 1) for line in _MEMINFO.read_text(encoding="ascii").splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024
