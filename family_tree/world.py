"""Closed world as a folder: people, their parents, the relations between them, and all facts."""

from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from family_tree.closure import Facts, closure_of
from family_tree.families import couples_of, generations_of
from family_tree.ontology import Ontology
from family_tree.people import People
from family_tree.people_files import PARENTS_FILE, PEOPLE_FILE, people_text
from owkg.errors import ArgumentError
from owkg.files.storage import checksums, versions, write_metadata

ONTOLOGY_FILE = "relations.toml"
# Maker of such folders according to their metadata.
MADE_BY = "owkg family-tree"
FACTS_FORMATS = ("tsv", "parquet")
FACTS_SCHEMA = {"head": pl.String(), "relation": pl.String(), "tail": pl.String()}


def write_world(
    folder: Path,
    blocks: Iterable[People],
    relations: Ontology,
    *,
    facts_format: str,
    parameters: Mapping[str, Any],
    inputs: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Writes a closed world block by block, so that memory holds only one block of people and facts.

    Args:
        folder: empty folder.
        blocks: checked people, in whole families; the labels of a block come after the labels of the
            previous block.
        relations: ontology whose rules hold.
        facts_format: format of the facts, one of `FACTS_FORMATS`.
        parameters: parameters of the world, for `metadata.json`.
        inputs: checksums of the files that the world is made from, for `metadata.json`. Default: none.
        progress: function called with the number of people done. Default: none.

    Returns:
        Contents of `metadata.json`: parameters, numbers of people, couples, generations and facts, counts by
        relation, versions, checksums.
    """
    (folder / ONTOLOGY_FILE).write_bytes(relations.text.encode())
    counts = np.zeros(len(relations.relations), np.int64)
    totals = {"people": 0, "couples": 0, "generations": 0}
    with (
        (folder / PEOPLE_FILE).open("wb") as people_file,
        (folder / PARENTS_FILE).open("wb") as parents_file,
        (folder / "facts.tsv").open("wb") as facts_file,
    ):
        for people in blocks:
            done = totals["people"]
            text = people_text(people, header=not done)
            people_file.write(text[PEOPLE_FILE])
            parents_file.write(text[PARENTS_FILE])
            for facts in closure_of(people, relations):
                write_facts(fact_table(facts, people, relations), facts_file)
                counts += np.bincount(facts.relation, minlength=len(counts))
                if progress and len(facts.head):
                    progress(done + int(facts.head[-1]) + 1)
            for name, number in people_counts(people).items():
                totals[name] = max(totals[name], number) if name == "generations" else totals[name] + number
    if facts_format == "parquet":
        _scanned(folder / "facts.tsv").sink_parquet(folder / "facts.parquet")
        (folder / "facts.tsv").unlink()
    fields = {
        "parameters": dict(parameters),
        "inputs": dict(inputs or {}),
        **totals,
        "facts": int(counts.sum()),
        "relations": dict(zip(relations.relations, counts.tolist(), strict=True)),
    }
    content = {"made_by": MADE_BY} | fields | {"versions": versions(), "sha256": checksums(folder)}
    write_metadata(folder, content)
    return content


def people_counts(people: People) -> dict[str, int]:
    """Numbers of people, couples and generations."""
    generations = int(generations_of(people).max(initial=-1)) + 1
    return {"people": len(people.labels), "couples": len(couples_of(people)), "generations": generations}


def fact_table(facts: Facts, people: People, relations: Ontology) -> pl.DataFrame:
    """Facts as labels, in columns head, relation and tail."""
    names = pl.Series(relations.relations, dtype=pl.String)
    columns = (
        people.labels.gather(facts.head),
        names.gather(facts.relation),
        people.labels.gather(facts.tail),
    )
    return pl.DataFrame(dict(zip(FACTS_SCHEMA, columns, strict=True)))


def write_facts(table: pl.DataFrame, file: BinaryIO | BytesIO) -> None:
    """Appends facts to an open file as lines of head, relation and tail, separated by tabs."""
    table.write_csv(file, include_header=False, separator="\t", quote_style="never")


def format_checked(facts_format: object) -> str:
    """`facts_format` if the format exists; otherwise raises ValueError."""
    if not isinstance(facts_format, str) or facts_format not in FACTS_FORMATS:
        raise ArgumentError("facts_format", f"must be {' or '.join(FACTS_FORMATS)}, got {facts_format!r}.")
    return facts_format


def _scanned(path: Path) -> pl.LazyFrame:
    return pl.scan_csv(
        path,
        has_header=False,
        separator="\t",
        quote_char=None,
        schema=FACTS_SCHEMA,
        raise_if_empty=False,
        glob=False,
    )
