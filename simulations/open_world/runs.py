"""Runs of Figures 3 to 5: existing runs are read, and the rest are trained."""

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress
from owkg.train.workers import Where

# Most checkpoints of a configuration in figures and claims; pairs are as many as their square.
_MOST_CHECKPOINTS = 100
# As the published worlds were sampled.
_AS_PUBLISHED = {"num_queries": 500, "min_answers": 10}


class Preset(StrEnum):
    """Sizes of a study."""

    QUICK = "quick"
    CPU = "cpu"
    PAPER = "paper"


PresetOption = Annotated[
    Preset,
    typer.Option(
        "--preset",
        help="Size of the study. quick: two models, a small family tree, a minute. cpu: twelve models, four "
        "densities, an hour on two cores. paper: the 18 published configurations, on an accelerator.",
    ),
]
Worlds = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of open worlds, from owkg sample or as published. Default: small families for quick; "
        "otherwise the published ones in OWKG_DATA, or families of that size.",
    ),
]
Densities = Annotated[
    str | None,
    typer.Option("--density", help="Densities of the worlds to use, such as 0.95,0.75. Default: all."),
]
Configurations = Annotated[
    list[str] | None,
    typer.Option(
        "--configuration",
        metavar="LABEL",
        help="Configuration of the preset to train; repeatable. Default: all.",
    ),
]
MostSteps = Annotated[
    int | None, typer.Option("--max-steps", min=1, help="Most steps of every training; use it as a dry run.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Address of a Dask scheduler, such as tcp://host:8786. Its workers train, one run a task. They "
        "must see the folders of --out and of the worlds, and import this repository. On workers with "
        "GPU=1, each run takes one GPU.",
        rich_help_panel="Cluster",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of processes on this machine that train at once.",
        rich_help_panel="Cluster",
    ),
]


class Trained(NamedTuple):
    """Fully trained models: worlds, configurations, and records of each world.

    `runs` is the folder of their runs.
    """

    worlds: list[Any]
    configurations: tuple[Any, ...]
    records: list[Any]
    runs: Path


class Study(NamedTuple):
    """Inputs of the figures: worlds, configurations, records and curves of each world.

    `description` goes into study.json. `chooser` is the configuration that chose the missing facts of the
    correlated test sets; None if the worlds came with these sets.
    """

    worlds: list[Any]
    configurations: tuple[Any, ...]
    records: list[Any]
    curves: list[Any]
    description: dict[str, Any]
    chooser: str | None


def trained(
    preset: Preset,
    out: Path,
    *,
    worlds: Path | None = None,
    densities: str | None = None,
    labels: list[str] | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    configurations: tuple[Any, ...] | None = None,
    name: str | None = None,
    place: Where | None = None,
) -> Trained:
    """Trains the runs that do not exist yet, in `out`/runs/`name`.

    Args:
        preset: preset of the worlds, and of the configurations if none are given.
        out: folder of the results.
        worlds: folder of the worlds; None: the worlds of the preset.
        densities: densities of the worlds to use, separated by commas; None: all.
        labels: labels of the configurations to use; None: all.
        max_steps: step at which training ends early; None: as configured.
        seed: seed of every run, and of worlds that are sampled.
        configurations: configurations to use instead of the preset's.
        name: name of the folder of the runs; None: the name of the preset.
        place: address of the cluster that trains; None: this process.
    """
    from simulations.open_world.experiment import recorded_elsewhere, records, require_memory
    from simulations.open_world.presets import PRESETS
    from simulations.open_world.world import read_worlds

    chosen = _chosen(configurations or PRESETS[preset], labels, max_steps)
    wanted = _numbers(densities)
    writable_folder(out)
    folder = _worlds_folder(preset, worlds, out, seed)
    found = read_worlds(folder, wanted)
    here = place.workers if place is not None and place.scheduler is None else 1
    most, free = require_memory(
        found, chosen, max_steps=max_steps, most_checkpoints=_MOST_CHECKPOINTS, workers=here
    )
    there = "" if free is None else f", {free / 2**30:.1f} GiB are free"
    name = name or preset.value
    print(f"{len(found)} worlds of {folder}, {len(chosen)} configurations of preset {name}", flush=True)
    print(f"this takes about {most / 2**30:.1f} GiB of memory{there}", flush=True)
    runs = out / "runs" / name
    with progress("runs", "steps") as update:

        def on_progress(one: Any, world: Any, done: int, total: int, note: str) -> None:
            update(done, total, f"{one.label}, d = {world.density:g}: {note}")

        if place is not None:
            recorded_elsewhere(
                found, chosen, runs, place, folder, seed=seed, max_steps=max_steps, on_progress=update,
                on_done=_teller(here),
            )  # fmt: skip
        recorded = records(
            found, chosen, runs, seed=seed, max_steps=max_steps, most_checkpoints=_MOST_CHECKPOINTS,
            on_progress=on_progress, on_done=_teller(),
        )  # fmt: skip
    return Trained(found, chosen, recorded, runs)


def study(
    preset: Preset,
    out: Path,
    *,
    worlds: Path | None = None,
    densities: str | None = None,
    labels: list[str] | None = None,
    max_steps: int | None = None,
    seed: int = 0,
    place: Where | None = None,
) -> Study:
    """Trains missing runs, in `out`/runs/preset, and computes every metric of every checkpoint."""
    from simulations.open_world.curves import CORRELATED
    from simulations.open_world.note import described
    from simulations.open_world.query_values import query_values
    from simulations.open_world.world import with_correlated

    done = trained(
        preset, out, worlds=worlds, densities=densities, labels=labels, max_steps=max_steps, seed=seed,
        place=place,
    )  # fmt: skip
    found, chosen, recorded = done.worlds, done.configurations, done.records
    of_complex = next((i for i, one in enumerate(chosen) if one.model == "complex"), 0)
    chooser = chosen[of_complex].label if any(CORRELATED not in world.present for world in found) else None
    if chooser:
        print(f"the missing facts of the correlated test sets are chosen by {chooser}", flush=True)
    description = described(done.runs, preset.value, seed, found, chosen, max_steps, chooser)
    found = [
        with_correlated(world, of_world[of_complex].score[-1].astype(float), seed)
        for world, of_world in zip(found, recorded, strict=True)
    ]
    names = [one.label for one in chosen], [one.model for one in chosen]
    curves = [query_values(world, of_world, *names) for world, of_world in zip(found, recorded, strict=True)]
    return Study(found, chosen, recorded, curves, description, chooser)


def _teller(at_once: int = 1) -> Callable[[Any], None]:
    """Prints a line for each run that was trained, with the estimated time of the rest."""
    took: list[float] = []

    def tell(done: Any) -> None:
        if done.seconds is None:
            return
        took.append(done.seconds)
        left = (done.total - done.number) * sum(took) / len(took) / at_once
        print(
            f"{done.number}/{done.total} {done.configuration.label}, d = {done.world.density:g}: "
            f"{done.seconds:.0f} s; the rest takes about {left / 60:.0f} min",
            flush=True,
        )

    return tell


def _chosen(
    configurations: tuple[Any, ...], labels: list[str] | None, max_steps: int | None
) -> tuple[Any, ...]:
    known = {one.label.lower(): one for one in configurations}
    if unknown := [label for label in labels or () if label.lower() not in known]:
        raise ValueError(f"`configuration` must be among {', '.join(known)}, got {unknown[0]!r}.")
    wanted = dict.fromkeys(label.lower() for label in labels or known)
    chosen = tuple(known[label] for label in wanted)
    for one in chosen:
        one.looks_until(max_steps)
    return chosen


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"`density` must be numbers, separated by commas, got {text!r}.") from None


def _worlds_folder(preset: Preset, worlds: Path | None, out: Path, seed: int) -> Path:
    """The folder of the worlds; families are sampled if none is given."""
    if worlds is not None:
        return worlds
    data = os.environ.get("OWKG_DATA")
    if preset is not Preset.QUICK and data and (Path(data) / "family_tree_published").is_dir():
        return Path(data) / "family_tree_published"
    from family_tree import closed_graph, ontology, sample_people
    from owkg.sampling import sample, write_worlds

    folder = out / "worlds" / f"{preset}-seed{seed}"
    if folder.is_dir():
        return folder
    small: dict[str, Any] = {}
    asked: dict[str, Any] = _AS_PUBLISHED
    if preset is Preset.QUICK:
        small, asked = {"num_trees": 8, "max_tree_size": 80}, {"num_queries": 200, "min_answers": 4}
    closed = closed_graph(sample_people(**small), ontology("published"))
    densities = (0.95, 0.75) if preset is Preset.QUICK else (0.95, 0.85, 0.75, 0.65)
    drawn = (sample(closed, density=d, train_rate=0.7, nested=True, seed=seed, **asked) for d in densities)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with progress("worlds", "worlds") as update:
        write_worlds(drawn, folder, on_progress=update)
    return folder
