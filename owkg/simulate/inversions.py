"""How often a sparse test set puts two models in the other order than the full one."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from owkg.checks import ArgumentError
from owkg.simulate.resample import Resampled

# Sums of the same weights in another order: closer than this, relative to them, two values are equal.
_ROUNDING = 2e-6


class Inversions(NamedTuple):
    """Of each pair of models; nan where the full test gives no order, as on the diagonal.

    Attributes:
        probability: that a draw contradicts the order on the full test, [metrics, models, models].
        standard_error: of it, never 0, [metrics, models, models].
    """

    probability: Float64[np.ndarray, "metrics models models"]
    standard_error: Float64[np.ndarray, "metrics models models"]


def inversions(resampled: Resampled) -> Inversions:
    """P(the order of two models in a draw contradicts their order on the full test).

    A draw in which both read the same, up to rounding, contradicts nothing. Draws without any query are
    left out.

    Args:
        resampled: of `resample`.

    Raises:
        ValueError: if no draw has a mean.
    """
    values = resampled.values[resampled.queries > 0]
    draws, models, metrics = values.shape
    if not draws:
        raise ArgumentError("resampled", "must have a draw that leaves a query, got none.")
    share = np.zeros((metrics, models, models))
    for metric in range(metrics):
        read = np.ascontiguousarray(values[:, :, metric].T)
        full = _order(resampled.full[:, None, metric], resampled.full[None, :, metric])
        for model in range(models - 1):
            others = slice(model + 1, models)
            contradicts = _order(read[model], read[others]) * full[model, others, None] < 0
            share[metric, model, others] = share[metric, others, model] = contradicts.mean(1)
        share[metric][full == 0] = np.nan
    smoothed = (share * draws + 0.5) / (draws + 1)
    return Inversions(share, np.sqrt(smoothed * (1 - smoothed) / draws))


def _order(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """-1, 0 or 1: whether `one` is smaller, the same up to rounding, or larger."""
    gap = one - two
    return np.sign(gap) * (np.abs(gap) > _ROUNDING * np.maximum(np.abs(one), np.abs(two)))
