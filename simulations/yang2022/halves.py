"""Split-half replication of inconsistent pairs of checkpoints."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Float64

from owkg.keys import as_key
from simulations.open_world.curves import Curves
from simulations.yang2022.inconsistency import Apart, Z, checked_z, groups
from simulations.yang2022.pairs import differences
from simulations.yang2022.selection import checked_curves, selected

SPLITS = 20
"""Default number of divisions into halves."""


class Confirmed(NamedTuple):
    """Pairs of checkpoints that are inconsistent on one half of the queries, checked on the other half.

    Attributes:
        share: share of these pairs whose full and sparse orders are the same on the other half; nan if there
            are none.
        chance: share of all pairs whose orders contradict on a half, whatever the errors.
        found: mean number of pairs that are inconsistent on a half.
    """

    share: float
    chance: float
    found: float


def confirmed(
    key: Any,
    curves: Curves,
    metric: str,
    test_set: str,
    *,
    apart: Any = Apart.CONFIGURATION,
    z: Any = Z,
    splits: int = SPLITS,
) -> Confirmed:
    """Divides the queries into halves, and checks the inconsistent pairs of each half on the other half.

    Args:
        key: key of `jax.random.key`; consumed.
        curves: curves of one density, with at least four queries.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` except the full one.
        apart: "configuration" or "model": what the checkpoints of a pair must not share.
        z: number of standard errors that a difference must exceed to count as beyond its error.
        splits: number of divisions into halves; each half is used to find pairs and to check them.

    Raises:
        ValueError: if a name is unknown, arrays of the curves do not fit together, there is nothing to
            compare, or there are too few queries to halve.
    """
    key = as_key(key)
    chosen = selected(checked_curves(curves), metric, test_set)
    z = checked_z(z)
    group = groups(curves, apart)
    queries = chosen.full.shape[1]
    if queries < 4:
        raise ValueError(f"`curves` must have at least four queries to halve, got {queries}.")
    pairs = np.triu(group[:, None] != group[None, :])
    seen = inconsistent = contradicting = 0
    for split in jax.random.split(key, splits):
        order = np.asarray(jax.random.permutation(split, queries))
        halves = [[_order(values[:, half], z) for values in chosen] for half in np.array_split(order, 2)]
        for (full, sparse), (other_full, other_sparse) in (halves, halves[::-1]):
            wrong = pairs & (full.sign * sparse.sign < 0)
            sure = wrong & full.distinct & sparse.distinct
            again = (full.sign == other_full.sign) & (sparse.sign == other_sparse.sign)
            contradicting += int(wrong.sum())
            inconsistent += int(sure.sum())
            seen += int((sure & again).sum())
    halves_in_all = 2 * splits
    return Confirmed(
        share=seen / inconsistent if inconsistent else float("nan"),
        chance=contradicting / halves_in_all / int(pairs.sum()),
        found=inconsistent / halves_in_all,
    )


class _Order(NamedTuple):
    """Signs of the differences of means, and which differences exceed z standard errors."""

    sign: Float64[np.ndarray, "checkpoints checkpoints"]
    distinct: Bool[np.ndarray, "checkpoints checkpoints"]


def _order(values: Float[np.ndarray, "checkpoints queries"], z: float) -> _Order:
    gap, error = differences(values)
    return _Order(np.sign(gap), np.abs(gap) > z * error)
