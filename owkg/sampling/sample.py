"""Sampling of open worlds from closed worlds: missing facts, training facts and test queries."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int8, Int32

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import fact_splits, joined_splits
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.kg.triples import triples_checked
from owkg.openworld import INDEPENDENT, test_share
from owkg.sampling.facts import sorted_facts
from owkg.sampling.queries import MISSING, SPARSE, TRAIN, VALID, SampledQueries, all_queries, drawn, eligible
from owkg.sampling.survival import FactModel, survival

# Each use of randomness has its own stream.
_MODEL, _SURVIVES, _TRAINS, _ASKED = range(4)


class SamplingDesign(NamedTuple):
    """Arguments of `sample`."""

    density: float
    train_rate: float
    valid_rate: float
    missing: FactModel
    min_answers: int
    num_queries: int | None
    both_sides: bool
    nested: bool
    seed: int | np.integer


class OpenWorld(NamedTuple):
    """Closed world, its known part, and the test queries.

    Attributes:
        entities, relations: labels by id.
        facts: facts of the closed world, sorted and distinct.
        part: part of each fact, an index into `PARTS`.
        queries: drawn queries: queries for tails by head and relation, then queries for heads.
        num_eligible: number of queries from which they were drawn.
        design: arguments of `sample`.
    """

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    facts: Int32[np.ndarray, "facts 3"]
    part: Int8[np.ndarray, "facts"]
    queries: SampledQueries
    num_eligible: int
    design: SamplingDesign

    @property
    def train(self) -> Int32[np.ndarray, "train 3"]:
        """Training facts."""
        return self.facts[self.part == TRAIN]

    @property
    def valid(self) -> Int32[np.ndarray, "valid 3"]:
        """Validation facts."""
        return self.facts[self.part == VALID]

    @property
    def test_sparse(self) -> Int32[np.ndarray, "sparse 3"]:
        """Known facts that are neither training nor validation facts."""
        return self.facts[self.part == SPARSE]

    @property
    def test_full(self) -> Int32[np.ndarray, "full 3"]:
        """All facts that are neither training nor validation facts."""
        return self.facts[self.part >= SPARSE]

    @property
    def missing(self) -> Int32[np.ndarray, "missing 3"]:
        """Facts that are not known."""
        return self.facts[self.part == MISSING]


class Alpha(NamedTuple):
    """Share of full-test facts that are in the sparse test.

    Attributes:
        expected: d (1 - t - v) / (1 - d (t + v)).
        deviation: standard deviation under independent facts, given the number of full-test facts; a bound
            under the other missing-fact models, given the draws of entities and relations.
        realised: share in this world.
        z: (realised - expected) / deviation; None at density 1, where nothing varies.
    """

    expected: float
    deviation: float
    realised: float
    z: float | None


def sample(
    graph: KnowledgeGraph,
    *,
    density: float,
    train_rate: float,
    min_answers: int,
    num_queries: int | None,
    seed: int | np.integer,
    fewer: bool = False,
    valid_rate: float = 0.0,
    missing: FactModel = INDEPENDENT,
    both_sides: bool = False,
    nested: bool = False,
) -> OpenWorld:
    """Open world sampled from a closed one.

    Each fact survives with probability d on average (`survival`). A share t of the survivors trains, a
    share v validates, and the rest is the sparse test. The full test is the sparse test and all missing
    facts.

    Random draws belong to the sorted facts, so that equal facts and an equal seed give an equal world.

    Args:
        graph: closed world: the distinct facts of all splits of a knowledge graph.
        density: d, in (0, 1].
        train_rate: t, in (0, 1).
        min_answers: smallest number of full-test answers of a test query, at least 1; it also needs a
            sparse-test answer.
        num_queries: number of queries to draw, at least 1, with equal probabilities. None: all.
        seed: whole number, at least 0.
        fewer: whether to draw all eligible queries if there are fewer than `num_queries`; otherwise that is
            an error. Default False.
        valid_rate: v, at least 0, with t + v below 1. Default 0.
        missing: missing-fact model. Default: independent facts.
        both_sides: whether to ask (?, relation, tail) in addition to (head, relation, ?). Default False.
        nested: whether densities share their draws: a fact that is missing at one density is missing at every
            lower one, a training fact at one density is a training fact at every higher one, and many queries
            are equal, because the queries with the smallest shared random numbers are drawn. Otherwise worlds
            of different densities are independent. Default False.

    Raises:
        ValueError: naming the argument, if it is out of range or fewer queries than asked for are eligible;
            or if there is no training fact.

    Examples:
        >>> from owkg.kg import KnowledgeGraph
        >>> facts = np.array([[h, 0, t] for h in range(20) for t in range(20) if h != t], np.int32)
        >>> graph = KnowledgeGraph(tuple("abcdefghijklmnopqrst"), ("r",), {"facts": facts})
        >>> world = sample(graph, density=0.75, train_rate=0.5, min_answers=10, num_queries=5, seed=0)
        >>> len(world.train), len(world.test_sparse), len(world.missing), bool(world.queries.full.min() >= 10)
        (120, 153, 107, True)
    """
    graph = graph_checked(graph)
    design = _checked(
        SamplingDesign(
            density, train_rate, valid_rate, missing, min_answers, num_queries, both_sides, nested, seed
        )
    )
    triples = joined_splits(graph, list(fact_splits(graph)))
    facts = sorted_facts(triples_checked(triples, *graph.sizes.values(), name="graph"), **graph.sizes)
    if not len(facts):
        raise ArgumentError("graph", "must have facts, got none.")
    part = _parts(facts, design, **graph.sizes)
    if not (part == TRAIN).any():
        raise ArgumentError(
            "train_rate",
            f"must leave facts to train, got {train_rate} of {len(facts)} facts at `density` {density}.",
        )
    every = all_queries(facts, part, graph.num_relations, both_sides=design.both_sides)
    priority = _stream(design, _ASKED).random(len(every.entity))
    num_eligible = int(np.count_nonzero(eligible(every, design.min_answers)))
    if checks.flag("fewer", fewer) and design.num_queries is not None and num_eligible:
        design = design._replace(num_queries=min(design.num_queries, num_eligible))
    try:
        queries = drawn(every, priority, min_answers=design.min_answers, num_queries=design.num_queries)
    except ValueError as error:
        raise ValueError(f"at density {design.density:g}, {error}") from None
    return OpenWorld(graph.entities, graph.relations, facts, part, queries, num_eligible, design)


def alpha(world: OpenWorld) -> Alpha:
    """Share of full-test facts that are in the sparse test, expected and realised."""
    sparse, full = (int(np.count_nonzero(mask)) for mask in (world.part == SPARSE, world.part >= SPARSE))
    return alpha_of(sparse, full, world.design)


def alpha_of(sparse: int, full: int, design: SamplingDesign) -> Alpha:
    """Alpha for `sparse` facts among `full` ones, at least 1."""
    expected = float(test_share(design.density, design.train_rate + design.valid_rate))
    deviation = float(np.sqrt(expected * (1 - expected) / full))
    realised = sparse / full
    return Alpha(expected, deviation, realised, (realised - expected) / deviation if deviation else None)


def _checked(design: SamplingDesign) -> SamplingDesign:
    """Arguments as plain numbers, in their ranges."""

    def rate(name: str, low: float, high: float, expected: str) -> float:
        array = checks.real(name, getattr(design, name), -np.inf, np.inf)
        checks.require(name, array, (array >= low) & (array <= high), expected)
        return float(checks.scalar(name, array))

    def whole(name: str, low: int) -> int:
        return checks.whole(name, getattr(design, name), low)

    above_0, below_1 = np.nextafter(0, 1), np.nextafter(1, 0)
    train_rate = rate("train_rate", above_0, below_1, "in (0, 1)")
    valid_rate = rate("valid_rate", 0, below_1, "in [0, 1)")
    if train_rate + valid_rate >= 1:
        raise ArgumentError(
            "valid_rate", f"must be below 1 - `train_rate`, {1 - train_rate:g}, got {valid_rate}."
        )
    if not isinstance(design.missing, FactModel):
        raise ArgumentError("missing", f"must be a missing-fact model, got {design.missing!r}.")
    return design._replace(
        density=rate("density", above_0, 1, "in (0, 1]"),
        train_rate=train_rate,
        valid_rate=valid_rate,
        min_answers=whole("min_answers", 1),
        num_queries=None if design.num_queries is None else whole("num_queries", 1),
        both_sides=checks.flag("both_sides", design.both_sides),
        nested=checks.flag("nested", design.nested),
        seed=checks.seed("seed", design.seed),
    )


def _stream(design: SamplingDesign, use: int) -> np.random.Generator:
    """Random numbers of one use, shared by all densities if nested, otherwise separate for each density."""
    key = () if design.nested else (int(np.float64(design.density).view(np.uint64)),)
    return np.random.default_rng(np.random.SeedSequence(design.seed, spawn_key=(use, *key)))


def _parts(facts: np.ndarray, design: SamplingDesign, **sizes: int) -> Int8[np.ndarray, "facts"]:
    """Part of each fact."""
    rng = _stream(design, _MODEL)
    known = _stream(design, _SURVIVES).random(len(facts)) < survival(
        facts, design.density, design.missing, rng, **sizes
    )
    trains = _stream(design, _TRAINS).random(len(facts))
    part = np.full(len(facts), SPARSE, np.int8)
    part[trains < design.train_rate + design.valid_rate] = VALID
    part[trains < design.train_rate] = TRAIN
    part[~known] = MISSING
    return part
