"""Evaluation of a one-query kernel over a grid of queries, in bounded memory and double precision.

A kernel takes its array library from `checks.library_of`. NumPy computes a single setting, which is faster
than importing JAX. JAX compiles the kernel for many settings.
"""

import warnings
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped
from scipy import special

from owkg import checks
from owkg.files.storage import free_memory
from owkg.keys import settled
from owkg.rank_weights import RankWeight, tables
from owkg.rank_weights.registry import checked_metric

# Float64 entries of one array of a batch of settings. On a CPU a batch's arrays should stay in the
# first-level cache (measured: 2**11 is 1.5 to 2 times faster than 2**13 and up); an accelerator needs
# larger batches.
_BATCH_ENTRIES = {"cpu": 2**11}
_BATCH_ENTRIES_ELSEWHERE = 2**18
# Entries of a kernel's largest array up to which NumPy finishes one setting before JAX has compiled it.
ENTRIES_IN_NUMPY = 2**10
# Entries that one processor computes in a second, roughly, and the seconds above which owkg warns.
_STEPS_PER_S, _LONG_S = 5e7, 120.0


def checked_prefix_sums(
    metric: RankWeight | str, largest_rank: int | np.integer
) -> Float[np.ndarray, "2 ranks"]:
    """Running sums (`owkg.rank_weights.tables`) of a metric that is a plain mean.

    Raises:
        ValueError: as `owkg.rank_weights.tables`, and if the metric has a link.
    """
    return tables.prefix_sums(checked_metric(metric), largest_rank)


def require_feasible(entries: float, steps: float, answers: int) -> None:
    """Error if the arrays do not fit in memory, and warning if the work takes minutes or hours.

    Args:
        entries: float64 entries of the largest arrays together.
        steps: entries computed in all.
        answers: largest number of answers of a query; entries and steps grow with it.

    Raises:
        ValueError: naming `num_answers`, if the arrays do not fit in memory.
    """
    checks.memory("num_answers", 8.0 * entries, free_memory(), f"the exact sums of {answers:,} answers")
    seconds = steps / _STEPS_PER_S
    if seconds > _LONG_S:
        minutes = seconds / 60
        time = f"{minutes:,.0f} minutes" if minutes < 120 else f"{minutes / 60:,.0f} hours"
        warnings.warn(
            f"exact sums over queries of {answers:,} answers take about {time}: the work grows with the "
            "square of the answers.",
            stacklevel=2,
        )


def log_factorials(size: int) -> np.ndarray:
    """log 0!, log 1!, ..., log (size-1)!, computed by SciPy in float64."""
    return special.gammaln(np.arange(size) + 1.0)


def binomial_pmf(
    k: Shaped[Any, "..."], n: Shaped[Any, "..."], p: Float[Any, "..."], log_factorial: Float[Any, "size"]
) -> Any:
    """P(Binomial(n, p) = k); 0 for k outside 0..n. Value and slope in p are exact at p = 0 and p = 1.

    `log_factorial` is a table of log j! that reaches beyond every n. Only p has a derivative.
    """
    if checks.library_of(k, n, p, log_factorial) is np:
        return _binomial_pmf(np, k, n, p, log_factorial)
    return _differentiable_pmf()(k, n, p, log_factorial)


def _binomial_pmf(
    xp: ModuleType,
    k: Shaped[Any, "..."],
    n: Shaped[Any, "..."],
    p: Float[Any, "..."],
    log_factorial: Float[Any, "size"],
) -> Any:
    inside = (k >= 0) & (k <= n)
    k = xp.where(inside, k, 0)
    n = xp.maximum(n, 0)
    choose = log_factorial[n] - log_factorial[k] - log_factorial[n - k]
    # 0 * log 0 is 0 here, because the event has probability 0 and occurs 0 times: so no log is infinite.
    happens = k * xp.maximum(xp.log(p), -1e30)
    fails = (n - k) * xp.maximum(xp.log1p(-p), -1e30)
    return xp.where(inside, xp.exp(choose + happens + fails), 0.0)


@cache
def _differentiable_pmf() -> Callable:
    import jax

    @jax.custom_jvp
    def pmf(k, n, p, log_factorial):
        return _binomial_pmf(jax.numpy, k, n, p, log_factorial)

    @pmf.defjvp
    def slope(primals, tangents):
        k, n, p, log_factorial = primals
        fewer = pmf(k - 1, n - 1, p, log_factorial) - pmf(k, n - 1, p, log_factorial)
        return pmf(*primals), n * fewer * tangents[2]

    return pmf


@cache
def _mapped() -> Callable:
    """Compiled map of a kernel over a grid, a function of kernel, batch size, shared arrays and rows."""
    import jax

    def mapped(kernel: Callable, batch_size: int, shared: tuple, rows: tuple):
        if rows[0].shape[0] == 1:  # no loop to compile
            return tuple(v[None] for v in kernel(*shared, *(row[0] for row in rows)))
        batches = tuple(row.reshape(-1, batch_size, *row.shape[1:]) for row in rows)
        outputs = jax.lax.map(jax.vmap(lambda row: kernel(*shared, *row)), batches)
        return tuple(output.ravel() for output in outputs)

    return jax.jit(mapped, static_argnums=(0, 1))


def over_grid(
    kernel: Callable,
    shared: tuple,
    rows: tuple,
    shape: tuple[int, ...],
    entries: int,
    *,
    only_jax: bool = False,
) -> Any:
    """Values of `kernel(*shared, *row)` for every setting of a grid, a tuple of arrays of shape `shape`.

    Concrete settings are computed in float64 whatever `jax_enable_x64` is, and returned as NumPy arrays.
    Traced settings keep the caller's precision and stay traced.

    Args:
        kernel: module-level function of one setting that returns a tuple of scalars.
        shared: arrays that are the same for all settings.
        rows: arrays of shape `[*shape, ...]`.
        shape: shape of the grid.
        entries: size of the kernel's largest array.
        only_jax: whether the kernel needs JAX arrays. Default False.
    """
    count = int(np.prod(shape))
    traced = checks.is_traced(*rows, *shared)
    if count == 1 and entries <= ENTRIES_IN_NUMPY and not only_jax and not traced:
        with np.errstate(all="ignore"):
            outputs = kernel(*shared, *(row.reshape(row.shape[len(shape) :])[()] for row in rows))
        return tuple(np.reshape(output, shape)[()] for output in outputs)
    import jax

    room = _BATCH_ENTRIES.get(jax.default_backend(), _BATCH_ENTRIES_ELSEWHERE)
    batch_size = max(1, room // entries)
    # Whole batches, because the kernel is compiled for one number of settings; similar grids share it.
    size = 1 if count == 1 else -(-count // batch_size) * batch_size
    # Copies, because JAX caches the constant it made from an array in the precision of the first use.
    shared = tuple(np.array(array) if isinstance(array, np.ndarray) else array for array in shared)
    with settled(x64=None if traced else True):
        xp = checks.library_of(*rows, *shared)
        flat = [row.reshape(count, *row.shape[len(shape) :]) for row in rows]
        if size > count:
            flat = [xp.concatenate([row, xp.repeat(row[-1:], size - count, axis=0)]) for row in flat]
        outputs = _mapped()(kernel, batch_size, shared, tuple(flat))
        if traced:
            return tuple(output[:count].reshape(shape) for output in outputs)
        return tuple(np.asarray(output)[:count].reshape(shape)[()] for output in outputs)
