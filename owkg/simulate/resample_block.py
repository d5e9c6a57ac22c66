"""Compiled part of resampling: many sparse test sets at once, one model after the other."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import padded_size, prefix_sums, rank_weights
from owkg.simulate.full_test import FullTest, score_order
from owkg.simulate.numerics import prefix_counts

# Rows summed in float32 before their sums are added in float64. At least one row has no answer.
_ROWS = 64


class _Rows(NamedTuple):
    """Answers of each model, sorted by query and decreasing score, followed by rows without an answer.

    Attributes:
        source: entry of the drawn facts that decides whether a row is missing, [models, rows].
        weight: index into `weights` of a row's rank on the full test, [models, rows].
        tied: whether a row shares its score with another candidate, [models, rows].
        tied_row: tied rows, padded with a row that has no answer, [models, ties].
        tied_first, tied_last: first row, and row after the last, with the same query and score.
        tied_low, tied_high: indices into `sums` of the optimistic rank minus 1 and of the pessimistic rank.
        tied_width: number of ranks from the optimistic to the pessimistic one on the full test.
    """

    source: Any
    weight: Any
    tied: Any
    tied_row: Any
    tied_first: Any
    tied_last: Any
    tied_low: Any
    tied_high: Any
    tied_width: Any


class ResampleLayout(NamedTuple):
    """Arrays that all resamples of one full test set share, whichever facts are missing.

    Attributes:
        rows: rows of each model.
        query: number of each row's query; rows without an answer have a number of their own, [rows].
        begin: first row of each row's query, [rows].
        bounds: first row of each query, and the row after the last query, [queries + 1].
        weights: h of each reachable rank, [metrics, ranks].
        sums: S1 of each rank that ties can reach, [metrics, ranks].
    """

    rows: _Rows
    query: Any
    begin: Any
    bounds: Any
    weights: Any
    sums: Any


def laid_out(full: FullTest, metrics: tuple[RankWeight, ...], source: np.ndarray) -> ResampleLayout:
    """Rows of every model, and the tables that they index.

    `source` is the entry of the drawn facts that decides whether each answer is missing, [answers].
    """
    answers, models = len(full.query), len(full.score)
    orders = [score_order(full.query, score) for score in full.score]
    begin = orders[0].begin  # depends on queries only, so it is the same for all models
    starts = np.unique(begin)
    bounds = np.append(starts, answers)
    query = np.searchsorted(starts, begin)
    length = np.diff(bounds)[query]
    rows = (answers // _ROWS + 1) * _ROWS
    answer, first, last = (
        np.stack([getattr(order, name) for order in orders]) for name in ("answer", "first", "last")
    )
    low = np.take_along_axis(full.optimistic, answer, 1)
    high = np.take_along_axis(full.pessimistic, answer, 1)
    tied = (low < high) | (last - first > 1)
    counts = tied.sum(1)
    ties = padded_size(counts.max()) if counts.any() else 0
    tied_rows = np.full((models, ties), answers)
    for model in range(models):
        tied_rows[model, : counts[model]] = np.flatnonzero(tied[model])
    ranks = reachable(low, length)
    real = tied_rows < answers
    at = np.minimum(tied_rows, answers - 1)

    def of_ties(values: np.ndarray, otherwise: int) -> np.ndarray:
        return np.where(real, np.take_along_axis(np.broadcast_to(values, low.shape), at, 1), otherwise)

    tied_low, tied_high, tied_length = of_ties(low - 1, 0), of_ties(high, 1), of_ties(length, 1)
    ends = np.concatenate([tied_low, tied_high], axis=1)
    tied_ranks = reachable(ends, np.tile(tied_length, 2)) if ties else np.zeros(1, np.int64)

    def padded(values: np.ndarray, fill: float) -> np.ndarray:
        pad = [(0, 0)] * (values.ndim - 1) + [(0, rows - answers)]
        return np.pad(values, pad, constant_values=fill)

    return ResampleLayout(
        _Rows(
            padded(source[answer], 0).astype(np.int32),
            padded(np.searchsorted(ranks, low), 0).astype(np.int32),
            padded(tied, False),
            tied_rows.astype(np.int32),
            of_ties(first, answers).astype(np.int32),
            of_ties(last, answers).astype(np.int32),
            np.searchsorted(tied_ranks, tied_low).astype(np.int32),
            np.searchsorted(tied_ranks, tied_high).astype(np.int32),
            of_ties(high - low + 1, 1).astype(np.int32),
        ),
        padded(query, len(starts)).astype(np.int32),
        np.append(begin, np.arange(answers, rows)).astype(np.int32),
        bounds.astype(np.int32),
        np.stack([rank_weights(metric, _padded(ranks)).astype(np.float32) for metric in metrics]),
        np.stack([prefix_sums(m, max(1, tied_ranks.max()))[0, _padded(tied_ranks)] for m in metrics]),
    )


def reachable(first: Int[np.ndarray, "..."], length: Int[np.ndarray, "..."]) -> np.ndarray:
    """Integers in first .. first + length - 1 of any entry, ascending; lengths are at least 1."""
    first, length = np.broadcast_arrays(first, length)
    steps = np.zeros(int((first + length).max()) + 1, np.int32)
    np.add.at(steps, first, 1)
    np.add.at(steps, first + length, -1)
    return np.flatnonzero(np.cumsum(steps) > 0)


def _padded(ranks: np.ndarray) -> np.ndarray:
    """Ranks followed by copies of the last one, so that few table sizes occur."""
    return np.pad(ranks, (0, padded_size(len(ranks)) - len(ranks)), mode="edge")


@partial(jax.jit, static_argnames=("draw", "size", "block"))
def resampled_blocks(
    key: Key[Array, ""],
    starts: UInt32[Array, "blocks"],
    parameters: tuple,
    layout: ResampleLayout,
    *,
    draw: Callable[..., Array],
    size: int,
    block: int,
) -> tuple[Float[Array, "blocks models metrics block"], Int[Array, "blocks block"]]:
    """Mean over queries of each metric, and the number of queries with an answer left.

    `starts` holds the first draw of each block of `block` draws, with which `key` is folded.
    `draw(key, size, draws, *parameters)` is `Missingness.draw`.
    """

    def one_block(start: Array) -> tuple[Array, Array]:
        missing = draw(jax.random.fold_in(key, start), size, block, *parameters)
        values, left = jax.lax.map(partial(_one_model, missing, layout), layout.rows)
        return values, left[0]

    return jax.lax.map(one_block, starts)


def _one_model(missing: Array, layout: ResampleLayout, rows: _Rows) -> tuple[Array, Array]:
    """Metrics, [metrics, draws], and number of queries with an answer left, [draws]."""
    bounds, begin = layout.bounds, layout.begin
    gone = missing[rows.source]
    # Differences within a query are right although the counts wrap.
    before = prefix_counts(gone, jnp.uint16 if len(rows.source) < 2**16 else jnp.uint32)
    tests = jnp.diff(bounds)[:, None] - (before[bounds[1:]] - before[bounds[:-1]]).astype(jnp.int32)
    share = jnp.where(tests > 0, 1 / jnp.maximum(tests, 1).astype(jnp.float32), 0)
    share = jnp.concatenate([share, jnp.zeros_like(share[:1])])[layout.query]
    share = jnp.where(gone, 0, share)
    ahead = (before[:-1] - before[begin]).astype(jnp.int32)
    at = rows.weight[:, None] + ahead
    untied = jnp.where(rows.tied[:, None], 0, share)
    # Metric after metric: a stack of all would compute what they share anew for each.
    totals = jax.lax.map(lambda weights: _total(_looked_up(weights, at) * untied), layout.weights)
    if rows.tied_row.shape[0]:
        start = before[begin[rows.tied_row]]
        better = (before[rows.tied_first] - start).astype(jnp.int32)
        no_worse = (before[rows.tied_last] - start).astype(jnp.int32)
        low, high = rows.tied_low[:, None] + better, rows.tied_high[:, None] + no_worse
        width = (rows.tied_width[:, None] + no_worse - better).astype(jnp.float64)
        part = share[rows.tied_row] / width
        totals += jax.lax.map(
            lambda sums: jnp.sum((_looked_up(sums, high) - _looked_up(sums, low)) * part, axis=0), layout.sums
        )
    left = jnp.sum(tests > 0, axis=0, dtype=jnp.int32)
    mean = totals / left  # NaN if no query is left
    return mean.astype(jnp.float32), left


def _looked_up(table: Array, at: Array) -> Array:
    return table.at[at].get(mode="promise_in_bounds")


def _total(values: Float[Array, "rows draws"]) -> Float[Array, "draws"]:
    """Sum over rows, in float64 except for short stretches."""
    short = jnp.sum(values.reshape(-1, _ROWS, values.shape[1]), axis=1)
    return jnp.sum(short.astype(jnp.float64), axis=0)
