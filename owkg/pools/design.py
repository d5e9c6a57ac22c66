"""Designs of judgements: how the judged candidates were chosen, which decides what can be estimated."""

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import polars as pl

from owkg.errors import ArgumentError
from owkg.files.storage import written_aside
from owkg.ir import POOLED

_ENDING = ".design.json"

MADE_BY = "owkg pool"
"""Entry made_by in the `metadata.json` of a pool."""


def is_sheet_name(name: str) -> bool:
    """Whether a file of a pool is a sheet, which annotators may fill in inside the folder."""
    return re.fullmatch(r"sheet\d*\.tsv", name) is not None


class Design(StrEnum):
    """Way in which the candidates of some judgements were chosen.

    Only COMPLETE allows an estimate of the sparsity and of correlations: queries are drawn at random, and
    every candidate of these queries is judged. All other designs show only some of the missing answers, so
    they give a lower bound of the sparsity. Their candidates were chosen by the ranks of the systems. The
    answers found by judging are therefore ranked higher by these systems than other missing answers, and no
    correlation can be estimated.
    """

    COMPLETE = "complete"
    SAMPLED_POOL = "sampled-pool"
    SAMPLED_BUDGET = "sampled-budget"
    POOL = "pool"
    BUDGET = "budget"
    DRAWN = "drawn"
    SHEET = "sheet"
    UNKNOWN = "unknown"

    @property
    def sampled(self) -> bool:
        """Whether the queries are a random sample, so that they represent all queries of the test."""
        return self in (Design.COMPLETE, Design.SAMPLED_POOL, Design.SAMPLED_BUDGET)

    @property
    def estimates(self) -> bool:
        """Whether the design allows an interval of the sparsity, and correlations."""
        return self is Design.COMPLETE

    @property
    def in_words(self) -> str:
        """The design as a noun phrase."""
        return _WORDS[self]

    def of(self, qrels: pl.DataFrame) -> "Design":
        """The design after taking unfinished judgements into account.

        A query with an unjudged candidate is not judged completely, and which queries are finished may depend
        on their answers.
        """
        if self.estimates and (qrels["relevance"] == POOLED).any():
            return Design.SAMPLED_POOL
        return self


_WORDS = {
    Design.COMPLETE: "a random sample of queries, judged completely",
    Design.SAMPLED_POOL: "a pool on a random sample of queries",
    Design.SAMPLED_BUDGET: "a part of a pool, within a budget, on a random sample of queries",
    Design.POOL: "a pool",
    Design.BUDGET: "a part of a pool, within a budget",
    Design.DRAWN: "candidates drawn at random by the design of a pool",
    Design.SHEET: "a sheet",
    Design.UNKNOWN: "judgements of unknown design",
}


def design_named(name: object) -> Design:
    """Design with a given name.

    Raises:
        ValueError: naming `design`, if there is none.
    """
    if not isinstance(name, str) or name not in tuple(Design):
        raise ArgumentError("design", f"must be one of {', '.join(Design)}, got {name!r}.")
    return Design(name)


def stated_or_known(named: str | None, known: Design | None, source: str, *, default: Design) -> Design:
    """Design of a source: the recorded one, else the one that the user names, else the default.

    Args:
        named: name given by the user; None: not given.
        known: recorded design; None: not recorded.
        source: name of the source, for error messages.
        default: design if none is named or recorded.

    Raises:
        ValueError: naming `design`, if the name is not a design or contradicts the recorded one.
    """
    given = None if named is None else design_named(named)
    if None not in (given, known) and given != known:
        raise ArgumentError(
            "design", f"must be left out, or be {known} as recorded with {source}, got {given}."
        )
    return given or known or default


def write_design(path: Path, design: Design, **more: Any) -> None:
    """Write the design of a file of judgements or of a sheet next to it.

    Args:
        path: file of the judgements.
        design: their design.
        more: further entries, such as the depth.
    """
    with written_aside(_beside(path)) as aside:
        aside.write_text(json.dumps({"design": str(design)} | more, indent=2) + "\n", encoding="utf-8")


def design_beside(path: Path) -> Design | None:
    """Design recorded next to a file of judgements or a sheet; None if none is recorded.

    Raises:
        ValueError: naming the file, if it does not name a design.
    """
    file = _beside(path)
    if not file.is_file():
        return None
    try:
        return Design(json.loads(file.read_text(encoding="utf-8"))["design"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file}: must name a design, one of {', '.join(Design)}.") from None


def design_of_pool(card: dict[str, Any]) -> Design:
    """Design of a pool, from its `metadata.json`."""
    settings = card.get("settings", {})
    if settings.get("draw"):
        return Design.DRAWN
    cut = bool(card.get("beyond_budget", settings.get("budget")))
    if settings.get("sampled"):
        return Design.SAMPLED_BUDGET if cut else Design.SAMPLED_POOL
    return Design.BUDGET if cut else Design.POOL


def _beside(path: Path) -> Path:
    return path.with_name(path.name + _ENDING)
