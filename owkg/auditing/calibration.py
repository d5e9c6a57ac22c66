"""Errors of implied full-test metrics, as measured on closed worlds.

`python -m simulations.closed_world_audit calibrate` makes the table from models trained on generated families
whose full tests are known. docs/evidence/calibration.md reports how well it does on other worlds.
"""

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import special

TABLE = Path(__file__).with_name("calibration.csv")
WORLDS = Path(__file__).with_name("calibration_worlds.csv")
# Least full (1 - full), to whose root errors are proportional.
_LEAST = 0.01
# Errors smaller than this are rounding.
_NOTHING = 1e-6
# Degrees of freedom from which Student's t is treated as normal.
_MANY = 1e9


class _Errors(NamedTuple):
    """Errors of an implied full-test metric and of differences between two models.

    Errors of models of one world are more or less correlated. So the error of a difference is a scale mixture
    of normals. Each standard deviation is a share of the errors of both models together (the root of the
    summed squares), and each share has a mixture weight.
    """

    error: float
    power: float
    most_missing: float
    share: np.ndarray
    mixture_weight: np.ndarray


def full_error(metric: str, missing: ArrayLike, full: ArrayLike, table: pl.DataFrame | None = None) -> Any:
    """Error of an implied full-test metric, as a standard deviation.

    The error is the root mean square over the closed worlds, including bias. It is proportional to sqrt(full
    (1 - full)) and to a power of the missing answers of a query. It is inflated so that +-1.96 errors cover
    96 % of held-out checkpoints (families and model not used in the fit).

    Args:
        metric: name of the metric. A metric that was not calibrated has the errors of the most similar one
            (`calibrated`).
        missing: missing answers of a query, expected under a flat prior
            (`owkg.auditing.implied.missing_answers`).
        full: implied full-test metric.
        table: table of errors. Default: the table of the package.
    """
    own = _errors(metric, table)
    return own.error * np.asarray(missing, float) ** own.power * scale(full)


def difference_error(
    metric: str, missing: ArrayLike, first: ArrayLike, second: ArrayLike, table: pl.DataFrame | None = None
) -> Any:
    """Errors of the implied full-test metrics of two models together: the root of the summed squares.

    The difference of the two metrics has a share of this error (`order_probability`).

    Args:
        metric: name of the metric.
        missing: expected missing answers of a query.
        first, second: implied full-test metrics.
        table: table of errors. Default: the table of the package.
    """
    return np.hypot(full_error(metric, missing, first, table), full_error(metric, missing, second, table))


def order_probability(
    metric: str,
    difference: ArrayLike,
    sampling: ArrayLike,
    model: ArrayLike,
    of_sampling: ArrayLike = np.inf,
    table: pl.DataFrame | None = None,
) -> Any:
    """Probability that the first model is better, from the implied difference and its errors.

    The error of the model is the calibrated mixture of normals. The error over queries is added by Student's
    t with the degrees of freedom of Satterthwaite. With many queries this is exact; with 4 degrees of freedom
    the probability is too sure by up to 1.5 points, with 1 by up to 6.

    Args:
        metric: name of the metric.
        difference: difference of the implied full-test metrics, first minus second.
        sampling: standard error of the difference over queries.
        model: error of both models together, as returned by `difference_error`.
        of_sampling: degrees of freedom of `sampling`. Default: infinitely many.
        table: table of errors. Default: the table of the package.
    """
    sampling, model = np.asarray(sampling, float), np.asarray(model, float)
    own, found = _errors(metric, table), 0.0
    some = own.mixture_weight > 0
    for share, weight in zip(own.share[some], own.mixture_weight[some], strict=True):
        variance = np.maximum(sampling**2 + (share * model) ** 2, _NOTHING**2)
        freedom = variance**2 / np.maximum(sampling**4 / of_sampling, variance**2 / _MANY)
        found = found + weight * special.stdtr(freedom, difference / np.sqrt(variance))
    return found


def calibrated(metric: str) -> str:
    """Name of the calibrated metric whose errors a metric has: the most similar one."""
    kind, _, parameter = metric.partition("@")
    if metric == "mrr":
        return metric
    value = float(Fraction(parameter)) if kind in ("hits", "p-mrr") else 0.0
    if kind == "p-mrr":
        return "p-mrr@1/2" if value <= 0.5 else "mrr" if value <= 1 else "hits@1"
    return "hits@10" if value >= 10 else "hits@1"


def most_missing(metric: str) -> float:
    """Largest number of missing answers of a query at which errors of a metric were measured."""
    return _errors(metric, None).most_missing


def worlds() -> list[str]:
    """Closed worlds that the table is made from, one line for each group."""
    own = pl.read_csv(WORLDS, glob=False)
    return [
        f"{name}: {len(part)} closed worlds of {part['setting'].n_unique()} sets of families, densities "
        f"{part['density'].min():g} to {part['density'].max():g}, {part['entities'].min():,} to "
        f"{part['entities'].max():,} entities, {part['checkpoints'].sum():,} checkpoints; "
        f"{', '.join(dict.fromkeys(', '.join(part['models']).split(', ')))}"
        for (name,), part in own.partition_by("group", as_dict=True, maintain_order=True).items()
    ]


def scale(full: ArrayLike) -> Any:
    """Factor to which errors of a full-test metric are proportional: 2 sqrt(full (1 - full)), at most 1."""
    return 2 * np.sqrt(np.maximum(full * (1 - np.asarray(full, float)), _LEAST))


def _errors(metric: str, table: pl.DataFrame | None) -> _Errors:
    return _packaged(calibrated(metric)) if table is None else _read(calibrated(metric), table)


@cache
def _packaged(metric: str) -> _Errors:
    return _read(metric, pl.read_csv(TABLE, glob=False))


def _read(metric: str, table: pl.DataFrame) -> _Errors:
    own = table.filter(pl.col("metric") == metric)
    error, power, most = own.select("error", "power", "most_missing").row(0)
    return _Errors(error, power, most, own["share"].to_numpy(), own["mixture_weight"].to_numpy())
