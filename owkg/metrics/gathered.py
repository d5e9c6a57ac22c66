"""What metrics take of ranking tasks: sums over queries, the weight on each rank, the shapes of tasks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

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
"""What is averaged, and the weights of the tasks."""

# Entries of the tables of ranks that are in memory at a time.
_TABLE_ENTRIES = 2**24


class Gathered(ABC):
    """What metrics take of ranking tasks, wherever these are.

    Attributes:
        tasks: how many.
        queries: how many they belong to.
        tied: whether some task shares its score with other candidates.
    """

    tasks: int
    queries: int
    tied: bool

    @abstractmethod
    def moments(self, wanted: Sequence[Averages]) -> dict[Averages, dict[Ties, QueryMoments]]:
        """The moments of what the tasks have of `wanted`, under each tie rule."""

    @abstractmethod
    def shapes(self, weighting: Weighting) -> Shapes | None:
        """What chance levels depend on; None where it is too much to be kept."""

    @abstractmethod
    def on_ranks(self, weighting: Weighting, rule: Ties) -> Float[np.ndarray, "halves"]:
        """The weight on each rank, as `owkg.metrics.median.rank_histogram`."""

    @abstractmethod
    def below(self, weighting: Weighting, rule: Ties, rank: float) -> Below:
        """Sums over queries of their weight, and of that on ranks up to `rank`, the median."""


class InMemory(Gathered):
    """What metrics take of tasks that are in memory; a `Gathered`.

    Attributes:
        parts: the sums over each query of what was asked for, where they are kept.
    """

    def __init__(
        self, tasks: Tasks, rules: tuple[Ties, ...], *, by_query: bool, keep: bool, num_entities: int | None
    ) -> None:
        """Nothing is computed yet but the order of the tasks.

        Args:
            tasks: at least one.
            rules: of ties.
            by_query: whether sums over each query are asked for, else only totals.
            keep: whether they are kept, for the bootstrap.
            num_entities: N of PROBE's rank transformer.
        """
        self._whole: Block | Tasks = whole_block(tasks) if by_query else tasks
        self.all = self._whole.tasks if isinstance(self._whole, Block) else tasks
        self.tasks, self.queries, self.tied = len(tasks.optimistic), tasks.num_queries, tasks.tied
        self._rules, self._keep, self._num_entities = rules, keep, num_entities
        self._weights: dict[Weighting, np.ndarray | None] = {}
        self._histograms: dict[Weighting, dict] = {}
        self.parts: dict[Averages, dict[Ties, QuerySums]] = {}

    def moments(self, wanted: Sequence[Averages]) -> dict[Averages, dict[Ties, QueryMoments]]:
        """The moments, from sums over each query where these are asked for."""
        whole = self._whole
        if isinstance(whole, Block) and not self._keep:
            return {
                one: {rule: part.moments(worst, whole.num_queries) for rule, part in by_rule.items()}
                for one, (by_rule, worst) in products(wanted, whole, self._rules, self._num_entities).items()
            }
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

    def weight(self, weighting: Weighting) -> np.ndarray | None:
        """The weight of each task; None: all 1."""
        if weighting not in self._weights:
            self._weights[weighting] = task_weight(self.all, weighting)
        return self._weights[weighting]

    def shapes(self, weighting: Weighting) -> Shapes:
        """The candidates and weights of all tasks."""
        return Shapes(self.all.candidates, self.weight(weighting))

    def on_ranks(self, weighting: Weighting, rule: Ties) -> Float[np.ndarray, "halves"]:
        """The weight on each rank, counted once."""
        counted = self._histograms.setdefault(weighting, {})
        if rule not in counted:
            counted[rule] = median.rank_histogram(self.all, rule, self.weight(weighting))
        return counted[rule]

    def below(self, weighting: Weighting, rule: Ties, rank: float) -> Below:
        """Sums over all queries."""
        return median.below(self.all, rule, self.weight(weighting), rank)


def products(
    wanted: Sequence[Averages],
    whole: Block,
    rules: tuple[Ties, ...],
    num_entities: int | None,
    *,
    scaled: bool = True,
) -> dict[Averages, tuple[dict[Ties, Products], float]]:
    """What the moments of each averaged measure that the tasks have are made of.

    Args:
        wanted: no medians, nothing of how ranks scatter.
        whole: all tasks.
        rules: of ties.
        num_entities: N of PROBE's rank transformer.
        scaled: as of `owkg.metrics.query_sums.task_weight`.

    Returns:
        Of each, the products under each tie rule, and what all tasks at their worst sum to.
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
