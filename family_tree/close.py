"""People in files, closed into a folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from family_tree.ontology import ontology
from family_tree.people_files import read_people
from family_tree.world import MADE_BY, format_checked, write_world
from owkg.provenance import checksum, made_folder


def close(
    people: Path,
    parents: Path,
    out: Path,
    *,
    relations: Any = "published",
    facts_format: Any = "tsv",
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
    format_checked(facts_format)
    rules = ontology(relations)
    with made_folder(
        Path(out), made_by=MADE_BY, inputs=(Path(people), Path(parents)), overwrite=overwrite
    ) as folder:
        world = read_people(Path(people), Path(parents))
        total = len(world.labels)
        return write_world(
            folder,
            [world],
            rules,
            facts_format=facts_format,
            parameters={"relations": str(relations), "facts_format": facts_format},
            inputs={"people": checksum(Path(people)), "parents": checksum(Path(parents))},
            progress=progress and (lambda done: progress(done, total)),
        )
