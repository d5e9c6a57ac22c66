"""The same ranks, to the last, on one device, on three, on eight, and in two processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
# Devices and processes are settled before JAX starts, so they need processes of their own.
RANKED = """
import sys
import jax
import numpy as np

number, processes, port, out, *shares = sys.argv[1:]
if int(processes) > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", int(processes), int(number))

from owkg.evaluate import ranks
from owkg.kg import KnowledgeGraph
from owkg.models import model

N, M = 411, 3
rng = np.random.default_rng(0)
facts = np.stack([rng.integers(0, size, 900) for size in (N, M, N)], axis=1).astype(np.int32)
splits = {"train": facts[:600], "valid": facts[600:700], "test": facts[700:]}
graph = KnowledgeGraph(tuple(map(str, range(N))), tuple(map(str, range(M))), splits)
found = {"devices": np.array([jax.device_count(), jax.process_count()])}
for name in ("complex", "transe", "conve"):
    scorer = model(name)
    made = scorer.init(jax.random.key(0), N, M)
    for share in map(int, shares):
        table = ranks(scorer, *made, graph, block_bytes=4 * N * 60, devices=jax.devices()[:share])
        found[f"{name} {share}"] = table.select("optimistic", "pessimistic", "candidates").to_numpy()
np.savez(out, **found)
"""


def started(out, *shares, devices=1, number=0, processes=1, port=0):
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    arguments = map(str, (number, processes, port, out, *shares))
    command = [sys.executable, "-c", RANKED, *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def finished(*processes):
    try:
        for process in processes:
            _, err = process.communicate(timeout=300)
            assert process.returncode == 0, err
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Ranks on the first one, three and eight of eight devices."""
    out = tmp_path_factory.mktemp("shared") / "ranks.npz"
    finished(started(out, 1, 3, 8, devices=8))
    return np.load(out, allow_pickle=False)


def same(found, share, shared):
    for name in ("complex", "transe", "conve"):
        np.testing.assert_array_equal(found[f"{name} {share}"], shared[f"{name} 1"])


@pytest.mark.parametrize("share", [3, 8])
def test_entities_shared_out_among_devices(shared, share):
    assert shared["devices"].tolist() == [8, 1]
    same(shared, share, shared)


def test_two_processes(shared, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    outs = [tmp_path / f"{number}.npz" for number in range(2)]
    finished(*(started(out, 2, number=i, processes=2, port=port) for i, out in enumerate(outs)))
    for out in outs:
        found = np.load(out, allow_pickle=False)
        assert found["devices"].tolist() == [2, 2]
        same(found, 2, shared)
