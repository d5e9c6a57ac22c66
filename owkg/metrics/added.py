"""Sums for metrics, added over parts of a rank table that each hold whole queries."""

from collections.abc import Sequence

import numpy as np
import polars as pl
from jaxtyping import Float

from owkg.metrics import median
from owkg.metrics.blocks import whole_block
from owkg.metrics.chance import Shapes
from owkg.metrics.evaluate import EvaluationOptions
from owkg.metrics.gathered import Averages, Gathered, products
from owkg.metrics.measures import Dispersion, Median, Weighting
from owkg.metrics.median import Below
from owkg.metrics.query_sums import Products, QueryMoments, task_weight
from owkg.metrics.ties import Ties
from owkg.rank_weights.rank_weight import RankWeight
from owkg.ranks.tasks import Tasks

# Largest number of distinct pairs of candidates and weight that is kept for chance levels.
_SHAPES = 2**22


class Added(Gathered):
    """Sums for metrics over the parts added so far, in memory that does not grow with their tasks.

    Sums over queries and the weight on each rank are added; medians are computed from the weight on each
    rank. The standard error of a median needs a second pass over the parts (`add_below`).
    """

    def __init__(self, options: EvaluationOptions) -> None:
        """Creates empty sums.

        Args:
            options: the metrics and tie rules that are wanted. A bootstrap is not possible because it needs
                every query.
        """
        self.tasks, self.queries, self.tied = 0, 0, False
        self._options = options
        self._products: dict[Averages, tuple[dict[Ties, Products], float]] = {}
        self._lacking: set[Averages] = set()
        self._on_ranks: dict[tuple[Weighting, Ties], np.ndarray] = {}
        self._shapes: dict[Weighting, pl.DataFrame | None] = {}
        self._below: dict[tuple[Weighting, Ties], Below] = {}
        self._medians: dict[tuple[Weighting, Ties], float] = {}
        kinds = list(options.groups)
        self._of_medians = {weighting for measure, weighting in kinds if isinstance(measure, Median)}
        counted = {weighting for measure, weighting in kinds if isinstance(measure, Dispersion)}
        self._counted = self._of_medians | counted
        self._of_chance = self._of_medians | {
            weighting
            for measure, weighting in kinds
            if isinstance(measure, RankWeight) and measure.link is not None
        }

    @property
    def tables(self) -> int:
        """Number of tables of the weight on each rank that are kept."""
        return len(self._counted) * len(self._options.rules)

    @property
    def needs_second_pass(self) -> bool:
        """Whether `add_below` has to see all parts."""
        return bool(self._of_medians)

    def add(self, tasks: Tasks) -> None:
        """Adds at least one task; all tasks of a query must come in the same call."""
        whole = whole_block(tasks)
        tasks = whole.tasks
        rules, wanted = self._options.rules, self._options.averaged
        self.tasks += len(tasks.optimistic)
        self.queries += tasks.num_queries
        tied = tasks.tied
        self.tied |= tied
        found = products(wanted, whole, rules, self._options.num_entities, scaled=False)
        self._lacking |= set(wanted) - set(found)
        for one, (by_rule, worst) in found.items():
            if one in self._products:
                before, so_far = self._products[one]
                by_rule = {rule: Products.of([before[rule], by_rule[rule]]) for rule in rules}
                worst += so_far
            self._products[one] = by_rule, worst
        for weighting in self._counted | self._of_chance:
            weight = task_weight(tasks, weighting, scaled=False)
            if weighting in self._counted:
                self._count(tasks, weighting, weight, tied)
            if weighting in self._of_chance:
                self._add_shapes(tasks, weighting, weight)

    def _count(self, tasks: Tasks, weighting: Weighting, weight: np.ndarray | None, tied: bool) -> None:
        rules = self._options.rules
        histograms = {
            rule: median.rank_histogram(tasks, rule, weight) for rule in (rules if tied else rules[:1])
        }
        for rule in rules:
            more = histograms.get(rule, histograms[rules[0]])
            before = self._on_ranks.get((weighting, rule), np.zeros(0))
            longer, shorter = (before, more) if len(before) > len(more) else (more, before)
            total = longer.copy()
            total[: len(shorter)] += shorter
            self._on_ranks[weighting, rule] = total

    def _add_shapes(self, tasks: Tasks, weighting: Weighting, weight: np.ndarray | None) -> None:
        before = self._shapes.get(weighting, pl.DataFrame())
        if before is None:
            return
        columns: dict[str, np.ndarray] = {"candidates": tasks.candidates.astype(np.int64, copy=False)}
        if weight is not None:
            columns["weight"] = weight.astype(np.float64, copy=False)
        more = pl.DataFrame(columns).group_by(list(columns)).agg(many=pl.len().cast(pl.Int64))
        # A part without weights gets weight 1, because another part may have weights (a repeated row has 2).
        parts = [part for part in (before, more) if len(part)]
        names = ["candidates", *(["weight"] if any("weight" in part.columns for part in parts) else [])]
        filled = [
            part if len(part.columns) > len(names) else part.with_columns(weight=pl.lit(1.0))
            for part in parts
        ]
        merged = pl.concat([part.select(*names, "many") for part in filled])
        merged = merged.group_by(names).agg(pl.col("many").sum())
        self._shapes[weighting] = merged if len(merged) <= _SHAPES else None

    def add_below(self, tasks: Tasks) -> None:
        """Adds the sums for standard errors of medians; call it once `add` has seen all parts."""
        weights = {weighting: task_weight(tasks, weighting, scaled=False) for weighting in self._of_medians}
        for weighting, weight in weights.items():
            for rule in self._options.rules if self.tied else self._options.rules[:1]:
                key = weighting, rule
                if key not in self._medians:
                    self._medians[key] = median.quantile(median.distribution(self._on_ranks[key]), 0.5)
                more = median.below(tasks, rule, weight, self._medians[key])
                self._below[key] = self._below[key].plus(more) if key in self._below else more

    def moments(self, wanted: Sequence[Averages]) -> dict[Averages, dict[Ties, QueryMoments]]:
        """Moments of the wanted measures that every part has."""
        found = {}
        for one in wanted:
            if one in self._lacking:
                continue
            by_rule, worst = self._products[one]
            if self._options.level is None:  # all tasks as one query
                by_rule = {rule: Products.of_one(part.totals) for rule, part in by_rule.items()}
            queries = 1 if self._options.level is None else self.queries
            found[one] = {rule: part.moments(worst, queries) for rule, part in by_rule.items()}
        return found

    def shapes(self, weighting: Weighting) -> Shapes | None:
        """Distinct pairs of candidates and weight; None if there are too many to keep."""
        frame = self._shapes[weighting]
        if frame is None:
            return None
        frame = frame.sort(frame.columns)
        weight = frame["weight"].to_numpy() if "weight" in frame.columns else None
        return Shapes(frame["candidates"].to_numpy(), weight, frame["many"].to_numpy())

    def on_ranks(self, weighting: Weighting, rule: Ties) -> Float[np.ndarray, "halves"]:
        """Weight on each rank, over all parts."""
        return self._on_ranks[weighting, rule]

    def below(self, weighting: Weighting, rule: Ties, rank: float) -> Below:
        """Sums over the queries of all parts; `rank` is the median that `add_below` used."""
        return self._below[weighting, rule]
