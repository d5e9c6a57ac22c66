"""Errors of implied full metrics, fitted to checkpoints whose full metrics are known."""

import numpy as np
import polars as pl
from scipy import optimize, special

from owkg.auditing.calibration import difference_error, scale
from simulations.closed_world_audit.points import METRICS

# Full metrics below this value are ignored, because they are about chance level.
LEAST = 0.02
# Share of left-out checkpoints (of other worlds and models) that 95 % intervals are widened to contain.
HELD = 0.96
# Components of the error of a difference, as shares of the combined error of the two models.
SHARES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# Root mean square below which an error is rounding.
_EXACT = 1e-6


def calibration(rows: pl.DataFrame) -> pl.DataFrame:
    """Errors by metric, fitted to checkpoints whose full metrics are known.

    The root mean square of full minus implied, divided by 2 sqrt(full (1 - full)), is modelled as a power of
    the number of missing answers of a query, fitted by least squares of logarithms over worlds, sparsities
    and averages. The standard error is this value, inflated so that +-1.96 standard errors cover `HELD` of
    the checkpoints whose families and model are left out of the fit. The error of a difference is a scale
    mixture of normals whose standard deviations are `SHARES` of both errors together; the mixture weights
    have maximum likelihood, given the orders of all pairs.

    Args:
        rows: table from `points`, with facts missing independently.

    Returns:
        A row for each metric and share: error at one missing answer; power; largest number of missing
        answers; share and mixture weight.
    """
    parts = []
    for metric in METRICS:
        own = rows.filter((pl.col("metric") == metric) & (pl.col("full") > LEAST))
        error, power = _law(own)
        pairs = pairs_of(own)
        first, second = (pairs[f"implied_{which}"].to_numpy() for which in ("first", "second"))
        law = {"error": error, "power": power, "most_missing": round(own["lost"].to_numpy().max(), 2)}
        part = pl.DataFrame({"metric": metric} | law | {"share": SHARES, "mixture_weight": 0.0})
        both = difference_error(metric, pairs["lost_first"].to_numpy(), first, second, part)
        # Each world has the same total weight, however many pairs it has.
        of_world = pairs.select(1 / pl.len().over("setting", "density")).to_series().to_numpy()
        weights = _mixture_weights((first - second) / both, is_right(pairs), of_world)
        parts.append(part.with_columns(mixture_weight=weights, checkpoints=pl.lit(len(own))))
    return pl.concat(parts)


def _law(rows: pl.DataFrame) -> tuple[float, float]:
    """Error of one metric at one missing answer per query, and the power of the number of missing answers."""
    told = rows["implied"].to_numpy()
    ratio = np.abs(rows["full"].to_numpy() - told) / scale(told)
    label = pl.concat_str("setting", "density", "asked", "average", separator="/")
    tests, test = np.unique(rows.select(label).to_series().to_numpy(), return_inverse=True)
    # Worlds of one setting have the same families.
    families, family = np.unique(rows["setting"].to_numpy(), return_inverse=True)
    models, model = np.unique(rows["model"].to_numpy(), return_inverse=True)
    log_lost = np.log(rows["lost"].to_numpy())
    x = np.bincount(test, log_lost) / np.bincount(test)
    of_test = np.empty(len(tests), int)
    of_test[test] = family
    square, count = (
        np.bincount(test * len(models) + model, one, len(tests) * len(models)).reshape(-1, len(models))
        for one in (ratio**2, np.ones(len(ratio)))
    )

    def fitted(some: np.ndarray, others: np.ndarray) -> tuple[float, float]:
        total, of = square[some][:, others].sum(1), count[some][:, others].sum(1)
        at = total > of * _EXACT**2
        power, log = np.polyfit(x[some][at], np.log(total[at] / of[at]) / 2, 1)
        return float(np.exp(log)), float(power)

    left_out = []
    for one in range(len(families)):
        for other in np.unique(model[family == one]):
            error, power = fitted(of_test != one, np.arange(len(models)) != other)
            at = (family == one) & (model == other)
            left_out.append(ratio[at] / (error * np.exp(power * log_lost[at])))
    error, power = fitted(np.ones(len(tests), bool), np.ones(len(models), bool))
    wider = float(np.quantile(np.concatenate(left_out), HELD)) / 1.96
    return round(error * wider, 5), round(power, 4)


def _mixture_weights(units: np.ndarray, right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Maximum-likelihood mixture weights of `SHARES`; the likelihood is concave on the simplex.

    Args:
        units: implied differences, divided by the combined error of both models.
        right: values from `is_right`.
        weight: weight of each difference.
    """
    units, right, weight = _binned(units, right, weight / weight.sum())
    by_share = special.ndtr(units[:, None] / np.array(SHARES))

    def unlikely(weights: np.ndarray) -> tuple[float, np.ndarray]:
        said = np.clip(by_share @ weights, 1e-12, 1 - 1e-12)
        of_right, of_wrong = weight * right, weight * (1 - right)
        slope = (of_wrong / (1 - said) - of_right / said) @ by_share
        return -float(of_right @ np.log(said) + of_wrong @ np.log1p(-said)), slope

    found = optimize.minimize(
        unlikely,
        np.full(len(SHARES), 1 / len(SHARES)),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * len(SHARES),
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    if not found.success:
        raise RuntimeError(f"mixture weights: {found.message}")
    weights = np.clip(found.x, 0, 1).round(4)
    weights[weights.argmax()] += 1 - weights.sum()
    return weights.round(4)


def _binned(units: np.ndarray, right: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Millions of differences binned at a width of one thousandth: units, mean of right, and weight."""
    place, row = np.unique(np.arcsinh(units / 0.01).round(3), return_inverse=True)
    of_bin = np.bincount(row, weight)
    return 0.01 * np.sinh(place), np.bincount(row, weight * right) / of_bin, of_bin


def pairs_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Pairs of checkpoints of different models on one test; the first is ahead by the implied metric.

    Pairs with equal implied metrics are left out, because they imply no order.
    """
    parts = []
    keys = ("setting", "density", "asked", "average", "metric")
    for key, part in rows.partition_by(keys, as_dict=True, maintain_order=True).items():
        one, other = np.triu_indices(len(part), 1)
        model, ahead = part["model"].to_numpy(), part["implied"].to_numpy()
        apart = (model[one] != model[other]) & (ahead[one] != ahead[other])
        one, other = one[apart], other[apart]
        one, other = (
            np.where(ahead[one] >= ahead[other], one, other),
            np.where(ahead[one] >= ahead[other], other, one),
        )
        columns = dict(zip(keys, key, strict=True))
        told = {
            f"{name}_{which}": part[name].to_numpy()[at]
            for name in ("implied", "full", "lost", "model")
            for which, at in (("first", one), ("second", other))
        }
        parts.append(
            pl.DataFrame(told).with_columns(pl.lit(value).alias(name) for name, value in columns.items())
        )
    return pl.concat(parts)


def is_right(pairs: pl.DataFrame) -> np.ndarray:
    """1 if the first model is better on the full test, 0 if the second is, one half if they are equal."""
    first, second = (pairs[f"full_{which}"].to_numpy() for which in ("first", "second"))
    return (1 + np.sign(first - second)) / 2
