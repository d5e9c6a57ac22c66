"""Worlds whose answers are all known, and whose test set knows about half of them.

Four systems answer the queries. Worlds: *independent* errors; *clustered* (systems share noise, and queries
and relations differ in difficulty); *popular* (popular answers are known more often); *power law* (few
queries have most of the answers). In the clustered world, answers are also missing by relation, by query
(most or few of its answers), by popularity, or where the systems rank them low.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import special

from owkg.estimation.measures import Measure, values
from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.targets import contrasts

_ENTITIES, _OTHERS, _MOST, _RELATIONS = 3000, 60, 40, 20
SYSTEMS, DEPTH = 4, 10
WORLDS = ("independent", "clustered", "popular", "power law")
KINDS = ("edge", "relation", "query", "popularity", "correlated")


class World(NamedTuple):
    """Queries, their pooled lists, and the truth.

    Attributes:
        people: the population of queries.
        truth: 1 or 0 for each candidate.
    """

    people: Population
    truth: np.ndarray


def world(name: str, kind: str, *, queries: int = 2000, known: float = 0.5, seed: int = 0) -> World:
    """A world of four systems whose lists of ten answers are pooled."""
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
    for strength in np.linspace(1.2, 2.4, SYSTEMS):
        score = is_true * (strength + difficulty[:, None]) + shared + 0.8 * rng.normal(size=is_true.shape)
        best = np.argsort(-np.where(is_there, score, -np.inf), axis=1)[:, :DEPTH]
        slots.append(best + len(columns) * np.arange(queries)[:, None])
    flat = np.stack(slots)
    pooled = np.unique(flat)
    names = pl.Series([f"e{q:05d}|r{r}|?" for q, r in enumerate(relation.tolist())])
    frame = pl.DataFrame(
        {"query": names, "side": "tail", "entity": names.str.head(6), "relation": names.str.slice(7)}
    )
    people = Population(
        tuple(f"m{s}" for s in range(SYSTEMS)),
        frame,
        pl.Series(pooled.astype(str).tolist()),
        pooled // len(columns),
        np.searchsorted(pooled, flat).astype(np.int32),
        np.where(is_known.ravel()[pooled], 1, UNKNOWN).astype(np.int8),
        is_known.sum(1)
        - np.bincount(pooled // len(columns), is_known.ravel()[pooled], queries).astype(np.int64),
    )
    return World(people, is_true.ravel()[pooled].astype(np.float64))


def truths_of(of: Measure, made: World) -> np.ndarray:
    """Metric of the completely judged pool, for systems and for pairs."""
    found = values(of, made.people, made.truth)
    whole = found.sum(1) / made.people.relevant(made.truth).sum() if of.micro else found.mean(1)
    return contrasts(SYSTEMS, pairs=True) @ whole


def judged_of_prefixes(made: World, rows: np.ndarray, deep: np.ndarray) -> int:
    """Number of judgements of drawn prefixes, each list down to its first relevant answer."""
    people, truth = made
    slot = people.slot[:, rows]
    seen = np.append(truth, 0.0)[slot]
    above = np.cumsum(seen, axis=-1) - seen > 0
    unknown = np.append(people.label == UNKNOWN, False)[slot]
    return len(np.unique(slot[~above & (np.arange(people.depth) < deep[:, None]) & unknown]))


def targets() -> list[str]:
    """Names of the targets of every metric: systems, then pairs."""
    names = [f"m{s}" for s in range(SYSTEMS)]
    return [*names, *(f"{a}-{b}" for a, b in combinations(names, 2))]
