"""Sums over the tasks of each query: what averages, chance levels and intervals are computed from."""

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
    """Sums over the tasks of each query, of weights w and of the weights h of ranks.

    Of one query each, or one entry for all where nothing but the totals is asked.

    Attributes:
        weight: sum of w.
        value: sum of w h.
        chance: sum of w E[h], ranks uniform on 1 .. N.
        variance: sum of w^2 V[h], likewise.
        best: sum of w h(1).
        worst: sum of w h(N), over all queries.
    """

    weight: Float[np.ndarray, "queries"]
    value: Float[np.ndarray, "queries"]
    chance: Float[np.ndarray, "queries"]
    variance: Float[np.ndarray, "queries"]
    best: Float[np.ndarray, "queries"]
    worst: float


# Logarithm of the largest power of a count that weights are computed with as it is.
LARGEST_LOG = 200


def task_weight(
    tasks: Tasks, weighting: Weighting, *, scaled: bool = True
) -> Float[np.ndarray, "tasks"] | None:
    """The weight of each task; None: all 1.

    Args:
        tasks: with what the weighting asks for.
        weighting: beside the weight of each task.
        scaled: whether very large and small weights are brought near 1, as only their ratios count; parts of
            a table, whose sums are added, must not be.

    Raises:
        ValueError: if the weighting asks for a popularity that is not known.
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
                "table, or the graph that it is counted in (--kg, or owkg.ranks.annotated)."
            )
        base = counts + (-1.0 if name == "negatives" else weighting.epsilon)
        if scaled and abs(exponent) * np.log(max(base.max(), 2.0)) > LARGEST_LOG:
            # Only ratios count; with the largest at 1 no power overflows, nor do all of them vanish.
            base = base / (base.min() if exponent < 0 else base.max())
        factor = base**exponent
        weight = factor if weight is None else weight * factor
    largest = 1.0 if weight is None else weight.max()
    if weight is None or not scaled or largest == 0 or 1e-100 < largest < 1e100:
        return weight
    # However little, it is some weight.
    return np.where(weight > 0, np.maximum(weight / largest, np.finfo(np.float64).tiny), 0.0)


Reader = Callable[[Block], dict[Ties, QuerySums]]
"""The parts of a measure, of each query of a block, under each tie rule."""


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
    """What gives the parts of a measure for the queries of any block of `whole`; its tables are made once.

    Args:
        measure: an averaged one: not a median, not a dispersion.
        weighting: of the tasks.
        whole: all tasks.
        rules: of ties.
        num_entities: N of PROBE's rank transformer, for all tasks; their candidates when None.
        scaled: as of `task_weight`.

    Returns:
        None where the measure is macro and the queries have no one list (`queries.answers_of`).
    """
    if isinstance(measure, MACRO):
        return _macro_reader(measure, whole, rules, scaled)
    if not isinstance(measure, RankWeight | Probe):
        raise ArgumentError("measure", f"must be an averaged one, got {measure!r}.")
    metric = probe_loss(measure.sharpness) if isinstance(measure, Probe) else measure
    sizes = whole.cases.candidates
    mean, variance = rank_moments(metric, sizes)
    tables = rank_tables(metric, int(sizes.max()))
    first, scale, offset = float(tables.at(np.array([2]))[0]), None, 0.0
    if isinstance(measure, Probe):
        # PROBE is 1 - g(r) / g(N): one for each weight, less what the scaled losses sum to.
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
        found = {}
        for rule in rules:
            of_ranks = weights_of_ranks(tables, block.tasks, rule)
            value = block.by_list(of_ranks if own is None else of_ranks * own)
            if scale is not None:
                value = offset * once + scale[block.case] * value
            found[rule] = QuerySums(value=block.by_query(value), **shared)
        return found

    return read


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
        # A list weighs as its tasks do on average.
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
        return {
            rule: QuerySums(value=total(queries.values(measure, block, rule, tables)), **shared)
            for rule in rules
        }

    return read


def _probe_scale(loss: RankWeight, sizes: np.ndarray, num_entities: int | None) -> np.ndarray:
    """-1 / g(N): PROBE's score of rank r is 1 - g(r) / g(N); with one candidate it is 1."""
    if num_entities is not None:
        if num_entities < sizes.max():
            raise ArgumentError(
                "num_entities",
                f"must be at least the candidates of every task, {int(sizes.max())}, got {num_entities}.",
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
    """The sums of a measure under each tie rule; only `value` differs between them.

    Args:
        measure: an averaged one: not a median, not a dispersion.
        weighting: of the tasks.
        tasks: at least one.
        rules: of ties.
        by_query: False: only the totals, arrays of one entry.
        num_entities: N of PROBE's rank transformer, for all tasks; their candidates when None.
        histograms: kept between calls with the same tasks and weighting, so that ranks are counted once.

    Returns:
        None where the measure is macro and the queries have no one list (`queries.answers_of`).
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
    """Sums over all tasks: how much weight lies on each rank is counted once, for every metric."""
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
    """Sums over queries of the parts, and of their products: all that a standard error takes.

    The parts are in the order of `QuerySums`: weight, value, chance, variance, best. Each but the weight is
    taken less its mean times the weight in `gram` and `heavy`, so that large parts that differ little keep
    their digits.

    Attributes:
        totals: sum of each part, as it is.
        gram: sum of the product of each two, less the product of their sums over the number of queries.
        worst: as in `QuerySums`.
        queries: how many; 1 where only totals are known.
        effective: how many queries of equal weight say as much (Kish 1965), (sum w)^2 / sum w^2.
        heaviest: the largest share of the weight that one query has.
        heavy: the parts of the heaviest queries, at most `HEAVY`, where weights differ.
    """

    totals: Float[np.ndarray, "5"]
    gram: Float[np.ndarray, "5 5"]
    worst: float
    queries: int
    effective: float
    heaviest: float
    heavy: Float[np.ndarray, "heavy 5"]

    def centred(self, slope: Float[np.ndarray, "5"]) -> Float[np.ndarray, "5"]:
        """The slope of a number in the parts that `gram` has, from that in the totals."""
        return np.concatenate([[slope[0] + _means(self.totals) @ slope], slope[1:]])

    def heavy_share(self, slope: Float[np.ndarray, "5"]) -> float:
        """The share of the variance of a number that its heaviest queries carry, if they differ from others.

        These are ten queries, or a tenth of all if that is less. 0 unless the ratio of their sums and that of
        the others are more than two standard errors apart. If the number depends on the weight of a query, a
        sample without the heaviest queries of its kind misses more than its standard error says.

        Args:
            slope: of the number in the totals.
        """
        most = min(HEAVY - 1, max(1, self.queries // 10))
        if len(self.heavy) <= most or self.queries < 4:
            return 0.0
        # Of equally heavy queries all or none, so that their order does not matter.
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
        # Squares of the others, around their own ratio, from those of all.
        square = variance + total**2 / queries - each @ each
        crossed = float(slope @ self.gram[:, 0]) + total * self.totals[0] / queries - each @ weight
        weights = self.gram[0, 0] + self.totals[0] ** 2 / queries - weight @ weight
        others = float(square - 2 * other * crossed + other**2 * weights) / rest**2
        apart = (ratio - other) ** 2
        share = np.sum((each - total / queries) ** 2) / variance
        return float(share) if apart > 4 * max(own + others, 0.0) else 0.0


def _added(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The sum of arrays of one shape, in pairs."""
    return np.stack(arrays, axis=-1).sum(axis=-1)


def _means(totals: Float[np.ndarray, "parts"]) -> Float[np.ndarray, "parts"]:
    """What the parts are centred on, in units of the weight; 0 for the weight."""
    means = totals / totals[0] if totals[0] > 0 else np.zeros(len(totals))
    means[0] = 0
    return means


class Products(NamedTuple):
    """Sums over some queries of the parts, and of their products: what `QueryMoments` are made of.

    Attributes:
        totals: sum of each part.
        products: sum of the product of each two, each but the weight less its mean times the weight.
        heaviest: the largest weight.
        heavy: the parts of the heaviest queries as they are, at most `HEAVY`, where weights differ.
    """

    totals: Float[np.ndarray, "5"]
    products: Float[np.ndarray, "5 5"]
    heaviest: float
    heavy: Float[np.ndarray, "heavy 5"]

    @classmethod
    def of(cls, several: Sequence["Products"]) -> "Products":
        """Those of all queries, from those of some."""
        totals = _added([one.totals for one in several])
        products = _added([one._around(_means(totals)) for one in several])
        heavy = np.concatenate([one.heavy for one in several])
        heavy = heavy[np.argsort(-heavy[:, 0], kind="stable")[:HEAVY]]
        return cls(totals, products, max(one.heaviest for one in several), heavy)

    @classmethod
    def of_one(cls, totals: Float[np.ndarray, "5"]) -> "Products":
        """Those of a single query with such sums."""
        return cls(totals, np.diag([float(totals[0]) ** 2, 0, 0, 0, 0]), float(totals[0]), np.empty((0, 5)))

    def _around(self, means: Float[np.ndarray, "5"]) -> Float[np.ndarray, "5 5"]:
        """The products of the parts less other means times the weight."""
        more = _means(self.totals) - means
        crossed = np.outer(more, self.products[0])
        return self.products + crossed + crossed.T + np.outer(more, more) * self.products[0, 0]

    def moments(self, worst: float, queries: int) -> QueryMoments:
        """The moments of so many queries, once these are all."""
        totals, products, heaviest, heavy = self
        if not totals[0] > 0:
            return QueryMoments(totals, products, worst, queries, 0.0, 0.0, np.empty((0, 5)))
        effective = totals[0] ** 2 / products[0, 0]
        gram = products.copy()
        gram[0, 0] -= totals[0] ** 2 / queries
        if queries * heaviest <= totals[0] * (1 + 1e-12):  # all weigh the same, and nothing varies with it
            gram[0] = gram[:, 0] = 0
            heavy = np.empty((0, 5))
        share = float(heaviest / totals[0])
        heavy = heavy - np.outer(heavy[:, 0], _means(totals))
        return QueryMoments(totals, gram, worst, queries, float(effective), share, heavy)


_ORDER = [1, 0, 2, 3, 4]  # value, weight, ... -> weight, value, ...

HEAVY = 11
"""Heaviest queries whose parts are kept: ten, and the next one."""

_Heavy = list[tuple[np.ndarray, np.ndarray]]
"""Weights of queries, and which are the heaviest: found once for all measures of one weighting."""


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
    """What the rules share is summed once."""
    any_parts = next(iter(by_ties.values()))
    shared = np.stack([any_parts.weight, any_parts.chance, any_parts.variance, any_parts.best])
    sums = shared.sum(axis=1)
    at = _heaviest(any_parts.weight, [] if known is None else known)
    heaviest, heavy = float(any_parts.weight.max()), shared[:, at]
    # Centred: of large parts that differ little, squares would lose the digits that differ.
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
    """The sum over queries of the product of each two.

    Summed in pairs, for most of it cancels in the end: einsum and BLAS leave errors a hundred times as large.
    BLAS also wakes its threads for every one of these small products.
    """
    found = np.empty((len(one), len(other)))
    for i, row in enumerate(one):
        for j, column in enumerate(other):
            found[i, j] = found[j, i] if one is other and j < i else (row * column).sum()
    return found


def moments_of(by_ties: dict[Ties, QuerySums]) -> dict[Ties, QueryMoments]:
    """The moments of the parts of all queries, under each tie rule."""
    found = _products(by_ties)
    return {rule: found[rule].moments(parts.worst, len(parts.weight)) for rule, parts in by_ties.items()}


def products_by_block(readers: Sequence[Reader], whole: Block) -> list[tuple[dict[Ties, Products], float]]:
    """What the moments of several measures are made of, with one block in memory for each processor.

    The blocks, and the order in which they are added, depend on the tasks alone.

    Returns:
        Of each measure, the products under each tie rule, and what all tasks at their worst sum to.
    """

    def of_block(block: Block) -> list[tuple[dict[Ties, Products], float]]:
        found, known = [read(block) for read in readers], []
        return [(_products(parts, known), next(iter(parts.values())).worst) for parts in found]

    # Blocks are not kept: what they have counted is as large as the tasks.
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
