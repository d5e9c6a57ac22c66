"""Judgements drawn by design: which units, with which probability, in which order, and how to draw more."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.candidates import Drawn, allocation, contributions, equal_strata, importance
from owkg.estimation.measures import Needs, measures
from owkg.estimation.permanent import permanent_numbers
from owkg.estimation.population import UNKNOWN, Population
from owkg.estimation.prefixes import needed, reach
from owkg.estimation.proxy import Probabilities
from owkg.estimation.regression import Sample

_CLASSES = 6  # most classes of queries by their number of known answers
_PER_CLASS = 5
_BELOW_CLASSES = 6
_DEEP = "depth"  # name under which the random number for the depth of a prefix is drawn


class Unit(StrEnum):
    """Kind of unit that a design draws."""

    QUERIES = "queries"
    PREFIXES = "prefixes"
    CANDIDATES = "candidates"
    BELOW = "below"

    @property
    def of_queries(self) -> bool:
        """Whether queries are drawn, rather than single candidates."""
        return self in (Unit.QUERIES, Unit.PREFIXES)


class Drawing(NamedTuple):
    """A design and the units it has drawn so far.

    Attributes:
        unit: kind of unit that is drawn.
        seed: seed of the permanent random numbers.
        frame: units that could be drawn: rows of queries, or candidates, ascending.
        stratum: stratum of each unit of the frame.
        place: permanent random number of each unit of the frame.
        batches: number of drawn units in each stratum, one array for each batch.
        deep: depth to which each query of the frame may be judged; None unless prefixes are drawn.
    """

    unit: Unit
    seed: int
    frame: Int[np.ndarray, "units"]
    stratum: Int[np.ndarray, "units"]
    place: Float[np.ndarray, "units"]
    batches: tuple[Int[np.ndarray, "strata"], ...]
    deep: Int[np.ndarray, "units"] | None = None

    @property
    def sizes(self) -> Int[np.ndarray, "strata"]:
        """N_h, number of units in each stratum."""
        return np.bincount(self.stratum, minlength=len(self.batches[0]))

    @property
    def counts(self) -> Int[np.ndarray, "strata"]:
        """n_h, number of drawn units in each stratum, over all batches."""
        return np.sum(self.batches, axis=0)

    def order(self) -> tuple[Int[np.ndarray, "n"], Int[np.ndarray, "n"]]:
        """The drawn units as places in `frame`, in the order of judging, and the batch of each, from 0.

        Within a batch, strata take turns in proportion to their drawn units, so that the first part of a
        batch represents all strata.
        """
        within = np.empty(len(self.frame), np.int64)
        by_place = np.lexsort((self.place, self.stratum))
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        within[by_place] = np.arange(len(self.frame)) - np.repeat(starts, self.sizes)
        until = np.cumsum(self.batches, axis=0)
        batch = (within[:, None] >= until[:, self.stratum].T).sum(1)
        drawn = np.flatnonzero(batch < len(self.batches))
        before = (until - np.array(self.batches))[batch[drawn], self.stratum[drawn]]
        own = np.array(self.batches)[batch[drawn], self.stratum[drawn]]
        turn = (within[drawn] - before + 0.5) / own
        order = np.lexsort((self.place[drawn], turn, batch[drawn]))
        return drawn[order], batch[drawn][order]

    def more(self, count: int) -> "Drawing":
        """The design with one more batch: the next units by their permanent random numbers.

        Raises:
            ValueError: naming `more`, if nothing is left to draw.
        """
        wanted = checks.whole("more", count, 1)
        counts = self.counts
        if counts.sum() >= len(self.frame):
            raise ArgumentError(
                "more", f"must leave something to draw: all {len(self.frame):,} {self.unit} are drawn."
            )
        total = self.allocated(int(counts.sum()) + wanted)
        return self._replace(batches=(*self.batches, total - counts))

    def allocated(self, total: int) -> Int[np.ndarray, "strata"]:
        """Number of units in each stratum if `total` are drawn or judged, drawn units first.

        Strata share as in the batch that first drew from them.
        """
        first = np.argmax(np.array(self.batches) > 0, axis=0)
        shares = np.maximum(np.array(self.batches)[first, np.arange(len(first))], 1) * 1.0
        if total < self.counts.sum():
            return allocation(total, self.sizes, shares)
        return allocation(total, self.sizes, shares, least=self.counts)

    @property
    def probabilities(self) -> Float[np.ndarray, "units"]:
        """Inclusion probability of each unit of the frame: n_h / N_h."""
        return (self.counts / np.maximum(self.sizes, 1))[self.stratum]

    def sample(self, rows: Int[np.ndarray, "n"]) -> Sample:
        """The judged queries as a sample; `rows` are rows of the population."""
        at = np.searchsorted(self.frame, rows)
        return Sample(rows, self.stratum[at], self.sizes)

    def drawn(self, chosen: Int[np.ndarray, "n"]) -> Drawn:
        """The judged candidates as a sample; `chosen` are places in `frame`."""
        return Drawn(self.frame, self.stratum, chosen)

    def candidates(
        self, people: Population, labels: Int[np.ndarray, "candidates"], units: Int[np.ndarray, "n"]
    ) -> Bool[np.ndarray, "candidates"]:
        """Mask of the candidates whose labels some drawn units need, given the labels known so far.

        Args:
            people: the population.
            labels: known labels, 1 or 0, and `UNKNOWN` elsewhere.
            units: places of the drawn units in `frame`.
        """
        if self.unit is Unit.PREFIXES:
            assert self.deep is not None
            return needed(people, labels, self.frame[units], self.deep[units])
        chosen = np.zeros(len(people.answers), bool)
        if self.unit is Unit.QUERIES:
            rows = np.zeros(len(people.queries), bool)
            rows[self.frame[units]] = True
            chosen[rows[people.query]] = True
        else:
            chosen[self.frame[units]] = True
        return chosen & (labels == UNKNOWN)


class Asked(NamedTuple):
    """Request for a draw.

    Attributes:
        unit: kind of unit to draw.
        size: number of units.
        strata: "size" for strata of queries by their number of known answers; None: one stratum.
        aims: names of the metrics that candidates are drawn for. Empty: P at the depth of the pool.
        pair: the two systems whose difference candidates are drawn for, as a pair or as "A-B"; None: the
            value of each system.
    """

    unit: Unit
    size: int
    strata: str | None = None
    aims: Sequence[str] = ()
    pair: tuple[str, str] | str | None = None


def draw(
    people: Population, asked: Asked, *, seed: int, proxy: Probabilities, below: int | None = None
) -> Drawing:
    """Units drawn at random from a population.

    Args:
        people: the population.
        asked: kind and number of units to draw.
        seed: seed of the permanent random numbers; equal seeds give equal draws on any machine.
        proxy: probability of each candidate; it defines the strata if candidates are drawn.
        below: depth of the judged pool, if candidates below it are drawn. Default None: the depth of the
            lists.

    Raises:
        ValueError: naming `draw`, `strata` or `for`, if the population does not allow the draw.
    """
    require_possible(asked, people.depth)
    count = asked.size
    if asked.unit.of_queries:
        return _of_queries(people, asked, count, seed)
    if asked.unit is Unit.BELOW:
        return _below(people, asked, count, seed, proxy, below or people.depth)
    return _of_candidates(people, asked, count, seed, proxy)


def require_possible(asked: Asked, depth: int) -> None:
    """Check that a population of this depth allows a draw.

    Raises:
        ValueError: naming `draw`, `strata` or `for`.
    """
    checks.whole("draw", asked.size, 1)
    if asked.strata not in (None, "size"):
        raise ArgumentError("strata", f"must be size or left out, got {asked.strata!r}.")
    if asked.unit is not Unit.CANDIDATES and (asked.aims or asked.pair):
        raise ArgumentError(
            "for", f"must be left out if {asked.unit} are drawn: they serve all systems equally."
        )
    if not asked.unit.of_queries and asked.strata is not None:
        raise ArgumentError(
            "strata", "must be left out if candidates are drawn, because their strata are by importance."
        )
    for one in measures(asked.aims, depth) if asked.aims else ():
        if one.needs is not Needs.CANDIDATES:
            raise ArgumentError(
                "for",
                f"must be P@k or RBP, which single candidates answer, got {one.name}: draw {one.needs} for "
                f"it.",
            )


def _of_queries(people: Population, asked: Asked, count: int, seed: int) -> Drawing:
    size = len(people.queries)
    if count > size:
        raise ArgumentError("draw", f"must be at most the {size:,} queries of the runs, got {count:,}.")
    stratum = np.zeros(size, np.int64)
    answers = people.relevant((people.label == 1).astype(float))
    if asked.strata == "size":
        stratum = size_classes(answers, min(_CLASSES, max(count // _PER_CLASS, 1)))
    sizes = np.bincount(stratum)
    means = np.bincount(stratum, answers) / sizes
    shares = sizes * (1 + means / max(answers.mean(), 1e-12))
    place = permanent_numbers(seed, people.queries["query"])
    deep = depths(people, seed) if asked.unit is Unit.PREFIXES else None
    batch = allocation(count, sizes, shares / shares.sum())
    return Drawing(asked.unit, seed, np.arange(size), stratum, place, (batch,), deep)


def depths(people: Population, seed: int) -> Int[np.ndarray, "queries"]:
    """Depth to which each query may be judged, by a permanent random number for the depth."""
    queries = people.queries["query"]
    chance = permanent_numbers(seed, queries, pl.Series([_DEEP]).new_from_index(0, len(queries)))
    return (chance[:, None] < reach(people.depth)).sum(1)


def size_classes(sizes: Float[np.ndarray, "queries"], classes: int) -> Int[np.ndarray, "queries"]:
    """Classes of queries by some size; queries of equal size share a class.

    Each query counts 1 plus its size over the mean size. Classes therefore hold about equal numbers of
    queries and of answers together, and few queries that have most of the answers get classes of their own.
    """
    order = np.argsort(sizes, kind="stable")
    count = 1 + sizes[order] / max(sizes.mean(), 1e-12)
    before = np.cumsum(count) - count
    cut = np.empty(len(sizes), np.int64)
    cut[order] = np.minimum((before / count.sum() * classes).astype(np.int64), classes - 1)
    first: dict[float, int] = {}
    for size, one in zip(sizes[order].tolist(), cut[order].tolist(), strict=True):
        first.setdefault(size, one)
    found = np.unique([first[size] for size in sizes.tolist()], return_inverse=True)[1]
    # A class of one query joins the class below it.
    counts = np.bincount(found)
    for h in np.flatnonzero(counts < 2)[::-1]:
        if len(counts) > 1:
            found[found == h] = h - 1 if h else 1
    return np.unique(found, return_inverse=True)[1]


def _of_candidates(people: Population, asked: Asked, count: int, seed: int, proxy: Probabilities) -> Drawing:
    frame = people.unknown
    _require_enough(count, len(frame), "unknown candidates")
    added = aims(people, asked, frame)
    stratum = equal_strata(importance(added, proxy[frame]))
    shares = np.bincount(stratum, importance(added, proxy[frame]))
    pairs = people.pairs(frame)
    place = permanent_numbers(seed, pairs["query"], pairs["answer"])
    return Drawing(
        asked.unit, seed, frame, stratum, place, (allocation(count, np.bincount(stratum), shares),)
    )


def aims(people: Population, asked: Asked, frame: Int[np.ndarray, "n"]) -> Float[np.ndarray, "aims n"]:
    """Amount that each candidate adds to each target of the draw, scaled to at most 1."""
    found = []
    for one in measures(asked.aims or f"P@{people.depth}", people.depth):
        each = contributions(one, people, frame)
        if asked.pair is not None:
            pair = pair_of(asked.pair, people.models)
            first, second = (people.models.index(name) for name in pair)
            each = each[[first]] - each[[second]]
        found.append(each / max(np.abs(each).max(initial=0.0), 1e-300))
    return np.concatenate(found)


def pair_of(said: tuple[str, str] | str, models: Sequence[str]) -> tuple[str, str]:
    """The two systems that a pair or the text "A-B" names; names of systems may contain hyphens.

    Raises:
        ValueError: naming `for`, if it does not name two systems.
    """
    pairs = [said] if isinstance(said, tuple) else []
    if isinstance(said, str):
        words = said.split("-")
        pairs = [("-".join(words[:i]), "-".join(words[i:])) for i in range(1, len(words))]
    found = [pair for pair in pairs if set(pair) <= set(models) and pair[0] != pair[1]]
    if len(found) != 1:
        shown = said if isinstance(said, str) else "-".join(said)
        raise ArgumentError("for", f"must be two systems of the runs ({', '.join(models)}), got {shown!r}.")
    return found[0]


def _below(
    people: Population, asked: Asked, count: int, seed: int, proxy: Probabilities, depth: int
) -> Drawing:
    """Candidates that no list holds down to the depth of the pool, drawn in strata by probability."""
    frame = below_pool(people, depth)
    _require_enough(count, len(frame), f"candidates below depth {depth}")
    p = proxy[frame]
    order = np.argsort(p, kind="stable")
    stratum = np.empty(len(frame), np.int64)
    stratum[order] = np.arange(len(frame)) * _BELOW_CLASSES // max(len(frame), 1)
    stratum = np.unique(stratum, return_inverse=True)[1]
    mean = np.bincount(stratum, p) / np.bincount(stratum)
    shares = np.bincount(stratum) * np.sqrt(np.maximum(mean, 0.3 * p.mean()))
    pairs = people.pairs(frame)
    place = permanent_numbers(seed, pairs["query"], pairs["answer"])
    return Drawing(
        asked.unit, seed, frame, stratum, place, (allocation(count, np.bincount(stratum), shares),)
    )


def below_pool(people: Population, depth: int) -> Int[np.ndarray, "n"]:
    """Unknown candidates that no list holds down to a depth."""
    places = people.places
    best = np.where(places > 0, places, people.depth + 1).min(0)
    return np.flatnonzero((people.label == UNKNOWN) & (best > depth))


def _require_enough(count: int, size: int, what: str) -> None:
    if count > size:
        raise ArgumentError("draw", f"must be at most the {size:,} {what}, got {count:,}.")
