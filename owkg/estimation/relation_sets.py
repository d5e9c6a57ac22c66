"""Tests of predictions by relation: a separate promise for each relation, or one for all together."""

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
"""Fewest candidates of a relation for a test; in a smaller relation, all are judged."""


class OfRelation(NamedTuple):
    """Result of the test of the candidates of one relation.

    Attributes:
        relation: number of the relation.
        found: the test of its candidates.
        state: state of the test, or the state after correction for the number of relations.
        p_value: p-value after this correction; None without correction.
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
    """Test of whether the candidates of each relation have a precision, judged one by one in random order.

    Each relation is a separate promise: a relation that lacks the precision is accepted with a probability
    of at most 1 - level. With `simultaneous`, the probability that any such relation is accepted is at most
    1 - level (Holm's method on 1 / evidence; limits by Bonferroni). Relations with fewer than 30 candidates
    are accepted only for certain.

    Args:
        labels: labels of all candidates, 1 (right), 0 (wrong) or -1 (not judged), [candidates].
        order: places in the order of the draw, each once, [candidates]. Within each relation the judged
            candidates come first.
        relations: number of the relation of each candidate, [candidates].
        precision: the wanted precision, in (0, 1].
        level: confidence level, at least 0.65. Default 0.95.
        simultaneous: whether the level holds for all accepted relations together. Default False.

    Raises:
        ValueError: naming `relations` if its length differs from `labels`; otherwise as `one_set`.
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
    """States by Holm's method, where 1 / the largest evidence so far is a p-value at any time."""
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
    """Largest nested set of each relation that has a precision, from draws of fixed sizes.

    Args:
        labels: labels of the candidates of all regions, in the order of acceptance: 1 (right), 0 (wrong) or
            -1 (not judged), [candidates].
        order: places in the order of the draw, each once, [candidates].
        relations: number of the relation of each candidate, [candidates].
        drawn: size of the draw for each relation. Regions with fewer than 30 candidates are always judged
            completely.
        precision: the wanted precision, in (0, 1].
        level: confidence level. Default 0.95.
        simultaneous: whether the level holds for all accepted sets together, by Bonferroni. Default False.

    Raises:
        ValueError: naming `drawn` if it lacks a relation, or exceeds the number of its candidates; otherwise
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
            raise ArgumentError("drawn", f"must have a size for each relation, got none for {one}.")
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
    """Labels of judged candidates and places of all, by relation, in the order of the draw."""
    said, places = labels_and_order(labels, order)
    of = checks.integer("relations", relations, 0)
    if of.shape != said.shape:
        raise ArgumentError(
            "relations", f"must have one entry for each of {len(said)} candidates, got {of.size}."
        )
    # A stable sort keeps the order of the draw within each relation.
    sorted_places = places[np.argsort(of[places], kind="stable")]
    names, starts = np.unique(of[sorted_places], return_index=True)
    parts = np.split(sorted_places, starts[1:])
    return {int(name): (first_judged(said[part]), part) for name, part in zip(names, parts, strict=True)}
