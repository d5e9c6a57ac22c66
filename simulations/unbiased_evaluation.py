"""Unbiased sampled evaluation, compared with full evaluation and with sampled negatives at the same cost.

A model is ranked in full once. Then many seeds of `owkg.evaluation.sampled` are replayed from the lists of
candidates that score higher. The table has bias, error, how often the interval of the sampling error alone
contains the metric of full evaluation, and how often the interval of both errors does when queries are drawn
with replacement. At the same number of scores a task, it also has three baselines: uniform negatives as they
are; ranks scaled up to all candidates; and the most likely distribution of ranks (expectation-maximisation).

    python simulations/unbiased_evaluation.py --run runs/complex --kg data/fb15k237 --seeds 10000 --out out
    python simulations/unbiased_evaluation.py --quick --out out

Without --run, a model is trained on a small open world of families. Baselines: Krichene and Rendle 2020, On
Sampled Metrics for Item Recommendation; Li et al. 2023, Towards Reliable Item Sampling for Recommendation
Evaluation.
"""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer
from jaxtyping import Float, Int
from scipy import stats

from owkg.errors import ArgumentError
from owkg.evaluation.correction import Clocks, Weight, block_edges, corrections, reach_chances, weights_named
from owkg.evaluation.estimate import _batches, _summary
from owkg.evaluation.typical import TypicalCandidates, typical_candidates
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph, joined_splits, known_answers
from owkg.kg.known import answer_ranges
from owkg.kg.triples import query_ids
from owkg.models import Trained, score_all
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, printed
from owkg.train import train, training
from owkg.train.scorer import of_run
from simulations.script import Out, Quick, Seed, run_script, save_table
from simulations.trained_models import families

METRICS = ("mrr", "hits@1")
_BLOCK = 256
_ITERATIONS = 100


class Lists(NamedTuple):
    """Ranking tasks of one side, by relation and query, with the candidates that score higher.

    Attributes:
        rank: rank among typical candidates, [tasks].
        query, batch: number of the query and of the batch, [tasks].
        others: number of non-typical candidates that score higher, [tasks].
        ids: ids of these candidates, one task after another.
        typical: number of typical candidates, [tasks].
    """

    rank: Float[np.ndarray, "tasks"]
    query: Int[np.ndarray, "tasks"]
    batch: Int[np.ndarray, "tasks"]
    others: Int[np.ndarray, "tasks"]
    ids: Int[np.ndarray, "ids"]
    typical: Int[np.ndarray, "tasks"]


def lists_of(trained: Trained, graph: KnowledgeGraph, typical: TypicalCandidates, side: str) -> Lists:
    """Full filtered evaluation of the test triples of one side, with ties counted for the answer."""
    facts, triples = joined_splits(graph, list(graph.splits)), graph.splits["test"]
    entity, relation, _ = query_ids(triples, side)
    entity, relation, answer = query_ids(triples[np.lexsort((entity, relation))], side)
    known = known_answers(facts, side, **graph.sizes)
    start, stop = answer_ranges(known, entity, relation)
    trained = trained.encoded()
    rank, size, ids = np.ones(len(answer)), np.zeros(len(answer), np.int64), []
    others = np.zeros(len(answer), np.int64)
    for begin in range(0, len(answer), _BLOCK):
        rows = np.arange(begin, min(begin + _BLOCK, len(answer)))
        filled = np.resize(rows, _BLOCK)
        scores = np.array(score_all(trained, entity[filled], relation[filled], side))[: len(rows)]
        above = scores > scores[np.arange(len(rows)), answer[rows]][:, None]
        for i, row in enumerate(rows):
            above[i, known.answers[start[row] : stop[row]]] = False
            inside = typical.of(int(relation[row]), side)
            rank[row] += above[i, inside].sum()
            size[row] = len(inside)
            above[i, inside] = False
        others[rows] = above.sum(1)
        ids.append(np.nonzero(above)[1].astype(np.int32))
    new = np.append(True, (np.diff(relation) != 0) | (np.diff(entity) != 0))
    begins = np.flatnonzero(new)
    batch = _batches(begins, len(answer))
    return Lists(rank, np.cumsum(new) - 1, batch, others, np.concatenate(ids), size)


def replayed(
    sides: list[Lists], chances: list[np.ndarray], weights: list[Weight], size: int, rng: np.random.Generator
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], float]:
    """(summary by metric, summary for queries drawn with replacement, share of non-typical scores)."""
    edges = block_edges(size)
    parts: list[list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = [[] for _ in weights]
    looked = 0.0
    for own, chance in zip(sides, chances, strict=True):
        halves = []
        for _ in range(2):
            place, clock = _first(own, size, rng)
            reach = (chance > rng.random(len(own.rank))[:, None]).sum(1)
            block = np.searchsorted(edges[1:], np.minimum(place, size - 1), "right")
            found = (place < size) & (block < reach)
            end = np.where(found, block + 1, reach)
            looked += float(edges[end].sum()) / size
            block = np.where(found, block, 0)
            hit = {w.hits: np.where(found & (own.rank == w.hits), block, -1) for w in weights if w.hits}
            nothing = np.full(len(block), np.inf)
            clocks = Clocks(np.where(found, clock, np.inf), nothing, block, np.zeros_like(block), hit)
            halves.append(
                [w.at(own.rank) - corrections(w, own.rank, clocks, chance, "optimistic") for w in weights]
            )
        for m, part in enumerate(parts):
            part.append((own.query, own.batch, np.array(halves)[:, m]))
    tasks = sum(len(own.rank) for own in sides)
    drawn = [_drawn(query, rng) for query, *_ in parts[0]]
    again = [
        [(copy, batch[at], halves[:, at]) for (at, copy), (_, batch, halves) in zip(drawn, part, strict=True)]
        for part in parts
    ]
    return [_summary(part, 0.95) for part in parts], [_summary(part, 0.95) for part in again], looked / tasks


def _drawn(query: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(tasks of queries drawn with replacement, as many as there are; which copy each task belongs to)."""
    begin, size = np.searchsorted(query, np.arange(query[-1] + 1)), np.bincount(query)
    chosen = np.sort(rng.integers(len(size), size=len(size)))
    copy = np.repeat(np.arange(len(chosen)), size[chosen])
    within = np.arange(len(copy)) - np.repeat(np.cumsum(size[chosen]) - size[chosen], size[chosen])
    return begin[chosen[copy]] + within, copy


def _first(own: Lists, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Place and clock of the first candidate that scores higher, in an order of each batch; `size`: none."""
    place, clock = np.full(len(own.rank), size), np.full(len(own.rank), np.inf)
    ends = np.cumsum(own.others)
    bounds = np.searchsorted(own.batch, np.arange(own.batch[-1] + 2))
    for low, high in pairwise(bounds):
        order = rng.permutation(np.arange(size, dtype=np.int32))
        begin = ends[low] - own.others[low]
        some = low + np.flatnonzero(own.others[low:high])
        if len(some):
            at = order[own.ids[begin : ends[high - 1]]]
            place[some] = np.minimum.reduceat(at, ends[some] - own.others[some] - begin)
        # Normalised sums of exponentials are sorted uniform numbers.
        sums = np.cumsum(rng.standard_exponential(size + 1))
        sums[:-1] /= sums[-1]
        sums[-1] = np.inf
        clock[low:high] = sums[place[low:high]]
    return place, clock


def run(
    sides: list[Lists], size: int, share: float, seeds: int, rng: np.random.Generator
) -> tuple[pl.DataFrame, float]:
    """(a row for each metric and method, share of all scores that is computed)."""
    weights = weights_named(METRICS)
    chances = [reach_chances(weights, own.rank, block_edges(size), share / 2) for own in sides]
    found, looked, bounds = [], [], []
    with progress("replaying", "seeds") as update:
        for seed in range(seeds):
            summaries, again, cost = replayed(sides, chances, weights, size, rng)
            bounds.append([[one["ci_low"], one["ci_high"]] for one in again])
            kept = ("value", "sampling_error", "query_error", "full_low", "full_high")
            found.append([[np.nan if one[k] is None else one[k] for k in kept] for one in summaries])
            looked.append(cost)
            update(seed + 1, seeds)
    values, intervals = np.array(found), np.array(bounds)
    cost = float(np.mean(looked)) + float(np.concatenate([own.typical for own in sides]).mean()) / size
    rank = np.concatenate([own.rank + own.others for own in sides])
    rows = []
    for m, weight in enumerate(weights):
        full = float(weight.at(rank).mean())
        value, error, of_queries, *alone = values[:, m].T
        apart = value - full
        total = np.sqrt(1 + apart.var() / (of_queries**2).mean())
        rows.append(
            {"metric": weight.name, "method": "unbiased", "full": full, "mean": float(value.mean())}
            | {"bias": float(apart.mean()), "bias_error": float(apart.std() / np.sqrt(seeds))}
            | {"rmse": float(np.sqrt((apart**2).mean())), "told": float(np.sqrt((error**2).mean()))}
            | {
                "coverage": float(((alone[0] <= full) & (full <= alone[1])).mean()),
                "total_ratio": float(total),
            }
            | {"interval_coverage": float(((intervals[:, m] - full) * [1, -1] <= 0).all(1).mean())}
        )
        for method, estimate in baselines(weight, rank, size, round(cost * size), rng).items():
            apart = estimate - full
            rows.append(
                {"metric": weight.name, "method": method, "full": full, "mean": float(estimate.mean())}
                | {"bias": float(apart.mean()), "bias_error": float(apart.std() / np.sqrt(len(apart)))}
                | {"rmse": float(np.sqrt((apart**2).mean()))}
            )
    return pl.DataFrame(rows, infer_schema_length=None), cost


def baselines(
    weight: Weight, rank: np.ndarray, size: int, negatives: int, rng: np.random.Generator, trials: int = 10
) -> dict[str, np.ndarray]:
    """Estimates from uniform negatives for some trials: as they are, ranks scaled up, and most likely."""
    grid = _grid(size)
    drawn = np.arange(negatives + 1)
    chance = stats.hypergeom.pmf(drawn[:, None], size - 1, grid[None] - 1, negatives)
    found: dict[str, list[float]] = {"negatives": [], "scaled rank": [], "most likely ranks": []}
    for _ in range(trials):
        ahead = rng.hypergeometric((rank - 1).astype(int), (size - rank).astype(int), negatives)
        found["negatives"].append(float(weight.at(1.0 + ahead).mean()))
        scaled = 1 + ahead * (size - 1) / negatives
        found["scaled rank"].append(float(weight.at(scaled).mean()))
        seen = np.bincount(ahead, minlength=negatives + 1) / len(ahead)
        some = seen > 0
        share = np.full(len(grid), 1 / len(grid))
        for _ in range(_ITERATIONS):
            share *= (seen[some] / np.maximum(chance[some] @ share, 1e-300)) @ chance[some]
        found["most likely ranks"].append(float(share @ weight.at(grid.astype(float))))
    return {name: np.array(values) for name, values in found.items()}


def _grid(size: int) -> np.ndarray:
    """Grid of ranks: all ranks up to 200, then ever fewer."""
    return np.unique(np.append(np.arange(1, min(200, size) + 1), np.geomspace(1, size, 600).astype(int)))


def main(
    run_folder: Annotated[
        Path | None,
        typer.Option("--run", metavar="RUN", help="Run folder written by owkg train. Needs --kg."),
    ] = None,
    kg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the graph that --run was trained on.")
    ] = None,
    share: Annotated[
        list[float] | None,
        typer.Option(help="Share of the non-typical scores to compute; repeatable. Default: 0.01 and 0.02."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=2, help="Number of seeds to replay.")] = 1000,
    seed: Seed = 0,
    out: Out = Path("out"),
    quick: Quick = False,
) -> None:
    """Compares unbiased sampled evaluation with full evaluation and with sampled negatives."""
    if (run_folder is None) != (kg is None):
        raise ArgumentError("kg", "and `run` must be given together, or both left out.")
    writable_folder(out)
    if run_folder is not None and kg is not None:
        scorer = of_run(run_folder, kg, "best", "error")
        graph, own = scorer.graph, scorer.trained
    else:
        graph, own = families(), _family_model()
    rng = np.random.default_rng(seed)
    typical = typical_candidates(joined_splits(graph, list(graph.splits)), **graph.sizes)
    sides = [lists_of(own, graph, typical, side) for side in ("head", "tail")]
    frames = []
    for one in share or [0.01, 0.02]:
        table, cost = run(sides, graph.num_entities, one, min(seeds, 50) if quick else seeds, rng)
        frames.append(table.select(pl.lit(one).alias("share"), pl.lit(cost).alias("cost"), pl.all()))
        line(f"share {one:g}: {cost:.1%} of all scores")
        cells = [
            ["-" if x is None else x if isinstance(x, str) else f"{x:.5f}" for x in row]
            for row in table.rows()
        ]
        printed("against full evaluation, ties for the answer", table.columns, cells)
    save_table(pl.concat(frames), out / "unbiased_evaluation.csv")


def _family_model() -> Trained:
    config = training("complex", dim=32, epochs=20)
    with tempfile.TemporaryDirectory() as folder:
        return train(families(), config, Path(folder) / "run").trained


if __name__ == "__main__":
    run_script(main)
