"""Answers that rules give to queries, and their order."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph
from owkg.rules.mine import Constants, Rules, spread
from owkg.rules.paths import Paths

AGGREGATIONS = ("maximum", "noisy-or", "non-redundant-noisy-or")
# Number of scores in a block of queries, and number of answers by single rules before they are sorted.
_SCORES, _ENTRIES = 2**25, 2**24
# A body that holds for more entities X does not tell which X is the answer.
_MOST_ANSWERS = 1000
# Number of best rules of an answer to compare.
_COMPARED = 64


class Queries(NamedTuple):
    """Queries by the given entity and the directed relation to the answer.

    Attributes:
        entity: given entity.
        relation: r if the tail is asked for, r + R if the head is.
    """

    entity: Int[np.ndarray, "queries"]
    relation: Int[np.ndarray, "queries"]


class Given(NamedTuple):
    """Answers by single rules.

    Attributes:
        query: number of the query.
        answer: entity.
        rule: number of the rule.
        paths: number of paths along the body of a rule r(X,Y); 1 for other rules.
    """

    query: Int[np.ndarray, "entries"]
    answer: Int[np.ndarray, "entries"]
    rule: Int[np.ndarray, "entries"]
    paths: Int[np.ndarray, "entries"]


class Predictions(NamedTuple):
    """Answers to queries, grouped by query, best first.

    Attributes:
        query: number of the query, increasing.
        answer: entity.
        score: 1 for the worst answers of a query, and one more for each better group of tied answers.
    """

    query: Int[np.ndarray, "predictions"]
    answer: Int[np.ndarray, "predictions"]
    score: Int[np.ndarray, "predictions"]


def queries_of(graph: KnowledgeGraph, splits: list[str] | None) -> Queries:
    """Distinct queries of the triples of some splits; None: the queries of every entity and relation."""
    n, count = graph.num_entities, graph.num_relations
    if splits is None:
        keys = np.arange(2 * count * n, dtype=np.int64)
    else:
        triples = np.concatenate([graph.splits[split] for split in splits]).astype(np.int64)
        keys = np.concatenate(
            [triples[:, 1] * n + triples[:, 0], (triples[:, 1] + count) * n + triples[:, 2]]
        )
    keys = np.unique(keys)
    return Queries(keys % n, keys // n)


def predict(
    graph: KnowledgeGraph,
    rules: Rules,
    queries: Queries,
    *,
    aggregate: str = "maximum",
    top: int = 100,
    on_progress: Callable[[int, int], None] | None = None,
) -> Predictions:
    """Best answers of rules to queries.

    With "maximum", answers are ordered by the confidences of the rules that give them, the best first and at
    most 64, and then by how often the entity is in train. "noisy-or" is 1 - prod(1 - confidence).
    "non-redundant-noisy-or" uses only the most confident of the rules in a `cluster`, whose bodies hold for
    nearly the same pairs. A rule r(X,c) whose body holds for more than 1,000 entities predicts c as an
    answer, but no X.

    Args:
        graph: graph whose split train is used to evaluate the bodies.
        rules: rules of this graph.
        queries: queries, increasing by relation.
        aggregate: one of `AGGREGATIONS`. Default "maximum".
        top: number of answers to keep per query, plus ties with the last. Facts of train that rank at least
            as high are kept in addition. Default 100.
        on_progress: function called with (queries done, all queries).

    Returns:
        The answers that some rule gives.

    Raises:
        ArgumentError: if the aggregation is unknown.

    References:
        Meilicke et al. 2019; for the noisy-or, Ott et al. 2021, SAFRAN, section 3.
    """
    if aggregate not in AGGREGATIONS:
        raise ArgumentError("aggregate", f"must be one of {', '.join(AGGREGATIONS)}, got {aggregate!r}.")
    applied = Applied(graph, rules)
    n = graph.num_entities
    frequency = np.bincount(applied.paths.facts[:, 2], minlength=n)
    best = np.argsort(-rules.confidence, kind="stable")
    place, confidence, cluster = np.argsort(best), rules.confidence[best], rules.cluster[best]
    size, found = max(1, _SCORES // n), []
    for begin in range(0, len(queries.entity), size):
        some = Queries(*(column[begin : begin + size] for column in queries))
        held = np.empty(0, np.int64)
        pending: list[Given] = []
        for entries in applied.to(some):
            pending.append(entries)
            if sum(len(one.rule) for one in pending) > _ENTRIES:
                held, pending = _merged(held, pending, n, place, aggregate, cluster), []
        keys = _merged(held, pending, n, place, aggregate, cluster)
        pairs = keys // max(1, len(place))
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        pairs = pairs[starts]
        group = _ORDERS[aggregate](pairs // n, starts, confidence[keys % max(1, len(place))])
        if aggregate == "maximum":
            group = _refined(group, frequency[pairs % n])
        known = known_of(applied, some, pairs // n, pairs % n)
        query, answer, score = best_of(pairs, group, known, n, top)
        found.append((query + begin, answer, score))
        if on_progress is not None:
            on_progress(min(begin + size, len(queries.entity)), len(queries.entity))
    nothing = [(np.empty(0, np.int64),) * 3]
    return Predictions(*map(np.concatenate, zip(*nothing, *found, strict=True)))


def _keys(entity: np.ndarray, relation: np.ndarray, answer: np.ndarray, n: int) -> np.ndarray:
    return (relation * n + entity) * n + answer


def known_of(applied: "Applied", queries: Queries, query: np.ndarray, answer: np.ndarray) -> np.ndarray:
    """Whether answers to these queries are facts of train."""
    keys = _keys(queries.entity[query], queries.relation[query], answer, applied.paths.num_entities)
    return np.isin(keys, applied.fact_keys)


class Applied:
    """Rules of a graph, indexed to answer queries."""

    def __init__(self, graph: KnowledgeGraph, rules: Rules) -> None:
        self.paths, self.rules = Paths(graph), rules
        self.known = Constants.of(self.paths)
        self.columns = self.known.holds.tocsc()
        n, directed = self.paths.num_entities, 2 * self.paths.num_relations
        own = np.flatnonzero(rules.constant < 0)
        bodies, which = np.unique(rules.body[own], axis=0, return_inverse=True)
        order = np.lexsort((rules.head[own], which.ravel()))
        self.bodies = [tuple(int(one) for one in body if one >= 0) for body in bodies]
        self.of_body = np.split(own[order], np.searchsorted(which.ravel()[order], np.arange(1, len(bodies))))
        # Rules with constants are indexed by head relation and column, and by head relation and constant.
        self.constant = np.flatnonzero((rules.constant >= 0) & (rules.body[:, 0] >= 0))
        body, end, head = rules.body[self.constant, 0], rules.end[self.constant], rules.head[self.constant]
        facts = len(self.known.relation) - directed
        held = self.known.relation[:facts] * n + self.known.end[:facts]
        self.column = np.where(end < 0, facts + body, np.searchsorted(held, body * n + end))
        self.by_column = _Index(head * len(self.known.relation) + self.column)
        self.narrow = self.constant[rules.bodies[self.constant] <= _MOST_ANSWERS]
        self.by_constant = _Index(rules.head[self.narrow] * n + rules.constant[self.narrow])
        self.bare = np.flatnonzero((rules.constant >= 0) & (rules.body[:, 0] < 0))
        self.by_head = _Index(rules.head[self.bare])
        self.directed = directed
        start, relation, end = (self.paths.facts[:, i] for i in range(3))
        self.fact_keys = np.sort(_keys(start, relation, end, n))

    def to(self, queries: Queries) -> Iterator[Given]:
        """Answers of each rule, one body or kind of rule at a time."""
        paths, rules, n = self.paths, self.rules, self.paths.num_entities
        entity, relation = queries
        asked = np.bincount(relation, minlength=self.directed) > 0
        order = np.argsort(relation, kind="stable")
        ends = np.searchsorted(relation[order], np.arange(self.directed + 1))
        for body, own in zip(self.bodies, self.of_body, strict=False):
            head = rules.head[own]
            for turn, way in ((0, body), (paths.num_relations, paths.reversed(body))):
                chosen = own[asked[head + turn]]
                if not len(chosen):
                    continue
                heads = rules.head[chosen] + turn
                which, place = spread(ends[heads], ends[heads + 1])
                query = order[place]
                rows, back = np.unique(entity[query], return_inverse=True)
                counts = paths.counts(way, rows)
                at, answer = spread(counts.indptr[back], counts.indptr[back + 1])
                yield Given(query[at], counts.indices[answer], chosen[which[at]], counts.data[answer])
        if len(self.constant):
            holds = self.known.holds
            query, at = spread(holds.indptr[entity], holds.indptr[entity + 1])
            column = holds.indices[at]
            which, place = self.by_column.of(relation[query] * len(self.known.relation) + column)
            rule = self.constant[place]
            yield self._allowed(queries, query[which], rules.constant[rule], rule, entity[query[which]])
            which, place = self.by_constant.of(
                ((relation + paths.num_relations) % self.directed) * n + entity
            )
            rule = self.narrow[place]
            column = self.column[np.searchsorted(self.constant, rule)]
            at, answer = spread(self.columns.indptr[column], self.columns.indptr[column + 1])
            answer = self.columns.indices[answer]
            yield self._allowed(queries, which[at], answer, rule[at], answer)
        query, place = self.by_head.of(relation)
        rule = self.bare[place]
        yield self._allowed(queries, query, rules.constant[rule], rule, None)

    def _allowed(
        self, queries: Queries, query: np.ndarray, answer: np.ndarray, rule: np.ndarray, x: np.ndarray | None
    ) -> Given:
        """Answers other than the entity of the query, and without b(x,A) where A can only be c."""
        good = answer != queries.entity[query]
        if x is not None:
            any_ = np.flatnonzero(self.rules.end[rule] < 0)
            body, constant = self.rules.body[rule[any_], 0], self.rules.constant[rule[any_]]
            single = self.paths.degrees[body, x[any_]] == 1
            fact = np.zeros(len(any_), bool)
            keys = _keys(x[any_], body, constant, self.paths.num_entities)
            fact[single] = np.isin(keys[single], self.fact_keys)
            good[any_] &= ~fact
        return Given(query[good], answer[good], rule[good], np.ones(good.sum(), np.int32))


class _Index:
    """Positions of keys in an array."""

    def __init__(self, keys: np.ndarray) -> None:
        self.order = np.argsort(keys, kind="stable")
        self.sorted = keys[self.order]

    def of(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(Number of the key, position) for all positions of the keys."""
        start, stop = (np.searchsorted(self.sorted, keys, side) for side in ("left", "right"))
        which, place = spread(start, stop)
        return which, self.order[place]


def _merged(
    held: np.ndarray, pending: list[Given], n: int, place: np.ndarray, aggregate: str, cluster: np.ndarray
) -> np.ndarray:
    """(query n + answer) rules + place of the rule, for all entries that count, increasing.

    `place` ranks the rules by confidence, the best first; `cluster` is in this order.
    """
    count = len(place)
    keys = [(one.query.astype(np.int64) * n + one.answer) * count + place[one.rule] for one in pending]
    keys = np.sort(np.concatenate([held, *keys]))
    if aggregate == "non-redundant-noisy-or":
        of = np.unique(cluster, return_inverse=True)[1].ravel()
        first = np.unique(keys // count * (of.max() + 1) + of[keys % count], return_index=True)[1]
        return keys[np.sort(first)]
    if aggregate == "maximum":
        pairs = keys // count
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        number = np.arange(len(pairs)) - np.repeat(starts, np.diff(np.append(starts, len(pairs))))
        return keys[number < _COMPARED]
    return keys


def _refined(group: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Groups split by increasing value; the number of a group is how many elements come before it."""
    order = np.lexsort((value, group))
    group, value = group[order], value[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    inside = np.arange(len(group)) - np.repeat(first, np.diff(np.append(first, len(group))))
    new = (np.diff(group, prepend=-1) != 0) | (np.diff(value, prepend=-1) != 0)
    found = np.empty_like(group)
    found[order] = (group + inside)[np.maximum.accumulate(np.where(new, np.arange(len(group)), 0))]
    return found


def _by_maximum(query: np.ndarray, starts: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Numbers of the groups of tied answers, from the worst to the best, query by query."""
    stops = np.append(starts[1:], len(confidence))
    group = np.searchsorted(query, query)
    active, step = np.arange(len(group)), 0
    while len(active):
        more = starts[active] + step < stops[active]
        value = np.full(len(active), -1.0)
        value[more] = confidence[starts[active[more]] + step]
        group[active] = _refined(group[active], value)
        active = active[more]
        _, which, size = np.unique(group[active], return_inverse=True, return_counts=True)
        active, step = active[size[which.ravel()] > 1], step + 1
    return group


def _by_product(query: np.ndarray, starts: np.ndarray, confidence: np.ndarray) -> np.ndarray:
    """Group numbers as in `_by_maximum`, by 1 - prod(1 - confidence)."""
    if not len(starts):
        return query
    return _refined(np.searchsorted(query, query), -np.add.reduceat(np.log1p(-confidence), starts))


def best_of(
    pairs: np.ndarray, group: np.ndarray, known: np.ndarray, n: int, top: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(Query, answer, score) of the best `top` unknown answers per query, with ties and known answers."""
    query = pairs // n
    order = np.lexsort((pairs % n, -group, query))
    query, group, known, answer = query[order], group[order], known[order], (pairs % n)[order]
    new = np.diff(query, prepend=-1) != 0
    before = np.cumsum(~known) - ~known
    before -= before[np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))]
    level = new | (np.diff(group, prepend=-1) != 0)
    # Tied answers have as many better ones as the first of them.
    better = before[np.maximum.accumulate(np.where(level, np.arange(len(level)), 0))]
    kept = better < top
    query, answer, level = query[kept], answer[kept], level[kept]
    total = np.cumsum(level)
    last = np.searchsorted(query, query, "right") - 1
    return query, answer, total[last] - total + 1


_ORDERS = {"maximum": _by_maximum, "noisy-or": _by_product, "non-redundant-noisy-or": _by_product}
