"""Closed world of sampled families, written as a folder."""

from collections.abc import Callable
from typing import Any

from family_tree.ontology import Source, ontology_of, source_text
from family_tree.trees import people_blocks
from family_tree.world import MADE_BY, format_checked, write_world
from owkg import checks
from owkg.checks import StrPath
from owkg.files.storage import made_folder


def generate(
    out: StrPath,
    *,
    num_trees: int = 20,
    max_tree_size: int = 300,
    max_depth: int = 3,
    max_branching: int = 20,
    strict_depth: bool = False,
    first_tree: int = 0,
    seed: int = 0,
    relations: Source = "published",
    facts_format: str = "tsv",
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Closed world of sampled families, written as a folder block by block, in bounded memory.

    Equal arguments give equal files, except for the versions in `metadata.json`.

    Args:
        out: folder to make, as in `close`.
        num_trees, max_tree_size, max_depth, max_branching, strict_depth, first_tree, seed: as in
            `sample_people`; the defaults are the published parameters.
        relations, facts_format, overwrite: as in `close`.
        progress: function called with (people done, maximum number of people). Default: none.

    Returns:
        Contents of `metadata.json`: parameters, counts, versions, checksums.

    Raises:
        ValueError: as `sample_people`, `ontology` and `made_folder`, or if the format is unknown.
    """
    numbers = {
        "num_trees": num_trees,
        "max_tree_size": max_tree_size,
        "max_depth": max_depth,
        "max_branching": max_branching,
        "first_tree": first_tree,
        "seed": seed,
    }
    blocks = people_blocks(**numbers, strict_depth=strict_depth)
    numbers = {name: int(number) for name, number in numbers.items()}  # NumPy integers too
    most = numbers["num_trees"] * numbers["max_tree_size"]
    place, replaced = checks.path("out", out), checks.flag("overwrite", overwrite)
    format_checked(facts_format)
    rules = ontology_of("relations", relations)
    with made_folder(place, made_by=MADE_BY, overwrite=replaced) as folder:
        return write_world(
            folder,
            blocks,
            rules,
            facts_format=facts_format,
            parameters=numbers
            | {"strict_depth": bool(strict_depth)}
            | {"relations": source_text(relations), "facts_format": facts_format},
            progress=progress and (lambda done: progress(done, most)),
        )
