"""Seconds and peak memory of training by the number of entities: updates of rows compared with dense updates.

The model is ComplEx with d = 64, 1,024 queries a step, 128 negatives for each, self-adversarial loss,
Adagrad, and ten facts for each entity. The limit of a step of rows is the time to move, at the bandwidth
measured in the same run, everything that it has to move if no cache keeps it. On a small graph, a step names
as many entities as on a large one, but fewer different ones: the table has their number. Therefore the tables
of every size are also measured with the queries and negatives of the smallest graph (`few`), which name the
same rows at every size. With `shared_negatives` (`shared`), a step names 2,304 entities instead of 133,120.
Sizes take turns, so that a slow moment of the machine affects all of them. In each turn the second of two
calls is measured, with the caches filled by the first; the fastest turn counts.

Before that, a separate process trains a million entities with ten million facts into the folder of a run; the
table has its seconds and its peak memory.

    python benchmarks/training_rows.py --out out
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# When this file is run as a script, its own name would hide the package.
sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != Path(__file__).parent]

import jax
import numpy as np
import polars as pl

from benchmarks.timing import machine, once, peak_gib
from benchmarks.training import bandwidth, random_graph
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph
from owkg.train import Training, train, training, updates_of
from owkg.train.queries import queries
from owkg.train.state import init_state, rates
from owkg.train.step import advance, orders_of
from simulations.script import Out, Quick, run_script, save_table

_DIM, _BATCH, _NEGATIVES, _RELATIONS, _FACTS_AN_ENTITY = 64, 1024, 128, 1000, 10
_ENTITIES, _QUICK_ENTITIES = (10**4, 10**5, 10**6), (10**3, 10**4)
# Number of steps in a call of the device.
_STEPS = 4


def configured(updates: str, steps: int, *, shared: bool = False) -> Training:
    """Measured training; with `shared`, all queries of a side have the same negatives."""
    return training(
        "complex",
        dim=_DIM,
        training_loop="negatives",
        loss="self_adversarial",
        batch_size=_BATCH,
        num_negatives=_NEGATIVES,
        shared_negatives=shared,
        optimiser="adagrad",
        n3=0.0,
        steps=steps,
        valid_every=0,
        updates=updates,
    )


def graph_of(num_entities: int) -> KnowledgeGraph:
    """Random graph with `num_entities` entities."""
    return random_graph(num_entities, _RELATIONS, _FACTS_AN_ENTITY * num_entities)


def measured_run(num_entities: int, steps: int) -> dict[str, Any]:
    """Trains a random graph into a temporary folder: seconds, and peak memory of this process."""
    began = time.perf_counter()
    graph = graph_of(num_entities)
    config = configured("auto", steps)
    with tempfile.TemporaryDirectory() as folder:
        run = train(graph, config, Path(folder) / "run")
    path = run.path.tail(1).to_dicts()[0]
    return {
        "entities": num_entities,
        "facts": len(graph.splits["train"]),
        "steps": run.step,
        "updates": updates_of(config, num_entities).how,
        "training_s": path["seconds"],
        "all_s": time.perf_counter() - began,
        "peak_gib": peak_gib(),
    }


def run_elsewhere(num_entities: int, steps: int) -> dict[str, Any]:
    """Runs `measured_run` in a separate process."""
    script = (
        "import json; from benchmarks.training_rows import measured_run; "
        f"print(json.dumps(measured_run({num_entities}, {steps})))"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(done.stdout.splitlines()[-1])


def stepping(num_entities: int, named: int) -> dict[str, Callable[[], object]]:
    """Functions that take some steps, by kind of update; all keep a state of the same size.

    "few" is "rows" on the first `named` entities only; "shared" is "rows" with shared negatives.
    """
    of_all = stepping_by(num_entities, num_entities, ("rows", "shared", "dense"))
    return of_all | {"few": stepping_by(num_entities, named, ("rows",))["rows"]}


def stepping_by(num_entities: int, named: int, ways: tuple[str, ...]) -> dict[str, Callable[[], object]]:
    """Functions that take some steps on the first `named` entities, by kind of update."""
    graph = graph_of(named)
    parts, sizes = queries(graph, configured("rows", 0))
    numbers = rates(configured("rows", 0))
    orders = orders_of(numbers, 0, asked=sizes.queries)
    state = init_state(configured("rows", 0), sizes._replace(num_entities=num_entities), numbers)
    step = 0

    def steps(how: str) -> Callable[[], object]:
        shared = how == "shared"
        run = advance(configured("rows" if shared else how, 0, shared=shared), sizes)

        def call() -> None:
            nonlocal state, step
            state = jax.block_until_ready(run(state, step, step + _STEPS, orders, parts, numbers))
            step += _STEPS

        call()  # compiles
        return call

    return {how: steps(how) for how in ways}


def different_rows(num_entities: int) -> int:
    """Number of different entities that a step names."""
    named = np.random.default_rng(0).integers(num_entities, size=_BATCH * (_NEGATIVES + 2))
    return len(np.unique(named))


def moved_bytes(num_entities: int) -> int:
    """Bytes that a step of rows moves: candidates, sums of their gradients, and the updated rows."""
    row = 2 * _DIM * 4
    named, different = _BATCH * (_NEGATIVES + 2), different_rows(num_entities)
    # All sums are set to 0 and read. A row is read to be scored; its gradient, the parameters and Adagrad's
    # sums are read and written.
    return row * (2 * named + 7 * different)


def compared(entities: tuple[int, ...], repeats: int) -> list[dict[str, Any]]:
    """Seconds of a step by number of entities."""
    calls = {n: stepping(n, entities[0]) for n in entities}
    fastest: dict[tuple[int, str], float] = {}
    for _ in range(repeats):
        for n, by_updates in calls.items():
            for how, call in by_updates.items():
                call()
                seconds = once(call) / _STEPS
                fastest[n, how] = min(seconds, fastest.get((n, how), seconds))
    speed = bandwidth(repeats)
    rows = []
    for n in entities:
        limit = moved_bytes(n) / speed
        rows.append(
            {
                "entities": n,
                "rows_s": fastest[n, "rows"],
                "times_the_fewest": fastest[n, "rows"] / fastest[entities[0], "rows"],
                "few_s": fastest[n, "few"],
                "few_times_the_fewest": fastest[n, "few"] / fastest[entities[0], "few"],
                "shared_s": fastest[n, "shared"],
                "shared_times_the_fewest": fastest[n, "shared"] / fastest[entities[0], "shared"],
                "dense_s": fastest[n, "dense"],
                "times_faster": fastest[n, "dense"] / fastest[n, "rows"],
                "different_rows": different_rows(n),
                "memory_limit_s": limit,
                "times_the_limit": fastest[n, "rows"] / limit,
                "chosen": updates_of(configured("auto", 0), n).how,
            }
        )
    return rows


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Measures, prints and saves."""
    writable_folder(out)
    print(machine())
    # This is first, because a process begins with the peak memory of the process that starts it.
    large = run_elsewhere(_QUICK_ENTITIES[-1] if quick else _ENTITIES[-1], 5 if quick else 200)
    print(_words(large))
    save_table(pl.from_dicts([large]), out / "training_rows_memory.csv")
    rows = compared(_QUICK_ENTITIES if quick else _ENTITIES, 2 if quick else 15)
    for row in rows:
        print(_words(row))
    save_table(pl.from_dicts(rows), out / "training_rows.csv")


def _words(row: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


if __name__ == "__main__":
    run_script(main)
