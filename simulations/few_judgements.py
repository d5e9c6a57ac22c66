"""Coverage and width of estimates from few judgements, replayed on worlds whose answers are all known.

Four systems answer queries of a world of which about half of the true answers are known. Queries, prefixes or
candidates are drawn many times from the pool of their lists. Each draw is judged by the truth and estimated
as `owkg estimate` does it. The table has the share of draws whose 95 % interval holds the value of the
completely judged pool, and the width of the intervals relative to a plain sample of queries with Student's t.

Worlds: *independent* errors; *clustered* (systems share noise, queries and relations differ in difficulty);
*popular* (popular answers are known more often); *power law* (few queries have most of the answers). In the
clustered world answers are also missing by relation, by query (most or few of them), by popularity, or where
the systems rank them low.

    python simulations/few_judgements.py --out out
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import typer
from scipy import special

from owkg.estimation.candidates import (
    Drawn,
    allocation,
    contributions,
    equal_strata,
    importance,
    limits,
    of_candidates,
)
from owkg.estimation.estimate import OWN, REFIT
from owkg.estimation.measures import Measure, Needs, measures, values
from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.prefixes import reach
from owkg.estimation.proxy import free_proxy, refitted
from owkg.estimation.regression import Sample
from owkg.estimation.targets import contrasts, of_prefix_queries, of_queries, prepared
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress
from simulations.script import Out, Quick, Seed, run_script, save_table

_ENTITIES, _OTHERS, _MOST, _RELATIONS = 3000, 60, 40, 20
_SYSTEMS, _DEPTH = 4, 10
WORLDS = ("independent", "clustered", "popular", "power law")
KINDS = ("edge", "relation", "query", "popularity", "correlated")
METRICS = ("rr", "p@10", "ap", "ndcg", "success@1", "success@10", "macro-mrr", "mrr", "hits@10")


class World(NamedTuple):
    """Queries, their pooled lists, and the truth.

    Attributes:
        people: the population.
        truth: of each candidate, 1 or 0.
    """

    people: Population
    truth: np.ndarray


def world(name: str, kind: str, *, queries: int = 2000, known: float = 0.5, seed: int = 0) -> World:
    """A world of four systems, of which the lists of ten answers are pooled."""
    rng = np.random.default_rng(seed)
    relation = rng.integers(_RELATIONS, size=queries)
    alike = name == "independent"
    of_relation = (0.0 if alike else 0.6) * rng.normal(size=_RELATIONS)
    difficulty = of_relation[relation] + (0.0 if alike else 0.5) * rng.normal(size=queries)
    counts = 1 + rng.geometric(0.25, queries)
    if name == "power law":
        counts = np.floor((1 - rng.random(queries)) ** (-1 / 1.3)).astype(int)
    counts = np.minimum(counts, _MOST)
    columns = np.arange(_MOST + _OTHERS)
    is_true = columns < counts[:, None]
    is_there = is_true | (columns >= _MOST)
    popularity = rng.normal(size=(queries, len(columns)))
    shared = (0.0 if alike else 0.8) * rng.normal(size=is_true.shape)
    chance = np.full(is_true.shape, known)
    if kind == "popularity" or name == "popular":
        chance = special.ndtr(special.ndtri(known) + 0.8 * popularity)
    elif kind == "relation":
        chance = np.broadcast_to(
            np.clip(known + 0.3 * np.sign(of_relation[relation]), 0, 1)[:, None], chance.shape
        )
    elif kind == "query":
        chance = np.broadcast_to(rng.choice([0.2, 0.8], queries)[:, None], chance.shape)
    elif kind == "correlated":
        chance = np.clip(known + 0.35 * np.tanh(shared if not alike else popularity), 0, 1)
    is_known = is_true & (rng.random(is_true.shape) < chance)
    is_known[:, 0] = True
    slots = []
    for strength in np.linspace(1.2, 2.4, _SYSTEMS):
        score = is_true * (strength + difficulty[:, None]) + shared + 0.8 * rng.normal(size=is_true.shape)
        best = np.argsort(-np.where(is_there, score, -np.inf), axis=1)[:, :_DEPTH]
        slots.append(best + len(columns) * np.arange(queries)[:, None])
    flat = np.stack(slots)
    pooled = np.unique(flat)
    names = pl.Series([f"e{q:05d}|r{r}|?" for q, r in enumerate(relation.tolist())])
    frame = pl.DataFrame(
        {"query": names, "side": "tail", "entity": names.str.head(6), "relation": names.str.slice(7)}
    )
    people = Population(
        tuple(f"m{s}" for s in range(_SYSTEMS)),
        frame,
        pl.Series(pooled.astype(str).tolist()),
        pooled // len(columns),
        np.searchsorted(pooled, flat).astype(np.int32),
        np.where(is_known.ravel()[pooled], 1, UNKNOWN).astype(np.int8),
        is_known.sum(1)
        - np.bincount(pooled // len(columns), is_known.ravel()[pooled], queries).astype(np.int64),
    )
    return World(people, is_true.ravel()[pooled].astype(np.float64))


class Row(NamedTuple):
    """A row of the table."""

    world: str
    missing: str
    queries: int
    design: str
    drawn: int
    metric: str
    target: str
    coverage: float
    least: float
    width: float
    plain: float | None
    judgements: float


@dataclass(frozen=True)
class Config:
    """How much is replayed.

    Attributes:
        queries: of a world.
        sizes: drawn queries.
        candidates: drawn candidates.
        replays: draws.
    """

    queries: Sequence[int] = (2000, 300)
    sizes: Sequence[int] = (20, 30, 50, 100, 200, 400)
    candidates: Sequence[int] = (100, 200, 400, 800)
    replays: int = 500


QUICK = Config(queries=(300,), sizes=(50,), candidates=(200,), replays=60)


def truths_of(of: Measure, made: World) -> np.ndarray:
    """The metric of the completely judged pool, of systems and of pairs."""
    found = values(of, made.people, made.truth)
    whole = found.sum(1) / made.people.relevant(made.truth).sum() if of.micro else found.mean(1)
    return contrasts(_SYSTEMS, pairs=True) @ whole


def judged_of_prefixes(made: World, rows: np.ndarray, deep: np.ndarray) -> int:
    """Judgements of drawn prefixes, each list down to its first relevant answer."""
    people, truth = made
    slot = people.slot[:, rows]
    seen = np.append(truth, 0.0)[slot]
    above = np.cumsum(seen, axis=-1) - seen > 0
    unknown = np.append(people.label == UNKNOWN, False)[slot]
    return len(np.unique(slot[~above & (np.arange(people.depth) < deep[:, None]) & unknown]))


class Kept(NamedTuple):
    """Intervals of the replays of one metric."""

    held: list[np.ndarray]
    widths: list[np.ndarray]
    plain: list[np.ndarray]
    judged: list[float]


def rows_of(kept: Kept, **said: Any) -> list[Row]:
    """Two rows: systems and pairs."""
    held, width = np.mean(kept.held, axis=0), np.median(kept.widths, axis=0)
    plain = np.median(kept.plain, axis=0) if kept.plain else None
    rows = []
    for target, part in (("system", slice(0, _SYSTEMS)), ("pair", slice(_SYSTEMS, None))):
        if not held[part].size:
            continue
        usual = None if plain is None else float(plain[part].mean())
        judged = float(np.mean(kept.judged))
        rows.append(
            Row(**said, target=target, coverage=float(held[part].mean()), least=float(held[part].min()),
                width=float(width[part].mean()), plain=usual, judgements=judged)
        )  # fmt: skip
    return rows


def replay_queries(made: World, n: int, replays: int, seed: int, **said: Any) -> list[Row]:
    """Whole queries, and prefixes for RR and Success."""
    people, truth = made
    proxy, reached, size = free_proxy(people), reach(_DEPTH), len(people.queries)
    chosen = measures(METRICS, _DEPTH)
    to = contrasts(_SYSTEMS, pairs=True)
    ready = {one.name: prepared(one, people, [proxy], own=n >= OWN) for one in chosen}
    prefixes = {
        one.name: prepared(one, people, [proxy], reached=reached)
        for one in chosen
        if one.needs is Needs.PREFIX
    }
    whole = {one.name: truths_of(one, made) for one in chosen}
    every = {one.name: values(one, people, truth) for one in chosen}
    kept = {(design, one.name): Kept([], [], [], []) for design in ("queries", "prefixes") for one in chosen}
    is_open = np.bincount(people.query[people.unknown], minlength=size)
    rng = np.random.default_rng(seed)
    for _ in range(replays):
        rows = np.sort(rng.choice(size, n, replace=False))
        sample = Sample(rows, np.zeros(n, np.int64), np.array([size]))
        deep = (rng.random((n, 1)) < reached).sum(1)
        asked = float(judged_of_prefixes(made, rows, deep))
        folds = None
        if n >= REFIT:
            drawn = np.isin(people.query, rows)
            folds = refitted(people, np.where(drawn, truth, people.label).astype(np.int8), proxy, rows)
        for one in chosen:
            value = to @ every[one.name][:, rows]
            found = [
                (
                    "queries",
                    of_queries(ready[one.name], people, truth, sample, folds=folds),
                    float(is_open[rows].sum()),
                )
            ]
            if one.name in prefixes:
                found.append(
                    (
                        "prefixes",
                        of_prefix_queries(prefixes[one.name], people, truth, proxy, sample, deep, reached),
                        asked,
                    )
                )
            for design, got, judged in found:
                own = kept[design, one.name]
                own.held.append((got.low <= whole[one.name] + 1e-12) & (whole[one.name] <= got.high + 1e-12))
                own.widths.append(got.high - got.low)
                own.judged.append(judged)
                if not one.micro:
                    half = special.stdtrit(n - 1, 0.975) * value.std(1, ddof=1) * np.sqrt((1 - n / size) / n)
                    own.plain.append(2 * half)
    return [
        row
        for (design, metric), own in kept.items()
        if own.held
        for row in rows_of(own, **said, design=design, drawn=n, metric=metric)
    ]


def replay_candidates(made: World, n: int, replays: int, seed: int, **said: Any) -> list[Row]:
    """Candidates for P@10, and the share of missing answers of the pool."""
    people, truth = made
    proxy, frame = free_proxy(people), people.unknown
    (of,) = measures("p@10", _DEPTH)
    each = contributions(of, people, frame)
    to = contrasts(_SYSTEMS, pairs=True)
    added = np.concatenate([to @ each, np.full((1, len(frame)), 1 / len(frame))])
    weight = importance(each, proxy[frame])
    stratum = equal_strata(weight)
    sizes = np.bincount(stratum)
    counts = allocation(n, sizes, np.bincount(stratum, weight))
    whole = added @ truth[frame]
    known = float((people.label == 1).sum() + people.outside.sum())
    metric, missing = Kept([], [], [], []), Kept([], [], [], [])
    rng = np.random.default_rng(seed)
    for _ in range(replays):
        place = rng.random(len(frame))
        order = np.lexsort((place, stratum))
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        within = np.arange(len(frame)) - np.repeat(starts, sizes)
        chosen = order[within < counts[stratum[order]]]
        found = of_candidates(added, truth[frame][chosen], proxy[None, frame], Drawn(frame, stratum, chosen))
        low, high = limits(found, 0.95)
        held = (low <= whole + 1e-12) & (whole <= high + 1e-12)
        metric.held.append(held[:-1])
        metric.widths.append((high - low)[:-1])
        metric.judged.append(float(n))
        bottom, top = (np.maximum(one[-1], 0) * len(frame) for one in (low, high))
        missing.held.append(held[-1:])
        missing.widths.append(np.array([top / (top + known) - bottom / (bottom + known)]))
        missing.judged.append(float(n))
    said |= {"design": "candidates", "drawn": n}
    return [*rows_of(metric, **said, metric="P@10"), *rows_of(missing, **said, metric="missing share")]


def table(config: Config, seed: int) -> pl.DataFrame:
    """All worlds where answers are missing independently, and all kinds of them in the clustered world."""
    settings = [(name, "edge") for name in WORLDS] + [("clustered", kind) for kind in KINDS[1:]]
    rows: list[Row] = []
    steps = len(settings) * len(config.queries) * (len(config.sizes) + len(config.candidates))
    done = 0
    with progress("replays", "settings") as told:
        for name, kind in settings:
            for queries in config.queries:
                made = world(name, kind, queries=queries, seed=seed)
                said = {"world": name, "missing": kind, "queries": queries}
                for n in config.sizes:
                    if n < queries:
                        rows += replay_queries(made, n, config.replays, seed, **said)
                    told(done := done + 1, steps)
                for n in config.candidates:
                    if n < len(made.people.unknown):
                        rows += replay_candidates(made, n, config.replays, seed, **said)
                    told(done := done + 1, steps)
    return pl.DataFrame(rows)


def main(
    *,
    replays: Annotated[
        int | None, typer.Option(min=1, help="Draws of each setting; fewer with --quick.")
    ] = None,
    quick: Quick = False,
    seed: Seed = 0,
    out: Out = Path("out"),
) -> None:
    """Coverage and width of estimates from few judgements, by replays on worlds whose answers are known."""
    folder = writable_folder(out)
    config = QUICK if quick else Config()
    if replays is not None:
        config = Config(config.queries, config.sizes, config.candidates, replays)
    found = table(config, seed)
    save_table(found, folder / "few_judgements.csv")
    summary = (
        found.group_by("design", "target", "metric", "drawn", maintain_order=True)
        .agg(
            coverage=pl.col("coverage").mean(),
            least=pl.col("least").min(),
            width=pl.col("width").mean(),
            ratio=(pl.col("width") / pl.col("plain")).mean(),
            judgements=pl.col("judgements").mean(),
        )
        .sort("design", "target", "metric", "drawn")
    )
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, float_precision=3,
                   tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True):  # fmt: skip
        print(summary)


if __name__ == "__main__":
    run_script(main)
