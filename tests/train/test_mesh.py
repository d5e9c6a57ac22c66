"""Training on several devices and in several processes: as on one, and what stops it."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from benchmarks.training_mesh import TOGETHER, difference, finished, killed_at, started
from owkg.kg import read_graph
from owkg.kg.write import write_labelled
from owkg.train import connect, load_run, train, training
from owkg.train import hosts as hosts_of_jax
from owkg.train.layout import layout_of
from owkg.train.run_lock import alone

ROOT = Path(__file__).parents[2]
SAMPLED = {
    "training_loop": "negatives", "loss": "self_adversarial", "num_negatives": 3, "batch_size": 8,
    "valid_every": 0, "dim": 4, "optimiser": "sgd", "learning_rate": 0.5,
}  # fmt: skip
# By name: (model, settings).
CASES = {
    "rows": ("complex", SAMPLED | {"updates": "rows", "init_scale": 0.5, "n3": 0.1, "subsampling": True}),
    "options": (
        "complex",
        SAMPLED
        | {"updates": "rows", "init_scale": 0.5, "loss": "binary", "weight_decay": 0.1, "sides": "bernoulli"},
    ),
    "allowed": ("hole", SAMPLED | {"updates": "rows", "bounded": True, "learning_rate": 50.0}),
    "cut": ("transh", SAMPLED | {"updates": "dense", "gradient_clip": 0.1, "answer_frequency": 0.5}),
    "lazy adam": ("rotate", SAMPLED | {"updates": "rows", "optimiser": "adam", "learning_rate": 0.01}),
    "dense": ("rotate", SAMPLED | {"updates": "dense", "optimiser": "adam", "learning_rate": 0.01}),
    "shared": ("complex", SAMPLED | {"updates": "rows", "init_scale": 0.5, "shared_negatives": True}),
    "all": ("complex", {"valid_every": 0, "dim": 4, "batch_size": 10, "init_scale": 0.5}),
    "labels": (
        "distmult",
        {"training_loop": "kvsall", "loss": "bce", "valid_every": 0, "dim": 4, "batch_size": 10},
    ),
    "biases": ("conve", SAMPLED | {"dim": 12, "height": 4, "channels": 2, "updates": "rows"}),
}
# The devices of a process are settled before JAX starts. 61 entities and batches of 4 a side, of which the
# last of an epoch is not full: three devices divide neither, and no more do four the entities.
SCRIPT = """
import json, sys
import jax, numpy as np
from owkg.kg import KnowledgeGraph
from owkg.train import training
from owkg.train.layout import on_all, layout_of, unpadded_on_all
from owkg.train.queries import queries
from owkg.train.step import advance, orders_of
from owkg.train.state import init_state, rates

jax.config.update("jax_disable_most_optimizations", True)

def graph_of(num_entities):
    facts = np.random.default_rng(0).integers(0, [num_entities, 3, num_entities], (47, 3)).astype(np.int32)
    labels = (tuple(map(str, range(n))) for n in (num_entities, 3))
    return KnowledgeGraph(*labels, {"train": facts})

def begun(graph, config, devices):
    layout = layout_of(config, graph.num_entities, devices)
    (parts, sizes), numbers = queries(graph, config), rates(config)
    if layout is not None:
        parts, numbers = on_all(layout, (parts, numbers))
    state = init_state(config, sizes, numbers, layout)
    arguments = orders_of(numbers, 0, asked=sizes.queries), parts, numbers
    return layout, sizes, state, advance(config, sizes, layout), arguments

def end(graph, config, devices, steps=7):
    layout, sizes, state, run, arguments = begun(graph, config, devices)
    state = run(state, 0, min(steps, sizes.per_epoch), *arguments)
    of_tables = unpadded_on_all(layout, (state.params, state.optimiser, state.statistics))
    return jax.tree.map(np.array, (of_tables, state.loss))

def memory(config, num_entities, devices):
    layout, _, state, run, arguments = begun(graph_of(num_entities), config, devices)
    found = run.lower(state, 0, 1, *arguments).compile().memory_analysis()
    return {"held": found.argument_size_in_bytes, "aliased": found.alias_size_in_bytes,
            "beside": found.temp_size_in_bytes}

found = {"devices": jax.device_count()}
for name, (model, settings) in json.loads(sys.argv[1]).items():
    config, graph = training(model, **settings), graph_of(61)
    one, several = (jax.tree.leaves(end(graph, config, devices)) for devices in (1, 4))
    begin = jax.tree.leaves(end(graph, config, 1, 0))
    found[name] = {
        "difference": max(float(np.max(np.abs(x - y))) for x, y in zip(one, several)),
        "moved": max(float(np.max(np.abs(x - y))) for x, y in zip(one, begin)),
    }
model, settings = json.loads(sys.argv[1])["lazy adam"]
found["memory"] = [memory(training(model, **settings), 100_001, devices) for devices in (1, 4)]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found():
    """What the script finds on four virtual devices."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT, json.dumps(CASES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_four_devices_learn_what_one_learns(found, name):
    """Parameters, what the optimiser keeps, running statistics, and the sum of the losses."""
    assert found["devices"] == 4
    assert found[name]["difference"] < 1e-5
    assert found[name]["moved"] > 1e-2


def test_a_device_holds_its_share_of_the_tables_and_no_copy(found):
    alone, shared = found["memory"]
    assert shared["held"] < 0.26 * alone["held"]
    assert shared["aliased"] > 0.99 * 0.25 * alone["aliased"]
    # Slots are a number a row, and the rest does not grow with the tables.
    assert shared["beside"] < 0.05 * shared["held"] + 4 * 25_001 * 1.1 + 2**16


def test_two_processes_killed_and_resumed(ring, tmp_path):
    """With padded tables, validation in both processes, and checkpoints that one of them writes."""
    write_labelled(ring, tmp_path / "graph")
    graph, run = read_graph(tmp_path / "graph"), tmp_path / "run"
    settings = {"dim": 6, "batch_size": 32, "epochs": 12, "checkpoint_every": 1, "valid_every": 4}
    settings |= {name: SAMPLED[name] for name in ("training_loop", "loss", "num_negatives")}
    options = {name.replace("_", "-"): value for name, value in settings.items()} | {"updates": "rows"}
    at = killed_at(12, started(TOGETHER, tmp_path / "graph", run, options), run)
    finished(started(TOGETHER, tmp_path / "graph", run, options))
    one = train(graph, training("complex", **settings, updates="rows"), tmp_path / "one")
    several = load_run(run)
    assert at < one.path["step"].max() == several.path["step"].max()
    assert difference(run, tmp_path / "one") < 1e-6
    assert several.step == one.step
    for name in one.trained.params:
        np.testing.assert_allclose(
            several.trained.params[name], one.trained.params[name], rtol=1e-4, atol=1e-5
        )
    assert json.loads((run / "metadata.json").read_text())["processes"] == 2


def test_a_missing_process_is_told(ring, tmp_path):
    """Where it starts, nobody answers; where process 0 waits, JAX would end it with the trace of a crash."""
    write_labelled(ring, tmp_path / "graph")
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        address = f"localhost:{taken.getsockname()[1]}"
        with pytest.raises(ValueError, match=f"`coordinator` '{address}' did not answer within 1 seconds"):
            connect(address, 2, 1, timeout_s=1)
    command = [sys.executable, "-m", "owkg", "train", tmp_path / "graph", "--out", tmp_path / "run"]
    command += ["--coordinator", address, "--num-processes", "2", "--process-id", "0", "--timeout-s", "1"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"owkg: error: not all processes of {address} came within 1 seconds\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("localhost", 2, 1), "`coordinator` must be HOST:PORT, got 'localhost'"),
        (("localhost:0", 2, 1), "`coordinator` must be HOST:PORT"),
        (("localhost:99", None, 1), "`num_processes` must be given with the coordinator"),
        (("localhost:99", 2, None), "`process_id` must be given with the coordinator"),
        (("localhost:99", 2, 2), "`process_id` must be below 2, the number of processes, got 2"),
    ],
)
def test_refused_connections(arguments, message):
    with pytest.raises(ValueError, match=message):
        connect(*arguments, timeout_s=1)


def test_no_cluster_is_told(monkeypatch):
    def undetected(*_, **__):
        raise ValueError("no address")

    monkeypatch.setattr(jax.distributed, "initialize", undetected)
    with pytest.raises(
        ValueError, match="`coordinator` must be given, because JAX finds no complete cluster"
    ):
        connect()


def test_refused_devices(ring, tmp_path, monkeypatch):
    config = training("complex", **SAMPLED)
    with pytest.raises(ValueError, match="`devices` must be at most 1, the number that JAX sees, got 2"):
        train(ring, config, tmp_path / "run", devices=2)
    with pytest.raises(ValueError, match="`devices` must be a whole number of at least 1, got 0"):
        train(ring, config, tmp_path / "run", devices=0)
    with pytest.raises(ValueError, match="`devices` must be 1 for rgcn, whose scores depend on neighbours"):
        layout_of(training("rgcn"), ring.num_entities, 2)
    monkeypatch.setattr(jax, "device_count", lambda: 6)
    with pytest.raises(ValueError, match="`batch_size` must be a multiple of the 3 devices, got 8"):
        train(ring, config, tmp_path / "run", devices=3)
    cut = training("complex", **SAMPLED, updates="rows", gradient_clip=1.0)
    with pytest.raises(ValueError, match=r"`gradient_clip` must be 0 on several devices with rows updates"):
        train(ring, cut, tmp_path / "run", devices=2)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(ValueError, match="`devices` must be all 6 of the 2 processes, or not given, got 3"):
        layout_of(config, ring.num_entities, 3)
    assert [*tmp_path.iterdir()] == []


def test_processes_are_of_one_mind(monkeypatch, tmp_path):
    """An error of one is an error of all, and what they train must be the same."""
    others = []
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(hosts_of_jax, "_told", lambda value: np.stack([value, others.pop()]))

    def says(text):
        line = np.zeros(2000, np.uint8)
        line[: len(text)] = list(text.encode())
        others.append(line)

    says("same")
    hosts_of_jax.require_equal("graph", "same")
    says("other")
    with pytest.raises(ValueError, match="process 1 has another graph than process 0"):
        hosts_of_jax.require_equal("graph", "same")
    says("no space left.")
    with pytest.raises(ValueError, match=r"no space left\. \(process 1\)"):
        hosts_of_jax.by_each(lambda: 3)
    says("")
    made = iter(range(3))
    with alone(tmp_path / "run"), pytest.raises(ValueError, match="another process"):
        hosts_of_jax.by_first(lambda: alone(tmp_path / "run").__enter__(), made=made)
    assert not [*made]  # what is made together, is made to the end
    others.append(np.int64(15))
    assert hosts_of_jax.largest(0) == 15
