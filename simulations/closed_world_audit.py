"""How far implied full-test metrics are from the true ones on closed worlds: what of an audit to believe."""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import optimize, special

from owkg.auditing import Answers, Pair, breakdown, implied
from owkg.auditing.calibration import TABLE, WORLDS, difference_error, full_error, order_probability, scale
from owkg.auditing.implied import missing_answers
from owkg.auditing.order import Observed, full_metrics
from owkg.cluster import Where, check_scheduler, where
from owkg.files.storage import writable_folder
from owkg.kg import num_candidates
from owkg.rank_weights import RankWeight, rank_weight, tie_expectation
from owkg.simulate import FullTest, thin
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, printed
from simulations.implied_full_test import CURVES
from simulations.open_world.experiment import recorded_elsewhere, records
from simulations.open_world.presets import Configuration
from simulations.open_world.query_values import joined
from simulations.open_world.record import Record
from simulations.open_world.runs import Scheduler, Workers
from simulations.open_world.world import ClosedWorld, read_world, read_worlds
from simulations.script import Out, Quick, command_line, data_folder, run_package, save_table

METRICS = ("mrr", "hits@1", "hits@10", "p-mrr@1/2")
AVERAGES = ("answers", "queries")
SPARSITIES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
# Sparsities at which certificates are put to the test.
FEW = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
# Full metrics below it say nothing: chance.
LEAST = 0.02
# Share of checkpoints of worlds and models left out that intervals of 95 % are made to hold.
HELD = 0.96
# Of the errors of two models together, by which a difference errs.
SHARES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# Root mean square below which errors are rounding.
_EXACT = 1e-6
# Of a box of correlations, about the true one.
WIDTH = 0.05
# Variance of a value over queries, as of very many: the true value is of these queries, so none belongs here.
_ALL_QUERIES = 1e-10


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


_FIRST, _SECOND, _THIRD, _FOURTH = (
    ("ComplEx 32", "DistMult 32", "RotatE 32", "TransE 32"),
    ("ComplEx 64", "DistMult 8", "RotatE 16", "RESCAL 16", "TransE 16", "ComplEx 32 sampled"),
    ("ComplEx 8", "pRotatE 32", "BetaE 16"),
    ("DistMult 16 sampled", "TransE 64", "TuckER 16"),
)


def _drawn(number: int) -> Setting:
    """A setting that nobody chose, of two densities; its last model is one that others have as well."""
    rng = np.random.default_rng([20, number])
    people, trees = rng.uniform(800, 2600), int(np.exp(rng.uniform(np.log(5), np.log(30))))
    densities = np.sort(rng.choice(np.arange(50, 100, 5), 2, replace=False))[::-1] / 100
    min_answers, other = int(rng.integers(1, 11)), str(rng.choice((*_FIRST, *_SECOND, *_THIRD)))
    size, densities = round(people / trees), tuple(densities.tolist())
    return Setting(trees, size, min_answers, densities, 100 + number, (*_FOURTH, other))


GROUPS = {
    "first": {
        "small": Setting(8, 80, 1, (0.95, 0.6), 1, _FIRST),
        "large": Setting(12, 150, 4, (0.85, 0.5), 2, _FIRST),
        "many": Setting(10, 150, 10, (0.8, 0.55), 3, _FIRST),
        "few": Setting(20, 50, 1, (0.7,), 4, _FIRST),
        "deep": Setting(5, 300, 6, (0.9, 0.65), 5, _FIRST),
        "big": Setting(20, 300, 10, (0.75,), 6, _FIRST),
    },
    "second": {
        "villages": Setting(30, 40, 1, (0.9, 0.6), 13, _SECOND),
        "houses": Setting(15, 100, 2, (0.8, 0.5), 14, _SECOND),
        "clans": Setting(7, 250, 8, (0.9, 0.7), 15, _SECOND),
        "old": Setting(6, 180, 3, (0.95, 0.75), 16, _SECOND),
        "towns": Setting(18, 120, 5, (0.85, 0.65), 17, _SECOND),
        "cousins": Setting(9, 90, 1, (0.7, 0.55), 18, _SECOND),
    },
    "third": {
        "other": Setting(10, 110, 1, (0.75,), 7, _THIRD),
        "wide": Setting(6, 200, 8, (0.7,), 8, (*_THIRD, "RotatE 32")),
        "dense": Setting(15, 70, 2, (0.9,), 9, (*_THIRD, "TransE 32")),
        "thin": Setting(9, 140, 5, (0.55,), 10, (*_THIRD, "DistMult 32")),
        "broad": Setting(25, 60, 1, (0.65,), 11, _THIRD),
        "tall": Setting(4, 350, 10, (0.8,), 12, (*_THIRD, "RotatE 32")),
        "hamlets": Setting(40, 30, 1, (0.8,), 19, (*_THIRD, "ComplEx 64")),
        "lines": Setting(5, 240, 5, (0.6,), 20, (*_THIRD, "RESCAL 16")),
        "counties": Setting(16, 160, 6, (0.75,), 21, (*_THIRD, "TransE 16")),
        "couples": Setting(24, 45, 1, (0.95,), 22, (*_THIRD, "ComplEx 32")),
        "kin": Setting(11, 120, 3, (0.5,), 23, (*_THIRD, "DistMult 8")),
        "halls": Setting(8, 220, 10, (0.85,), 24, (*_THIRD, "RotatE 16")),
        "boroughs": Setting(13, 130, 4, (0.65,), 25, (*_THIRD, "DistMult 32")),
        "farms": Setting(22, 85, 2, (0.7,), 26, (*_THIRD, "TransE 32")),
        "lineages": Setting(5, 320, 8, (0.9,), 27, (*_THIRD, "RotatE 32")),
        "outposts": Setting(10, 100, 1, (0.6,), 28, (*_THIRD, "ComplEx 32")),
    },
    # The families of 18 have no query of so many answers.
    "fourth": {f"drawn-{number:02d}": _drawn(number) for number in range(24) if number != 18},
}
"""Worlds by group: each has families of its own, and configurations that no earlier one has."""


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
    bare = {name: value for name, value in sampled.items() if name != "margin"}
    whole = {"training_loop": "1vsall", "loss": "cross_entropy", "n3": 0.0, "batch_size": 512}
    beta = whole | {"optimiser": "adam", "learning_rate": 3e-3, "hidden": 64, "dim": 16, "margin": 6.0}
    given: dict[str, tuple[str, dict[str, Any], int]] = {
        "ComplEx 32": ("complex", whole | {"dim": 32, "learning_rate": 0.1}, 400),
        "ComplEx 64": ("complex", whole | {"dim": 64, "learning_rate": 0.05}, 400),
        "ComplEx 32 sampled": ("complex", bare | {"dim": 32}, 1000),
        "DistMult 8": ("distmult", whole | {"dim": 8, "learning_rate": 0.1}, 600),
        "RESCAL 16": ("rescal", whole | {"dim": 16, "learning_rate": 0.1}, 400),
        "RotatE 16": ("rotate", sampled | {"dim": 16}, 1000),
        "TransE 16": ("transe", sampled | {"dim": 16, "norm": 2}, 1000),
        "ComplEx 8": ("complex", whole | {"dim": 8, "learning_rate": 0.1}, 600),
        "DistMult 32": ("distmult", whole | {"dim": 32, "learning_rate": 0.1}, 400),
        "RotatE 32": ("rotate", sampled | {"dim": 32}, 1000),
        "pRotatE 32": ("protate", sampled | {"dim": 32, "learning_rate": 3e-3}, 1000),
        "TransE 32": ("transe", sampled | {"dim": 32}, 1000),
        "BetaE 16": ("betae", beta, 800),
        "TransE 64": ("transe", sampled | {"dim": 64, "learning_rate": 3e-3}, 1000),
        "TuckER 16": ("tucker", whole | {"dim": 16, "relation_dim": 8, "learning_rate": 1e-2}, 600),
        "DistMult 16 sampled": ("distmult", bare | {"dim": 16}, 1000),
    }
    found = []
    for label in labels:
        model, settings, steps = given[label]
        steps = steps // 4 if quick else steps
        looks = np.unique(np.geomspace(steps / 20, steps, 4 if quick else 10).round().astype(int))
        found.append(Configuration(label, model, settings, tuple(looks.tolist())))
    return tuple(found)


def trained(
    name: str, setting: Setting, out: Path, *, quick: bool, place: Where | None = None
) -> list[tuple[ClosedWorld, list[Record]]]:
    """The worlds of a setting with the records of its models, trained on a cluster or here, or read."""
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
    chosen, runs = configurations(setting.labels, quick), out / "runs" / name
    with progress(f"training on {name}", "steps") as update:
        if place is not None:
            recorded_elsewhere(worlds, chosen, runs, place, folder, seed=setting.seed, on_progress=update)
        found = records(
            worlds,
            chosen,
            runs,
            seed=setting.seed,
            on_progress=lambda one, world, done, total, note: update(
                done, total, f"{one.label}, d = {world.density:g}: {note}"
            ),
        )
    return list(zip(worlds, found, strict=True))


def points(
    name: str,
    worlds: list[tuple[ClosedWorld, list[Record]]],
    labels: tuple[str, ...],
    seed: int = 0,
    *,
    chosen: bool = True,
) -> pl.DataFrame:
    """Every checkpoint on tests of every sparsity: the sparse metric, the implied full one, the true one.

    Args:
        name: of the setting.
        worlds: with records.
        labels: of the records.
        seed: of the missing facts.
        chosen: whether facts also go missing by the choice of a model: the rows with a box of correlations,
            which are looked at by the table of errors.
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
    """Tests from which facts are missing at random, and chosen by a model of some noise."""
    rng = np.random.default_rng([seed, round(sparsity * 100)])
    yield "independent", rng.uniform(size=len(world.query)) >= sparsity
    # The model's worst answers of each query, with so much noise that its choice is a correlation.
    place = np.lexsort((chooser, world.query))
    rank = np.empty(len(place))
    rank[place] = np.arange(len(place))
    counts = np.bincount(world.query)
    within = (rank - (np.cumsum(counts) - counts)[world.query] + 0.5) / counts[world.query]
    noisy = within + 1.5 * rng.uniform(size=len(within))
    yield "chosen", noisy >= np.quantile(noisy, sparsity)


def _measured(world: ClosedWorld, full: FullTest, present: np.ndarray, *, boxed: bool) -> pl.DataFrame:
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
    """The least and the largest implied full metric, of correlations about each checkpoint's true one.

    As an audit of very many queries has them: where the value refutes the whole box, none is implied.
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


def _pairs(rows: pl.DataFrame) -> pl.DataFrame:
    """Pairs of checkpoints of different models on one test, the first ahead as implied."""
    parts = []
    keys = ("setting", "density", "asked", "average", "metric")
    for key, part in rows.partition_by(keys, as_dict=True, maintain_order=True).items():
        one, other = np.triu_indices(len(part), 1)
        model, ahead = part["model"].to_numpy(), part["implied"].to_numpy()
        apart = model[one] != model[other]
        one, other = one[apart], other[apart]
        one, other = (
            np.where(ahead[one] >= ahead[other], one, other),
            np.where(ahead[one] >= ahead[other], other, one),
        )
        columns = dict(zip(keys, key, strict=True))
        told = {
            f"{name}_{which}": part[name].to_numpy()[at]
            for name in ("implied", "full", "lost")
            for which, at in (("first", one), ("second", other))
        }
        parts.append(
            pl.DataFrame(told).with_columns(pl.lit(value).alias(name) for name, value in columns.items())
        )
    return pl.concat(parts)


def calibration(rows: pl.DataFrame) -> pl.DataFrame:
    """Errors by metric, fitted to checkpoints that are known in full.

    The root mean square of full less implied, over 2 sqrt(full (1 - full)), is a power of the missing
    answers of a query: least squares of logarithms over worlds, sparsities and averages. The error is that
    times what makes `HELD` of the checkpoints lie within 1.96 of it when their families and their model are
    left out. The error of a difference is a scale mixture of normals with standard deviations of `SHARES` of
    both errors; the mixture weights have maximum likelihood, given the orders of all pairs.

    Args:
        rows: as of `points`, facts missing independently.

    Returns:
        A row each metric and share: error, of one missing answer; power; the most that were missing; share
        and mixture weight.
    """
    parts = []
    for metric in METRICS:
        own = rows.filter((pl.col("metric") == metric) & (pl.col("full") > LEAST))
        error, power = _law(own)
        pairs = _pairs(own)
        first, second = (pairs[f"implied_{which}"].to_numpy() for which in ("first", "second"))
        law = {"error": error, "power": power, "most_missing": round(own["lost"].to_numpy().max(), 2)}
        part = pl.DataFrame({"metric": metric} | law | {"share": SHARES, "mixture_weight": 0.0})
        both = difference_error(metric, pairs["lost_first"].to_numpy(), first, second, part)
        # Each world counts alike, however many pairs it has.
        of_world = pairs.select(1 / pl.len().over("setting", "density")).to_series().to_numpy()
        weights = _mixture_weights((first - second) / both, _right(pairs), of_world)
        parts.append(part.with_columns(mixture_weight=weights, checkpoints=pl.lit(len(own))))
    return pl.concat(parts)


def _law(rows: pl.DataFrame) -> tuple[float, float]:
    """The error at one missing answer of a query and the power of that number, of one metric."""
    told = rows["implied"].to_numpy()
    ratio = np.abs(rows["full"].to_numpy() - told) / scale(told)
    label = pl.concat_str("setting", "density", "asked", "average", separator="/")
    tests, test = np.unique(rows.select(label).to_series().to_numpy(), return_inverse=True)
    # Worlds of a setting are of the same families.
    families, family = np.unique(rows["setting"].to_numpy(), return_inverse=True)
    models, model = np.unique(rows["model"].to_numpy(), return_inverse=True)
    log_lost = np.log(rows["lost"].to_numpy())
    x = np.bincount(test, log_lost) / np.bincount(test)
    of_test = np.empty(len(tests), int)
    of_test[test] = family
    square, count = (
        np.bincount(test * len(models) + model, one, len(tests) * len(models)).reshape(-1, len(models))
        for one in (ratio**2, np.ones(len(ratio)))
    )

    def fitted(some: np.ndarray, others: np.ndarray) -> tuple[float, float]:
        total, of = square[some][:, others].sum(1), count[some][:, others].sum(1)
        at = total > of * _EXACT**2
        power, log = np.polyfit(x[some][at], np.log(total[at] / of[at]) / 2, 1)
        return float(np.exp(log)), float(power)

    left_out = []
    for one in range(len(families)):
        for other in np.unique(model[family == one]):
            error, power = fitted(of_test != one, np.arange(len(models)) != other)
            at = (family == one) & (model == other)
            left_out.append(ratio[at] / (error * np.exp(power * log_lost[at])))
    error, power = fitted(np.ones(len(tests), bool), np.ones(len(models), bool))
    wider = float(np.quantile(np.concatenate(left_out), HELD)) / 1.96
    return round(error * wider, 5), round(power, 4)


def _right(pairs: pl.DataFrame) -> np.ndarray:
    """1 where the first is better on the full test, 0 where the second is, one half where they are equal."""
    first, second = (pairs[f"full_{which}"].to_numpy() for which in ("first", "second"))
    return (1 + np.sign(first - second)) / 2


def _mixture_weights(units: np.ndarray, right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The mixture weights of `SHARES` of maximum likelihood, which is concave on the simplex.

    Args:
        units: implied differences, in errors of both.
        right: as of `_right`.
        weight: of each difference.
    """
    units, right, weight = _binned(units, right, weight / weight.sum())
    by_share = special.ndtr(units[:, None] / np.array(SHARES))

    def unlikely(weights: np.ndarray) -> tuple[float, np.ndarray]:
        said = np.clip(by_share @ weights, 1e-12, 1 - 1e-12)
        of_right, of_wrong = weight * right, weight * (1 - right)
        slope = (of_wrong / (1 - said) - of_right / said) @ by_share
        return -float(of_right @ np.log(said) + of_wrong @ np.log1p(-said)), slope

    found = optimize.minimize(
        unlikely,
        np.full(len(SHARES), 1 / len(SHARES)),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(SHARES),
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    if not found.success:
        raise RuntimeError(f"mixture weights: {found.message}")
    weights = np.clip(found.x, 0, 1).round(4)
    weights[weights.argmax()] += 1 - weights.sum()
    return weights.round(4)


def _binned(units: np.ndarray, right: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Millions of differences as some thousand, a thousandth apart: units, mean of right, and weight."""
    place, row = np.unique(np.arcsinh(units / 0.01).round(3), return_inverse=True)
    of_bin = np.bincount(row, weight)
    return 0.01 * np.sinh(place), np.bincount(row, weight * right) / of_bin, of_bin


def calibrate(
    out: Out = Path("out"), quick: Quick = False, scheduler: Scheduler = None, workers: Workers = None
) -> None:
    """Trains models on closed worlds and writes the errors that owkg audit uses; 90 minutes on two cores."""
    rows, told = [], []
    for group, name, labels, worlds in _every(out, quick, scheduler, workers):
        rows.append(points(name, worlds, labels, chosen=False))
        for world, recorded in worlds:
            sizes = {"entities": world.graph.num_entities, "queries": world.num_queries}
            sizes |= {"answers": len(world.query), "models": ", ".join(labels)}
            sizes |= {"checkpoints": sum(len(one.step) for one in recorded)}
            told.append({"group": group, "setting": name, "density": world.density} | sizes)
    found = calibration(pl.concat(rows))
    save_table(found, out / TABLE.name if quick else TABLE)
    save_table(pl.DataFrame(told), out / WORLDS.name if quick else WORLDS)
    laws = found.drop("share", "mixture_weight").unique(maintain_order=True)
    printed("errors", laws.columns, [[str(x) for x in row] for row in laws.iter_rows()])
    wide = found.pivot("share", index="metric", values="mixture_weight", maintain_order=True)
    printed(
        "mixture weights of the shares", wide.columns, [[str(x) for x in row] for row in wide.iter_rows()]
    )


def _every(
    out: Path, quick: bool, scheduler: str | None, workers: int | None
) -> Iterator[tuple[str, str, tuple[str, ...], list[tuple[ClosedWorld, list[Record]]]]]:
    """Group, name, models and trained worlds of every setting."""
    writable_folder(out)
    folder = out / "closed_worlds_quick" if quick else out / "closed_worlds"
    place = where(scheduler, workers)
    check_scheduler(place)
    every = [
        (group, name, setting.labels, trained(name, setting, folder, quick=quick, place=place))
        for group, settings in GROUPS.items()
        for name, setting in settings.items()
    ]
    with progress("measuring closed worlds", "settings") as update:
        for done, one in enumerate(every):
            update(done, len(every), one[1])
            yield one


def _shared(settings: dict[str, Setting]) -> list[str]:
    """The configurations that every setting of a group has."""
    return sorted(set.intersection(*(set(setting.labels) for setting in settings.values())))


def published() -> pl.DataFrame:
    """Checkpoints of the committed curves on the published worlds, as of `points`; MRR over queries."""
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


def check(
    out: Out = Path("out"), quick: Quick = False, scheduler: Scheduler = None, workers: Workers = None
) -> None:
    """Intervals and probabilities of an audit on families that its errors were not fitted to.

    Each group of worlds is judged by errors that are fitted to the other groups, without the configurations
    that all its settings have: of every pair at least one is new. The published worlds are judged by the
    errors of owkg audit, and so is which values are refuted.
    """
    parts, certified = [], []
    for group, name, labels, worlds in _every(out, quick, scheduler, workers):
        parts.append(points(name, worlds, labels).with_columns(pl.lit(group).alias("group")))
        certified += [certificates(*one) for one in worlds]
    every = pl.concat(parts).filter(pl.col("full") > LEAST)
    of_group, within, orders, new, boxes = pl.col("group"), [], [], [], []
    for group, settings in GROUPS.items():
        theirs = pl.col("model").is_in(_shared(settings))
        own, others = every.filter(of_group == group), every.filter(of_group != group, ~theirs)
        table = calibration(others.filter(missing="independent"))
        within.append(intervals(own.filter(missing="independent"), table))
        orders.append(ordered(own.filter(missing="independent"), table))
        new.append(ordered(own.filter(theirs, missing="independent"), table))
        boxes.append(boxed(own.filter(missing="chosen"), table))
    known = published()
    if len(known):
        known = known.filter(pl.col("full") > LEAST)
        within.append(intervals(known))
        orders.append(ordered(known))
        new.append(orders[-1])
    told = pl.concat(within, how="diagonal")
    world = ("metric", "group", "setting", "density", "asked")
    save_table(coverage(told, world), out / "audit_coverage.csv")
    for by, title, some in (
        (world[:1], "intervals", told),
        (world[:1], "intervals where the density is .75", told.filter(density=0.75)),
        (world[:2], "intervals by group", told),
        (("metric", "asked"), "intervals by sparsity", told.filter(of_group != "published")),
    ):
        kept = coverage(some, by)
        printed(title, kept.columns, [_cells(row) for row in kept.iter_rows()])
    pairs = {"all": pl.concat(orders), "both models new": pl.concat(new)}
    pairs |= {part["group"][0]: part for part in orders}
    said = pl.concat(
        reliability(part).select(pl.lit(name).alias("group"), pl.all()) for name, part in pairs.items()
    )
    save_table(said, out / "audit_probabilities.csv")
    for name in list(pairs)[:2]:
        upper = said.filter(pl.col("tenth") >= 5, group=name).drop("group")
        printed(f"orders: said and right ({name})", upper.columns, [_cells(row) for row in upper.iter_rows()])
    held = of_boxes(pl.concat(boxes))
    save_table(held, out / "audit_boxes.csv")
    of_pairs = pl.concat(certified)
    some = of_pairs.filter("covered")
    line(
        f"{len(some):,} of {len(of_pairs):,} orders by MRR are certified against more facts than are missing."
        f" The full test turns {some['reversed'].sum():,} of these, and {of_pairs['reversed'].sum():,} of all"
    )
    printed(
        f"facts chosen by a model, correlations known to {WIDTH:g}",
        held.columns,
        [_cells(row) for row in held.iter_rows()],
    )


def certificates(
    world: ClosedWorld, recorded: list[Record], seed: int = 0, sparsities: tuple[float, ...] = FEW
) -> pl.DataFrame:
    """Worlds that miss fewer facts than a certificate needs: does the full test turn the order?

    Of each pair of last checkpoints, facts go missing at random, and the worst ones: those on which the
    second model does best beside the first.

    Args:
        world: with records.
        recorded: of its models.
        seed: of the missing facts.
        sparsities: shares of the answers that go missing.

    Returns:
        A row each pair, sparsity and way (random or worst), by MRR over answers: certified, missing, covered
        (fewer are missing than certified) and reversed (the full test turns the order).
    """
    full = joined(world, recorded)
    last = np.cumsum([len(one.step) for one in recorded]) - 1
    weight, rng, rows = rank_weight("mrr"), np.random.default_rng(seed), []
    largest = num_candidates(world.known, world.triples)
    value = tie_expectation(weight, full.optimistic, full.optimistic)
    for one, other in permutations(last, 2):
        gain = value[one] - value[other]
        for sparsity in sparsities:
            count = round(sparsity * len(world.query))
            worst = np.argsort(gain, kind="stable")[:count]
            for way, gone in (("random", rng.choice(len(gain), count, replace=False)), ("worst", worst)):
                present = np.ones(len(gain), bool)
                present[gone] = False
                ranks = thin(full, present)[0][[one, other]]
                rows.append(_certificate(world, gain, present, ranks, largest) | {"way": way})
    return pl.DataFrame([row for row in rows if row["certified"]])


def _certificate(
    world: ClosedWorld, gain: np.ndarray, present: np.ndarray, ranks: np.ndarray, largest: np.ndarray
) -> dict[str, Any]:
    """The certificate of one pair on one test, and what the full one says of the same queries."""
    query = world.query[present]
    asked, row = np.unique(query, return_inverse=True)
    place = np.arange(len(row)) - np.searchsorted(row, row)
    known = np.zeros((2, len(asked), place.max() + 1), np.int64)
    known[:, row, place] = ranks
    whole = np.isin(world.query, asked)
    missing = int((whole & ~present).sum())
    lost = np.bincount(world.query[whole & ~present], minlength=world.num_queries)[asked]
    first = np.searchsorted(world.query, asked)
    none = np.zeros((2, len(asked), 0), np.int64)
    # Beside the answer itself, candidates are those of the full test and the missing answers.
    beyond = np.ones((2, len(asked)), np.int64)
    pair = Pair(known, none, none, beyond, largest[first] - 1 + lost)
    weights = np.concatenate([[0.0], 1 / np.arange(1, max(pair.largest.max() + 2, ranks.max() + 1))])
    certified = breakdown(pair, weights).certified
    return {
        "certified": certified,
        "missing": missing,
        "covered": certified == -1 or missing < certified,
        "reversed": bool(gain[whole].sum() < -1e-9),
    }


def intervals(rows: pl.DataFrame, table: pl.DataFrame | None = None) -> pl.DataFrame:
    """The rows of checkpoints, with whether the interval of 95 % holds the full metric, and its width.

    Args:
        rows: as of `points`.
        table: errors, as of `calibration`; None: those of owkg audit.
    """
    told, half = rows["implied"].to_numpy(), _half(rows, rows["implied"], table)
    low, high = np.clip(told - half, 0, 1), np.clip(told + half, 0, 1)
    full = rows["full"].to_numpy()
    return rows.with_columns(
        held=pl.Series((low - 1e-9 <= full) & (full <= high + 1e-9)), width=pl.Series(high - low)
    )


def _half(rows: pl.DataFrame, told: pl.Series, table: pl.DataFrame | None) -> np.ndarray:
    """Half of the width of an interval of 95 % about full metrics that are implied."""
    half = np.empty(len(rows))
    for name in rows["metric"].unique():
        at = (rows["metric"] == name).to_numpy()
        half[at] = 1.96 * full_error(name, rows["lost"].to_numpy()[at], told.to_numpy()[at], table)
    return half


def coverage(told: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """How often intervals hold the full metric, and their median width, of `intervals`."""
    return told.group_by(by, maintain_order=True).agg(
        pl.len().alias("checkpoints"), pl.col("held").mean(), pl.col("width").median().alias("median_width")
    )


def ordered(rows: pl.DataFrame, table: pl.DataFrame | None = None) -> pl.DataFrame:
    """Every pair of checkpoints of different models: the probability of its order, and whether it is right.

    Args:
        rows: as of `points`, with their group.
        table: errors, as of `calibration`; None: those of owkg audit.
    """
    pairs, group = _pairs(rows), rows.select("setting", "group").unique()
    parts = []
    for name in pairs["metric"].unique(maintain_order=True):
        own = pairs.filter(metric=name)
        first, second = (own[f"implied_{which}"].to_numpy() for which in ("first", "second"))
        error = difference_error(name, own["lost_first"].to_numpy(), first, second, table)
        p = order_probability(name, first - second, 0.0, error, table=table)
        parts.append(own.select("metric", "setting", "density").with_columns(said=p, right=_right(own)))
    return pl.concat(parts).join(group, "setting", maintain_order="left")


def reliability(pairs: pl.DataFrame) -> pl.DataFrame:
    """Probabilities of orders by tenths: the mean that is said, and the share that is right, with its error.

    Each world counts alike, however many pairs it has; the error is over settings, whose worlds are of the
    same families.

    Args:
        pairs: of `ordered`.
    """
    # Each pair is told from both sides.
    other = pairs.with_columns(*((1 - pl.col(key)).alias(key) for key in ("said", "right")))
    world, of_tenth = ("metric", "setting", "density"), ("metric", "tenth")
    told = pl.concat([pairs, other]).with_columns(
        tenth=(pl.col("said") * 10).cast(pl.Int64).clip(0, 9), weight=1 / pl.len().over(world)
    )
    by_setting = told.group_by("metric", "setting", "tenth", maintain_order=True).agg(
        pl.len().alias("pairs"),
        pl.col("weight").sum(),
        *((pl.col(key) * pl.col("weight")).sum() for key in ("said", "right")),
    )
    whole, several = pl.col("weight").sum().over(of_tenth), pl.len().over(of_tenth)
    apart = pl.col("right") - pl.col("weight") * pl.col("right").sum().over(of_tenth) / whole
    order = pairs["metric"].unique(maintain_order=True)
    return (
        by_setting.with_columns(
            square=pl.when(several > 1).then((apart / whole) ** 2 * several / (several - 1))
        )
        .group_by(of_tenth, maintain_order=True)
        .agg(
            pl.col("pairs").sum(),
            *(pl.col(key).sum() / pl.col("weight").sum() for key in ("said", "right")),
            error=pl.when(pl.col("square").count() > 0).then(pl.col("square").sum().sqrt()),
        )
        .sort(pl.col("metric").cast(pl.Enum(order)), "tenth")
    )


def boxed(rows: pl.DataFrame, table: pl.DataFrame | None = None) -> pl.DataFrame:
    """The rows with a box, with whether the identified set with its error holds the full metric.

    Args:
        rows: as of `points`, facts chosen by a model.
        table: errors, as of `calibration`; None: those of owkg audit.
    """
    rows = rows.filter(pl.col("refuted") | pl.col("box_low").is_not_nan())
    low = rows["box_low"].to_numpy() - _half(rows, rows["box_low"], table)
    high = rows["box_high"].to_numpy() + _half(rows, rows["box_high"], table)
    full, alone = rows["full"].to_numpy(), rows["implied"].to_numpy()
    return rows.with_columns(
        held=(low <= full) & (full <= high),
        width=np.clip(high, 0, 1) - np.clip(low, 0, 1),
        held_alone=np.abs(full - alone) <= _half(rows, rows["implied"], table),
    )


def of_boxes(told: pl.DataFrame) -> pl.DataFrame:
    """How often the identified set over a box that holds the true correlation holds the true full metric.

    `refuted`: share whose value no strength gives in the whole box; an audit says so, and implies none. All
    else is of the others; `held_of_all` counts refuted ones as not held. `rmse`: of the full metric that the
    true correlation implies.

    Args:
        told: of `boxed`.
    """
    parts = []
    for name in METRICS:
        every = told.filter(metric=name)
        own = every.filter(~pl.col("refuted"))
        full, alone, middle = (own[one].to_numpy() for one in ("full", "implied", "box_middle"))
        parts.append(
            {
                "metric": name,
                "checkpoints": len(every),
                "refuted": float(every["refuted"].mean()),  # pyright: ignore
                "held": float(own["held"].mean()),  # pyright: ignore
                "held_of_all": float(own["held"].sum() / len(every)),
                "median_width": float(own["width"].median()),  # pyright: ignore
                "held_if_taken_as_independent": float(own["held_alone"].mean()),  # pyright: ignore
                "rmse": _rmse(middle - full),
                "rmse_if_taken_as_independent": _rmse((alone - full)[np.isfinite(middle)]),
                "mean_correlation": float(own["correlation"].mean()),  # pyright: ignore
            }
        )
    return pl.DataFrame(parts)


def _rmse(errors: np.ndarray) -> float:
    return float(np.sqrt(np.nanmean(errors**2)))


def _cells(row: tuple[Any, ...]) -> list[str]:
    return [f"{x:.3f}" if isinstance(x, float) else str(x) for x in row]


main = command_line(
    "simulations.closed_world_audit",
    {"calibrate": calibrate, "check": check},
    {"calibrate": "calibrate --out out", "check": "check --out out\ncheck --quick"},
)

if __name__ == "__main__":
    run_package(main)
