"""Metrics of ranks among K sampled negatives, compared with ranks among all candidates: values and order.

An answer of rank r among N candidates has r - 1 candidates ahead of it. K of the N - 1 other candidates are
drawn without replacement, and a hypergeometric number X of the draws is ahead, so that the sampled rank is 1
+ X. Mean and variance of a metric over draws follow from the full ranks, and are checked against simulated
draws. The order of models can differ from their order by all candidates, and more test triples do not repair
it: with few negatives, a metric weighs the whole list, as a mean rank does (Krichene and Rendle 2020, On
Sampled Metrics for Item Recommendation).

    python simulations/sampled_evaluation.py --quick --out out
    python simulations/sampled_evaluation.py --kg data/wn18rr --ranks a.parquet --ranks b.parquet --out out

Ranks are realistic ranks, rounded down.
"""

from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
import typer
from jaxtyping import Float
from scipy import stats

from owkg.errors import ArgumentError
from owkg.files.storage import writable_folder
from owkg.metrics import tasks_of
from owkg.plots.figure import COLOURS, figure
from owkg.rank_weights import RankWeight, rank_weight
from owkg.rank_weights.tables import rank_weights
from owkg.terminal.tables import printed
from simulations.rank_tables import EMBEDDINGS, DataSet, Graphs, Seeds, Tables, data_sets, embedding
from simulations.script import Out, Quick, Seed, run_script, save_figure, save_table

METRICS = ("mrr", "hits@1", "hits@10")
NEGATIVES = (10, 50, 100, 500)

# Number of entries of one [tasks, drawn] array.
_ENTRIES = 2**22


def sampled_moments(
    weight: RankWeight, rank: np.ndarray, candidates: np.ndarray, negatives: int
) -> Float[np.ndarray, "2 tasks"]:
    """Mean and variance of h(1 + X) by task, X hypergeometric: `negatives` draws of N - 1, r - 1 ahead.

    Args:
        weight: rank weight h.
        rank: whole numbers in 1 .. candidates, [tasks].
        candidates: N of each task, including the answer, [tasks].
        negatives: number of draws; all other candidates where there are fewer.

    Raises:
        ValueError: if `negatives` is below 1, or a rank is outside 1 .. candidates.
    """
    if negatives < 1:
        raise ArgumentError("negatives", f"must be at least 1, got {negatives!r}.")
    if ((rank < 1) | (rank > candidates)).any():
        raise ArgumentError("rank", "must be in 1 .. candidates everywhere.")
    pairs, back = np.unique(np.stack([rank, candidates]), axis=1, return_inverse=True)
    ahead = np.arange(min(negatives, int(candidates.max()) - 1) + 1)
    h = rank_weights(weight, ahead + 1)
    moments = np.empty((2, pairs.shape[1]))
    step = max(1, _ENTRIES // len(ahead))
    for begin in range(0, pairs.shape[1], step):
        r, n = pairs[:, begin : begin + step, None]
        share = stats.hypergeom.pmf(ahead, n - 1, r - 1, np.minimum(negatives, n - 1))
        first = share @ h
        moments[:, begin : begin + step] = first, np.maximum(share @ h**2 - first**2, 0)
    return moments[:, back.reshape(-1)]


def drawn_values(
    weight: RankWeight,
    rank: np.ndarray,
    candidates: np.ndarray,
    negatives: int,
    trials: int,
    rng: np.random.Generator,
) -> Float[np.ndarray, "trials"]:
    """Values of the metric, one for each draw of negatives."""
    drawn = np.minimum(negatives, candidates - 1)
    found = np.empty(trials)
    for trial in range(trials):
        ahead = rng.hypergeometric(rank - 1, candidates - rank, drawn)
        found[trial] = rank_weights(weight, 1.0 + ahead).mean()
    return found


def run(sets: list[DataSet], negatives: tuple[int, ...], trials: int, seed: int) -> pl.DataFrame:
    """A row for each data set, model, metric and number of negatives; null negatives: all candidates.

    The columns are data, model, metric, negatives, expected, deviation (over draws), drawn (mean over the
    trials), standardised_difference of the expected and the drawn value, and place (of the model, 1 for the
    best).
    """
    rng, rows = np.random.default_rng(seed), []
    for one in sets:
        for model, ranks in one.ranks.items():
            tasks = tasks_of(ranks)[0]
            rank = (tasks.optimistic.astype(np.int64) + tasks.pessimistic) // 2
            candidates = tasks.candidates.astype(np.int64)
            for name in METRICS:
                weight, named = rank_weight(name), {"data": one.name, "model": model, "metric": name}
                full = float(rank_weights(weight, rank.astype(float)).mean())
                rows.append(named | {"expected": full})
                for count in negatives:
                    mean, variance = sampled_moments(weight, rank, candidates, count)
                    deviation = float(np.sqrt(variance.sum()) / len(rank))
                    drawn = float(drawn_values(weight, rank, candidates, count, trials, rng).mean())
                    error = deviation / np.sqrt(trials)
                    z = (drawn - float(mean.mean())) / error if error > 0 else None
                    rows.append(
                        named
                        | {"negatives": count, "expected": float(mean.mean()), "deviation": deviation}
                        | {"drawn": drawn, "standardised_difference": z}
                    )
    columns = ["data", "model", "metric", "negatives", "expected", "deviation", "drawn"]
    table = pl.DataFrame(rows, infer_schema_length=None).select(*columns, "standardised_difference")
    place = pl.col("expected").rank("min", descending=True).over("data", "metric", "negatives")
    return table.with_columns(place=place.cast(pl.Int64))


def reversals(table: pl.DataFrame) -> pl.DataFrame:
    """Pairs of models whose order by sampled negatives differs from their order by all candidates.

    The columns are data, metric, negatives, ahead (by all candidates) and behind; a row for each such pair.
    """
    full = table.filter(pl.col("negatives").is_null())
    rows = []
    for (data, metric, count), part in table.drop_nulls("negatives").group_by(
        "data", "metric", "negatives", maintain_order=True
    ):
        whole = dict(full.filter(data=data, metric=metric).select("model", "expected").iter_rows())
        few = dict(part.select("model", "expected").iter_rows())
        for pair in combinations(whole, 2):
            ahead, behind = sorted(pair, key=lambda name: -whole[name])
            if whole[ahead] > whole[behind] and few[ahead] < few[behind]:
                rows.append((data, metric, count, ahead, behind))
    columns = {"data": pl.String, "metric": pl.String, "negatives": pl.Int64}
    schema = columns | {"ahead": pl.String, "behind": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def draw(table: pl.DataFrame, out: Path) -> None:
    """Plots each metric against the negatives: closed form as lines, draws as dots, all candidates dotted."""
    names = table["data"].unique(maintain_order=True).to_list()
    size = (3.2 * len(METRICS), 2.8 * len(names))
    with figure(len(names), len(METRICS), size, squeeze=False, sharex=True) as (fig, axes):
        for row, name in zip(axes, names, strict=True):
            for panel, metric in zip(row, METRICS, strict=True):
                own = table.filter(data=name, metric=metric)
                for i, ((model,), part) in enumerate(own.group_by("model", maintain_order=True)):
                    colour: Any = {"color": COLOURS[i % len(COLOURS)]}
                    some = part.drop_nulls("negatives")
                    panel.plot(some["negatives"], some["expected"], label=model, **colour)
                    panel.plot(some["negatives"], some["drawn"], "o", ms=3, mfc="white", **colour)
                    panel.axhline(part["expected"][0], ls=":", lw=0.9, **colour)
                panel.set(xscale="log", title=f"{name}, {metric}", ylim=(0, 1))
        for panel in axes[-1]:
            panel.set_xlabel("sampled negatives; dotted: all")
        axes[0, 0].legend(fontsize=8)
        save_figure(fig, out / "sampled_evaluation")


def main(
    kg: Graphs = None,
    ranks: Tables = None,
    negatives: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            help="Number of negatives sampled for each answer; repeatable.",
            show_default="10, 50, 100, 500",
        ),
    ] = None,
    trials: Annotated[int, typer.Option(min=2, help="Number of draws of the negatives.")] = 100,
    seeds: Seeds = None,
    seed: Seed = 0,
    out: Out = Path("out"),
    quick: Quick = False,
) -> None:
    """Compares metrics by sampled negatives and by all candidates: closed form, draws, changed orders."""
    sets = data_sets(
        EMBEDDINGS, kg or (), ranks or (), seeds, quick, writable_folder(out / "sampled"), embedding
    )
    table = run(sets, tuple(sorted(set(negatives or NEGATIVES))), trials, seed)
    found = reversals(table)
    save_table(table, out / "sampled_evaluation.csv")
    z = table["standardised_difference"].drop_nulls().to_numpy()
    print(f"closed form and {trials} draws: {len(z)} standardised differences, largest {abs(z).max():.2f}")
    printed("Models that change places", found.columns, [list(map(str, row)) for row in found.iter_rows()])
    draw(table, out)


if __name__ == "__main__":
    run_script(main)
