"""`owkg sample`: open-world benchmarks drawn from a closed world."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from owkg.cli.inputs import collected
from owkg.cli.options import Format, OutputFormat, Overwrite, sides_given, split_list
from owkg.cli.output import Table, show

if TYPE_CHECKING:
    from owkg.sampling import FactModel

# Default number of queries.
_QUERIES = 500
# Option of each model that has a parameter.
_PARAMETERS = {"node": "node_spread", "relation": "relation_spread", "popularity": "popularity_exponent"}


def sample(
    facts: Path,
    out: Path,
    *,
    density: str,
    columns: str | None = None,
    train_rate: float = 0.7,
    valid_rate: float = 0.0,
    min_answers: int = 10,
    num_queries: str | None = None,
    seed: int = 0,
    missing: Literal["independent", "node", "relation", "popularity"] = "independent",
    node_spread: float | None = None,
    relation_spread: Annotated[float | None, typer.Option(min=1e-6, max=10)] = None,
    popularity_exponent: float | None = None,
    nested: bool = False,
    sides: str = "tail",
    layouts: Annotated[str, typer.Option("--write-layouts")] = "openke,libkge",
    figure: Annotated[bool, typer.Option("--card-figure")] = True,
    overwrite: Overwrite = False,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Draw an open-world benchmark of known incompleteness from a closed world.

    Each fact is known with a probability that you choose. Some known facts are for training, the others are
    the sparse test set; with all missing facts they form the full test set. OUT holds the sets, the queries
    and their TREC judgements, label maps, the layouts of OpenKE and LibKGE, and a description: README.md,
    metadata.json, card.png. Several densities go into OUT/d0.95, OUT/d0.85, ...

    Args:
        facts (FACTS): The closed world: lines of head, relation, tail, separated by tabs (in .csv commas or
            semicolons), .gz or not; or .parquet.
        out (OUT): Folder to write the benchmark to.
        density (P,...): Share of the facts that is known, in (0, 1]; several with commas.
        nested: Draw nested worlds: a fact that is missing at one density is missing at every lower one.
        train_rate (SHARE): Share of the known facts that is used for training, in (0, 1).
        valid_rate (SHARE): Share of the known facts that is used for validation, in [0, 1).
        seed (N): Seed of all random choices. Equal seeds give equal files.
        columns (COLUMNS): Order of the columns of FACTS, such as head,tail,relation; or their names in the
            header line, such as head=subject,relation=predicate,tail=object. Default: head,relation,tail,
            without a header.

    Queries:
        num_queries (N|all): Number of queries, or all for every possible one. Default: 500, or as many as
            there are.
        min_answers (N): Number of answers on the full test set that a query must have, at least 1.
        sides (SIDE,...): Sides that queries ask for: tail, head,tail for both.

    How facts go missing:
        missing: Model of missing facts: each fact independently, by the entities or relations that facts
            share (node, relation), or by the popularity of entities.
        node_spread (NUMBER): Spread of the entities' probabilities, with --missing node. Default: 0.2.
        relation_spread (NUMBER): Spread of the relations' probabilities, with --missing relation. Default:
            0.2.
        popularity_exponent (NUMBER): How fast the odds of being known rise with the popularity of head and
            tail, with --missing popularity. Default: 1.0.

    Output:
        layouts (LAYOUT,...): Layouts to write in addition to the labelled files: openke, libkge, or none.
        figure: Draw card.png, a picture of the benchmark.

    Examples:
        owkg sample facts.tsv benchmark --density 0.75 --train-rate 0.7
        owkg sample facts.tsv benchmarks --density 0.95,0.85,0.75,0.65 --nested --missing node --seed 1
        owkg sample facts.parquet benchmark --density 0.5 --valid-rate 0.1 --num-queries all --sides head,tail
    """
    from owkg import sampling
    from owkg.plots.sampling import draw_card
    from owkg.terminal.progress import progress

    densities = _densities(density)
    model = _model(
        missing,
        node_spread=node_spread,
        relation_spread=relation_spread,
        popularity_exponent=popularity_exponent,
    )
    asked = _QUERIES if num_queries is None else _num_queries(num_queries)
    written = [] if layouts == "none" else split_list(layouts)
    asked_of = sides_given(sides)
    if "tail" not in asked_of:
        raise ValueError(f"`sides` must be tail, or head,tail for both, got {sides!r}.")
    if facts.exists() and not facts.is_file():
        raise ValueError(f"{facts}: must be a file that can be read twice, not a folder or a pipe.")
    notes: list[str] = []

    def worlds() -> Iterator[sampling.OpenWorld]:
        with collected() as heard:
            graph = sampling.read_facts(facts, columns=columns)
        notes.extend(heard)
        with progress("sampling", "densities") as update:
            for done, each in enumerate(densities):
                update(done, len(densities))
                world = sampling.sample(
                    graph,
                    density=each,
                    train_rate=train_rate,
                    valid_rate=valid_rate,
                    min_answers=min_answers,
                    num_queries=asked,
                    fewer=num_queries is None,
                    seed=seed,
                    missing=model,
                    nested=nested,
                    both_sides=len(asked_of) == 2,
                )
                if num_queries is None and world.num_eligible < _QUERIES:
                    notes.append(
                        f"density {each:g}: only {world.num_eligible} queries, not {_QUERIES}, have at least "
                        f"{min_answers} answers on the full test set and one on the sparse test set."
                    )
                yield world

    with progress("writing", "densities") as update:
        cards = sampling.write_worlds(
            worlds(),
            out,
            source=facts,
            layouts=written,
            draw=draw_card if figure else None,
            overwrite=overwrite,
            on_progress=update,
        )
    notes += cards[0]["notes"]
    shared = {key: cards[0][key] for key in ("made_by", "versions", "source")}
    worlds_shown = [{key: value for key, value in card.items() if key not in shared} for card in cards]
    header, *rows = sampling.compared(cards)
    lines = [f"wrote {out}", *(f"note: {text}" for text in notes)]
    payload = {"out": out, **shared, "notes": notes, "worlds": worlds_shown}
    show(form, payload, [Table("", header, rows)], lines)


def _densities(text: str) -> list[float]:
    try:
        densities = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"`density` must be numbers in (0, 1], separated by commas, got {text!r}.") from None
    for density in densities:
        if not 0 < density <= 1:
            raise ValueError(f"`density` must be in (0, 1], got {density!r}.")
        if densities.count(density) > 1:
            raise ValueError(f"`density` must not contain a number twice, got {density!r} twice.")
    return densities


def _num_queries(text: str) -> int | None:
    try:
        return None if text == "all" else int(text)
    except ValueError:
        raise ValueError(f"`num_queries` must be a whole number or all, got {text!r}.") from None


def _model(missing: str, **given: float | None) -> "FactModel":
    """Missing-fact model with its parameter, if one is given."""
    from owkg.sampling import MISSING_MODELS

    own = _PARAMETERS.get(missing)
    for name, value in given.items():
        if value is not None and name != own:
            raise ValueError(f"`{name}` has no effect with --missing {missing}.")
    value = None if own is None else given[own]
    return MISSING_MODELS[missing](*([] if value is None else [value]))
