"""Importers of files of ranks, and their registry for users."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from owkg.kg.graph import KnowledgeGraph
from owkg.ranks.table import validated


class Imported(NamedTuple):
    """Rank table made from a file.

    Attributes:
        table: frame with the columns of `owkg.ranks.validated`.
        about: record of how it was made, as in `RankTable`: split, filter, ...
        notes: notes for the user, one sentence each.
    """

    table: pl.DataFrame
    about: dict[str, Any] = {}  # noqa: RUF012
    notes: Sequence[str] = ()


class Importer(NamedTuple):
    """Reader of one kind of file into a rank table.

    Attributes:
        name: name in `owkg ranks convert --from NAME`.
        what: name of the kind in messages, such as "a TREC run".
        read: function from (path, graph or None, **options) to `Imported` or a table; its ValueErrors should
            name the file and the line.
        options: names of the options of `owkg.ranks.convert` that it accepts, possibly with "graph".
        holds: function that tells whether a file is of this kind. None: `owkg.ranks.formats.kind_of` decides.
    """

    name: str
    what: str
    read: Callable[..., Any]
    options: tuple[str, ...] = ()
    holds: Callable[[Path], bool] | None = None

    def imported(self, path: Path, graph: KnowledgeGraph | None, **options: Any) -> Imported:
        """Result of `read`, validated for importers of users.

        Raises:
            ValueError: naming the file, if `read` raises any error, or its result is not a rank table.
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
        """Whether a file is of this kind; ValueError naming the importer if `holds` raises any error."""
        try:
            return self.holds is not None and bool(self.holds(path))
        except Exception as error:
            raise ValueError(f"{path}: `holds` of the importer {self.name!r} fails: {error}") from error


OWN: dict[str, Importer] = {}
"""Importers registered by users, by name."""
