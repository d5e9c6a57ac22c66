"""Statistics of generated family trees and of the published one: facts by relation, generations, answers.

The generator runs with the published parameters under several seeds, once as published and once with strict
depth. If OWKG_DATA is set, the published graph is recovered from its splits. Each graph is sampled at density
0.75. The script counts queries with at least 10 full-test answers and one sparse-test answer, as in the
experiments of Yang et al. (2022); "benchmark" are the 500 queries that they published.

    python simulations/family_tree_statistics.py --out out
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from family_tree import (
    People,
    closed_graph,
    generations,
    ontology,
    published_graph,
    published_people,
    sample_people,
)
from owkg.files.storage import writable_folder
from owkg.plots.figure import COLOURS, figure
from owkg.sampling.sample import sample
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, data_folder, run_script, save_figure, save_table

GENERATED, STRICT, PUBLISHED = "generated", "strict depth", "published"
STYLE = {
    PUBLISHED: {"color": COLOURS[6], "marker": "o", "ms": 4},
    GENERATED: {"color": COLOURS[0], "marker": "s", "ms": 3.5},
    STRICT: {"color": COLOURS[1], "marker": "^", "ms": 3.5},
}
DENSITIES = (0.95, 0.85, 0.75, 0.65)
# Queries with this many answers or more are counted together.
MOST = 30


@dataclass(frozen=True)
class Config:
    """Number of graphs of each kind, and the queries that are counted."""

    graphs: int = 20
    density: float = 0.75
    train_rate: float = 0.7
    min_answers: int = 10
    seed: int = 0


def run(config: Config) -> pl.DataFrame:
    """Counts of every graph in long form: kind, seed, count (what is counted), of (its category), value."""
    counts = []
    for kind, seed, people in _worlds(config):
        counts += [{"kind": kind, "seed": seed} | row for row in _counts(people, seed, config)]
    folder = data_folder("family_tree_published")
    folders = {density: folder / f"{density * 100:.0f}" for density in DENSITIES} if folder else {}
    for density, splits in folders.items():
        answers = _published_answers(splits)
        counts += [
            {"kind": "benchmark", "seed": 0, "count": f"answers at {density}", "of": name, "value": value}
            for name, value in (("queries", len(answers)), ("mean", answers.mean()))
        ]
    return pl.DataFrame(counts, schema_overrides={"value": pl.Float64})


def overview(counts: pl.DataFrame) -> pl.DataFrame:
    """Mean and standard deviation over graphs: a row for each count, a pair of columns for each kind."""
    long = counts.group_by("count", "of", "kind", maintain_order=True).agg(
        pl.col("value").mean().alias("mean"), pl.col("value").std().alias("sd")
    )
    return long.pivot("kind", index=["count", "of"], values=["mean", "sd"])


def _worlds(config: Config) -> Iterator[tuple[str, int, People]]:
    """Yields (kind, seed, people) of each graph."""
    folder = data_folder("family_tree_published")
    if folder:
        yield PUBLISHED, config.seed, published_people(folder)
    seeds = range(config.seed, config.seed + config.graphs)
    with progress("families", "graphs") as update:
        for done, seed in enumerate(seeds, start=1):
            for kind in (GENERATED, STRICT):
                yield kind, seed, sample_people(seed=seed, strict_depth=kind == STRICT)
            update(done, len(seeds))


def _counts(people: People, seed: int, config: Config) -> Iterator[dict]:
    graph = closed_graph(people, ontology("published"))
    facts = graph.splits["train"]
    above = generations(people)
    yield _row("graph", "people", graph.num_entities)
    yield _row("graph", "facts", len(facts))
    yield from (_row("generations above", str(n), c) for n, c in enumerate(np.bincount(above, minlength=6)))
    by_relation = np.bincount(facts[:, 1], minlength=graph.num_relations)
    yield from (_row("facts", name, c) for name, c in zip(graph.relations, by_relation, strict=True))
    world = sample(
        graph,
        density=config.density,
        train_rate=config.train_rate,
        min_answers=config.min_answers,
        num_queries=None,
        seed=seed,
    )
    answers = world.queries.full
    yield _row(f"answers at {config.density}", "queries", len(answers))
    yield _row(f"answers at {config.density}", "mean", answers.mean())
    spread = np.bincount(np.minimum(answers, MOST), minlength=MOST + 1)[config.min_answers :] / len(answers)
    bins = enumerate(spread, start=config.min_answers)
    yield from (
        _row("share of queries", f"{n}{'+' if n == MOST else ''} answers", share) for n, share in bins
    )


def _row(count: str, of: str, value: float) -> dict:
    return {"count": count, "of": of, "value": float(value)}


def _published_answers(folder: Path) -> np.ndarray:
    """Number of full-test answers of each published query of one density."""
    full = published_graph(folder).splits["test_full"]
    return np.unique(full[:, :2], axis=0, return_counts=True)[1]


def readable(table: pl.DataFrame) -> pl.DataFrame:
    """`table` without single numbers of answers, a column for each kind: mean ± standard deviation."""
    part = table.filter(pl.col("count") != "share of queries")
    kinds = [name.removeprefix("mean_") for name in table.columns if name.startswith("mean_")]
    cells = [
        pl.Series(kind, [_cell(*row) for row in part.select("of", f"mean_{kind}", f"sd_{kind}").rows()])
        for kind in kinds
    ]
    shown = part.select("count", "of").with_columns(cells)
    if PUBLISHED not in kinds:
        return shown
    off = (part[f"mean_{PUBLISHED}"] - part[f"mean_{GENERATED}"]) / part[f"sd_{GENERATED}"]
    return shown.with_columns(off.round(1).alias("published, in deviations of generated"))


def _cell(of: str, mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return ""
    digits = 1 if of == "mean" else 0
    return f"{mean:,.{digits}f}" + ("" if deviation is None else f" ± {deviation:,.{digits}f}")


def draw(table: pl.DataFrame, out: Path) -> list[Path]:
    """Plots facts by relation, generations, and answers of queries, one panel each."""
    kinds = [kind for kind in STYLE if f"mean_{kind}" in table.columns]
    panels = (
        ("facts", "facts", "log"),
        ("generations above", "people", "linear"),
        ("share of queries", "share of queries", "linear"),
    )
    with figure(1, 3, (11, 4.2), width_ratios=(2, 1, 1.4)) as (fig, axes):
        for axis, (count, label, scale) in zip(axes, panels, strict=True):
            part = table.filter(pl.col("count") == count)
            if count == "facts":
                part = part.sort(f"mean_{kinds[0]}", descending=True)
            x = np.arange(len(part))
            for kind in kinds:
                error = part[f"sd_{kind}"].fill_null(0)
                line = "none" if count == "facts" else "-"
                axis.errorbar(
                    x, part[f"mean_{kind}"], error, ls=line, lw=1, elinewidth=1, label=kind, **STYLE[kind]
                )
            axis.set(xlabel="" if count == "facts" else count, ylabel=label, yscale=scale)
            step = 1 if len(part) < 20 or count == "facts" else 5
            names = [name.removesuffix(" answers") for name in part["of"]]
            axis.set_xticks(x[::step], names[::step], rotation=90 if count == "facts" else 0)
        axes[2].set(xlabel="full-test answers at density 0.75")
        for axis in axes[1:]:
            axis.set_ylim(bottom=0)
        axes[0].legend()
        return save_figure(fig, out / "family_tree_statistics")


def main(seed: Seed = 0, out: Out = Path("out"), quick: Quick = False) -> None:
    """Compares generated family trees with the published one."""
    writable_folder(out)
    table = overview(run(Config(graphs=3 if quick else 20, seed=seed)))
    save_table(table, out / "family_tree_statistics.csv")
    with pl.Config(
        tbl_rows=-1, tbl_width_chars=120, tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True
    ):
        print(readable(table))
    draw(table, out)


if __name__ == "__main__":
    run_script(main)
