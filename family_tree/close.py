"""People in files, closed into a folder."""

import hashlib
from collections.abc import Callable
from typing import Any

from family_tree.ontology import Source, ontology_of, source_text
from family_tree.people_files import people_of
from family_tree.world import MADE_BY, format_checked, write_world
from owkg import checks
from owkg.checks import StrPath
from owkg.files.storage import made_folder


def close(
    people: StrPath,
    parents: StrPath,
    out: StrPath,
    *,
    relations: Source = "published",
    facts_format: str = "tsv",
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Closes people in two files, as `read_people` reads them, into a folder.

    Args:
        people, parents: the files.
        out: folder to make: `people.tsv`, `parents.tsv`, `facts.tsv` or `facts.parquet`, all sorted,
            `relations.toml`, and `metadata.json`.
        relations: as `ontology` takes them.
        facts_format: "tsv" (head, relation, tail without header) or "parquet" (columns of these names).
        overwrite: whether such a folder that is there is replaced.
        progress: told how many people are done, and of how many.

    Returns:
        What `metadata.json` holds.

    Raises:
        ValueError: as `read_people`, `ontology` and `made_folder`, or if there is no such format.
    """
    paths = {"people": checks.path("people", people), "parents": checks.path("parents", parents)}
    place, replaced = checks.path("out", out), checks.flag("overwrite", overwrite)
    format_checked(facts_format)
    rules = ontology_of("relations", relations)
    with made_folder(place, made_by=MADE_BY, inputs=paths.values(), overwrite=replaced) as folder:
        # Read once: what comes through a pipe is not there again, and a file may have become another.
        read = {name: (path, path.read_bytes()) for name, path in paths.items()}
        world = people_of(read["people"], read["parents"])
        total = len(world.labels)
        return write_world(
            folder,
            [world],
            rules,
            facts_format=facts_format,
            parameters={"relations": source_text(relations), "facts_format": facts_format},
            inputs={name: hashlib.sha256(data).hexdigest() for name, (_, data) in read.items()},
            progress=progress and (lambda done: progress(done, total)),
        )
