"""Trainings with several seeds, in this process or on a cluster."""

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
    """Runs in a folder that `train_seeds` wrote, by seed; empty if the folder is not one.

    Args:
        folder: folder with the runs `seed-0`, `seed-1` and so on, which differ in their seed only.

    Raises:
        ValueError: if a run was trained with another seed than its name has, or with other settings than the
            first run; the message names the run.
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
            raise ValueError(f"{run}: must have the seed of its name, got seed {config.seed}.")
        shared = asdict(changed(config, seed=0))
        if settings is None:
            first, settings = run, shared
        for name, value in shared.items():
            if value != settings[name]:
                raise ValueError(
                    f"{run}: must differ from {first} only in the seed, got {name} {value!r} instead of "
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
    """Trains one run per seed; existing runs are resumed, and finished runs are only read.

    Args:
        graph_folder: folder of the graph, in a layout of `read_graph`; workers read it as well.
        config: configuration that the runs share.
        seeds: seeds, all different.
        folder: folder for the runs `seed-0`, `seed-1` and so on.
        place: cluster with one task per run. None: this process, one run after another.
        reading: options for reading the graph. None: detected from its files.
        on_progress: function called with the steps done in all runs, all steps, and a text with loss and
            speed of one run.

    Returns:
        One row per seed: seed, run (its folder), step (the best), loss (of the last record) and the
            validation metrics of the best step.

    Raises:
        ValueError: if there are no seeds or repeated ones, a run belongs to another training, a loss is not
            finite, or for the reasons in `owkg.train.workers.run_tasks`.
    """
    if not seeds or len(set(seeds)) < len(seeds):
        raise ArgumentError("seeds", f"must be one or more different numbers, got {list(seeds)}.")
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
    """Row of a run, trained or resumed."""
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
