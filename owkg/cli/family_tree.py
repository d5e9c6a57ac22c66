"""`owkg family-tree`: closed worlds of families."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli import options
from owkg.cli.progress import progress

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
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace OUT, if it was made by owkg, as a whole.")
]


@family_tree_app.command(
    epilog="Examples:\n\n"
    "owkg family-tree close --people people.tsv --parents parents.tsv world\n\n"
    "owkg family-tree close --people people.tsv --parents parents.tsv --relations hohenecker world\n\n"
    "owkg family-tree close --people people.tsv --parents parents.tsv --relations my.toml world --overwrite",
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
    "owkg family-tree relations\n\n"
    "owkg family-tree relations hohenecker --format markdown\n\n"
    "owkg family-tree relations my.toml",
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
    """Prints what was written: numbers of people and facts, counts by relation."""
    if form is options.Format.JSON:
        print(json.dumps({"out": str(out)} | content, indent=2, ensure_ascii=False))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    table.add_column("relation")
    table.add_column("facts", justify="right")
    for name, count in content["relations"].items():
        table.add_row(name, f"{count:,}")
    print(f"wrote {out}: {content['people']:,} people, {content['facts']:,} facts")
    Console(highlight=False).print(table)


def _show_relations(description: str, rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for column in ("relation", "holds of X and Y if", "rules"):
        table.add_column(column)
    for row in rows:
        table.add_row(_named(row), row["meaning"], "\n".join(row["rules"]) or "given")
    console = Console(highlight=False, markup=False)
    console.print(description, style="bold", soft_wrap=True)
    # Wider than the window rather than with rules cut off.
    wide = Console(width=10_000, markup=False).measure(table).maximum
    Console(width=max(console.width, wide), highlight=False, markup=False).print(table)


def _named(row: dict[str, Any]) -> str:
    return f"{row['relation']} (not written)" if row["hidden"] else row["relation"]
