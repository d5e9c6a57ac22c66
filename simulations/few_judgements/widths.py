"""Interval widths: judgements needed for equal width, and planned against realised widths."""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from owkg.errors import ArgumentError
from owkg.estimation import DrawnPool, after_pilot, draw, estimate, free_proxy, plan
from owkg.estimation.drawing import Asked, Unit
from owkg.estimation.measures import measures
from owkg.files.delimited import read_text_table
from owkg.files.storage import writable_folder
from owkg.judge.schema import QRELS
from owkg.terminal.progress import progress
from owkg.terminal.tables import printed
from simulations.few_judgements.coverage import SETTINGS
from simulations.few_judgements.replays import MACRO, of_whole_queries, replayed
from simulations.few_judgements.worlds import DEPTH, World, truths_of, world
from simulations.script import Out, Quick, Seed, save_table

_USELESS = (20, 50, 200)  # numbers of queries at which a useless proxy is tried
_PILOT, _METRICS = 30, ("rr", "p@10", "ap")
_PLANNED = (("queries", "width"), ("queries", "width_pair"), ("prefixes", "width"), ("candidates", "width"))
_DIFFERENCE = pl.col("target").str.contains("-")

Table = Annotated[Path, typer.Option(help="few_judgements.csv, written by the command coverage.")]


def _coverage_rows(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise ArgumentError(
            "table", f"must be the table that the command coverage writes, got {str(path)!r}."
        )
    rows = read_text_table(path)[0]
    numbers = ("queries", "drawn", "coverage", "width", "plain", "judgements")
    return rows.with_columns(pl.col(name).cast(pl.Float64, strict=False) for name in numbers)


def shares(rows: pl.DataFrame) -> list[tuple[str, str, float]]:
    """Judgements at equal width as shares, because the width falls with the square root of the judgements.

    Returns:
        (compared design, baseline, median share).
    """
    whole = rows.filter(design="queries").with_columns(share=(pl.col("width") / pl.col("plain")) ** 2)
    found = []
    for name, of in (("single metrics", ~_DIFFERENCE), ("differences", _DIFFERENCE)):
        part = whole.filter(of, pl.col("drawn") >= 50)
        found.append((f"whole queries, {name}", "a plain sample", _median(part["share"])))
    keys = ["world", "missing", "queries", "metric", "target"]
    for design, metric in (("candidates", "P@10"), ("prefixes", "RR@10")):
        own = rows.filter(~_DIFFERENCE, design=design, metric=metric)
        other = whole.filter(~_DIFFERENCE, metric=metric, drawn=50).select(*keys, w="width", j="judgements")
        both = own.join(other, on=keys)
        # The number of judgements that is nearest to the number for fifty whole queries.
        near = (pl.col("judgements") - pl.col("j")).abs()
        both = both.filter(near == near.min().over(keys))
        share = (pl.col("width") / pl.col("w")) ** 2 * pl.col("judgements") / pl.col("j")
        found.append(
            (f"{design} for {metric}", "whole queries, same proxy", float(both.select(share.median()).item()))
        )
    return found


def _median(values: pl.Series) -> float:
    return float(np.nanmedian(values.to_numpy()))


def useless(made: World, n: int, replays: int, seed: int) -> float:
    """Median width under random probabilities, relative to a plain sample."""
    noise = np.random.default_rng(seed).uniform(0.01, 0.99, len(made.truth))
    proxy = np.where(made.people.label == -1, noise, made.people.label)
    rows = replayed(of_whole_queries(made, n, proxy=proxy), replays, seed)
    return _median(rows["width"] / rows["plain"])


def equal_width(
    table: Table = Path("out/few_judgements.csv"),
    quick: Quick = False,
    seed: Seed = 0,
    out: Out = Path("out"),
) -> None:
    """Compares designs and proxies by the judgements that give intervals of the same width."""
    writable_folder(out)
    rows = _coverage_rows(table)
    cells = [[what, against, f"{share:.2f}", f"{1 / share:.1f}"] for what, against, share in shares(rows)]
    printed("judgements at equal width", ["of", "against", "share", "times fewer"], cells)
    made = world("clustered", "edge", queries=300 if quick else 2000, seed=seed)
    wide = {n: useless(made, n, 30 if quick else 500, seed) for n in _USELESS[: 2 if quick else None]}
    printed(
        "width under a useless proxy, relative to a plain sample",
        ["queries", "width"],
        [[str(n), f"{width:.3f}"] for n, width in wide.items()],
    )
    save_table(
        pl.DataFrame(shares(rows), ["of", "against", "share"], orient="row"),
        out / "few_judgements_equal_width.csv",
    )


def planned(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Planned and realised widths, by world, metric, design, number of units and kind of target."""
    kind = pl.when(_DIFFERENCE).then(pl.lit("width_pair")).otherwise(pl.lit("width")).alias("of")
    real = rows.group_by("world", "missing", "queries", "metric", "design", "drawn", kind).agg(
        realised=pl.col("width").median()
    )
    found = []
    for name, missing in SETTINGS:
        for size in rows["queries"].unique().to_list():
            people = world(name, missing, queries=int(size), seed=seed).people
            frame = plan(people, free_proxy(people), MACRO).select(
                pl.lit(name).alias("world"),
                pl.lit(missing).alias("missing"),
                pl.lit(size).alias("queries"),
                "metric",
                pl.col("unit").alias("design"),
                pl.col("count").cast(pl.Float64).alias("drawn"),
                "width",
                "width_pair",
            )
            found.append(frame.unpivot(["width", "width_pair"], index=frame.columns[:6], variable_name="of"))
    keys = ["world", "missing", "queries", "metric", "design", "drawn", "of"]
    both = pl.concat(found).join(real, on=keys).rename({"value": "planned"})
    return both.with_columns(ratio=pl.col("planned") / pl.col("realised"))


def piloted(made: World, replays: int, seed: int) -> pl.DataFrame:
    """Pilots of 30 queries: the wished width, the width with the n that the pilot plans, and whether it held.

    If the pilot finds no number of queries sufficient, all queries are judged.
    """
    people, truth = made
    proxy = free_proxy(people)
    chosen = measures(_METRICS, DEPTH)
    wishes = plan(people, proxy, _METRICS, queries=[100]).filter(unit="queries")
    wished = dict(wishes.select("metric", "width").rows())
    true = {one.name: truths_of(one, made) for one in chosen}
    known = people.pairs(np.flatnonzero(people.label == 1)).with_columns(relevance=pl.lit(1, pl.Int64))
    judged = people.asked().with_columns(relevance=pl.Series(truth.astype(np.int64))).select(QRELS)
    rows = []
    for i in range(replays):
        drawing = draw(people, Asked(Unit.QUERIES, _PILOT), seed=seed + i, proxy=proxy)
        pool = DrawnPool(people, drawing, proxy, known, DEPTH)
        for metric, wish in wished.items():
            first = estimate(pool, _of_drawn(pool, judged), metric)
            count = after_pilot(pool, first, {metric: wish})["more"][0]
            count = len(people.queries) - _PILOT if count is None else count
            whole = pool.more(int(count)) if count else pool
            found = estimate(whole, _of_drawn(whole, judged), metric).metrics
            width = found["ci_high"] - found["ci_low"]
            low, high = found["ci_low"].to_numpy(), found["ci_high"].to_numpy()
            held = (low <= true[metric][: len(low)]) & (true[metric][: len(low)] <= high)
            rows.append((metric, wish, _PILOT + int(count), _median(width), float(held.mean())))
    return pl.DataFrame(rows, ["metric", "wish", "queries", "width", "coverage"], orient="row")


def _of_drawn(pool: DrawnPool, judged: pl.DataFrame) -> pl.DataFrame:
    """Judgements of the drawn part."""
    people, drawing = pool.people, pool.drawing
    asked = drawing.candidates(people, people.label, drawing.order()[0])
    return judged.filter(asked)


def plans(
    table: Table = Path("out/few_judgements.csv"),
    quick: Quick = False,
    seed: Seed = 0,
    out: Out = Path("out"),
) -> None:
    """Compares planned widths with the widths of draws, and plans numbers of queries by a pilot of 30."""
    writable_folder(out)
    both = planned(_coverage_rows(table), seed)
    save_table(both, out / "few_judgements_plans.csv")
    cells = []
    for design, of in _PLANNED:
        part = both.filter(design=design, of=of)["ratio"]
        near = (part - 1).abs() <= 0.25
        shown = [f"{part.median():.2f}", f"{near.mean():.0%}"]
        cells.append([design, of.replace("_", " of a "), str(len(part)), *shown])
    heads = ["design", "of", "targets", "planned by realised", "within 25 %"]
    printed("planned widths, before any label", heads, cells)
    made = world("clustered", "edge", queries=300 if quick else 2000, seed=seed)
    with progress("pilots", "draws"):
        found = piloted(made, 10 if quick else 200, seed)
    cells = [
        [
            metric,
            f"{part['width'].mean() / part['wish'][0]:.2f}",
            f"{(part['width'] <= 1.1 * part['wish']).mean():.0%}",
            f"{part['coverage'].mean():.3f}",
        ]
        for (metric,), part in found.group_by("metric", maintain_order=True)
    ]
    printed(
        "after a pilot of 30 queries", ["metric", "width by wish", "at most 1.1 of it", "coverage"], cells
    )
