"""Speed and memory of full filtered evaluation, compared with its bare matrix products and with PyKEEN.

ComplEx of 256 complex numbers with random parameters ranks the test set of FB15k-237 among all its entities,
both sides, filtered by train, valid and test. The limit is the time of the matrix products alone, of the same
queries in blocks with all entities, measured in turn with the evaluation. Blocks have 16 or 64 MiB of scores,
and the faster size counts. The table also has the best speed of the machine on square matrices. PyKEEN runs
in its own process and interpreter; it evaluates the same triples, and is compared with its own bare products
(it scores a query once for each triple).

    python benchmarks/evaluation.py --out out --kg data/fb15k237 --pykeen pykeen-env/bin/python

The second table is for a million entities: ranks per second by block size, compared with NumPy's product of
64 queries.

If --kg is not given and OWKG_DATA is not set, a random graph of the same size is used.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import typer

from benchmarks.timing import fastest, machine, measured_elsewhere, once, peak_gib
from owkg import evaluation, kg
from owkg.files.storage import writable_folder
from owkg.models import Trained, model
from simulations.script import Out, Quick, run_script, save_table

_DIM = 256
_SQUARE = 4096
# Bytes of scores in a block.
_BLOCKS = (2**24, 2**26)
# For many entities: number of entities, numbers an entity, queries, and queries of a product of NumPy.
_MANY, _MANY_DIM, _ASKED, _ROWS = 1_000_000, 64, 512, 64
_MANY_BLOCKS = {"16 MiB": 2**24, "256 MiB": 2**28, "1 GiB": 2**30, "as chosen": None}
_SIZES = {"entities": 14_541, "relations": 237, "train": 272_115, "valid": 17_535, "test": 20_466}


def graph_at(folder: Path | None, sizes: Sequence[int] = tuple(_SIZES.values())) -> kg.KnowledgeGraph:
    """The graph in a folder, or a random one of the given sizes whose entities differ in popularity."""
    if folder is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about labels that no triple has
            return kg.read_graph(folder)
    rng = np.random.default_rng(0)
    n, m, *counts = sizes

    def drawn(count: int) -> np.ndarray:
        columns = [(size * rng.random(count) ** 3).astype(np.int32) for size in (n, m, n)]
        return np.stack(columns, axis=1)

    splits = {name: drawn(count) for name, count in zip(("train", "valid", "test"), counts, strict=True)}
    return kg.KnowledgeGraph(tuple(map(str, range(n))), tuple(map(str, range(m))), splits)


def queries(graph: kg.KnowledgeGraph) -> list[int]:
    """Number of different queries of the test set, for heads and for tails."""
    test = graph.splits["test"]
    return [len(np.unique(test[:, columns], axis=0)) for columns in ([1, 2], [0, 1])]


def ours(graph: kg.KnowledgeGraph, repeats: int) -> dict[str, Any]:
    """Seconds of the evaluation, measured alone in its process because of its memory."""
    scorer = model("complex", dim=_DIM)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), graph.num_entities, graph.num_relations))

    def rank() -> None:
        evaluation.ranks(trained, graph)

    first = once(rank)
    peak = peak_gib()
    bare = [products(graph, size) for size in _BLOCKS]
    # In turn, so that other load on the machine affects all of them.
    seconds, *alone = zip(*((once(rank), *map(once, bare)) for _ in range(repeats)), strict=True)
    limit = min(map(min, alone))
    flops = 2 * sum(queries(graph)) * graph.num_entities * 2 * _DIM
    square = jax.random.normal(jax.random.key(1), (_SQUARE, _SQUARE))
    multiply = jax.jit(jnp.matmul)
    most = 2 * _SQUARE**3 / fastest(lambda: multiply(square, square).block_until_ready(), repeats)
    return {
        "seconds": min(seconds),
        "products_s": limit,
        "times_the_products": min(seconds) / limit,
        "first_s": first,
        "peak_gib": peak,
        "gflop_per_s": flops / min(seconds) / 1e9,
        "products_gflop_per_s": flops / limit / 1e9,
        "square_gflop_per_s": most / 1e9,
    }


def many(entities: int, repeats: int) -> list[dict[str, Any]]:
    """Ranks per second among many entities by block size, and the speed of a product of NumPy."""
    scorer = model("distmult", dim=_MANY_DIM, reciprocal=False)
    trained = Trained(scorer, *scorer.init(jax.random.key(0), entities, 1))
    rng = np.random.default_rng(0)
    triples = np.stack([rng.integers(0, n, _ASKED) for n in (entities, 1, entities)], axis=1)
    candidates = np.asarray(trained.params["entity"])
    asked = rng.normal(size=(_ROWS, _MANY_DIM)).astype(np.float32)

    def rank(size: int | None) -> None:
        evaluation.rank_arrays(trained, triples, "tail", known=None, block_bytes=size)

    def multiply() -> None:
        for _ in range(_ASKED // _ROWS):
            np.matmul(asked, candidates.T)

    calls: dict[str, Callable[[], None]] = {
        f"blocks, {name}": partial(rank, size) for name, size in _MANY_BLOCKS.items()
    }
    calls[f"NumPy's product of {_ROWS} queries"] = multiply
    for call in calls.values():
        call()
    # In turn, so that other load on the machine affects all of them.
    seconds = [[once(call) for call in calls.values()] for _ in range(repeats)]
    return [
        {
            "what": name,
            "entities": entities,
            "ranks_per_s": _ASKED / min(each),
            "median_ranks_per_s": _ASKED / float(np.median(each)),
        }
        for name, each in zip(calls, zip(*seconds, strict=True), strict=True)
    ]


def products(graph: kg.KnowledgeGraph, block_bytes: int) -> Callable[[], None]:
    """A function that computes the bare matrix products of the evaluation."""
    most = block_bytes // (4 * graph.num_entities)
    keys = jax.random.split(jax.random.key(2))
    entities = jax.random.normal(keys[0], (graph.num_entities, 2 * _DIM))
    blocks = []
    for count in queries(graph):
        number = -(-count // most)
        blocks += [jax.random.normal(keys[1], (-(-count // number), 2 * _DIM))] * number
    product = jax.jit(lambda asked, entities: jnp.einsum("qd,nd->qn", asked, entities, precision="highest"))

    def multiply() -> None:
        for block in blocks:
            jax.block_until_ready(product(block, entities))

    multiply()
    return multiply


def pykeen(graph: kg.KnowledgeGraph, python: Path, repeats: int) -> dict[str, Any]:
    """Seconds of PyKEEN for the same triples."""
    with tempfile.TemporaryDirectory() as folder:
        splits = {name: graph.splits[name] for name in ("train", "valid", "test")}
        sizes = np.array([graph.num_entities, graph.num_relations])
        np.savez(Path(folder) / "graph.npz", allow_pickle=False, sizes=sizes, **splits)
        script = Path(__file__).with_name("evaluation_pykeen.py")
        return measured_elsewhere("pykeen", python, script, f"{folder}/graph.npz", _DIM, repeats)


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    folder: Annotated[
        Path | None, typer.Option("--kg", help="Folder of FB15k-237. Default: fb15k237 in OWKG_DATA.")
    ] = None,
    python: Annotated[
        Path | None, typer.Option("--pykeen", help="Python interpreter of an environment with PyKEEN 1.11.1.")
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="Measure without PyKEEN, and print JSON.")] = False,
) -> None:
    """Measures speed and memory of full filtered evaluation."""
    repeats = 2 if quick else 5
    data = os.environ.get("OWKG_DATA")
    folder = Path(data) / "fb15k237" if folder is None and data else folder
    graph = graph_at(folder)
    if only:
        print(json.dumps(ours(graph, repeats)))
        return
    writable_folder(out)
    print(machine())
    counts = " + ".join(f"{count:,}" for count in queries(graph))
    print(
        f"{folder or 'a random graph'}: {2 * len(graph.splits['test']):,} ranks, {counts} queries, "
        f"{graph.num_entities:,} entities"
    )
    command = [sys.executable, __file__, "--only", *(["--quick"] if quick else [])]
    command += [] if folder is None else ["--kg", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    rows = [{"what": "owkg"} | json.loads(done.stdout)]
    if python is not None:
        rows.append({"what": "pykeen"} | pykeen(graph, python, 1))
    for row in rows:
        print(", ".join(f"{k} {v if isinstance(v, str) else format(v, ',.4g')}" for k, v in row.items()))
    for row in (blocks := many(_MANY // 10 if quick else _MANY, repeats)):
        rate, median = row["ranks_per_s"], row["median_ranks_per_s"]
        print(f"{row['what']}: {rate:,.3g} ranks/s (median {median:,.3g}) among {row['entities']:,} entities")
    save_table(pl.from_dicts(blocks), out / "evaluation_blocks.csv")
    if python is not None:
        print(f"PyKEEN takes {rows[1]['seconds'] / rows[0]['seconds']:,.3g} times as long")
    save_table(pl.from_dicts(rows, infer_schema_length=None), out / "evaluation_speed.csv")


if __name__ == "__main__":
    run_script(main)
