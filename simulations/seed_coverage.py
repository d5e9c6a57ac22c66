"""Coverage of intervals and size of tests over queries and seeds.

Two models of equal quality are each trained under several seeds and answer the same queries. The difficulty
of an answer is a sum of normal effects: of its query, of query and model, of the seed, of query and seed, and
of the answer itself. Each sample draws new queries and new seeds. The interval of the difference should
contain 0 in 95 % of the samples, and p should be below 0.05 in 5 %. The interval of one model's value, as
`owkg metrics` prints it, should contain the mean over infinitely many queries and seeds. The table also has
the size of Student's t over queries alone, a test of the same means over seeds that takes the seeds as given.

    python simulations/seed_coverage.py --out out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer

from owkg import metrics
from owkg.files.storage import writable_folder
from owkg.judge.scores import Scores, Seeds
from owkg.judge.significance import difference_intervals, pairwise
from owkg.metrics import Ties, metric
from owkg.terminal.progress import progress
from owkg.terminal.tables import printed
from simulations.script import Out, Quick, Seed, run_script, save_table

_CANDIDATES = 14_541
_LEVEL = 0.95
# Standard deviations of the effects of query, query and model, query and seed, and of the answer itself.
_EFFECTS = (1.0, 0.4, 0.4, 0.4)


class Cell(NamedTuple):
    """One setting.

    Attributes:
        metric: micro or macro MRR.
        seeds: number of seeds of each of the two models.
        queries: number of queries in a sample.
        effect: standard deviation of the effect of a seed, divided by the one of a query.
    """

    metric: str
    seeds: tuple[int, int]
    queries: int
    effect: float


@dataclass(frozen=True)
class Config:
    """Number of samples and of draws."""

    samples: int = 2000
    values: int = 250
    population: int = 2_000_000
    seed: int = 0


def cells(*, quick: bool) -> list[Cell]:
    """Settings to simulate: five seeds at every size, then other numbers of seeds."""
    if quick:
        return [Cell("macro", (5, 5), 60, 0.2), Cell("micro", (5, 2), 60, 0.0)]
    five = [
        Cell(name, (5, 5), queries, effect)
        for name in ("micro", "macro")
        for queries in (60, 300, 1500)
        for effect in (0.0, 0.05, 0.2)
    ]
    others = ((2, 2), (10, 10), (5, 2))
    return five + [Cell("micro", seeds, 300, effect) for seeds in others for effect in (0.05, 0.2)]


def ranks_of(difficulty: np.ndarray) -> np.ndarray:
    """Ranks of answers, lognormal in their difficulty."""
    return np.clip(np.ceil(np.exp(1.0 + 1.2 * difficulty)), 1, _CANDIDATES).astype(np.int64)


def answers_of(name: str, queries: int, rng: np.random.Generator) -> np.ndarray:
    """Number of answers of each query: lognormal for the micro metric, one for the macro metric."""
    if name == "macro":
        return np.ones(queries, np.int64)
    return np.clip(np.ceil(np.exp(rng.normal(size=queries))), 1, 30).astype(np.int64)


def drawn(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray]]:
    """(query of each answer, ranks of both models [seeds, answers])."""
    answers = answers_of(cell.metric, cell.queries, rng)
    query = np.repeat(np.arange(cell.queries), answers)
    of_query, of_both, of_run, own = _EFFECTS
    shared = of_query * rng.normal(size=cell.queries)
    models = []
    for seeds in cell.seeds:
        model = shared + of_both * rng.normal(size=cell.queries)
        run = cell.effect * rng.normal(size=(seeds, 1)) + of_run * rng.normal(size=(seeds, cell.queries))
        models.append(ranks_of((model + run)[:, query] + own * rng.normal(size=(seeds, len(query)))))
    return query, models


def truth(cell: Cell, size: int, rng: np.random.Generator) -> float:
    """MRR over many queries, each under its own seed."""
    query = np.repeat(np.arange(size), answers_of(cell.metric, size, rng))
    deviation = np.sqrt(sum(x**2 for x in _EFFECTS[:3]) + cell.effect**2)
    difficulty = deviation * rng.normal(size=size)[query] + _EFFECTS[3] * rng.normal(size=len(query))
    return float((1 / ranks_of(difficulty)).mean())


def scores_of(query: np.ndarray, models: list[np.ndarray]) -> Scores:
    """Scores of both models, computed as `owkg.judge.scores` does from rank tables."""
    count = int(query[-1]) + 1
    sums = [np.stack([np.bincount(query, 1 / run, count) for run in ranks])[None] for ranks in models]
    asked = pl.DataFrame({"side": "tail", "entity": pl.int_range(count, eager=True), "relation": "r"})
    seeds = tuple(Seeds(tuple(range(one.shape[1])), one) for one in sums)
    value = np.stack([one.mean(1) for one in sums], 1)
    weight = np.bincount(query, minlength=count)[None].astype(float)
    return Scores(("a", "b"), ("mrr",), (True,), asked, value, weight, seeds)


def simulated(cell: Cell, config: Config) -> dict[str, Any]:
    """Table row of one setting."""
    rng = np.random.default_rng([config.seed, *str(cell).encode()])
    expected = truth(cell, config.population, rng)
    held, small, alone, inside, widths, deviations = [], [], [], [], [], []
    for i in range(config.samples):
        query, models = drawn(cell, rng)
        of = scores_of(query, models)
        low, high = difference_intervals(of, "mrr", level=_LEVEL)
        held.append(low[0] <= 0 <= high[0])
        small.append(pairwise(of, "mrr").p[0] < 1 - _LEVEL)
        alone.append(pairwise(of._replace(seeds=()), "mrr").p[0] < 1 - _LEVEL)
        widths.append(high[0] - low[0])
        deviations.append(np.std([(1 / run).mean() for run in models[0]], ddof=1))
        if i < config.values:
            seeds = len(models[0])
            tasks = metrics.tasks(models[0].ravel(), candidates=_CANDIDATES, query=np.tile(query, seeds))
            which = np.repeat(np.arange(seeds), len(query))
            found = metrics.evaluate(tasks, metric("mrr"), ties=Ties.REALISTIC, level=_LEVEL, seeds=which)
            one = found[Ties.REALISTIC]["mrr"]
            inside.append(one.ci_low <= expected <= one.ci_high)
    return {
        "metric": f"{cell.metric} MRR",
        "seeds": " and ".join(map(str, cell.seeds)),
        "queries": cell.queries,
        "seed_effect": cell.effect,
        "deviation_over_seeds": float(np.mean(deviations)),
        "coverage": float(np.mean(held)),
        "size": float(np.mean(small)),
        "size_over_queries_alone": float(np.mean(alone)),
        "width": float(np.median(widths)),
        "samples": config.samples,
        "coverage_of_value": float(np.mean(inside)),
        "samples_of_value": len(inside),
    }


def run(config: Config, *, quick: bool) -> pl.DataFrame:
    """A row for each setting."""
    rows: list[dict[str, Any]] = []
    every = cells(quick=quick)
    with progress("Simulating", "settings") as update:
        for done, cell in enumerate(every, start=1):
            rows.append(simulated(cell, config))
            update(done, len(every))
    return pl.DataFrame(rows)


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    samples: Annotated[int, typer.Option(help="Number of samples of each setting.", min=10)] = Config.samples,
    seed: Seed = 0,
) -> None:
    """Simulates two models with several seeds, and writes coverage of intervals and size of tests."""
    writable_folder(out)
    config = Config(samples=samples, values=max(10, samples // 8), seed=seed)
    if quick:
        config = Config(samples=40, values=10, population=20_000, seed=seed)
    table = run(config, quick=quick)
    save_table(table, out / "seed_coverage.csv")
    shown = [
        *("metric", "seeds", "queries", "seed_effect", "deviation_over_seeds"),
        *("coverage", "size", "size_over_queries_alone", "coverage_of_value"),
    ]
    cells_of = [[f"{x:.4f}" if isinstance(x, float) else str(x) for x in row] for row in table[shown].rows()]
    printed("Two models of equal quality: 95 % intervals and tests at .05", shown, cells_of)


if __name__ == "__main__":
    run_script(main)
