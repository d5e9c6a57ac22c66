"""The same ranks, to the last, on one device, on eight, and in two processes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
# Devices and processes are settled before JAX starts, so each setting has processes of its own.
RANKED = """
import sys
import jax
import numpy as np

number, processes, port, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
if processes > 1:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", processes, number)

from owkg.evaluation import rank_arrays, ranks
from owkg.kg import KnowledgeGraph, known_answers
from owkg.models import Trained, model

N, M = 411, 3
rng = np.random.default_rng(0)
facts = np.stack([rng.integers(0, size, 900) for size in (N, M, N)], axis=1).astype(np.int32)
splits = {"train": facts[:600], "valid": facts[600:700], "test": facts[700:]}
graph = KnowledgeGraph(tuple(map(str, range(N))), tuple(map(str, range(M))), splits)
found = {"devices": np.array([jax.device_count(), jax.process_count()])}
for name in ("complex", "transe", "conve"):
    scorer = model(name)
    table = ranks(Trained(scorer, *scorer.init(jax.random.key(0), N, M)), graph, block_bytes=4 * N * 60)
    found[name] = table.select("optimistic", "pessimistic", "candidates").to_numpy()

# Few queries fit with the scores of all entities, so that one group of tiles after the other is scored.
N = 40_000
triples = np.stack([rng.integers(0, size, 500) for size in (N, M, N)], axis=1).astype(np.int32)
triples[:50, 2], triples[50:90, :2] = N - 1, 2
known = known_answers(triples, "tail", num_entities=N, num_relations=M)
scorer = model("transe", dim=8)
trained = Trained(scorer, *scorer.init(jax.random.key(0), N, M))
found["groups"] = np.stack(rank_arrays(trained, triples, "tail", known=known, block_bytes=5 * 2**20))
np.savez(out, **found)
"""
MODELS = ("complex", "transe", "conve", "groups")


def started(out, *, devices=1, number=0, processes=1, port=0):
    flags = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={devices}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", RANKED, str(number), str(processes), str(port), str(out)]
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
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone") / "ranks.npz"
    finished(started(out))
    return np.load(out, allow_pickle=False)


def same(found, alone, devices):
    assert found["devices"].tolist() == devices
    for name in MODELS:
        np.testing.assert_array_equal(found[name], alone[name])


@pytest.mark.parametrize("devices", [3, 8])
def test_entities_shared_out_among_devices(alone, tmp_path, devices):
    out = tmp_path / "ranks.npz"
    finished(started(out, devices=devices))
    same(np.load(out, allow_pickle=False), alone, [devices, 1])


def test_two_processes(alone, tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    outs = [tmp_path / f"{number}.npz" for number in range(2)]
    finished(*(started(out, number=i, processes=2, port=port) for i, out in enumerate(outs)))
    for out in outs:
        same(np.load(out, allow_pickle=False), alone, [2, 2])
