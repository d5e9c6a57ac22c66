"""Figures 1 to 4 of the paper on PROBE: ranks and popularity of models, and the functions of PROBE.

Figure 1: the predictions of each model by rank (a), and its MRR by popularity of the answer (b). Figure 2:
the score of a rank by sharpness, as a power (a) and rescaled to 0 .. 1 (b). Figure 3: popularity in train and
test (a), and the weight of an answer by its popularity (b). Figure 4: PROBE over both parameters, and the
model that is ahead at each point.

    python -m simulations.probe2026 figures --quick --out out
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import owkg
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph, entity_popularity
from owkg.metrics import Ties, Weighting, evaluate, metric, probe, tasks, tasks_of
from owkg.metrics.query_sums import task_weight
from owkg.plots.figure import COLOURS, figure
from owkg.plots.histogram import binned_ranks, rank_edges
from owkg.plots.ranks import rank_figures
from simulations.probe2026.table2 import ROBUSTNESS, SHARPNESS, SYSTEMS
from simulations.rank_tables import DataSet, Graphs, Seeds, Tables, data_sets
from simulations.script import Out, Quick, save_figure, save_table


def by_rank(one: DataSet) -> pl.DataFrame:
    """Figure 1a: shares of the predictions between ranks, with columns `model`, `first`, `last`, `share`."""
    rows = []
    for model, ranks in one.ranks.items():
        found = tasks_of(ranks)[0]
        edges = rank_edges(int(found.candidates.max()))
        shares = binned_ranks(found, edges).realistic
        bins = zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), shares.tolist(), strict=True)
        rows += [(model, *row) for row in bins]
    return pl.DataFrame(rows, schema=["model", "first", "last", "share"], orient="row")


def by_popularity(one: DataSet) -> pl.DataFrame:
    """Figure 1b: MRR by decades of the answer's popularity: `model`, `popularity`, `mrr`, `tasks`."""
    tables = [
        owkg.evaluate(ranks, "mrr", by="popularity", ci=None).select(
            "popularity", "tasks", model=pl.lit(model), mrr="value"
        )
        for model, ranks in one.ranks.items()
    ]
    return pl.concat(tables).select("model", "popularity", "mrr", "tasks")


def scores_of_ranks(num_entities: int, sharpness: Sequence[float] = SHARPNESS) -> pl.DataFrame:
    """Figure 2: the score of each rank r, r^-a (a) and PROBE's (b): `sharpness`, `rank`, `power`, `probe`."""
    ranks = np.unique(np.geomspace(1, num_entities, 100).round().astype(int))
    pairs = [(metric(f"p-mrr@{a}"), probe(a)) for a in sharpness]
    rows = []
    for rank in ranks.tolist():
        of = tasks([rank], candidates=num_entities)
        found = evaluate(of, [one for pair in pairs for one in pair], level=None)[Ties.EXACT]
        rows += [
            (a, rank, found[power.name].value, found[scaled.name].value)
            for a, (power, scaled) in zip(sharpness, pairs, strict=True)
        ]
    columns = ["sharpness", "rank", "power", "probe"]
    return pl.DataFrame(rows, schema=columns, orient="row").sort("sharpness", maintain_order=True)


def popularities(graph: KnowledgeGraph) -> pl.DataFrame:
    """Figure 3a: share of entities in at least `popularity` triples: `split`, `popularity`, `share`."""
    rows = []
    for split in [name for name in ("train", "test") if name in graph.splits]:
        counts = entity_popularity(graph.splits[split], graph.num_entities)
        values, times = np.unique(counts, return_counts=True)
        shares = times[::-1].cumsum()[::-1] / graph.num_entities
        rows += [(split, v, s) for v, s in zip(values.tolist(), shares.tolist(), strict=True) if v > 0]
    return pl.DataFrame(rows, schema=["split", "popularity", "share"], orient="row")


def weights(largest: int, robustness: Sequence[float] = ROBUSTNESS) -> pl.DataFrame:
    """Figure 3b: weight of an answer relative to one without training triples, by popularity."""
    popularity = np.unique(np.r_[0, np.geomspace(1, largest, 60).round()]).astype(int)
    of = tasks(np.ones(len(popularity), int), candidates=2, popularity=popularity)
    rows = []
    for b in robustness:
        weight = task_weight(of, Weighting(popularity=b))
        share = np.ones(len(popularity)) if weight is None else weight / weight[0]
        rows += [(b, p, w) for p, w in zip(popularity.tolist(), share.tolist(), strict=True)]
    return pl.DataFrame(rows, schema=["robustness", "popularity", "weight"], orient="row")


def _lines(panel: Any, table: pl.DataFrame, by: str, x: str, y: str, label: str, **options: Any) -> None:
    for i, ((name,), part) in enumerate(table.group_by(by, maintain_order=True)):
        shown = name if isinstance(name, str) else f"{label} {name:g}"
        panel.plot(part[x], part[y], color=COLOURS[i % len(COLOURS)], label=shown, **options)
    panel.legend()


def draw(one: DataSet, folder: Path) -> None:
    """Draws the figures of a data set, and writes the numbers behind them as CSV."""
    ranks, popular = by_rank(one), by_popularity(one)
    scores, degrees = scores_of_ranks(one.graph.num_entities), popularities(one.graph)
    weight = weights(int(degrees["popularity"].to_numpy().max()))
    tables = {"figure1a": ranks, "figure1b": popular, "figure2": scores} | {
        "figure3a": degrees,
        "figure3b": weight,
    }
    for name, table in tables.items():
        save_table(table, folder / f"{name}.csv")
    marked: Any = {"marker": "o", "ms": 3}
    with figure(1, 2, (8, 3.2)) as (fig, (left, right)):
        _lines(left, ranks, "model", "first", "share", "", **marked)
        left.set(xscale="log", xlabel="rank, octaves", ylabel="share of predictions", title="(a) ranks")
        left.set_xscale("log", base=2)
        _lines(right, popular, "model", "popularity", "mrr", "", **marked)
        right.set(xlabel="popularity of the answer", ylabel="MRR", ylim=(0, 1), title="(b) popularity")
        save_figure(fig, folder / "figure1")
    with figure(1, 2, (8, 3.2), sharey=True) as (fig, panels):
        titles = {"power": "(a) power", "probe": "(b) rescaled"}
        for panel, (column, title) in zip(panels, titles.items(), strict=True):
            _lines(panel, scores, "sharpness", "rank", column, "a =")
            panel.set(xscale="log", xlabel="rank", title=title, ylim=(0, 1.02))
        panels[0].set_ylabel("score")
        save_figure(fig, folder / "figure2")
    with figure(1, 2, (8, 3.2)) as (fig, (left, right)):
        _lines(left, degrees, "split", "popularity", "share", "")
        left.set(xscale="log", yscale="log", xlabel="triples", ylabel="share of entities in as many or more")
        left.set_title("(a) popularity in train and test")
        _lines(right, weight.filter(pl.col("popularity") > 0), "robustness", "popularity", "weight", "b =")
        right.set(xscale="log", xlabel="popularity of the answer", ylabel="weight", title="(b) weights")
        save_figure(fig, folder / "figure3")
    for path in rank_figures(list(one.ranks.values()), folder):
        print(f"wrote {path}")


def main(
    kg: Graphs = None, ranks: Tables = None, seeds: Seeds = None, out: Out = Path("out"), quick: Quick = False
) -> None:
    """Figures 1 to 4, from your rank tables or from models trained here; a folder for each data set.

    If the command is interrupted, run it again and it resumes where it stopped.
    """
    folder = writable_folder(out / "probe")
    for one in data_sets(SYSTEMS, kg or (), ranks or (), seeds, quick, folder):
        draw(one, writable_folder(folder / one.name))
