"""Rule mining: all rules of a graph, or a bounded sample, with their support."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph
from owkg.kg.graph import graph_checked
from owkg.rules.paths import Body, Paths

# Added to the number of pairs of a body, so that rules tried on few pairs do not get too high a confidence.
PESSIMISM = 5
MOST_LENGTH = 3
# Largest number of walks of one body, and of all bodies together; a body with more gives no rule.
_BODY_WALKS, _ALL_WALKS = 50_000_000, 20_000_000_000
# Weights of the kinds of rules that only break ties between other rules, and least support without a body.
_WEIGHT_ANY, _WEIGHT_NONE, _LEAST_NONE = 0.1, 0.01, 100
# Number of entries in a block of co-occurrences.
_BLOCK = 2**25


class Rules(NamedTuple):
    """Rules as arrays; relations are directed: r from head to tail, r + R from tail to head.

    A rule without `constant` is r(X,Y) <- body, a path from X to Y. A rule with `constant` c has the head
    r(X,c). Its body is b(X,d) if it has an `end` d, b(X,A) for any A if it has none, or empty.

    Attributes:
        head: directed relation of the head; without a constant always in its own direction.
        body: directed relations; -1 after the last.
        constant: entity c of the head, or -1.
        end: entity d at the end of the body, or -1.
        support: number of pairs of the body, or of entities X, for which the head is a fact.
        bodies: number of pairs, or of entities, for which the body holds.
        cluster: number shared by rules whose bodies hold for nearly the same pairs (`owkg.rules.scores`).
    """

    head: Int[np.ndarray, "rules"]
    body: Int[np.ndarray, "rules length"]
    constant: Int[np.ndarray, "rules"]
    end: Int[np.ndarray, "rules"]
    support: Int[np.ndarray, "rules"]
    bodies: Int[np.ndarray, "rules"]
    cluster: Int[np.ndarray, "rules"]

    @property
    def confidence(self) -> Float[np.ndarray, "rules"]:
        """support / (bodies + 5), times 0.1 for rules with any end and 0.01 for rules without a body."""
        weight = np.where(self.constant < 0, 1.0, np.where(self.end < 0, _WEIGHT_ANY, 1.0))
        weight = np.where(self.body[:, 0] < 0, _WEIGHT_NONE, weight)
        return weight * self.support / (self.bodies + PESSIMISM)

    def some(self, chosen: np.ndarray) -> "Rules":
        """Rules at the places `chosen`, or where it is true."""
        return Rules(*(column[chosen] for column in self))


def mine(
    graph: KnowledgeGraph,
    *,
    length: int = 2,
    constants: bool = True,
    min_support: int = 2,
    min_confidence: float = 1e-4,
    min_groundings: int = 1,
    max_bodies: int = 20_000,
    seed: int = 0,
    on_estimate: Callable[[str], None] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Rules:
    """Rules mined from the train facts of a graph; the same arguments give the same rules.

    Different variables stand for different entities. If there are at most `max_bodies` bodies of a length,
    all are tried; otherwise owkg tries the bodies that random walks along facts follow most often.

    Args:
        graph: graph whose split train is mined.
        length: largest length of the bodies of rules r(X,Y), 1 to 3. Default 2.
        constants: whether to mine rules r(X,c) as well.
        min_support: smallest support of a rule. Default 2.
        min_confidence: smallest confidence of a rule, before the weight of its kind. Default 0.0001.
        min_groundings: smallest number of entities X, counting c, for which the body of a rule r(X,c) must
            hold. Default 1; AnyBURL uses 5.
        max_bodies: largest number of bodies of each length.
        seed: seed of the walks.
        on_estimate: function called before the work with a text: the numbers of bodies and walks to try.
        on_progress: function called with (bodies done, all bodies).

    Returns:
        Rules r(X,Y), then rules with constants.

    Raises:
        ArgumentError: if an argument is out of range, there are no facts, or there are too many walks.

    References:
        Meilicke et al. 2019, Anytime bottom-up rule learning for knowledge graph completion, section 4.
    """
    graph_checked(graph)
    if length not in range(1, MOST_LENGTH + 1) or isinstance(length, bool):
        raise ArgumentError("length", f"must be 1, 2 or {MOST_LENGTH}, got {length!r}.")
    least, most = checks.whole("min_support", min_support, 1), checks.whole("max_bodies", max_bodies, 1)
    grounded = checks.whole("min_groundings", min_groundings, 1)
    if not 0 <= min_confidence <= 1:
        raise ArgumentError("min_confidence", f"must be in [0, 1], got {min_confidence!r}.")
    if not len(graph.splits["train"]):
        raise ArgumentError("graph", "must have triples in train to mine rules from, got none.")
    paths = Paths(graph)
    rng = np.random.default_rng(seed)
    bodies = [body for size in range(1, length + 1) for body in _bodies(paths, size, most, rng)]
    walks = {body: paths.walks(body) for body in bodies}
    bodies = [body for body in bodies if 0 < walks[body] <= _BODY_WALKS]
    total = sum(walks[body] for body in bodies)
    if on_estimate is not None:
        left = sum(count > _BODY_WALKS for count in walks.values())
        many = "1 body" if left == 1 else f"{left:,} bodies"
        also = f"; left out: {many} with more than {_BODY_WALKS:,} walks" if left else ""
        on_estimate(f"{len(bodies):,} bodies with {total:,} walks along facts{also}")
    if total > _ALL_WALKS:
        raise ArgumentError(
            "length",
            f"{length} with `max_bodies` {most} needs {total:,} walks along facts, and the limit is "
            f"{_ALL_WALKS:,}: make one of them smaller.",
        )
    found = [_cyclic(paths, bodies, least, min_confidence, on_progress or (lambda *_: None))]
    found += [_constant(paths, least, min_confidence, grounded)] if constants else []
    width = max(one.body.shape[1] for one in found)
    padded = [
        one._replace(body=np.pad(one.body, ((0, 0), (0, width - one.body.shape[1])), constant_values=-1))
        for one in found
    ]
    return Rules(*map(np.concatenate, zip(*padded, strict=True)))


def _bodies(paths: Paths, length: int, most: int, rng: np.random.Generator) -> list[Body]:
    """Sorted bodies up to reversal; of more than `most`, the ones that random walks follow most often."""
    count = 2 * paths.num_relations
    if count**length // 2 <= most:
        every = np.indices((count,) * length).reshape(length, -1).T
    else:
        facts = paths.facts[np.argsort(paths.facts[:, 0], kind="stable")]
        starts = np.searchsorted(facts[:, 0], np.arange(paths.num_entities + 1))
        at = rng.integers(len(facts), size=20 * most)
        followed = [facts[at, 1]]
        for _ in range(length - 1):
            here = facts[at, 2]
            at = starts[here] + rng.integers(1 << 40, size=len(at)) % (starts[here + 1] - starts[here])
            followed.append(facts[at, 1])
        every = np.stack(followed, axis=1)
    other = (every[:, ::-1] + paths.num_relations) % count
    powers = count ** np.arange(length)[::-1]
    keys, times = np.unique(np.minimum(every @ powers, other @ powers), return_counts=True)
    keys = np.sort(keys[np.argsort(-times, kind="stable")[:most]]) if len(keys) > most else keys
    return [tuple(map(int, row)) for row in keys[:, None] // powers % count]


def _cyclic(
    paths: Paths, bodies: list[Body], least: int, confident: float, tell: Callable[[int, int], None]
) -> Rules:
    """Rules r(X,Y) with these bodies."""
    n, directed = paths.num_entities, 2 * paths.num_relations
    keys = paths.facts[:, 0] * n + paths.facts[:, 2]
    order = np.argsort(keys, kind="stable")
    pairs, starts = np.unique(keys[order], return_index=True)
    relations, ends = paths.facts[order, 1], np.append(starts[1:], len(keys))
    rows: list[tuple[int, ...]] = []
    length = max(map(len, bodies), default=1)
    for i, (body, counts) in enumerate(_each(paths, bodies)):
        tell(i + 1, len(bodies))
        if counts.nnz < least:
            continue
        at = np.repeat(np.arange(n, dtype=np.int64) * n, np.diff(counts.indptr)) + counts.indices
        place = np.searchsorted(pairs, at)
        place = place[pairs[np.minimum(place, len(pairs) - 1)] == at]
        support = np.bincount(relations[spread(starts[place], ends[place])[1]], minlength=directed)
        other = paths.reversed(body)
        heads = np.flatnonzero((support >= least) & (support >= confident * (counts.nnz + PESSIMISM)))
        cluster = _signature(at) if len(heads) else 0
        for head in heads.tolist():
            own, about = (body, head) if head < paths.num_relations else (other, paths.inverse(head))
            # A body that is its own reversal says the same about both directions, and a fact does not support
            # itself.
            if own != (about,) and (head < paths.num_relations or own != body):
                fill = (-1,) * (length - len(own))
                rows.append((about, *own, *fill, int(support[head]), counts.nnz, cluster))
    table = np.array(rows, np.int64).reshape(-1, length + 4)
    none = np.full(len(table), -1)
    order = np.lexsort(table[:, length::-1].T)
    head, body, rest = table[order, 0], table[order, 1 : length + 1], table[order, length + 1 :]
    return Rules(head, body, none, none, *rest.T)


def _each(paths: Paths, bodies: list[Body]) -> Iterator[tuple[Body, sparse.csr_matrix]]:
    """Each body with its counts; bodies with the same first two steps share the work on them."""
    rows, begun, two = np.arange(paths.num_entities), (), None
    for body in bodies:
        first = paths.steps[body[0]]
        if len(body) < 3:
            yield body, paths.further(first, body, rows)
            continue
        if two is None or body[:2] != begun:
            begun, two = body[:2], paths.further(first, body[:2], rows)
        if two.nnz:
            yield body, paths.third(first, two, body, rows)


def _signature(pairs: np.ndarray) -> int:
    """Hash of a set of pairs, equal for two bodies with about the square of their overlap as probability.

    It combines the two smallest hashed pairs, as in min-wise hashing (Broder 1997). Overlap is the share of
    the pairs of either body for which both hold.
    """
    least = []
    for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F):
        mixed = pairs.astype(np.uint64) * np.uint64(odd)
        mixed ^= mixed >> np.uint64(29)
        least.append(int((mixed * np.uint64(odd)).min()) >> 33)
    return (least[0] << 31) ^ least[1]


class Constants(NamedTuple):
    """Properties of single entities: b(X,d) in the first columns, then b(X,A) for each directed relation.

    Attributes:
        holds: [n, columns], 1 where the property holds for X.
        relation, end: relation and end of each column; end is -1 for any entity.
        single: like `holds`, but only where X has no other fact of the relation.
    """

    holds: sparse.csr_matrix
    relation: Int[np.ndarray, "columns"]
    end: Int[np.ndarray, "columns"]
    single: sparse.csr_matrix

    @classmethod
    def of(cls, paths: Paths) -> "Constants":
        """Properties of the entities of a graph."""
        n, directed = paths.num_entities, 2 * paths.num_relations
        start, relation, end = paths.facts.T
        keys, column = np.unique(relation * n + end, return_inverse=True)
        shape = n, len(keys)
        ends = sparse.csr_matrix((np.ones(len(start), np.int32), (start, column)), shape)
        alone = paths.degrees[relation, start] == 1
        single = sparse.csr_matrix((np.ones(alone.sum(), np.int32), (start[alone], column[alone])), shape)
        some = sparse.csr_matrix((paths.degrees.T > 0).astype(np.int32))
        return cls(
            sparse.csr_matrix(sparse.hstack([ends, some])),
            np.concatenate([keys // n, np.arange(directed)]),
            np.concatenate([keys % n, np.full(directed, -1)]),
            single,
        )


def _constant(paths: Paths, least: int, confident: float, grounded: int) -> Rules:
    """Rules r(X,c) <- b(X,d), r(X,c) <- b(X,A) and r(X,c)."""
    known = Constants.of(paths)
    facts = len(known.relation) - 2 * paths.num_relations
    size = np.asarray(known.holds.sum(0)).ravel().astype(np.int64)
    heads = np.flatnonzero(size[:facts] >= least)
    columns = known.holds.tocsc()
    alone = known.single.tocsc()
    parts: list[tuple[np.ndarray, ...]] = []
    # Heads are cut into blocks of at most this many entries.
    weight = np.asarray(known.holds @ np.ones(len(size))).ravel()
    cost = np.asarray(columns[:, heads].T @ weight).ravel()
    cuts = np.flatnonzero(np.diff((np.cumsum(cost) // _BLOCK).astype(np.int64), prepend=-1))
    for begin, stop in zip(cuts, [*cuts[1:], len(heads)], strict=False):
        own = heads[begin:stop]
        met = (columns[:, own].T @ known.holds).tocoo()
        enough = met.data >= least
        head, body, support = own[met.row[enough]], met.col[enough].astype(np.int64), met.data[enough]
        bodies, support = size[body], support.astype(np.int64)
        constant, end = known.end[head], known.end[body]
        # b(c,d) has no X other than c, and b(X,c) has no A other than c: such entities are not counted.
        bodies = bodies - _at(known.holds, constant, body)
        any_ = np.flatnonzero(end < 0)
        of_constant = known.relation[body[any_]] * paths.num_entities + constant[any_]
        column = _column_of(known, of_constant, paths.num_entities)
        there = column >= 0
        bodies[any_[there]] -= np.diff(alone.indptr)[column[there]]
        both = (alone[:, column[there]].multiply(columns[:, head[any_[there]]])).sum(0) if there.any() else 0
        support[any_[there]] -= np.asarray(both).ravel().astype(np.int64) if there.any() else 0
        good = (head != body) & (support >= least) & (support >= confident * (bodies + PESSIMISM))
        good &= size[body] >= grounded
        parts.append((head[good], body[good], support[good], bodies[good]))
    head, body, support, bodies = (
        map(np.concatenate, zip(*parts, strict=True)) if parts else [np.empty(0, int)] * 4
    )
    hashes = [_signature(columns.indices[a:b]) if b > a else 0 for a, b in pairwise(columns.indptr)]
    of_relation = np.bincount(known.relation[:facts], size[:facts], 2 * paths.num_relations).astype(np.int64)
    bare = np.flatnonzero(size[:facts] >= max(least, _LEAST_NONE))
    none = np.full(len(bare), -1)
    return Rules(
        np.concatenate([known.relation[head], known.relation[bare]]),
        np.concatenate([known.relation[body], none])[:, None],
        np.concatenate([known.end[head], known.end[bare]]),
        np.concatenate([known.end[body], none]),
        np.concatenate([support, size[bare]]),
        np.concatenate([bodies, of_relation[known.relation[bare]]]),
        np.concatenate([np.array(hashes, np.int64)[body], none]),
    )


def _column_of(known: Constants, keys: np.ndarray, n: int) -> np.ndarray:
    """Columns of these keys, relation n + end; -1 where there is none."""
    facts = np.count_nonzero(known.end >= 0)
    held = known.relation[:facts] * n + known.end[:facts]
    place = np.minimum(np.searchsorted(held, keys), facts - 1)
    return np.where(held[place] == keys, place, -1)


def _at(matrix: sparse.csr_matrix, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Entries [row, column], pair by pair."""
    return np.asarray(matrix[row, column]).ravel().astype(np.int64) if len(row) else np.empty(0, np.int64)


def spread(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(Number of the range, element) for all integers in the ranges [start, stop)."""
    size = stop - start
    which = np.repeat(np.arange(len(size)), size)
    return which, np.arange(len(which)) + np.repeat(start - np.cumsum(size) + size, size)
