"""How far implied full-test metrics are from the true ones, on closed worlds, and what of an audit may be believed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.auditing import Answers, implied
from owkg.kg import num_candidates
from owkg.openworld import feasible_correlation
from owkg.rank_weights import RankWeight, rank_weight, tie_expectation
from owkg.simulate import FullTest, thin
from owkg.storage import writable_folder
from owkg.terminal.progress import progress
from owkg.terminal.tables import printed
from simulations.open_world.experiment import records
from simulations.open_world.presets import Configuration
from simulations.open_world.query_values import joined
from simulations.open_world.record import Record
from simulations.open_world.world import ClosedWorld, read_worlds
from simulations.script import Out, Quick, command_line, run_package, save_table

METRICS = ("mrr", "hits@1", "hits@10", "p-mrr@1/2")
AVERAGES = ("answers", "queries")
SPARSITIES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
TABLE = Path(__file__).parents[1] / "owkg" / "auditing" / "calibration.csv"


class Setting(NamedTuple):
    """Closed worlds and the models that are trained on them.

    Attributes:
        trees, size: families, and people of each at most.
        min_answers: of a query.
        densities: of the facts that train or are known.
        seed: of families, samples and training.
        labels: of the models.
    """

    trees: int
    size: int
    min_answers: int
    densities: tuple[float, ...]
    seed: int
    labels: tuple[str, ...]


_FIRST, _OTHER = ("ComplEx 32", "DistMult 32", "RotatE 32", "TransE 32"), ("ComplEx 8", "pRotatE 32", "BetaE 16")
CALIBRATION = {
    "small": Setting(8, 80, 1, (0.95, 0.6), 1, _FIRST),
    "large": Setting(12, 150, 4, (0.85, 0.5), 2, _FIRST),
}
"""Worlds that the model error is fitted on."""
CHECK = {
    "other": Setting(10, 110, 1, (0.75,), 7, _OTHER),
    "wide": Setting(6, 200, 8, (0.7,), 8, (*_OTHER, "RotatE 32")),
}
"""Worlds that it has not seen: other families, densities and models."""


def configurations(labels: tuple[str, ...], quick: bool) -> tuple[Configuration, ...]:
    """Small models, looked at along the way."""
    sampled = {
        "training_loop": "negatives",
        "loss": "logistic",
        "optimiser": "adam",
        "batch_size": 512,
        "subsampling": True,
        "filtered_negatives": True,
        "num_negatives": 32,
        "learning_rate": 1e-2,
        "margin": 6.0,
    }
    whole = {"training_loop": "1vsall", "loss": "cross_entropy", "n3": 0.0, "batch_size": 512}
    beta = whole | {"optimiser": "adam", "learning_rate": 3e-3, "hidden": 64, "dim": 16, "margin": 6.0}
    given: dict[str, tuple[str, dict[str, Any], int]] = {
        "ComplEx 32": ("complex", whole | {"dim": 32, "learning_rate": 0.1}, 400),
        "ComplEx 8": ("complex", whole | {"dim": 8, "learning_rate": 0.1}, 600),
        "DistMult 32": ("distmult", whole | {"dim": 32, "learning_rate": 0.1}, 400),
        "RotatE 32": ("rotate", sampled | {"dim": 32}, 1000),
        "pRotatE 32": ("protate", sampled | {"dim": 32, "learning_rate": 3e-3}, 1000),
        "TransE 32": ("transe", sampled | {"dim": 32}, 1000),
        "BetaE 16": ("betae", beta, 800),
    }
    found = []
    for label in labels:
        model, settings, steps = given[label]
        steps = steps // 4 if quick else steps
        looks = np.unique(np.geomspace(steps / 20, steps, 4 if quick else 10).round().astype(int))
        found.append(Configuration(label, model, settings, tuple(looks.tolist())))
    return tuple(found)


def trained(name: str, setting: Setting, out: Path, *, quick: bool) -> list[tuple[ClosedWorld, list[Record]]]:
    """The worlds of a setting with the records of its models; what is there is read."""
    from family_tree import closed_graph, ontology, sample_people
    from owkg.sampling import sample, write_worlds

    folder = out / "worlds" / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        people = sample_people(num_trees=setting.trees, max_tree_size=setting.size, seed=setting.seed)
        closed = closed_graph(people, ontology("published"))
        asked = {"num_queries": 800, "min_answers": setting.min_answers, "fewer": True}
        drawn = (
            sample(closed, density=d, train_rate=0.6, seed=setting.seed, **asked) for d in setting.densities
        )
        write_worlds(drawn, folder)
    worlds = read_worlds(folder)
    with progress(f"training on {name}", "steps") as update:
        found = records(
            worlds,
            configurations(setting.labels, quick),
            out / "runs" / name,
            seed=setting.seed,
            on_progress=lambda one, world, done, total, note: update(
                done, total, f"{one.label}, d = {world.density:g}: {note}"
            ),
        )
    return list(zip(worlds, found, strict=True))


def points(name: str, worlds: list[tuple[ClosedWorld, list[Record]]], labels: tuple[str, ...], seed: int = 0) -> pl.DataFrame:
    """Every checkpoint on tests of every sparsity: the sparse metric, the implied full one, the true one.

    Args:
        name: of the setting.
        worlds: with records.
        labels: of the records.
        seed: of the missing facts.
    """
    parts = []
    for world, recorded in worlds:
        full = joined(world, recorded)
        model = np.repeat(labels, [len(one.step) for one in recorded])
        step = np.concatenate([one.step for one in recorded])
        chooser = recorded[0].score[-1].astype(float)
        for sparsity in SPARSITIES:
            for way, present in _present(world, chooser, sparsity, seed):
                rows = _measured(world, full, present)
                same = {"setting": name, "density": world.density, "asked": sparsity, "missing": way}
                parts.append(
                    rows.with_columns(
                        pl.Series("model", model[rows["checkpoint"].to_numpy()]),
                        pl.Series("step", step[rows["checkpoint"].to_numpy()]),
                        *(pl.lit(value).alias(key) for key, value in same.items()),
                    )
                )
    return pl.concat(parts)


def _present(
    world: ClosedWorld, chooser: np.ndarray, sparsity: float, seed: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Tests from which facts are missing at random, and chosen by a model of some noise."""
    rng = np.random.default_rng([seed, round(sparsity * 100)])
    yield "independent", rng.uniform(size=len(world.query)) >= sparsity
    # The model's worst answers of each query, among so much noise that its choice is a correlation, not a rule.
    place = np.lexsort((chooser, world.query))
    rank = np.empty(len(place))
    rank[place] = np.arange(len(place))
    counts = np.bincount(world.query)
    within = (rank - (np.cumsum(counts) - counts)[world.query] + 0.5) / counts[world.query]
    noisy = within + 1.5 * rng.uniform(size=len(within))
    yield "chosen", noisy >= np.quantile(noisy, sparsity)


def _measured(world: ClosedWorld, full: FullTest, present: np.ndarray) -> pl.DataFrame:
    """Of each checkpoint and metric, on the queries that keep an answer."""
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
    entities = int(np.median(num_candidates(world.known, world.triples)[whole]) + np.median(sizes[np.repeat(np.arange(len(sizes)), sizes)])) - 1
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
            answers = Answers(numbers, share / share.sum(), entities)
            told = implied(name, sparse, answers, sparsity=float(sparsity))
            known = {"metric": name, "average": average, "sparsity": float(sparsity), "queries": len(counts)}
            columns = {"sparse": sparse, "full": true, "implied": told.full, "strength": told.strength}
            columns |= {"correlation": rho}
            with_rho = _implied_each(name, sparse, answers, float(sparsity), rho)
            own = pl.DataFrame(columns | {"checkpoint": np.arange(len(sparse)), "implied_with_correlation": with_rho})
            parts.append(own.with_columns(pl.lit(value).alias(key) for key, value in known.items()))
    return pl.concat(parts)


def _implied_each(name: str, values: np.ndarray, answers: Answers, sparsity: float, rho: np.ndarray) -> np.ndarray:
    """Implied full metrics, each of its own correlation."""
    grid = np.round(np.linspace(-0.6, 0.6, 25), 3)
    found = implied(name, values, answers, sparsity=sparsity, correlation=grid).full
    told = np.full(len(values), np.nan)
    for i, row in enumerate(found):
        good = np.isfinite(row)
        if good.sum() > 1 and grid[good][0] <= rho[i] <= grid[good][-1]:
            told[i] = np.interp(rho[i], grid[good], row[good])
    return told


def _by_query(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    first = np.cumsum(counts) - counts
    return np.add.reduceat(values, first, axis=1) / counts
