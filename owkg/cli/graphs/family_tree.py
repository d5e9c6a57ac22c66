"""`owkg family-tree`: closed worlds of families."""

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli import options
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, new_table, plain, printed, put

family_tree_app = typer.Typer(
    name="family-tree",
    help="Closed worlds of families: everything that rules of kinship say of people and their parents.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


class Form(StrEnum):
    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


class FactsFormat(StrEnum):
    TSV = "tsv"
    PARQUET = "parquet"


Relations = Annotated[
    str, typer.Option(metavar="NAME|FILE", help="published (23), hohenecker (29), or a TOML file of rules.")
]
Facts = Annotated[FactsFormat, typer.Option("--facts-format", help="facts.tsv (no header) or facts.parquet.")]
StrictDepth = Annotated[
    bool,
    typer.Option(
        "--strict-depth",
        help="Keep spouses on one level; as published, one counts as a level below the other.",
    ),
]
Seed = Annotated[int, typer.Option(help="Equal seeds give equal families.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace OUT, if it was made by owkg, as a whole.")
]


@family_tree_app.command(
    epilog="Examples:\n\n"
    "owkg family-tree close --people people.tsv --parents parents.tsv world\n\n"
    "owkg family-tree close --people people.tsv --parents parents.tsv --relations hohenecker world\n\n"
    "owkg family-tree close --people people.tsv --parents parents.tsv --relations my.toml world --overwrite"
)
def close(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to make.")],
    people: Annotated[
        Path, typer.Option(metavar="FILE", help="Lines of person, tab, gender; a header first.")
    ],
    parents: Annotated[
        Path, typer.Option(metavar="FILE", help="Lines of parent, tab, child; a header first.")
    ],
    relations: Relations = "published",
    facts_format: Facts = FactsFormat.TSV,
    overwrite: Overwrite = False,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Writes all facts that follow of people and their parents.

    OUT/facts.tsv holds head, relation, tail, sorted, without header. Beside it: people.tsv and parents.tsv,
    sorted, relations.toml (the rules), and metadata.json (counts by relation, versions, checksums).
    """
    import family_tree

    with progress("closing", "people") as update:
        content = family_tree.close(
            people,
            parents,
            out,
            relations=relations,
            facts_format=facts_format.value,
            overwrite=overwrite,
            progress=update,
        )
    show_world(out, content, form)


@family_tree_app.command(
    epilog="Examples:\n\n"
    "owkg family-tree generate world\n\n"
    "owkg family-tree generate world --num-trees 200 --relations hohenecker --seed 1 --overwrite\n\n"
    "owkg family-tree generate world --max-tree-size 60 --max-depth 2 --max-branching 4 --strict-depth"
)
def generate(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to make.")],
    num_trees: Annotated[int, typer.Option(help="Families.")] = 20,
    max_tree_size: Annotated[int, typer.Option(help="Most people of a family.")] = 300,
    max_depth: Annotated[int, typer.Option(help="Most levels between two people of a family.")] = 3,
    max_branching: Annotated[int, typer.Option(help="Most children of a person.")] = 20,
    strict_depth: StrictDepth = False,
    first_tree: Annotated[int, typer.Option(help="Number of the first family.")] = 0,
    relations: Relations = "published",
    seed: Seed = 0,
    facts_format: Facts = FactsFormat.TSV,
    overwrite: Overwrite = False,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Samples families by the published process and writes all facts that follow of them.

    The files are those of close. A family is a function of the seed, its number and the limits alone: more
    families, or others from another first one on, leave it as it is.
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
            relations=relations,
            facts_format=facts_format.value,
            overwrite=overwrite,
            progress=update,
        )
    show_world(out, content | {"seconds": round(time.perf_counter() - begin, 3)}, form)


@family_tree_app.command(
    epilog="Examples:\n\n"
    "owkg family-tree draw --max-tree-size 40 --seed 1 --out tree.png\n\n"
    "owkg family-tree draw world --tree 3 --out tree.pdf"
)
def draw(
    out: Annotated[Path, typer.Option(help="Figure to write: .png, .pdf or .svg.")],
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="Folder made by generate or close; sampled on the spot when absent."
        ),
    ] = None,
    tree: Annotated[int, typer.Option(help="Number of the family.", min=0, max=999_999)] = 0,
    max_tree_size: Annotated[
        int | None, typer.Option(help="Most people of a sampled family; 40 when absent.")
    ] = None,
    max_depth: Annotated[int | None, typer.Option(help="Of a sampled family; 3 when absent.")] = None,
    max_branching: Annotated[int | None, typer.Option(help="Of a sampled family; 20 when absent.")] = None,
    strict_depth: StrictDepth = False,
    seed: Annotated[int | None, typer.Option(help="Of a sampled family; 0 when absent.")] = None,
) -> None:
    """Draws one family: circles are women, squares men, and lines run down to their children.

    Families are counted from 0, in the order of their first labels.
    """
    import family_tree
    from family_tree.families import family
    from family_tree.figure import draw_family

    if out.suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"`out` must end in .png, .pdf or .svg, got {out}.")
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
        raise ValueError(f"`{next(iter(given), 'strict_depth')}` says nothing about the people in {folder}.")
    else:
        people = family(family_tree.read_people(folder / "people.tsv", folder / "parents.tsv"), tree)
    depth = int(family_tree.generations(people).max()) + 1
    what = f"{len(people.labels)} people, {depth} generations"
    draw_family(people, out, title=f"{folder or f'seed {seed or 0}'}, family {tree}: {what}")
    print(f"wrote {out}: {what}")


@family_tree_app.command(
    epilog="Examples:\n\n"
    "owkg family-tree relations\n\n"
    "owkg family-tree relations hohenecker --format markdown\n\n"
    "owkg family-tree relations my.toml"
)
def relations(
    source: Annotated[
        str, typer.Argument(metavar="[NAME|FILE]", help="published, hohenecker, or a TOML file of rules.")
    ] = "published",
    form: Annotated[Form, typer.Option("--format", help="table, json or markdown.")] = Form.TABLE,
) -> None:
    """Relations of kinship, what they mean of X and Y, and the rules that derive them.

    A TOML file holds a table for each relation: meaning, rules, and hidden = true if its facts are not
    written. A rule is a list of atoms: relation(A, B), female(A), male(A), A != B, not relation(A, B). It
    derives its relation of all X and Y for which they hold. parentOf, female and male are given.
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
    if form is Form.JSON:
        head = {"name": ontology.name, "description": ontology.description}
        print(json.dumps(head | {"relations": rows}, indent=2, ensure_ascii=False))
    elif form is Form.MARKDOWN:
        print("| relation | holds of X and Y if | rules |\n|---|---|---|")
        for row in rows:
            rules = "<br>".join(f"`{rule}`" for rule in row["rules"]) or "given"
            meaning = row["meaning"].replace("|", r"\|")
            print(f"| {_named(row)} | {meaning} | {rules} |")
    else:
        _show_relations(ontology.description, rows)


@family_tree_app.command(epilog="Examples:\n\nowkg family-tree verify world")
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder made by close or generate.")],
) -> None:
    """Closes the people of a folder again and compares every fact, and every checksum.

    Exit code 1 if something differs.
    """
    import family_tree

    with progress("verifying", "people") as update:
        faults = family_tree.verify(folder, progress=update)
    for fault in faults:
        print(f"{folder}: {fault}")
    if faults:
        raise typer.Exit(1)
    print(f"{folder}: closed, and as it was written")


def show_world(out: Path, content: dict[str, Any], form: options.Format) -> None:
    """Prints what was written: numbers of people and facts, counts by relation; and how long it took."""
    if form is options.Format.JSON:
        print(json.dumps({"out": str(out)} | content, indent=2, ensure_ascii=False))
        return
    counts = ", ".join(f"{content[kind]:,} {kind}" for kind in ("people", "couples", "generations", "facts"))
    seconds = f" in {content['seconds']:.2g} s" if "seconds" in content else ""
    print(f"wrote {out}: {counts}{seconds}")
    printed("", ["relation", "facts"], ((name, f"{count:,}") for name, count in content["relations"].items()))


def _show_relations(description: str, rows: list[dict[str, Any]]) -> None:
    table = new_table()
    for column in ("relation", "holds of X and Y if", "rules"):
        table.add_column(column)
    for row in rows:
        table.add_row(*map(plain, (_named(row), row["meaning"], "\n".join(row["rules"]) or "given")))
    line(description, "bold")
    put(table)


def _named(row: dict[str, Any]) -> str:
    return f"{row['relation']} (not written)" if row["hidden"] else row["relation"]
