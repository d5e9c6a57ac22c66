"""FB-Test-S: how many sampled judgements give the result of 12,570 judgements (Zhou et al. 2022)."""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from owkg.estimation.candidates import (
    Drawn,
    allocation,
    equal_strata,
    few_limits,
    importance,
    limits,
    of_candidates,
)
from owkg.files.storage import writable_folder
from owkg.terminal.tables import line, printed
from simulations.script import Out, Quick, Seed, save_table
from simulations.zhou2022.published import S, read_study

Data = Annotated[
    Path | None, typer.Option(envvar="OWKG_DATA", help="Folder with fb15k237, kgc_sparsity, wn18rr.")
]
_SAMPLED = (200, 400, 800)
_BELOW = 5  # depth of the pool; candidates are drawn below it
_LEAST_BELOW = (200, 400, 800, 1600)


def pool_share(
    depth: np.ndarray, positive: np.ndarray, known: int, n: int, replays: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the missing share of a pool, from draws of n candidates.

    The lists are not published, only the depth at which each candidate was pooled. A candidate at depth d is
    guessed to be true with probability 1 / (1 + d). This guess sizes the strata and is the covariate.
    """
    guess = 1 / (1 + depth)
    added = np.full((1, len(depth)), 1 / len(depth))
    stratum = equal_strata(importance(added, guess))
    sizes = np.bincount(stratum)
    counts = allocation(n, sizes, np.bincount(stratum, importance(added, guess)))
    random, frame, ends = np.random.default_rng(seed), np.arange(len(depth)), []
    for _ in range(replays):
        chosen = _drawn(stratum, counts, random)
        found = of_candidates(added, positive[chosen], guess[None], Drawn(frame, stratum, chosen))
        ends.append(np.stack(limits(found, 0.95))[:, 0] * len(depth))
    missing = np.clip(np.array(ends), 0, len(depth)).T
    low, high = missing / (missing + known)
    return low, high


def count_below(
    positive: np.ndarray, depth: np.ndarray, n: int, replays: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Limits of the number of true candidates, from draws of n in strata of the depth."""
    stratum = np.unique(depth, return_inverse=True)[1]
    sizes = np.bincount(stratum)
    counts = allocation(n, sizes, sizes / np.sqrt(1 + np.unique(depth)))
    random, ends = np.random.default_rng(seed), []
    for _ in range(replays):
        chosen = _drawn(stratum, counts, random)
        weight = (sizes / counts)[stratum[chosen]]
        ends.append(few_limits(positive[chosen], weight, 0.95))
    low, high = np.array(ends).T
    return low, high


def _drawn(stratum: np.ndarray, counts: np.ndarray, random: np.random.Generator) -> np.ndarray:
    order = np.lexsort((random.random(len(stratum)), stratum))
    sizes = np.bincount(stratum)
    within = np.arange(len(order)) - np.repeat(np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return order[within < counts[stratum[order]]]


def fb_test_s(data: Data = None, quick: Quick = False, seed: Seed = 0, out: Out = Path("out")) -> None:
    """Estimates the missing share of FB-Test-S and its true candidates at depths 6 to 10.

    The population is the judgements published with FB-Test-S-C, without those that a rule made.
    """
    if data is None:
        line("OWKG_DATA is not set and --data is not given: FB-Test-S is left out")
        return
    writable_folder(out)
    study = read_study(data)
    replays = 200 if quick else 2000
    pool = study.pool.filter(~pl.col("filtered"))
    depth, positive = pool["depth"].to_numpy().astype(float), pool["positive"].to_numpy().astype(float)
    known = len(study.triples[S])
    share = positive.sum() / (positive.sum() + known)
    rows = []
    for n in _SAMPLED:
        low, high = pool_share(depth, positive, known, n, replays, seed)
        rows.append(_row("missing share of the pool", n, share, low, high))
    deep = depth > _BELOW
    for n in _LEAST_BELOW:
        low, high = count_below(positive[deep], depth[deep], n, replays, seed)
        rows.append(_row("true at depths 6 to 10", n, positive[deep].sum(), low, high))
    frame = pl.DataFrame(rows)
    save_table(frame, out / "few_judgements_fb_test_s.csv")
    print(f"{len(pool):,} candidates judged by hand, {positive.sum():,.0f} true; {known:,} known answers")
    cells = []
    for row in rows:
        truth = f"{row['truth']:.3f}" if row["truth"] < 1 else f"{row['truth']:.0f}"
        numbers = (f"{row['coverage']:.3f}", f"{row['width']:.3f}", f"{row['half']:.0%}")
        cells.append([row["of"], f"{row['judgements']:,}", truth, *numbers])
    heads = ["of", "judgements", "truth", "coverage", "width", "half, of the truth"]
    printed(f"95 % intervals, {replays:,} draws", heads, cells)


def _row(of: str, n: int, truth: float, low: np.ndarray, high: np.ndarray) -> dict[str, str | float]:
    width = float(np.median(high - low))
    held = float(((low <= truth) & (truth <= high)).mean())
    return {"of": of, "judgements": n, "truth": float(truth), "coverage": held, "width": width} | {
        "half": width / 2 / float(truth)
    }
