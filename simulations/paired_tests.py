"""Size and power of the paired tests of micro metrics, and coverage of the interval of the difference.

Two systems, A and B, answer queries with Pareto(1.3) numbers of answers. They are compared by micro MRR:

- *exchangeable*: both answer every query equally well;
- *up to K*: A is better on queries with at most K answers and B on larger ones, by the amount that makes
  their micro MRR over infinitely many queries equal;
- *A ahead*: A is better by the same amount on all queries, so that shares of p < 0.05 are power.

For each setting, the table has the share of samples with p < 0.05 for five tests: the t test, the
randomisation test and Wilcoxon's test of `owkg compare`, and the plain t test and plain sign flips of the
queries' contributions, which take the weights of queries as given. It also has the share of samples whose 95
% interval contains the true difference.

    python simulations/paired_tests.py --out out
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer
from scipy import special, stats

from owkg.files.storage import writable_folder
from owkg.judge import difference_intervals, pairwise
from owkg.judge.scores import Scores
from owkg.judge.significance import contributions
from owkg.stats import randomisation
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, run_script, save_table

# Number of candidates of every task: the entities of FB15k-237.
_CANDIDATES = 14_541
# Index of the Pareto distribution of the numbers of answers.
_TAIL = 1.3
# Share of the variance of difficulty that the answers of a query share; half of it is common to both systems.
_ALIKE = 0.3


class Setting(NamedTuple):
    """Two systems and the queries that they answer.

    Attributes:
        name: name in the table.
        most: largest number of answers.
        up_to: A is better on queries with at most this many answers, and B on larger ones.
        better: size of that advantage, in standard deviations of the difficulty.
        ahead: advantage of A on all queries.
    """

    name: str
    most: int
    up_to: int = 1
    better: float = 0.0
    ahead: float = 0.0


SETTINGS = (
    Setting("exchangeable", 300),
    Setting("up to 2", 300, 2, 1.5),
    Setting("up to 5", 300, 5, 0.75),
    Setting("up to 10", 500, 10, 0.42),
)
AHEAD = {60: 0.5, 300: 0.25, 1500: 0.12}
"""Advantage of A where power is measured, by the number of queries."""


_RANKS = np.arange(1, _CANDIDATES + 1)
# Largest difficulty, standard normal on average, at which an answer has at most each rank.
_HARDEST = special.ndtri((_RANKS / _CANDIDATES) ** 0.25)


def mean_reciprocal_rank(shift: float) -> float:
    """Mean reciprocal rank of answers whose difficulty is standard normal plus a shift."""
    return float(special.ndtr(_HARDEST[:-1] - shift) @ -np.diff(1 / _RANKS) + 1 / _CANDIDATES)


def advantage(setting: Setting) -> np.ndarray:
    """Advantage of A on queries with 1, 2, ... answers, in standard deviations of the difficulty."""
    answers = np.arange(1, setting.most + 1)
    share = answers ** (-_TAIL) - (answers + 1.0) ** (-_TAIL)
    share[-1] = setting.most ** (-_TAIL)
    few = answers <= setting.up_to
    held = (share * answers)[few].sum() / (share * answers)[~few].sum()

    def gap(of: float) -> float:
        return mean_reciprocal_rank(-of / 2) - mean_reciprocal_rank(of / 2)

    low, high = -6.0, 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if gap(middle) < -gap(setting.better) * held else (low, middle)
    return np.where(few, setting.better, high if setting.better else 0.0) + setting.ahead


def sample(setting: Setting, queries: int, ahead: np.ndarray, rng: np.random.Generator) -> Scores:
    """Per-query scores of A and B on `queries` queries."""
    answers = np.minimum(np.floor((1 - rng.random(queries)) ** (-1 / _TAIL)), setting.most).astype(np.int64)
    query = np.repeat(np.arange(queries), answers)
    shared = rng.normal(size=queries)
    value = []
    for sign in (-0.5, 0.5):
        of_query = np.sqrt(_ALIKE / 2) * (shared + rng.normal(size=queries)) + sign * ahead[answers - 1]
        difficulty = of_query[query] + np.sqrt(1 - _ALIKE) * rng.normal(size=len(query))
        value.append(np.bincount(query, 1 / (1 + np.searchsorted(_HARDEST, difficulty)), queries))
    asked = pl.DataFrame({"side": "tail", "entity": np.arange(queries), "relation": "r"})
    return Scores(("A", "B"), ("mrr",), (True,), asked, np.array([value]), answers[None].astype(float))


@dataclass(frozen=True)
class Config:
    """Number of samples and of draws."""

    queries: tuple[int, ...] = (60, 300, 1500)
    samples: int = 2000
    draws: int = 999
    seed: int = 0


def of_setting(setting: Setting, queries: int, config: Config) -> dict[str, Any]:
    """One row of the table."""
    rng = np.random.default_rng([config.seed, queries, *setting.name.encode()])
    ahead = advantage(setting)
    # The true difference if the systems are equal, or if one is ahead by the same amount on every query.
    truth = mean_reciprocal_rank(-setting.ahead / 2) - mean_reciprocal_rank(setting.ahead / 2)
    found = []
    for _ in range(config.samples):
        scores = sample(setting, queries, ahead, rng)
        each, key = contributions(scores, "mrr"), int(rng.integers(2**31))
        low, high = difference_intervals(scores, "mrr")
        p = {
            test: pairwise(scores, "mrr", test=test, key=key, draws=config.draws).p[0]
            for test in ("t", "randomisation", "wilcoxon")
        }
        p["plain t"] = stats.ttest_rel(*each).pvalue
        p["plain flips"] = randomisation(key, each, draws=config.draws)[0]
        weight = scores.weight[0]
        found.append(
            {"effective": weight.sum() ** 2 / (weight @ weight)}
            | {test: float(value < 0.05) for test, value in p.items()}
            | {"coverage": float(low[0] <= truth <= high[0]), "width": high[0] - low[0]}
        )
    medians = pl.col("effective", "width").median()
    rest = pl.exclude("effective", "width").mean()
    row = pl.DataFrame(found).select(medians, rest).row(0, named=True)
    return {"setting": setting.name, "queries": queries, "samples": config.samples} | row


def run(config: Config) -> pl.DataFrame:
    """A row for each setting and number of queries."""
    rows = []
    with progress("simulating", "settings") as update:
        todo = [
            (setting, queries)
            for queries in config.queries
            for setting in (*SETTINGS, Setting("A ahead", 300, ahead=AHEAD[queries]))
        ]
        for setting, queries in sorted(todo, key=lambda job: job[0].name == "A ahead"):
            rows.append(of_setting(setting, queries, config))
            update(len(rows), len(todo))
    return pl.DataFrame(rows)


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    samples: Annotated[int, typer.Option(help="Number of samples of each setting and size.", min=2)] = 2000,
    seed: Seed = 0,
) -> None:
    """Simulates size and power of the paired tests of micro MRR, and writes the table."""
    folder = writable_folder(out)
    few = Config(queries=(60,), samples=20, draws=99, seed=seed)
    table = run(few if quick else Config(samples=samples, seed=seed))
    save_table(table, folder / "paired_tests.csv")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=180, float_precision=3,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(table.sort("setting", "queries", maintain_order=True))


if __name__ == "__main__":
    run_script(main)
