"""Table 2 of the paper on PROBE: models by sharpness (P1) and by robustness to popularity (P2).

The available text of the paper lacks the parameters. Here P1 has sharpness 1/4, 1/2, 1, 2 at robustness 0,
and P2 has robustness 0, 1/4, 1/2, 1 at sharpness 1. PROBE at sharpness 1 and robustness 0 is the rescaled
MRR. N of the rank transformer is the number of entities, as in the paper. The place is the model's place in
the column, 1 for the best: where it changes along a row, the parameter decides which model is better.

    python -m simulations.probe2026 table2 --quick --out out
    python -m simulations.probe2026 table2 --kg data/wn18rr --ranks one.parquet --ranks two.parquet --out out
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

import owkg
from owkg.files.storage import writable_folder
from owkg.metrics import probe
from owkg.terminal.tables import printed
from simulations.rank_tables import EMBEDDINGS, DataSet, Graphs, Seeds, Tables, data_sets, embedding
from simulations.script import Out, Quick, save_table

SYSTEMS = {"RotatE": "rotate", "TuckER": "tucker", "pLogicNet": "plogicnet", "RNNLogic": "rnnlogic"}
"""Models of the paper's table."""
SHARPNESS = (0.25, 0.5, 1.0, 2.0)
ROBUSTNESS = (0.0, 0.25, 0.5, 1.0)


def table_2(
    sets: Sequence[DataSet], sharpness: Sequence[float] = SHARPNESS, robustness: Sequence[float] = ROBUSTNESS
) -> pl.DataFrame:
    """PROBE of realistic ranks: a row for each part, data set, model and pair of parameters.

    The columns are part (P1, P2), data, model, sharpness, robustness, value and place.
    """
    asked = [("P1", a, 0.0) for a in sharpness] + [("P2", 1.0, b) for b in robustness]
    chosen = [probe(a, b) for _, a, b in asked]
    rows: list[dict[str, Any]] = []
    for one in sets:
        for model, ranks in one.ranks.items():
            found = owkg.evaluate(ranks, chosen, ci=None, num_entities=one.graph.num_entities)
            values = dict(found.select("metric", "value").iter_rows())
            rows += [
                {"part": part, "data": one.name, "model": model, "sharpness": a, "robustness": b}
                | {"value": values[metric.name]}
                for (part, a, b), metric in zip(asked, chosen, strict=True)
            ]
    column = ["part", "data", "sharpness", "robustness"]
    place = pl.col("value").rank("min", descending=True).over(column).cast(pl.Int64)
    return pl.DataFrame(rows).with_columns(place=place).sort("part", maintain_order=True)


def _cell(entry: dict[str, Any]) -> str:
    return f"{entry['value']:.3f} ({entry['place']})"


def print_table(table: pl.DataFrame) -> None:
    """Prints each part in the layout of the paper, a row for each model, with the place after each number."""
    for (part,), rows in table.group_by("part", maintain_order=True):
        varied = "sharpness" if part == "P1" else "robustness"
        shown = rows.with_columns(
            cell=pl.struct("value", "place").map_elements(_cell, pl.String), at=pl.format("{}", varied)
        ).pivot("at", index=["data", "model"], values="cell")
        title = f"{part}: PROBE by {varied} (place)"
        printed(title, shown.columns, [list(map(str, row)) for row in shown.iter_rows()])


def main(
    kg: Graphs = None,
    ranks: Tables = None,
    sharpness: Annotated[
        list[float] | None, typer.Option(help="Sharpness of a column of P1; repeatable.")
    ] = None,
    robustness: Annotated[
        list[float] | None, typer.Option(help="Robustness of a column of P2; repeatable.")
    ] = None,
    embeddings: Annotated[
        bool,
        typer.Option(
            "--embeddings",
            help="Train RotatE, ComplEx, TransE and DistMult of dimension 32 instead of the paper's four.",
        ),
    ] = False,
    seeds: Seeds = None,
    out: Out = Path("out"),
    quick: Quick = False,
) -> None:
    """Table 2: models by sharpness and by robustness to popularity, from your rank tables or trained here.

    If the command is interrupted, run it again and it resumes where it stopped.
    """
    folder = writable_folder(out / "probe")
    for a in sharpness or ():
        probe(a)  # raises an error before any training
    for b in robustness or ():
        probe(1.0, b)
    systems, how = (EMBEDDINGS, embedding) if embeddings else (SYSTEMS, None)
    folder = writable_folder(folder / "embeddings") if embeddings else folder
    sets = data_sets(systems, kg or (), ranks or (), seeds, quick, folder, how)
    table = table_2(sets, sharpness or SHARPNESS, robustness or ROBUSTNESS)
    print_table(table)
    save_table(table, folder / "table2.csv")
