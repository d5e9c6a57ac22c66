"""Speed of rankings on parts of the queries and of the randomisation test, against loops, SciPy and limits.

The example has 13 systems and 20,000 queries. Stability has 6 metrics, 20 sizes and 50 draws (the aim: at
most 60 seconds). The randomisation test covers all 78 pairs with 10,000 draws. The baselines are a loop
over draws and sizes with scipy.stats.kendalltau, and a loop over draws in NumPy. Others are
scipy.stats.permutation_test and, if it is installed, the Fisher test of ranx. Slow baselines are timed on a
part and multiplied up. One limit is to draw the random bits without using them. The other is the bare
matrix product of the sums, in NumPy, from signs or parts that are already in memory.

    python benchmarks/judge.py --out out
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import polars as pl
import typer
from scipy import stats

from benchmarks.timing import fastest, machine, once, peak_gib
from owkg.files.storage import writable_folder
from owkg.judge.scores import Scores
from owkg.judge.significance import contributions, pairwise
from owkg.judge.stability import stability
from owkg.simulate.numerics import random_bits
from simulations.script import Out, Quick, run_script, save_table

_SYSTEMS = 13
_SIZES = np.arange(1, 21) / 21
_HITS = (1, 3, 10)


def example(queries: int) -> Scores:
    """Reciprocal ranks and hits of systems that are close to each other, micro and macro."""
    rng = np.random.default_rng(0)
    answers = rng.integers(1, 6, queries).astype(np.float64)
    ability = np.linspace(0, 0.3, _SYSTEMS)[:, None]
    hard = rng.normal(2, 2, queries) + rng.normal(0, 1, (_SYSTEMS, queries))
    rank = np.floor(np.exp(np.maximum(0, hard - ability)))
    macro = np.stack([1 / rank, *(rank <= k for k in _HITS)])
    metrics = np.concatenate([macro, answers * macro[:2]])
    ones = np.ones((len(macro), queries))
    return Scores(
        systems=tuple(f"system {i}" for i in range(_SYSTEMS)),
        metrics=("macro mrr", *(f"macro hits@{k}" for k in _HITS), "mrr", "hits@1"),
        larger_is_better=(True,) * len(metrics),
        queries=pl.DataFrame({"side": "tail", "entity": np.arange(queries), "relation": 0}),
        value=metrics,
        weight=np.concatenate([ones, np.stack([answers, answers])]),
    )


def loop_over_parts(scores: Scores, draws: int) -> np.ndarray:
    """Tau of every draw, size and metric, one after another, [draws, sizes, metrics]."""
    rng = np.random.default_rng(1)
    queries = scores.value.shape[2]
    whole = scores.strength
    tau = np.empty((draws, len(_SIZES), len(scores.metrics)))
    for draw in range(draws):
        order = rng.permutation(queries)
        for size, share in enumerate(_SIZES):
            part = order[: round(share * queries)]
            read = scores.value[:, :, part].sum(2) / scores.weight[:, part].sum(1)[:, None]
            tau[draw, size] = [
                np.asarray(stats.kendalltau(*pair))[0] for pair in zip(read, whole, strict=True)
            ]
    return tau


def loop_over_signs(gaps: np.ndarray, draws: int) -> np.ndarray:
    """P-values of the pairs with differences [pairs, queries], draw by draw."""
    rng = np.random.default_rng(1)
    observed = np.abs(gaps.sum(1)) - 1e-9
    far = np.zeros(len(gaps), np.int64)
    for _ in range(draws):
        far += np.abs(gaps @ rng.choice([-1.0, 1.0], gaps.shape[1])) >= observed
    return (far + 1) / (draws + 1)


def by_scipy(gap: np.ndarray, draws: int) -> float:
    """P-value of one pair."""
    found = stats.permutation_test(
        (gap,),
        lambda values, axis: values.sum(axis=axis),
        permutation_type="samples",
        n_resamples=draws,
        batch=200,
        rng=np.random.default_rng(1),
    )
    return float(found.pvalue)


def fisher_of_ranx() -> Callable[..., Any] | None:
    """The Fisher test of ranx, if it is installed."""
    try:
        from ranx.statistical_tests import (  # pyright: ignore[reportMissingImports]
            fisher_randomization_test,
        )
    except ImportError:
        return None
    return fisher_randomization_test


def seconds_of_bits(words: int, repeats: int) -> float:
    """Seconds to draw `words` random words of 32 bits, combined by exclusive or."""
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


def seconds_of_products(rows: int, columns: np.ndarray, repeats: int) -> float:
    """Seconds of [rows, queries] @ [queries, columns] for numbers in memory, some rows at a time."""
    block = np.random.default_rng(0).integers(0, 2, (128, len(columns))).astype(np.float64)
    taken = fastest(lambda: block @ columns, repeats)
    return taken * rows / len(block)


Row = tuple[str, float, float | None, float | None, float, float]


def of_stability(scores: Scores, draws: int, repeats: int) -> list[Row]:
    """Rows of stability: what, seconds, of the first call, times faster, times bits, times product."""
    queries = scores.value.shape[2]
    call = partial(stability, jax.random.key(0), scores, _SIZES, draws)
    first, taken = once(call), fastest(call, repeats)
    few = max(1, draws // 25)
    kept: list[np.ndarray] = []
    loop = once(lambda: kept.append(loop_over_parts(scores, few))) / few * draws
    gap = np.abs(call().mean.T - kept[0].mean(0)).max()
    print(f"stability: mean tau differs from that of {few} draws of the loop by at most {gap:.3f}")
    bits = seconds_of_bits(2 * draws * queries, repeats)
    columns = np.concatenate([scores.value.reshape(-1, queries), scores.weight])
    product = seconds_of_products(draws * len(_SIZES), np.ascontiguousarray(columns.T), repeats)
    rows = (
        ("parts: owkg", taken, first),
        ("parts: loop, NumPy and SciPy", loop, None),
        ("parts: random bits alone", bits, None),
        ("parts: matrix product alone", product, None),
    )
    return [(what, time, begin, loop / time, time / bits, time / product) for what, time, begin in rows]


def of_randomisation(scores: Scores, draws: int, repeats: int) -> list[Row]:
    """The same rows for the randomisation test; SciPy and ranx are timed on one pair and multiplied."""
    call = partial(pairwise, scores, "macro mrr", test="randomisation", key=jax.random.key(0), draws=draws)
    first, taken = once(call), fastest(call, repeats)
    found = call()
    each = contributions(scores, "macro mrr")
    gaps = each[found.first] - each[found.second]
    few = max(1, draws // 50)
    kept: list[Any] = []
    loop = once(lambda: kept.append(loop_over_signs(gaps, few))) / few * draws
    # The pair that is the hardest to tell apart.
    hard = int(found.p.argmax())
    scipy = once(lambda: kept.append(by_scipy(gaps[hard], few))) / few * draws * len(gaps)
    error = np.sqrt(found.p[hard] * (1 - found.p[hard]) * (1 / few + 1 / draws))
    print(
        f"randomisation: p of the nearest pair {found.p[hard]:.4f}; of {few:,} draws, loop "
        f"{kept[0][hard]:.4f}, scipy.stats.permutation_test {kept[1]:.4f}; one standard error {error:.4f}"
    )
    bits = seconds_of_bits(draws * gaps.shape[1] // 32, repeats)
    product = seconds_of_products(draws, np.ascontiguousarray(each.T), repeats)
    rows = [("signs: owkg", taken, first), ("signs: loop, NumPy", loop, None)]
    rows.append(("signs: scipy.stats.permutation_test", scipy, None))
    if (fisher := fisher_of_ranx()) is None:
        print("ranx is not installed: its Fisher test is not timed")
    else:
        one, two = each[found.first[hard]], each[found.second[hard]]
        fisher(one, two, n_permutations=10)  # compiles
        ranx = once(partial(fisher, one, two, n_permutations=few)) / few * draws * len(gaps)
        rows.append(("signs: ranx", ranx, None))
    rows += [("signs: random bits alone", bits, None), ("signs: matrix product alone", product, None)]
    return [(what, time, begin, loop / time, time / bits, time / product) for what, time, begin in rows]


def run(queries: int, parts: int, draws: int, repeats: int) -> pl.DataFrame:
    """The table of both."""
    scores = example(queries)
    pairs = _SYSTEMS * (_SYSTEMS - 1) // 2
    print(
        f"{_SYSTEMS} systems x {queries:,} queries; parts: {len(_SIZES)} sizes x {parts} draws x "
        f"{len(scores.metrics)} metrics; signs: {pairs} pairs x {draws:,} draws"
    )
    rows = of_stability(scores, parts, repeats) + of_randomisation(scores, draws, repeats)
    columns = ["what", "seconds", "first_s", "times_faster_than_loop", "times_random_bits", "times_product"]
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    repeats: Annotated[int, typer.Option(help="Number of timed calls; the fastest counts.", min=1)] = 3,
) -> None:
    """Times rankings on parts of the queries and randomisation tests, and writes the table."""
    writable_folder(out)
    print(machine())
    table = run(2000, 50, 1000, repeats) if quick else run(20_000, 50, 10_000, repeats)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180, fmt_str_lengths=60,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(table)
    print(f"peak memory of the process: {peak_gib():.2f} GiB")
    save_table(table, out / "benchmark_judge.csv")


if __name__ == "__main__":
    run_script(main)
