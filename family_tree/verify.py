"""Check of a folder: its files are unchanged, and its facts are the closure of its people."""

import os
import reprlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from family_tree.closure import closure_of
from family_tree.ontology import Ontology, read_ontology
from family_tree.people import People
from family_tree.people_files import PARENTS_FILE, PEOPLE_FILE, read_people
from family_tree.world import (
    FACTS_FORMATS,
    FACTS_SCHEMA,
    ONTOLOGY_FILE,
    fact_table,
    people_counts,
    write_facts,
)
from owkg import checks
from owkg.checks import StrPath
from owkg.files.begun import temporary_folder
from owkg.files.storage import METADATA_FILE, checksums, read_metadata


def verify(folder: StrPath, *, progress: Callable[[int, int], None] | None = None) -> list[str]:
    """Faults of a folder that `close` or `generate` made; an empty list if there are none.

    First, owkg compares the names and checksums of the files with `metadata.json`. Then, if the files are
    readable, it closes the people again by the rules in the folder and compares every fact and every number.
    It does not compare facts in a Parquet file with a wrong checksum.

    Args:
        folder: folder to check.
        progress: function called with (people done, people in all). Default: none.

    Raises:
        ValueError: if the folder holds no metadata, or the metadata do not name the files of such a folder.
    """
    place = checks.path("folder", folder)
    content = read_metadata(place)
    sums = content["sha256"]
    facts_files = [name for kind in FACTS_FORMATS if (name := f"facts.{kind}") in sums]
    if len(facts_files) != 1 or not {PEOPLE_FILE, PARENTS_FILE, ONTOLOGY_FILE} <= sums.keys():
        expected = "people, parents, relations and facts, each in one file"
        raise ValueError(f"{place / METADATA_FILE}: must name {expected}.")
    found = checksums(place)
    if absent := [f"{name}: is not there" for name in sums if name not in found]:
        return absent
    other = [name for name in sums if found[name] != sums[name]]
    faults = [f"{name}: does not have the checksum in {METADATA_FILE}" for name in other]
    faults += [f"{name}: is not named in {METADATA_FILE}" for name in found if name not in sums]
    facts_file = place / facts_files[0]
    try:
        people = read_people(place / PEOPLE_FILE, place / PARENTS_FILE)
        relations = read_ontology(place / ONTOLOGY_FILE)
        numbers: dict[str, Any] = people_counts(people)
        # A damaged Parquet file is not opened, because readers may crash or take all memory.
        if facts_file.suffix == ".tsv" or facts_file.name not in other:
            with _as_tsv(facts_file) as path, path.open("rb") as file:
                counts, fault = _compared(file, people, relations, progress)
            if fault:
                faults.append(f"{facts_file.name}, {fault}")
            else:
                numbers |= {"facts": sum(counts.values()), "relations": counts}
    except ValueError as error:
        return [*faults, str(error).removeprefix(f"{place}{os.sep}")]
    return faults + [
        f"{METADATA_FILE}: {name} must be {number}, got {reprlib.repr(content.get(name))}"
        for name, number in numbers.items()
        if content.get(name) != number
    ]


@contextmanager
def _as_tsv(path: Path) -> Iterator[Path]:
    """Context with the facts as a TSV file; ValueError if a Parquet file holds something else."""
    if path.suffix == ".tsv":
        yield path
        return
    with temporary_folder("owkg-facts-") as folder:
        text = folder / "facts.tsv"
        try:
            table = pl.scan_parquet(path, glob=False)
            schema = table.collect_schema()
            if schema != FACTS_SCHEMA:
                got = ", ".join(f"{name} of {kind}" for name, kind in schema.items())
                raise ValueError(f"{path}: must have columns {', '.join(FACTS_SCHEMA)} of text, got {got}.")
            table.sink_csv(text, include_header=False, separator="\t", quote_style="never")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise ValueError(f"{path}: must be Parquet ({error}).") from None
        yield text


def _compared(
    file: BinaryIO, people: People, relations: Ontology, progress: Callable[[int, int], None] | None
) -> tuple[dict[str, int], str | None]:
    """Counts by relation, and the first line of facts that differs from the closure."""
    counts = np.zeros(len(relations.relations), np.int64)
    lines = 0
    for facts in closure_of(people, relations):
        text = BytesIO()
        write_facts(fact_table(facts, people, relations), text)
        expected = text.getvalue()
        if (found := file.read(len(expected))) != expected:
            return {}, _difference(expected, found, lines)
        lines += len(facts.head)
        counts += np.bincount(facts.relation, minlength=len(counts))
        if progress and len(facts.head):
            progress(int(facts.head[-1]) + 1, len(people.labels))
    if rest := file.readline():
        return {}, f"line {lines + 1}: must be the end, got {_shown(rest)}"
    return dict(zip(relations.relations, counts.tolist(), strict=True)), None


def _difference(expected: bytes, found: bytes, lines: int) -> str:
    """First of `lines` + 1, `lines` + 2, ... that differs."""
    pairs = zip_longest(expected.splitlines(True), found.splitlines(True), fillvalue=b"")
    row, (want, got) = next((row, pair) for row, pair in enumerate(pairs, lines + 1) if pair[0] != pair[1])
    return f"line {row}: must be {_shown(want)}, got {_shown(got)}"


def _shown(line: bytes) -> str:
    return repr(line.decode(errors="replace")) if line else "the end"
