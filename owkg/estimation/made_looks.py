"""Looks that were made at estimates of a growing sample, and which further ones their intervals allow."""

from collections.abc import Sequence
from typing import NamedTuple

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.looks import look_levels

_FREE = 2
"""Looks without a plan: a pilot, which decides how many more units are judged, and one more."""


class Looks(NamedTuple):
    """Numbers of judged units at which estimates are looked at.

    Attributes:
        planned: before the first look, ascending; None: nobody planned any.
        made: so far, in their order; None: nobody recorded them.
    """

    planned: tuple[int, ...] | None = None
    made: tuple[int, ...] | None = None


def look(
    judged: int, size: int, planned: Sequence[int] | None, before: Looks, ci: float
) -> tuple[float, Looks, list[str]]:
    """The level of confidence of a look, the looks with this one, and notes.

    The same number of units again is the same look. A pilot that decides nothing but how many more units are
    judged has no penalty, and so a second look needs no plan; a third one does. Once all units are judged,
    the values are known.

    Args:
        judged: units at this look.
        size: units that could be drawn.
        planned: all looks, given now; None: as planned before, or none.
        before: the record of earlier looks.
        ci: level of all intervals together.

    Raises:
        ValueError: naming `looks`, if there is no plan and this is the third look; if the plan lacks this
            look, or one that was made; or if it differs from an earlier plan.
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
        raise ArgumentError("looks", f"must be where the judged units are, {judged}, got {_listed(plan)}.")
    if lacking := [one for one in made if one not in plan]:
        raise ArgumentError(
            "looks", f"must name the looks that were made, {_listed(lacking)} too, got {_listed(plan)}."
        )
    level = float(look_levels(list(plan), size, ci)[plan.index(judged)])
    notes = []
    if made and before.planned is None:
        notes.append(
            f"the looks are planned after one that was made ({_listed(made)}): if its results decided more "
            "than how many units are judged, intervals promise too much."
        )
    return level, now._replace(planned=plan), notes


def _unplanned(judged: int, size: int, made: Sequence[int], *, recorded: bool) -> list[str]:
    """Notes of a look without a plan."""
    if not recorded or judged >= size or not made or made == (judged,):
        return []
    if judged not in made and len(made) >= _FREE:
        raise ArgumentError(
            "looks",
            f"must name all looks, such as {','.join(map(str, sorted({*made, judged})))}: estimates were "
            f"looked at after {_listed(sorted(made))} judged units, and intervals of one look do "
            "not hold at a third one.",
        )
    return [
        f"there are two looks, after {_listed(sorted({*made, judged}))} units: intervals hold if the first "
        "one decided nothing but how many more are judged; a third look needs a plan of all looks (`looks`)."
    ]


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
