"""Example runs for judging a few answers: four systems on a small graph that knows half of the true answers.

The systems differ in strength and share some of their errors. The graph's test split knows about half of the
true answers of each query. `truth.qrels` has all of them, so that the truth can play the annotator:

    python simulations/example_campaign.py --out out
    cd out/campaign
    owkg pool a.run b.run c.run --kg graph --depth 10 --draw queries:60 --out pool
    cd ../..
    python simulations/example_campaign.py --out out --judge out/campaign/pool/sheet.tsv
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
import typer

from owkg.example import fill_in
from owkg.files.storage import writable_folder
from owkg.judge import qrels_from_graph, read_judgements, run_from_lists, write_judgements, write_run
from owkg.kg import KnowledgeGraph, write_labelled
from simulations.script import Out, Seed, run_script


@dataclass(frozen=True)
class Config:
    """Sizes of the world, the share of true answers that the test split knows, and the systems' strengths."""

    queries: int = 400
    answers: int = 300
    relations: int = 4
    known: float = 0.5
    strengths: tuple[float, float, float, float] = (1.4, 1.8, 2.2, 2.0)
    depth: int = 10


class Campaign(NamedTuple):
    """A graph with half of the answers, the runs of the systems, and all answers as judgements."""

    graph: KnowledgeGraph
    runs: dict[str, pl.DataFrame]
    truth: pl.DataFrame


def campaign(config: Config, seed: int) -> Campaign:
    """A world in which query i asks for the tails of entity i under relation i modulo 4."""
    rng = np.random.default_rng(seed)
    shape = (config.queries, config.answers)
    counts = np.minimum(1 + rng.geometric(0.25, config.queries), 15)
    is_true = np.argsort(rng.random(shape), axis=1).argsort(axis=1) < counts[:, None]
    is_known = is_true & (rng.random(shape) < config.known)
    is_known[np.arange(config.queries), is_true.argmax(1)] = True
    number = config.queries + config.answers
    entities = tuple(f"e{i:03}" for i in range(number))
    relations = tuple(f"r{i}" for i in range(config.relations))

    def facts(labels: np.ndarray) -> np.ndarray:
        query, answer = np.nonzero(labels)
        return np.stack([query, query % config.relations, config.queries + answer], axis=1).astype(np.int32)

    # Train also has facts of another relation, so that it names every entity.
    chain = np.stack([np.arange(number), np.full(number, config.relations), np.roll(np.arange(number), 1)], 1)
    splits = {"train": chain.astype(np.int32), "test": facts(is_known)}
    graph = KnowledgeGraph(entities, (*relations, "next"), splits)
    every = graph._replace(splits={"test": facts(is_true)})
    shared, difficulty = 0.6 * rng.normal(size=shape), 0.4 * rng.normal(size=(config.queries, 1))
    runs = {}
    for name, strength in zip("abcd", config.strengths, strict=True):
        scores = is_true * (strength + difficulty) + shared + 0.8 * rng.normal(size=shape)
        best = np.argsort(-scores, axis=1)[:, : 2 * config.depth]
        query = np.arange(config.queries)
        runs[name] = run_from_lists(
            name, "tail", query, query % config.relations, config.queries + best,
            np.take_along_axis(scores, best, 1), entities=entities, relations=graph.relations,
        )  # fmt: skip
    return Campaign(graph, runs, qrels_from_graph(every, "test", sides=["tail"]))


def main(
    out: Out = Path("out"),
    seed: Seed = 0,
    judge: Annotated[
        list[Path] | None, typer.Option(help="Sheet to fill in with the truth; nothing else is written then.")
    ] = None,
) -> None:
    """Writes a small graph, runs of four systems and all true answers; or fills in sheets with the truth."""
    folder = out / "campaign"
    if judge:
        truth = read_judgements(folder / "truth.qrels")
        for sheet in judge:
            print(f"judged {sheet} by the truth: {fill_in(sheet, truth):,} answers are true")
        return
    writable_folder(folder)
    made = campaign(Config(), seed)
    write_labelled(made.graph, folder / "graph")
    for name, run in made.runs.items():
        write_run(run, folder / f"{name}.run")
    write_judgements(made.truth, folder / "truth.qrels")
    known = len(made.graph.splits["test"])
    print(f"wrote {folder}: {known:,} of {len(made.truth):,} true answers are known")


if __name__ == "__main__":
    run_script(main)
