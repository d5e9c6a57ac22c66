"""Seconds of a training step of RotatE and ComplEx, compared with PyTorch and with the limit by memory.

The graph is random with 6,004 entities; the models have d = 500, 1,024 queries a step, 128 negatives for
each, self-adversarial loss and Adam. The limit is the time to move, at the bandwidth measured in the same
run, everything that a step has to move if no cache keeps it: the rows of all candidates, their gradients into
the table, and the optimiser's arrays. On a CPU the table may fit the cache, so that a step can be faster than
the limit.

The second table has the first steps on a graph of the size of FB15k-237. `owkg train` permutes the queries of
an epoch once; the table compares this with a permutation at every call of one step.

The third table compares a step of each model that PyKEEN also has, d = 200, with a step of PyKEEN's loop
against negatives, which has as many facts as our step has queries, and as many negatives for each. PyKEEN's
TransH and SimplE compute a different score from the papers', at the same cost (the page on conformance has
both).

    python benchmarks/training.py --out out --torch torch-env/bin/python --pykeen pykeen-env/bin/python
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

# When this file is run as a script, its own name would hide the package.
sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != Path(__file__).parent]

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import typer

from benchmarks.timing import fastest, machine, measured_elsewhere
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph
from owkg.train import training
from owkg.train.loop import snapshots
from owkg.train.queries import queries
from owkg.train.state import init_state, rates
from owkg.train.step import advance, orders_of
from simulations.script import Out, Quick, run_script, save_table

_ENTITIES, _RELATIONS, _FACTS = 6004, 28, 150_000
_BATCH, _NEGATIVES, _DIM = 1024, 128, 500
# Number of steps in a call of the device.
_STEPS = 5
_COPIED = 2**28
# Models that PyKEEN also has, by name.
_PEERS = {
    "transe": "TransE",
    "distmult": "DistMult",
    "complex": "ComplEx",
    "rotate": "RotatE",
    "transh": "TransH",
    "hole": "HolE",
    "simple": "SimplE",
    "cp": "CP",
    "mure": "MuRE",
    "rgcn": "RGCN",
    "compgcn": "CompGCN",
}
_PEERS_DIM = 200
# Entities, relations and facts of FB15k-237.
_FB15K237 = 14_541, 237, 272_115


def random_graph(num_entities: int, num_relations: int, num_facts: int) -> KnowledgeGraph:
    """Random graph with the given numbers of entities, relations and facts."""
    rng = np.random.default_rng(0)
    highs = (num_entities, num_relations, num_entities)
    facts = np.stack([rng.integers(high, size=num_facts, dtype=np.int32) for high in highs], axis=1)
    entities, relations = (tuple(map(str, range(count))) for count in highs[:2])
    return KnowledgeGraph(entities, relations, {"train": facts})


def step_seconds(graph: KnowledgeGraph, model: str, repeats: int, **options: object) -> float:
    """Seconds of a step: negatives that are not known facts, loss, gradients, and Adam."""
    config = training(
        model,
        training_loop="negatives",
        loss="self_adversarial",
        batch_size=_BATCH,
        num_negatives=_NEGATIVES,
        optimiser="adam",
        n3=0.0,
        valid_every=0,
        **options,
    )
    parts, sizes = queries(graph, config)
    numbers, run = rates(config), advance(config, sizes)
    orders = orders_of(numbers, 0, asked=sizes.queries)
    state, step = init_state(config, sizes, numbers, facts=graph.splits["train"]), 0

    def steps() -> None:
        nonlocal state, step
        state = jax.block_until_ready(run(state, step, step + _STEPS, orders, parts, numbers))
        step += _STEPS

    return fastest(steps, repeats) / _STEPS


def first_steps(graph: KnowledgeGraph, model: str, dim: int, steps: int, repeats: int) -> dict[str, float]:
    """Seconds of the first steps, permuted once, and permuted at every call of one step."""
    config = training(model, dim=dim, steps=steps, valid_every=0)
    parts, sizes = queries(graph, config)
    numbers, run = rates(config), advance(config, sizes)

    def once() -> float:
        *_, last = snapshots(graph, config)
        return float(last.rows[-1]["seconds"] or 0)

    def every_call() -> None:
        state = init_state(config, sizes, numbers)
        for step in range(steps):
            orders = orders_of(numbers, step // sizes.per_epoch, asked=sizes.queries)
            state = jax.block_until_ready(run(state, step, step + 1, orders, parts, numbers))

    return {
        "permuted_once_s": min(once() for _ in range(repeats)),
        "permuted_every_call_s": fastest(every_call, repeats),
    }


def moved_bytes(dim: int) -> int:
    """Bytes that a step moves: candidates' rows, their gradients, and the tables of the optimiser."""
    row = 2 * dim * 4
    rows = _BATCH * (_NEGATIVES + 1)
    # A row is read to be scored; a row of the gradient is read and written. The gradient is set to 0 and
    # read; Adam's two means and the parameters are read and written.
    return 3 * rows * row + 8 * _ENTITIES * row


def bandwidth(repeats: int) -> float:
    """Bytes per second of reading and writing an array that no cache holds."""
    array = jnp.ones(_COPIED // 4)
    add: Callable[[Any], Any] = jax.jit(lambda x: x + 1)
    return 2 * _COPIED / fastest(lambda: jax.block_until_ready(add(array)), repeats)


def pytorch(python: Path, model: str, dim: int, repeats: int) -> dict[str, Any]:
    """Seconds of PyTorch for the same step."""
    script = Path(__file__).with_name("training_torch.py")
    numbers = (_ENTITIES, _RELATIONS, dim, _BATCH, _NEGATIVES, repeats)
    return measured_elsewhere("torch", python, script, model, *numbers)


def beside_pykeen(python: Path, graph: KnowledgeGraph, model: str, dim: int, repeats: int) -> dict[str, Any]:
    """Seconds of a step here and in PyKEEN."""
    script = Path(__file__).with_name("training_pykeen_steps.py")
    numbers = (_ENTITIES, _RELATIONS, _FACTS, dim, _BATCH, _NEGATIVES, repeats)
    row = {"model": model, "step_s": step_seconds(graph, model, repeats, dim=dim)}
    row |= measured_elsewhere("pykeen", python, script, _PEERS[model], *numbers)
    return row | {"times_faster": row["pykeen_s"] / row["step_s"]}


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    torch: Annotated[Path | None, typer.Option(help="Python interpreter with PyTorch.")] = None,
    pykeen: Annotated[Path | None, typer.Option(help="Python interpreter with PyKEEN.")] = None,
) -> None:
    """Measures, prints and saves."""
    writable_folder(out)
    dim, repeats, first = (50, 2, 8) if quick else (_DIM, 5, 64)
    print(machine())
    graph, speed = random_graph(_ENTITIES, _RELATIONS, _FACTS), bandwidth(repeats)
    rows = []
    for model in ("rotate", "complex"):
        seconds, limit = (
            step_seconds(graph, model, repeats, dim=dim, reciprocal=False),
            moved_bytes(dim) / speed,
        )
        row = {
            "model": model,
            "step_s": seconds,
            "memory_limit_s": limit,
            "times_the_limit": seconds / limit,
            "bandwidth_gb_per_s": speed / 1e9,
        }
        if torch is not None:
            row |= pytorch(torch, model, dim, repeats)
            row["times_faster"] = row["torch_s"] / seconds
        rows.append(row)
        print(_words(row))
    save_table(pl.from_dicts(rows, infer_schema_length=None), out / "training_speed.csv")
    large, rows = random_graph(*_FB15K237), []
    for model in ("rotate", "complex"):
        row = {"model": model, "steps": first} | first_steps(large, model, dim // 8, first, 2)
        row["times_faster"] = row["permuted_every_call_s"] / row["permuted_once_s"]
        rows.append(row)
        print(_words(row))
    save_table(pl.from_dicts(rows), out / "training_first_steps.csv")
    if pykeen is not None:
        rows = []
        for model in _PEERS:
            rows.append(beside_pykeen(pykeen, graph, model, dim if quick else _PEERS_DIM, repeats))
            print(_words(rows[-1]))
        save_table(pl.from_dicts(rows), out / "training_pykeen.csv")


def _words(row: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())


if __name__ == "__main__":
    run_script(main)
