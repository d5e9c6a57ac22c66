"""Agreement of two qrels on the ranking of the same systems, with intervals over queries."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float64

from owkg import checks
from owkg.errors import ArgumentError
from owkg.judge.scores import QUERY, Scores
from owkg.keys import Seed, checked_key, children
from owkg.stats.bootstrap import checked_replicates, resampled_sums
from owkg.stats.rank_correlation import COEFFICIENTS, round_ties
from owkg.stats.sure_tau import sure_tau


class Interval(StrEnum):
    """How percentiles of the resamples make an interval."""

    CENTRED = "centred"
    PERCENTILE = "percentile"


class Agreement(NamedTuple):
    """How two qrels agree; nan where one of them orders nothing (or some resample of it, of intervals).

    Attributes:
        metrics, coefficients: their names.
        value: of the queries as they are, [metrics, coefficients].
        corrected: 2 value - mean of the resamples, cut to [-1, 1], [metrics, coefficients].
        low, high: ends of the replication interval, [metrics, coefficients]: where the coefficient falls when
            as many queries are drawn again. No confidence interval of what infinitely many queries would say.
        tau_low, tau_high: ends of a confidence interval of the tau that infinitely many queries would give,
            [metrics].
        resamples: the coefficient of each, [replicates, metrics, coefficients].
        shared, only_first, only_second: how many queries are in both qrels and in one of them.
    """

    metrics: tuple[str, ...]
    coefficients: tuple[str, ...]
    value: Float64[np.ndarray, "metrics coefficients"]
    corrected: Float64[np.ndarray, "metrics coefficients"]
    low: Float64[np.ndarray, "metrics coefficients"]
    high: Float64[np.ndarray, "metrics coefficients"]
    tau_low: Float64[np.ndarray, "metrics"]
    tau_high: Float64[np.ndarray, "metrics"]
    resamples: Float64[np.ndarray, "replicates metrics coefficients"]
    shared: int
    only_first: int
    only_second: int


def agreement(
    key: Seed,
    first: Scores | Any,
    second: Scores | Any,
    *,
    replicates: int = 1000,
    level: float = 0.95,
    interval: str = Interval.CENTRED,
) -> Agreement:
    """Correlations of the rankings of the systems by two qrels, by metric, and how far to trust them.

    A resample draws as many queries as there are, with replacement, the same ones from both qrels
    where both have them. Queries that only one qrels has are drawn by themselves, as many as they are.

    A resample has the noise of a sample twice, and noise swaps systems: where qrels agree, correlations
    of resamples are lower, on average, than that of the sample, as that is lower than that of endless
    queries. Plain percentiles hold that bias twice: they may lie below `value`, and miss 1 where the label
    sets agree in the end. Moved so that their median is `value`, they are an interval for what samples of so
    many queries say on average. In tests with 8 systems and 200 queries, of nominal 95%, they held that
    average in 91% to 97% of samples, plain percentiles in 99% to 100%; the tau of infinitely many queries, if
    1, in 26% (systems hardly apart) to 95% (well apart) and 0% to 100%. `corrected` takes the bias off once:
    nearer to infinitely many queries unless systems are hardly apart, and it varies more.

    `tau_low` and `tau_high` hold the tau of infinitely many queries, by the pairs whose order is sure under
    both qrels (`owkg.stats.sure_tau`): of nominal 95%, in all of 300 samples of each of the 14 settings of
    `benchmarks/tau_coverage.py`. They are wide, up to [-1, 1], where systems are hardly apart.

    The intervals speak of other queries of the same kind, asked to the same systems.

    Args:
        key: a seed, or a key of `jax.random.key`.
        first: the truth of tau-ap; at least two systems.
        second: of the same systems and metrics, in any order.
        replicates: resamples, at least 2.
        level: of the intervals, in (0, 1).
        interval: of `low` and `high`. "centred": percentiles of the resamples, moved so that their median is
            `value`, cut to [-1, 1]; "percentile": as they are.

    Raises:
        ValueError: if systems or metrics differ, there is one system only, or an argument is out of range.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> value = rng.random((1, 3, 500)) + np.array([0.1, 0.05, 0.0])[:, None]
        >>> asked = pl.DataFrame({"side": "tail", "entity": map(str, range(500)), "relation": "r"})
        >>> full = Scores(("a", "b", "c"), ("mrr",), (True,), asked, value, np.ones((1, 500)))
        >>> half = full._replace(queries=asked[:250], value=value[..., :250], weight=full.weight[:, :250])
        >>> found = agreement(0, full, half)
        >>> found.coefficients, found.value.tolist(), found.shared, found.only_first
        (('tau', 'tau-ap', 'spearman'), [[1.0, 1.0, 1.0]], 250, 250)

    References:
        Efron, Tibshirani (1993), "An introduction to the bootstrap", chapters 10 (bias) and 13 (percentiles).
    """
    key = checked_key(key)
    for name, scores in (("first", first), ("second", second)):
        if not isinstance(scores, Scores):
            raise ArgumentError(
                name, f"must be of owkg.judge.scores, the first of its pair, got {type(scores).__name__}."
            )
        if not (weight := scores.weight.sum(1)).all():
            none = scores.metrics[int(weight.argmin())]
            raise ArgumentError(name, f"must have queries of some weight, got none of {none}.")
    replicates = checked_replicates(replicates)
    level = checks.level("level", level)
    if interval not in list(Interval):
        raise ArgumentError("interval", f"must be one of {', '.join(Interval)}, got {interval!r}.")
    first, second = _sorted("first", first), _sorted("second", _in_order(first, second))
    shared_key, first_key, second_key = children(key, 3)
    here, there = _shared(first.queries, second.queries)
    both = np.concatenate([_columns(first)[:, here], _columns(second)[:, there]])
    half = len(both) // 2
    rest = [np.delete(_columns(s), found, axis=1) for s, found in ((first, here), (second, there))]
    again = _resampled(shared_key, both, replicates)
    sums = [
        part + _resampled(own_key, own, replicates)
        for part, own_key, own in zip(
            (again[:, :half], again[:, half:]), (first_key, second_key), rest, strict=True
        )
    ]
    strength = [round_ties(scores.strength) for scores in (first, second)]
    value = _correlations(*strength)
    drawn = [_strength(first, part) for part in sums]
    resamples = _correlations(*drawn)
    known = np.isfinite(resamples).all(0) & np.isfinite(value)
    usable = np.where(known, resamples, 0.0)
    ends = np.quantile(usable, [(1 - level) / 2, (1 + level) / 2], axis=0)
    if interval == Interval.CENTRED:
        ends = np.clip(ends + value - np.median(usable, axis=0), -1, 1)
    low, high = np.where(known, ends, np.nan)
    corrected = np.where(known, np.clip(2 * value - usable.mean(0), -1, 1), np.nan)
    sure = [
        sure_tau(*(of[m] for of in strength), *(of[:, m] for of in drawn), level=level)
        for m in range(len(first.metrics))
    ]
    tau_low, tau_high = np.array(sure).T
    counts = len(here), *(part.shape[1] for part in rest)
    names = first.metrics, tuple(COEFFICIENTS)
    return Agreement(*names, value, corrected, low, high, tau_low, tau_high, resamples, *counts)


def agreement_of_values(
    first: Mapping[str, float] | Any, second: Mapping[str, float] | Any
) -> dict[str, float]:
    """Correlations of two rankings of systems known by their published numbers alone.

    Args:
        first: the metric of each system, larger is better, by its name; the truth of tau-ap.
        second: the same of the other qrels, in any order.

    Returns:
        tau, tau-ap and spearman.

    Raises:
        ValueError: if the systems differ, are less than two, or a value is not finite.

    Examples:
        >>> agreement_of_values({"a": 0.3, "b": 0.2, "c": 0.1}, {"c": 0.1, "b": 0.3, "a": 0.2})["tau-ap"]
        0.0
    """
    for name, values in (("first", first), ("second", second)):
        if not isinstance(values, Mapping) or not values:
            raise ArgumentError(name, f"must map systems to numbers, got {values!r}.")
    _same("systems", first, second)
    one = checks.real("first", list(first.values()), -np.inf, np.inf)
    two = checks.real("second", [second[system] for system in first], -np.inf, np.inf)
    return {name: coefficient(one, two).item() for name, coefficient in COEFFICIENTS.items()}


def _in_order(first: Scores, second: Scores) -> Scores:
    """`second` with systems and metrics in the order of `first`."""
    _same("systems", first.systems, second.systems)
    _same("metrics", first.metrics, second.metrics)
    if len(first.systems) < 2:
        raise ArgumentError("first", "must have at least two systems: a single system cannot be ranked.")
    systems = [second.systems.index(system) for system in first.systems]
    metrics = [second.metrics.index(metric) for metric in first.metrics]
    if tuple(second.larger_is_better[m] for m in metrics) != first.larger_is_better:
        raise ArgumentError(
            "first", "and `second` must agree on whether larger is better, got other metrics."
        )
    return second._replace(
        systems=first.systems,
        metrics=first.metrics,
        larger_is_better=first.larger_is_better,
        value=second.value[metrics][:, systems],
        weight=second.weight[metrics],
    )


def _same(what: str, first: Any, second: Any) -> None:
    for name, lacking in (("second", set(first) - set(second)), ("first", set(second) - set(first))):
        if lacking:
            raise ArgumentError(
                "first", f"and `second` must have the same {what}: `{name}` lacks {min(lacking)}."
            )


def _sorted(name: str, scores: Scores) -> Scores:
    """With queries in the order of their texts: the order that they come in changes no resample."""
    asked = scores.queries.select(pl.col(QUERY).cast(pl.String))
    if (again := asked.is_duplicated()).any():
        row = "|".join(map(str, asked.filter(again).row(0)))
        raise ArgumentError(name, f"must have each query once, got {row} again.")
    asked = asked.with_row_index("place").sort(QUERY)
    place = asked["place"].to_numpy()
    return scores._replace(
        queries=asked.drop("place"), value=scores.value[..., place], weight=scores.weight[:, place]
    )


def _shared(first: pl.DataFrame, second: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Where the queries of both stand in the one and in the other."""
    found = first.with_row_index("here").join(
        second.with_row_index("there"), on=list(QUERY), how="inner", nulls_equal=True
    )
    found = found.sort("here")
    return found["here"].to_numpy(), found["there"].to_numpy()


def _columns(scores: Scores) -> Float64[np.ndarray, "columns queries"]:
    return np.concatenate([scores.value.reshape(-1, scores.value.shape[2]), scores.weight])


def _resampled(key: Seed, columns: np.ndarray, replicates: int) -> np.ndarray:
    """Sums of the columns, [replicates, columns]."""
    if not columns.shape[1]:
        return np.zeros((replicates, len(columns)))
    return resampled_sums(key, columns, replicates)


def _strength(scores: Scores, sums: np.ndarray) -> np.ndarray:
    """Metrics of systems in each resample, [replicates, metrics, systems]; larger is better."""
    metrics, systems, _ = scores.value.shape
    value = sums[:, : metrics * systems].reshape(-1, metrics, systems)
    weight = sums[:, metrics * systems :, None]
    # Without weight there is no ranking: all systems tie.
    ratio = np.divide(value, weight, out=np.zeros_like(value), where=weight > 0)
    return round_ties(ratio * np.where(scores.larger_is_better, 1.0, -1.0)[:, None])


def _correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """All coefficients, on a last axis."""
    return np.stack([coefficient(first, second) for coefficient in COEFFICIENTS.values()], axis=-1)
