"""Unbiased sampled evaluation with 2.5 million entities, compared with full ranking of the same triples.

The graph is random, with the size of ogbl-wikikg2: 2.5 million entities, 535 relations, 16 million training
triples by a power law. The model is planted: a test tail is the best of 50,000 random candidates. Both
evaluations are measured on test triples of some relations, on both sides. The time for the 598,543 test
triples of ogbl-wikikg2 is projected from the times for a quarter of the ranked triples and for all of them.

    python benchmarks/sampled_evaluation.py --out out
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import jax
import numpy as np
import polars as pl
import typer

import owkg
from benchmarks.timing import machine, once, peak_gib
from owkg.evaluation import ranks, sampled
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph
from owkg.models import Trained, model
from owkg.terminal.tables import line, printed
from simulations.script import Out, Quick, run_script, save_table

_ENTITIES, _RELATIONS, _TRAIN, _TEST = 2_500_604, 535, 16_109_182, 598_543
_METRICS = ["mrr", "hits@10"]
# Number of relations of the ranked test triples: each has about as many triples as in the whole test set.
_RANKED_RELATIONS = np.array([30, 130, 290, 430])
# Number of candidates among which a test tail is the best.
_BEST_OF = 50_000


def planted(entities: int, train: int, test: int, seed: int = 0) -> tuple[Trained, KnowledgeGraph]:
    """(model with its parameters, a graph whose test triples it ranks well)."""
    rng = np.random.default_rng(seed)
    scorer = model("distmult", dim=128)
    params, _ = scorer.init(jax.random.key(seed), entities, _RELATIONS)
    entity, relation = np.asarray(params["entity"]), np.asarray(params["relation"])

    def drawn(count: int) -> np.ndarray:
        ends = (entities * rng.random((2, count)) ** 2.5).astype(np.int32)
        through = (_RELATIONS * rng.random(count) ** 2).astype(np.int32)
        return np.stack([ends[0], through, ends[1]], axis=1)

    tested = drawn(test)
    tested[:, 1] = rng.choice(_RANKED_RELATIONS, test)
    some = rng.integers(0, entities, _BEST_OF)
    for row in tested:
        row[2] = some[np.argmax(entity[some] @ (entity[row[0]] * relation[row[1]]))]
    labels = tuple(map(str, range(entities)))
    graph = KnowledgeGraph(labels, labels[:_RELATIONS], {"train": drawn(train), "test": tested})
    return Trained(scorer, params), graph


def main(
    tests: Annotated[int, typer.Option(min=10, help="Number of test triples to rank.")] = 4_000,
    out: Out = Path("out"),
    quick: Quick = False,
) -> None:
    """Times sampled and full evaluation of the same test triples, and projects both."""
    writable_folder(out)
    line(machine())
    entities, train = (50_000, 300_000) if quick else (_ENTITIES, _TRAIN)
    trained, graph = planted(entities, train, tests)
    quarter = graph._replace(splits=graph.splits | {"test": graph.splits["test"][: tests // 4]})
    rows = []
    for share in (0.005, 0.02):
        found: list[Any] = []
        evaluation = partial(_sampled, found, trained, share)
        row = {"evaluation": f"sampled, share {share:g}"} | timed(evaluation, quarter, graph)
        row["scores"] = found[-1].typical_share + found[-1].sampled_share
        for of in found[-1].values.filter(side="both").iter_rows(named=True):
            row |= {of["metric"]: of["value"], f"error_of_{of['metric']}": of["sampling_error"]}
        rows.append(row)
        line(f"{row['evaluation']}: {row['seconds']:.0f} s")
    found = []
    row = {"evaluation": "full"}
    row |= timed(lambda graph: found.append(ranks(trained, graph, split="test")), quarter, graph)
    values = owkg.evaluate(found[-1], _METRICS).filter(side="both", ties="realistic")
    rows.append(row | {"scores": 1.0} | dict(values.select("metric", "value").rows()))
    table = pl.DataFrame(rows, infer_schema_length=None)
    cells = [
        ["-" if x is None else x if isinstance(x, str) else f"{x:.4g}" for x in row] for row in table.rows()
    ]
    printed(f"{tests:,} test triples, {entities:,} entities", table.columns, cells)
    shown = "; ".join(f"{row['evaluation']} {row['projected_hours']:.2f} h" for row in rows)
    line(f"projected to {_TEST:,} test triples: {shown}")
    line(f"peak memory: {peak_gib():.1f} GiB")
    save_table(table, out / "benchmark_sampled_evaluation.csv")


def timed(
    evaluation: Callable[[KnowledgeGraph], Any], quarter: KnowledgeGraph, graph: KnowledgeGraph
) -> dict[str, float]:
    """Seconds of an evaluation, its fixed seconds, and the projected hours of the whole test."""
    evaluation(quarter)  # compiles
    few, all_ = once(partial(evaluation, quarter)), once(partial(evaluation, graph))
    tests = len(graph.splits["test"])
    each = max(0.0, all_ - few) / (tests - len(quarter.splits["test"]))
    fixed = max(0.0, all_ - each * tests)
    return {"seconds": all_, "fixed_seconds": fixed, "projected_hours": (fixed + each * _TEST) / 3600}


def _sampled(found: list[Any], trained: Trained, share: float, graph: KnowledgeGraph) -> None:
    found.append(sampled(trained, graph, _METRICS, share=share, ties="realistic"))


if __name__ == "__main__":
    run_script(main)
