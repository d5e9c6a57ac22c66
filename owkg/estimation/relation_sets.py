"""Predictions of each relation by themselves: each a promise of its own, or all together."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.acceptance import (
    OneSet,
    State,
    alpha_of,
    checked_targets,
    first_judged,
    labels_and_order,
    tested_set,
)
from owkg.estimation.nested_sets import Nested, tested_sets
from owkg.stats.corrections import holm

LEAST_TESTED = 30
"""Candidates of a relation; where it has fewer, all of them are judged."""


class OfRelation(NamedTuple):
    """What is known of the candidates of one relation.

    Attributes:
        relation: its number.
        found: the test of its candidates.
        state: the same as that of the test, or after correction for the number of relations.
        p_value: after that correction; None without one.
    """

    relation: int
    found: OneSet | Nested
    state: State
    p_value: float | None


def by_relation(
    labels: ArrayLike,
    order: ArrayLike,
    relations: ArrayLike,
    *,
    precision: float,
    level: float = 0.95,
    simultaneous: bool = False,
) -> tuple[OfRelation, ...]:
    """Whether the candidates of each relation have a precision, each judged one by one in random order.

    Each relation is a promise of its own: one that is accepted lacks the precision with a probability of at
    most 1 - level. With `simultaneous` the probability that any accepted one lacks it is at most 1 - level
    (Holm's method on 1 / evidence; limits by Bonferroni). Relations of fewer than 30 candidates are accepted
    only for certain.

    Args:
        labels: of all candidates, 1 (right), 0 (wrong) or -1 (not judged), [candidates].
        order: places in the order of the draw, each once, [candidates]. Within each relation the judged ones
            are the first ones.
        relations: number of the relation of each candidate, [candidates].
        precision: wanted, in (0, 1].
        level: of confidence, at least 0.65.
        simultaneous: whether all accepted relations together are promised.

    Raises:
        ValueError: naming `relations` if it has another length than `labels`; otherwise as `one_set`.
    """
    wanted, sure = checked_targets(precision, level)
    together = checks.flag("simultaneous", simultaneous)
    groups = _groups(labels, order, relations)
    tested = sum(len(places) >= LEAST_TESTED for _, places in groups.values())
    alpha = alpha_of(sure) / (max(tested, 1) if together else 1)
    found = {
        one: tested_set(said, places, wanted, sure, 1 / alpha if len(places) >= LEAST_TESTED else np.inf)
        for one, (said, places) in groups.items()
    }
    if not together:
        return tuple(OfRelation(one, test, test.state, None) for one, test in found.items())
    return _holm(found, alpha_of(sure))


def _holm(found: Mapping[int, OneSet], alpha: float) -> tuple[OfRelation, ...]:
    """States by Holm's method: 1 / the largest evidence so far is a p-value at any time."""
    raw = {
        one: min(1.0, 1 / max(test.evidence, 1e-300))
        for one, test in found.items()
        if np.isfinite(test.needed)
    }
    corrected = dict(zip(raw, holm(list(raw.values())) if raw else (), strict=True))
    result = []
    for one, test in found.items():
        p = float(corrected[one]) if one in corrected else None
        passed = test.state is State.OPEN and p is not None and p <= alpha
        result.append(OfRelation(one, test, State.ACCEPTED if passed else test.state, p))
    return tuple(result)


def nested_by_relation(
    labels: ArrayLike,
    order: ArrayLike,
    relations: ArrayLike,
    drawn: Mapping[int, int],
    *,
    precision: float,
    level: float = 0.95,
    simultaneous: bool = False,
) -> tuple[OfRelation, ...]:
    """The largest nested set of each relation that has a precision, from draws of fixed sizes.

    Args:
        labels: of the candidates of all regions, in the order in which they would be accepted: 1 (right), 0
            (wrong) or -1 (not judged), [candidates].
        order: places in the order of the draw, each once, [candidates].
        relations: number of the relation of each candidate, [candidates].
        drawn: for each relation, the size of the draw; regions of fewer than 30 candidates are judged
            completely, whatever it says.
        precision: wanted, in (0, 1].
        level: of confidence.
        simultaneous: whether all accepted sets together are promised, by Bonferroni.

    Raises:
        ValueError: naming `drawn` if a relation lacks its number or has more than its candidates; otherwise
            as `nested` and `by_relation`.
    """
    wanted, sure = checked_targets(precision, level)
    together = checks.flag("simultaneous", simultaneous)
    groups = _groups(labels, order, relations)
    tested = sum(len(places) >= LEAST_TESTED for _, places in groups.values())
    own = 1 - alpha_of(sure) / (max(tested, 1) if together else 1)
    result = []
    for one, (said, places) in groups.items():
        if one not in drawn:
            raise ArgumentError("drawn", f"must have a number for each relation, got none for {one}.")
        count = len(places) if len(places) < LEAST_TESTED else drawn[one]
        count = checks.whole("drawn", count, 1)
        if not len(said) <= count <= len(places):
            least = f"from {len(said)} judged to {len(places)} candidates"
            raise ArgumentError("drawn", f"must be {least} for relation {one}, got {count}.")
        ranks = np.argsort(np.argsort(places))
        test = tested_sets(said, ranks, count, wanted, own)
        following = None if test.next is None else int(places[len(said)])
        test = test._replace(next=following, level=sure)
        result.append(OfRelation(one, test, test.state, None))
    return tuple(result)


def _groups(
    labels: ArrayLike, order: ArrayLike, relations: ArrayLike
) -> dict[int, tuple[Int[np.ndarray, "judged"], Int[np.ndarray, "size"]]]:
    """For each relation, labels of its judged candidates and places of all, in the order of the draw."""
    said, places = labels_and_order(labels, order)
    of = checks.integer("relations", relations, 0)
    if of.shape != said.shape:
        raise ArgumentError("relations", f"must have one entry a candidate, {len(said)}, got {of.size}.")
    # A stable sort keeps the order of the draw within each relation.
    sorted_places = places[np.argsort(of[places], kind="stable")]
    names, starts = np.unique(of[sorted_places], return_index=True)
    parts = np.split(sorted_places, starts[1:])
    return {int(name): (first_judged(said[part]), part) for name, part in zip(names, parts, strict=True)}
