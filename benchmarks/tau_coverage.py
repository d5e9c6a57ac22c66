"""Coverage of intervals for Kendall's tau between two qrels: how often they contain the true tau.

The true values of the systems are drawn anew in each trial, with spread `spread` under the first qrels and
moved by `moved` under the second. A query adds a difficulty that all systems share, and noise of standard
deviation 1, which is heavy-tailed in half of the settings. For each setting, the table has the share of
trials whose confidence interval (`owkg.stats.sure_tau`) and whose replication interval contain the tau of
infinitely many queries, and the width of the confidence interval.

    python benchmarks/tau_coverage.py --out out
"""

from pathlib import Path
from typing import Any

import jax
import numpy as np
import polars as pl

from owkg.files.storage import writable_folder
from owkg.judge.agreement import agreement
from owkg.judge.scores import Scores
from owkg.stats.rank_correlation import kendall_tau
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, run_script, save_table

# Systems, queries, spread, moved.
_SETTINGS = (
    (8, 30, 0.1, 0.0),
    (8, 200, 0.05, 0.0),
    (8, 200, 0.05, 0.05),
    (8, 1000, 0.05, 0.0),
    (8, 1000, 0.3, 0.0),
    (13, 1745, 0.05, 0.03),
    (13, 1745, 0.3, 0.1),
)
_TAIL = 1.5  # of the lognormal noise


def trial(
    rng: np.random.Generator, setting: tuple[int, int, float, float], *, heavy: bool
) -> dict[str, float]:
    """One sample of queries, and whether its intervals contain the truth."""
    systems, queries, spread, moved = setting
    true = rng.normal(0, spread, systems)
    other = true + rng.normal(0, moved, systems)
    shared = rng.normal(size=queries) + _noise(rng, (systems, queries), heavy=heavy)
    own = _noise(rng, (2, systems, queries), heavy=heavy) / 2
    asked = pl.DataFrame({"side": "tail", "entity": np.arange(queries), "relation": "r"})
    names = tuple(map(str, range(systems)))
    first, second = (
        Scores(names, ("m",), (True,), asked, (mean[:, None] + shared + noise)[None], np.ones((1, queries)))
        for mean, noise in zip((true, other), own, strict=True)
    )
    found = agreement(jax.random.key(int(rng.integers(2**31))), first, second, replicates=400)
    tau = kendall_tau(true, other).item()
    ends = {
        "confidence": (found.tau_low[0], found.tau_high[0]),
        "replication": (found.low[0, 0], found.high[0, 0]),
    }
    held = {name: float(low - 1e-9 <= tau <= high + 1e-9) for name, (low, high) in ends.items()}
    return held | {
        "width": float(found.tau_high[0] - found.tau_low[0]),
        "tau": found.value[0, 0],
        "true_tau": tau,
    }


def _noise(rng: np.random.Generator, shape: tuple[int, ...], *, heavy: bool) -> np.ndarray:
    """Noise of mean 0 and standard deviation 1."""
    normal = rng.normal(size=shape)
    if not heavy:
        return normal
    spread = np.exp(_TAIL**2)
    return (np.exp(_TAIL * normal) - np.sqrt(spread)) / np.sqrt((spread - 1) * spread)


def run(trials: int) -> pl.DataFrame:
    """A row for each setting."""
    rows: list[dict[str, Any]] = []
    with progress("drawing", "settings") as update:
        for heavy in (False, True):
            for setting in _SETTINGS:
                rng = np.random.default_rng(0)
                found = pl.DataFrame([trial(rng, setting, heavy=heavy) for _ in range(trials)])
                named = dict(zip(("systems", "queries", "spread", "moved"), setting, strict=True))
                rows.append(named | {"heavy": heavy, "trials": trials} | found.mean().row(0, named=True))
                update(len(rows), 2 * len(_SETTINGS))
    return pl.DataFrame(rows)


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Simulates the coverage of intervals for tau over infinitely many queries."""
    folder = writable_folder(out)
    found = run(20 if quick else 300)
    save_table(found, folder / "tau_coverage.csv")
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200):
        print(found)


if __name__ == "__main__":
    run_script(main)
