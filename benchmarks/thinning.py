"""Speed of resampling: sparse test sets of one trained model per second, compared with a loop and a limit.

The example has 500 queries with some 7,000 answers, and ten metrics. The baseline is a loop over draws in
NumPy, each draw without a loop over queries. The limit is the time that the machine needs to draw the same
number of random bits and do nothing with them.

    python benchmarks/thinning.py --out out
"""

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import polars as pl
import typer

from benchmarks.timing import fastest, machine, once, peak_gib
from owkg import openworld, simulate
from owkg.files.storage import writable_folder
from owkg.rank_weights import RankWeight, rank_weight
from owkg.simulate.numerics import random_bits
from simulations.script import Out, Quick, run_script, save_table

_QUERIES = 500
_ENTITIES = 20_000
_SPARSITY = 0.25
_METRICS = (
    *("mrr", "log-mrr", "p-mrr@1/4", "p-mrr@1/3", "p-mrr@1/2", "p-mrr@2/3", "p-mrr@3/4"),
    *("hits@1", "hits@3", "hits@10"),
)


def example(tied: bool = False) -> simulate.FullTest:
    """Full test of one model: random facts, and ranks that are better than random ranking.

    Args:
        tied: whether scores are so coarse that most candidates tie with another one.
    """
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 28, _QUERIES)
    query = np.repeat(np.arange(_QUERIES), counts)
    size = len(query)
    score = rng.normal(2, 1, size)
    others = rng.normal(0, 1, (_QUERIES, 1000))
    if tied:
        score, others = np.round(score, 1), np.round(others, 1)
    above = np.array([(others[q] > s).sum() for q, s in zip(query, score, strict=True)])
    level = np.array([(others[q] >= s).sum() for q, s in zip(query, score, strict=True)])
    people = rng.integers(0, _ENTITIES, size)
    fact = np.stack([query + _ENTITIES, query % 28, people], axis=1)
    keep = np.unique(np.column_stack([query, fact]), axis=0, return_index=True)[1]
    popularity = np.bincount(fact[:, [0, 2]].reshape(-1), minlength=_ENTITIES + _QUERIES)
    return simulate.full_test(
        query[keep], 1 + above[keep], 1 + level[keep], score[keep], fact=fact[keep], popularity=popularity
    )


def baseline(full: simulate.FullTest, measured: tuple[RankWeight, ...], draws: int) -> np.ndarray:
    """Plain loop over draws, [draws, metrics], for ranks without ties."""
    rng = np.random.default_rng(1)
    table = [np.asarray(metric.weight(jax.numpy.arange(1.0, _ENTITIES))) for metric in measured]
    order = np.lexsort((-full.score[0], full.query))
    query, ranks = full.query[order], full.optimistic[0, order]
    begin = np.searchsorted(query, query)
    values = np.empty((draws, len(measured)))
    for draw in range(draws):
        missing = rng.random(len(query)) < _SPARSITY
        before = np.cumsum(missing) - missing
        rank = (ranks + before - before[begin])[~missing]
        left = query[~missing]
        counts = np.bincount(left, minlength=_QUERIES)
        share = 1 / (counts[left] * np.count_nonzero(counts))
        values[draw] = [weight[rank - 1] @ share for weight in table]
    return values


def seconds_of_bits(words: int, repeats: int) -> float:
    """Seconds to draw `words` random words, combined by exclusive or."""
    size, width = 2**14, 64

    @jax.jit
    def draw(keys: jax.Array) -> jax.Array:
        def step(keys: jax.Array) -> jax.Array:
            drawn = jax.vmap(lambda key: random_bits(key, size))(keys)
            return jax.lax.reduce(drawn, np.uint32(0), jax.lax.bitwise_xor, (0, 1))

        return jax.lax.map(step, keys)

    with jax.enable_x64(True):
        steps = max(1, words // (size * width))
        keys = jax.random.split(jax.random.key(0), (steps, width))
        taken = fastest(lambda: jax.block_until_ready(draw(keys)), repeats)
    return taken * words / (steps * size * width)


def run(draws: int, repeats: int) -> pl.DataFrame:
    """The table: what, seconds, draws per second, and the ratios to baseline and limit."""
    measured = tuple(rank_weight(name) for name in _METRICS)
    full, tied = example(), example(tied=True)
    untied = full._replace(pessimistic=full.optimistic)
    answers = len(full.query)
    print(f"{draws:,} draws, {_QUERIES} queries, {answers:,} answers, {len(measured)} metrics, one model")
    resample = partial(
        simulate.resample, jax.random.key(0), metrics=measured, sparsity=_SPARSITY, draws=draws
    )
    few = max(10, draws // 20)
    begin = time.perf_counter()
    by_loop = baseline(untied, measured, few).mean(0)
    loop = (time.perf_counter() - begin) / few * draws
    gap = np.abs(resample(full=untied).mean[0] / by_loop - 1).max()
    print(
        f"means of the loop and of the resamples differ by {gap:.1e}, relative, of {few:,} draws of the loop"
    )
    measured_s: dict[str, tuple[float, float]] = {}
    bits = float("inf")
    for what, test, missing in (
        ("independent", untied, openworld.INDEPENDENT),
        ("node", untied, openworld.NodeBased()),
        ("relation", untied, openworld.RelationBased()),
        ("popularity", untied, openworld.PopularityBased()),
        ("correlated with a model", untied, simulate.Correlated(full.score[0])),
        ("independent, coarse scores", tied, openworld.INDEPENDENT),
    ):
        call = partial(resample, full=test, missing=missing)
        measured_s[what] = once(call), fastest(call, repeats)
        # In turn, so that other load on the machine affects the limit as well.
        bits = min(bits, seconds_of_bits(draws * answers, repeats))
    rows: list[tuple[Any, ...]] = [("NumPy, a loop over draws", loop, None, 1.0, loop / bits)]
    rows.append(("their random bits alone", bits, None, None, 1.0))
    rows += [(what, taken, first, loop / taken, taken / bits) for what, (first, taken) in measured_s.items()]
    columns = ["what", "seconds", "first_s", "times_faster_than_loop", "times_random_bits"]
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None).with_columns(
        draws_per_second=draws / pl.col("seconds")
    )


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    repeats: Annotated[int, typer.Option(help="Number of timed calls; the fastest counts.", min=1)] = 3,
) -> None:
    """Times resampled test sets, and writes the table."""
    writable_folder(out)
    print(machine())
    table = run(1000 if quick else 10_000, repeats)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180, fmt_str_lengths=60,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(table)
    print(f"peak memory of the process: {peak_gib():.2f} GiB")
    save_table(table, out / "benchmark_thinning.csv")


if __name__ == "__main__":
    run_script(main)
