"""How far full-test metrics that the model implies are from the true ones, as closed worlds showed.

The table is made by `python -m simulations.closed_world_audit calibrate`, from models trained on generated
families whose full tests are known. docs/audit.md says how it does on worlds that it was not made from.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

TABLE = Path(__file__).with_name("calibration.csv")
WORLDS = Path(__file__).with_name("calibration_worlds.csv")
# Least full (1 - full) that errors are in proportion to the root of.
_LEAST = 0.01
# Errors this small are rounding.
_NOTHING = 1e-6
# Degrees of freedom from which on Student's t is normal.
_MANY = 1e9


class _Errors(NamedTuple):
    """Of a metric: sparsities and errors there, and by which shares of these differences err.

    Models of one world err alike, more or less: the error of a difference is one of two shares of the errors
    of both models together, the smaller with a probability of `chance`, by Student's t of so many degrees of
    freedom. Where one share is enough both are equal.
    """

    sparsity: np.ndarray
    error: np.ndarray
    shares: tuple[float, float]
    chance: float
    freedom: float


def full_error(metric: str, sparsity: Any, full: Any) -> Any:
    """The standard deviation of the true full-test metric about the implied one.

    In proportion to sqrt(full (1 - full)). An interval of 1.96 of it held 95 % of the checkpoints on the
    worlds of the calibration, each left out of it in turn.

    Args:
        metric: its name; of a metric that was not calibrated, the errors of one that is like it
            (`calibrated`).
        sparsity: beta, in [0, 1).
        full: implied full-test metric.
    """
    own = _errors(calibrated(metric))
    return np.interp(sparsity, own.sparsity, own.error) * scale(full)


def difference_error(metric: str, sparsity: Any, first: Any, second: Any) -> Any:
    """The errors of two models' full-test metrics, both implied, together.

    Their difference errs by a share of it (`order_probability`).

    Args:
        metric: its name.
        sparsity: beta, in [0, 1).
        first, second: implied full-test metrics.
    """
    own = _errors(calibrated(metric))
    return np.interp(sparsity, own.sparsity, own.error) * np.hypot(scale(first), scale(second))


def order_probability(
    metric: str, difference: Any, sampling: Any, model: Any, of_sampling: float = np.inf
) -> Any:
    """P(the first is better), from the implied difference and its errors.

    The error of the model is as the calibration has it (`mixture`), and the error over queries is added; by
    Student's t with the degrees of freedom of Satterthwaite, which is an approximation. Where both errors
    count it is too sure, from 4 degrees of freedom on by up to 3 points (of Hits@1, 5), with 1 by up to 9.

    Args:
        metric: its name.
        difference: of the implied full-test metrics.
        sampling: its standard error over queries.
        model: of `difference_error`.
        of_sampling: degrees of freedom of `sampling`.
    """
    sampling, model = np.asarray(sampling, float), np.asarray(model, float)
    own = _errors(calibrated(metric))

    def better(share: float) -> Any:
        variance = np.maximum(sampling**2 + (share * model) ** 2, _NOTHING**2)
        parts = (share * model) ** 4 / own.freedom + sampling**4 / of_sampling
        freedom = variance**2 / np.maximum(parts, variance**2 / _MANY)
        return special.stdtr(freedom, difference / np.sqrt(variance))

    return mixture(better, own.shares, own.chance)


def mixture(better: Callable[[float], Any], shares: tuple[float, float], chance: float) -> Any:
    """The mean of `better(share)`: of the smaller share with the probability `chance`, else of the larger."""
    narrow, wide = (better(share) for share in shares)
    return chance * narrow + (1 - chance) * wide


def calibrated(metric: str) -> str:
    """The metric whose errors stand for those of a metric: the likest, or one that errs more."""
    kind, _, parameter = metric.partition("@")
    if metric == "mrr":
        return metric
    value = float(Fraction(parameter)) if kind in ("hits", "p-mrr") else 0.0
    if kind == "p-mrr":
        return "p-mrr@1/2" if value <= 0.5 else "mrr" if value <= 1 else "hits@1"
    return "hits@10" if value >= 10 else "hits@1"


def worlds() -> list[str]:
    """The worlds that the table is made from, a line each."""
    return [
        f"{row['setting']}, density {row['density']:g}: {row['entities']:,} entities, "
        f"{row['queries']:,} queries, {row['answers']:,} answers; {row['models']}"
        for row in pl.read_csv(WORLDS, glob=False).iter_rows(named=True)
    ]


def scale(full: Any) -> Any:
    """What errors of a full-test metric are in proportion to: 2 sqrt(full (1 - full)), at most 1."""
    return 2 * np.sqrt(np.maximum(full * (1 - np.asarray(full, float)), _LEAST))


@cache
def _errors(metric: str) -> _Errors:
    rows = pl.read_csv(TABLE, glob=False).filter(pl.col("metric") == metric)
    sparsity, error = (rows[name].to_numpy() for name in ("sparsity", "error"))
    narrow, wide, *of_both = rows.select("narrow_share", "wide_share", "narrow_chance", "freedom").row(0)
    return _Errors(np.append(0, sparsity), np.append(0, error), (narrow, wide), *of_both)
