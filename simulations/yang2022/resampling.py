"""Bootstrap over queries, given the trained models: one resample for all checkpoints and test sets."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Float64

from owkg import checks
from owkg.keys import as_key, reproducible

LEVEL = 0.95
"""Default confidence level."""

REPLICATES = 200
"""Default number of resamples."""


class Resampled(NamedTuple):
    """Numbers about curves, and the same numbers on resampled queries; NaN if there is no such number.

    Attributes:
        value: numbers on the original queries.
        replicates: numbers on each resample.
    """

    value: Float64[np.ndarray, "*shape"]
    replicates: Float64[np.ndarray, "replicates *shape"]

    def __sub__(self, other: "Resampled") -> "Resampled":
        """The difference, resample by resample; both must come from one key."""
        return Resampled(self.value - other.value, self.replicates - other.replicates)


@reproducible
def query_counts(
    key: Any, queries: int, replicates: Any = REPLICATES
) -> Float32[np.ndarray, "replicates queries"]:
    """Counts of how often each resample draws each query: as many draws as queries, with replacement.

    Resample i of a key does not depend on the number of resamples.

    Args:
        key: key of `jax.random.key`; consumed.
        queries: number of queries.
        replicates: number of resamples.

    Raises:
        ValueError: if `key` is not a key, or `replicates` is not a whole number of at least 2.

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
    """Weights of the queries that sum to 1: first the original queries, then each resample."""
    weights = np.concatenate([np.ones((1, counts.shape[1])), counts.astype(np.float64)])
    return weights / counts.shape[1]


def interval(
    resampled: Resampled, level: float = LEVEL, *, within: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Float64[np.ndarray, "*shape"], Float64[np.ndarray, "*shape"]]:
    """Centred percentile interval of every number: lower and upper ends.

    The ends are the percentiles of the resamples, shifted so that their median is the value. A resample
    repeats queries, so that it has the noise of a sample twice: on average, more orders are contradicted and
    fits are worse than in the sample. Plain percentiles would include this bias twice as well. The interval
    is for the average of this number over samples of the same size.

    It covers other queries of the same kind with the same trained models. It covers neither retrained models
    nor other missing facts.

    Args:
        resampled: value and replicates.
        level: confidence level.
        within: range of the number by definition; ends outside are moved to its limits.

    Returns:
        Both ends; NaN where the value or the number of any resample is NaN.

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
