"""Figures 3, 4 and 5 of Yang et al. (2022), their claims as numbers, and resampled test sets."""

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from owkg.cli.options import Format, OutputFormat
from owkg.cli.output import number
from owkg.terminal.progress import progress
from owkg.train.workers import check_scheduler, where
from simulations.open_world.runs import (
    Configurations,
    Densities,
    MostSteps,
    Preset,
    PresetOption,
    Scheduler,
    Study,
    Workers,
    Worlds,
    study,
)
from simulations.script import Out, Seed

# Number of resamples; with it, the pairs of the full-size study take a few seconds.
_DRAWS = 400
_DIGITS = 4


class Drawn(NamedTuple):
    """Written files, and the numbers that were printed in words."""

    paths: list[Path]
    numbers: dict[str, Any]


# Function that draws into a folder, with a seed.
Draw = Callable[[Study, Path, int], Drawn]


def _command(words: str, *drawn: Draw) -> Callable[..., None]:
    """A command that trains the runs that do not exist yet, and then draws."""

    def command(
        preset: PresetOption = Preset.QUICK,
        worlds: Worlds = None,
        density: Densities = None,
        configuration: Configurations = None,
        max_steps: MostSteps = None,
        scheduler: Scheduler = None,
        workers: Workers = None,
        out: Out = Path("out"),
        seed: Seed = 0,
        form: OutputFormat = Format.TABLE,
    ) -> None:
        from simulations.open_world.note import note

        numbers: dict[str, Any] = {}
        place = where(scheduler, workers)
        check_scheduler(place)
        with redirect_stdout(sys.stderr) if form is Format.JSON else nullcontext():
            done = study(
                preset,
                out,
                worlds=worlds,
                densities=density,
                labels=configuration,
                max_steps=max_steps,
                seed=seed,
                place=place,
            )
            paths: list[Path] = []
            stale = note(out, done.description)
            for one in drawn:
                found = one(done, out, seed)
                paths += found.paths
                numbers |= found.numbers
                stale = note(out, done.description, paths)
            if stale:
                print(f"left from an earlier study, not drawn again: {', '.join(stale)}")
        if form is Format.JSON:
            print(json.dumps(numbers, indent=2, allow_nan=False))

    command.__doc__ = f"{words} If the command is interrupted, run it again and it resumes."
    return command


def draw_figure3(done: Study, out: Path, seed: int) -> Drawn:
    """Draws Figure 3 and writes its points."""
    import polars as pl

    from simulations.script import save_table
    from simulations.yang2022.curve_plots import Layer, density_figure
    from simulations.yang2022.resampled import agreement, resampled

    tables, layers = [], []
    numbers = []
    total = len(done.worlds) * 2 * _DRAWS
    with progress("resampled sparse test sets", "draws") as update:
        for i, (world, of_world, curves) in enumerate(
            zip(done.worlds, done.records, done.curves, strict=True)
        ):
            found = resampled(
                world, of_world, curves, draws=_DRAWS, seed=seed,
                on_progress=lambda n, _, i=i: update(2 * i * _DRAWS + n, total),
            )  # fmt: skip
            tables.append(found.table)
            layers.append(Layer(band=found.band, theory=found.theory))
            agreeing = agreement(found.table)
            print(_agreeing(world, agreeing))
            # The mean over no pairs is undefined.
            expected = found.pairs["predicted"].to_numpy().mean() if found.num_pairs else float("nan")
            if found.num_pairs:
                print(
                    f"d = {world.density:g}: of {found.num_pairs:,} pairs, {found.inversions:.2%} "
                    f"in the wrong order on a resampled test set; by theory {expected:.2%}"
                )
            pairs = {"pairs": found.num_pairs, "inversions": number(found.inversions)}
            numbers.append(
                {"density": world.density} | agreeing | pairs | {"inversions_predicted": number(expected)}
            )
    table = save_table(_short(pl.concat(tables)), out / "figure3_sparse_vs_full.csv")
    paths = _said(density_figure(done.curves, out / "figure3_sparse_vs_full", layers=layers))
    return Drawn([table, *paths], {"resampled": numbers})


def _agreeing(world: Any, found: dict[str, Any]) -> str:
    inside = (
        f"d = {world.density:g}: {found['in_band']:.1%} of checkpoints are within 95 % of resampled tests"
    )
    if "error" not in found:
        return inside
    lowest, highest = (f"{found[end]:+.3f} ({found[f'{end}_of']})" for end in ("lowest", "highest"))
    return (
        f"{inside}; theory is off by {found['error']:.3f}, from {lowest} to {highest}: on average "
        f"{found['by_queries']:+.3f} because retrieved answers of a query cluster, "
        f"{found['by_ranks']:+.3f} because not all good answers rank first"
    )


def draw_figure4(done: Study, out: Path, _seed: int) -> Drawn:
    """Draws Figure 4 at the paper's density, or prints that there is nothing to see."""
    from simulations.yang2022.contradiction_plots import contradiction_figure

    if not _comparable(done):
        return Drawn([], {})
    paths = contradiction_figure(_one(done), out / "figure4_inconsistency")
    if not paths:
        print("the sparse test set contradicts the full one on no pair of models: no Figure 4")
    return Drawn(_said(paths), {})


def draw_figure5_correlation(done: Study, out: Path, _seed: int) -> Drawn:
    """Draws Figure 5a at the paper's density."""
    from simulations.yang2022.curve_plots import correlation_figure

    return Drawn(_said(correlation_figure(_one(_without_chooser(done)), out / "figure5_correlation")), {})


def draw_figure5_metrics(done: Study, out: Path, _seed: int) -> Drawn:
    """Draws Figure 5b at the paper's density."""
    from simulations.yang2022.curve_plots import metric_figure

    return Drawn(_said(metric_figure(_one(done), out / "figure5_metrics")), {})


def write_claims(done: Study, out: Path, seed: int) -> Drawn:
    """Writes the table of claims and its figures, and prints a summary of a few lines."""
    import polars as pl

    from owkg.keys import seeded
    from simulations.open_world.curves import CORRELATED
    from simulations.script import save_table
    from simulations.yang2022.claims import ALL, claims
    from simulations.yang2022.contradiction_plots import share_figures

    if not _comparable(done):
        return Drawn([], {})
    references = ["mrr", "p-mrr@1/4"]
    with progress("claims", "metrics") as update:
        table = claims(seeded(seed), done.curves, references=references, on_progress=update)
        if (others := _without_chooser(done)) is not done:
            of_others = claims(seeded(seed), others.curves, references=references, on_progress=update)
            correlated = pl.col("test_set") == CORRELATED
            table = pl.concat([table.filter(~correlated), of_others.filter(correlated)])
    paths = [save_table(_short(table), out / "claims.csv"), *_said(share_figures(table, out))]
    for line in said(table):
        print(line)
    return Drawn(paths, {"claims": table.filter(pl.col("configuration") == ALL).to_dicts()})


def said(table: Any) -> list[str]:
    """The claims about MRR in words: a line for each density and claim."""
    import polars as pl

    lines = []
    wanted = {
        "ratio_of_slopes": "slope in the highest third over slope in the lowest",
        "log_fits_better": "curves that a logarithm fits better than a line",
        "inconsistent": "pairs in the wrong order beyond their errors",
        "confirmed": "of such pairs on half of the queries, share in the same orders on the other half",
    }
    own = table.filter(
        (pl.col("metric") == "mrr") & (pl.col("configuration") == "all") & pl.col("minus").is_null()
    )
    for name, words in wanted.items():
        for row in own.filter(pl.col("claim") == name).iter_rows(named=True):
            where = f"d = {row['density']:g}, {row['test_set']}"
            if row["value"] is None:
                lines.append(f"{where}: {words}: not measurable ({row['remark']})")
            elif row["lower"] is None:
                lines.append(f"{where}: {words}: {row['value']:.4g} ({row['remark']})")
            else:
                lines.append(f"{where}: {words}: {row['value']:.4g} [{row['lower']:.4g}, {row['upper']:.4g}]")
    return lines


def _comparable(done: Study) -> bool:
    """Whether there are two configurations; prints a note if not."""
    if len(done.configurations) < 2:
        print("one configuration: no pairs to compare, so neither Figure 4 nor claims")
    return len(done.configurations) > 1


def _without_chooser(done: Study) -> Study:
    """The study without the model that chose the missing facts (section 6.2), if two other models remain."""
    from simulations.open_world.curves import without

    if done.chooser is None or len(done.configurations) < 3:
        return done
    return done._replace(curves=[without(curves, done.chooser) for curves in done.curves])


def _short(table: Any) -> Any:
    """Rounds numbers to the digits that readers need, so that files stay below hundreds of kilobytes."""
    import polars.selectors as cs

    return table.with_columns(cs.float().round_sig_figs(_DIGITS))


def _one(done: Study) -> Any:
    """The curves nearest to the paper's density, used for all figures of one density."""
    from simulations.open_world.curves import nearest_published

    return nearest_published(done.curves)


def _said(paths: list[Path]) -> list[Path]:
    for path in paths:
        print(f"wrote {path}")
    return paths


COMMANDS: dict[str, Callable[..., None]] = {
    "figure3": _command(
        "Figure 3: sparse against full MRR along the training of every model, a panel for each density. "
        "Three models are highlighted. The bands hold 95 % of the resampled sparse test sets; "
        "the dashed line is the expectation of theory at the strength that the full test measures.",
        draw_figure3,
    ),
    "figure4": _command(
        "Figure 4: two checkpoints that the sparse test ranks in the wrong order, with 95 % regions.",
        draw_figure4,
    ),
    "figure5-correlation": _command(
        "Figure 5a: facts missing at random, and missing facts that a model chose. If a world has "
        "no such test set, the first ComplEx chooses, at the end of its training.",
        draw_figure5_correlation,
    ),
    "figure5-metrics": _command(
        "Figure 5b: sparse against full by four metrics, all axes from 0 to 1.", draw_figure5_metrics
    ),
    "claims": _command("Flattening and inconsistency in numbers, with intervals over queries.", write_claims),
    "open-world": _command(
        "Figures 3, 4 and 5, and their claims as numbers, all from the same runs.",
        draw_figure3,
        draw_figure4,
        draw_figure5_correlation,
        draw_figure5_metrics,
        write_claims,
    ),
}
"""Commands by name; all take the same options."""
