"""Inconsistent pairs: checkpoints that the sparse and the full test order differently."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32, Int

from owkg import checks
from owkg.metrics import metric as metric_named
from owkg.metrics.measures import rises
from simulations.open_world.curves import Curves
from simulations.yang2022.pairs import count_pairs, differences, tiles_of
from simulations.yang2022.resampling import Resampled
from simulations.yang2022.selection import checked_curves, metric_index, selected

Z = 1.96
"""Default number of standard errors beyond which a difference counts as seen."""


class Apart(StrEnum):
    """Property that two compared checkpoints must not share."""

    CONFIGURATION = "configuration"
    MODEL = "model"


class Inconsistency(NamedTuple):
    """Shares of the pairs of checkpoints; NaN if there are no pairs.

    A difference is beyond its error if it exceeds z standard errors of the paired difference over queries.

    Attributes:
        inconsistent: share of all pairs whose sparse order contradicts the full order, with both differences
            beyond their errors.
        of_distinct: number of these pairs, as a share of the pairs whose full difference is beyond its error.
        contradicting: share of all pairs whose sparse order contradicts the full order, whatever the errors.
        distinct: share of all pairs whose full difference is beyond its error.
        pairs: number of pairs.
    """

    inconsistent: Resampled
    of_distinct: Resampled
    contradicting: Resampled
    distinct: Resampled
    pairs: int


class Contradiction(NamedTuple):
    """Two checkpoints that the full test puts in one order and another test set in the opposite order.

    Attributes:
        better, worse: the checkpoints, as ordered by the full test.
        z_full, z_sparse: their differences in standard errors, both positive.
    """

    better: int
    worse: int
    z_full: float
    z_sparse: float


def groups(curves: Curves, apart: Any = Apart.CONFIGURATION) -> Int[np.ndarray, "checkpoints"]:
    """Group of each checkpoint; only checkpoints of different groups are compared.

    Raises:
        ValueError: if `apart` is not one of `Apart`, or all checkpoints are in one group.
    """
    if apart not in list(Apart):
        raise ValueError(f"`apart` must be one of {', '.join(Apart)}, got {apart!r}.")
    by_configuration = np.asarray(curves.config, np.int64)
    models = np.unique(np.array(curves.models), return_inverse=True)[1]
    group = by_configuration if apart == Apart.CONFIGURATION else models[by_configuration]
    if len(found := np.unique(group)) < 2:
        only = (curves.labels if apart == Apart.CONFIGURATION else curves.models)[int(by_configuration[0])]
        raise ValueError(
            f"`curves` must have checkpoints of at least two {apart}s to compare, got {len(found)} ({only})."
        )
    return group


def inconsistency(
    curves: Curves,
    metric: str,
    test_sets: Sequence[str],
    counts: Float32[np.ndarray, "replicates queries"],
    *,
    apart: Any = Apart.CONFIGURATION,
    z: Any = Z,
) -> dict[str, Inconsistency]:
    """Shares of inconsistent pairs, on the original queries and on every resample.

    Differences and their standard errors are both computed from the resampled queries.

    Args:
        curves: curves of one density.
        metric: one of `curves.metrics`.
        test_sets: some of `curves.values` except the full one.
        counts: counts from `query_counts`.
        apart: "configuration" or "model": what the checkpoints of a pair must not share.
        z: number of standard errors that a difference must exceed to count as beyond its error.

    Returns:
        `Inconsistency` by test set.

    Raises:
        ValueError: if a name is unknown, arrays of the curves do not fit together, or there is nothing to
            compare.
    """
    checked_curves(curves)
    chosen = [selected(curves, metric, test_set) for test_set in test_sets]
    if not chosen:
        raise ValueError("`test_sets` must name at least one test set, got none.")
    z = checked_z(z)
    values = np.stack([chosen[0].full, *(selection.sparse for selection in chosen)])
    tiles = tiles_of(groups(curves, apart), values.shape[-1])
    # Single precision is enough for the resamples, because only their spread is used.
    queries = np.float32(values.shape[-1])
    once, often = (
        count_pairs(tiles, values, weights, z)
        for weights in (np.full((1, len(values[0, 0])), 1 / len(values[0, 0])), counts / queries)
    )
    distinct = _share(once.distinct, often.distinct, tiles.num_pairs)
    found = {}
    for i, test_set in enumerate(test_sets):
        inconsistent = _share(once.inconsistent[i], often.inconsistent[i], tiles.num_pairs)
        with np.errstate(invalid="ignore"):
            of_distinct = Resampled(
                inconsistent.value / distinct.value, inconsistent.replicates / distinct.replicates
            )
        contradicting = _share(once.contradicting[i], often.contradicting[i], tiles.num_pairs)
        found[test_set] = Inconsistency(inconsistent, of_distinct, contradicting, distinct, tiles.num_pairs)
    return found


def largest_contradiction(
    curves: Curves, metric: str, test_set: str, *, apart: Any = Apart.CONFIGURATION
) -> Contradiction | None:
    """The contradicting pair whose smaller difference, in standard errors, is the largest.

    Args:
        curves: curves of one density.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` except the full one.
        apart: "configuration" or "model": what the two checkpoints must not share.

    Returns:
        The pair; None if no order is contradicted.

    Raises:
        ValueError: as `inconsistency`.
    """
    chosen = selected(checked_curves(curves), metric, test_set)
    group = groups(curves, apart)
    gaps, errors = map(np.stack, zip(*map(differences, chosen), strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        in_errors = np.abs(gaps) / errors
    opposed = np.triu(group[:, None] != group[None, :]) & (gaps[0] * gaps[1] < 0)
    if not opposed.any():
        return None
    smaller = np.where(opposed, in_errors.min(axis=0), -1.0)
    one, two = map(int, np.unravel_index(smaller.argmax(), smaller.shape))
    z_full, z_sparse = map(float, in_errors[:, one, two])
    if (gaps[0, one, two] > 0) != larger_is_better(curves, metric):
        one, two = two, one
    return Contradiction(one, two, z_full, z_sparse)


def larger_is_better(curves: Curves, metric: str) -> bool:
    """Whether larger values of one of `curves.metrics` are better."""
    return rises(metric_named(curves.metrics[metric_index(curves, metric)]).measure)


def checked_z(z: Any) -> float:
    """`z`, checked to be a finite number of at least 0."""
    return checks.scalar("z", checks.real("z", z, 0, np.inf))


def _share(once: np.ndarray, often: np.ndarray, pairs: int) -> Resampled:
    return Resampled(np.asarray(once.reshape(()) / pairs), often / pairs)
