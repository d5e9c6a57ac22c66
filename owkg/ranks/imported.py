"""What an importer is, and those of a user's own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from owkg.kg.graph import KnowledgeGraph
from owkg.ranks.table import validated


class Imported(NamedTuple):
    """A rank table that was made of a file.

    Attributes:
        table: with the columns of `owkg.ranks.validated`.
        about: how it was made, as `RankTable` has it: split, filter, ...
        notes: what its user should know, a sentence each.
    """

    table: pl.DataFrame
    about: dict[str, Any] = {}  # noqa: RUF012
    notes: Sequence[str] = ()


class Importer(NamedTuple):
    """A kind of file that becomes a rank table.

    Attributes:
        name: `owkg ranks convert --from NAME`.
        what: for messages: "a TREC run".
        read: (path, graph or None, **options) to `Imported`, or to the table alone; ValueError names the
            file and the line.
        options: the names of those of `owkg.ranks.convert` that it takes; "graph" is one.
        holds: whether a file is of this kind; None: `owkg.ranks.formats.kind_of` says so.
    """

    name: str
    what: str
    read: Callable[..., Any]
    options: tuple[str, ...] = ()
    holds: Callable[[Path], bool] | None = None

    def imported(self, path: Path, graph: KnowledgeGraph | None, **options: Any) -> Imported:
        """What `read` gives; of an importer of a user's own, validated.

        Raises:
            ValueError: naming the file, if `read` raises anything, or what it gives is no rank table.
        """
        if self.holds is None:
            return self.read(path, graph, **options)
        try:
            found = self.read(path, graph, **options)
        except (ValueError, OSError):
            raise
        except Exception as error:
            raise ValueError(
                f"{path}: cannot be read as {self.what}: {type(error).__name__}: {error}"
            ) from error
        found = found if isinstance(found, Imported) else Imported(found)
        return found._replace(table=validated(found.table, source=str(path)))

    def is_of(self, path: Path) -> bool:
        """Whether a file is of this kind; ValueError, naming the importer, if `holds` raises anything."""
        try:
            return self.holds is not None and bool(self.holds(path))
        except Exception as error:
            raise ValueError(f"{path}: `holds` of the importer {self.name!r} fails: {error}") from error


OWN: dict[str, Importer] = {}
"""Importers of a user's own, by name."""
