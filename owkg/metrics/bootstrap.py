"""The bootstrap over questions: whole questions are drawn again, with all their ranks."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy import special

from owkg.keys import reproducible
from owkg.metrics.interval import Interval
from owkg.metrics.median import span
from owkg.metrics.sums import padded_size
from owkg.metrics.tasks import Tasks
from owkg.metrics.ties import Ties

# Entries of the arrays of one batch of replicates.
_ENTRIES = 2**22


def _counts(key: Array, replicate: Array, questions: Array, size: int) -> Int[Array, "size"]:
    """How often a replicate draws each question; `questions` of the `size` entries are real."""
    picks = jax.random.randint(jax.random.fold_in(key, replicate), (size,), 0, questions)
    drawn = (jnp.arange(size) < questions).astype(jnp.int32)
    return jnp.zeros(size, jnp.int32).at[picks].add(drawn)


@partial(jax.jit, static_argnames=("replicates", "batch"))
def _sums(key: Array, parts: Array, questions: Array, replicates: int, batch: int) -> Array:
    def once(replicate: Array) -> Array:
        counts = _counts(key, replicate, questions, parts.shape[1])
        return parts @ counts.astype(parts.dtype)

    return jax.lax.map(once, jnp.arange(replicates), batch_size=batch)


@reproducible
def resampled_sums(
    key: Any, parts: Float[np.ndarray, "sums questions"], replicates: int
) -> Float[np.ndarray, "replicates sums"]:
    """Sums over as many questions as there are, drawn with replacement, for each replicate.

    Replicate i of a key draws the same questions whatever is summed and however many replicates there are.

    Args:
        key: of `jax.random.key`.
        parts: what each question adds to each sum.
        replicates: how many.
    """
    count = parts.shape[1]
    size = padded_size(count)
    padded = np.zeros((padded_size(len(parts)), size))
    padded[: len(parts), :count] = parts
    batch = max(1, _ENTRIES // size)
    with jax.enable_x64(True):
        sums = _sums(key, jnp.asarray(padded), jnp.int32(count), replicates, batch)
        return np.asarray(sums)[:, : len(parts)]


@partial(jax.jit, static_argnames=("replicates", "batch", "size", "grid"))
def _medians(
    key: Array,
    question: Array,
    questions: Array,
    low: Array,
    high: Array,
    each: Array,
    replicates: int,
    batch: int,
    size: int,
    grid: int,
) -> Array:
    def once(replicate: Array) -> Array:
        weight = each * _counts(key, replicate, questions, size)[question]
        steps = jnp.zeros(grid).at[low].add(weight).at[high + 2].add(-weight)
        # Whole and half ranks alternate on the grid; a tie covers every second entry.
        share = jnp.cumsum(jnp.cumsum(steps.reshape(-1, 2), axis=0).reshape(-1))
        share = share / share[-1]
        middle = jnp.searchsorted(share, jnp.asarray([0.5 - 1e-9, 0.5 + 1e-9]), side="right")
        # A replicate that draws no weight has no median.
        return jnp.where(jnp.isfinite(share[-1]), jnp.minimum(middle, grid - 1).sum() / 4.0, jnp.nan)

    return jax.lax.map(once, jnp.arange(replicates), batch_size=batch)


@reproducible
def resampled_medians(
    key: Any, tasks: Tasks, ties: Ties, weight: np.ndarray | None, replicates: int
) -> Float[np.ndarray, "replicates"]:
    """The median rank of each replicate, of the questions that `resampled_sums` draws with the same key."""
    low, high = span(tasks, ties)
    count, questions = len(low), tasks.num_questions
    rows, size = padded_size(count), padded_size(questions)
    each = (np.ones(count) if weight is None else weight) / ((high - low) // 2 + 1)
    question = np.arange(count) if tasks.question is None else tasks.question

    def padded(values: np.ndarray, dtype: type) -> Array:
        return jnp.asarray(np.pad(values.astype(dtype), (0, rows - count)))

    grid = 2 * padded_size(int(high.max()) // 2 + 2)
    with jax.enable_x64(True):
        return np.asarray(
            _medians(
                key,
                padded(question, np.int32),
                jnp.int32(questions),
                padded(low, np.int32),
                padded(high, np.int32),
                padded(each, np.float64),
                replicates,
                max(1, _ENTRIES // (rows + size + grid)),
                size,
                grid,
            )
        )


def bounds(
    interval: Interval,
    value: float,
    replicates: Float[np.ndarray, "replicates"],
    level: float,
    influence: Float[np.ndarray, "questions"] | None = None,
) -> tuple[float, float]:
    """The ends of a bootstrap interval; NaN if the value or a replicate is none.

    BCa (Efron 1987) corrects the percentiles for bias, by the share of replicates below the value, and for
    skewness, by the acceleration sum(u^3) / (6 (sum u^2)^(3/2)) of the influences u.

    Args:
        interval: percentile or BCa.
        value: of the whole table.
        replicates: of the resampled ones.
        level: of confidence.
        influence: of each question; None: acceleration 0.
    """
    if not (np.isfinite(value) and np.isfinite(replicates).all()):
        return np.nan, np.nan
    ends = np.array([(1 - level) / 2, (1 + level) / 2])
    scale = 1e-12 * max(abs(value), 1e-300)
    if interval is Interval.BCA and np.ptp(replicates) > scale:
        below = np.mean(replicates < value - scale) + np.mean(np.abs(replicates - value) <= scale) / 2
        count = len(replicates)
        shift = special.ndtri(np.clip(below, 0.5 / count, 1 - 0.5 / count))
        acceleration = 0.0
        if influence is not None and influence.any():
            unit = influence / np.abs(influence).max()
            acceleration = float(np.sum(unit**3) / (6 * np.sum(unit**2) ** 1.5))
        z = shift + special.ndtri(ends)
        # Beyond its pole the correction means nothing: all replicates lie on one side.
        left = 1 - acceleration * z
        ends = special.ndtr(
            np.where(left > 0, shift + z / np.where(left > 0, left, 1.0), np.sign(z) * np.inf)
        )
    low, high = np.quantile(replicates, ends)
    return float(low), float(high)
