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
    """Kind of interval that is made from the percentiles of the resamples."""

    CENTRED = "centred"
    PERCENTILE = "percentile"


class Agreement(NamedTuple):
    """Rank correlations of the systems under two qrels, with intervals.

    A coefficient is nan if one of the qrels ties all systems; its interval is nan if that happens in some
    resample.

    Attributes:
        metrics: names of the metrics.
        coefficients: names of the rank correlations.
        value: coefficients on the queries as they are, [metrics, coefficients].
        corrected: bias-corrected coefficients, 2 value - mean of the resamples, cut to [-1, 1], [metrics,
            coefficients].
        low, high: ends of the replication interval, [metrics, coefficients]: the range of the coefficient if
            as many queries are drawn again. It is not a confidence interval of the coefficient on infinitely
            many queries.
        tau_low, tau_high: ends of a confidence interval of tau on infinitely many queries, [metrics].
        resamples: coefficients of each resample, [replicates, metrics, coefficients].
        shared: number of queries in both qrels.
        only_first, only_second: number of queries in one of the qrels only.
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
    """Rank correlations of the systems under two qrels by each metric, with intervals over queries.

    A resample draws as many queries as there are, with replacement. Queries that both qrels have are drawn
    together; queries that only one of them has are drawn separately, as many as there are.

    Sampling noise swaps systems, and a resample has this noise twice. If the qrels agree, coefficients of
    resamples are therefore lower, on average, than the coefficient of the sample, which is itself lower than
    the coefficient on infinitely many queries. Plain percentiles have this bias twice: they may lie below
    `value`, and they miss 1 although the qrels agree on infinitely many queries. Centred percentiles, shifted
    so that their median is `value`, are an interval for the average coefficient of samples of the same size.
    In tests with 8 systems, 200 queries and a nominal level of 95 %, centred intervals covered this average
    in 91 % to 97 % of samples, plain percentiles in 99 % to 100 %. A tau of 1 on infinitely many queries was
    covered by centred intervals in 26 % (systems hardly apart) to 95 % (systems well apart) of samples, by
    plain percentiles in 0 % to 100 %. `corrected` removes the bias once: it is closer to the coefficient on
    infinitely many queries unless systems are hardly apart, and it varies more.

    `tau_low` and `tau_high` bound tau on infinitely many queries by the pairs whose order is certain under
    both qrels (`owkg.stats.sure_tau`). At a nominal level of 95 % they covered it in all of 300 samples of
    each of the 14 settings of `benchmarks/tau_coverage.py`. They are wide, up to [-1, 1], if systems are
    hardly apart.

    The intervals are about other queries of the same kind, put to the same systems.

    Args:
        key: seed, or key of `jax.random.key`.
        first: scores of at least two systems; its ranking is the truth of tau-ap.
        second: scores of the same systems by the same metrics, in any order.
        replicates: number of resamples, at least 2. Default 1000.
        level: level of the intervals, in (0, 1). Default 0.95.
        interval: kind of `low` and `high`. "centred" (default): percentiles of the resamples, shifted so that
            their median is `value`, cut to [-1, 1]. "percentile": unshifted percentiles.

    Raises:
        ValueError: if systems or metrics differ, there is only one system, or an argument is out of range.

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
                name, f"must be Scores, the first result of owkg.judge.scores, got {type(scores).__name__}."
            )
        if not (weight := scores.weight.sum(1)).all():
            none = scores.metrics[int(weight.argmin())]
            raise ArgumentError(name, f"must have queries with a positive weight, got none for {none}.")
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
    """Rank correlations of two rankings of systems that are known only by their published values.

    Args:
        first: metric of each system, by name; larger is better. Its ranking is the truth of tau-ap.
        second: metric of each system under the other qrels, by name, in any order.

    Returns:
        tau, tau-ap and spearman, by name.

    Raises:
        ValueError: if the systems differ, there are fewer than two, or a value is not finite.

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
            "first", "and `second` must agree on whether larger is better, got different metrics."
        )
    return second._replace(
        systems=first.systems,
        metrics=first.metrics,
        larger_is_better=first.larger_is_better,
        value=second.value[metrics][:, systems],
        weight=second.weight[metrics],
    )


def _same(what: str, first: Any, second: Any) -> None:
    """ArgumentError if one of two collections of names lacks an element."""
    for name, lacking in (("second", set(first) - set(second)), ("first", set(second) - set(first))):
        if lacking:
            raise ArgumentError(
                "first", f"and `second` must have the same {what}: `{name}` lacks {min(lacking)}."
            )


def _sorted(name: str, scores: Scores) -> Scores:
    """Scores with queries sorted by their texts, so that their order changes no resample."""
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
    """Row indices, in each of two frames, of the queries that both contain."""
    found = first.with_row_index("here").join(
        second.with_row_index("there"), on=list(QUERY), how="inner", nulls_equal=True
    )
    found = found.sort("here")
    return found["here"].to_numpy(), found["there"].to_numpy()


def _columns(scores: Scores) -> Float64[np.ndarray, "columns queries"]:
    """Values of all metrics and systems, followed by the weights of all metrics."""
    return np.concatenate([scores.value.reshape(-1, scores.value.shape[2]), scores.weight])


def _resampled(key: Seed, columns: np.ndarray, replicates: int) -> np.ndarray:
    """Sums of the columns over each resample, [replicates, columns]."""
    if not columns.shape[1]:
        return np.zeros((replicates, len(columns)))
    return resampled_sums(key, columns, replicates)


def _strength(scores: Scores, sums: np.ndarray) -> np.ndarray:
    """Metrics of the systems in each resample, [replicates, metrics, systems]; larger is better."""
    metrics, systems, _ = scores.value.shape
    value = sums[:, : metrics * systems].reshape(-1, metrics, systems)
    weight = sums[:, metrics * systems :, None]
    # All systems tie if no query has weight.
    ratio = np.divide(value, weight, out=np.zeros_like(value), where=weight > 0)
    return round_ties(ratio * np.where(scores.larger_is_better, 1.0, -1.0)[:, None])


def _correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """All coefficients, stacked on the last axis."""
    return np.stack([coefficient(first, second) for coefficient in COEFFICIENTS.values()], axis=-1)
