"""How judged candidates were chosen, and so what their judgements allow to estimate."""

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
"""What `metadata.json` of a pool says."""


def is_sheet_name(name: str) -> bool:
    """Whether a file of a pool is a sheet, which annotators may fill in where it is."""
    return re.fullmatch(r"sheet\d*\.tsv", name) is not None


class Design(StrEnum):
    """How the candidates of some judgements were chosen.

    Only the first allows an estimate of the sparsity and of correlations: it judges queries that were drawn
    at random, and of these every candidate. All others show some of the missing answers, so that the sparsity
    is at least what they show. Their candidates were chosen by the ranks of the systems. Therefore the found
    answers stand higher in these systems' lists than missing answers do, and no correlation follows.
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
        """Whether its queries are a random sample, so that they stand for all queries of the test."""
        return self in (Design.COMPLETE, Design.SAMPLED_POOL, Design.SAMPLED_BUDGET)

    @property
    def estimates(self) -> bool:
        """Whether it allows an interval of the sparsity, and correlations."""
        return self is Design.COMPLETE

    @property
    def in_words(self) -> str:
        """What the design is, as a noun phrase."""
        return _WORDS[self]

    def of(self, qrels: pl.DataFrame) -> "Design":
        """The design, given judgements that may be half done.

        Queries with a candidate that nobody has judged are not judged completely, and which ones are done
        may depend on their answers.
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
    """The design that a user names.

    Raises:
        ValueError: naming `design`.
    """
    if not isinstance(name, str) or name not in tuple(Design):
        raise ArgumentError("design", f"must be of {', '.join(Design)}, got {name!r}.")
    return Design(name)


def stated_or_known(named: str | None, known: Design | None, source: str, *, default: Design) -> Design:
    """The design of a source: the one that is known, else the one that is named, else the default.

    Args:
        named: by the user; None: nothing.
        known: written where the source lies; None: nothing is.
        source: its name, for the message.
        default: where nobody says anything.

    Raises:
        ValueError: naming `design`, if it is no design, or another one than is known.
    """
    given = None if named is None else design_named(named)
    if None not in (given, known) and given != known:
        raise ArgumentError(
            "design", f"must be {known} for {source}, which was written so, or absent; got {given}."
        )
    return given or known or default


def write_design(path: Path, design: Design, **more: Any) -> None:
    """Writes the design of a file of judgements, or of a sheet, next to it.

    Args:
        path: of the judgements.
        design: of them.
        more: what else is known, such as the depth.
    """
    with written_aside(_beside(path)) as aside:
        aside.write_text(json.dumps({"design": str(design)} | more, indent=2) + "\n", encoding="utf-8")


def design_beside(path: Path) -> Design | None:
    """The design that is written next to a file of judgements or a sheet; None: nothing is.

    Raises:
        ValueError: naming the file, if it names no design.
    """
    file = _beside(path)
    if not file.is_file():
        return None
    try:
        return Design(json.loads(file.read_text(encoding="utf-8"))["design"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{file}: must name a design, one of {', '.join(Design)}.") from None


def design_of_pool(card: dict[str, Any]) -> Design:
    """The design of a pool, by its `metadata.json`."""
    settings = card.get("settings", {})
    if settings.get("draw"):
        return Design.DRAWN
    cut = bool(card.get("beyond_budget", settings.get("budget")))
    if settings.get("sampled"):
        return Design.SAMPLED_BUDGET if cut else Design.SAMPLED_POOL
    return Design.BUDGET if cut else Design.POOL


def _beside(path: Path) -> Path:
    return path.with_name(path.name + _ENDING)
