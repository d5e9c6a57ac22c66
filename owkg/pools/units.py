"""Units to draw from a pool, as Python classes: queries, prefixes, candidates, or answers below the pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from owkg.errors import ArgumentError
from owkg.estimation.drawing import Asked, Unit

DEEPEST = 100
"""Default depth of the lists if answers below the pool are drawn."""


@dataclass(frozen=True)
class Queries:
    """Draw of whole queries: all their candidates are judged, and every metric can be estimated.

    Attributes:
        count: number of queries.
        strata: "size" draws from classes by number of known answers, which helps micro metrics. Default None:
            from all queries.
    """

    count: int
    strata: str | None = None


@dataclass(frozen=True)
class Prefixes:
    """Draw of lists judged from the top to a random depth or the first relevant answer: for RR and Success.

    Attributes:
        count: number of queries.
        strata: as in `Queries`.
    """

    count: int
    strata: str | None = None


@dataclass(frozen=True)
class Candidates:
    """Draw of single candidates, informative ones more often: for P, RBP and the share of missing answers.

    Attributes:
        count: number of candidates.
        metrics: metrics that candidates are drawn for, such as "p@5". Default: P at the depth of the pool.
        pair: two systems whose difference candidates are drawn for. Default None: the values of all systems.
    """

    count: int
    metrics: str | Sequence[str] = ()
    pair: tuple[str, str] | None = None


@dataclass(frozen=True)
class Below:
    """Draw of candidates below the pool, that is, answers that no list holds within it.

    Attributes:
        count: number of candidates.
        depth: depth of the lists. Default 100.
    """

    count: int
    depth: int = DEEPEST


Drawable = Queries | Prefixes | Candidates | Below


def asked_of(text: str, strata: str | None = None, aims: str | None = None) -> Asked:
    """Request for a draw, parsed from text.

    Args:
        text: queries:60, prefixes:100, candidates:400 or below:400.
        strata: "size", or None.
        aims: target for drawn candidates: metrics, such as "p@10", or a pair and metrics, "A-B" or
            "A-B:p@10". Default None: P at the depth of the pool.

    Raises:
        ValueError: naming `draw` or `for`.
    """
    name, _, count = text.partition(":")
    if name not in tuple(Unit) or not count.isdecimal() or not int(count):
        units = ", ".join(f"{unit}:N" for unit in Unit)
        raise ArgumentError("draw", f"must be one of {units}, N a whole number of at least 1, got {text!r}.")
    pair = None
    if aims is not None and "-" in aims:
        pair, _, aims = aims.partition(":")
    names = [one.strip() for one in (aims or "").split(",") if one.strip()]
    return Asked(Unit(name), int(count), strata, names, pair)


def settings_of(what: Drawable | str) -> dict[str, Any]:
    """Settings of a pool with this draw, as `owkg pool` writes them: draw, strata, for, below_depth.

    Examples:
        >>> settings_of(Candidates(400, "p@5", ("A", "B")))
        {'draw': 'candidates:400', 'strata': None, 'for': 'A-B:p@5', 'below_depth': 100}
    """
    found: dict[str, Any] = {"draw": what, "strata": None, "for": None, "below_depth": DEEPEST}
    if isinstance(what, str):
        return found
    if not isinstance(what, Drawable):
        raise ArgumentError(
            "what", f"must be Queries, Prefixes, Candidates or Below, or text such as 'queries:60', got "
            f"{what!r}."
        )  # fmt: skip
    found["draw"] = f"{type(what).__name__.lower()}:{what.count}"
    if isinstance(what, Below):
        found["below_depth"] = what.depth
    elif isinstance(what, Candidates):
        names = what.metrics if isinstance(what.metrics, str) else ",".join(what.metrics)
        pair = "" if what.pair is None else "-".join(what.pair)
        found["for"] = ":".join(filter(None, (pair, names))) or None
    else:
        found["strata"] = what.strata
    return found
