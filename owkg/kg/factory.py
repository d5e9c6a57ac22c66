"""Triples factories as PyKEEN saves them: tables with header lines, beside a pickle that is not opened."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from owkg.kg.labels import labels_by_id
from owkg.kg.layouts import FACTORY_TRIPLES, find_file
from owkg.kg.lines import WHOLE, headed, ids_below, read_lines, split_lines
from owkg.kg.triples import COLUMNS

# A label that holds a quotation mark or a tab is quoted, and its quotation marks are doubled.
_LABEL = rf'(?P<id>{WHOLE})\t(?:(?P<label>[^\t"][^\t]*)|"(?P<quoted>(?:[^"]|"")+)")'
_IDS = "\t".join(rf"(?P<{column}>{WHOLE})" for column in COLUMNS)
# The number of the line after the header.
FIRST = 2


class Factory(NamedTuple):
    """Labels in the order of their ids; the file of the triples, and its columns head, relation, tail."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    path: Path
    triples: pl.DataFrame


def read_factory(folder: Path) -> Factory:
    """The tables that PyKEEN's `TriplesFactory.to_path_binary` writes; `base.pth` is not opened.

    Args:
        folder: with `entity_to_id.tsv`, `relation_to_id.tsv` and `numeric_triples.tsv`, each also with .gz.

    Raises:
        ValueError: naming the file that is missing, or file and line, if a line is malformed, an id or a
            label is repeated, or an id is out of range.
    """
    entities, relations = (_labels(find_file(folder, f"{kind}_to_id.tsv")) for kind in ("entity", "relation"))
    path = find_file(folder, FACTORY_TRIPLES)
    lines = headed(path, read_lines(path), "\t".join(COLUMNS))
    expected = "the ids of head, relation and tail (whole numbers), separated by tabs"
    ids = split_lines(path, lines, _IDS, expected, separator="\t", first=FIRST)
    labels = {column: relations if column == "relation" else entities for column in COLUMNS}
    triples = {
        column: pl.Series(of, dtype=pl.String).gather(ids_below(path, ids[column], len(of), first=FIRST))
        for column, of in labels.items()
    }
    return Factory(entities, relations, path, pl.DataFrame(triples))


def _labels(path: Path) -> tuple[str, ...]:
    lines = headed(path, read_lines(path), "id\tlabel")
    frame = split_lines(path, lines, _LABEL, "an id, a tab, and a label", separator="\t", first=FIRST)
    quoted = pl.col("quoted").str.replace_all('""', '"', literal=True)
    return labels_by_id(path, frame.with_columns(label=pl.coalesce("label", quoted)), first=FIRST)
