"""Runs of all configurations of a preset on all worlds: existing runs are read, and the rest are trained."""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from owkg import checks
from owkg.train import load_run
from owkg.train.run_lock import interrupts
from owkg.train.workers import Where, run_tasks
from owkg.train.workers import told as cluster_told
from simulations.open_world.needs import Needs, reading_needs, training_needs
from simulations.open_world.presets import Configuration
from simulations.open_world.record import RUN, Record, is_recorded, record, some_of
from simulations.open_world.world import ClosedWorld, read_worlds


class Done(NamedTuple):
    """A finished run.

    Attributes:
        number: number of the run, from 1.
        total: number of runs.
        world: world that was learned.
        configuration: configuration of the run.
        seconds: training time in this call; None if the run already existed.
    """

    number: int
    total: int
    world: ClosedWorld
    configuration: Configuration
    seconds: float | None


def require_memory(
    worlds: Sequence[ClosedWorld],
    configurations: Sequence[Configuration],
    *,
    max_steps: int | None = None,
    most_checkpoints: int | None = None,
    workers: int = 1,
) -> tuple[int, int | None]:
    """(bytes needed at most, approximately; free bytes, or None if unknown).

    The need is the larger of two: the largest run, times the `workers` that train at once here, and reading
    all checkpoints of a world. Other arguments as in `records`.

    Raises:
        ValueError: if more than the free memory is needed; the message names the step that needs it.
    """
    looks = [len(one.looks_until(max_steps)) for one in configurations]
    checkpoints = sum(looks if most_checkpoints is None else [min(n, most_checkpoints) for n in looks])
    most, free = 0, None
    times = f", {workers} at once," if workers > 1 else ""
    for world in worlds:
        wanted = [
            (f"{one.label} on {world.name}{times}", _times(workers, training_needs(world, one.training())))
            for one in configurations
        ]
        wanted.append(
            (f"reading {checkpoints} checkpoints of {world.name}", reading_needs(world, checkpoints))
        )
        for name, (asked, free) in wanted:
            most = max(most, asked)
            if free is not None and asked > free:
                raise ValueError(
                    f"{name} takes about {asked / 2**30:.1f} GiB of memory, and {free / 2**30:.1f} GiB are "
                    "free; choose a smaller preset, or fewer configurations."
                )
    return most, free


def _times(workers: int, needs: Needs) -> Needs:
    """The needs of `times` runs at once."""
    return Needs(workers * needs.bytes, needs.free)


def records(
    worlds: Sequence[ClosedWorld],
    configurations: Sequence[Configuration],
    folder: Path,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    most_checkpoints: int | None = None,
    on_progress: Callable[[Configuration, ClosedWorld, int, int, str], None] | None = None,
    on_done: Callable[[Done], None] | None = None,
) -> list[list[Record]]:
    """The record of every configuration on every world, [worlds][configurations].

    Each record is in `folder`/world/configuration. If the call is interrupted, the same call resumes where it
    stopped and ends with the same records. Existing files are checked first, so that a record of another
    study raises an error at once.

    Args:
        worlds: worlds to learn.
        configurations: configurations to train.
        folder: folder for the runs.
        seed: seed of every run.
        max_steps: step at which training ends early; None: as configured.
        most_checkpoints: most checkpoints of a returned record, evenly spread; None: all. Its file has all.
        on_progress: called with configuration, world, steps done, steps in all, and a text of loss and speed.
        on_done: called for each run that exists or is finished.

    Raises:
        ValueError: if there is nothing to train, two worlds or configurations share a folder, `max_steps` is
            before the first look, a run in `folder` belongs to another study, or training diverges.
        KeyboardInterrupt: after SIGINT or SIGTERM, whose earlier handlers are called first.
    """
    for name, folders in (
        ("worlds", [world.name for world in worlds]),
        ("configurations", [one.folder for one in configurations]),
    ):
        if not folders or len(set(folders)) < len(folders):
            raise ValueError(f"`{name}` must be at least one, each in its own folder, got {folders}.")
    if most_checkpoints is not None:
        checks.integer("most_checkpoints", most_checkpoints, 2)
    for one in configurations:
        one.looks_until(max_steps)
    pairs = [
        (world, one, one.training(max_steps=max_steps, seed=seed))
        for world in worlds
        for one in configurations
    ]
    for world, one, how in pairs:
        is_recorded(world, how, folder / world.name / one.folder)
    found: list[Record] = []
    # Check between runs too, because an exception raised by a handler inside a callback of JAX can be lost.
    with interrupts() as interrupted, suppress(KeyboardInterrupt):
        for number, (world, one, how) in enumerate(pairs, 1):
            place = folder / world.name / one.folder
            there, begin = is_recorded(world, how, place), time.perf_counter()
            tell = on_progress and partial(on_progress, one, world)
            whole = record(world, how, one.looks_until(max_steps), place, on_progress=tell)
            found.append(whole if most_checkpoints is None else some_of(whole, most_checkpoints))
            if on_done:
                seconds = None if there else time.perf_counter() - begin
                on_done(Done(number, len(pairs), world, one, seconds))
            if interrupted():
                break
    if number := interrupted():
        signal.raise_signal(number)
    if len(found) < len(pairs):
        raise KeyboardInterrupt
    size = len(configurations)
    return [found[i : i + size] for i in range(0, len(found), size)]


def recorded_elsewhere(
    worlds: Sequence[ClosedWorld],
    configurations: Sequence[Configuration],
    folder: Path,
    place: Where,
    worlds_folder: Path,
    *,
    seed: int = 0,
    max_steps: int | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
    on_done: Callable[[Done], None] | None = None,
) -> None:
    """Makes the missing records on a cluster, one run a task; `records` can then read them.

    Args:
        worlds, configurations, folder, seed, max_steps: as in `records`.
        place: address of the cluster.
        worlds_folder: folder from which the workers read the worlds.
        on_progress: called with steps done in all runs, steps in all, and the run that reported last.
        on_done: called for each run that was made.

    Raises:
        ValueError: as in `records` and `owkg.train.workers.run_tasks`.
    """
    pairs = [(world, one) for world in worlds for one in configurations]
    tasks, places = [], []
    for number, (world, one) in enumerate(pairs, 1):
        how, own = one.training(max_steps=max_steps, seed=seed), folder / world.name / one.folder
        if not is_recorded(world, how, own):
            tasks.append(
                (str(worlds_folder.absolute()), world.name, one, max_steps, seed, str(own.absolute()))
            )
            places.append((number, world, one))
    if not tasks:
        return
    folder.mkdir(parents=True, exist_ok=True)
    steps = [one.looks_until(max_steps)[-1] for _, _, one in places]
    done = [0] * len(tasks)

    def told(task: int, step: int, total: int, note: str) -> None:
        done[task] = step
        _, world, one = places[task]
        if on_progress:
            running = sum(0 < at < of for at, of in zip(done, steps, strict=True))
            label = f"{running} running; {one.label}, d = {world.density:g}: {note}"
            on_progress(sum(done), sum(steps), label)

    def ended(task: int, seconds: float) -> None:
        done[task] = steps[task]
        number, world, one = places[task]
        if on_done:
            on_done(Done(number, len(pairs), world, one, seconds))

    run_tasks(_recorded, tasks, place, folder, on_progress=told, on_done=ended)


def _recorded(
    worlds: str, name: str, one: Configuration, max_steps: int | None, seed: int, place: str
) -> float:
    """Makes one record on a worker; returns its seconds."""
    world, begin = _worlds(worlds)[name], time.perf_counter()
    how = one.training(max_steps=max_steps, seed=seed)
    record(world, how, one.looks_until(max_steps), Path(place), on_progress=cluster_told)
    return time.perf_counter() - begin


@cache
def _worlds(folder: str) -> dict[str, ClosedWorld]:
    """The worlds in a folder, by name."""
    return {world.name: world for world in read_worlds(Path(folder))}


def training_seconds(folder: Path) -> float:
    """Training seconds of the run next to the record in `folder`, without compiling and ranking."""
    seconds = load_run(folder / RUN, step="last").path["seconds"].to_numpy()
    return float(seconds.max(initial=0))
