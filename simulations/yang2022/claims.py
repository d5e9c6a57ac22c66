"""Claims about sparse and full tests, as one table of numbers with intervals."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import polars as pl
from jaxtyping import Float32

from owkg import checks
from owkg.keys import as_key, reproducible
from simulations.open_world.curves import SPARSE, Curves
from simulations.yang2022.flattening import Flattening, flattening, over_curves
from simulations.yang2022.halves import confirmed
from simulations.yang2022.inconsistency import Apart, Inconsistency, Z, checked_z, groups, inconsistency
from simulations.yang2022.resampling import LEVEL, REPLICATES, Resampled, interval, query_counts
from simulations.yang2022.selection import checked_curves, metric_index, sparse_sets

ALL = "all"
"""Stands for all configurations together, where a configuration is named."""

"""Name of the test set with independently missing facts; every other test set is compared with it."""

_SCHEMA = {
    "claim": pl.String,
    "density": pl.Float64,
    "test_set": pl.String,
    "metric": pl.String,
    "configuration": pl.String,
    "minus": pl.String,
    "value": pl.Float64,
    "lower": pl.Float64,
    "upper": pl.Float64,
    "unit": pl.String,
    "remark": pl.String,
}
_SHARE = (0.0, 1.0)
_ANYWHERE = (-np.inf, np.inf)
_DIFFERENCE = (-1.0, 1.0)
_FLATTENING = {
    "slope_low": ("sparse per full", _ANYWHERE),
    "slope_high": ("sparse per full", _ANYWHERE),
    "slope_ratio": ("ratio", _ANYWHERE),
    "r2_linear": ("share of variance", _SHARE),
    "r2_log": ("share of variance", _SHARE),
    "r2_gain": ("share of variance", _DIFFERENCE),
}
_INCONSISTENCY = {
    "inconsistent": "share of pairs",
    "of_distinct": "share of pairs distinct on the full test",
    "contradicting": "share of pairs",
    "distinct": "share of pairs",
}


class _Place(NamedTuple):
    """Where a claim is made; the columns of the table."""

    density: float
    test_set: str
    metric: str
    configuration: str = ALL
    minus: str | None = None


@reproducible
def claims(
    key: Any,
    curves: Any,
    *,
    metrics: Sequence[str] | None = None,
    references: Sequence[str] | None = None,
    apart: Any = Apart.CONFIGURATION,
    z: Any = Z,
    replicates: Any = REPLICATES,
    level: Any = LEVEL,
    on_progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """Flattening and inconsistency of curves, in numbers.

    Intervals are over queries, given the trained models and the missing facts. The bootstrap draws the same
    queries for all checkpoints, metrics and test sets of a density, so that the interval of a difference
    comes from resamples of the difference itself. Equal keys give equal tables, and the rows of a density do
    not depend on the other densities.

    Flattening (`flattening`): `slope_low`, `slope_high`, `slope_ratio`, `r2_linear`, `r2_log` and `r2_gain`:
    a row for each configuration with the reference metrics, and means over the measurable configurations,
    "all", with every metric. In addition, `ratio_of_slopes` is the ratio of the mean slopes, and
    `log_fits_better` the share of configurations that a logarithm fits better. A claim that cannot be
    measured has no value, but a remark.

    Inconsistency (`inconsistency`): `inconsistent`, `of_distinct`, `contradicting` and `distinct`, and their
    differences, with the subtracted entry in the column `minus`: every metric minus the reference metrics,
    and every other test set minus "sparse". `confirmed` (`halves`) is for the reference metrics only, without
    an interval.

    Args:
        key: key of `jax.random.key`; consumed.
        curves: curves of each density.
        metrics: metrics to report; None: all that every one of `curves` has.
        references: metrics that the other metrics are compared with; None: the first metric.
        apart: "configuration" or "model": what the checkpoints of a pair must not share.
        z: number of standard errors that a difference must exceed to count as beyond its error.
        replicates: number of resamples.
        level: confidence level.
        on_progress: called with (metrics done, metrics in all), over all densities.

    Returns:
        A row for each claim: claim, density, test_set, metric, configuration, minus, value, lower, upper,
        unit, remark.

    Raises:
        ValueError: if arrays of the curves do not fit together, a name is unknown, or there are no two
            configurations or models to compare.
    """
    key = as_key(key)
    level = checks.level("level", level)
    z = checked_z(z)
    metrics, references = _checked(curves, metrics, references, apart)
    total = len(curves) * len(metrics)
    checks.integer("replicates", replicates, 2)
    if on_progress is not None:
        on_progress(0, total)
    rows: list[dict[str, Any]] = []
    for number, of_density in enumerate(curves):
        some = next(iter(of_density.values.values()))
        resampling, halving = jax.random.split(_of_density(key, of_density.density))
        counts = query_counts(resampling, some.shape[-1], replicates)
        found: dict[str, dict[str, Inconsistency]] = {}
        for done, metric in enumerate(metrics, start=number * len(metrics) + 1):
            rows += _flattening_rows(of_density, metric, counts, level, metric in references)
            sets = sparse_sets(of_density)
            found[metric] = inconsistency(of_density, metric, sets, counts, apart=apart, z=z)
            if on_progress is not None:
                on_progress(done, total)
        rows += _inconsistency_rows(of_density.density, found, references, level)
        rows += _confirmed_rows(halving, of_density, references, apart, z)
    return pl.DataFrame(rows, _SCHEMA, orient="row")


def _of_density(key: Any, density: float) -> Any:
    """A key that does not depend on the other densities."""
    return jax.random.fold_in(key, round(density * 10**9))


def _checked(
    curves: Any, metrics: Any, references: Any, apart: Any
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the metrics and of the references, after all arguments are checked."""
    if isinstance(curves, Curves) or not list(curves):
        raise ValueError("`curves` must be a list of the Curves of at least one density.")
    for of_density in curves:
        groups(checked_curves(of_density), apart)
    densities = [of_density.density for of_density in curves]
    if len(set(densities)) < len(densities):
        raise ValueError(f"`curves` must have different densities, got {densities}.")
    if metrics is None:
        metrics = [m for m in curves[0].metrics if all(m in other.metrics for other in curves)]
    metrics = tuple(metrics)
    references = metrics[:1] if references is None else tuple(references)
    for metric in (*metrics, *references):
        for of_density in curves:
            metric_index(of_density, metric)
    if not metrics:
        raise ValueError("`metrics` must name at least one metric, got none.")
    if missing := [name for name in references if name not in metrics]:
        raise ValueError(f"`references` must be some of {', '.join(metrics)}, got {', '.join(missing)}.")
    return metrics, references


def _row(
    claim: str,
    place: _Place,
    resampled: Resampled,
    unit: str,
    level: float,
    *,
    within: tuple[float, float] = _ANYWHERE,
    remark: str = "",
) -> dict[str, Any]:
    value = float(resampled.value)
    lower, upper = (float(end) for end in interval(resampled, level, within=within))
    without = int((~np.isfinite(resampled.replicates)).sum())
    if np.isfinite(value) and without:
        of_all = f"no interval: {without} of {len(resampled.replicates)} resamples have no such number"
        remark = f"{remark}; {of_all}" if remark else of_all
    numbers = {"value": value, "lower": lower, "upper": upper}
    shown = {name: number if np.isfinite(number) else None for name, number in numbers.items()}
    return {"claim": claim, **place._asdict(), **shown, "unit": unit, "remark": remark}


def _flattening_rows(
    curves: Curves, metric: str, counts: Float32[np.ndarray, "replicates queries"], level: float, each: bool
) -> Iterator[dict[str, Any]]:
    for test_set in sparse_sets(curves):
        found = flattening(curves, metric, test_set, counts)
        place = _Place(curves.density, test_set, metric)
        if each:
            yield from _rows_of_configurations(curves.labels, found, place, level)
        for claim, (unit, within) in _FLATTENING.items():
            pooled = over_curves(getattr(found, claim))
            remark = _measured(curves.labels, _remarks(found, claim), "mean over")
            yield _row(claim, place, pooled, unit, level, within=within, remark=remark)
        high, low = (over_curves(slope) for slope in (found.slope_high, found.slope_low))
        remark = _measured(curves.labels, found.slope_remarks, "mean slopes of")
        yield _row("ratio_of_slopes", place, _quotient(high, low), "ratio", level, remark=remark)
        better = Resampled(*(np.where(np.isnan(gain), np.nan, gain > 0.0) for gain in found.r2_gain))
        share = over_curves(better)
        measured = [not remark for remark in found.fit_remarks]
        remark = _measured(curves.labels, found.fit_remarks, "share of")
        if any(measured):
            remark = f"better in {int(np.nansum(better.value))}; {remark}"
        yield _row(
            "log_fits_better", place, share, "share of configurations", level, within=_SHARE, remark=remark
        )


def _rows_of_configurations(
    labels: Sequence[str], found: Flattening, place: _Place, level: float
) -> Iterator[dict[str, Any]]:
    for claim, (unit, within) in _FLATTENING.items():
        resampled: Resampled = getattr(found, claim)
        for i, (label, remark) in enumerate(zip(labels, _remarks(found, claim), strict=True)):
            own = Resampled(resampled.value[i], resampled.replicates[:, i])
            shown = f"not measurable: {remark}" if remark else ""
            here = place._replace(configuration=label)
            yield _row(claim, here, own, unit, level, within=within, remark=shown)


def _remarks(found: Flattening, claim: str) -> tuple[str, ...]:
    return found.slope_remarks if claim.startswith("slope") else found.fit_remarks


def _measured(labels: Sequence[str], remarks: Sequence[str], what: str) -> str:
    """Remark on how many configurations were measured and which ones are left out."""
    left_out = [label for label, remark in zip(labels, remarks, strict=True) if remark]
    text = f"{what} {len(labels) - len(left_out)} of {len(labels)} configurations"
    return text + (f"; not measurable: {', '.join(left_out)}" if left_out else "")


def _quotient(above: Resampled, below: Resampled) -> Resampled:
    return Resampled(*(a / np.where(b != 0, b, np.nan) for a, b in zip(above, below, strict=True)))


def _inconsistency_rows(
    density: float, found: dict[str, dict[str, Inconsistency]], references: Iterable[str], level: float
) -> Iterator[dict[str, Any]]:
    """Shares of every metric and test set, and their differences."""
    for metric, by_set in found.items():
        for test_set, shares in by_set.items():
            for claim, unit in _INCONSISTENCY.items():
                own: Resampled = getattr(shares, claim)
                place = _Place(density, test_set, metric)
                pairs = f"{shares.pairs} pairs"
                yield _row(claim, place, own, unit, level, within=_SHARE, remark=pairs)
                others = [(name, found[name][test_set]) for name in references if name != metric]
                if test_set != SPARSE and SPARSE in by_set and claim != "distinct":
                    others.append((SPARSE, by_set[SPARSE]))
                for name, other in others:
                    difference = own - getattr(other, claim)
                    there = place._replace(minus=name)
                    yield _row(claim, there, difference, unit, level, within=_DIFFERENCE, remark=pairs)


def _confirmed_rows(
    key: Any, curves: Curves, references: Iterable[str], apart: Any, z: float
) -> Iterator[dict[str, Any]]:
    """Split-half confirmation of the reference metrics: do other queries show the same inconsistency?"""
    for metric in references:
        for test_set in sparse_sets(curves):
            found = confirmed(key, curves, metric, test_set, apart=apart, z=z)
            value = found.share if np.isfinite(found.share) else None
            remark = f"{found.found:.0f} pairs a half; {found.chance:.2%} of all pairs contradict on a half"
            place = _Place(curves.density, test_set, metric)._asdict()
            numbers = {"value": value, "lower": None, "upper": None}
            unit = "share of pairs inconsistent on half of the queries"
            yield {"claim": "confirmed", **place, **numbers, "unit": unit, "remark": remark}


def claim(
    table: pl.DataFrame, name: str, *, metric: str, test_set: str = SPARSE, minus: str | None = None
) -> pl.DataFrame:
    """Rows of one pooled claim, by density: value, lower, upper.

    Args:
        table: table from `claims`.
        name: name of the claim.
        metric, test_set: metric and test set of the rows.
        minus: subtracted entry; None: nothing is subtracted.
    """
    same = (
        (pl.col("claim") == name)
        & (pl.col("metric") == metric)
        & (pl.col("test_set") == test_set)
        & (pl.col("configuration") == ALL)
        & pl.col("minus").eq_missing(pl.lit(minus, pl.String))
    )
    return table.filter(same).select("density", "value", "lower", "upper").sort("density", descending=True)
