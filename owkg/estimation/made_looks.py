"""Record of looks at estimates of a growing sample, and rules for further looks."""

from collections.abc import Sequence
from typing import NamedTuple

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.looks import look_levels

_FREE = 2
"""Most looks without a plan: a pilot that decides how many more units are judged, and one more."""


class Looks(NamedTuple):
    """Numbers of judged units at which estimates are looked at.

    Attributes:
        planned: looks planned before the first one, ascending; None: no plan.
        made: looks made so far, in their order; None: not recorded.
    """

    planned: tuple[int, ...] | None = None
    made: tuple[int, ...] | None = None


def look(
    judged: int, size: int, planned: Sequence[int] | None, before: Looks, ci: float
) -> tuple[float, Looks, list[str]]:
    """The confidence level of a look, the record including this look, and notes.

    Repeating a look at the same number of units adds no look. A pilot that decides only how many more units
    are judged costs nothing, so a second look needs no plan, but a third one does. Once all units are judged,
    the values are known and a look costs nothing.

    Args:
        judged: number of judged units at this look.
        size: number of units that could be drawn.
        planned: all planned looks, given now. None: as planned before, or no plan.
        before: record of earlier looks.
        ci: confidence level of all intervals together.

    Raises:
        ValueError: naming `looks`, if this is the third look without a plan; if the plan lacks this look or
            an earlier one; or if it differs from an earlier plan.
    """
    recorded = before.made is not None
    made = tuple(before.made or ())
    now = Looks(before.planned, ((*made, judged) if judged not in made else made) if recorded else None)
    if planned is None and before.planned is None:
        return ci, now, _unplanned(judged, size, made, recorded=recorded)
    plan = tuple(checks.integer("looks", list(planned or before.planned or ()), 1).tolist())
    if list(plan) != sorted(set(plan)) or plan[-1] > size:
        raise ArgumentError(
            "looks", f"must be growing numbers of at most {size:,} units, got {_listed(plan)}."
        )
    if before.planned not in (None, plan):
        raise ArgumentError(
            "looks",
            f"must be as planned before the first look, {_listed(before.planned or ())}, got "
            f"{_listed(plan)}.",
        )
    if judged not in plan:
        raise ArgumentError(
            "looks", f"must include the number of judged units, {judged}, got {_listed(plan)}."
        )
    if lacking := [one for one in made if one not in plan]:
        raise ArgumentError(
            "looks", f"must include the looks already made, {_listed(lacking)}, got {_listed(plan)}."
        )
    level = float(look_levels(list(plan), size, ci)[plan.index(judged)])
    notes = []
    if made and before.planned is None:
        notes.append(
            f"the plan was made after a look ({_listed(made)}): if its results decided more "
            "than how many units are judged, intervals may cover less than their level."
        )
    return level, now._replace(planned=plan), notes


def _unplanned(judged: int, size: int, made: Sequence[int], *, recorded: bool) -> list[str]:
    """Notes on a look without a plan."""
    if not recorded or judged >= size or not made or made == (judged,):
        return []
    if judged not in made and len(made) >= _FREE:
        raise ArgumentError(
            "looks",
            f"must name all looks, such as {','.join(map(str, sorted({*made, judged})))}: estimates were "
            f"looked at after {_listed(sorted(made))} judged units, and intervals for one look do "
            "not hold at a third one.",
        )
    return [
        f"there are two looks, after {_listed(sorted({*made, judged}))} units: intervals hold if the first "
        "one decided only how many more are judged; a third look needs a plan of all looks (`looks`)."
    ]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
