"""Intervals, probabilities of orders, identified sets and certificates beside the truth."""

from itertools import permutations
from typing import Any

import numpy as np
import polars as pl

from owkg.auditing import Pair, breakdown
from owkg.auditing.calibration import difference_error, full_error, order_probability
from owkg.kg import num_candidates
from owkg.rank_weights import rank_weight, tie_expectation
from owkg.simulate import thin
from simulations.closed_world_audit.errors import is_right, pairs_of
from simulations.closed_world_audit.points import METRICS
from simulations.open_world.query_values import joined
from simulations.open_world.record import Record
from simulations.open_world.world import ClosedWorld

# Sparsities at which certificates are put to the test.
FEW = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


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
    """How often intervals hold the full metric, their median width, and to which side they err.

    `bias`: mean of full less implied. `above`: share of full metrics above their interval.

    Args:
        told: of `intervals`.
        by: columns.
    """
    off = pl.col("full") - pl.col("implied")
    return told.group_by(by, maintain_order=True).agg(
        pl.len().alias("checkpoints"),
        pl.col("held").mean(),
        pl.col("width").median().alias("median_width"),
        off.mean().alias("bias"),
        (~pl.col("held") & (off > 0)).mean().alias("above"),
    )


def ordered(rows: pl.DataFrame, table: pl.DataFrame | None = None) -> pl.DataFrame:
    """Every pair of checkpoints of different models: the probability of its order, and whether it is right.

    Args:
        rows: as of `points`, with their group.
        table: errors, as of `calibration`; None: those of owkg audit.
    """
    pairs, group = pairs_of(rows), rows.select("setting", "group").unique()
    parts = []
    for name in pairs["metric"].unique(maintain_order=True):
        own = pairs.filter(metric=name)
        first, second = (own[f"implied_{which}"].to_numpy() for which in ("first", "second"))
        error = difference_error(name, own["lost_first"].to_numpy(), first, second, table)
        p = order_probability(name, first - second, 0.0, error, table=table)
        parts.append(
            own.select("metric", "setting", "density", "model_first", "model_second").with_columns(
                said=p, right=is_right(own)
            )
        )
    return pl.concat(parts).join(group, "setting", maintain_order="left")


def reliability(pairs: pl.DataFrame) -> pl.DataFrame:
    """Probabilities of orders by tenths: the mean that is said, and the share that is right, with its error.

    Each world counts alike, however many pairs it has. The variance is over settings, whose worlds are of the
    same families, and over configurations, which err much alike on all of them: that of the share when each
    configuration in turn is left out with all its pairs, as a sum of squares (a jackknife that errs to the
    large side, for a pair is left out with either of its two).

    Args:
        pairs: of `ordered`.

    Returns:
        A row each metric and tenth. The error is null where there is one setting, or a configuration that all
        pairs have.
    """
    # Each pair is told from both sides.
    other = pairs.with_columns(*((1 - pl.col(key)).alias(key) for key in ("said", "right")))
    world, of_tenth, models = (
        ("metric", "setting", "density"),
        ("metric", "tenth"),
        ("model_first", "model_second"),
    )
    told = pl.concat([pairs, other]).with_columns(
        tenth=(pl.col("said") * 10).cast(pl.Int64).clip(0, 9), weight=1 / pl.len().over(world)
    )
    cells = told.group_by(*of_tenth, "setting", *models, maintain_order=True).agg(
        pl.len().alias("pairs"),
        pl.col("weight").sum(),
        *((pl.col(key) * pl.col("weight")).sum() for key in ("said", "right")),
    )
    found = cells.group_by(of_tenth, maintain_order=True).agg(
        pl.col("pairs", "weight", "said", "right").sum()
    )
    # What a setting, or the pairs of a configuration, have of a tenth.
    of_settings, of_models = (
        part.group_by(*of_tenth, "who")
        .agg(pl.col("weight", "right").sum())
        .join(found.select(*of_tenth, whole="weight", sum="right"), of_tenth)
        for part in (
            cells.with_columns(who="setting"),
            pl.concat([cells.with_columns(who=which) for which in models]),
        )
    )
    mean = pl.col("sum") / pl.col("whole")
    over_settings = of_settings.group_by(of_tenth).agg(
        over_settings=pl.when(pl.len() > 1).then(
            (((pl.col("right") - pl.col("weight") * mean) / pl.col("whole")) ** 2).sum()
            * pl.len()
            / (pl.len() - 1)
        )
    )
    rest = pl.col("whole") - pl.col("weight")
    without = (pl.col("sum") - pl.col("right")) / rest
    over_models = of_models.group_by(of_tenth).agg(
        over_models=pl.when((rest > 1e-9 * pl.col("whole")).all()).then(((without - mean) ** 2).sum())
    )
    order = pairs["metric"].unique(maintain_order=True)
    return (
        found.join(over_settings, of_tenth)
        .join(over_models, of_tenth)
        .select(
            *of_tenth,
            "pairs",
            pl.col("said", "right") / pl.col("weight"),
            error=(pl.col("over_settings") + pl.col("over_models")).sqrt(),
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
