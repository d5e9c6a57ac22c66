"""Breakdown number of "A beats B": how many missing answers would turn the order, whatever they are.

A fact is one answer to one query here: a triple may be two, of its head query and of its tail query.
A fact that was missing leaves the candidates below it, and becomes an answer itself. Let A be ahead of B in
the sum of h(rank) over all answers. An adversary declares candidates true. Queries separate, so what matters
is, for each query, how far k facts can lower the sum of differences: bounded from below for a certificate,
attained by a greedy choice for a demonstration.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from owkg.errors import ArgumentError

# Sums that are equal but for rounding.
_EQUAL = 1e-9
# Facts of one query up to which there is a bound of each number of them, and those whose bounds are
# computed; between them the next one holds.
_MOST = 24
_LEVELS = (1, 2, 3, 4, 6, 8, 12, 16)
# Queries times facts squared, up to which the certificate is taken from whole facts and not from their hull.
_WHOLE = 2 * 10**6


class Pair(NamedTuple):
    """What two systems, A and B, make of the same queries; padded to [queries, ...].

    The rank of a candidate or an answer is 1 more than the number of unlabelled candidates above it. Of a
    candidate that is tied, or that a system does not list, it is known to lie between two numbers.

    Attributes:
        known: ranks of the known answers by A and by B, [2, queries, answers]; 0 where there is none. Of tied
            ones the optimistic rank.
        low, high: bounds of the ranks of unlabelled candidates, [2, queries, candidates]; 0 where none.
        beyond: of candidates that neither lists: the lowest rank that they can have by A and by B, [2,
            queries]; 0 where both list all.
        largest: number of unlabelled candidates of each query, [queries].
        pessimistic: pessimistic ranks of the known answers, as `known`; None where nothing is tied.
    """

    known: Int[np.ndarray, "2 queries answers"]
    low: Int[np.ndarray, "2 queries candidates"]
    high: Int[np.ndarray, "2 queries candidates"]
    beyond: Int[np.ndarray, "2 queries"]
    largest: Int[np.ndarray, "queries"]
    pessimistic: Int[np.ndarray, "2 queries answers"] | None = None

    @property
    def latest(self) -> Int[np.ndarray, "2 queries answers"]:
        """The ranks of the known answers with all ties against them."""
        return self.known if self.pessimistic is None else self.pessimistic


class BreakdownNumbers(NamedTuple):
    """How many missing answers turn an order; a fact is one answer to one query.

    Attributes:
        certified: no labelling with fewer facts turns it; -1 if none does at all.
        demonstrated: the labelling `facts` with so many facts turns it; -1 where none was found.
        facts: whether each candidate of the pair is declared true, [queries, candidates].
    """

    certified: int
    demonstrated: int
    facts: Bool[np.ndarray, "queries candidates"]


def breakdown(
    pair: Pair,
    weights: Float[np.ndarray, "ranks"],
    *,
    macro: bool = False,
    values: Float[np.ndarray, "queries answers"] | None = None,
) -> BreakdownNumbers:
    """The breakdown number of "A is ahead of B"; 0 where it is not so as labelled.

    Where ranks are tied, both numbers hold for every tie rule: the certificate takes the ties of B in its
    favour and the demonstration those of A in its favour, and the other's against it. With many ties
    they are far apart.

    Args:
        pair: the ranks.
        weights: h at index rank, from 0 (which means nothing) to one more than the unlabelled candidates.
        macro: whether queries weigh alike and not their answers.
        values: h of the known answers by A under the tie rule, for a sharper certificate; None: h of their
            pessimistic ranks.

    Raises:
        ValueError: if weights rise with the rank, are not finite or too few, or the pair is malformed.
    """
    _check(pair, weights)
    certified, bounds = _certificate([(pair, values)], weights, macro=macro)
    facts = np.zeros(pair.low.shape[1:], bool)
    start = _labelled(pair, weights)
    if macro:
        start = start / np.maximum((pair.known[0] > 0).sum(1), 1)
    if not facts.size:
        return BreakdownNumbers(certified, 0 if start.sum() <= _EQUAL else -1, facts)
    # A demonstration needs but the queries where facts may do most.
    promise = (bounds[:, :1] - np.minimum.accumulate(bounds, axis=1)) / np.maximum(
        np.arange(bounds.shape[1]), 1
    )
    ranked = np.argsort(-promise.max(1), kind="stable")
    size = 2 * max(certified, 0) + 16
    while True:
        rows = np.sort(ranked[:size])
        rest = start.sum() - start[rows].sum()
        attained, order = demonstrations(_part(pair, rows), weights, macro=macro)
        chosen = _chosen(attained, rest)
        if chosen is not None or size >= len(ranked):
            break
        size *= 4
    if chosen is None:
        return BreakdownNumbers(certified, -1, facts)
    for at in np.flatnonzero(chosen):
        facts[rows[at], order[at, : chosen[at]]] = True
    return BreakdownNumbers(certified, int(chosen.sum()), facts)


def breakdown_over_seeds(
    pairs: Sequence[tuple[Pair, Float[np.ndarray, "queries answers"]]],
    weights: Float[np.ndarray, "ranks"],
    *,
    macro: bool = False,
) -> BreakdownNumbers:
    """The breakdown number of "A is ahead of B" in the mean over seeds.

    The bound of a query is the mean of its bounds over the pairs of seeds, because the same facts are missing
    under every seed. Of several pairs no order is demonstrated.

    Args:
        pairs: of `breakdown`, and the values of A; every seed of A and of B in as many of them.
        weights: of `breakdown`.
        macro: likewise.

    Raises:
        ValueError: as `breakdown`.
    """
    if len(pairs) == 1:
        return breakdown(pairs[0][0], weights, macro=macro, values=pairs[0][1])
    for pair, _ in pairs:
        _check(pair, weights)
    certified, _ = _certificate(pairs, weights, macro=macro)
    return BreakdownNumbers(certified, -1, np.zeros(pairs[0][0].low.shape[1:], bool))


def _check(pair: Pair, weights: Float[np.ndarray, "ranks"]) -> None:
    """ValueError if weights rise with the rank, are not finite or too few, or the pair is malformed."""
    latest = pair.latest
    largest = int(max(pair.largest.max(initial=0) + 1, latest.max(initial=0)))
    if len(weights) <= largest or not np.isfinite(weights[1:]).all() or (np.diff(weights[1:]) > 0).any():
        raise ArgumentError("weights", f"must fall or stay from rank 1 to {largest}, and be finite.")
    if (pair.low > pair.high).any() or ((pair.known[0] > 0) != (pair.known[1] > 0)).any():
        raise ArgumentError("pair", "must have low at most high, and the same answers for both systems.")
    if (latest < pair.known).any() or ((latest > 0) != (pair.known > 0)).any():
        raise ArgumentError("pair", "must have pessimistic ranks that are not below the optimistic ones.")


def _certificate(
    pairs: Sequence[tuple[Pair, Float[np.ndarray, "queries answers"] | None]],
    weights: Float[np.ndarray, "ranks"],
    *,
    macro: bool,
) -> tuple[int, Float[np.ndarray, "queries k"]]:
    """(certified number of the mean of several pairs, mean of the bounds of their queries)."""

    def mean(values: Sequence[np.ndarray | None]) -> tuple[np.ndarray, Tail]:
        found = [
            lower_bounds(pair, weights, macro=macro, values=own)
            for (pair, _), own in zip(pairs, values, strict=True)
        ]
        tails = [tail for _, tail in found]
        whole, each = (np.mean([tail[i] for tail in tails], axis=0) for i in range(2))
        return np.mean([bounds for bounds, _ in found], axis=0), Tail(whole, each, tails[0].further)

    bounds, tail = mean([None] * len(pairs))
    certified = _certified(bounds, tail)
    values = [own for _, own in pairs]
    if values[0] is not None and any((pair.latest > pair.known).any() for pair, _ in pairs):
        sharper = _certified(*mean(values))
        certified = -1 if -1 in (certified, sharper) else max(certified, sharper)
    return certified, bounds


def _part(pair: Pair, rows: Int[np.ndarray, "some"]) -> Pair:
    """The pair on some queries."""
    known, low, high, beyond = (part[:, rows] for part in pair[:4])
    return Pair(known, low, high, beyond, pair.largest[rows], pair.latest[:, rows])


def _labelled(pair: Pair, weights: Float[np.ndarray, "ranks"]) -> Float[np.ndarray, "queries"]:
    """The sum of h by A less h by B of the known answers, at most: ties for A and against B."""
    there = pair.known[0] > 0
    return np.where(there, weights[pair.known[0]] - weights[pair.latest[1]], 0.0).sum(1)


def lower_bounds(
    pair: Pair,
    weights: Float[np.ndarray, "ranks"],
    *,
    macro: bool = False,
    values: Float[np.ndarray, "queries answers"] | None = None,
) -> tuple[Float[np.ndarray, "queries k"], "Tail"]:
    """At most what k facts can leave of each query's sum of h by A less h by B.

    With k facts a rank falls by c <= k, and h(r - c) - h(r) lies between c times its smallest and its
    largest mean rise over 1, ..., k. So the sum splits into a term for each fact, and the k smallest terms
    bound it; exactly for k = 1.

    Returns:
        (the bounds for k = 0, 1, ..., `_MOST`, or as many facts as there can be; the bound of more).
    """
    answers = (pair.known[0] > 0).sum(1)
    largest_of_all = max(int(pair.largest.max(initial=0)), 1)
    most = min(largest_of_all, _MOST)
    levels = [level for level in _LEVELS if level < most] + [most, largest_of_all]
    terms = _Terms(pair, weights, values)
    start = terms.start
    bounds = np.empty((len(start), most + 1))
    bounds[:, 0] = start
    done, few, sums = 0, bounds, bounds
    for i, level in enumerate(levels):
        term, other = terms.of(level)
        needed = min(level, most)
        width = min(needed, term.shape[1])
        few = np.sort(np.partition(term, max(width - 1, 0), axis=1)[:, :width], axis=1) if width else term
        few = np.pad(few, ((0, 0), (0, needed - width)), constant_values=np.inf)
        few = np.minimum(few, other)
        sums = start[:, None] + np.cumsum(few, axis=1)
        if i < len(levels) - 1:
            bounds[:, done + 1 : level + 1] = sums[:, done:]
            done = level
    # No answer's difference is below that of a first rank and a last one.
    count = answers[:, None] + np.arange(most + 1)
    worst = weights[pair.largest + 1] - weights[1]
    bounds = np.maximum(bounds, worst[:, None] * count)
    if macro:
        return bounds / np.maximum(count, 1), Tail(worst, np.zeros(len(start)), np.zeros(len(start), int))
    return bounds, Tail(sums[:, -1], few[:, -1], np.maximum(pair.largest - most, 0))


def single_changes(
    pair: Pair, weights: Float[np.ndarray, "ranks"], *, macro: bool = False
) -> Float[np.ndarray, "queries candidates"]:
    """The change of each query's sum, or mean, of h by A less h by B if one candidate alone is true.

    Exact where both list it, else the lowest that it can be. Infinite where there is no candidate.
    """
    terms = _Terms(pair, weights)
    change = terms.of(1)[0]
    if not macro:
        return change
    answers = (pair.known[0] > 0).sum(1)[:, None]
    start = terms.start[:, None]
    return (start + change) / (answers + 1) - start / np.maximum(answers, 1)


class _Terms:
    """Terms of the bounds: what a fact changes at least, when there are so many of its query."""

    def __init__(
        self,
        pair: Pair,
        weights: Float[np.ndarray, "ranks"],
        values: Float[np.ndarray, "queries answers"] | None = None,
    ) -> None:
        self.pair, self.weights = pair, weights
        (known_a, known_b), last = pair.known, pair.latest[0]
        own = weights[last] if values is None else values
        self.start = np.where(known_a > 0, own - weights[known_b], 0.0).sum(1)
        # What ties hold back of A does not fall; that it rises is not counted where `values` stand.
        moves = last if values is None else np.where(last > known_a, 0, known_a)
        self.by_a, self.by_b = _Below(moves), _Below(known_b)
        # Whether each candidate is surely above an answer by A; and whether it may be by B.
        self.at_a, self.at_b = self.by_a.at(pair.high[0]), self.by_b.at(pair.low[1])
        self.other_b = self.by_b.at(pair.beyond[1][:, None])
        self.ranks = np.unique(np.concatenate([self.by_a.ranks, self.by_b.ranks]))
        self.of_a, self.of_b = (np.searchsorted(self.ranks, by.ranks) for by in (self.by_a, self.by_b))

    def of(
        self, level: int
    ) -> tuple[Float[np.ndarray, "queries candidates"], Float[np.ndarray, "queries 1"]]:
        """(of each candidate that is listed, of the others); infinite where there is none."""
        pair, weights, by_a, by_b = self.pair, self.weights, self.by_a, self.by_b
        rises = _mean_rises(weights, self.ranks, level)
        least, largest = by_a.cumulated(rises[0][self.of_a]), by_b.cumulated(rises[1][self.of_b])
        term = by_a.summed(least, self.at_a) - by_b.summed(largest, self.at_b)
        term += weights[pair.high[0]] - weights[np.maximum(pair.low[1] - level + 1, 1)]
        term[pair.low[0] == 0] = np.inf
        other = weights[pair.largest] - weights[np.maximum(pair.beyond[1] - level + 1, 1)]
        other = other[:, None] - by_b.summed(largest, self.other_b)
        other[pair.beyond[1] == 0] = np.inf
        return term, other


class Tail(NamedTuple):
    """What more facts than `_MOST` can leave of each query: sum + (number above `_MOST`) * each, or more.

    Attributes:
        sum: with `_MOST` facts.
        each: of every further fact.
        further: how many there can be.
    """

    sum: Float[np.ndarray, "queries"]
    each: Float[np.ndarray, "queries"]
    further: Int[np.ndarray, "queries"]


class _Below:
    """The known answers of each query by rank, to sum over those below a candidate."""

    def __init__(self, known: Int[np.ndarray, "queries answers"]) -> None:
        self.width = int(known.max(initial=0)) + 2
        row, _ = there = np.nonzero(known)
        self.keys = np.sort(row * self.width + known[there])
        self.ranks = self.keys % self.width
        self.end = np.cumsum((known > 0).sum(1))

    def at(self, place: Int[np.ndarray, "queries n"]) -> Int[np.ndarray, "queries n"]:
        """Where in all ranks those below the place begin."""
        row = np.arange(len(place))[:, None] * self.width
        return np.searchsorted(self.keys, row + np.minimum(place, self.width - 1), side="right")

    def cumulated(self, values: Float[np.ndarray, "all"]) -> Float[np.ndarray, "more"]:
        """Running sums over all ranks."""
        return np.concatenate([[0.0], np.cumsum(values)])

    def summed(self, sums: Float[np.ndarray, "more"], at: Int[np.ndarray, "queries n"]) -> np.ndarray:
        """The sum over the answers of each query from `at` on."""
        return sums[self.end][:, None] - sums[at]


def _mean_rises(weights: np.ndarray, ranks: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Of each rank, the smallest and the largest mean rise (h(r - c) - h(r)) / c over c = 1, ..., level.

    Bounds of them beyond 64; 0 where a rank cannot rise.
    """
    steps = [(c, c) for c in range(1, min(level, 64) + 1)]
    while steps[-1][1] < level:
        steps.append((steps[-1][1] + 1, min(2 * steps[-1][1], level)))
    own = weights[ranks]
    least, most = np.zeros(len(ranks)), np.zeros(len(ranks))
    for first, last in steps:
        there = ranks > first
        if not there.any():
            break
        # Between first and last steps the rise is at most that of last; at least that of first.
        smaller = (weights[np.maximum(ranks - first, 1)] - own) / last
        larger = (weights[np.maximum(ranks - last, 1)] - own) / first
        if first > 1:
            smaller, larger = np.minimum(smaller, least), np.maximum(larger, most)
        least, most = np.where(there, smaller, least), np.where(there, larger, most)
    return least, most


def demonstrations(
    pair: Pair, weights: Float[np.ndarray, "ranks"], *, macro: bool = False, most: int = 16
) -> tuple[Float[np.ndarray, "queries sums"], Int[np.ndarray, "queries facts"]]:
    """What is surely left of each query's sum with k = 0, 1, ... facts, each the best after those before.

    Returns:
        (the sums, infinite where there are no more candidates; the candidates in the order of their choice).
    """
    known, is_known = (pair.known[0], pair.latest[1]), pair.known[0] > 0
    is_candidate = pair.low[0] > 0
    queries, candidates = is_candidate.shape
    most = min(most, candidates)
    # The worst for the adversary: ties and what A does not list stand high by A, and low by B.
    place = np.stack([pair.low[0], pair.high[1]])
    # Ties of A that are resolved against it: each that becomes an answer is out of the way of the others.
    reach = [place[0] + (pair.low[0] == pair.high[0]), place[1]]
    sign = np.array([1.0, -1.0])
    taken = np.zeros((queries, candidates), bool)
    ranks = [known[0].copy(), known[1].copy()]
    moved = [place[0].copy(), place[1].copy()]
    sums = np.full((queries, most + 1), np.inf)
    order = np.zeros((queries, most), np.int64)
    rows = np.arange(queries)
    value = _labelled(pair, weights)
    sums[:, 0] = value
    for k in range(most):
        gain = np.zeros((queries, candidates))
        for x in (0, 1):
            up = np.where(is_known, weights[np.maximum(ranks[x] - 1, 1)] - weights[ranks[x]], 0.0)
            above = place[x][:, :, None] < known[x][:, None]
            gain += sign[x] * np.einsum("qcs,qs->qc", above, up)
            for j in range(k):
                there = taken[rows, order[:, j]]
                at = moved[x][rows, order[:, j]]
                rise = np.where(there, weights[np.maximum(at - 1, 1)] - weights[at], 0.0)
                gain += sign[x] * rise[:, None] * (reach[x][rows, order[:, j]][:, None] > place[x])
            gain += sign[x] * weights[moved[x]]
        gain = np.where(is_candidate & ~taken, gain, np.inf)
        best = gain.argmin(1)
        gained = gain[rows, best]
        value = value + gained
        sums[:, k + 1], order[:, k] = value, best
        there = np.isfinite(gained)
        for x in (0, 1):
            at = place[x][rows, best]
            ranks[x] = np.where(there[:, None] & is_known & (known[x] > at[:, None]), ranks[x] - 1, ranks[x])
            falls = there[:, None] & is_candidate & (reach[x] > at[:, None])
            falls[rows, best] = False
            moved[x] = np.where(falls, np.maximum(moved[x] - 1, 1), moved[x])
        taken[rows[there], best[there]] = True
        if not there.any():
            break
    if macro:
        sums = sums / np.maximum(is_known.sum(1)[:, None] + np.arange(most + 1), 1)
    return sums, order


def _certified(bounds: Float[np.ndarray, "queries k"], tail: Tail) -> int:
    """The least number of facts whose bound reaches 0; -1 if no number does.

    By duality: facts k_q with sum of bounds <= 0 have, for every price l, sum(bound + l k) <= l sum(k). So
    sum(k) is at least L(l) / l with L the sum over queries of the least bound + l k.
    """
    if bounds[:, 0].sum() <= _EQUAL:
        return 0
    most = bounds.shape[1] - 1
    # Bounds of 0, ..., `most` and of all facts, with their numbers: bounds are straight between the last two.
    left = np.column_stack([bounds, tail.sum + np.minimum(tail.each, 0.0) * tail.further])
    left[:, most] = np.minimum(left[:, most], tail.sum)
    facts = np.column_stack([np.tile(np.arange(most + 1.0), (len(left), 1)), most + tail.further])
    left[~np.isfinite(left)] = 1e300
    rows = np.arange(len(left))
    many, few = facts[rows, left.argmin(1)], np.zeros(len(left))
    if left.min(1).sum() > _EQUAL:
        return -1
    low, high, best = 0.0, float((left[:, :1] - left).max()) + 1.0, 0.0
    settled = paid = 0.0
    for _ in range(50):
        price = (low + high) / 2
        at = (left + price * facts).argmin(1)
        taken, kept = facts[rows, at], left[rows, at]
        rest = settled + kept.sum()
        best = max(best, (rest + price * (paid + taken.sum()) - _EQUAL) / price)
        if rest > 0:
            high, few = price, taken
        else:
            low, many = price, taken
        # The higher the price, the fewer facts: a query with as many at both ends has as many between them.
        if (same := many == few).any():
            settled, paid = settled + kept[same].sum(), paid + taken[same].sum()
            left, facts, many, few = (one[~same] for one in (left, facts, many, few))
            rows = np.arange(len(left))
    certified = int(np.ceil(best - 1e-7))
    if certified <= most and len(bounds) * most**2 <= _WHOLE:
        return max(certified, _whole(bounds) or most + 1)
    return certified


def _whole(bounds: Float[np.ndarray, "queries k"]) -> int | None:
    """As `_certified`, of whole facts, by dynamic programming; None if more are needed than one query has."""
    most = bounds.shape[1] - 1
    lowers = (bounds < bounds[:, :1]).any(1)
    # The least sum with 0, 1, ... facts, behind infinities: `fewer[n, k]` is that with n - k of them.
    padded = np.full(2 * most + 1, np.inf)
    padded[most] = bounds[~lowers, 0].sum()
    fewer = np.lib.stride_tricks.sliding_window_view(padded, most + 1)[:, ::-1]
    for own in bounds[lowers]:
        padded[most:] = (fewer + own).min(1)
    turned = np.flatnonzero(padded[most:] <= _EQUAL)
    return int(turned[0]) if turned.size else None


def _chosen(attained: Float[np.ndarray, "queries k"], rest: float) -> Int[np.ndarray, "queries"] | None:
    """How many facts to take of each query so that few turn the order; None if all do not.

    Args:
        attained: sums with k facts.
        rest: of the queries that stay as they are.
    """
    finite = np.where(np.isfinite(attained), attained, 1e300)
    if finite[:, 0].sum() + rest <= _EQUAL:
        return np.zeros(len(attained), np.int64)
    if finite.min(1).sum() + rest > _EQUAL:
        return None
    k = np.arange(finite.shape[1])
    low, high = 0.0, float((finite[:, :1] - finite).max())
    chosen = finite.argmin(1)
    for _ in range(60):
        price = (low + high) / 2
        least = (finite + price * k).argmin(1)
        left = np.take_along_axis(finite, least[:, None], 1).sum() + rest
        if left <= _EQUAL:
            chosen, low = (least if least.sum() <= chosen.sum() else chosen), price
        else:
            high = price
    return _trimmed(finite, chosen, rest)


def _trimmed(sums: np.ndarray, chosen: np.ndarray, rest: float) -> np.ndarray:
    """Facts given back one at a time, the least useful first, as long as the order stays turned."""
    rows = np.arange(len(sums))
    left = sums[rows, chosen].sum() + rest
    while chosen.any():
        back = np.where(chosen > 0, sums[rows, np.maximum(chosen - 1, 0)] - sums[rows, chosen], np.inf)
        at = int(back.argmin())
        if left + back[at] > _EQUAL:
            return chosen
        left += back[at]
        chosen = chosen.copy()
        chosen[at] -= 1
    return chosen
