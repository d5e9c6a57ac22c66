"""Speed of the open-world core: trials and exact settings per second, compared with a baseline and a limit.

The baseline is a trial in plain Python, written from the paper's description. It classifies every entity,
puts the classes in random order, and takes the filtered ranks. The limit is the time to draw the random
bits of a direct simulation and do nothing with them: one word for missing, one for predicted and one for
the order of each answer. owkg draws less of exchangeable answers: one word each, one for the query, and one
for each place behind the positives.

    python benchmarks/simulation.py --out out
"""

import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import jax
import numpy as np
import polars as pl
import typer

from benchmarks.timing import fastest, machine, peak_gib
from owkg import openworld, simulate, theory
from owkg.files.storage import writable_folder
from owkg.openworld import Independent, NodeBased
from owkg.rank_weights import MRR
from owkg.simulate.numerics import random_bits
from simulations.script import Out, Quick, run_script, save_table
from simulations.yang2022.points import PublishedGrid

# Trials of one setting: the default of the command line.
_LONG_RUN = 200_000
# Number of 32-bit words that one trial of N answers draws: missing, predicted, order (one model).
_WORDS_PER_ANSWER = 3


@dataclass(frozen=True)
class Config:
    """The published grid, and how long the baseline may run."""

    grid: PublishedGrid = field(default_factory=PublishedGrid)
    trials: int = 500
    repeats: int = 5
    baseline_seconds: float = 5.0
    settings: int = 1_000_000


def baseline_trial(
    rng: random.Random, num_answers: int, num_entities: int, sparsity: float, l1: float, l2: float
) -> float:
    """MRR of one simulated query in plain Python, without shortcuts for candidates that are not answers."""
    missing = {a for a in range(num_answers) if rng.random() < sparsity}
    positives, negatives = [], []
    for entity in range(num_entities):
        strength = (l1 if entity in missing else l2) if entity < num_answers else 0.0
        (positives if rng.random() < strength else negatives).append(entity)
    rng.shuffle(positives)
    rng.shuffle(negatives)
    rank, total, tests = 1, 0.0, 0
    for entity in positives + negatives:
        if entity < num_answers and entity not in missing:
            total += 1 / rank
            tests += 1
        else:
            rank += 1
    return total / tests


def published_grid(config: Config) -> dict:
    """The 6 x 4 x 71 settings; an infeasible correlation is moved to the end of its interval."""
    rho, alpha, strength = config.grid.points().values()
    return {
        "strength": strength,
        "sparsity": 1 - alpha,
        "correlation": np.clip(rho, *openworld.feasible_correlation(strength, 1 - alpha)),
        "num_answers": config.grid.num_answers,
        "num_entities": config.grid.num_entities,
    }


def time_baseline(config: Config) -> tuple[float, float]:
    """(seconds a trial, mean MRR) of the plain-Python baseline at strength 0.7, sparsity 0.35."""
    rng = random.Random(0)  # noqa: S311 - a simulation
    begin, values = time.perf_counter(), []
    while time.perf_counter() - begin < config.baseline_seconds:
        values.append(baseline_trial(rng, config.grid.num_answers, config.grid.num_entities, 0.35, 0.7, 0.7))
    return (time.perf_counter() - begin) / len(values), float(np.mean(values))


def time_random_bits(config: Config, trials: int, *, block: int = 8192) -> float:
    """Seconds to draw the random words of `trials` trials, combined by exclusive or, in chunks of `block`."""
    count = _WORDS_PER_ANSWER * config.grid.num_answers

    @jax.jit
    def draw(keys: jax.Array) -> jax.Array:
        def step(key: jax.Array) -> jax.Array:
            words = jax.vmap(lambda k: random_bits(k, count))(jax.random.split(key, block))
            return jax.lax.reduce(words, np.uint32(0), jax.lax.bitwise_xor, (0, 1))

        return jax.lax.map(step, keys)

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(0), -(-trials // block))
        return fastest(lambda: jax.block_until_ready(draw(keys)), config.repeats)


def run(config: Config) -> pl.DataFrame:
    """The table: what, how much, seconds, rate, and the ratios to baseline and limit."""
    rows = []
    per_trial, baseline_mean = time_baseline(config)
    rows.append(("plain Python baseline, a trial", 1, per_trial, 1.0, None))
    print(f"baseline: {per_trial * 1e3:.2f} ms a trial, mean MRR {baseline_mean:.4f}")

    grid = published_grid(config)
    trials = grid["strength"].size * config.trials
    seconds = fastest(
        lambda: simulate.estimate(jax.random.key(0), MRR, trials=config.trials, **grid), config.repeats
    )
    bits = time_random_bits(config, _LONG_RUN) / _LONG_RUN  # seconds a trial
    simulated = [("published grid, simulated", trials, seconds)]

    for name, missing in (("one setting", Independent()), ("one setting, missing by node", NodeBased())):
        seconds = fastest(
            lambda missing=missing: simulate.estimate(
                jax.random.key(0),
                MRR,
                strength=0.7,
                sparsity=0.35,
                num_answers=config.grid.num_answers,
                num_entities=config.grid.num_entities,
                missing=missing,
                trials=_LONG_RUN,
            ),
            config.repeats,
        )
        # In turn, so that other load on the machine affects the limit as well.
        bits = min(bits, time_random_bits(config, _LONG_RUN) / _LONG_RUN)
        simulated.append((f"{name}, {_LONG_RUN:,} trials", _LONG_RUN, seconds))
    rows += [
        (what, count, seconds, per_trial * count / seconds, seconds / (bits * count))
        for what, count, seconds in simulated
    ]
    rows.append(("their random bits alone", _LONG_RUN, bits * _LONG_RUN, None, 1.0))

    rng = np.random.default_rng(0)
    n = config.settings
    settings = {
        "strength": rng.uniform(0, 1, n),
        "sparsity": rng.uniform(0.01, 0.99, n),
        "num_answers": rng.integers(1, 65, n),
        "num_entities": config.grid.num_entities,
    }
    seconds = fastest(lambda: theory.moments(MRR, **settings), 1)
    rows.append((f"exact moments, {n:,} settings, N <= 64", n, seconds, None, None))
    seconds = fastest(lambda: theory.moments(MRR, **grid), config.repeats)
    rows.append(("exact moments of the published grid", grid["strength"].size, seconds, None, None))
    columns = ["what", "count", "seconds", "times_faster_than_baseline", "times_random_bits"]
    return pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None).with_columns(
        per_second=pl.col("count") / pl.col("seconds")
    )


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    repeats: Annotated[int, typer.Option(help="Number of timed calls; the fastest counts.", min=1)] = 5,
) -> None:
    """Times the simulator and the exact moments, and writes the table."""
    writable_folder(out)
    config = Config(
        repeats=repeats, baseline_seconds=2.0 if quick else 5.0, settings=50_000 if quick else 1_000_000
    )
    print(machine())
    table = run(config)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180, fmt_str_lengths=60,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(table)
    print(f"peak memory of the process: {peak_gib():.2f} GiB")
    save_table(table, out / "benchmark_simulation.csv")


if __name__ == "__main__":
    run_script(main)
