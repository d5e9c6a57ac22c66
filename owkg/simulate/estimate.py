"""Monte Carlo estimates of one model's metrics, or of the metrics of two models that share missing facts."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from owkg import checks
from owkg.errors import ArgumentError
from owkg.keys import Key, as_key, reproducible
from owkg.openworld import (
    CLASSIFICATION,
    INDEPENDENT,
    Classification,
    MissingModel,
    PairArguments,
    PredictionModel,
    Setting,
    SettingArguments,
    grid,
)
from owkg.openworld.prediction import shift
from owkg.openworld.setting import pair
from owkg.rank_weights.registry import Metrics
from owkg.simulate.run import Progress, SimulationRun, checked_run, sums_over_trials


class MonteCarloEstimate(NamedTuple):
    """Monte Carlo estimates over a grid of settings, float64 NumPy arrays.

    Below, `values` is the shape `[*grid, metrics]`, or `[*grid, models, metrics]` from `estimate_pair`.

    Attributes:
        mean: mean of one query's metric, `values`.
        variance: variance of one query's metric (divisor trials - 1), `values`.
        covariance: covariance between metrics, `[*grid, metrics, metrics]`; from `estimate_pair`, between
            models and metrics, `[*grid, models, metrics, models, metrics]`.
        standard_error: standard error of `mean`, `values`.
        variance_standard_error: standard error of `variance`, from the fourth central moment, `values`.
        trials: queries drawn for each setting.
    """

    mean: Any
    variance: Any
    covariance: Any
    standard_error: Any
    variance_standard_error: Any
    trials: int


@reproducible
def estimate(
    key: Key,
    metrics: Metrics,
    *,
    trials: int,
    missing: MissingModel = INDEPENDENT,
    prediction: PredictionModel = CLASSIFICATION,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    on_progress: Progress | None = None,
    **setting: Unpack[SettingArguments],
) -> MonteCarloEstimate:
    """Moments of each metric, estimated from `trials` simulated queries of every setting of a grid.

    Args:
        key: random key of `jax.random.key`, consumed. Equal keys give equal results, bit for bit on one kind
            of device, for any `chunk` and `devices`.
        metrics: one or several metrics or their names, all measured on the same draws.
        trials: queries for each setting, at least 2. Probabilities have a resolution of 2^-24 = 6e-8.
        missing: missing-fact model. Default `INDEPENDENT`.
        prediction: prediction model, which orders the candidates. Default `CLASSIFICATION`.
        chunk: trials in flight at a time, rounded to blocks of up to 1,024 trials. Memory grows with it,
            about 50 bytes for each answer and more with several metrics. Default: what fits the cache of a
            processor, or 2^23 answers on each accelerator.
        devices: devices that share the work. Default: all of `jax.devices()`.
        on_progress: function called from time to time with (trials done, trials in all). Default: none.
        setting: strength, sparsity, num_answers, num_entities and optionally correlation; numbers or arrays
            that broadcast (`owkg.openworld.SettingArguments`).

    Returns:
        `MonteCarloEstimate` of shape `[*grid, metrics]`.

    Raises:
        ValueError: if an argument is out of range; the message names it.

    Examples:
        >>> import jax
        >>> from owkg.rank_weights import MRR
        >>> world = dict(sparsity=0.35, num_answers=43, num_entities=14505)
        >>> result = estimate(jax.random.key(0), MRR, trials=2_000, strength=0.7, **world)
        >>> abs(result.mean[0] - 0.192762) < 4 * result.standard_error[0]
        np.True_

    References:
        Yang, Lin, Zhang (NeurIPS 2022), sections 4 and 5.
    """
    run = checked_run(metrics, trials, missing, prediction, chunk, devices, on_progress)
    queries = grid(**setting)
    abilities = _abilities(queries, prediction)
    return _estimate(key, run, queries, abilities, (len(run.metrics),))


@reproducible
def estimate_pair(
    key: Key,
    metrics: Metrics,
    *,
    trials: int,
    missing: MissingModel = INDEPENDENT,
    prediction: PredictionModel = CLASSIFICATION,
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
    on_progress: Progress | None = None,
    **models: Unpack[PairArguments],
) -> MonteCarloEstimate:
    """Moments as in `estimate`, for two models measured on the same queries and the same missing facts.

    Args:
        models: the setting, and other_strength and optionally other_correlation of the second model
            (`owkg.openworld.PairArguments`).
        key, metrics, trials, missing, prediction, chunk, devices, on_progress: as in `estimate`.

    Returns:
        `MonteCarloEstimate` of shape `[*grid, 2, metrics]`, covariance `[*grid, 2, metrics, 2, metrics]`.

    Raises:
        ValueError: if an argument is out of range; the message names it.
    """
    run = checked_run(metrics, trials, missing, prediction, chunk, devices, on_progress)
    one, two = pair(**models)
    each = zip(_abilities(one, prediction), _abilities(two, prediction), strict=True)
    abilities = [np.stack(both, axis=-1) for both in each]
    return _estimate(key, run, one, abilities, (2, len(run.metrics)))


def _abilities(setting: Setting, prediction: PredictionModel) -> tuple[np.ndarray, np.ndarray]:
    """Ability of a model on missing and on test answers, in the prediction model's own terms."""
    entities = setting.num_entities
    checks.require("num_entities", entities, entities < 2**31, "below 2**31 to be simulated")
    l1, l2 = map(np.asarray, setting.conditional_strengths())
    if isinstance(prediction, Classification):
        return l1, l2
    others = entities - setting.num_answers
    return np.asarray(shift(l1, others)), np.asarray(shift(l2, others))


def _estimate(
    key: Key, run: SimulationRun, setting: Setting, abilities: Sequence[np.ndarray], values: tuple[int, ...]
) -> MonteCarloEstimate:
    """`MonteCarloEstimate` from the drawn sums; its arrays end in the axes `values`."""
    powers, products = sums_over_trials(as_key(key), run, setting, abilities)
    if not np.isfinite(powers).all():
        raise ArgumentError("metrics", "must weigh every rank with a finite number; the sums are not finite.")
    n = run.trials
    mean, m2, m3, m4 = np.moveaxis(powers / n, 1, 0)
    covariance = (products - n * mean[:, :, None] * mean[:, None, :]) / (n - 1)
    variance = np.maximum(np.diagonal(covariance, axis1=1, axis2=2), 0)
    fourth = np.maximum(m4 - 4 * mean * m3 + 6 * mean**2 * m2 - 3 * mean**4, 0)
    # Var(s^2) = (mu4 - sigma^4 (n-3)/(n-1)) / n.
    spread = np.maximum(fourth - variance**2 * (n - 3) / (n - 1), 0)
    shape = (*setting.shape, *values)
    return MonteCarloEstimate(
        mean.reshape(shape),
        variance.reshape(shape),
        covariance.reshape(*shape, *values),
        np.sqrt(variance / n).reshape(shape),
        np.sqrt(spread / n).reshape(shape),
        n,
    )
