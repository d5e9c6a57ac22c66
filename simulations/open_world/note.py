"""study.json: the settings of the study whose results are in the same folder."""

import json
import os
import shlex
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax

from owkg.files.storage import versions, written_aside
from simulations.open_world.experiment import training_seconds

NAME = "study.json"
"""Name of the file for the figures of Yang et al. (2022)."""

# Keys that may differ between two calls that draw results of one study.
_OF_A_CALL = ("command", "results", "of_earlier_studies")


def described(
    runs: Path,
    preset: str,
    seed: int,
    worlds: list[Any],
    configurations: tuple[Any, ...],
    max_steps: int | None,
    chooser: str | None,
) -> dict[str, Any]:
    """Description of a study: models, worlds, settings, versions and time."""
    seconds = {
        world.name: {
            one.label: round(training_seconds(runs / world.name / one.folder), 1) for one in configurations
        }
        for world in worlds
    }
    script = Path(sys.argv[0])
    name = script.name if script.name != "__main__.py" else f"python -m {'.'.join(script.parts[-3:-1])}"
    device = jax.devices()[0]
    return {
        "command": f"{name} {shlex.join(sys.argv[1:])}",
        "preset": preset,
        "seed": seed,
        "max_steps": max_steps,
        "correlated_by": chooser or "the worlds' own sets",
        "densities": [world.density for world in worlds],
        "versions": versions() | {package: version(package) for package in ("jax", "jaxlib", "optax")},
        "device": f"{len(jax.devices())} x {device.device_kind} ({device.platform}), {os.cpu_count()} cores",
        "training_seconds": seconds,
        "training_seconds_in_all": round(sum(sum(of.values()) for of in seconds.values()), 1),
    }


def note(
    out: Path, description: dict[str, Any], results: Iterable[Path] = (), *, name: str = NAME
) -> list[str]:
    """Writes `out`/`name` and returns the names of results there that belong to an earlier study.

    Nothing is removed: a result of an earlier study stays and is listed as such, until it is drawn again.

    Args:
        out: folder of the results.
        description: description from `described`.
        results: files that were drawn now.
        name: name of the file.
    """
    earlier = _earlier(out / name)
    same = _of_study(earlier) == _of_study(description)
    drawn = {path.name for path in results}
    kept = set(earlier.get("results", ()))
    stale = set(earlier.get("of_earlier_studies", ())) | (set() if same else kept)
    now = {
        "results": sorted(one for one in drawn | (kept if same else set()) if (out / one).is_file()),
        "of_earlier_studies": sorted(one for one in stale - drawn if (out / one).is_file()),
    }
    with written_aside(out / name) as aside:
        aside.write_text(json.dumps(description | now, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return now["of_earlier_studies"]


def _earlier(path: Path) -> dict[str, Any]:
    """Content of the file; empty if it does not exist or is not of this kind."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _of_study(description: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in description.items() if key not in _OF_A_CALL}
