"""Breakdown number of "A beats B": how many missing answers would reverse the order, whichever they are.

A fact is one answer to one query here, so a triple may be two facts: one of its head query and one of its
tail query. Let A be ahead of B in the sum of h(rank) over all answers. An adversary declares candidates true.
A candidate that is declared true becomes an answer, and no longer counts in the ranks of the candidates and
answers below it. Queries do not affect each other, so it is enough to know how far k facts can lower the sum
of differences of each query. A bound from below gives the lower bound `certified`, and a greedy choice gives
the example `demonstrated`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from owkg.errors import ArgumentError

# Sums that differ by less than this are equal up to rounding.
_EQUAL = 1e-9
# Largest number of facts of one query that has a bound of its own, and the numbers whose bounds are computed.
# A number between two of them has the bound of the larger one.
_MOST = 24
_LEVELS = (1, 2, 3, 4, 6, 8, 12, 16)
# Queries times facts squared, up to which the lower bound is computed from whole facts instead of their hull.
_WHOLE = 2 * 10**6


class Pair(NamedTuple):
    """Ranks of two systems, A and B, on the same queries, padded to [queries, ...].

    The rank of a candidate or an answer is 1 plus the number of unlabelled candidates above it. If a
    candidate is tied, or a system does not list it, only two bounds of its rank are known.

    Attributes:
        known: ranks of the known answers by A and by B, [2, queries, answers]; 0 where there is none. A tied
            answer has its optimistic rank.
        low, high: bounds of the ranks of unlabelled candidates, [2, queries, candidates]; 0 where there is
            none.
        beyond: lowest rank by A and by B that a candidate listed by neither can have, [2, queries]; 0 where
            there is no such candidate.
        largest: number of unlabelled candidates of each query, [queries].
        pessimistic: pessimistic ranks of the known answers, shaped like `known`; None if nothing is tied.
    """

    known: Int[np.ndarray, "2 queries answers"]
    low: Int[np.ndarray, "2 queries candidates"]
    high: Int[np.ndarray, "2 queries candidates"]
    beyond: Int[np.ndarray, "2 queries"]
    largest: Int[np.ndarray, "queries"]
    pessimistic: Int[np.ndarray, "2 queries answers"] | None = None

    @property
    def latest(self) -> Int[np.ndarray, "2 queries answers"]:
        """Ranks of the known answers with all ties resolved against them."""
        return self.known if self.pessimistic is None else self.pessimistic


class BreakdownNumbers(NamedTuple):
    """Numbers of missing answers that reverse an order; a fact is one answer to one query.

    Attributes:
        certified: lower bound: no set of fewer facts reverses the order; -1 if no set at all does.
        demonstrated: number of `facts`, an example that reverses the order; -1 if none was found.
        facts: whether the example declares each candidate of the pair true, [queries, candidates].
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
    """Breakdown number of "A is ahead of B"; 0 if A is not ahead on the known answers.

    Both numbers hold for every tie rule. The lower bound resolves ties of B in favour of B and ties of A
    against A. The example resolves ties of A in favour of A and ties of B against B. With many ties the two
    numbers are far apart.

    Args:
        pair: ranks of both systems.
        weights: h at index rank, [ranks]. Index 0 is not used; the last index is at least 1 plus the number
            of unlabelled candidates.
        macro: whether every query has the same weight (True) or every answer (False, default).
        values: h of the known answers by A under the tie rule, [queries, answers]; these sharpen the lower
            bound. Default: h of their pessimistic ranks.

    Raises:
        ValueError: if weights rise with the rank, are not finite or are too few, or the pair is malformed.
    """
    _check(pair, weights)
    certified, bounds = _certificate([(pair, values)], weights, macro=macro)
    facts = np.zeros(pair.low.shape[1:], bool)
    start = _labelled(pair, weights)
    if macro:
        start = start / np.maximum((pair.known[0] > 0).sum(1), 1)
    if not facts.size:
        return BreakdownNumbers(certified, 0 if start.sum() <= _EQUAL else -1, facts)
    # The example needs only the queries in which facts may lower the sum most.
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
    """Breakdown number of "A is ahead of B" in the mean over seeds.

    The bound of a query is the mean of its bounds over the pairs of seeds, because the same facts are missing
    under every seed. With several pairs of seeds, no example is searched.

    Args:
        pairs: ranks of each pair of seeds, with the `values` of A as in `breakdown`. Every seed of a system
            is in equally many pairs.
        weights: as in `breakdown`.
        macro: as in `breakdown`.

    Raises:
        ValueError: as in `breakdown`.
    """
    if len(pairs) == 1:
        return breakdown(pairs[0][0], weights, macro=macro, values=pairs[0][1])
    for pair, _ in pairs:
        _check(pair, weights)
    certified, _ = _certificate(pairs, weights, macro=macro)
    return BreakdownNumbers(certified, -1, np.zeros(pairs[0][0].low.shape[1:], bool))


def _check(pair: Pair, weights: Float[np.ndarray, "ranks"]) -> None:
    """Raises ValueError if weights rise, are not finite or too few, or the pair is malformed."""
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
    """(lower bound of the mean of several pairs, mean of the bounds of their queries)."""

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
    """The pair restricted to some queries."""
    known, low, high, beyond = (part[:, rows] for part in pair[:4])
    return Pair(known, low, high, beyond, pair.largest[rows], pair.latest[:, rows])


def _labelled(pair: Pair, weights: Float[np.ndarray, "ranks"]) -> Float[np.ndarray, "queries"]:
    """Largest sum of h by A minus h by B over the known answers: ties count for A and against B."""
    there = pair.known[0] > 0
    return np.where(there, weights[pair.known[0]] - weights[pair.latest[1]], 0.0).sum(1)


def lower_bounds(
    pair: Pair,
    weights: Float[np.ndarray, "ranks"],
    *,
    macro: bool = False,
    values: Float[np.ndarray, "queries answers"] | None = None,
) -> tuple[Float[np.ndarray, "queries k"], "Tail"]:
    """Lower bounds of each query's sum of h by A minus h by B after k facts.

    With k facts a rank falls by some c <= k, and h(r - c) - h(r) lies between c times its smallest and c
    times its largest mean rise over 1, ..., k. So the sum splits into one term for each fact, and the k
    smallest terms bound it. For k = 1 the bound is exact.

    Returns:
        (bounds for k = 0, 1, ..., `_MOST`, or up to the number of candidates if that is smaller; bound for
        more facts).
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
    # No answer's difference is below the difference of a last rank by A and a first rank by B.
    count = answers[:, None] + np.arange(most + 1)
    worst = weights[pair.largest + 1] - weights[1]
    bounds = np.maximum(bounds, worst[:, None] * count)
    if macro:
        return bounds / np.maximum(count, 1), Tail(worst, np.zeros(len(start)), np.zeros(len(start), int))
    return bounds, Tail(sums[:, -1], few[:, -1], np.maximum(pair.largest - most, 0))


def single_changes(
    pair: Pair, weights: Float[np.ndarray, "ranks"], *, macro: bool = False
) -> Float[np.ndarray, "queries candidates"]:
    """Change of each query's sum, or mean, of h by A minus h by B if a single candidate is true.

    Exact if both systems list the candidate, else the lowest possible change. Infinite where there is no
    candidate.
    """
    terms = _Terms(pair, weights)
    change = terms.of(1)[0]
    if not macro:
        return change
    answers = (pair.known[0] > 0).sum(1)[:, None]
    start = terms.start[:, None]
    return (start + change) / (answers + 1) - start / np.maximum(answers, 1)


class _Terms:
    """Terms of the bounds: the least change by one fact, given the number of facts of its query."""

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
        # Facts never lower the weight of a tied answer of A. If `values` are given, its rise is not counted.
        moves = last if values is None else np.where(last > known_a, 0, known_a)
        self.by_a, self.by_b = _Below(moves), _Below(known_b)
        # The answers that each candidate is surely above by A, and the answers that it may be above by B.
        self.at_a, self.at_b = self.by_a.at(pair.high[0]), self.by_b.at(pair.low[1])
        self.other_b = self.by_b.at(pair.beyond[1][:, None])
        self.ranks = np.unique(np.concatenate([self.by_a.ranks, self.by_b.ranks]))
        self.of_a, self.of_b = (np.searchsorted(self.ranks, by.ranks) for by in (self.by_a, self.by_b))

    def of(
        self, level: int
    ) -> tuple[Float[np.ndarray, "queries candidates"], Float[np.ndarray, "queries 1"]]:
        """(terms of the listed candidates, term of all other candidates); infinite where there is none."""
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
    """Bound for more facts than `_MOST` in a query: at least sum + (facts above `_MOST`) * each.

    Attributes:
        sum: bound with `_MOST` facts.
        each: change of the bound by every further fact.
        further: largest number of further facts.
    """

    sum: Float[np.ndarray, "queries"]
    each: Float[np.ndarray, "queries"]
    further: Int[np.ndarray, "queries"]


class _Below:
    """Known answers of each query by rank, to sum over the answers below a candidate."""

    def __init__(self, known: Int[np.ndarray, "queries answers"]) -> None:
        self.width = int(known.max(initial=0)) + 2
        row, _ = there = np.nonzero(known)
        self.keys = np.sort(row * self.width + known[there])
        self.ranks = self.keys % self.width
        self.end = np.cumsum((known > 0).sum(1))

    def at(self, place: Int[np.ndarray, "queries n"]) -> Int[np.ndarray, "queries n"]:
        """Index in all ranks at which the answers below the place begin."""
        row = np.arange(len(place))[:, None] * self.width
        return np.searchsorted(self.keys, row + np.minimum(place, self.width - 1), side="right")

    def cumulated(self, values: Float[np.ndarray, "all"]) -> Float[np.ndarray, "more"]:
        """Running sums over all ranks."""
        return np.concatenate([[0.0], np.cumsum(values)])

    def summed(self, sums: Float[np.ndarray, "more"], at: Int[np.ndarray, "queries n"]) -> np.ndarray:
        """Sum over the answers of each query from index `at` on."""
        return sums[self.end][:, None] - sums[at]


def _mean_rises(weights: np.ndarray, ranks: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest mean rise (h(r - c) - h(r)) / c of each rank over c = 1, ..., level.

    Above c = 64 these are bounds of the mean rise. They are 0 where a rank cannot rise.
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
        # For c between first and last, the rise is at least the rise of first and at most the rise of last.
        smaller = (weights[np.maximum(ranks - first, 1)] - own) / last
        larger = (weights[np.maximum(ranks - last, 1)] - own) / first
        if first > 1:
            smaller, larger = np.minimum(smaller, least), np.maximum(larger, most)
        least, most = np.where(there, smaller, least), np.where(there, larger, most)
    return least, most


def demonstrations(
    pair: Pair, weights: Float[np.ndarray, "ranks"], *, macro: bool = False, most: int = 16
) -> tuple[Float[np.ndarray, "queries sums"], Int[np.ndarray, "queries facts"]]:
    """Upper bounds of each query's sum with k = 0, 1, ... facts, which are chosen greedily.

    Returns:
        (sums, infinite where there are no more candidates; candidates in the order of their choice).
    """
    known, is_known = (pair.known[0], pair.latest[1]), pair.known[0] > 0
    is_candidate = pair.low[0] > 0
    queries, candidates = is_candidate.shape
    most = min(most, candidates)
    # The worst case for the adversary: ties and candidates that A does not list are high by A and low by B.
    place = np.stack([pair.low[0], pair.high[1]])
    # Ties of A are resolved against it: a tied candidate that becomes an answer does not move the rest of its
    # tie.
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
    """Least number of facts whose bound reaches 0; -1 if no number does.

    This uses duality: if facts k_q have a sum of bounds <= 0, then sum(bound + l k) <= l sum(k) for every
    price l. So sum(k) is at least L(l) / l, where L is the sum over queries of the least bound + l k.
    """
    if bounds[:, 0].sum() <= _EQUAL:
        return 0
    most = bounds.shape[1] - 1
    # Bounds of 0, ..., `most` and of all facts, with their numbers; the bounds are linear between the last
    # two.
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
        # A higher price buys fewer facts, so a query with equal numbers at both ends has that number in
        # between.
        if (same := many == few).any():
            settled, paid = settled + kept[same].sum(), paid + taken[same].sum()
            left, facts, many, few = (one[~same] for one in (left, facts, many, few))
            rows = np.arange(len(left))
    certified = int(np.ceil(best - 1e-7))
    if certified <= most and len(bounds) * most**2 <= _WHOLE:
        return max(certified, _whole(bounds) or most + 1)
    return certified


def _whole(bounds: Float[np.ndarray, "queries k"]) -> int | None:
    """`_certified` with whole facts, by dynamic programming; None if more are needed than one query has."""
    most = bounds.shape[1] - 1
    lowers = (bounds < bounds[:, :1]).any(1)
    # Least sums with 0, 1, ... facts, padded in front: `fewer[n, k]` is the least sum with n - k facts.
    padded = np.full(2 * most + 1, np.inf)
    padded[most] = bounds[~lowers, 0].sum()
    fewer = np.lib.stride_tricks.sliding_window_view(padded, most + 1)[:, ::-1]
    for own in bounds[lowers]:
        padded[most:] = (fewer + own).min(1)
    turned = np.flatnonzero(padded[most:] <= _EQUAL)
    return int(turned[0]) if turned.size else None


def _chosen(attained: Float[np.ndarray, "queries k"], rest: float) -> Int[np.ndarray, "queries"] | None:
    """Numbers of facts of each query that reverse the order with few facts; None if all facts do not.

    Args:
        attained: sums with k facts, [queries, k].
        rest: sum over the queries that stay as they are.
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
    """The choice after facts are given back, the least useful first, as long as the order stays reversed."""
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
