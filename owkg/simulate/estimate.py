"""Monte Carlo over queries: chunked, sharded over devices, the same numbers whatever the chunk."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from owkg import checks
from owkg.metrics import Metric
from owkg.openworld import (
    CLASSIFICATION,
    INDEPENDENT,
    Classification,
    MissingModel,
    PredictionModel,
    Score,
    Setting,
    grid,
)
from owkg.openworld.prediction import shift
from owkg.openworld.setting import pair
from owkg.simulate import missing as missing_facts
from owkg.simulate.query import query_metrics
from owkg.simulate.sums import pairwise_sum

# Trials summed together on the device, at most, and answers in them; part of the result's definition, so
# that chunks cannot matter.
_BLOCK = 1024
_BLOCK_ANSWERS = 2**20
# Answers in flight when `chunk` is not given: some 20 MiB, about the cache of a CPU.
_CHUNK_ANSWERS = 2**19
# Trials between two calls of `on_progress`, a second or less on two CPU cores.
_TRIALS_PER_CALL = {Classification: 2**20, Score: 2**14}

Progress = Callable[[int, int], None]


class Estimate(NamedTuple):
    """Monte Carlo estimates over a grid of settings, float64 NumPy arrays.

    `values` stands for `[*grid, metrics]`, or `[*grid, models, metrics]` from `estimate_pair`.

    Attributes:
        mean: of one query's metric, `values`.
        variance: of one query's metric (divisor trials - 1), `values`.
        covariance: between metrics, `[*grid, metrics, metrics]`; from `estimate_pair` between models and
            metrics, `[*grid, models, metrics, models, metrics]`.
        standard_error: of `mean`, `values`.
        variance_standard_error: of `variance`, from the fourth central moment, `values`.
        trials: queries drawn for each setting.
    """

    mean: Any
    variance: Any
    covariance: Any
    standard_error: Any
    variance_standard_error: Any
    trials: int


@partial(jax.jit, static_argnames=("metrics", "missing", "prediction", "size", "block"))
def _block_sums(keys, counts, rows, *, metrics, missing, prediction, size, block):
    """Sums over trials of v, v^2, v^3, v^4 and v v', for blocks laid out `[steps, width]`."""

    def one_block(key, count, row):
        def one_trial(index):
            values = query_metrics(jax.random.fold_in(key, index), metrics, missing, prediction, size, *row)
            return jnp.where(index < count, values.reshape(-1), 0)

        values = jax.vmap(one_trial)(jnp.arange(block, dtype=jnp.uint32)).astype(jnp.float64)
        square = values * values
        powers = jnp.stack([values, square, square * values, square * square], axis=1)
        return pairwise_sum(powers), pairwise_sum(values[:, :, None] * values[:, None, :])

    return jax.lax.map(lambda step: jax.vmap(one_block)(*step), (keys, counts, rows))


def _layout(blocks: int, block: int, chunk: int, devices: int, per_call: int) -> tuple[int, int]:
    """(steps, width) of a device call: `width` blocks at a time, shared out over the devices.

    The calls are of equal length, so that the last one is not padded with idle blocks.
    """
    width = max(1, min(chunk // block, blocks))
    width = -(-width // devices) * devices
    steps = -(-blocks // width)
    calls = -(-steps // max(1, per_call // (width * block)))
    return -(-steps // calls), width


def _run(
    key: Any,
    metrics: Sequence[Metric],
    setting: Setting,
    abilities: tuple[np.ndarray, ...],
    trials: int,
    missing: MissingModel,
    prediction: PredictionModel,
    chunk: int | None,
    devices: Sequence[Any] | None,
    on_progress: Progress | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of powers `[settings, 4, values]` and of products `[settings, values, values]`."""
    devices = tuple(jax.devices() if devices is None else devices)
    size = int(np.max(setting.num_answers))
    block = min(trials, _BLOCK, max(1, _BLOCK_ANSWERS // size))
    chunk = max(1, _CHUNK_ANSWERS // size) if chunk is None else chunk
    per_setting = -(-trials // block)
    settings = int(np.prod(setting.shape))
    blocks = settings * per_setting
    steps, width = _layout(blocks, block, chunk, len(devices), _TRIALS_PER_CALL[type(prediction)])
    parameter = missing_facts.parameters(missing, setting, size)

    rows = (
        *(a.reshape(settings, -1).astype(np.float32) for a in abilities),
        parameter.reshape(settings, *parameter.shape[len(setting.shape) :]),
        setting.num_answers.reshape(settings).astype(np.int32),
        setting.num_entities.reshape(settings).astype(np.int32),
    )
    num_values = rows[0].shape[1] * len(metrics)
    powers = np.zeros((settings, 4, num_values))
    products = np.zeros((settings, num_values, num_values))
    sharding = NamedSharding(Mesh(np.array(devices), ("blocks",)), PartitionSpec(None, "blocks"))
    static = {"metrics": metrics, "missing": missing, "prediction": prediction, "size": size, "block": block}
    per_call = steps * width
    with jax.enable_x64(True):
        for start in range(0, blocks, per_call):
            number = np.arange(start, start + per_call)
            real = number < blocks
            which = np.minimum(number // per_setting, settings - 1)
            number_in_setting = number % per_setting
            counts = np.where(real, np.minimum(block, trials - number_in_setting * block), 0)

            def placed(array: np.ndarray) -> jax.Array:
                return jax.device_put(array.reshape(steps, width, *array.shape[1:]), sharding)

            folded = jax.vmap(lambda s, b: jax.random.fold_in(jax.random.fold_in(key, s), b))(
                which.astype(np.uint32), number_in_setting.astype(np.uint32)
            )
            keys = jax.device_put(folded.reshape(steps, width), sharding)
            sums = _block_sums(
                keys,
                placed(counts.astype(np.uint32)),
                tuple(placed(row[which]) for row in rows),
                **static,
            )
            block_powers, block_products = (np.asarray(s).reshape(per_call, *s.shape[2:])[real] for s in sums)
            # One block after the other, in order, so that the rounding does not depend on the calls.
            np.add.at(powers, which[real], block_powers)
            np.add.at(products, which[real], block_products)
            if on_progress is not None:
                done = np.minimum((start + per_call) * block, settings * trials)
                on_progress(int(done), settings * trials)
    return powers, products


def _summary(powers: np.ndarray, products: np.ndarray, trials: int) -> tuple[np.ndarray, ...]:
    """Mean, variance, covariance and the standard errors of mean and variance, from raw sums."""
    m1, m2, m3, m4 = np.moveaxis(powers / trials, 1, 0)
    mean = m1
    centred = products - trials * mean[:, :, None] * mean[:, None, :]
    covariance = centred / (trials - 1)
    variance = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0)
    fourth = np.maximum(m4 - 4 * mean * m3 + 6 * mean**2 * m2 - 3 * mean**4, 0)
    # Var(s^2) = (mu4 - sigma^4 (n-3)/(n-1)) / n.
    spread = fourth - variance**2 * (trials - 3) / (trials - 1)
    variance_error = np.sqrt(np.maximum(spread, 0) / trials)
    return mean, variance, covariance, np.sqrt(variance / trials), variance_error


def _abilities(setting: Setting, prediction: PredictionModel) -> tuple[np.ndarray, np.ndarray]:
    """What a model is able to do on missing and on test answers, in the prediction model's own terms."""
    l1, l2 = (np.clip(p, 0, 1) for p in setting.conditional_strengths())
    if isinstance(prediction, Classification):
        return l1, l2
    if isinstance(prediction, Score):
        others = setting.num_entities - setting.num_answers
        return np.asarray(shift(l1, others)), np.asarray(shift(l2, others))
    raise ValueError(f"`prediction` must be one of the models of owkg.openworld, got {prediction!r}.")


def _check_run(
    key: Any, metrics: Any, trials: Any, num_entities: Any, chunk: Any
) -> tuple[Any, tuple, int, int | None]:
    if isinstance(metrics, Metric):
        metrics = (metrics,)
    metrics = tuple(metrics)
    if not metrics or not all(isinstance(m, Metric) for m in metrics):
        raise ValueError(f"`metrics` must be one or more metrics, got {metrics!r}.")
    is_key = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    if not is_key or key.shape != ():
        raise ValueError(f"`key` must be one key of jax.random.key, got {key!r}.")
    trials = checks.integer("trials", trials, 2)
    chunk = None if chunk is None else checks.integer("chunk", chunk, 1)
    if np.ndim(trials) or np.ndim(chunk):
        raise ValueError("`trials` and `chunk` must be single numbers.")
    entities = checks.integer("num_entities", num_entities, 2)
    checks.require("num_entities", entities, entities < 2**31, "below 2**31 to be simulated")
    return key, metrics, int(trials), None if chunk is None else int(chunk)


def estimate(
    key: Any,
    metrics: Metric | Sequence[Metric],
    *,
    strength: Any,
    sparsity: Any,
    num_answers: Any,
    num_entities: Any,
    trials: int,
    correlation: Any = 0.0,
    missing: MissingModel = INDEPENDENT,
    prediction: PredictionModel = CLASSIFICATION,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    on_progress: Progress | None = None,
) -> Estimate:
    """Simulates `trials` queries of every setting of a grid and estimates each metric's moments.

    Args:
        key: of `jax.random.key`; consumed. Equal keys give equal results, to the last bit on one kind of
            device, whatever `chunk` and `devices` are.
        metrics: one metric or several, all measured on the same draws.
        strength, sparsity, num_answers, num_entities, correlation: as in `owkg.openworld.grid`.
        trials: queries for each setting, at least 2.
        missing: how facts come to be missing.
        prediction: how the model orders candidates.
        chunk: trials in flight at a time, in steps of a block (up to 1,024 trials); memory grows with it,
            about 50 bytes an answer. Chosen to fit the cache when None.
        devices: to share the work over; all of `jax.devices()` when None.
        on_progress: called with (trials done, trials in all) now and then.

    Returns:
        `Estimate` of shape `[*grid, metrics]`.

    Raises:
        ValueError: if an argument leaves its interval; the message names it.

    Examples:
        >>> import jax
        >>> from owkg.metrics import MRR
        >>> result = estimate(
        ...     jax.random.key(0), MRR, strength=0.7, sparsity=0.35, num_answers=43,
        ...     num_entities=14505, trials=20_000,
        ... )
        >>> abs(result.mean[0] - 0.192762) < 4 * result.standard_error[0]
        np.True_

    References:
        Yang, Lin, Zhang (NeurIPS 2022), sections 4 and 5.
    """
    key, metrics, trials, chunk = _check_run(key, metrics, trials, num_entities, chunk)
    setting = grid(
        strength=strength,
        sparsity=sparsity,
        num_answers=num_answers,
        num_entities=num_entities,
        correlation=correlation,
    )
    abilities = _abilities(setting, prediction)
    sums = _run(key, metrics, setting, abilities, trials, missing, prediction, chunk, devices, on_progress)
    mean, variance, covariance, error, variance_error = _summary(*sums, trials)
    n = len(metrics)
    return Estimate(
        mean.reshape(*setting.shape, n),
        variance.reshape(*setting.shape, n),
        covariance.reshape(*setting.shape, n, n),
        error.reshape(*setting.shape, n),
        variance_error.reshape(*setting.shape, n),
        trials,
    )


def estimate_pair(
    key: Any,
    metrics: Metric | Sequence[Metric],
    *,
    strength: Any,
    other_strength: Any,
    sparsity: Any,
    num_answers: Any,
    num_entities: Any,
    trials: int,
    correlation: Any = 0.0,
    other_correlation: Any = None,
    missing: MissingModel = INDEPENDENT,
    prediction: PredictionModel = CLASSIFICATION,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    on_progress: Progress | None = None,
) -> Estimate:
    """`estimate` for two models measured on the same queries: they share the missing facts.

    Args:
        strength, other_strength: l of the two models.
        correlation, other_correlation: rho of the two models; one for both when the other is None.
        The other arguments: as in `estimate`.

    Returns:
        `Estimate` of shape `[*grid, 2, metrics]`, covariance `[*grid, 2, metrics, 2, metrics]`.

    Raises:
        ValueError: if an argument leaves its interval; the message names it.
    """
    key, metrics, trials, chunk = _check_run(key, metrics, trials, num_entities, chunk)
    one, two = pair(
        strength=strength,
        other_strength=other_strength,
        correlation=correlation,
        other_correlation=other_correlation,
        sparsity=sparsity,
        num_answers=num_answers,
        num_entities=num_entities,
    )
    shape = one.shape
    abilities = tuple(
        np.stack(both, axis=-1)
        for both in zip(_abilities(one, prediction), _abilities(two, prediction), strict=True)
    )
    sums = _run(key, metrics, one, abilities, trials, missing, prediction, chunk, devices, on_progress)
    mean, variance, covariance, error, variance_error = _summary(*sums, trials)
    n = len(metrics)
    return Estimate(
        mean.reshape(*shape, 2, n),
        variance.reshape(*shape, 2, n),
        covariance.reshape(*shape, 2, n, 2, n),
        error.reshape(*shape, 2, n),
        variance_error.reshape(*shape, 2, n),
        trials,
    )
