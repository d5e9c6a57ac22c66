"""Closure of people in files, written as a folder."""

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
    """Closed world of the people in two files, written as a folder.

    Args:
        people, parents: files of people and of parents, as `read_people` reads them.
        out: folder to make, with `people.tsv`, `parents.tsv`, `facts.tsv` or `facts.parquet`, all sorted,
            `relations.toml`, and `metadata.json`.
        relations: ontology, as in `ontology`. Default "published".
        facts_format: "tsv" (head, relation, tail without header) or "parquet" (columns with these names).
            Default "tsv".
        overwrite: whether to replace an existing folder of this kind. Default False.
        progress: function called with (people done, people in all). Default: none.

    Returns:
        Contents of `metadata.json`.

    Raises:
        ValueError: as `read_people`, `ontology` and `made_folder`, or if the format is unknown.
    """
    paths = {"people": checks.path("people", people), "parents": checks.path("parents", parents)}
    place, replaced = checks.path("out", out), checks.flag("overwrite", overwrite)
    format_checked(facts_format)
    rules = ontology_of("relations", relations)
    with made_folder(place, made_by=MADE_BY, inputs=paths.values(), overwrite=replaced) as folder:
        # Read once, because a pipe cannot be read twice, and a file may have changed in the meantime.
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
