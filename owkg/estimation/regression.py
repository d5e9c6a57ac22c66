"""The difference estimator with leave-one-out slopes: means over queries from a few drawn at random."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special

from owkg.stats import interval

# Draws that the variance under the proxy counts for, as a floor of the residual variance.
_FLOOR = 20
_RIDGE = 0.02  # of several covariates
# Sampled values that differ from what was known before; fewer join exact limits.
FEW_CHANGES = 5


class Sample(NamedTuple):
    """Queries that were drawn, stratum by stratum.

    Attributes:
        rows: of the population.
        stratum: of each.
        sizes: N_h, queries of each stratum.
    """

    rows: Int[np.ndarray, "n"]
    stratum: Int[np.ndarray, "n"]
    sizes: Int[np.ndarray, "strata"]

    @property
    def drawn(self) -> Int[np.ndarray, "strata"]:
        """n_h, drawn queries of each stratum."""
        return np.bincount(self.stratum, minlength=len(self.sizes))

    @property
    def weights(self) -> Float[np.ndarray, "n"]:
        """N_h / n_h of each query, over N: they add up to 1."""
        return (self.sizes / np.maximum(self.drawn, 1))[self.stratum] / self.sizes.sum()


class Fitted(NamedTuple):
    """Means over a population, estimated.

    Attributes:
        mean: of each target.
        variance: of its error.
        freedom: degrees of freedom of the variance, by Satterthwaite.
        r: correlation between the values and their prediction; 0 where nothing is predicted.
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

    y_i - b_(-i) x_i is averaged, b_(-i) the slope without query i, so that the variance of what is left is
    the variance of the estimate. The residual variance counts as many draws of `floor`, the variance that the
    proxy itself leaves, so that a sample without the rare large residual does not promise too much.

    Args:
        y: values of the drawn queries.
        x: their covariates minus the means of these over the population.
        sample: how they were drawn.
        floor: for each target.
        of_these: whether the population is meant, rather than queries like it, of which it is a sample.
        finite: whether the variance shrinks as the sample nears the population; not where the values of
            drawn queries are themselves estimates.
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
    # A stratum of one query has the pooled variance.
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
    """What covariates leave of y: y_i - b_(-i) x_i, by the closed form of regression without one row."""
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
    """Sums of each stratum, [targets, strata]."""
    member = (sample.stratum[:, None] == np.arange(len(sample.sizes))).astype(float)
    return values @ member


def _centred(values: np.ndarray, sample: Sample) -> np.ndarray:
    means = _by_stratum(values, sample) / np.maximum(sample.drawn, 1)
    return values - means[:, sample.stratum]


def t_quantile(freedom: Float[np.ndarray, "*shape"], level: float) -> Float[np.ndarray, "*shape"]:
    """Student's quantile of a two-sided interval."""
    return special.stdtrit(freedom, (1 + level) / 2)


def wilson(
    found: Fitted, level: float, queries: int
) -> tuple[Float[np.ndarray, "targets"], Float[np.ndarray, "targets"]]:
    """Wilson's limits of means in [0, 1], on as many draws as would scatter so (Korn and Graubard 1998)."""
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
    """The most queries that may have changed if so many drawn ones have: Clopper and Pearson's limit."""
    if drawn >= population:
        return changed
    tail = 1 - (1 - level) / 2
    share = 1.0 if changed >= drawn else float(special.betaincinv(changed + 1, drawn - changed, tail))
    return min(population, int(np.ceil(share * population)))
