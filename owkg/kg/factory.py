"""Triples factories as saved by PyKEEN: tables with header lines; their pickle is not opened."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from owkg.files.lines import WHOLE, headed, headed_blocks, id_columns, read_blocks, read_lines, split_lines
from owkg.kg.labels import labels_by_id
from owkg.kg.layouts import FACTORY_TRIPLES, find_file
from owkg.kg.triples import COLUMNS

# Labels with a quotation mark or a tab are quoted, and their quotation marks are doubled.
_LABEL = rf'(?P<id>{WHOLE})\t(?:(?P<label>[^\t"][^\t]*)|"(?P<quoted>(?:[^"]|"")+)")'
# Number of the line after the header.
FIRST = 2


class Factory(NamedTuple):
    """Labels in the order of their ids, and the file of the triples."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    path: Path


def read_factory(folder: Path) -> Factory:
    """Labels that PyKEEN's `TriplesFactory.to_path_binary` writes; `base.pth` is not opened.

    Args:
        folder: folder with `entity_to_id.tsv`, `relation_to_id.tsv` and `numeric_triples.tsv`, each possibly
            with .gz.

    Raises:
        ValueError: naming the file that is missing, or file and line, if a line is malformed, or an id or a
            label is repeated.
    """
    entities, relations = (_labels(find_file(folder, f"{kind}_to_id.tsv")) for kind in ("entity", "relation"))
    return Factory(entities, relations, find_file(folder, FACTORY_TRIPLES))


def read_factory_triples(factory: Factory) -> Iterator[pl.DataFrame]:
    """Ids of a factory, columns head, relation, tail, in blocks; ValueError as `read_factory`."""
    blocks = headed_blocks(factory.path, read_blocks(factory.path), "\t".join(COLUMNS))
    expected = "the ids of head, relation and tail (whole numbers), separated by tabs"
    sizes = dict.fromkeys(COLUMNS, len(factory.entities)) | {"relation": len(factory.relations)}
    for block in blocks:
        yield id_columns(factory.path, block, COLUMNS, expected, separator="\t", sizes=sizes)


def _labels(path: Path) -> tuple[str, ...]:
    """Labels in a file, in the order of their ids."""
    lines = headed(path, read_lines(path), "id\tlabel")
    frame = split_lines(path, lines, _LABEL, "an id, a tab, and a label", separator="\t", first=FIRST)
    quoted = pl.col("quoted").str.replace_all('""', '"', literal=True)
    return labels_by_id(path, frame.with_columns(label=pl.coalesce("label", quoted)), first=FIRST)
