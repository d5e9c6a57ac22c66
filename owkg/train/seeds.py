"""A training for each of several seeds, here or on a cluster."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import polars as pl

from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph, read_graph
from owkg.kg.read import Reading
from owkg.train import workers
from owkg.train.config import Training, changed
from owkg.train.folder import CONFIG
from owkg.train.run import run_config, train

_PREFIX = "valid_"
_NAMED = "seed-"


def seed_runs(folder: Path) -> dict[int, Path]:
    """The runs in a folder that `train_seeds` wrote, by seed; empty where the folder is not one.

    Args:
        folder: of the runs `seed-0`, `seed-1` and so on, which differ in their seed alone.

    Raises:
        ValueError: naming the run, if it was trained with another seed than its name says, or with other
            settings than the first run.
    """
    named = {one: one.name.removeprefix(_NAMED) for one in folder.glob(f"{_NAMED}*") if one.is_dir()}
    runs = {int(text): one for one, text in named.items() if text.isdecimal()}
    if (folder / CONFIG).exists() or not runs:
        return {}
    found = dict(sorted(runs.items()))
    first, settings = None, None
    for seed, run in found.items():
        config = run_config(run)
        if config.seed != seed:
            raise ValueError(
                f"{run}: must be of the seed that its name says, and was trained with {config.seed}."
            )
        shared = asdict(changed(config, seed=0))
        if settings is None:
            first, settings = run, shared
        for name, value in shared.items():
            if value != settings[name]:
                raise ValueError(
                    f"{run}: must differ from {first} in the seed alone, and its {name} is {value!r} and not "
                    f"{settings[name]!r}."
                )
    return found


def train_seeds(
    graph_folder: Path,
    config: Training,
    seeds: Sequence[int],
    folder: Path,
    *,
    place: workers.Where | None = None,
    reading: Reading | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> pl.DataFrame:
    """Trains a run for each seed; those that are there are gone on with, and those at their end are read.

    Args:
        graph_folder: of the graph, in a layout of `read_graph`; workers read it too.
        config: what the runs share.
        seeds: all different.
        folder: of the runs `seed-0`, `seed-1` and so on.
        place: of the cluster, one run a task; None: this process, one run after the other.
        reading: how the folder of the graph is read; None: by its files.
        on_progress: told steps done in all runs, of how many, and loss and speed of one in words.

    Returns:
        A row for each seed: seed, run (its folder), step (the best), loss (of the last record) and the
        validation metrics of the best step.

    Raises:
        ValueError: if seeds are none or repeated, a run is of another training, one goes astray, or as
            `owkg.train.workers.run_tasks`.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise ArgumentError("seeds", f"must be some numbers, each once, got {list(seeds)}.")
    runs = [folder.absolute() / f"{_NAMED}{seed}" for seed in seeds]
    layout, duplicates = reading or Reading()
    tasks = [
        (str(graph_folder.absolute()), layout, duplicates, changed(config, seed=seed), str(run))
        for seed, run in zip(seeds, runs, strict=True)
    ]
    steps: dict[int, tuple[int, int]] = {}

    def told(task: int, done: int, total: int, note: str) -> None:
        steps[task] = done, total
        if on_progress:
            finished = sum(done for done, _ in steps.values())
            on_progress(finished, total * len(tasks), f"seed {seeds[task]}: {note}")

    if place is None:
        found = [_trained(*task, partial(told, i)) for i, task in enumerate(tasks)]
    else:
        found = workers.run_tasks(_trained, tasks, place, folder, on_progress=told)
    rows = [{"seed": seed} | row for seed, row in zip(seeds, found, strict=True)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _trained(
    graph: str,
    layout: str | None,
    duplicates: str,
    config: Training,
    folder: str,
    told: Callable[[int, int, str], None] = workers.told,
) -> dict[str, object]:
    """The row of a run, trained or gone on with."""
    place = Path(folder)
    reading = Reading(layout, duplicates)
    run = train(
        _graph(graph, reading),
        config,
        place,
        graph_folder=Path(graph),
        reading=reading,
        resume=place.is_dir(),
        on_progress=told,
    )
    rows = run.path.filter(pl.col("step") == run.step).to_dicts()
    measured = {name.removeprefix(_PREFIX): of for name, of in rows[0].items() if name.startswith(_PREFIX)}
    return {"run": folder, "step": run.step, "loss": run.path["loss"][-1]} | measured


@cache
def _graph(folder: str, reading: Reading) -> KnowledgeGraph:
    return read_graph(folder, **reading._asdict())
