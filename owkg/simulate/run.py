"""Random queries: many trials in blocks, distributed over devices, summed in one fixed order."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Key

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.storage import free_memory
from owkg.openworld import Classification, MissingModel, PredictionModel, Score, Setting
from owkg.rank_weights import RankWeight
from owkg.rank_weights.registry import Metrics, checked_metrics
from owkg.simulate import missing as missing_facts
from owkg.simulate.classification import classification_ranks
from owkg.simulate.exchangeable import exchangeable_metrics, is_exchangeable
from owkg.simulate.numerics import pairwise_sum
from owkg.simulate.scores import score_ranks

# Maximum trials summed together on the device, and answers in them. They are part of the definition of the
# result, so that it does not depend on chunks.
_BLOCK = 1024
_BLOCK_ANSWERS = 2**20
# Bytes that an answer in flight takes.
_BYTES = 50
# Answers in flight if `chunk` is not given: about the cache of a CPU, or enough for
# all cores of each accelerator (on an H100, 11 times as many as 2**19 are 6.2 to 6.7 times as fast).
_CPU_ANSWERS, _OTHER_ANSWERS = 2**19, 2**23
# Trials between two calls of `on_progress`, a second or less on two CPU cores.
_TRIALS_PER_CALL = {Classification: 2**20, Score: 2**14}
# Maximum answers between two calls, a few seconds.
_ANSWERS_PER_CALL = 2**27

Progress = Callable[[int, int], None]


class SimulationRun(NamedTuple):
    """Metrics, trials and models of a simulation, and how its work is divided."""

    metrics: tuple[RankWeight, ...]
    trials: int
    missing: MissingModel
    prediction: PredictionModel
    chunk: int | None
    devices: tuple[Any, ...]
    on_progress: Progress | None


def checked_run(
    metrics: Metrics,
    trials: int,
    missing: MissingModel,
    prediction: PredictionModel,
    chunk: int | None,
    devices: Sequence[Any] | None,
    on_progress: Progress | None,
) -> SimulationRun:
    """`SimulationRun` of checked arguments; ValueError names the first bad one."""
    measured = checked_metrics(metrics)
    for name, model, kind in (
        ("missing", missing, MissingModel),
        ("prediction", prediction, PredictionModel),
    ):
        if not isinstance(model, kind):
            raise ArgumentError(name, f"must be one of the models of owkg.openworld, got {model!r}.")
    trials = checks.whole("trials", trials, 2)
    if chunk is not None:
        chunk = checks.whole("chunk", chunk, 1)
    devices = tuple(jax.devices() if devices is None else devices)
    if not devices:
        raise ArgumentError("devices", "must not be empty.")
    return SimulationRun(measured, trials, missing, prediction, chunk, devices, on_progress)


def _query_metrics(
    key: Key[Array, ""],
    missing_ability: Float[Array, "models"],
    test_ability: Float[Array, "models"],
    parameter: Float[Array, "..."],
    num_answers: Int[Array, ""],
    num_entities: Int[Array, ""],
    *,
    metrics: tuple[RankWeight, ...],
    missing: MissingModel,
    prediction: PredictionModel,
    size: int,
) -> Float[Array, "models metrics"]:
    """Metrics of several models on one random query; the models share its missing facts.

    Args:
        key: random key, consumed.
        missing_ability, test_ability: ability of each model on missing and on test answers, [models]:
            probability of a positive under `Classification`, mean score under `Score`.
        parameter: parameters of the missing-fact model in this setting.
        num_answers: N.
        num_entities: candidates before filtering.
        metrics, missing, prediction, size: static; `size` is at least N.
    """
    missing_key, model_key = jax.random.split(key)
    is_missing = missing_facts.draw_missing(missing_key, missing, parameter, num_answers, size)
    tests = jnp.sum(~is_missing, dtype=jnp.int32)
    counted = jnp.arange(size, dtype=jnp.int32) < tests
    draw_ranks = classification_ranks if isinstance(prediction, Classification) else score_ranks

    def one_model(key: Key[Array, ""], on_missing: Array, on_test: Array) -> Array:
        ranks = draw_ranks(key, is_missing, on_missing, on_test, num_answers, num_entities)
        ranks = jnp.where(counted, ranks, 1).astype(jnp.float32)
        weights = jnp.stack([metric.weight(ranks).astype(jnp.float32) for metric in metrics], axis=-1)
        return pairwise_sum(jnp.where(counted[:, None], weights, 0)) / tests

    keys = jax.random.split(model_key, missing_ability.shape[0])
    return jax.vmap(one_model)(keys, missing_ability, test_ability)


@partial(jax.jit, static_argnames=("metrics", "missing", "prediction", "size", "block", "small"))
def _block_sums(keys, counts, rows, *, metrics, missing, prediction, size, block, small):
    """Sums over trials of v, v^2, v^3, v^4 and v v', for blocks laid out `[steps, width]`."""
    index = jnp.arange(block, dtype=jnp.uint32)

    def one_step(step):
        keys, counts, rows = step
        if is_exchangeable(missing, prediction, rows[0].shape[1]):
            abilities = (ability[:, 0] for ability in rows[:2])
            values = exchangeable_metrics(keys, block, metrics, missing, size, small, *abilities, *rows[2:])
        else:
            one = partial(_query_metrics, metrics=metrics, missing=missing, prediction=prediction, size=size)
            each = jax.vmap(lambda key: jax.vmap(lambda i: jax.random.fold_in(key, i))(index))(keys)
            values = jax.vmap(lambda keys, row: jax.vmap(lambda key: one(key, *row))(keys))(each, rows)
            values = jnp.moveaxis(values.reshape(*each.shape, -1), -1, 0)
        values = jnp.where(index < counts[:, None], values, 0)
        return _moments(values.astype(jnp.float64))

    return jax.lax.map(one_step, (keys, counts, rows))


def _moments(
    values: Float[Array, "values blocks trials"],
) -> tuple[Float[Array, "blocks 4 values"], Float[Array, "blocks values values"]]:
    """Sums over trials of v, v^2, v^3, v^4 and v v'."""
    square = values * values
    powers = jnp.stack([values, square, square * values, square * square])
    products = values[:, None] * values
    powers, products = (pairwise_sum(jnp.moveaxis(array, -1, 0)) for array in (powers, products))
    return jnp.moveaxis(powers, -1, 0), jnp.moveaxis(products, -1, 0)


def trials_in_flight(devices: Sequence[Any], num_answers: int) -> int:
    """Trials of so many answers that all devices draw at a time by default."""
    on_cpu = devices[0].platform == "cpu"  # CPU devices share a cache
    return max(1, (_CPU_ANSWERS if on_cpu else _OTHER_ANSWERS * len(devices)) // _rounded(num_answers))


def _layout(blocks: int, block: int, chunk: int, devices: int, per_call: int) -> tuple[int, int]:
    """(steps, width) of a device call, with `width` blocks at a time distributed over the devices.

    All calls have the same length, so that the last one is not padded with idle blocks.
    """
    width = max(1, min(chunk // block, blocks))
    width = -(-width // devices) * devices
    steps = -(-blocks // width)
    calls = -(-steps // max(1, per_call // (width * block)))
    return -(-steps // calls), width


def _rounded(answers: int) -> int:
    """`answers` rounded up a little, so that few sizes need to be compiled."""
    step = 4 if answers <= 128 else 64
    return -(-answers // step) * step


def sums_over_trials(
    key: Array, run: SimulationRun, setting: Setting, abilities: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of powers `[settings, 4, values]` and of products `[settings, values, values]`, float64.

    The grid is flattened to `settings`; `values` is models times metrics. Block b of setting s uses `key`
    folded with s and b. `abilities` holds the abilities on missing and on test answers, `[*grid]` or `[*grid,
    models]`.
    """
    size = _rounded(int(np.max(setting.num_answers)))
    block = min(1 << (run.trials - 1).bit_length(), _BLOCK, max(1, _BLOCK_ANSWERS // size))
    chunk = trials_in_flight(run.devices, size) if run.chunk is None else run.chunk
    per_setting = -(-run.trials // block)
    settings = int(np.prod(setting.shape))
    blocks = settings * per_setting
    in_a_call = min(_TRIALS_PER_CALL[type(run.prediction)], max(1, _ANSWERS_PER_CALL // size))
    steps, width = _layout(blocks, block, chunk, len(run.devices), in_a_call)
    if run.devices[0].platform == "cpu":
        needed = _BYTES * size * block * width
        checks.memory("num_answers", needed, free_memory(), f"{block * width:,} queries at a time")
    parameter = missing_facts.parameters(run.missing, setting, size)
    rows = (
        *(a.reshape(settings, -1).astype(np.float32) for a in abilities),
        parameter.reshape(settings, *parameter.shape[len(setting.shape) :]),
        setting.num_answers.reshape(settings).astype(np.int32),
        setting.num_entities.reshape(settings).astype(np.int32),
    )
    num_values = rows[0].shape[1] * len(run.metrics)
    powers = np.zeros((settings, 4, num_values))
    products = np.zeros((settings, num_values, num_values))
    sharding = NamedSharding(Mesh(np.array(run.devices), ("blocks",)), PartitionSpec(None, "blocks"))

    def placed(array: np.ndarray | jax.Array) -> jax.Array:
        return jax.device_put(array.reshape(steps, width, *array.shape[1:]), sharding)

    per_call = steps * width
    if run.on_progress is not None:
        run.on_progress(0, settings * run.trials)  # so that the first call shows the time per call
    with jax.enable_x64(True):
        for start in range(0, blocks, per_call):
            number = np.arange(start, start + per_call)
            real = number < blocks
            which = np.minimum(number // per_setting, settings - 1)
            in_setting = number % per_setting
            counts = np.where(real, np.minimum(block, run.trials - in_setting * block), 0)
            keys = jax.vmap(lambda s, b: jax.random.fold_in(jax.random.fold_in(key, s), b))(
                which.astype(np.uint32), in_setting.astype(np.uint32)
            )
            sums = _block_sums(
                placed(keys),
                placed(counts.astype(np.uint32)),
                tuple(placed(row[which]) for row in rows),
                metrics=run.metrics,
                missing=run.missing,
                prediction=run.prediction,
                size=size,
                block=block,
                small=int(np.max(setting.num_entities)) < 2**16,
            )
            # Blocks are added in order, so that the rounding does not depend on the calls.
            for total, part in zip((powers, products), sums, strict=True):
                np.add.at(total, which[real], np.asarray(part).reshape(per_call, *part.shape[2:])[real])
            if run.on_progress is not None:
                done = min((start + per_call) * block, settings * run.trials)
                run.on_progress(done, settings * run.trials)
    return powers, products
