"""Test metrics of each model on small benchmarks, trained here: mean and standard deviation over seeds.

Settings are the preset "small" of each model with the graph's number of epochs, the same for every seed. The
validation set chooses the step. The test set is ranked once, against all entities, on both sides, filtered by
train, valid and test. A graph is a folder of that name in --data. Runs are kept in OUT/runs: if the command
is interrupted, run it again and it resumes.

    python simulations/trained_models.py --data data --graph nations --graph umls --out out
    python simulations/trained_models.py --data data --graph umls --model mure --model rotate --out out

If neither --data is given nor OWKG_DATA is set, the script trains on a small open world of families.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from family_tree import closed_graph, ontology, sample_people
from owkg import evaluation, metrics, sampling
from owkg import train as training
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph, read_graph
from owkg.models import MODELS, Trained
from owkg.plots.figure import COLOURS, figure
from owkg.rules import SYSTEMS, rules_run
from owkg.terminal.progress import progress
from owkg.terminal.tables import printed
from simulations.script import Out, Quick, run_script, save_figure, save_table

FAMILIES = "families"
METRICS = ("mrr", "hits@1", "hits@10")
# Settings on each graph for every model, and the exceptions of single models.
GRAPHS: dict[str, dict[str, Any]] = {
    FAMILIES: {"epochs": 50},
    "nations": {"epochs": 60},
    "umls": {"epochs": 40},
    "kinships": {"epochs": 30, "valid_every": 5},
    "codex-s": {"epochs": 20, "valid_every": 5},
    "wn18rr": {"epochs": 15, "valid_every": 5},
}
_OTHER = {"epochs": 20, "valid_every": 5}
OWN: dict[tuple[str, str], dict[str, Any]] = {
    ("complex", "nations"): {"epochs": 100},
    ("complex", "umls"): {"epochs": 100},
    ("complex", "kinships"): {"epochs": 100, "valid_every": 10},
    ("complex", "codex-s"): {"epochs": 40},
    ("complex", "wn18rr"): {"dim": 128, "batch_size": 500, "n3": 0.1},
}
# Systems of rules, whose settings depend only on the graph.
RULES = tuple(SYSTEMS)
LENGTHS = {"wn18rr": 3}
# Default graphs and models: all models on three graphs, and these on the rest.
EACH, FEW = ("nations", "umls", "kinships"), ["complex", "rules"]
Graph = StrEnum("Graph", list(GRAPHS))


@dataclass(frozen=True)
class Config:
    """The graphs and models to train, where runs are kept, and the most epochs."""

    asked: tuple[tuple[str, str], ...]
    data: Path | None
    runs: Path
    seeds: int = 3
    most_epochs: int | None = None


def run(config: Config) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(a row for each run, the training paths); the pairs `asked` are (graph, model)."""
    rows, paths, graphs = [], [], {}
    for name, model in config.asked:
        if name not in graphs:
            graphs[name] = families() if name == FAMILIES else _read(config.data, name)
        for seed in range(config.seeds):
            row, path = _trained(name, model, graphs[name], seed, config)
            print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
            rows.append(row)
            paths.append(
                path.select("epoch", "seconds", "valid_mrr").with_columns(
                    graph=pl.lit(name), model=pl.lit(model), seed=seed
                )
            )
    return pl.DataFrame(rows), pl.concat(paths)


def families() -> KnowledgeGraph:
    """An open world of 240 people: a quarter of the facts is missing, and half of the rest trains."""
    closed = closed_graph(sample_people(num_trees=4, max_tree_size=60), ontology("published"))
    sizes: dict[str, Any] = {"density": 0.75, "train_rate": 0.5, "valid_rate": 0.1, "min_answers": 1}
    world = sampling.sample(closed, num_queries=None, seed=0, **sizes)
    splits = {"train": world.train, "valid": world.valid, "test": world.test_sparse}
    return KnowledgeGraph(world.entities, world.relations, splits)


def overview(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard deviation over seeds, a row for each graph and model."""
    values = [column for column in rows.columns if column not in ("graph", "model", "seed")]
    return rows.group_by("graph", "model", maintain_order=True).agg(
        pl.len().alias("seeds"),
        *(pl.col(name).mean().alias(f"{name}_mean") for name in values),
        *(pl.col(name).std().alias(f"{name}_sd") for name in values if name in METRICS),
    )


def _read(data: Path | None, name: str) -> KnowledgeGraph:
    if data is None:
        raise ValueError(f"`data` must name the folder that holds {name}, or OWKG_DATA be set.")
    return quietly_read(data / name)


def quietly_read(folder: Path) -> KnowledgeGraph:
    """Graph of a benchmark, read without warnings about its repeated triples."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about repeated triples and labels that no triple has
        return read_graph(folder)


def system(
    name: str,
    model: str,
    graph: KnowledgeGraph,
    seed: int,
    folder: Path,
    most_epochs: int | None = None,
    **settings: Any,
) -> training.Run:
    """Run of a model on the named graph in `folder`, resumed if it is already there.

    `most_epochs` stops the run early. `settings`, if not empty, replace the preset "small".
    """
    if model in RULES:
        if not folder.is_dir():
            own = {"seed": seed}
            if "length" in SYSTEMS[model].settings:
                own["length"] = LENGTHS.get(name, 2)
            rules_run(graph, folder, settings=own, system=model)
        return training.load_run(folder)
    how = settings or {"preset": "small"} | GRAPHS.get(name, _OTHER) | OWN.get((model, name), {})
    if most_epochs is not None:
        how |= {"epochs": min(most_epochs, how["epochs"])}
    config = training.training(model, seed=seed, **how)
    with progress(f"{name}, {model}, seed {seed}", "steps") as update:
        return training.train(graph, config, folder, resume=folder.is_dir(), on_progress=update)


def of_test(trained: Trained, graph: KnowledgeGraph) -> dict[str, float]:
    """`METRICS` on the test set."""
    wanted = [metrics.metric(metric) for metric in METRICS]
    ranks = evaluation.ranks(trained, graph)
    found = metrics.evaluate(metrics.tasks_of(ranks)[0], wanted, ties=[metrics.Ties.REALISTIC], level=None)
    return {metric: float(found[metrics.Ties.REALISTIC][metric].value) for metric in METRICS}


def _trained(
    name: str, model: str, graph: KnowledgeGraph, seed: int, config: Config
) -> tuple[dict[str, Any], pl.DataFrame]:
    """(the row, the training path) of a run, which is trained unless it is there."""
    done = system(name, model, graph, seed, config.runs / name / model / str(seed), config.most_epochs)
    row = {"graph": name, "model": model, "seed": seed} | of_test(done.trained, graph)
    best = done.path.filter(pl.col("step") == done.step)
    row |= {"valid_mrr": best["valid_mrr"].item(), "best_epoch": best["epoch"].item()}
    return row | {"seconds": done.path["seconds"].max()}, done.path


def draw(paths: pl.DataFrame, out: Path) -> list[Path]:
    """Plots validation MRR of one model against training time, a colour for each graph."""
    with figure(1, 1, (5, 3.4)) as (fig, axis):
        for colour, (name, part) in zip(COLOURS, _by(paths, "graph"), strict=False):
            for i, (_, line) in enumerate(_by(part.drop_nulls("valid_mrr"), "seed")):
                axis.plot(
                    line["seconds"],
                    line["valid_mrr"],
                    "o-",
                    ms=2.5,
                    lw=1,
                    color=colour,
                    label="" if i else name,
                )
        axis.set(xlabel="seconds of training", ylabel="validation MRR", xscale="log", ylim=(0, 1))
        axis.legend()
        return save_figure(fig, out / "trained_models")


def _by(table: pl.DataFrame, column: str) -> Iterator[tuple[Any, pl.DataFrame]]:
    for key, part in table.group_by(column, maintain_order=True):
        yield key[0], part


def _asked(graphs: list[str], models: list[str] | None) -> tuple[tuple[str, str], ...]:
    """Pairs of graph and model; by default all models on small graphs, and one model on the rest."""
    small = [*(name for name, kind in MODELS.items() if "small" in kind.presets), *RULES]
    for name in models or ():
        if name not in small:
            raise ValueError(f"`model` must be one of {', '.join(small)}, got {name!r}.")
    return tuple((graph, model) for graph in graphs for model in models or (small if graph in EACH else FEW))


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="OWKG_DATA", help="Folder of the graphs; default OWKG_DATA.")
    ] = None,
    graph: Annotated[
        list[Graph] | None, typer.Option(help="Name of a graph; repeatable. Default: all.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a model; repeatable. Default: every model on Nations, UMLS and Kinships, and "
            "ComplEx and rules on the rest."
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of runs of each graph and model, from seed 0.")
    ] = 3,
    out: Out = Path("out"),
    quick: Quick = False,
) -> None:
    """Trains models on small benchmarks and prints mean and standard deviation over seeds."""
    writable_folder(out)
    known = [name for name in GRAPHS if name != FAMILIES] if data else [FAMILIES]
    chosen = [str(one) for one in dict.fromkeys(graph or (["nations"] if quick and data else known))]
    asked = _asked(chosen, FEW[:1] if quick and not model else model)
    runs = out / "runs" / ("quick" if quick else "whole")
    rows, paths = run(Config(asked, data, runs, seeds, most_epochs=20 if quick else None))
    table = overview(rows)
    save_table(rows, out / "trained_models_runs.csv")
    save_table(table, out / "trained_models.csv")
    cells = [
        [row["graph"], row["model"]]
        + [f"{row[f'{name}_mean']:.3f}" for name in METRICS]
        + ["" if row["mrr_sd"] is None else f"{row['mrr_sd']:.3f}"]
        + [f"{row['seconds_mean']:.0f}"]
        for row in table.to_dicts()
    ]
    printed(f"Mean of {seeds} seeds", ["graph", "model", *METRICS, "sd of mrr", "seconds"], cells)
    if quick:  # a few epochs of one model do not make a figure
        return
    # One model: the one that is trained on all graphs, or the only one.
    drawn = min(paths["model"].unique(), key=lambda name: (name != FEW[0], name))
    draw(paths.filter(model=drawn), out)


if __name__ == "__main__":
    run_script(main)
