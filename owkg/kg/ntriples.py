"""N-Triples: lines of RDF with an IRI, a blank node or a literal at each place."""

import warnings
from pathlib import Path
from typing import Any

import polars as pl

from owkg.files.lines import COLUMNS, LineBlock, line_error

LINE = "line"
"""Column with the number of the line of a triple."""

_COMMENT = r"^[ \t\r]*(?:#.*)?$"


def triple_columns(path: Path, block: LineBlock) -> pl.DataFrame:
    """Columns head, relation, tail of labels, and the line of each triple.

    The label of an IRI is the IRI; the label of a blank node or a literal is its text in N-Triples.

    Raises:
        ValueError: naming the file and the first line that is not a triple; or if pyoxigraph is not
            installed.
    """
    try:
        from pyoxigraph import NamedNode, RdfFormat, parse
    except ImportError:
        raise ValueError(f"{path}: N-Triples need pyoxigraph: `pip install 'owkg[rdf]'`.") from None

    kind: dict[str, Any] = {"format": RdfFormat.N_TRIPLES}
    heads, relations, tails = [], [], []
    try:
        for triple in parse(block.text, **kind):
            head, tail = triple.subject, triple.object
            heads.append(head.value if type(head) is NamedNode else str(head))
            relations.append(triple.predicate.value)
            tails.append(tail.value if type(tail) is NamedNode else str(tail))
    except SyntaxError as error:
        line = block.first + (error.lineno or 1) - 1
        said = (error.msg or "").rpartition(": ")[2].replace("\n", "\\n")
        raise line_error(path, line, f"must be a triple of N-Triples ({said}).") from None
    labels = pl.DataFrame(
        dict(zip(COLUMNS, (heads, relations, tails), strict=True)), schema=dict.fromkeys(COLUMNS, pl.String)
    )
    lines = pl.int_range(block.first, block.first + block.num_lines, eager=True)
    if len(labels) < block.num_lines:
        lines = lines.filter(~block.lines.str.contains(_COMMENT))
    if len(labels) != len(lines):
        texts = block.lines.gather(lines - block.first)
        line = next(n for n, text in zip(lines, texts, strict=True) if len(list(parse(text, **kind))) != 1)
        raise line_error(path, line, "must be one triple of N-Triples, got another number of them.")
    return labels.with_columns(lines.alias(LINE))


def note_kinds(folder: Path, entities: pl.Series) -> None:
    """Issues a warning with the numbers of entities that are literals and blank nodes."""
    kinds = {"literals": '"', "blank nodes": "_:"}
    counts = {name: int(entities.str.starts_with(sign).sum()) for name, sign in kinds.items()}
    if told := [f"{name} ({count:,})" for name, count in counts.items() if count]:
        warnings.warn(
            f"{folder}: {' and '.join(told)} are entities, like IRIs; delete their triples if they should "
            "not be. Blank nodes of one name are one entity in all splits.",
            stacklevel=2,
        )
