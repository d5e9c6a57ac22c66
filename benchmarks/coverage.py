"""Coverage of 95 % confidence intervals: how often they contain the metric of infinitely many queries.

Samples of queries are drawn from populations whose metrics are known. Queries have one answer, or uneven
numbers of answers (lognormal, or as in FB15k-237's test set if `OWKG_DATA` is set). Ranks come from a model
of middling strength, a strong one (95 % of the answers on rank 1), one that hardly hits, or have a heavy
tail; some queries are harder if they have more answers. Sizes are effective numbers of queries. In addition
to the coverage, the table has the median width, and the coverage of Student's interval with one degree of
freedom less than queries.

    python benchmarks/coverage.py --out out
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any, NamedTuple

# When this file is run as a script, its own name would hide the package.
sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != Path(__file__).parent]

import numpy as np
import polars as pl
import typer
from scipy import special
from scipy import stats as scipy_stats

from benchmarks.timing import machine
from owkg import kg, metrics, stats
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, run_script, save_table

# Number of candidates of every task: the entities of FB15k-237.
_CANDIDATES = 14_541
_METRICS = ("mrr", "hits@1", "hits@10", "amri", "mr", "macro-mrr", "macro-hits@10", "zmrr", "gmr")
_LEVEL = 0.95
# The bootstrap is simulated only up to this number of queries.
_RESAMPLED_QUERIES = 500


class Population(NamedTuple):
    """A population of queries.

    Attributes:
        name: name of its ranks.
        answers: answers of a query: one, lognormal, or fb15k-237.
        `alike`: share of the variance of difficulty (a normal number) that the answers of a query share.
        harder: increase of the difficulty with the logarithm of the number of answers.
    """

    name: str
    answers: str
    alike: float = 0.0
    harder: float = 0.0

    def __str__(self) -> str:
        return f"{self.name}, {self.answers}" + (", more answers harder" if self.harder else "")


def ranks_of(name: str, uniform: np.ndarray) -> np.ndarray:
    """Rank of each uniform number; small numbers are easy answers."""
    n = _CANDIDATES
    if name == "middling":
        ranks = np.ceil(n * uniform**4)
    elif name == "strong":
        rest = np.clip((uniform - 0.95) / 0.05, 0, 1)
        ranks = np.where(uniform < 0.95, 1, np.ceil(2 * (n / 2) ** rest))
    elif name == "rare hits":
        ranks = np.where(uniform < 0.01, 1, np.ceil(n * np.clip((uniform - 0.01) / 0.99, 0, 1) ** 1.5))
    else:  # lognormal, deviation 2
        ranks = np.ceil(np.exp(1.5 + 2 * special.ndtri(np.clip(uniform, 1e-12, 1 - 1e-12))))
    return np.clip(ranks, 1, n).astype(np.int64)


def answer_counts(name: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Number of answers of each of `count` queries."""
    if name == "one answer":
        return np.ones(count, np.int64)
    if name == "lognormal":
        return np.clip(np.ceil(np.exp(1.3 * rng.normal(size=count))), 1, 300).astype(np.int64)
    return rng.choice(_fb15k237(), count)


def _fb15k237() -> np.ndarray:
    graph = kg.read_graph(Path(os.environ["OWKG_DATA"]) / "fb15k237")
    test, found = graph.splits["test"], []
    for known in (0, 2):
        keys = test[:, known].astype(np.int64) * graph.num_relations + test[:, 1]
        found.append(np.unique(keys, return_counts=True)[1])
    return np.concatenate(found)


def drawn(population: Population, count: int, rng: np.random.Generator) -> metrics.Tasks:
    """Tasks of `count` queries."""
    answers = answer_counts(population.answers, count, rng)
    query = np.repeat(np.arange(count), answers)
    shared = np.sqrt(population.alike) * rng.normal(size=count)[query]
    normal = shared + np.sqrt(1 - population.alike) * rng.normal(size=len(query))
    normal += population.harder * np.log(answers[query])
    ranks = ranks_of(population.name, special.ndtr(normal))
    return metrics.tasks(ranks, candidates=_CANDIDATES, query=query)


def populations() -> list[Population]:
    """The simulated populations."""
    names = ("middling", "strong", "rare hits", "heavy tail")
    uneven = ["lognormal"] + ["fb15k-237"] * ("OWKG_DATA" in os.environ)
    return [
        *(Population(name, "one answer") for name in names),
        *(Population(name, answers, 0.3) for answers in uneven for name in names),
        *(Population("middling", answers, 0.3, 0.3) for answers in uneven),
    ]


@dataclass(frozen=True)
class Config:
    """Number of samples, resamples and queries."""

    effective: tuple[int, ...] = (10, 30, 100)
    samples: int = 1000
    resampled: int = 200
    replicates: int = 500
    population: int = 300_000
    seed: int = 0
    workers: int = 1


def coverage_of(job: tuple[Population, Config]) -> list[dict]:
    """A row for each metric, size and kind of interval."""
    population, config = job
    rng = np.random.default_rng([config.seed, *str(population).encode()])
    names = [name for name in _METRICS if not name.startswith("macro") or population.answers != "one answer"]
    wanted = [metrics.metric(name) for name in names]
    exact = (metrics.Ties.EXACT,)
    everything = drawn(population, config.population, rng)
    truth = metrics.evaluate(everything, wanted, ties=exact, level=None)[exact[0]]
    whole = np.bincount(np.asarray(everything.query)).astype(float)
    share = whole.sum() ** 2 / np.dot(whole, whole) / len(whole)
    rows = []
    for effective in config.effective:
        count = round(effective / share)
        for interval in stats.IntervalMethod:
            analytic = interval is stats.IntervalMethod.ANALYTIC
            if not analytic and (effective != max(config.effective) or count > _RESAMPLED_QUERIES):
                continue
            samples = config.samples if analytic else config.resampled
            ends = {name: np.empty((samples, 4)) for name in names}
            for i in range(samples):
                sample = drawn(population, count, rng)
                found = metrics.evaluate(
                    sample, wanted, ties=exact, level=_LEVEL, interval=interval, replicates=config.replicates
                )[exact[0]]
                for name in names:
                    own = found[name]
                    ends[name][i] = own.value, own.standard_error, own.ci_low, own.ci_high
            for name in names:
                # z metrics grow with the square root of the number of tasks, here of queries.
                scale = np.sqrt(count / config.population) if name.startswith("z") else 1.0
                target = truth[name].value * scale
                value, error, low, high = ends[name].T
                reach = scipy_stats.t.ppf((1 + _LEVEL) / 2, count - 1) * error
                rows.append(
                    {
                        "ranks": str(population),
                        "effective": effective,
                        "queries": count,
                        "metric": name,
                        "interval": interval.value,
                        "coverage": np.mean((low <= target) & (target <= high)),
                        "student": np.mean(np.abs(value - target) <= reach) if analytic else None,
                        "width": np.median(high - low),
                        "student_width": np.median(2 * reach) if analytic else None,
                        "width_0": np.mean(high <= low),
                        "samples": samples,
                    }
                )
    return rows


def run(config: Config, path: Path) -> pl.DataFrame:
    """The table, saved after every population."""
    jobs = [(population, config) for population in populations()]
    rows: list[dict] = []
    with (
        progress("Coverage", "populations") as update,
        ProcessPoolExecutor(config.workers, mp_context=get_context("spawn")) as pool,
    ):
        for done, found in enumerate(pool.map(coverage_of, jobs), start=1):
            rows += found
            save_table(pl.DataFrame(rows, infer_schema_length=None), path)
            update(done, len(jobs))
    return pl.DataFrame(rows, infer_schema_length=None)


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    samples: Annotated[
        int, typer.Option(help="Number of samples of each population and size.", min=10)
    ] = 1000,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(help="Random seed; equal seeds give equal numbers.", min=0)] = 0,
) -> None:
    """Simulates the coverage of every kind of interval, and writes the table."""
    writable_folder(out)
    small: dict[str, Any] = {
        "samples": 20,
        "resampled": 10,
        "replicates": 50,
        "population": 20_000,
        "effective": (30,),
    }
    full: dict[str, Any] = {"samples": samples, "resampled": max(10, samples // 8)}
    config = Config(seed=seed, workers=workers, **(small if quick else full))
    print(machine())
    table = run(config, out / "coverage.csv")
    shown = table.filter(interval="analytic").pivot("metric", index=["ranks", "effective"], values="coverage")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180, fmt_str_lengths=60, float_precision=3,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(shown)


if __name__ == "__main__":
    run_script(main)
