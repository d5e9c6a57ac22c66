"""False acceptance of predictions at a wanted precision, replayed on worlds whose answers are all known.

The script takes the best of four systems and orders its unknown predictions by the free proxy. For each
wanted precision, the first table has, for nested sets from one fixed draw, the share of draws that accept a
set below the precision and the mean size of the accepted set, relative to the largest set that has the
precision. For a single set with one wrong prediction too many, it has the exact probability of accepting that
set. A second table has the exact expected number of judgements of one set.

    python simulations/accepted_predictions.py --out out
"""

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl
import typer
from jaxtyping import Int
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.acceptance import MOST, allowed_errors, alpha_of, boundary, checked_targets, outlook
from owkg.estimation.nested_sets import chain, largest_true, nested_p_values, nested_sizes
from owkg.estimation.proxy import free_proxy
from owkg.files.storage import writable_folder
from owkg.plots.figure import COLOURS, figure
from owkg.terminal.progress import progress
from simulations.few_judgements.worlds import KINDS, WORLDS, world
from simulations.script import Out, Quick, Seed, run_script, save_figure, save_table

PRECISIONS = (0.5, 0.7, 0.8, 0.9, 0.95)
DRAWN = (100, 200, 400, 800)
_WANTED, _TRUTHS, _SIZE = 0.9, (0.93, 0.95, 0.98), 1000  # for the sets of the figure


class Replays(NamedTuple):
    """Results of replaying one design when the truth is known.

    Attributes:
        violated: share of the replays that accept a set below the precision.
        nothing: share of the replays that accept nothing.
        share: mean accepted number, divided by the largest number that has the precision; nan where that
            number is 0.
        judgements: mean number of judgements.
    """

    violated: float
    nothing: float
    share: float
    judgements: float


def nested_replays(
    truth: ArrayLike,
    region: int,
    drawn: int,
    *,
    precision: float,
    level: float = 0.95,
    replays: int = 2_000,
    seed: int = 0,
) -> Replays:
    """Replays of acceptance by nested sets when the truth is known, for plans (imagined labels) and checks.

    Args:
        truth: 1 or 0 for each candidate, in the order of acceptance, [candidates].
        region: number of first candidates to draw from.
        drawn: number of candidates that are drawn.
        precision: wanted precision, in (0, 1].
        level: confidence level.
        replays: number of draws.
        seed: seed of the draws.

    Raises:
        ValueError: if an argument is out of range; the message names it.
    """
    wanted, sure = checked_targets(precision, level)
    said = checks.integer("truth", truth, 0)
    checks.require("truth", said, said <= 1, "1 or 0")
    size, count = checks.whole("region", region, 1), checks.whole("drawn", drawn, 1)
    if not count <= size <= len(said):
        raise ArgumentError("region", f"must be from {count} drawn to {len(said)} candidates, got {size}.")
    rng = np.random.default_rng(checks.seed("seed", seed))
    best = largest_true(said, wanted)
    sizes = nested_sizes(size)
    accepted = np.concatenate(
        [
            _accepted(said[:size], sizes, count, wanted, alpha_of(sure), some, rng)
            for some in _batches(replays, size)
        ]
    )
    good = np.concatenate([[0], np.cumsum(said)])
    wrong = accepted - good[accepted] > np.array([allowed_errors(wanted, int(k)) for k in accepted])
    return Replays(
        float(wrong.mean()),
        float((accepted == 0).mean()),
        float(accepted.mean() / best) if best else np.nan,
        float(count),
    )


def _accepted(
    truth: Int[np.ndarray, "region"],
    sizes: Int[np.ndarray, "sets"],
    drawn: int,
    precision: float,
    alpha: float,
    replays: int,
    rng: np.random.Generator,
) -> Int[np.ndarray, "replays"]:
    """Number of accepted candidates in each of `replays` draws."""
    places = np.argsort(rng.random((replays, len(truth))), axis=1)[:, :drawn]
    member = np.searchsorted(sizes, places, side="right")
    cell = member + np.arange(replays)[:, None] * len(sizes)
    total = replays * len(sizes)
    counts = np.bincount(cell.ravel(), minlength=total).reshape(replays, -1).cumsum(1)
    errors = np.bincount(cell.ravel(), 1 - truth[places].ravel(), total).reshape(replays, -1).cumsum(1)
    rejected, _ = chain(nested_p_values(sizes, counts, errors.astype(np.int64), precision), alpha)
    return np.where(rejected, sizes, 0).max(1)


def one_set_replays(
    truth: ArrayLike,
    *,
    precision: float,
    level: float = 0.95,
    most: int = MOST,
    replays: int = 2_000,
    seed: int = 0,
) -> Replays:
    """Replays of judging one set item by item when the truth is known; the Monte Carlo twin of `outlook`.

    Args:
        truth: 1 or 0 for each candidate of the set, [size].
        precision: wanted precision, in (0, 1].
        level: confidence level.
        most: number of judgements after which an undecided set is given up.
        replays: number of random orders of judging.
        seed: seed of the orders.

    Raises:
        ValueError: if an argument is out of range; the message names it.
    """
    said = checks.integer("truth", truth, 0)
    checks.require("truth", said, said <= 1, "1 or 0")
    limits = boundary(len(said), precision, level=level, most=most)
    allowed = allowed_errors(precision, len(said))
    rng = np.random.default_rng(checks.seed("seed", seed))
    passed, turns = [], []
    for some in _batches(replays, len(said)):
        places = np.argsort(rng.random((some, len(said))), axis=1)[:, : len(limits)]
        errors = np.cumsum(1 - said[places], axis=1)
        accepts = errors <= limits
        stops = accepts | (errors > allowed)
        first = np.where(stops.any(1), stops.argmax(1), len(limits) - 1)
        passed.append(accepts[np.arange(some), first])
        turns.append(first + 1)
    taken = np.concatenate(passed)
    holds = len(said) - said.sum() <= allowed
    share = float(taken.mean()) if holds else np.nan
    return Replays(
        0.0 if holds else float(taken.mean()),
        float(1 - taken.mean()),
        share,
        float(np.concatenate(turns).mean()),
    )


def _batches(replays: object, width: int) -> list[int]:
    """Splits the replays into batches of about 100 MB each."""
    left, each = checks.whole("replays", replays, 1), max(1, 5_000_000 // width)
    return [each] * (left // each) + ([left % each] if left % each else [])


def ordered_truth(name: str, kind: str, *, queries: int, seed: int) -> np.ndarray:
    """Truth of the best system's unknown predictions, the likeliest by the free proxy first."""
    people, truth = world(name, kind, queries=queries, seed=seed)
    proxy = free_proxy(people)
    mine = np.unique(people.slot[-1])
    mine = np.intersect1d(mine, people.unknown)
    return truth[mine[np.argsort(-proxy[mine], kind="stable")]].astype(np.int64)


def nested_table(replays: int, queries: int, seed: int) -> pl.DataFrame:
    """Table of nested sets, from a region a quarter larger than the largest set with the precision."""
    rows = []
    settings = [(name, "edge") for name in WORLDS] + [("clustered", kind) for kind in KINDS[1:]]
    with progress("acceptance", "settings") as told:
        for i, (name, kind) in enumerate(settings):
            truth = ordered_truth(name, kind, queries=queries, seed=seed)
            for precision in PRECISIONS:
                best = largest_true(truth, precision)
                region = min(int(np.ceil(1.25 * best)), len(truth))
                for drawn in DRAWN:
                    if region <= drawn:
                        continue
                    options = {"precision": precision, "replays": replays, "seed": seed}
                    found = nested_replays(truth, region, drawn, **options)
                    size = min(best, 2000)
                    lacking = 1 - (allowed_errors(precision, size) + 1) / size
                    rows.append(
                        {
                            "world": name, "missing": kind, "precision": precision,
                            "drawn": drawn, "best": best,
                            "violated": found.violated, "nothing": found.nothing, "share": found.share,
                            "one set": outlook(size, precision, lacking, most=size).accepted,
                        }
                    )  # fmt: skip
            told(i + 1, len(settings))
    return pl.DataFrame(rows)


def judgements_table() -> pl.DataFrame:
    """Exact expected number of judgements of one set, by its size and its true precision."""
    rows = [
        {"precision": p, "size": size, "truth": truth, "judgements": found.mean, "accepted": found.accepted}
        for p, truths in ((0.8, (0.85, 0.9)), (0.9, (0.93, 0.95, 0.98)))
        for size in (1000, 3000)
        for truth in truths
        for found in [outlook(size, p, truth, most=size)]
    ]
    return pl.DataFrame(rows)


def summary(nested: pl.DataFrame) -> pl.DataFrame:
    """Summary by precision and draw size: number of worlds with such sets, their worst case, and means."""
    return nested.group_by("precision", "drawn", maintain_order=True).agg(
        pl.len().alias("worlds"),
        pl.col("violated").max(),
        pl.col("nothing", "share").mean(),
        pl.col("one set").max(),
    ).sort("precision", "drawn")  # fmt: skip


def draw(nested: pl.DataFrame, out: Path) -> list[Path]:
    """Plots the accepted share against judgements: nested sets, and one set judged item by item."""
    least = min(PRECISIONS)
    by_precision = nested.filter(world=WORLDS[0]).with_columns(label=pl.col("precision").cast(pl.String))
    by_world = nested.filter(pl.col("world") != WORLDS[0], precision=least).with_columns(
        label=pl.format("{}, {}", "world", "missing")
    )
    titles = (f"{WORLDS[0]} errors, by precision", f"other worlds, precision {least:g}")
    with figure(1, 3, (10, 3.2)) as (fig, panels):
        for panel, rows, title in zip(panels, (by_precision, by_world), titles, strict=False):
            groups = rows.group_by("label", maintain_order=True)
            for colour, ((label,), line) in zip(COLOURS, groups, strict=False):
                panel.plot(line["drawn"], line["share"], "o-", ms=3, lw=1, color=colour, label=label)
            panel.set(xlabel="judgements drawn", ylabel="accepted, of the largest set", title=title)
        for colour, truth in zip(COLOURS, _TRUTHS, strict=False):
            done = np.cumsum(outlook(_SIZE, _WANTED, truth, most=_SIZE).stops)
            panels[-1].step(np.arange(1, _SIZE + 1), done, color=colour, lw=1, label=f"precision {truth:g}")
        title = f"one set of {_SIZE:,}, wanted {_WANTED:g}"
        panels[-1].set(xlabel="judgements", ylabel="accepted by then", xlim=(0, 600), title=title)
        for panel in panels:
            panel.set(ylim=(0, 1))
            panel.legend(fontsize=6, loc="best")
        return save_figure(fig, out / "accepted_predictions")


def main(
    *,
    replays: Annotated[int, typer.Option(min=1, help="Number of draws of each setting.")] = 2000,
    quick: Quick = False,
    seed: Seed = 0,
    out: Out = Path("out"),
) -> None:
    """False acceptance, sizes and judgements of predictions that are accepted at a precision."""
    folder = writable_folder(out)
    queries, draws = (300, 100) if quick else (2000, replays)
    tables = {"accepted_sets": nested_table(draws, queries, seed), "accepted_judgements": judgements_table()}
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, float_precision=4,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        for name, table in tables.items():
            save_table(table, folder / f"{name}.csv")
            print(summary(table) if name == "accepted_sets" else table)
    draw(tables["accepted_sets"], folder)


if __name__ == "__main__":
    run_script(main)
