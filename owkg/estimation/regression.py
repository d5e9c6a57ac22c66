"""Difference estimator with leave-one-out slopes: means over queries from a random sample of them."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from owkg.stats import interval

# Weight, in draws, of the variance under the proxy as a floor of the residual variance.
_FLOOR = 20
_RIDGE = 0.02  # ridge of the slopes, if there are several covariates
# Fewest sampled values that judging changed for limits without exact ones.
FEW_CHANGES = 5


class Sample(NamedTuple):
    """Drawn queries, by stratum.

    Attributes:
        rows: rows of the queries in the population.
        stratum: stratum of each drawn query.
        sizes: N_h, the number of queries in each stratum of the population.
    """

    rows: Int[np.ndarray, "n"]
    stratum: Int[np.ndarray, "n"]
    sizes: Int[np.ndarray, "strata"]

    @property
    def drawn(self) -> Int[np.ndarray, "strata"]:
        """n_h, the number of drawn queries in each stratum."""
        return np.bincount(self.stratum, minlength=len(self.sizes))

    @property
    def weights(self) -> Float[np.ndarray, "n"]:
        """N_h / n_h of each query, divided by N; the weights add up to 1."""
        return (self.sizes / np.maximum(self.drawn, 1))[self.stratum] / self.sizes.sum()


class Fitted(NamedTuple):
    """Estimated means over a population.

    Attributes:
        mean: estimate for each target.
        variance: variance of each estimate.
        freedom: degrees of freedom of each variance, by Satterthwaite.
        r: correlation between the values and their prediction; 0 without a prediction.
    """

    mean: Float[np.ndarray, "targets"]
    variance: Float[np.ndarray, "targets"]
    freedom: Float[np.ndarray, "targets"]
    r: Float[np.ndarray, "targets"]


def fitted(
    y: Float[np.ndarray, "targets n"],
    x: Float[np.ndarray, "covariates targets n"],
    sample: Sample,
    floor: Float[np.ndarray, "targets"],
    *,
    of_these: bool = True,
    finite: bool = True,
) -> Fitted:
    """Means of y over the population, with the help of covariates whose population means are 0.

    The estimate averages y_i - b_(-i) x_i, where b_(-i) is the slope without query i, so the variance of
    these residuals is the variance of the estimate. The residual variance includes `floor`, the variance
    under the proxy itself, with the weight of 20 draws. A sample that lacks the rare large residual therefore
    does not yield an interval that is too narrow.

    Args:
        y: values of the drawn queries.
        x: covariates of the drawn queries minus the population means of the covariates.
        sample: the drawn queries and their strata.
        floor: variance of each target under the proxy.
        of_these: True (default): the means are over this population; False: over a larger one from which this
            population is itself a random sample.
        finite: whether the variance shrinks as the sample nears the population. Default True; pass False if
            the values of drawn queries are themselves estimates.
    """
    count, size = y.shape[1], int(sample.sizes.sum())
    weight = sample.weights
    left = y if len(x) == 0 else _left(y, x, weight * count)
    mean = left @ weight
    centred, raw = _centred(left, sample), _centred(y, sample)
    drawn, share = sample.drawn, sample.sizes / size
    squares = _by_stratum(centred**2, sample)
    each = squares / np.maximum(drawn - 1, 1)
    pooled = squares.sum(1) / max(count - len(sample.sizes), 1)
    floored = (squares.sum(1) + _FLOOR * floor) / (count - len(sample.sizes) + _FLOOR)
    # A stratum with one drawn query has the pooled variance.
    each = np.where(drawn > 1, each, pooled[:, None])
    rest = 1 - drawn / sample.sizes if of_these and finite else np.ones(len(drawn))
    parts = share**2 * each * rest / np.maximum(drawn, 1)
    variance = parts.sum(1)
    more = np.where(pooled > 0, np.maximum(floored / np.where(pooled > 0, pooled, 1), 1), 1)
    plain = floored * float((share**2 * rest / np.maximum(drawn, 1)).sum())
    freedom = variance**2 / np.maximum((parts**2 / np.maximum(drawn - 1, 1)).sum(1), 1e-300)
    freedom = np.where(
        variance > 0, np.clip(freedom, 1, count - len(sample.sizes)), count - len(sample.sizes)
    )
    variance = np.where(variance > 0, variance * more, plain)
    spread = (raw**2).sum(1)
    if not of_these:
        variance = variance + spread / max(count - 1, 1) / size
    r = np.sqrt(np.clip(1 - squares.sum(1) / np.where(spread > 0, spread, 1), 0, 1))
    return Fitted(mean, variance, np.maximum(freedom, 1), np.where(spread > 0, r, 0.0))


def _left(y: np.ndarray, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Residuals y_i - b_(-i) x_i, by the closed form of leave-one-out regression."""
    table = np.moveaxis(x, 0, -1)
    design = np.concatenate([np.ones((*y.shape, 1)), table], axis=-1)
    root = np.sqrt(weight)
    scaled = design * root[:, None]
    gram = np.swapaxes(scaled, -1, -2) @ scaled
    diagonal = np.einsum("tkk->tk", gram).copy()
    ridge = np.where(diagonal > 1e-12, (_RIDGE if len(x) > 1 else 0.0) * diagonal, 1.0)
    ridge[:, 0] = 0.0
    inverse = np.linalg.pinv(gram + ridge[:, :, None] * np.eye(design.shape[-1]), hermitian=True)
    slopes = inverse @ (np.swapaxes(scaled, -1, -2) @ (y * root)[..., None])
    error = y * root - (scaled @ slopes)[..., 0]
    moved = scaled @ inverse
    leverage = np.clip((moved * scaled).sum(-1), 0, 1 - 1e-6)
    without = slopes[:, None, :, 0] - moved * (error / (1 - leverage))[..., None]
    return y - (without[..., 1:] * table).sum(-1)


def _by_stratum(values: np.ndarray, sample: Sample) -> np.ndarray:
    """Sums over each stratum, [targets, strata]."""
    member = (sample.stratum[:, None] == np.arange(len(sample.sizes))).astype(float)
    return values @ member


def _centred(values: np.ndarray, sample: Sample) -> np.ndarray:
    means = _by_stratum(values, sample) / np.maximum(sample.drawn, 1)
    return values - means[:, sample.stratum]


def t_quantile(freedom: Float[np.ndarray, "*shape"], level: float) -> Float[np.ndarray, "*shape"]:
    """Student's quantile for a two-sided interval."""
    return special.stdtrit(freedom, (1 + level) / 2)


def wilson(
    found: Fitted, level: float, queries: int
) -> tuple[Float[np.ndarray, "targets"], Float[np.ndarray, "targets"]]:
    """Wilson's limits of means in [0, 1], with the effective number of draws (Korn and Graubard 1998)."""
    m = np.clip(found.mean, 0, 1)
    z = special.ndtri((1 + level) / 2)
    shrink = (z / t_quantile(found.freedom, level)) ** 2
    at_end = m * (1 - m) <= 0
    size = np.where(
        found.variance > 0,
        np.maximum(m * (1 - m), 0) / np.where(found.variance > 0, found.variance, 1),
        queries,
    )
    return interval.wilson(m, np.maximum(np.where(at_end, queries, size) * shrink, 1e-9), level)


def most_changed(changed: int, drawn: int, population: int, level: float) -> int:
    """Upper limit of the number of changed queries in the population, by Clopper and Pearson."""
    if drawn >= population:
        return changed
    tail = 1 - (1 - level) / 2
    share = 1.0 if changed >= drawn else float(special.betaincinv(changed + 1, drawn - changed, tail))
    return min(population, int(np.ceil(share * population)))
