"""Figures 3, 4 and 5 of Yang et al. (2022), their claims as numbers, and test sets drawn again."""

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

# At which pairs of the full-size study take some seconds.
_DRAWS = 400
_DIGITS = 4


class Drawn(NamedTuple):
    """Files that were written, and the numbers that were said in words."""

    paths: list[Path]
    numbers: dict[str, Any]


# Draws into a folder, with a seed.
Draw = Callable[[Study, Path, int], Drawn]


def _command(words: str, *drawn: Draw) -> Callable[..., None]:
    """The command that trains what is not there yet, and then draws."""

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
                print(f"of an earlier study, and not drawn again: {', '.join(stale)}")
        if form is Format.JSON:
            print(json.dumps(numbers, indent=2, allow_nan=False))

    command.__doc__ = f"{words} Cut short, the same command goes on where it stopped."
    return command


def draw_figure3(done: Study, out: Path, seed: int) -> Drawn:
    """The figure, and its points."""
    import polars as pl

    from simulations.script import save_table
    from simulations.yang2022.curve_plots import Layer, density_figure
    from simulations.yang2022.resampled import agreement, resampled

    tables, layers = [], []
    numbers = []
    total = len(done.worlds) * 2 * _DRAWS
    with progress("sparse test sets drawn again", "draws") as update:
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
            # Of no pairs there is no mean.
            expected = found.pairs["predicted"].to_numpy().mean() if found.num_pairs else float("nan")
            if found.num_pairs:
                print(
                    f"d = {world.density:g}: of {found.num_pairs:,} pairs, {found.inversions:.2%} "
                    f"in the wrong order in a test set drawn again; by theory {expected:.2%}"
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
        f"d = {world.density:g}: {found['in_band']:.1%} of checkpoints read within 95 % of resampled tests"
    )
    if "error" not in found:
        return inside
    lowest, highest = (f"{found[end]:+.3f} ({found[f'{end}_of']})" for end in ("lowest", "highest"))
    return (
        f"{inside}; theory is off by {found['error']:.3f}, from {lowest} to {highest}: in the mean "
        f"{found['by_queries']:+.3f} as found answers to a query come together, "
        f"{found['by_ranks']:+.3f} as good answers are not all ranked first"
    )


def draw_figure4(done: Study, out: Path, _seed: int) -> Drawn:
    """The figure at the paper's density, or a word that there is nothing to see."""
    from simulations.yang2022.contradiction_plots import contradiction_figure

    if not _comparable(done):
        return Drawn([], {})
    paths = contradiction_figure(_one(done), out / "figure4_inconsistency")
    if not paths:
        print("no two models of which the sparse test set contradicts the full one: no Figure 4")
    return Drawn(_said(paths), {})


def draw_figure5_correlation(done: Study, out: Path, _seed: int) -> Drawn:
    """The figure at the paper's density."""
    from simulations.yang2022.curve_plots import correlation_figure

    return Drawn(_said(correlation_figure(_one(_without_chooser(done)), out / "figure5_correlation")), {})


def draw_figure5_metrics(done: Study, out: Path, _seed: int) -> Drawn:
    """The figure at the paper's density."""
    from simulations.yang2022.curve_plots import metric_figure

    return Drawn(_said(metric_figure(_one(done), out / "figure5_metrics")), {})


def write_claims(done: Study, out: Path, seed: int) -> Drawn:
    """The table of claims, its figures, and what it comes to in a few lines."""
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
    """The claims in words: a line a density and claim, of MRR."""
    import polars as pl

    lines = []
    wanted = {
        "ratio_of_slopes": "slope in the highest third over slope in the lowest",
        "log_fits_better": "curves that a logarithm fits better than a line",
        "inconsistent": "pairs in the wrong order beyond their errors",
        "confirmed": "of such pairs on half of the queries, those in the same orders on the other half",
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
    """Whether there are two configurations; says so if not."""
    if len(done.configurations) < 2:
        print("one configuration: no pairs to compare, so neither Figure 4 nor claims")
    return len(done.configurations) > 1


def _without_chooser(done: Study) -> Study:
    """Without the model that chose the missing facts (section 6.2), where two others can be compared."""
    from simulations.open_world.curves import without

    if done.chooser is None or len(done.configurations) < 3:
        return done
    return done._replace(curves=[without(curves, done.chooser) for curves in done.curves])


def _short(table: Any) -> Any:
    """Numbers to as many digits as anybody reads, for files of hundreds of kilobytes."""
    import polars.selectors as cs

    return table.with_columns(cs.float().round_sig_figs(_DIGITS))


def _one(done: Study) -> Any:
    """Where several densities are there, figures of one density are of the one nearest to the paper's."""
    from simulations.open_world.curves import nearest_published

    return nearest_published(done.curves)


def _said(paths: list[Path]) -> list[Path]:
    for path in paths:
        print(f"wrote {path}")
    return paths


COMMANDS: dict[str, Callable[..., None]] = {
    "figure3": _command(
        "Figure 3: sparse against full MRR along the training of every model, a panel for each density. "
        "Three models are highlighted. Behind their curves are 95 % of the resampled sparse test sets; "
        "the dashed line is what theory expects of the strength that the full test measures.",
        draw_figure3,
    ),
    "figure4": _command(
        "Figure 4: two checkpoints that the sparse test ranks in the wrong order, with 95 % regions.",
        draw_figure4,
    ),
    "figure5-correlation": _command(
        "Figure 5a: facts that are missing at random, beside facts that a model chose. Where a world holds "
        "no such test set, the first ComplEx chooses, as trained at the end.",
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
"""By name; each takes the same options."""
