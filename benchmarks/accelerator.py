"""Speeds that depend on the device, in one command of at most nine minutes, each compared with its limit.

The parts are: limits of the device; Monte Carlo; full evaluation; steps of every model; steps that touch only
their rows; sampled evaluation; every configuration of the paper's preset (`python -m simulations.yang2022
open-world`), projected; trainings together; and as many whole runs of the preset as fit into the remaining
time. Each part is saved in `accelerator.json` as soon as it is measured, and is not measured again: the same
command resumes where it stopped, and retries failed parts last. A part that takes longer than its budget, for
example because it compiles for longer, is given up, and the next part begins in a new process; a part that is
still running when the time is over ends with the command. `accelerator.md` is written from that file.
`--publish docs` copies both into the documentation. Parts that were not reached stay there as they were, with
their date and their device.

    python benchmarks/accelerator.py --out out

If OWKG_DATA is set, the command uses FB15k-237 and the published families of that folder; otherwise it uses
random graphs of the same sizes.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

# When this file is run as a script, the files in its folder would hide packages of the same names.
_HERE = Path(__file__).resolve().parent
sys.path[:] = [str(_HERE.parent), *(entry for entry in sys.path if Path(entry).resolve() != _HERE)]

import jax
import typer

from benchmarks import accelerator_parts as parts
from benchmarks.accelerator_page import joined, page
from owkg.files.storage import writable_folder, written_aside
from simulations.script import Out, run_script

NAME, PAGE = "accelerator.json", "accelerator.md"
_PACKAGES = ("jax", "jaxlib", "numpy", "optax")
_TOGETHER = {"small": {"dim": 32, "batch_size": 256, "num_negatives": 32}, "large": {}}
# Seconds: assumed time of a part before one of its kind was measured, time that is kept for the end, and the
# allowed factor over the last part of its kind, or over its projection.
_UNKNOWN, _KEPT, _SLACK = 30.0, 10.0, 1.3
# Exit code of a process that gave a part up, and the beginning of what the file says of that part.
_AGAIN, _GIVEN_UP = 3, "took longer than its budget"


def described(scale: parts.Scale) -> dict[str, Any]:
    """Description of the device, the data and the package versions."""
    device, packages = jax.devices()[0], {}
    for package in _PACKAGES:
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = "unknown"
    memory = (device.memory_stats() or {}).get("bytes_limit") if device.platform != "cpu" else None
    return {
        "quick": scale is parts.QUICK,
        "data": "published" if parts.data_folder(scale) else "random",
        "device": f"{device.device_kind} ({device.platform})",
        "device_memory_gib": memory and round(memory / 2**30, 1),
        "cpu_cores": os.cpu_count(),
        "versions": {"python": platform.python_version()} | packages,
    }


def planned(
    scale: parts.Scale, world: Callable[[], parts.ClosedWorld]
) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    """Functions that measure each part except whole runs, by name; each takes the earlier parts."""
    graph = cache(partial(parts.evaluated_graph, scale))
    plan: dict[str, Any] = {
        "limits": lambda found: parts.limits(scale),
        "simulation": lambda found: parts.monte_carlo(scale),
    }
    for name in scale.evaluated:
        plan[f"evaluation {name}"] = lambda found, name=name: parts.full_evaluation(
            scale, name, found["limits"], graph()
        )
    for name in scale.models:
        plan[f"training {name}"] = lambda found, name=name: parts.training_steps(scale, name, found["limits"])
    for entities in scale.rows:
        plan[f"rows {entities}"] = lambda found, entities=entities: parts.steps_of_rows(
            scale, entities, found["limits"]
        )
    plan["sampled"] = lambda found: parts.estimated(scale, found["limits"])
    for one in scale.configurations:
        plan[f"paper {one.label}"] = lambda found, one=one: parts.projected(
            scale, one, world(), found["limits"]
        )
    for size, settings in _TOGETHER.items():
        own = {} if scale is parts.QUICK else settings
        plan[f"together {size}"] = lambda found, own=own: parts.trained_together(scale, "rotate", own)
    return plan


class Ledger:
    """The file of the parts and its page: read at the start, and rewritten after each part."""

    def __init__(
        self,
        path: Path,
        description: dict[str, Any],
        minutes: float,
        *,
        overwrite: bool,
        budget: float = float("inf"),
    ) -> None:
        self._begin, self._seconds, self.path = time.perf_counter(), 60 * minutes, path
        self._budget = budget
        self.content = description | {"planned": [], "parts": {}}
        if path.is_file() and not overwrite:
            held = _read(path)
            if other := [key for key in description if held.get(key) != description[key]]:
                raise ValueError(
                    f"{path}: belongs to another {other[0]}; pass --overwrite to measure everything again."
                )
            self.content = held
        self._last: dict[str, float] = {}
        self._now, self._since, self._lock = "", self._begin, threading.RLock()
        watch = threading.Timer(self._seconds, self._over)
        watch.daemon = True
        watch.start()

    @property
    def done(self) -> dict[str, Any]:
        """Parts that are measured."""
        return {name: found for name, found in self.content["parts"].items() if "failed" not in found}

    @property
    def left(self) -> float:
        """Seconds until the time is over."""
        return self._seconds - _KEPT - (time.perf_counter() - self._begin)

    def measure(self, name: str, part: Callable[..., dict[str, Any]], needed: float | None = None) -> None:
        """Measures a part, unless it is already measured or there is no time for it."""
        kind = name.split()[0]
        needed = self._last.get(kind, _UNKNOWN) if needed is None else needed
        if name in self.done or _SLACK * needed > self.left:
            said = "was measured before" if name in self.done else "no time is left for it"
            return self._say(f"{name}: {said}")
        self._since, self._now = time.perf_counter(), name
        # A part whose time is known has that time.
        budget = max(self._budget, _SLACK * needed)
        watch = threading.Timer(min(budget, threading.TIMEOUT_MAX), self._too_long, (name, budget))
        watch.daemon = True
        watch.start()
        try:
            found = part(self.done)
        except Exception as error:  # the other parts still run
            words = str(error).strip().splitlines() or [""]
            found = {"failed": f"{type(error).__name__}: {words[0][:300]}"}
        watch.cancel()
        with self._lock:
            self._now = ""
            self._last[kind] = time.perf_counter() - self._since
            self._add(name, found)
        return None

    def _add(self, name: str, found: dict[str, Any]) -> None:
        took = time.perf_counter() - self._since
        self.content["parts"][name] = found | {"took_s": took, "measured": f"{datetime.now(UTC):%Y-%m-%d}"}
        self.save()
        self._say(f"{name}: {took:.1f} s{_shown(found)}")

    def _too_long(self, name: str, budget: float) -> None:
        """Ends the process if a part is still running after its budget."""
        with self._lock:
            if self._now == name:
                try:
                    self._add(name, {"failed": f"{_GIVEN_UP} of {budget:.0f} s"})
                finally:
                    os._exit(_AGAIN)

    def _over(self) -> None:
        """Ends the process if a part is still running, because nothing else stops a compilation."""
        with self._lock:
            if self._now:
                try:
                    self._add(self._now, {"failed": "was still running when the time was over"})
                finally:
                    os._exit(1)

    def save(self) -> None:
        """Writes the whole file and its page, with the parts in the order of the plan."""
        found = self.content["parts"]
        order = [name for name in self.content["planned"] if name in found]
        self.content["parts"] = {name: found[name] for name in dict.fromkeys([*order, *found])}
        text = json.dumps(self.content, indent=1) + "\n"
        for path, words in ((self.path, text), (self.path.with_name(PAGE), page(self.content))):
            with written_aside(path) as aside:
                aside.write_text(words, encoding="utf-8")

    def _say(self, words: str) -> None:
        print(f"{time.perf_counter() - self._begin:5.0f} s  {words}", file=sys.stderr, flush=True)


def restarted(
    worker: Callable[[list[str], float], int], given_up: Callable[[], list[str]], minutes: float
) -> int:
    """Exit code of workers, each begun after one that gave a part up, until one ends or the time is over.

    Args:
        worker: runs a process without the named parts for so many minutes, and returns its exit code.
        given_up: names of the parts that were given up so far.
        minutes: minutes for all of them together.
    """
    begin, before = time.monotonic(), set(given_up())
    while True:
        skipped = [name for name in given_up() if name not in before]
        code = worker(skipped, max(0.0, minutes - (time.monotonic() - begin) / 60))
        if code != _AGAIN:
            return code


def with_earlier(content: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Contents of a file, with the parts that it did not reach from an earlier one.

    A part that is taken over keeps its date, and names its device if that was another one. Tiny sizes are
    not mixed with others.
    """
    if content["quick"] != earlier["quick"]:
        return content
    parts = dict(content["parts"])
    for name, found in earlier["parts"].items():
        if "failed" in found or "failed" not in parts.get(name, {"failed": ""}):
            continue
        device = found.get("device", earlier["device"])
        parts[name] = found | {"kept": True} | ({"device": device} if device != content["device"] else {})
    order = dict.fromkeys([*content["planned"], *parts])
    return content | {"parts": {name: parts[name] for name in order if name in parts}}


def _read(path: Path) -> dict[str, Any]:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(held["parts"], dict):
            return held
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise ValueError(f"{path}: must be a file that this command wrote; pass --overwrite to replace it.")


def _given_up(path: Path) -> list[str]:
    """Parts that took longer than their budget."""
    try:
        held = _read(path)["parts"] if path.is_file() else {}
    except ValueError:  # the worker prints the error
        return []
    return [name for name, found in held.items() if str(found.get("failed", "")).startswith(_GIVEN_UP)]


def _warnings() -> list[str]:
    """Options of this interpreter for warnings."""
    return [word for option in sys.warnoptions for word in ("-W", option)]


def _shown(found: dict[str, Any]) -> str:
    if "failed" in found:
        return f", failed: {found['failed']}"
    wanted = ("ranks_per_s", "step_s", "rows_step_s", "dense_step_s", "sampled_s", "compile_s", "projected_s")
    wanted += ("seconds", "times_the_limit", "times_faster_than_in_turn", "bytes_per_s")
    return "".join(f", {key} {found[key]:.4g}" for key in wanted if key in found)


def main(
    out: Out = Path("out"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Use tiny sizes, to check that the command works.")
    ] = False,
    minutes: Annotated[float, typer.Option(help="Minutes after which no part may end.", min=0)] = 9.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Measure existing parts again.")] = False,
    part_seconds: Annotated[
        float, typer.Option(help="Seconds after which a part is given up for this time.", min=0)
    ] = 75.0,
    skip: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    alone: Annotated[bool, typer.Option("--alone", hidden=True)] = False,
    publish: Annotated[
        Path | None,
        typer.Option(metavar="DOCS", help="Folder to copy file and page to; nothing is measured then."),
    ] = None,
) -> int:
    """Measures the parts that are not measured yet, and writes the page."""
    if publish is not None:
        record, speeds = publish / "reproduction" / NAME, publish / "evidence" / "performance.md"
        content = _read(out / NAME)
        if record.is_file():
            content = with_earlier(content, _read(record))
        text = json.dumps(content, indent=1) + "\n"
        written = joined(speeds.read_text(encoding="utf-8"), content)
        for path, words in ((record, text), (speeds, written)):
            with written_aside(path) as aside:
                aside.write_text(words, encoding="utf-8")
            print(f"wrote {path}")
        return 0
    if not alone:
        path, options = writable_folder(out) / NAME, ["--quick"] * quick + ["--overwrite"] * overwrite

        def worker(skipped: list[str], left: float) -> int:
            # The parts measured since the start are not overwritten.
            own = [option for option in options if not (skipped and option == "--overwrite")]
            own += ["--out", str(out), "--minutes", str(left), "--part-seconds", str(part_seconds), "--alone"]
            own += [word for name in skipped for word in ("--skip", name)]
            return subprocess.call([sys.executable, *_warnings(), __file__, *own])  # noqa: S603

        return restarted(worker, lambda: _given_up(path), minutes)
    scale = parts.QUICK if quick else parts.Scale()
    ledger = Ledger(
        writable_folder(out) / NAME, described(scale), minutes, overwrite=overwrite, budget=part_seconds
    )
    world = cache(partial(parts.studied_world, scale, out))
    plan = planned(scale, world)
    ledger.content["planned"] = list(plan)
    # Failed parts come last, except the limits, which the other parts are compared with.
    failed = [name for name in ledger.content["parts"] if name in plan and name not in ledger.done]
    given_up = skip or []
    for name in plan:
        if name == "limits" or name not in failed:
            ledger.measure(name, plan[name])
    # The shortest first, so that as many as possible fit.
    whole = [(ledger.done.get(f"paper {one.label}"), one) for one in scale.configurations]
    projected = sorted(((found["projected_s"], one) for found, one in whole if found), key=lambda x: x[0])
    for seconds, one in projected:

        def run(found: dict[str, Any], one: Any = one) -> dict[str, Any]:
            folder = out / "accelerator_runs" / one.folder
            shutil.rmtree(folder, ignore_errors=True)  # an interrupted run, whose time is unknown
            return parts.whole_run(one, world(), folder, time.perf_counter() + ledger.left)

        ledger.measure(f"run {one.label}", run, seconds)
    for name in failed:
        if name != "limits" and name not in given_up:
            ledger.measure(name, plan[name])
    ledger.save()
    for path in (ledger.path, out / PAGE):
        print(f"wrote {path}")
    return int(len(ledger.done) < len(ledger.content["parts"]))


if __name__ == "__main__":
    run_script(main)
