"""Speed of entity alignment: ranks of both directions compared with the bare distances, and a training step.

The benchmark has 10,500 pairs with embeddings of 200 numbers, like the test of DBP15k. The limit of the ranks
is the time to compute the L1 distances of all left and all right entities once. The limit of a step is the
time to copy the numbers that its products with the sparse matrix read, at the copying speed of the machine.

    python benchmarks/alignment.py --out out
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from benchmarks.timing import fastest, machine, once, peak_gib
from owkg import align
from owkg.align.gcn import adjacency
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph
from owkg.models.similarity import minus_l1
from simulations.script import Out, Quick, run_script, save_table

_ENTITIES, _TRIPLES, _RELATIONS = 19_500, 83_000, 1500
_BLOCK = 512


def example(pairs: int, entities: int, triples: int) -> align.Alignment:
    """Two random graphs of the size of DBP15k."""
    rng = np.random.default_rng(0)
    names = tuple(map(str, range(entities)))
    relations = tuple(map(str, range(_RELATIONS)))
    graphs = []
    for _ in range(2):
        columns = [rng.zipf(1.6, triples) % n for n in (entities, _RELATIONS, entities)]
        graphs.append(KnowledgeGraph(names, relations, {"train": np.stack(columns, axis=1).astype(np.int32)}))
    shared = np.stack([rng.permutation(entities)[:pairs]] * 2, axis=1).astype(np.int32)
    return align.Alignment(graphs[0], graphs[1], shared[: pairs * 3 // 10], shared[pairs * 3 // 10 :])


def run(pairs: int, entities: int, triples: int, dim: int, repeats: int) -> pl.DataFrame:
    """Seconds, seconds of the limit, and their ratio."""
    data = example(pairs, entities, triples)
    rng = np.random.default_rng(1)
    left, right = (rng.standard_normal((entities, dim), np.float32) for _ in range(2))
    distances = jax.jit(minus_l1(0.0).all)
    rows, columns = (jnp.asarray(side[ids]) for side, ids in zip((left, right), data.test.T, strict=True))

    def bare() -> None:
        for begin in range(0, len(rows), _BLOCK):
            distances(rows[begin : begin + _BLOCK], columns).block_until_ready()

    ranks = fastest(lambda: align.rank_embeddings(data, left, right), repeats)
    ranks_limit = fastest(bare, repeats)
    few, many = (align.Config(dim=dim, steps=steps) for steps in (10, 30))
    once(lambda: align.train_gcn(data, few))  # compiles
    step = (once(lambda: align.train_gcn(data, many)) - once(lambda: align.train_gcn(data, few))) / 20
    # Two products, and two more for the derivative: each entry of the matrix takes a row of the embeddings.
    entries = adjacency(data).nnz
    block = np.ones(2**27, np.uint8)
    bandwidth = 2 * block.nbytes / fastest(block.copy, 3)
    step_limit = 4 * entries * dim * 4 / bandwidth
    found = [("ranks of both directions", ranks, ranks_limit), ("training step", step, step_limit)]
    return pl.DataFrame(
        [
            {"what": what, "seconds": taken, "limit_s": limit, "times_the_limit": taken / limit}
            | {"pairs": len(data.test), "peak_gib": peak_gib()}
            for what, taken, limit in found
        ]
    )


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Times the ranks of an alignment and a training step of GCN-Align."""
    writable_folder(out)
    print(machine())
    sizes = (300, 900, 3000, 32, 2) if quick else (15_000, _ENTITIES, _TRIPLES, 200, 5)
    table = run(*sizes)
    for row in table.iter_rows(named=True):
        print(
            f"{row['what']}: {row['seconds']:.3g} s, {row['times_the_limit']:.2f} times its limit "
            f"({row['limit_s']:.3g} s), peak {row['peak_gib']:.2f} GiB"
        )
    save_table(table, out / "alignment_speed.csv")


if __name__ == "__main__":
    run_script(main)
