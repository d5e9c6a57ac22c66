"""Sums over the tasks of each query, from which averages, chance levels and intervals are computed."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.errors import ArgumentError
from owkg.metrics import queries
from owkg.metrics.blocks import Block, blocks, whole_block
from owkg.metrics.chance import rank_moments
from owkg.metrics.measures import MACRO, Measure, Probe, Weighting, probe_loss
from owkg.metrics.median import rank_histogram
from owkg.metrics.ties import Ties, half_rank_weights, rank_tables, weights_of_ranks
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import has_table, rank_weights
from owkg.ranks.tasks import Tasks


class QuerySums(NamedTuple):
    """Sums over the tasks of each query, of weights w and of rank weights h.

    Arrays have one entry for each query, or a single entry if only totals are wanted.

    Attributes:
        weight: sum of w.
        value: sum of w h.
        chance: sum of w E[h], with ranks uniform on 1 .. N.
        variance: sum of w^2 V[h], with ranks uniform on 1 .. N.
        best: sum of w h(1).
        worst: sum of w h(N) over all queries.
    """

    weight: Float[np.ndarray, "queries"]
    value: Float[np.ndarray, "queries"]
    chance: Float[np.ndarray, "queries"]
    variance: Float[np.ndarray, "queries"]
    best: Float[np.ndarray, "queries"]
    worst: float


# Logarithm of the largest power of a count for which weights are computed without scaling.
LARGEST_LOG = 200


def task_weight(
    tasks: Tasks, weighting: Weighting, *, scaled: bool = True
) -> Float[np.ndarray, "tasks"] | None:
    """Weight of each task; None: all weights are 1.

    Args:
        tasks: ranking tasks, with the popularity that the weighting needs.
        weighting: weighting, on top of each task's own weight.
        scaled: True (default): very large and small weights are brought near 1, because only their ratios
            count. Must be False for parts of a table, because their sums are added.

    Raises:
        ValueError: if the weighting needs a popularity that is not known.
    """
    weight = tasks.weight
    for name, counts, exponent in (
        ("popularity", tasks.popularity, -weighting.popularity),
        ("relation_popularity", tasks.relation_popularity, -weighting.relation_popularity),
        ("negatives", tasks.candidates, weighting.negatives),
    ):
        if exponent == 0:
            continue
        if counts is None:
            raise ValueError(
                f"a metric that weighs by {name.replace('_', ' ')} needs the column {name} in the rank "
                "table, or the graph from which it is counted (--kg, or owkg.ranks.annotated)."
            )
        base = counts + (-1.0 if name == "negatives" else weighting.epsilon)
        if scaled and abs(exponent) * np.log(max(base.max(), 2.0)) > LARGEST_LOG:
            # Only ratios count. With the largest at 1, no power overflows, and not all of them vanish.
            base = base / (base.min() if exponent < 0 else base.max())
        factor = base**exponent
        weight = factor if weight is None else weight * factor
    largest = 1.0 if weight is None else weight.max()
    if weight is None or not scaled or largest == 0 or 1e-100 < largest < 1e100:
        return weight
    # A tiny weight stays above 0.
    return np.where(weight > 0, np.maximum(weight / largest, np.finfo(np.float64).tiny), 0.0)


Reader = Callable[[Block], dict[Ties, QuerySums]]
"""Function from a block to the sums of a measure over each of its queries, under each tie rule."""


def _total(values: np.ndarray) -> np.ndarray:
    return values.sum(keepdims=True)


def reader(
    measure: Measure,
    weighting: Weighting,
    whole: Block,
    rules: tuple[Ties, ...],
    *,
    num_entities: int | None = None,
    scaled: bool = True,
) -> Reader | None:
    """Function that gives the sums of a measure for the queries of any block of `whole`.

    The tables of the measure are made once.

    Args:
        measure: averaged measure, not a median or a dispersion.
        weighting: weighting of the tasks.
        whole: all tasks.
        rules: tie rules.
        num_entities: N of PROBE's rank transformer, for all tasks. None: the number of candidates of each
            task.
        scaled: as in `task_weight`.

    Returns:
        The function; None if the measure is macro and the answers of some query do not form one list
        (`queries.answers_of`).
    """
    if isinstance(measure, MACRO):
        return _macro_reader(measure, whole, rules, scaled)
    if not isinstance(measure, RankWeight | Probe):
        raise ArgumentError("measure", f"must be an averaged measure, got {measure!r}.")
    metric = probe_loss(measure.sharpness) if isinstance(measure, Probe) else measure
    sizes = whole.cases.candidates
    mean, variance = rank_moments(metric, sizes)
    tables = rank_tables(metric, int(sizes.max()))
    first, scale, offset = float(tables.at(np.array([2]))[0]), None, 0.0
    if isinstance(measure, Probe):
        # PROBE is 1 - g(r) / g(N): the sum of the weights minus the sum of the scaled losses.
        scale, offset, first = _probe_scale(metric, sizes, num_entities), 1.0, 1.0
        mean, variance = offset + scale * mean, scale**2 * variance
    weight = task_weight(whole.tasks, weighting, scaled=scaled)
    of_case = whole.by_case(weighting, weight)
    last = tables.at(2 * sizes.astype(np.int64)) * (1.0 if scale is None else scale) + offset
    worst = float(np.dot(of_case, last))
    rules = rules if whole.tasks.tied else rules[:1]

    def read(block: Block) -> dict[Ties, QuerySums]:
        own, once, twice = block.weights(weighting, weight)
        weights = block.by_query(once)
        shared = {
            "weight": weights,
            "chance": block.by_query(once * mean[block.case]),
            "variance": block.by_query(twice * variance[block.case]),
            "best": first * weights,
            "worst": worst,
        }
        found: dict[Ties, QuerySums] = {}
        of_lists: np.ndarray | None = None
        for rule in rules:

            def summed(block: Block, own: np.ndarray | None, rule: Ties = rule) -> np.ndarray:
                of_ranks = weights_of_ranks(tables, block.tasks, rule)
                return block.by_list(of_ranks if own is None else of_ranks * own)

            value = of_lists = _by_list(block, own, of_lists, summed)
            if scale is not None:
                value = offset * once + scale[block.case] * value
            found[rule] = QuerySums(value=block.by_query(value), **shared)
        return found

    return read


def _by_list(
    block: Block,
    own: np.ndarray | None,
    other: np.ndarray | None,
    values: Callable[[Block, np.ndarray | None], np.ndarray],
) -> np.ndarray:
    """Value of each list under a tie rule.

    Args:
        block: the block.
        own: weight of each task of the block; None: all are 1.
        other: values under another tie rule, which only differ in lists with ties. None: not known.
        values: function from a block and the weights of its tasks to the values of its lists.
    """
    if other is None or block.tied is None:
        return values(block, own)
    tied = block.tied
    if not len(tied.lists):
        return other
    found = other.copy()
    found[tied.lists] = values(tied.block, None if own is None else own[tied.tasks])
    return found


def _macro_reader(
    measure: queries.Macro, whole: Block, rules: tuple[Ties, ...], scaled: bool
) -> Reader | None:
    if not whole.listed:
        return None
    measure = queries.shortened(measure, whole.cases)
    mean, variance = queries.list_chance(measure, whole.cases)
    best, last = queries.best_value(measure, whole.cases), queries.worst_value(measure, whole.cases)
    longest = int((whole.cases.candidates + whole.cases.answers).max())
    tables = rank_tables(measure.metric, longest) if isinstance(measure, queries.BestAnswer) else None
    weight = task_weight(whole.tasks, Weighting(), scaled=scaled)
    on_lists = whole.weights(Weighting(), weight)[1] / whole.answers
    worst = float(np.dot(np.bincount(whole.case, on_lists, len(last)), last))
    rules = rules if whole.tasks.tied else rules[:1]

    def read(block: Block) -> dict[Ties, QuerySums]:
        # The weight of a list is the mean weight of its tasks.
        own = None if weight is None else block.weights(Weighting(), weight)[1] / block.answers
        ones = np.ones(len(block.first)) if own is None else own

        def total(by_list: np.ndarray, weigh: np.ndarray | None = own) -> np.ndarray:
            return block.by_query(by_list if weigh is None else by_list * weigh)

        shared = {
            "weight": block.by_query(ones),
            "chance": total(mean[block.case]),
            "variance": total(variance[block.case], None if own is None else own**2),
            "best": total(best[block.case]),
            "worst": worst,
        }
        found: dict[Ties, QuerySums] = {}
        of_lists: np.ndarray | None = None
        for rule in rules:

            def listed(block: Block, own: np.ndarray | None, rule: Ties = rule) -> np.ndarray:
                return queries.values(measure, block, rule, tables)

            of_lists = _by_list(block, None, of_lists, listed)
            found[rule] = QuerySums(value=total(of_lists), **shared)
        return found

    return read


def _probe_scale(loss: RankWeight, sizes: np.ndarray, num_entities: int | None) -> np.ndarray:
    """Scale -1 / g(N) of PROBE's score 1 - g(r) / g(N) at rank r; with one candidate the score is 1."""
    if num_entities is not None:
        if num_entities < sizes.max():
            raise ArgumentError(
                "num_entities",
                f"must be at least the most candidates of a task, {int(sizes.max())}, got {num_entities}.",
            )
        sizes = np.full(len(sizes), num_entities)
    last = rank_weights(loss, sizes)
    return np.divide(-1.0, last, out=np.zeros_like(last), where=sizes > 1)


def query_sums_by_ties(
    measure: Measure,
    weighting: Weighting,
    tasks: Tasks | Block,
    rules: tuple[Ties, ...],
    *,
    by_query: bool,
    num_entities: int | None = None,
    histograms: dict[Any, np.ndarray] | None = None,
) -> dict[Ties, QuerySums] | None:
    """Sums of a measure under each tie rule; only `value` differs between tie rules.

    Args:
        measure: averaged measure, not a median or a dispersion.
        weighting: weighting of the tasks.
        tasks: at least one ranking task.
        rules: tie rules.
        by_query: True: sums over each query; False: only totals, as arrays of one entry.
        num_entities: N of PROBE's rank transformer, for all tasks. None: the number of candidates of each
            task.
        histograms: dictionary kept between calls with the same tasks and weighting, so that ranks are counted
            once.

    Returns:
        The sums by tie rule; None if the measure is macro and the answers of some query do not form one list
        (`queries.answers_of`).
    """
    own = tasks.tasks if isinstance(tasks, Block) else tasks
    if not by_query and isinstance(measure, RankWeight) and has_table(own.candidates.max()):
        return _in_all(measure, weighting, own, rules, {} if histograms is None else histograms)
    whole = tasks if isinstance(tasks, Block) else whole_block(tasks)
    read = reader(measure, weighting, whole, rules, num_entities=num_entities)
    if read is None:
        return None
    found = read(whole)
    if not by_query:
        found = {
            rule: QuerySums(*[_total(part) for part in parts[:5]], worst=parts.worst)
            for rule, parts in found.items()
        }
    return {rule: found.get(rule, found[rules[0]]) for rule in rules}


def _in_all(
    metric: RankWeight,
    weighting: Weighting,
    tasks: Tasks,
    rules: tuple[Ties, ...],
    histograms: dict[Any, np.ndarray],
) -> dict[Ties, QuerySums]:
    """Sums over all tasks; the weight on each rank is counted once for all metrics."""
    weight = task_weight(tasks, weighting)
    size = int(tasks.candidates.max()) + 1

    def histogram(name: Any, count: Callable[[], np.ndarray]) -> np.ndarray:
        if name not in histograms:
            histograms[name] = count()
        return histograms[name]

    def of_candidates(table: np.ndarray, squared: bool) -> np.ndarray:
        power = None if weight is None else weight**2 if squared else weight
        counted = histogram(squared, lambda: np.bincount(tasks.candidates, power, size).astype(np.float64))
        return _total(counted * table[:size])

    mean, variance = rank_moments(metric, np.arange(size))
    halves = half_rank_weights(metric, size - 1)
    whole = np.array([float(len(tasks.optimistic)) if weight is None else weight.sum()])
    shared = {
        "weight": whole,
        "chance": of_candidates(mean, False),
        "variance": of_candidates(variance, True),
        "best": float(halves[2]) * whole,
        "worst": float(of_candidates(halves[::2], False)[0]),
    }

    def value(rule: Ties) -> np.ndarray:
        on_ranks = histogram(rule, lambda: rank_histogram(tasks, rule, weight))
        return _total(on_ranks * halves[: len(on_ranks)])

    if not tasks.tied:
        return dict.fromkeys(rules, QuerySums(value=value(rules[0]), **shared))
    return {rule: QuerySums(value=value(rule), **shared) for rule in rules}


class QueryMoments(NamedTuple):
    """Sums over queries of the parts of `QuerySums` and of their products, enough for a standard error.

    The parts are in the order of `QuerySums`: weight, value, chance, variance, best. In `gram` and `heavy`,
    each part except the weight is reduced by its mean times the weight, so that large parts that differ
    little keep their digits.

    Attributes:
        totals: sum of each part, not reduced.
        gram: for each pair of parts, the sum of their product minus the product of their sums divided by the
            number of queries.
        worst: as in `QuerySums`.
        queries: number of queries; 1 if only totals are known.
        effective: number of queries of equal weight that carry as much information (Kish 1965), (sum w)^2 /
            sum w^2.
        heaviest: largest share of the weight that one query has.
        heavy: parts of the heaviest queries, at most `HEAVY` of them, if weights differ.
    """

    totals: Float[np.ndarray, "5"]
    gram: Float[np.ndarray, "5 5"]
    worst: float
    queries: int
    effective: float
    heaviest: float
    heavy: Float[np.ndarray, "heavy 5"]

    def centred(self, slope: Float[np.ndarray, "5"]) -> Float[np.ndarray, "5"]:
        """Slope of a number in the parts as `gram` has them, from its slope in the totals."""
        return np.concatenate([[slope[0] + _means(self.totals) @ slope], slope[1:]])

    def heavy_share(self, slope: Float[np.ndarray, "5"]) -> float:
        """Share of the variance of a number that its heaviest queries carry, if they differ from the rest.

        The heaviest queries are ten, or a tenth of all queries if that is fewer. The share is 0 unless the
        ratio of their sums and the same ratio of all other queries are more than two standard errors apart.
        If the number depends on the weight of a query, the true error is larger than the standard error in a
        sample that misses queries as heavy as these.

        Args:
            slope: slope of the number in the totals.
        """
        most = min(HEAVY - 1, max(1, self.queries // 10))
        if len(self.heavy) <= most or self.queries < 4:
            return 0.0
        # Equally heavy queries are taken together or not at all, so that their order does not matter.
        some = self.heavy[self.heavy[:, 0] > self.heavy[most, 0] * (1 + 1e-9)]
        if not len(some):
            return 0.0
        slope = self.centred(slope)
        each, weight = some @ slope, some[:, 0]
        variance = float(slope @ self.gram @ slope)
        if not variance > 0:
            return 0.0
        rest = self.totals[0] - weight.sum()
        total, queries = float(slope[0] * self.totals[0]), self.queries
        ratio, other = each.sum() / weight.sum(), (total - each.sum()) / rest
        own = np.sum((each - ratio * weight) ** 2) * len(some) / max(len(some) - 1, 1) / weight.sum() ** 2
        # Squares of the other queries around their own ratio, from the squares of all queries.
        square = variance + total**2 / queries - each @ each
        crossed = float(slope @ self.gram[:, 0]) + total * self.totals[0] / queries - each @ weight
        weights = self.gram[0, 0] + self.totals[0] ** 2 / queries - weight @ weight
        others = float(square - 2 * other * crossed + other**2 * weights) / rest**2
        apart = (ratio - other) ** 2
        share = np.sum((each - total / queries) ** 2) / variance
        return float(share) if apart > 4 * max(own + others, 0.0) else 0.0


def _added(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Sum of arrays of one shape, added in pairs."""
    return np.stack(arrays, axis=-1).sum(axis=-1)


def _means(totals: Float[np.ndarray, "parts"]) -> Float[np.ndarray, "parts"]:
    """Means that the parts are centred on, in units of the weight; 0 for the weight."""
    means = totals / totals[0] if totals[0] > 0 else np.zeros(len(totals))
    means[0] = 0
    return means


class Products(NamedTuple):
    """Sums over some queries of the parts and of their products; `QueryMoments` are made from them.

    Attributes:
        totals: sum of each part.
        products: sum of the product of each pair of parts, each except the weight reduced by its mean times
            the weight.
        heaviest: the largest weight of a query.
        heavy: parts of the heaviest queries, not reduced, at most `HEAVY` of them, if weights differ.
    """

    totals: Float[np.ndarray, "5"]
    products: Float[np.ndarray, "5 5"]
    heaviest: float
    heavy: Float[np.ndarray, "heavy 5"]

    @classmethod
    def of(cls, several: Sequence["Products"]) -> "Products":
        """Products of all queries, from the products of groups of queries."""
        totals = _added([one.totals for one in several])
        products = _added([one._around(_means(totals)) for one in several])
        heavy = np.concatenate([one.heavy for one in several])
        heavy = heavy[np.argsort(-heavy[:, 0], kind="stable")[:HEAVY]]
        return cls(totals, products, max(one.heaviest for one in several), heavy)

    @classmethod
    def of_one(cls, totals: Float[np.ndarray, "5"]) -> "Products":
        """Products of a single query with these sums."""
        return cls(totals, np.diag([float(totals[0]) ** 2, 0, 0, 0, 0]), float(totals[0]), np.empty((0, 5)))

    def _around(self, means: Float[np.ndarray, "5"]) -> Float[np.ndarray, "5 5"]:
        """Products of the parts, each reduced by other means times the weight."""
        more = _means(self.totals) - means
        crossed = np.outer(more, self.products[0])
        return self.products + crossed + crossed.T + np.outer(more, more) * self.products[0, 0]

    def moments(self, worst: float, queries: int) -> QueryMoments:
        """Moments of this many queries, once all of them are included."""
        totals, products, heaviest, heavy = self
        if not totals[0] > 0:
            return QueryMoments(totals, products, worst, queries, 0.0, 0.0, np.empty((0, 5)))
        effective = totals[0] ** 2 / products[0, 0]
        gram = products.copy()
        gram[0, 0] -= totals[0] ** 2 / queries
        if queries * heaviest <= totals[0] * (1 + 1e-12):  # equal weights: nothing varies with them
            gram[0] = gram[:, 0] = 0
            heavy = np.empty((0, 5))
        share = float(heaviest / totals[0])
        heavy = heavy - np.outer(heavy[:, 0], _means(totals))
        return QueryMoments(totals, gram, worst, queries, float(effective), share, heavy)


_ORDER = [1, 0, 2, 3, 4]  # value, weight, ... -> weight, value, ...

HEAVY = 11
"""Number of heaviest queries whose parts are kept: ten, and the next one."""

_Heavy = list[tuple[np.ndarray, np.ndarray]]
"""Weights of queries and indices of the heaviest, found once for all measures of one weighting."""


def _heaviest(weight: Float[np.ndarray, "queries"], known: _Heavy) -> Int[np.ndarray, "heavy"]:
    for other, found in known:
        if np.array_equal(weight, other):
            return found
    few = min(HEAVY, len(weight))
    some = np.flatnonzero(weight >= np.partition(weight, len(weight) - few)[-few])
    found = some[np.argsort(-weight[some], kind="stable")[:HEAVY]]
    known.append((weight, found))
    return found


def _products(by_ties: dict[Ties, QuerySums], known: _Heavy | None = None) -> dict[Ties, Products]:
    """Products under each tie rule; sums that the tie rules share are computed once."""
    any_parts = next(iter(by_ties.values()))
    shared = np.stack([any_parts.weight, any_parts.chance, any_parts.variance, any_parts.best])
    sums = shared.sum(axis=1)
    at = _heaviest(any_parts.weight, [] if known is None else known)
    heaviest, heavy = float(any_parts.weight.max()), shared[:, at]
    # Centred: squares of large parts that differ little would lose the digits that differ.
    shared[1:] -= _means(sums)[1:, None] * any_parts.weight
    of_shared = _products_of(shared, shared)
    found: dict[int, Products] = {}
    for parts in by_ties.values():
        if id(parts) in found:
            continue
        totals = np.concatenate([[parts.value.sum()], sums])[_ORDER]
        value = parts.value - _means(totals)[1] * parts.weight
        cross = _products_of(shared, value[None])[:, 0]
        square = _products_of(value[None], value[None])[0, 0]
        products = np.block([[square, cross], [cross[:, None], of_shared]])
        most = np.stack([parts.value[at], *heavy], axis=1)[:, _ORDER]
        found[id(parts)] = Products(totals, products[np.ix_(_ORDER, _ORDER)], heaviest, most)
    return {rule: found[id(parts)] for rule, parts in by_ties.items()}


def _products_of(
    one: Float[np.ndarray, "rows queries"], other: Float[np.ndarray, "columns queries"]
) -> Float[np.ndarray, "rows columns"]:
    """Sum over queries of the product of each pair of rows.

    The sum is pairwise because most of it cancels in the end: einsum and BLAS leave errors a hundred times as
    large. BLAS would also wake its threads for each of these small products.
    """
    found = np.empty((len(one), len(other)))
    for i, row in enumerate(one):
        for j, column in enumerate(other):
            found[i, j] = found[j, i] if one is other and j < i else (row * column).sum()
    return found


def moments_of(by_ties: dict[Ties, QuerySums]) -> dict[Ties, QueryMoments]:
    """Moments of the parts of all queries, under each tie rule."""
    found = _products(by_ties)
    return {rule: found[rule].moments(parts.worst, len(parts.weight)) for rule, parts in by_ties.items()}


def products_by_block(readers: Sequence[Reader], whole: Block) -> list[tuple[dict[Ties, Products], float]]:
    """Products of several measures, with one block in memory for each processor.

    The blocks, and the order in which they are added, depend on the tasks alone.

    Returns:
        For each measure, the products under each tie rule, and the sum over all tasks at their worst ranks.
    """

    def of_block(block: Block) -> list[tuple[dict[Ties, Products], float]]:
        found, known = [read(block) for read in readers], []
        return [(_products(parts, known), next(iter(parts.values())).worst) for parts in found]

    # Blocks are not kept, because their cached sums are as large as the tasks.
    parts = blocks(whole)
    if whole.num_queries <= 1000:  # threads take longer to start
        done = list(map(of_block, parts))
    else:
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            done = list(pool.map(of_block, parts))
    result = []
    for i in range(len(readers)):
        first, worst = done[0][i]
        result.append(({rule: Products.of([one[i][0][rule] for one in done]) for rule in first}, worst))
    return result
