"""Sums for metrics of ranking tasks: sums over queries, the weight on each rank, the shapes of tasks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import reduce

import numpy as np
from jaxtyping import Float

from owkg.metrics import median
from owkg.metrics.blocks import Block, whole_block
from owkg.metrics.chance import Shapes
from owkg.metrics.measures import Measure, Weighting
from owkg.metrics.median import Below
from owkg.metrics.query_sums import (
    Products,
    QueryMoments,
    QuerySums,
    Reader,
    moments_of,
    products_by_block,
    query_sums_by_ties,
    reader,
    task_weight,
)
from owkg.metrics.ties import Ties
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import padded_size
from owkg.ranks.tasks import Tasks

Averages = tuple[Measure, Weighting]
"""Measure that is averaged, and the weighting of the tasks."""

# Number of entries of the tables of ranks that are in memory at the same time.
_TABLE_ENTRIES = 2**24


class Gathered(ABC):
    """Sums for metrics of ranking tasks, in memory or in files.

    Attributes:
        tasks: number of tasks.
        queries: number of queries that the tasks belong to.
        tied: whether some task shares its score with other candidates.
    """

    tasks: int
    queries: int
    tied: bool

    @abstractmethod
    def moments(self, wanted: Sequence[Averages]) -> dict[Averages, dict[Ties, QueryMoments]]:
        """Moments of each measure of `wanted` that the tasks have, under each tie rule."""

    @abstractmethod
    def shapes(self, weighting: Weighting) -> Shapes | None:
        """Inputs of chance levels; None if there are too many to keep."""

    @abstractmethod
    def on_ranks(self, weighting: Weighting, rule: Ties) -> Float[np.ndarray, "halves"]:
        """Weight on each rank, as `owkg.metrics.median.rank_histogram` returns it."""

    @abstractmethod
    def below(self, weighting: Weighting, rule: Ties, rank: float) -> Below:
        """Sums over queries of their weight, and of their weight on ranks up to `rank`, the median."""


class InMemory(Gathered):
    """Sums for metrics of tasks that are in memory; a `Gathered`.

    Attributes:
        parts: sums over each query for the wanted measures, if they are kept.
    """

    def __init__(
        self, tasks: Tasks, rules: tuple[Ties, ...], *, by_query: bool, keep: bool, num_entities: int | None
    ) -> None:
        """Sorts the tasks; everything else is computed on demand.

        Args:
            tasks: at least one ranking task.
            rules: tie rules.
            by_query: True: sums over each query; False: only totals.
            keep: whether the sums over each query are kept (the bootstrap needs them).
            num_entities: N of PROBE's rank transformer; None: the number of candidates of each task.
        """
        self._whole: Block | Tasks = whole_block(tasks) if by_query else tasks
        self.all = self._whole.tasks if isinstance(self._whole, Block) else tasks
        self.tasks, self.queries, self.tied = len(tasks.optimistic), tasks.num_queries, tasks.tied
        self._rules, self._keep, self._num_entities = rules, keep, num_entities
        self._weights: dict[Weighting, np.ndarray | None] = {}
        self._histograms: dict[Weighting, dict] = {}
        self.parts: dict[Averages, dict[Ties, QuerySums]] = {}
        self._products: dict[Averages, tuple[dict[Ties, Products], float] | None] = {}

    @property
    def adds(self) -> bool:
        """Whether the sums can be added to those of other queries, without those of each query."""
        return isinstance(self._whole, Block) and not self._keep

    def products(self, wanted: Sequence[Averages]) -> dict[Averages, tuple[dict[Ties, Products], float]]:
        """Products of the wanted measures that the tasks have, computed once; see the function."""
        assert isinstance(self._whole, Block)
        if new := [one for one in wanted if one not in self._products]:
            self._products |= dict.fromkeys(new) | products(new, self._whole, self._rules, self._num_entities)
        return {one: found for one in wanted if (found := self._products[one])}

    def moments(self, wanted: Sequence[Averages]) -> dict[Averages, dict[Ties, QueryMoments]]:
        """Moments of the wanted measures, from sums over each query if `by_query` was set."""
        whole = self._whole
        if self.adds:
            return _moments(self.products(wanted), self.queries)
        result = {}
        for measure, weighting in wanted:
            if not isinstance(measure, RankWeight) and not isinstance(whole, Block):
                whole = whole_block(whole)  # lists are sorted for all measures together
            parts = query_sums_by_ties(
                measure,
                weighting,
                whole,
                self._rules,
                by_query=self._keep,
                num_entities=self._num_entities,
                histograms=self._histograms.setdefault(weighting, {}),
            )
            if parts is not None:
                result[measure, weighting] = moments_of(parts)
                if self._keep:
                    self.parts[measure, weighting] = parts
        return result

    def scaled(self, weighting: Weighting) -> bool:
        """Whether weights are multiplied by a number of their own, because they are very large or small."""
        plain, weight = task_weight(self.all, weighting, scaled=False), self.weight(weighting)
        return plain is not None and weight is not None and not np.array_equal(plain, weight)

    def weight(self, weighting: Weighting) -> np.ndarray | None:
        """Weight of each task; None: all weights are 1."""
        if weighting not in self._weights:
            self._weights[weighting] = task_weight(self.all, weighting)
        return self._weights[weighting]

    def shapes(self, weighting: Weighting) -> Shapes:
        """Candidates and weights of all tasks."""
        return Shapes(self.all.candidates, self.weight(weighting))

    def on_ranks(self, weighting: Weighting, rule: Ties) -> Float[np.ndarray, "halves"]:
        """Weight on each rank, counted once and cached."""
        counted = self._histograms.setdefault(weighting, {})
        if rule not in counted:
            counted[rule] = median.rank_histogram(self.all, rule, self.weight(weighting))
        return counted[rule]

    def below(self, weighting: Weighting, rule: Ties, rank: float) -> Below:
        """Sums over all queries."""
        return median.below(self.all, rule, self.weight(weighting), rank)


class Together(Gathered):
    """Sums for metrics of all tasks of several parts, added from theirs; a `Gathered`."""

    def __init__(self, parts: Sequence[InMemory]) -> None:
        """Keeps the parts.

        Args:
            parts: parts that share no query, with the same measures and rules, for which `addable` is true.
        """
        self._parts = parts
        self.tasks, self.queries = (
            sum(getattr(part, name) for part in parts) for name in ("tasks", "queries")
        )
        self.tied = any(part.tied for part in parts)

    @staticmethod
    def addable(parts: Sequence[InMemory], wanted: Iterable[Weighting]) -> bool:
        """Whether the sums of parts that share no query can be added: none has a scale of its own."""
        return all(part.adds for part in parts) and not any(
            part.scaled(one) for part in parts for one in wanted
        )

    def moments(self, wanted: Sequence[Averages]) -> dict[Averages, dict[Ties, QueryMoments]]:
        """Moments of the wanted measures that every part has."""
        own = [part.products(wanted) for part in self._parts]
        added = {}
        for one in wanted:
            if all(one in found for found in own):
                by_rule = {
                    rule: Products.of([found[one][0][rule] for found in own]) for rule in own[0][one][0]
                }
                added[one] = by_rule, sum(found[one][1] for found in own)
        return _moments(added, self.queries)

    def shapes(self, weighting: Weighting) -> Shapes:
        """Candidates and weights of all tasks."""
        own = [part.shapes(weighting) for part in self._parts]
        candidates = np.concatenate([part.candidates for part in own])
        if all(part.weight is None for part in own):
            return Shapes(candidates)
        weights = (np.ones(part.tasks) if part.weight is None else part.weight for part in own)
        return Shapes(candidates, np.concatenate(list(weights)))

    def on_ranks(self, weighting: Weighting, rule: Ties) -> Float[np.ndarray, "halves"]:
        """Weight on each rank, over all parts."""
        own = [part.on_ranks(weighting, rule) for part in self._parts]
        found = np.zeros(max(map(len, own)))
        for part in own:
            found[: len(part)] += part
        return found

    def below(self, weighting: Weighting, rule: Ties, rank: float) -> Below:
        """Sums over the queries of all parts."""
        return reduce(Below.plus, (part.below(weighting, rule, rank) for part in self._parts))


def _moments(
    found: dict[Averages, tuple[dict[Ties, Products], float]], queries: int
) -> dict[Averages, dict[Ties, QueryMoments]]:
    return {
        one: {rule: part.moments(worst, queries) for rule, part in by_rule.items()}
        for one, (by_rule, worst) in found.items()
    }


def products(
    wanted: Sequence[Averages],
    whole: Block,
    rules: tuple[Ties, ...],
    num_entities: int | None,
    *,
    scaled: bool = True,
) -> dict[Averages, tuple[dict[Ties, Products], float]]:
    """Inputs of the moments of each averaged measure that the tasks have.

    Args:
        wanted: averaged measures; no medians and no dispersions.
        whole: all tasks.
        rules: tie rules.
        num_entities: N of PROBE's rank transformer; None: the number of candidates of each task.
        scaled: as in `owkg.metrics.query_sums.task_weight`.

    Returns:
        For each measure, the products under each tie rule, and the sum over all tasks at their worst ranks.
    """
    result = {}
    together = max(1, _TABLE_ENTRIES // (3 * padded_size(int(whole.cases.candidates.max()))))
    for begin in range(0, len(wanted), together):
        readers: dict[Averages, Reader] = {
            one: read
            for one in wanted[begin : begin + together]
            if (read := reader(*one, whole, rules, num_entities=num_entities, scaled=scaled))
        }
        found = products_by_block(list(readers.values()), whole)
        for one, (by_rule, worst) in zip(readers, found, strict=True):
            result[one] = {rule: by_rule.get(rule, by_rule[rules[0]]) for rule in rules}, worst
    return result
