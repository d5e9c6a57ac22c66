"""One kernel for one query, evaluated over a grid of queries in bounded memory and double precision."""

import contextlib
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special

from owkg import checks
from owkg.metrics import Metric, checked

# Float64 entries of one array of a batch of settings. On a CPU a batch's arrays should stay in the
# first-level cache (measured: 2**11 is 1.5 to 2 times faster than 2**13 and up); an accelerator wants width.
_BATCH_ENTRIES = {"cpu": 2**11}
_BATCH_ENTRIES_ELSEWHERE = 2**18


# Ranks that a table of sums may have; a table of so many takes 1.6 GB, and twice that while it is made.
_LARGEST_RANK = 10**8


def padded_size(largest: Any) -> int:
    """A round number that is at least `largest`: few sizes, so few compilations.

    Powers of two from 16 to 2**20, multiples of 2**20 above.
    """
    if largest > 2**20:
        return -(-int(largest) // 2**20) * 2**20
    return max(16, 1 << (int(largest) - 1).bit_length())


def _new_prefix_sums(metric: Metric, largest_rank: int) -> np.ndarray:
    # Evaluated now, in float64, even when a caller is under a trace.
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        ranks = jnp.arange(1, largest_rank + 1, dtype=jnp.float64)
        weight = np.asarray(checked(metric).weight(ranks), np.float64)
    if not np.isfinite(weight).all():
        rank = int(np.argmin(np.isfinite(weight)))
        raise ValueError(
            f"`metric` must weigh every rank with a finite number, got {metric.name!r} with "
            f"{weight[rank]} at rank {rank + 1}."
        )
    sums = np.zeros((2, padded_size(largest_rank) + 1))
    np.cumsum(weight, out=sums[0, 1 : largest_rank + 1])
    np.cumsum(weight**2, out=sums[1, 1 : largest_rank + 1])
    # Ranks that no candidate can have: any finite number does.
    sums[:, largest_rank + 1 :] = sums[:, largest_rank : largest_rank + 1]
    sums.flags.writeable = False
    return sums


_prefix_sums = lru_cache(maxsize=8)(_new_prefix_sums)


def prefix_sums(metric: Metric, largest_rank: int) -> Float[np.ndarray, "2 ranks"]:
    """S1(x) = sum_{j <= x} h(j) and S2(x) = sum_{j <= x} h(j)^2, for x = 0 .. `largest_rank`.

    The table is longer, of a round length; what lies behind `largest_rank` is finite and means nothing.

    Raises:
        ValueError: if the metric's weight is not finite at some rank, or there are more than 10**8 ranks.
    """
    largest_rank = int(largest_rank)
    if largest_rank > _LARGEST_RANK:
        raise ValueError(
            f"`num_entities` must be below {_LARGEST_RANK:,} for exact sums, got {largest_rank:,}."
        )
    # Great tables are made anew each time rather than kept.
    return (_prefix_sums if largest_rank <= 2**20 else _new_prefix_sums)(metric, largest_rank)


def log_factorials(size: int) -> np.ndarray:
    """log 0!, log 1!, ..., log (size-1)!, by SciPy in float64."""
    return special.gammaln(np.arange(size) + 1.0)


@jax.custom_jvp
def binomial_pmf(k: Any, n: Any, p: Any, log_factorial: Array) -> Array:
    """P(Binomial(n, p) = k); 0 for k outside 0..n; exact at p = 0 and p = 1, as is its slope in p.

    Args:
        k: integers.
        n: integers below the length of `log_factorial`.
        p: probability in [0, 1]; the only argument with a derivative.
        log_factorial: table of log j!.
    """
    inside = (k >= 0) & (k <= n)
    k = jnp.where(inside, k, 0)
    n = jnp.maximum(n, 0)
    choose = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
    # 0 * log 0 is 0 here: an event that need not happen.
    happens = jnp.where(k == 0, 0.0, k * jnp.log(jnp.where(k == 0, 1.0, p)))
    fails = jnp.where(n == k, 0.0, (n - k) * jnp.log1p(-jnp.where(n == k, 0.0, p)))
    return jnp.where(inside, jnp.exp(choose + happens + fails), 0.0)


@binomial_pmf.defjvp
def _binomial_pmf_slope(primals, tangents):
    k, n, p, log_factorial = primals
    fewer = partial(binomial_pmf, n=n - 1, p=p, log_factorial=log_factorial)
    return binomial_pmf(*primals), n * (fewer(k - 1) - fewer(k)) * tangents[2]


@partial(jax.jit, static_argnames=("kernel", "batch_size"))
def _mapped(kernel: Callable, batch_size: int, shared: tuple, rows: tuple):
    return jax.lax.map(lambda row: kernel(*shared, *row), rows, batch_size=batch_size)


def over_grid(kernel: Callable, shared: tuple, rows: tuple, shape: tuple[int, ...], entries: int) -> Any:
    """Evaluates `kernel(*shared, *row)` for every setting of a grid.

    Concrete settings are computed in float64 whatever `jax_enable_x64` says, and come back as NumPy
    arrays; traced ones keep the caller's precision and stay traced.

    Args:
        kernel: a module-level function of one setting, returning a tuple of scalars.
        shared: arrays, the same for all settings.
        rows: arrays of shape `[*shape, ...]`.
        shape: of the grid.
        entries: size of the kernel's largest array.

    Returns:
        The kernel's tuple, each of shape `shape`.
    """
    count = int(np.prod(shape))
    traced = checks.is_traced(*rows, *shared)
    room = _BATCH_ENTRIES.get(jax.default_backend(), _BATCH_ENTRIES_ELSEWHERE)
    batch_size = max(1, min(room // entries, count))
    # Copies: JAX remembers the constant that it made of an array, in the precision of the first use.
    shared = tuple(np.array(array) if isinstance(array, np.ndarray) else array for array in shared)
    with contextlib.nullcontext() if traced else jax.enable_x64(True):
        flat = tuple(row.reshape(count, *row.shape[len(shape) :]) for row in rows)
        outputs = _mapped(kernel, batch_size, shared, flat)
        if traced:
            return tuple(output.reshape(shape) for output in outputs)
        return tuple(np.asarray(output).reshape(shape)[()] for output in outputs)
