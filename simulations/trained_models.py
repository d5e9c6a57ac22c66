"""What ComplEx reaches on small benchmarks, trained here: mean and standard deviation over seeds.

Settings are those below, the same for every seed; the validation set chooses the step, and the test set is
ranked once, against all entities, on both sides, filtered by train, valid and test. A graph is a folder of
that name in --data. Runs are kept in OUT/runs: cut short, the same command goes on.

    python simulations/trained_models.py --data data --graph nations --graph umls --out out

Without --data, where OWKG_DATA is not set, a small open world of families takes their place.
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
from owkg.plots.figure import COLOURS, figure, save_figure
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, run_script, save_table

FAMILIES = "families"
METRICS = ("mrr", "hits@1", "hits@10")
# By graph, in place of the defaults of `owkg train --model complex`.
SETTINGS: dict[str, dict[str, Any]] = {
    FAMILIES: {"dim": 64, "epochs": 50},
    "nations": {"dim": 256},
    "umls": {"dim": 256},
    "kinships": {"dim": 256},
    "codex-s": {"dim": 256, "epochs": 40, "valid_every": 5},
    "wn18rr": {"dim": 128, "batch_size": 500, "n3": 0.1, "epochs": 15, "valid_every": 5},
}
Graph = StrEnum("Graph", list(SETTINGS))


@dataclass(frozen=True)
class Config:
    """What is trained, where it is kept, and for how long at most."""

    graphs: tuple[str, ...]
    data: Path | None
    runs: Path
    seeds: int = 3
    most_epochs: int | None = None


def run(config: Config) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(a row a run, the training paths)."""
    rows, paths = [], []
    for name in config.graphs:
        graph = families() if name == FAMILIES else _read(config.data, name)
        for seed in range(config.seeds):
            row, path = _trained(name, graph, seed, config)
            print("  ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
            rows.append(row)
            paths.append(
                path.select("epoch", "seconds", "valid_mrr").with_columns(graph=pl.lit(name), seed=seed)
            )
    return pl.DataFrame(rows), pl.concat(paths)


def families() -> KnowledgeGraph:
    """An open world of 240 people: of their facts a quarter is missing, and half of the rest trains."""
    closed = closed_graph(sample_people(num_trees=4, max_tree_size=60), ontology("published"))
    sizes: dict[str, Any] = {"density": 0.75, "train_rate": 0.5, "valid_rate": 0.1, "min_answers": 1}
    world = sampling.sample(closed, num_queries=None, seed=0, **sizes)
    splits = {"train": world.train, "valid": world.valid, "test": world.test_sparse}
    return KnowledgeGraph(world.entities, world.relations, splits)


def overview(rows: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard deviation over seeds, a row a graph."""
    values = [column for column in rows.columns if column not in ("graph", "seed")]
    return rows.group_by("graph", maintain_order=True).agg(
        pl.len().alias("seeds"),
        *(pl.col(name).mean().alias(f"{name}_mean") for name in values),
        *(pl.col(name).std().alias(f"{name}_sd") for name in values if name in METRICS),
    )


def _read(data: Path | None, name: str) -> KnowledgeGraph:
    if data is None:
        raise ValueError(f"`data` must name the folder that holds {name}, or OWKG_DATA be set.")
    return quietly_read(data / name)


def quietly_read(folder: Path) -> KnowledgeGraph:
    """The graph of a benchmark, of whose repeated triples nobody needs to be told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # repeated triples, labels that no triple has
        return read_graph(folder)


def trained_in(folder: Path, graph: KnowledgeGraph, how: training.Training, label: str) -> training.Run:
    """The run in `folder`, which goes on if it is there."""
    with progress(label, "steps") as update:
        return training.train(graph, how, folder, resume=folder.is_dir(), on_progress=update)


def _trained(name: str, graph: KnowledgeGraph, seed: int, config: Config) -> tuple[dict, pl.DataFrame]:
    """(the row, the training path) of a run, trained unless it is there."""
    settings = dict(SETTINGS[name])
    if config.most_epochs is not None:
        settings |= {"epochs": min(config.most_epochs, settings.get("epochs", config.most_epochs))}
    how = training.training("complex", seed=seed, **settings)
    done = trained_in(config.runs / name / str(seed), graph, how, f"{name}, seed {seed}")
    ranks = evaluation.ranks(done.trained, graph)
    wanted = [metrics.metric(metric) for metric in METRICS]
    found = metrics.evaluate(metrics.tasks_of(ranks)[0], wanted, ties=[metrics.Ties.REALISTIC], level=None)
    values = {metric: found[metrics.Ties.REALISTIC][metric].value for metric in METRICS}
    best = done.path.filter(pl.col("step") == done.step)
    row = {"graph": name, "seed": seed} | values
    row |= {"valid_mrr": best["valid_mrr"].item(), "best_epoch": best["epoch"].item()}
    return row | {"seconds": done.path["seconds"].max()}, done.path


def draw(paths: pl.DataFrame, out: Path) -> list[Path]:
    """Validation MRR against the time of training, a colour a graph, a line a seed."""
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


def main(
    data: Annotated[Path | None, typer.Option(envvar="OWKG_DATA", help="Folder of the graphs.")] = None,
    graph: Annotated[list[Graph] | None, typer.Option(help="Repeat for several. Without: all.")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs a graph, from seed 0 on.")] = 3,
    out: Out = Path("out"),
    quick: Quick = False,
) -> None:
    """What ComplEx reaches on small benchmarks, trained here: mean and deviation over seeds."""
    writable_folder(out)
    known = SETTINGS if data else (FAMILIES,)
    chosen = tuple(dict.fromkeys(map(str, graph or (("nations",) if quick and data else known))))
    epochs = 20 if quick else None
    runs = out / "runs" / ("quick" if quick else "whole")
    rows, paths = run(Config(chosen, data, runs, seeds, most_epochs=epochs))
    table = overview(rows)
    save_table(rows, out / "trained_models_runs.csv")
    save_table(table, out / "trained_models.csv")
    for row in table.to_dicts():
        cells = (f"{name} {row[f'{name}_mean']:.3f}" for name in METRICS)
        spread = "" if row["mrr_sd"] is None else f" (mrr deviates by {row['mrr_sd']:.3f})"
        seconds = f"{row['seconds_mean']:.0f} s each"
        print(f"{row['graph']}, {row['seeds']} seeds: {', '.join(cells)}{spread}, {seconds}")
    draw(paths, out)


if __name__ == "__main__":
    run_script(main)
