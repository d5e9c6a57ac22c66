"""The bootstrap over queries, given the trained models: one resample for all checkpoints and test sets."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Float64

from owkg import checks
from owkg.keys import as_key, reproducible

LEVEL = 0.95
"""Of confidence, unless another is asked for."""

REPLICATES = 200
"""Resamples, unless another number is asked for."""


class Resampled(NamedTuple):
    """Numbers about curves, and the same of resampled queries; NaN where there is no such number.

    Attributes:
        value: of the queries as they are.
        replicates: of each resample.
    """

    value: Float64[np.ndarray, "*shape"]
    replicates: Float64[np.ndarray, "replicates *shape"]

    def __sub__(self, other: "Resampled") -> "Resampled":
        """The difference, resample by resample; both of one key."""
        return Resampled(self.value - other.value, self.replicates - other.replicates)


@reproducible
def query_counts(
    key: Any, queries: int, replicates: Any = REPLICATES
) -> Float32[np.ndarray, "replicates queries"]:
    """How often each resample draws each query: as many draws as queries, with replacement.

    Resample i of a key is the same however many there are.

    Args:
        key: of `jax.random.key`; consumed.
        queries: how many there are.
        replicates: how many resamples.

    Raises:
        ValueError: if the key is none, or `replicates` is not a whole number of at least 2.

    Examples:
        >>> counts = query_counts(jax.random.key(0), 500, 3)
        >>> counts.shape, counts.sum(axis=1).tolist()
        ((3, 500), [500.0, 500.0, 500.0])
    """
    key = as_key(key)
    replicates = checks.whole("replicates", replicates, 2)
    return np.asarray(_counts(key, queries, replicates))


@partial(jax.jit, static_argnames=("queries", "replicates"))
def _counts(key: Any, queries: int, replicates: int) -> Any:
    def once(replicate: Any) -> Any:
        picks = jax.random.randint(jax.random.fold_in(key, replicate), (queries,), 0, queries)
        return jnp.zeros(queries, jnp.float32).at[picks].add(1.0)

    return jax.lax.map(once, jnp.arange(replicates))


def with_all(
    counts: Float32[np.ndarray, "replicates queries"],
) -> Float64[np.ndarray, "1+replicates queries"]:
    """Weights of the queries that sum to 1: first of the queries as they are, then of each resample."""
    weights = np.concatenate([np.ones((1, counts.shape[1])), counts.astype(np.float64)])
    return weights / counts.shape[1]


def interval(
    resampled: Resampled, level: float = LEVEL, *, within: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]:
    """The centred percentile interval of every number: lower and upper ends.

    The percentiles of the resamples, moved so that their median is the value. A resample repeats queries
    and so has the noise of a sample twice: more orders are contradicted in it and fits are worse, on
    average, than in the sample. Plain percentiles would hold that bias twice as well. The interval is one
    for what samples of so many queries say on average.

    It speaks of other queries of the same kind, asked to the same trained models; not of models trained
    anew, nor of other missing facts.

    Args:
        resampled: value and replicates.
        level: of confidence.
        within: where the number lies by definition; ends outside are moved there.

    Returns:
        Both ends; NaN where the value or that of any resample is none.

    Examples:
        >>> replicates = np.linspace(0.2, 0.6, 101)
        >>> low, high = interval(Resampled(np.asarray(0.3), replicates), within=(0, 1))
        >>> round(float(low), 2), round(float(high), 2)
        (0.11, 0.49)
    """
    finite = np.isfinite(resampled.value) & np.isfinite(resampled.replicates).all(axis=0)
    usable = np.where(finite, resampled.replicates, 0.0)
    ends = np.quantile(usable, [(1 - level) / 2, (1 + level) / 2], axis=0)
    moved = np.clip(ends + resampled.value - np.median(usable, axis=0), *within)
    return np.where(finite, moved[0], np.nan), np.where(finite, moved[1], np.nan)
