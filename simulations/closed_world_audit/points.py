"""Checkpoints on tests of every sparsity: sparse metric, implied full metric, and true full metric."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from owkg.auditing import Answers, implied
from owkg.auditing.implied import missing_answers
from owkg.auditing.order import Observed, full_metrics
from owkg.kg import num_candidates
from owkg.rank_weights import RankWeight, rank_weight, tie_expectation
from owkg.simulate import FullTest, thin
from simulations.implied_full_test import CURVES
from simulations.open_world.query_values import joined
from simulations.open_world.record import Record
from simulations.open_world.world import ClosedWorld, read_world
from simulations.script import data_folder

METRICS = ("mrr", "hits@1", "hits@10", "p-mrr@1/2")
AVERAGES = ("answers", "queries")
SPARSITIES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
# Half width of the box of correlations around the true one.
WIDTH = 0.05
# Variance of a value over queries, tiny because the truth is about the same queries: no sampling error.
_ALL_QUERIES = 1e-10


def points(
    name: str,
    worlds: list[tuple[ClosedWorld, list[Record]]],
    labels: tuple[str, ...],
    seed: int = 0,
    *,
    chosen: bool = True,
) -> pl.DataFrame:
    """Table of every checkpoint on tests of every sparsity: sparse, implied full and true full metric.

    Args:
        name: name of the setting.
        worlds: worlds of the records.
        labels: labels of the records.
        seed: seed of the missing facts.
        chosen: whether facts also go missing by the choice of a model: the rows with a box of correlations,
            for which the table of errors is tested.
    """
    parts = []
    for world, recorded in worlds:
        full = joined(world, recorded)
        model = np.repeat(labels, [len(one.step) for one in recorded])
        step = np.concatenate([one.step for one in recorded])
        chooser = recorded[0].score[-1].astype(float)
        for sparsity in SPARSITIES:
            for way, present in _present(world, chooser, sparsity, seed):
                if way == "chosen" and not chosen:
                    continue
                rows = _measured(world, full, present, boxed=way == "chosen")
                same = {"setting": name, "density": world.density, "asked": sparsity, "missing": way}
                parts.append(
                    rows.with_columns(
                        pl.Series("model", model[rows["checkpoint"].to_numpy()]),
                        pl.Series("step", step[rows["checkpoint"].to_numpy()]),
                        *(pl.lit(value).alias(key) for key, value in same.items()),
                    )
                )
    return pl.concat(parts, how="diagonal")


def _present(
    world: ClosedWorld, chooser: np.ndarray, sparsity: float, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Tests with facts missing at random, and tests whose missing facts a noisy model chose."""
    rng = np.random.default_rng([seed, round(sparsity * 100)])
    yield "independent", rng.uniform(size=len(world.query)) >= sparsity
    # The model's worst answers of each query, with enough noise that its choice amounts to a correlation.
    place = np.lexsort((chooser, world.query))
    rank = np.empty(len(place))
    rank[place] = np.arange(len(place))
    counts = np.bincount(world.query)
    within = (rank - (np.cumsum(counts) - counts)[world.query] + 0.5) / counts[world.query]
    noisy = within + 1.5 * rng.uniform(size=len(within))
    yield "chosen", noisy >= np.quantile(noisy, sparsity)


def _measured(world: ClosedWorld, full: FullTest, present: np.ndarray, *, boxed: bool) -> pl.DataFrame:
    """Row of each checkpoint and metric, over the queries that keep an answer."""
    low, high = thin(full, present)
    query = world.query
    asked = np.bincount(query[present], minlength=world.num_queries) > 0
    whole = asked[query]
    counts = np.bincount(query[present], minlength=world.num_queries)[asked]
    sizes = np.bincount(query[whole], minlength=world.num_queries)[asked]
    found = full.optimistic == 1
    missing = whole & ~present
    sparsity = missing.sum() / whole.sum()
    l1, l2 = found[:, missing].mean(1), found[:, present].mean(1)
    strength = found[:, whole].mean(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = (l1 - l2) * np.sqrt(sparsity * (1 - sparsity) / (strength * (1 - strength)))
    entities = (
        int(
            np.median(num_candidates(world.known, world.triples)[whole])
            + np.median(sizes[np.repeat(np.arange(len(sizes)), sizes)])
        )
        - 1
    )
    numbers, queries = np.unique(counts, return_counts=True)
    parts = []
    for name in METRICS:
        weight: RankWeight = rank_weight(name)
        sparse_of = tie_expectation(weight, low, high)
        full_of = tie_expectation(weight, full.optimistic[:, whole], full.pessimistic[:, whole])
        for average in AVERAGES:
            if average == "answers":
                share = queries * numbers
                sparse, true = sparse_of.mean(1), full_of.mean(1)
            else:
                share = queries
                sparse = _by_query(sparse_of, counts).mean(1)
                true = _by_query(full_of, sizes).mean(1)
            answers = Answers(numbers, share / share.sum(), entities, queries)
            told = implied(name, sparse, answers, sparsity=float(sparsity))
            known = {"metric": name, "average": average, "sparsity": float(sparsity), "queries": len(counts)}
            known |= {"lost": float(missing_answers(answers, float(sparsity)))}
            columns = {"sparse": sparse, "full": true, "implied": told.full, "strength": told.strength}
            columns |= {"correlation": rho}
            columns |= {"checkpoint": np.arange(len(sparse))}
            if boxed:
                columns |= _boxed(name, sparse, answers, float(sparsity), rho)
            own = pl.DataFrame(columns)
            parts.append(own.with_columns(pl.lit(value).alias(key) for key, value in known.items()))
    return pl.concat(parts)


def _boxed(
    name: str, values: np.ndarray, answers: Answers, sparsity: float, rho: np.ndarray
) -> dict[str, np.ndarray]:
    """Smallest and largest implied full metric over correlations around each checkpoint's true one.

    Computed as in an audit of very many queries: if the value is impossible under the whole box, none is
    implied.
    """
    grid = np.round(np.linspace(-0.7, 0.7, 29), 3)
    seen = Observed(values, _ALL_QUERIES * np.eye(len(values)), answers)
    full = full_metrics(name, rank_weight(name), seen, np.array([sparsity]), grid).full[:, 0]
    box = np.array([-WIDTH, 0, WIDTH])
    told = np.array([np.interp(own + box, grid, row) for own, row in zip(rho, full, strict=True)])
    possible = np.isfinite(told).any(1)
    low, high = (
        np.where(possible, end, np.nan) for end in (np.fmin.reduce(told, 1), np.fmax.reduce(told, 1))
    )
    return {
        "box_low": low,
        "box_high": high,
        "box_middle": told[:, 1],
        "refuted": np.isfinite(rho) & ~possible,
    }


def _by_query(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    first = np.cumsum(counts) - counts
    return np.add.reduceat(values, first, axis=1) / counts


def published() -> pl.DataFrame:
    """Checkpoints of the committed curves on the published worlds, as in `points`; MRR over queries."""
    table = pl.read_csv(CURVES, glob=False)
    folder = data_folder("family_tree_published")
    parts = []
    for place in sorted(path for path in folder.iterdir() if path.is_dir()) if folder else []:
        world = read_world(place)
        present = world.present["sparse"]
        known = np.bincount(world.query[present], minlength=world.num_queries)
        counts, queries = np.unique(known, return_counts=True)
        sparsity = float(1 - present.mean())
        answers = Answers(counts, queries / queries.sum(), world.graph.num_entities, queries)
        own = table.filter(pl.col("density") == world.density)
        told = implied("mrr", own["sparse"].to_numpy(), answers, sparsity=sparsity).full
        parts.append(
            own.select(
                pl.lit("published").alias("group"),
                pl.lit("published").alias("setting"),
                "density",
                pl.lit(round(sparsity, 2)).alias("asked"),
                pl.lit("independent").alias("missing"),
                pl.col("configuration").alias("model"),
                "full",
                "sparse",
                pl.Series("implied", told),
                pl.lit("mrr").alias("metric"),
                pl.lit("queries").alias("average"),
                pl.lit(sparsity).alias("sparsity"),
                pl.lit(float(missing_answers(answers, sparsity))).alias("lost"),
            )
        )
    return pl.concat(parts) if parts else pl.DataFrame()
