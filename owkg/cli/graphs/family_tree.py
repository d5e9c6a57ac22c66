"""`owkg family-tree`: closed worlds of families."""

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from owkg.cli.commands import group
from owkg.cli.inputs import check_ending
from owkg.cli.options import Format, OutputFormat
from owkg.cli.output import Table, show
from owkg.terminal.progress import progress
from owkg.terminal.tables import console, line, new_table, one_line, plain_text


@dataclass(frozen=True, kw_only=True)
class WorldOptions:
    """Form of a closed world that is written.

    Output:
        relations (NAME|FILE): Relations to derive: published (23 relations), hohenecker (29), or a TOML file
            of rules.
        facts_format: Format of the facts: facts.tsv (without header) or facts.parquet.
        overwrite: Replace the folder OUT as a whole, if owkg made it. Default: stop with an error.
    """

    relations: str = "published"
    facts_format: Literal["tsv", "parquet"] = "tsv"
    overwrite: bool = False


StrictDepth = Annotated[
    bool,
    typer.Option(
        "--strict-depth",
        help="Count spouses as one level. Default: as published, one is a level below the other.",
    ),
]


def close(
    out: Path, *, people: Path, parents: Path, world: WorldOptions, form: OutputFormat = Format.TABLE
) -> None:
    """Write all facts that follow from people and their parents.

    OUT/facts.tsv holds head, relation, tail, sorted, without header. OUT also holds people.tsv and
    parents.tsv, sorted, relations.toml (the rules), and metadata.json (counts by relation, versions,
    checksums).

    Args:
        out (OUT): Folder to make for the world.
        people (FILE): File of people: lines of person and gender, with a tab, after a header.
        parents (FILE): File of parents: lines of parent and child, with a tab, after a header.

    Examples:
        owkg family-tree close --people people.tsv --parents parents.tsv world
        owkg family-tree close --people people.tsv --parents parents.tsv --relations hohenecker world
        owkg family-tree close --people people.tsv --parents parents.tsv --relations my.toml world --overwrite
    """
    import family_tree

    with progress("closing", "people") as update:
        content = family_tree.close(people, parents, out, **asdict(world), progress=update)
    show_world(out, content, form)


def generate(
    out: Path,
    *,
    num_trees: int = 20,
    max_tree_size: int = 300,
    max_depth: int = 3,
    max_branching: int = 20,
    strict_depth: StrictDepth = False,
    first_tree: int = 0,
    seed: int = 0,
    world: WorldOptions,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Sample families by the published process and write all facts that follow from them.

    The files are the same as those of owkg family-tree close. A family depends only on the seed, its number
    and the limits: with more families, or another first family, it stays the same.

    Args:
        out (OUT): Folder to make for the world.
        num_trees (N): Number of families to sample.
        max_tree_size (N): Largest number of people in a family.
        max_depth (N): Largest number of levels between two people of a family.
        max_branching (N): Largest number of children of a person.
        first_tree (N): Number of the first family.
        seed (N): Seed of the families. Equal seeds give equal families.

    Examples:
        owkg family-tree generate world
        owkg family-tree generate world --num-trees 200 --relations hohenecker --seed 1 --overwrite
        owkg family-tree generate world --max-tree-size 60 --max-depth 2 --max-branching 4 --strict-depth
    """
    import family_tree

    begin = time.perf_counter()
    with progress("generating", "people") as update:
        content = family_tree.generate(
            out,
            num_trees=num_trees,
            max_tree_size=max_tree_size,
            max_depth=max_depth,
            max_branching=max_branching,
            strict_depth=strict_depth,
            first_tree=first_tree,
            seed=seed,
            **asdict(world),
            progress=update,
        )
    show_world(out, content | {"seconds": round(time.perf_counter() - begin, 3)}, form)


def draw(
    folder: Path | None = None,
    *,
    out: Path,
    tree: Annotated[int, typer.Option(min=0, max=999999)] = 0,
    max_tree_size: int | None = None,
    max_depth: int | None = None,
    max_branching: int | None = None,
    strict_depth: StrictDepth = False,
    seed: int | None = None,
) -> None:
    """Draw one family: circles are women, squares are men, and lines lead down to their children.

    Families are numbered from 0, in the order of their first labels.

    Args:
        folder (DIR): Folder that generate or close made. Default: a family is sampled now.
        out (FILE): Figure to write: .png, .pdf or .svg.
        tree (N): Number of the family.
        max_tree_size (N): Largest number of people in a sampled family. Default: 40.
        max_depth (N): Largest number of levels between two people of a sampled family. Default: 3.
        max_branching (N): Largest number of children of a person in a sampled family. Default: 20.
        seed (N): Seed of a sampled family. Default: 0.

    Examples:
        owkg family-tree draw --max-tree-size 40 --seed 1 --out tree.png
        owkg family-tree draw world --tree 3 --out tree.pdf
    """
    import family_tree
    from family_tree.families import family
    from family_tree.figure import draw_family

    check_ending("out", out, ".png", ".pdf", ".svg")
    limits = {
        "max_tree_size": max_tree_size,
        "max_depth": max_depth,
        "max_branching": max_branching,
        "seed": seed,
    }
    given = {name: value for name, value in limits.items() if value is not None}
    if folder is None:
        sampling: dict[str, Any] = {"max_tree_size": 40} | given | {"strict_depth": strict_depth}
        people = family_tree.sample_people(**sampling, num_trees=1, first_tree=tree)
    elif given or strict_depth:
        raise ValueError(f"`{next(iter(given), 'strict_depth')}` has no effect on the people in {folder}.")
    else:
        people = family(family_tree.read_people(folder / "people.tsv", folder / "parents.tsv"), tree)
    depth = int(family_tree.generations(people).max()) + 1
    what = f"{len(people.labels)} people, {depth} generations"
    draw_family(people, out, title=f"{folder or f'seed {seed or 0}'}, family {tree}: {what}")
    print(f"wrote {one_line(out)}: {what}")


def relations(source: str = "published", *, format_: Literal["table", "json", "markdown"] = "table") -> None:
    """List relations of kinship, what they mean for X and Y, and the rules that derive them.

    A TOML file holds a table for each relation: meaning, rules, and hidden = true if its facts are not
    written. A rule is a list of atoms: relation(A, B), female(A), male(A), A != B, not relation(A, B). It
    derives its relation for all X and Y for which the atoms hold. The relations parentOf, female and male are
    given.

    Args:
        source (NAME|FILE): Relations to list: published, hohenecker, or a TOML file of rules.
        format_: Print a table to read, JSON, or Markdown.

    Examples:
        owkg family-tree relations
        owkg family-tree relations hohenecker --format markdown
        owkg family-tree relations my.toml
    """
    import family_tree

    ontology = family_tree.ontology(source)
    rows = [
        {
            "relation": r.name,
            "meaning": r.meaning,
            "rules": [str(rule) for rule in r.rules],
            "hidden": r.hidden,
        }
        for r in ontology.definitions
    ]
    if format_ == "markdown":
        print("| relation | holds of X and Y if | rules |\n|---|---|---|")
        for row in rows:
            rules = "<br>".join(f"`{rule}`" for rule in row["rules"]) or "given"
            meaning = row["meaning"].replace("|", r"\|")
            print(one_line(f"| {_named(row)} | {meaning} | {rules} |"))
    elif format_ == "table":
        _show_relations(ontology.description, rows)
    else:
        head = {"name": ontology.name, "description": ontology.description}
        show(format_, head | {"relations": rows}, ensure_ascii=False)


def verify(folder: Path) -> None:
    """Derive the facts of a folder again and compare every fact and every checksum.

    The exit code is 1 if something differs.

    Args:
        folder (DIR): Folder that close or generate made.

    Examples:
        owkg family-tree verify world
    """
    import family_tree

    with progress("verifying", "people") as update:
        faults = family_tree.verify(folder, progress=update)
    for fault in faults:
        print(one_line(f"{folder}: {fault}"))
    if faults:
        raise typer.Exit(1)
    print(f"{one_line(folder)}: closed, and unchanged since it was written")


def show_world(out: Path, content: dict[str, Any], form: Format) -> None:
    """Prints the numbers of people and facts written, counts by relation, and the time taken."""
    counts = ", ".join(f"{content[kind]:,} {kind}" for kind in ("people", "couples", "generations", "facts"))
    seconds = f" in {content['seconds']:.2g} s" if "seconds" in content else ""
    if form is Format.TABLE:
        print(f"wrote {one_line(out)}: {counts}{seconds}")
    rows = [(name, f"{count:,}") for name, count in content["relations"].items()]
    show(form, {"out": out, **content}, [Table("", ["relation", "facts"], rows)], ensure_ascii=False)


def _show_relations(description: str, rows: list[dict[str, Any]]) -> None:
    table = new_table()
    for column in ("relation", "holds of X and Y if", "rules"):
        table.add_column(column)
    for row in rows:
        table.add_row(*map(plain_text, (_named(row), row["meaning"], "\n".join(row["rules"]) or "given")))
    line(description, "bold")
    console().print(table)


def _named(row: dict[str, Any]) -> str:
    return f"{row['relation']} (not written)" if row["hidden"] else row["relation"]


family_tree_app = group(
    "family-tree",
    "Make closed worlds of families: all facts that rules of kinship derive from people and their parents.",
    close,
    generate,
    draw,
    relations,
    verify,
)
