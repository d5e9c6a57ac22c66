"""Whether a folder holds what it says: its files as they were written, and the closure of its people."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from family_tree.closure import closure
from family_tree.ontology import Ontology, read_ontology
from family_tree.people import People
from family_tree.people_files import PARENTS_FILE, PEOPLE_FILE, read_people
from family_tree.world import FACTS_FORMATS, ONTOLOGY_FILE, fact_table, write_facts
from owkg.provenance import METADATA_FILE, checksum, read_metadata


def verify(folder: Any, *, progress: Callable[[int, int], None] | None = None) -> list[str]:
    """What is wrong with a folder that `close` or `generate` made; nothing if the list is empty.

    The people are closed again by the rules in the folder, and every fact is compared.

    Args:
        folder: to look at.
        progress: told how many people are done, and of how many.

    Raises:
        ValueError: if the folder holds no metadata, or files in it cannot be read as what they are.
    """
    folder = Path(folder)
    content = read_metadata(folder)
    facts_files = [name for kind in FACTS_FORMATS if (name := f"facts.{kind}") in content["sha256"]]
    needed = {PEOPLE_FILE, PARENTS_FILE, ONTOLOGY_FILE, *facts_files}
    if not facts_files or not needed <= content["sha256"].keys():
        raise ValueError(f"{folder / METADATA_FILE}: must name people, parents, relations and facts.")
    absent = [name for name in content["sha256"] if not (folder / name).is_file()]
    if absent:
        return [f"{name}: is not there" for name in absent]
    faults = [
        f"{name}: is not the file of which {METADATA_FILE} tells"
        for name, found in content["sha256"].items()
        if checksum(folder / name) != found
    ]
    people = read_people(folder / PEOPLE_FILE, folder / PARENTS_FILE)
    relations = read_ontology(folder / ONTOLOGY_FILE)
    with _as_tsv(folder / facts_files[0]) as path, path.open("rb") as file:
        counts, fault = _compared(file, people, relations, progress)
    if fault:
        faults.append(f"{facts_files[0]}, {fault}")
    elif counts != content.get("relations"):
        faults.append(f"{METADATA_FILE}: relations must be {counts}, got {content.get('relations')}")
    return faults


@contextmanager
def _as_tsv(path: Path) -> Iterator[Path]:
    if path.suffix == ".tsv":
        yield path
        return
    with TemporaryDirectory() as folder:
        text = Path(folder) / "facts.tsv"
        pl.scan_parquet(path).sink_csv(text, include_header=False, separator="\t", quote_style="never")
        yield text


def _compared(
    file: BinaryIO, people: People, relations: Ontology, progress: Callable[[int, int], None] | None
) -> tuple[dict[str, int], str | None]:
    """Counts by relation, and the first line of facts that differs from the closure."""
    counts = np.zeros(len(relations.relations), np.int64)
    lines = 0
    for facts in closure(people, relations):
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
    """The first of `lines` + 1, `lines` + 2, ... that differs."""
    pairs = zip_longest(expected.splitlines(True), found.splitlines(True), fillvalue=b"")
    row, (want, got) = next((row, pair) for row, pair in enumerate(pairs, lines + 1) if pair[0] != pair[1])
    return f"line {row}: must be {_shown(want)}, got {_shown(got)}"


def _shown(line: bytes) -> str:
    return repr(line.decode(errors="replace")) if line else "the end"
