"""Data sensitivity: agreement between the rankings of systems on a part of the queries and on all."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float64, Int64

from owkg import checks
from owkg.errors import ArgumentError
from owkg.judge.scores import Scores, averaged, checked_rule, joined, over_seeds, ratios, runs_of
from owkg.keys import Seed, checked_key, generator
from owkg.metrics import Metric, Ties, part_of
from owkg.ranks import RankTable
from owkg.stats.rank_correlation import COEFFICIENTS, round_ties

if TYPE_CHECKING:
    import matplotlib.figure

# Queries of all draws in memory at a time, about 30 bytes each.
_ENTRIES = 2**19

QUANTILES = (0.025, 0.25, 0.5, 0.75, 0.975)
"""Default probabilities of the quantiles over the draws."""


class Stability(NamedTuple):
    """Agreement between the rankings on parts of the queries, or of the triples, and on all of them.

    If a metric ties all systems on a draw (or nothing in it has weight), tau is nan there; mean, standard
    deviation and quantiles are over the remaining draws.

    Attributes:
        metrics: names of the metrics.
        sizes: shares of the queries or triples, [sizes].
        queries: number of queries or triples drawn, [sizes].
        tau: rank correlation, [metrics, sizes, draws].
        mean: mean over the draws, [metrics, sizes].
        standard_deviation: standard deviation over the draws with divisor draws - 1, [metrics, sizes].
        quantiles: quantiles over the draws, [quantiles, metrics, sizes].
        at: probabilities of the quantiles.
        unit: unit that is drawn, "query" or "triple".
        coefficient: rank correlation, "tau", "tau-ap" or "spearman".
    """

    metrics: tuple[str, ...]
    sizes: Float64[np.ndarray, "sizes"]
    queries: Int64[np.ndarray, "sizes"]
    tau: Float64[np.ndarray, "metrics sizes draws"]
    mean: Float64[np.ndarray, "metrics sizes"]
    standard_deviation: Float64[np.ndarray, "metrics sizes"]
    quantiles: Float64[np.ndarray, "quantiles metrics sizes"]
    at: tuple[float, ...]
    unit: str = "query"
    coefficient: str = "tau"

    def plot(self, metrics: str | Sequence[str] | None = None) -> "matplotlib.figure.Figure":
        """Figure of the agreement by share of the queries or triples, a line for each metric.

        Arguments and errors are the same as in `owkg.plots.stability_figure`.
        """
        from owkg.plots.judging import stability_figure

        return stability_figure(self, metrics=metrics)


def stability(
    key: Seed,
    scores: Scores | Any,
    sizes: Sequence[float] | Any,
    draws: int,
    *,
    coefficient: str = "tau",
    quantiles: Sequence[float] = QUANTILES,
    on_progress: Callable[[int, int], None] | None = None,
) -> Stability:
    """Agreement between the rankings of the systems on random parts of the queries and on all queries.

    A part is drawn without replacement. The metric of a system on it is the sum of value over the sum of
    weight of its queries, so that a micro metric equals its value on a test set of these queries. Each draw
    orders the queries once for all sizes and metrics: its smaller parts are subsets of its larger ones, so
    that taus of one draw are correlated over the sizes. Draws are independent of each other. The metric of a
    system with several seeds is the mean over its seeds in every draw, because seeds are not drawn.

    Args:
        key: seed, or key of `jax.random.key`. Fewer draws are the first of more draws, and the part of a size
            does not depend on the other sizes.
        scores: scores of at least two systems.
        sizes: shares of the queries in (0, 1), rounded to whole queries, at least one.
        draws: number of draws, at least 2.
        coefficient: rank correlation: "tau" (default), "tau-ap" (the ranking on all queries is the truth) or
            "spearman".
        quantiles: probabilities in [0, 1]. Default `QUANTILES`.
        on_progress: function called with (draws done, draws in all) after each chunk.

    Raises:
        ValueError: if an argument is out of range, or there is only one system.

    Examples:
        >>> import polars as pl
        >>> rng = np.random.default_rng(0)
        >>> value = rng.random((1, 3, 500)) + np.array([0.1, 0.05, 0.0])[:, None]
        >>> asked = pl.DataFrame({"side": "tail", "entity": map(str, range(500)), "relation": "r"})
        >>> scores = Scores(("a", "b", "c"), ("mrr",), (True,), asked, value, np.ones((1, 500)))
        >>> found = stability(0, scores, [0.1, 0.9], draws=100)
        >>> found.tau.shape, bool(found.mean[0, 0] < found.mean[0, 1])
        ((1, 2, 100), True)

    References:
        Zhou, Chen, He, Ye, Sun (SIGIR 2022), section 5.1: sensitivity to the data. They discard triples
        (`stability_by_triple`). Here queries are drawn, because the answers to one query are not independent.
    """
    key = checked_key(key)
    if not isinstance(scores, Scores):
        raise ArgumentError(
            "scores", f"must be Scores, the first result of owkg.judge.scores, got {type(scores).__name__}."
        )
    metrics, systems, count = scores.value.shape
    if systems < 2:
        raise ArgumentError("scores", f"must have at least two systems, got {systems}.")
    if not (weight := scores.weight.sum(1)).all():
        none = scores.metrics[int(weight.argmin())]
        raise ArgumentError("scores", f"must have queries with a positive weight, got none for {none}.")
    shares, taken, draws, at = _drawn(count, "queries", sizes, draws, coefficient, quantiles)
    columns = np.concatenate([scores.value.reshape(-1, count), scores.weight]).T.copy()
    turned = np.where(scores.larger_is_better, 1.0, -1.0)[:, None]
    whole = round_ties(scores.strength)
    tau = np.empty((metrics, len(shares), draws))
    by_size = np.argsort(taken)
    added = np.diff(taken[by_size], prepend=0)
    rng, size = generator(key), max(1, _ENTRIES // count)
    for start in range(0, draws, size):
        stop = min(start + size, draws)
        # Queries with the smallest numbers come first; with 64 bits, no two numbers are equal.
        order = np.argsort(rng.integers(0, 2**64, (stop - start, count), np.uint64), axis=1)
        sums = np.empty((len(taken), stop - start, columns.shape[1]))
        sums[by_size] = _nested_sums(order[:, : taken.max()], added, columns).swapaxes(0, 1)
        value = sums[..., : metrics * systems].reshape(*sums.shape[:2], metrics, systems)
        weight = sums[..., metrics * systems :, None]
        # All systems tie if no query has weight.
        strength = turned * np.divide(value, weight, out=np.zeros_like(value), where=weight > 0)
        found = COEFFICIENTS[coefficient](whole, round_ties(strength))
        tau[..., start:stop] = found.transpose(2, 0, 1)
        if on_progress is not None:
            on_progress(stop, draws)
    mean, deviation, spread = _described(tau, at)
    described = (mean, deviation, spread, tuple(at.tolist()))
    return Stability(scores.metrics, shares, taken, tau, *described, "query", coefficient)


def stability_by_triple(
    key: Seed,
    tables: Mapping[str, RankTable | pl.DataFrame] | Any,
    metrics: Metric | Sequence[Metric],
    sizes: Sequence[float] | Any,
    draws: int,
    *,
    ties: str = Ties.REALISTIC,
    coefficient: str = "tau",
    quantiles: Sequence[float] = QUANTILES,
    on_progress: Callable[[int, int], None] | None = None,
) -> Stability:
    """Agreement between the rankings of the systems on random parts of the triples and on all triples.

    A triple is drawn with its ranking tasks on both sides. A query keeps the answers whose triples are drawn,
    and is dropped if there are none. Filtered ranks do not change, because an answer that is not drawn still
    is not a candidate of the others. Draws are nested over the sizes, as in `stability`.

    Args:
        key: seed, or key of `jax.random.key`. Fewer draws are the first of more draws, and the part of a size
            does not depend on the other sizes.
        tables: rank tables of at least two systems, by name, as for `owkg.judge.scores`.
        metrics: metrics, as for `owkg.judge.scores`.
        sizes: shares of the triples in (0, 1), rounded to whole triples, at least one.
        draws, coefficient, quantiles, on_progress: as for `stability`.
        ties: tie rule. Default "realistic".

    Raises:
        ValueError: if an argument is out of range, there is only one system, or the systems do not answer the
            same queries.

    References:
        Zhou, Chen, He, Ye, Sun (SIGIR 2022), section 5.1: triples of the test set are discarded.
    """
    if not isinstance(tables, Mapping) or len(tables) < 2:
        raise ArgumentError("tables", f"must hold rank tables of at least two systems, got {tables!r}.")
    key, chosen, rule = checked_key(key), averaged(metrics), checked_rule(ties)
    runs, owners = runs_of(tables)
    tasks, table = joined(runs)
    triple = ["head", "relation", "tail"]
    texts = table.select(pl.col(triple).cast(pl.String))
    distinct = texts.unique().sort(triple).with_row_index("number")
    number = texts.join(distinct, on=triple, how="left", maintain_order="left")["number"].to_numpy()
    count = len(distinct)
    shares, taken, draws, at = _drawn(count, "triples", sizes, draws, coefficient, quantiles)
    turned = np.where([one.larger_is_better for one in chosen], 1.0, -1.0)[:, None]
    rows = [np.flatnonzero(table["model"].to_numpy() == name) for name in runs]

    def strength(kept: np.ndarray) -> Float64[np.ndarray, "metrics systems"]:
        found = (ratios(part_of(tasks, own[kept[number[own]]]), chosen, rule, by_query=False) for own in rows)
        read = [
            [value.sum() / weight.sum() if weight.sum() else 0.0 for value, weight in one] for one in found
        ]
        return round_ties(turned * over_seeds(np.array(read).T[..., None], owners)[0][..., 0])

    whole = strength(np.ones(count, bool))
    tau = np.empty((len(chosen), len(shares), draws))
    rng = generator(key)
    for draw in range(draws):
        place = np.argsort(np.argsort(rng.integers(0, 2**64, count, np.uint64)))
        for s, size in enumerate(taken):
            tau[:, s, draw] = COEFFICIENTS[coefficient](whole, strength(place < size))
        if on_progress is not None:
            on_progress(draw + 1, draws)
    mean, deviation, spread = _described(tau, at)
    names = tuple(one.name for one in chosen)
    described = (mean, deviation, spread, tuple(at.tolist()))
    return Stability(names, shares, taken, tau, *described, "triple", coefficient)


def _nested_sums(order: np.ndarray, added: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Sums of columns over the first added[0], added[0] + added[1], ... rows of each order.

    Args:
        order: rows in the order in which each draw takes them, [draws, rows].
        added: number of rows that each size adds to the one before, [sizes].
        columns: contiguous numbers to add, [all rows, columns].

    Returns:
        Sums, [draws, sizes, columns].
    """
    from scipy import sparse  # slow to import; few commands need it

    ends = np.append(0, np.cumsum(np.tile(added, len(order))))
    shape = (len(ends) - 1, len(columns))
    parts = sparse.csr_array((np.ones(order.size), order.ravel(), ends), shape=shape) @ columns
    return np.cumsum(parts.reshape(len(order), len(added), -1), axis=1)


def _drawn(
    count: int, units: str, sizes: Sequence[float], draws: int, coefficient: str, quantiles: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """Sizes, the number of units of each, draws and quantiles, checked."""
    shares = np.atleast_1d(checks.real("sizes", sizes, 0, 1, closed=False)).reshape(-1)
    taken = np.rint(shares * count).astype(np.int64)
    checks.require("sizes", shares, taken > 0, f"large enough for one of the {count} {units}")
    checks.require("sizes", shares, taken < count, f"small enough to leave out one of the {count} {units}")
    draws = checks.whole("draws", draws, 2)
    at = np.atleast_1d(checks.real("quantiles", quantiles, 0, 1)).reshape(-1)
    if not isinstance(coefficient, str) or coefficient not in COEFFICIENTS:
        raise ArgumentError("coefficient", f"must be one of {', '.join(COEFFICIENTS)}, got {coefficient!r}.")
    return shares, taken, draws, at


def _described(tau: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation and quantiles of the draws that are not nan; nan if there are too few."""
    some = ~np.isnan(tau)
    count = some.sum(-1)
    known = np.where(some, tau, 0.0)
    mean, deviation = (np.full(count.shape, np.nan) for _ in range(2))
    np.divide(known.sum(-1), count, out=mean, where=count > 0)
    apart = np.where(some, tau - mean[..., None], 0.0)
    np.divide((apart**2).sum(-1), count - 1, out=deviation, where=count > 1)
    spread = np.full((len(at), *count.shape), np.nan)
    if (any_known := count > 0).any():
        spread[:, any_known] = np.nanquantile(tau[any_known], at, axis=-1)
    return mean, np.sqrt(deviation), spread
