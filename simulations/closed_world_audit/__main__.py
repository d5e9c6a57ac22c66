"""The commands of `python -m simulations.closed_world_audit`."""

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from owkg.auditing.calibration import TABLE, WORLDS
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, printed
from simulations.closed_world_audit.errors import LEAST, calibration
from simulations.closed_world_audit.judgement import (
    boxed,
    certificates,
    coverage,
    intervals,
    of_boxes,
    ordered,
    reliability,
)
from simulations.closed_world_audit.points import WIDTH, points, published
from simulations.closed_world_audit.uneven import NEAR, cells, uneven_rows, uneven_worlds
from simulations.closed_world_audit.worlds import GROUPS, all_trained, shared, worlds_folder
from simulations.open_world.runs import Scheduler, Workers
from simulations.script import Out, command_line, run_package, save_table

Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="Train a quarter of the steps and keep four checkpoints of a run: a first look. Worlds and "
        "tables go to closed_worlds_quick in the folder of the results.",
    ),
]


def calibrate(
    out: Out = Path("out"), quick: Quick = False, scheduler: Scheduler = None, workers: Workers = None
) -> None:
    """Trains models on closed worlds and writes the errors that owkg audit uses; an hour on two cores."""
    rows, told = [], []
    for group, name, labels, worlds in all_trained(out, quick, scheduler, workers):
        rows.append(points(name, worlds, labels, chosen=False))
        for world, recorded in worlds:
            sizes = {"entities": world.graph.num_entities, "queries": world.num_queries}
            sizes |= {"answers": len(world.query), "models": ", ".join(labels)}
            sizes |= {"checkpoints": sum(len(one.step) for one in recorded)}
            told.append({"group": group, "setting": name, "density": world.density} | sizes)
    found = calibration(pl.concat(rows))
    folder = worlds_folder(out, quick)
    save_table(found, folder / TABLE.name if quick else TABLE)
    save_table(pl.DataFrame(told), folder / WORLDS.name if quick else WORLDS)
    laws = found.drop("share", "mixture_weight").unique(maintain_order=True)
    printed("errors", laws.columns, [[str(x) for x in row] for row in laws.iter_rows()])
    wide = found.pivot("share", index="metric", values="mixture_weight", maintain_order=True)
    printed(
        "mixture weights of the shares", wide.columns, [[str(x) for x in row] for row in wide.iter_rows()]
    )


def check(
    out: Out = Path("out"), quick: Quick = False, scheduler: Scheduler = None, workers: Workers = None
) -> None:
    """Coverage of an audit's intervals and probabilities, on families that its errors were not fitted to.

    Each group of worlds is judged by errors fitted to the other groups, without the configurations that all
    settings of the group have, so that at least one configuration of every pair is new. The published worlds
    (under OWKG_DATA) are judged by the errors of owkg audit, and so are the values that it calls impossible.

    Writes audit_coverage.csv, audit_intervals.csv, audit_probabilities.csv and audit_boxes.csv.
    """
    known = published()
    if not len(known):
        line("OWKG_DATA is not set: the published worlds are left out")
    parts, certified = [], []
    for group, name, labels, worlds in all_trained(out, quick, scheduler, workers):
        parts.append(points(name, worlds, labels).with_columns(pl.lit(group).alias("group")))
        certified += [certificates(*one) for one in worlds]
    measured = pl.concat(parts).filter(pl.col("full") > LEAST)
    of_group, within, orders, new, boxes = pl.col("group"), [], [], [], []
    for group, settings in GROUPS.items():
        theirs = pl.col("model").is_in(shared(settings))
        own, others = measured.filter(of_group == group), measured.filter(of_group != group, ~theirs)
        table = calibration(others.filter(missing="independent"))
        within.append(intervals(own.filter(missing="independent"), table))
        orders.append(ordered(own.filter(missing="independent"), table))
        new.append(ordered(own.filter(theirs, missing="independent"), table))
        boxes.append(boxed(own.filter(missing="chosen"), table))
    if len(known):
        known = known.filter(pl.col("full") > LEAST)
        within.append(intervals(known))
        orders.append(ordered(known))
        new.append(orders[-1])
    out = worlds_folder(out, quick) if quick else out
    told = pl.concat(within, how="diagonal")
    world = ("metric", "group", "setting", "density", "asked")
    save_table(coverage(told, world), out / "audit_coverage.csv")
    generated, whole = told.filter(of_group != "published"), []
    for by, title, some in (
        (world[:1], "all worlds", told),
        (world[:1], "generated worlds", generated),
        (world[:1], "generated worlds of density .75", generated.filter(density=0.75)),
        (world[:2], "worlds by group", told),
        (("metric", "asked"), "generated worlds by sparsity", generated),
    ):
        kept = coverage(some, by)
        whole.append(kept.select(pl.lit(title).alias("worlds"), pl.all()))
        printed(f"intervals: {title}", kept.columns, [_cells(row) for row in kept.iter_rows()])
    save_table(pl.concat(whole, how="diagonal"), out / "audit_intervals.csv")
    pairs = {"all": pl.concat(orders), "both models new": pl.concat(new)}
    pairs |= {part["group"][0]: part for part in orders}
    said = pl.concat(
        reliability(part).select(pl.lit(name).alias("group"), pl.all()) for name, part in pairs.items()
    )
    save_table(said, out / "audit_probabilities.csv")
    for name in list(pairs)[:2]:
        upper = said.filter(pl.col("tenth") >= 5, group=name).drop("group")
        printed(
            f"orders: stated and true probability ({name})",
            upper.columns,
            [_cells(row) for row in upper.iter_rows()],
        )
    held = of_boxes(pl.concat(boxes))
    save_table(held, out / "audit_boxes.csv")
    of_pairs = pl.concat(certified)
    some = of_pairs.filter("covered")
    line(
        f"{len(some):,} of {len(of_pairs):,} orders by MRR are certified against more facts than are missing."
        f" The full test reverses {some['reversed'].sum():,} of these, {of_pairs['reversed'].sum():,} of all"
    )
    printed(
        f"facts chosen by a model, correlations known to {WIDTH:g}",
        held.columns,
        [_cells(row) for row in held.iter_rows()],
    )


def uneven(out: Out = Path("out"), quick: Quick = False) -> None:
    """Intervals of an audit when the missing rate differs between queries; ten minutes on two cores.

    Facts go missing at one rate; by rates of queries, entities or relations; more from larger or smaller
    queries; more for unpopular answers; or by the choice of a model. Worlds are block-structured graphs,
    power-law graphs and families. The audit knows the sparsity but not the rates. Writes
    audit_unevenness.csv.
    """
    folder = worlds_folder(out, quick)
    parts = []
    for name, world, recorded in uneven_worlds(folder, quick):
        with progress(f"auditing {name}", "tests") as update:
            for share, rows in uneven_rows(name, world, recorded, quick=quick):
                parts.append(rows)
                update(round(100 * share), 100)
    rows = pl.concat([part for part in parts if len(part)], how="diagonal_relaxed")
    if "known_held" not in rows.columns:
        rows = rows.with_columns(known_held=pl.lit(None, pl.Boolean), known_width=pl.lit(None, pl.Float64))
    graph = pl.col("world").str.replace(r" \d+$", "")
    found = cells(rows.with_columns(graph))
    save_table(found, (folder if quick else out) / "audit_unevenness.csv")
    for metric in ("mrr", "hits@1", "hits@10"):
        for average in ("answers", "queries"):
            own = found.filter(metric=metric, average=average).drop("metric", "average")
            title = f"{metric} over {average}: correlations within {NEAR:g} of 0; known to {NEAR:g}"
            printed(title, own.columns, [_cells(row) for row in own.iter_rows()])


def _cells(row: tuple[Any, ...]) -> list[str]:
    return ["-" if x is None else f"{x:.3f}" if isinstance(x, float) else str(x) for x in row]


main = command_line(
    "simulations.closed_world_audit",
    {"calibrate": calibrate, "check": check, "uneven": uneven},
    {
        "calibrate": "calibrate --out out",
        "check": "check --out out\ncheck --quick",
        "uneven": "uneven --out out\nuneven --quick",
    },
)

if __name__ == "__main__":
    run_package(main)
