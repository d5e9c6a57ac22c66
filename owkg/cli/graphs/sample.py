"""`owkg sample`: open-world benchmarks out of a closed world."""

import json
import warnings
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli import options
from owkg.terminal.tables import plain, printed


class FactsMissing(StrEnum):
    EDGE = "edge"
    NODE = "node"
    RELATION = "relation"
    POPULARITY = "popularity"


# Queries that are asked where none say how many.
_QUERIES = 500
# What each model is told, and by which option.
_PARAMETERS = {
    FactsMissing.EDGE: None,
    FactsMissing.NODE: "node_spread",
    FactsMissing.RELATION: "relation_spread",
    FactsMissing.POPULARITY: "popularity_exponent",
}


def sample(
    facts: Annotated[
        Path,
        typer.Argument(
            metavar="FACTS",
            help="The closed world: lines of head, relation, tail, between tabs, .gz or not; or .parquet.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")],
    density: Annotated[
        str,
        typer.Option(help="Share of the facts that is known, in (0, 1]; or several, separated by commas."),
    ],
    train_rate: Annotated[float, typer.Option(help="Share of the known facts that trains, in (0, 1).")] = 0.7,
    valid_rate: Annotated[float, typer.Option(help="Share of the known facts that validates.")] = 0.0,
    min_answers: Annotated[
        int, typer.Option(help="Full-test answers that a query must have to be asked, at least 1.")
    ] = 10,
    num_queries: Annotated[
        str | None,
        typer.Option(
            help="How many queries are asked; all: every one that may be.",
            show_default="500, or all there are",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal files.")] = 0,
    missing: Annotated[
        FactsMissing, typer.Option(help="How facts go missing: each by itself, or by what they share.")
    ] = FactsMissing.EDGE,
    node_spread: Annotated[
        float | None,
        typer.Option(help="Spread of the entities' probabilities under --missing node.", show_default="0.2"),
    ] = None,
    relation_spread: Annotated[
        float | None,
        typer.Option(
            help="Spread of the relations' probabilities under --missing relation.",
            show_default="0.2",
            min=1e-6,
            max=10,
        ),
    ] = None,
    popularity_exponent: Annotated[
        float | None,
        typer.Option(
            help="How fast the odds of being known rise with the popularity of head and tail under "
            "--missing popularity.",
            show_default="1.0",
        ),
    ] = None,
    nested: Annotated[
        bool, typer.Option("--nested", help="What is missing at one density is missing at every lower one.")
    ] = False,
    both_sides: Annotated[
        bool, typer.Option("--both-sides", help="Ask for heads too, not only for tails.")
    ] = False,
    layout: Annotated[
        str, typer.Option(help="Layouts to write beside the labelled files; none for none.")
    ] = "openke,libkge",
    figure: Annotated[bool, typer.Option("--figure/--no-figure", help="Draw card.png.")] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT, if it was written by this command.")
    ] = False,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Draws an open-world benchmark with dialled incompleteness from a closed world.

    Each fact is known with the given probability. Some known facts train, the others are the sparse test;
    with all that is missing they are the full test. OUT holds the sets, the queries and their TREC
    judgements, label maps, OpenKE and LibKGE layouts, and a card: README.md, metadata.json, card.png.
    Several densities go into OUT/d0.95, OUT/d0.85, ...
    """
    from owkg import sampling
    from owkg.plots.sampling import draw_card
    from owkg.terminal.progress import progress

    densities = _densities(density)
    given = {
        "train_rate": train_rate,
        "valid_rate": valid_rate,
        "min_answers": min_answers,
        "num_queries": _QUERIES if num_queries is None else _num_queries(num_queries),
        "fewer": num_queries is None,
        "seed": seed,
        "missing": _model(
            missing,
            node_spread=node_spread,
            relation_spread=relation_spread,
            popularity_exponent=popularity_exponent,
        ),
        "nested": nested,
        "both_sides": both_sides,
    }
    layouts = [] if layout == "none" else [name.strip() for name in layout.split(",")]
    if facts.exists() and not facts.is_file():
        raise ValueError(f"{facts}: must be a file that can be read twice, not a folder or a pipe.")
    notes: list[str] = []

    def worlds() -> Iterator[sampling.OpenWorld]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            graph = sampling.read_facts(facts)
        notes.extend(str(warning.message) for warning in caught)
        with progress("sampling", "densities") as update:
            for done, each in enumerate(densities):
                update(done, len(densities))
                world = sampling.sample(graph, density=each, **given)
                if given["fewer"] and world.num_eligible < _QUERIES:
                    notes.append(
                        f"density {each:g}: {world.num_eligible} queries are asked, all that have "
                        f"{min_answers} full-test answers and a sparse one; {_QUERIES} where there are more."
                    )
                yield world

    with progress("writing", "densities") as update:
        cards = sampling.write_worlds(
            worlds(),
            out,
            source=facts,
            layouts=layouts,
            draw=draw_card if figure else None,
            overwrite=overwrite,
            on_progress=update,
        )
    notes += cards[0]["notes"]
    if form is options.Format.JSON:
        shared = {key: cards[0][key] for key in ("made_by", "versions", "source")}
        shown = [{key: value for key, value in card.items() if key not in shared} for card in cards]
        print(json.dumps({"out": str(out)} | shared | {"notes": notes, "worlds": shown}, indent=2))
        return
    _show(out, sampling.compared(cards), notes)


def _densities(text: str) -> list[float]:
    try:
        densities = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"`density` must be numbers in (0, 1], separated by commas, got {text!r}.") from None
    for density in densities:
        if not 0 < density <= 1:
            raise ValueError(f"`density` must be in (0, 1], got {density!r}.")
        if densities.count(density) > 1:
            raise ValueError(f"`density` must not hold a number twice, got {density!r} twice.")
    return densities


def _num_queries(text: str) -> int | None:
    try:
        return None if text == "all" else int(text)
    except ValueError:
        raise ValueError(f"`num_queries` must be a whole number or all, got {text!r}.") from None


def _model(missing: FactsMissing, **given: float | None) -> Any:
    """The missing-fact model with the parameter that is given for it."""
    from owkg.sampling import MISSING_MODELS

    own = _PARAMETERS[missing]
    for name, value in given.items():
        if value is not None and name != own:
            raise ValueError(f"`{name}` says nothing about --missing {missing.value}.")
    value = None if own is None else given[own]
    return MISSING_MODELS[missing.value](*([] if value is None else [value]))


def _show(out: Path, rows: list[list[str]], notes: list[str]) -> None:
    header, *rest = rows
    printed("", header, rest)
    print(f"wrote {out}")
    for text in notes:
        print(f"note: {plain(text)}")
