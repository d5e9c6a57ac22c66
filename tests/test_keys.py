"""Equal seeds give equal numbers, whatever the user has set JAX to draw with."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from owkg.keys import reproducible, seeded

DRAWN = """
import sys
from pathlib import Path
import numpy as np
import polars as pl
from owkg import judge, metrics, rank_weights, ranks, simulate
from owkg.cli.main import main
from owkg.keys import seeded
from owkg.kg import KnowledgeGraph
from owkg.simulate import full_test, resample
from simulations.yang2022.resampling import query_counts
from owkg.train import Training, train

folder = Path(sys.argv[1])
r = np.random.default_rng(0)
low = r.integers(1, 20, 60)
table = pl.DataFrame(
    {
        "head": [f"e{i // 3}" for i in range(60)],
        "relation": "r",
        "tail": [f"t{i}" for i in range(60)],
        "side": "tail",
        "optimistic": low,
        "pessimistic": low + 2,
        "candidates": 40,
    }
)
table.write_parquet(folder / "a.parquet")
table.with_columns(pl.col("optimistic", "pessimistic") + 1).write_parquet(folder / "b.parquet")
a, b = str(folder / "a.parquet"), str(folder / "b.parquet")
world = ["--strength", "0.7", "--sparsity", "0.35", "--num-answers", "5", "--num-entities", "50"]
main(["metrics", a, "--metric", "mrr,gmr,wgmr,median_rank,zgmr", "--interval", "bca", "--format", "json"])
for prediction in ("classification", "score"):
    main(["simulate", *world, "--trials", "100", "--prediction", prediction, "--format", "json"])
main(["compare", a, b, "--metric", "mrr", "--format", "json"])
main(["stability", a, b, "--metric", "mrr", "--draws", "20", "--format", "json"])
print(metrics.report(table, [metrics.metric("zgmr")]).rows())
print(ranks.random_ranks(seeded(3), low, low + 2))
full = full_test(low, low, low, -1.0 * low)
print(resample(seeded(4), full, rank_weights.MRR, sparsity=0.3, draws=5).values)
print(query_counts(seeded(5), 9, 3))
triples = np.stack([r.integers(0, 9, 40), r.integers(0, 2, 40), r.integers(0, 9, 40)], 1).astype(np.int32)
graph = KnowledgeGraph(tuple(map(str, range(9))), ("r", "s"), {"train": np.unique(triples, axis=0)})
for loop, loss in {"1vsall": "cross_entropy", "negatives": "margin"}.items():
    config = Training(
        options=(("dim", 4),), training_loop=loop, loss=loss, epochs=2, batch_size=16, valid_every=0
    )
    train(graph, config, folder / loop)
    print(pl.read_parquet(folder / loop / "path.parquet")["loss"].to_list())
"""


def _drawn(tmp_path, **environment):
    tmp_path.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", DRAWN, str(tmp_path)],
        # Both compile quickly: what is compared is what they draw.
        env=os.environ | {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(str(tmp_path), "")


def test_what_is_drawn_does_not_depend_on_what_jax_is_set_to(tmp_path):
    plain = _drawn(tmp_path / "plain")
    assert len(plain) > 1000
    assert _drawn(tmp_path / "rbg", JAX_DEFAULT_PRNG_IMPL="rbg", JAX_THREEFRY_PARTITIONABLE="0") == plain


@pytest.mark.parametrize("name", ["rbg", "unsafe_rbg"])
def test_a_seed_is_one_key(name):
    expected = jax.random.key_data(jax.random.key(7, impl="threefry2x32"))
    with jax.default_prng_impl(name):
        np.testing.assert_array_equal(jax.random.key_data(seeded(7)), expected)


def test_a_function_draws_the_same_and_is_called_as_before():
    @reproducible
    def draw(key, *, count):
        """Some numbers."""
        return jax.random.uniform(key, (count,))

    assert draw.__doc__ == "Some numbers."
    expected = draw(seeded(0), count=3)
    with jax.threefry_partitionable(False):
        assert not np.array_equal(jax.random.uniform(seeded(0), (3,)), expected)
        np.testing.assert_array_equal(draw(seeded(0), count=3), expected)
