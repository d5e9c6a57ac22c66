"""Intervals, probabilities of orders, identified sets and certificates, compared with the truth."""

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

# Sparsities at which certificates are tested.
FEW = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)


def intervals(rows: pl.DataFrame, table: pl.DataFrame | None = None) -> pl.DataFrame:
    """Rows of checkpoints, and whether the 95 % interval contains the full metric, and its width.

    Args:
        rows: table from `points`.
        table: errors from `calibration`; None: the errors of owkg audit.
    """
    told, half = rows["implied"].to_numpy(), _half(rows, rows["implied"], table)
    low, high = np.clip(told - half, 0, 1), np.clip(told + half, 0, 1)
    full = rows["full"].to_numpy()
    return rows.with_columns(
        held=pl.Series((low - 1e-9 <= full) & (full <= high + 1e-9)), width=pl.Series(high - low)
    )


def _half(rows: pl.DataFrame, told: pl.Series, table: pl.DataFrame | None) -> np.ndarray:
    """Half of the width of a 95 % interval around implied full metrics."""
    half = np.empty(len(rows))
    for name in rows["metric"].unique():
        at = (rows["metric"] == name).to_numpy()
        half[at] = 1.96 * full_error(name, rows["lost"].to_numpy()[at], told.to_numpy()[at], table)
    return half


def coverage(told: pl.DataFrame, by: tuple[str, ...]) -> pl.DataFrame:
    """Coverage of the full metric by the intervals, their median width, and their bias.

    `bias` is the mean of full minus implied; `above` is the share of full metrics above their interval.

    Args:
        told: table from `intervals`.
        by: columns to group by.
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
    """Pairs of checkpoints of different models: probability of their order, and whether it is right.

    Args:
        rows: table from `points`, with the column group.
        table: errors from `calibration`; None: the errors of owkg audit.
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
    """Reliability of the probabilities of orders, by tenths: mean probability, share right, and its error.

    Each world has the same weight, however many pairs it has. The variance has two parts: over settings,
    because their worlds share families, and over configurations, because each errs similarly in all settings.
    The second part is a jackknife: each configuration in turn is left out with all its pairs, and the squared
    changes of the share are summed. It errs to the large side, because a pair is left out with either of its
    two configurations.

    Args:
        pairs: table from `ordered`.

    Returns:
        A row for each metric and tenth. The error is null if there is only one setting, or a configuration
        that all pairs have.
    """
    # Each pair counts from both sides.
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
    # Contribution of a setting, or of the pairs of a configuration, to a tenth.
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
    """Rows with a box: does the identified set, widened by its error, contain the full metric?

    Args:
        rows: table from `points`, with facts chosen by a model.
        table: errors from `calibration`; None: the errors of owkg audit.
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
    """Coverage of the true full metric by the identified set over a box that contains the true correlation.

    `refuted` is the share of checkpoints whose value is impossible under the whole box; for these an audit
    prints a note and implies no metric. `held_of_all` counts them as not covered, and all other columns leave
    them out. `rmse` is the error of the full metric implied by the true correlation.

    Args:
        told: table from `boxed`.
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
    """Worlds that miss fewer facts than a certificate requires: does the full test ever reverse the ranking?

    For each pair of last checkpoints, facts go missing either at random or in the worst way: on the answers
    where the first model gains most over the second.

    Args:
        world: world of the records.
        recorded: records of its models.
        seed: seed of the missing facts.
        sparsities: shares of the answers that go missing.

    Returns:
        A row for each pair, sparsity and way (random or worst), by MRR over answers: certified, missing,
        covered (fewer are missing than certified) and reversed (the full test reverses the ranking).
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
    """Certificate of one pair on one test, and the order by the full test on the same queries."""
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
    # In addition to the answer itself, candidates are the full test's candidates and the missing answers.
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
