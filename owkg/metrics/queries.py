"""Macro metrics: of each query one number, from the filtered ranks of all its answers.

In a table filtered by the other answers, the i-th best answer of a query with filtered rank r_(i) stands
at position r_(i) + i - 1 of the list that keeps all of them. So the whole list is known up to the order of
non-answers, and AP and nDCG need no scores. Answers whose scores are tied share optimistic and pessimistic
rank; a random order inside such a block has expectations in closed form. Random ranking is one block.
"""

from dataclasses import replace
from typing import cast

import numpy as np
from jaxtyping import Float
from scipy import special

from owkg.metrics.blocks import Block, Cases, whole_block
from owkg.metrics.list_gains import GAINS
from owkg.metrics.measures import AveragePrecision, BestAnswer, DiscountedGain
from owkg.metrics.ties import RankTables, Ties, rank_tables
from owkg.rank_weights.rank_weight import RankWeight
from owkg.rank_weights.tables import padded_size, prefix_sums, rank_weights, sums_at
from owkg.ranks.tasks import Tasks

Macro = BestAnswer | AveragePrecision | DiscountedGain


def answers_of(tasks: Tasks) -> Block | None:
    """The tasks as ranked lists; None if they are in no one list each.

    A query whose answers were ranked among different numbers of candidates, as by sampling negatives for
    each triple, has no one list; nor is the place of an answer known from ranks that count the query's
    other answers as negatives.
    """
    whole = whole_block(tasks)
    return whole if whole.listed else None


def best_value(measure: Macro, cases: Cases) -> Float[np.ndarray, "cases"]:
    """What a perfect ranking gets: 1, but less where k is below the answers (AP, recall, F1) or above them
    (precision, F1)."""
    if isinstance(measure, AveragePrecision):
        return np.minimum(cases.answers, measure.cutoff) / cases.answers
    if isinstance(measure, BestAnswer):
        return np.full(len(cases.answers), rank_weights(measure.metric, np.ones(1))[0])
    added = np.cumsum(_discounts(measure))
    return added[np.minimum(cases.answers, len(added)) - 1] / _ideal(measure, cases.answers)


def worst_value(measure: Macro, cases: Cases) -> Float[np.ndarray, "cases"]:
    """What a ranking with all answers at the end gets."""
    if isinstance(measure, BestAnswer):
        return rank_weights(measure.metric, cases.candidates)
    gain = _block_gain(measure, 0, cases.candidates - 1, cases.answers, cases.answers)
    return gain / _ideal(measure, cases.answers)


def _gain(measure: AveragePrecision | DiscountedGain, position, place):
    """What an answer at `position`, the `place`-th of its query, adds."""
    if isinstance(measure, AveragePrecision):
        return place / position
    return GAINS[measure.gain].discount(position)


def _discounts(measure: DiscountedGain) -> np.ndarray:
    """What an answer adds at each position up to the cutoff, or to the end of the longest list."""
    last = measure.cutoff if measure.longest is None else min(measure.cutoff, measure.longest)
    return GAINS[measure.gain].discount(np.arange(1, last + 1))


def _ideal(measure: AveragePrecision | DiscountedGain, answers: np.ndarray) -> np.ndarray:
    """What the gains of a query are divided by."""
    if isinstance(measure, AveragePrecision):
        return answers.astype(float)
    return GAINS[measure.gain].ideal(np.cumsum(_discounts(measure)), answers, measure.cutoff)


def values(
    measure: Macro, lists: Block, ties: Ties, tables: RankTables | None = None
) -> Float[np.ndarray, "lists"]:
    """The measure of every list under a tie rule; its expectation under `Ties.EXACT`.

    AP@k is sum of place / position over the answers up to position k, over the number of answers; the others
    the sum of their discounts over their ideal (`GAINS`).

    Args:
        measure: which.
        lists: of whole queries.
        ties: the rule.
        tables: of the rank weight of `BestAnswer`, up to the length of the longest list; made if None.
    """
    low, high = lists.tasks.optimistic, lists.tasks.pessimistic
    if isinstance(measure, BestAnswer) and tables is None:
        tables = rank_tables(measure.metric, int(lists.candidates.max()))
    if ties is Ties.EXACT and low is not high and (low < high).any():
        return _exact(measure, lists, tables)
    if ties is Ties.OPTIMISTIC or low is high:
        halves = 2 * low
    else:  # another order, perhaps, than that of the optimistic ranks
        halves = lists.sorted_halves(ties, 2 * high if ties is Ties.PESSIMISTIC else low + high)
    if isinstance(measure, BestAnswer) and tables is not None:
        return tables.at(halves[lists.first])
    measure = cast(AveragePrecision | DiscountedGain, measure)
    position = halves / 2 + lists.place - 1
    near = np.flatnonzero(position <= measure.cutoff)
    gains = _gain(measure, position[near], lists.place[near])
    return np.bincount(lists.list_of[near], gains, len(lists.first)) / _ideal(measure, lists.answers)


def _exact(measure: Macro, lists: Block, tables: RankTables | None) -> np.ndarray:
    """Expectations over a random order of every block of tied answers and non-answers."""
    _, block_answers, before, ahead, size = lists.ties
    if tables is not None:
        leading = np.flatnonzero(before == 0)
        ahead, size, block_answers = ahead[leading], size[leading], block_answers[leading]
        value = tables.at(2 * (ahead + 1))
        tied = np.flatnonzero(size > 1)
        value[tied] = first_place(tables.metric, ahead[tied], size[tied], block_answers[tied], moments=1)[0]
        return value
    measure = cast(AveragePrecision | DiscountedGain, measure)
    gains = _block_gain(measure, before, ahead, size, block_answers)
    total = np.bincount(lists.list_of[lists.ties.start], gains, len(lists.first))
    return total / _ideal(measure, lists.answers)


def shortened(measure: Macro, cases: Cases) -> Macro:
    """The measure that looks no further than the longest list, which changes nothing but the work."""
    if isinstance(measure, BestAnswer):
        return measure
    longest = int((cases.candidates + cases.answers).max()) - 1
    if isinstance(measure, DiscountedGain):
        return replace(measure, longest=longest)
    return replace(measure, cutoff=min(measure.cutoff, longest))


def _block_gain(measure, before, ahead, size, answers) -> np.ndarray:
    """Expected gain of a block of `size` positions after `ahead`, `answers` of them answers in random order.

    A position holds an answer with probability k / n, and then (j - 1)(k - 1)/(n - 1) of the j - 1
    positions of the block ahead of it do (McSherry and Najork 2008).
    """
    k = measure.cutoff
    low, high = np.minimum(ahead, k), np.minimum(ahead + size, k)
    share = answers / size
    if isinstance(measure, DiscountedGain):
        discounts = np.concatenate([[0.0], np.cumsum(_discounts(measure))])
        return share * (discounts[high] - discounts[low])
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, k + 1))])
    slope = (answers - 1) / np.maximum(size - 1, 1)
    constant = before + 1 - slope * (ahead + 1)
    return share * (constant * (harmonic[high] - harmonic[low]) + slope * (high - low))


# Entries of one [blocks, positions] array of `first_place`.
_ENTRIES = 2**20
# Answers of a block up to which its moments come from repeated sums: none of them is above 10^300 then.
_FEW_ANSWERS = 32


def first_place(
    metric: RankWeight, ahead: np.ndarray, size: np.ndarray, answers: np.ndarray, moments: int = 2
) -> Float[np.ndarray, "moments blocks"]:
    """E[h] and E[h^2] of the position of the first of `answers` answers in a block in random order.

    P(first at j) = C(n - j, k - 1) / C(n, k) for the j-th of n positions with k answers.

    Args:
        metric: gives h of ahead + j.
        ahead: positions ahead of the block.
        size: n >= k.
        answers: k >= 1.
        moments: 1: E[h] alone.
    """
    result = np.zeros((moments, len(ahead)))
    if len(ahead) == 0:
        return result
    single = answers == 1
    before, until = np.swapaxes(sums_at(metric, np.stack([ahead, ahead + size])[:, single])[:moments], 0, 1)
    result[:, single] = (until - before) / size[single]
    several = np.flatnonzero(~single)
    if len(several) == 0:
        return result
    sums = prefix_sums(metric, padded_size((ahead + size).max()))[:moments]
    weight = np.diff(sums[0])
    top = several[(ahead[several] == 0) & (answers[several] <= _FEW_ANSWERS)]
    # Work of the repeated sums, and of going through the positions of every block.
    sizes = int(size[top].max(initial=0))
    if len(top) and 2 * sizes * int(answers[top].max()) < _reach(weight, ahead, size, answers)[top].sum():
        result[:, top] = _repeated_sums(sums[:, : sizes + 1], size[top], answers[top])
        several = np.setdiff1d(several, top, assume_unique=True)
    keys = np.stack([ahead, size, answers])[:, several]
    cases, back = np.unique(keys, axis=1, return_inverse=True)
    result[:, several] = _by_position(weight, *cases)[:moments, back.reshape(-1)]
    return result


def _repeated_sums(
    sums: Float[np.ndarray, "moments ranks"], size: np.ndarray, answers: np.ndarray
) -> Float[np.ndarray, "moments blocks"]:
    """The moments of blocks at the top of their lists, with few answers, by summing k times.

    G_k(n) = C(n, k) E_k(n) is the sum of G_(k - 1) over 0 .. n - 1, and G_1 the running sum of h: of all
    n at once, without cancellation.
    """
    result = np.empty((len(sums), len(size)))
    level = sums.copy()
    for k in range(1, int(answers.max()) + 1):
        if k > 1:
            level[:, 1:] = np.cumsum(level, axis=1)[:, :-1]
            level[:, 0] = 0.0
        at = np.flatnonzero(answers == k)
        result[:, at] = level[:, size[at]] / special.comb(size[at].astype(np.float64), k)
    return result


def _by_position(
    weight: Float[np.ndarray, "ranks"], ahead: np.ndarray, size: np.ndarray, answers: np.ndarray
) -> Float[np.ndarray, "2 blocks"]:
    """The moments of blocks by going through their positions, as far as they are likely to matter."""
    result = np.zeros((2, len(ahead)))
    reach = _reach(weight, ahead, size, answers)
    # Rows of like length share an array.
    order = np.argsort(reach)
    begin = 0
    while begin < len(order):
        rows = order[begin : begin + max(1, _ENTRIES // int(reach[order[-1]]))]
        begin += len(rows)
        j = np.arange(int(reach[rows].max()))
        n, k = size[rows, None], answers[rows, None]
        # P(1) = k / n, and P(j + 1) / P(j) = (n - j - k + 1) / (n - j).
        probability = np.maximum(n - j - k + 1, 0) / np.maximum(n - j, 1)
        probability[:, 0] = k[:, 0] / n[:, 0]
        np.cumprod(probability, axis=1, out=probability)
        h = weight[np.minimum(ahead[rows, None] + j, len(weight) - 1)]
        result[0, rows] = (probability * h).sum(axis=1)
        result[1, rows] = (probability * h**2).sum(axis=1)
    return result


def _reach(weight: np.ndarray, ahead: np.ndarray, size: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Positions up to the last that has a weight, and up to where a first answer lies but for exp(-50)."""
    last = int(np.flatnonzero(weight)[-1]) + 1 if weight.any() else 1
    likely = np.minimum(size - answers + 1, np.ceil(50 * size / answers).astype(np.int64) + 1)
    return np.minimum(likely, np.maximum(last - ahead, 1))


def list_chance(measure: Macro, cases: Cases) -> Float[np.ndarray, "2 cases"]:
    """Mean and variance of the measure of a list of each shape under random ranking, exact.

    AP by going down the first k positions with the distribution of the number of answers met so far, and the
    first two moments of the sum of gains on each of its values.
    """
    k = cases.answers
    n = cases.candidates + k - 1
    if isinstance(measure, BestAnswer):
        first, second = first_place(measure.metric, np.zeros_like(k), n, k)
        return np.stack([first, np.maximum(second - first**2, 0)])
    if isinstance(measure, DiscountedGain):
        moments = _discounted_moments(_discounts(measure), n, k)
    else:
        first, second = _precision_moments(measure.cutoff, n, k)
        moments = np.stack([first, np.maximum(second - first**2, 0)])
    ideal = _ideal(measure, k)
    return moments / np.stack([ideal, ideal**2])


def _discounted_moments(discounts: np.ndarray, n: np.ndarray, k: np.ndarray) -> Float[np.ndarray, "2 cases"]:
    """Mean and variance of the sum of discounts d over k of n positions, chosen at random.

    Mean pi S1, variance pi (1 - pi) (S2 - (S1^2 - S2) / (n - 1)) with pi = k / n and S1, S2 sums of d and d^2
    over the first positions: two positions both hold answers with covariance -pi (1 - pi) / (n - 1).
    """
    depth = np.minimum(n, len(discounts)) - 1
    once, twice = np.cumsum(discounts)[depth], np.cumsum(discounts**2)[depth]
    share = k / n
    pairs = (once**2 - twice) / np.maximum(n - 1, 1)
    return np.stack([share * once, np.maximum(share * (1 - share) * (twice - pairs), 0)])


def _precision_moments(depth: int, n: np.ndarray, k: np.ndarray) -> Float[np.ndarray, "2 cases"]:
    """E[X] and E[X^2] of X = sum of place / position over the answers in the first `depth` positions."""
    most = min(depth, int(k.max()))
    met = np.arange(most + 1)  # answers met so far
    probability = np.zeros((len(n), most + 1))
    probability[:, 0] = 1
    mean, square = np.zeros_like(probability), np.zeros_like(probability)
    for position in range(1, min(depth, int(n.max())) + 1):
        left = np.maximum(n - position + 1, 1)[:, None]
        hit = np.clip((k[:, None] - met) / left, 0, 1) * (n[:, None] >= position)
        gain = (met + 1) / position
        found = [
            hit * probability,
            hit * (mean + gain * probability),
            hit * (square + 2 * gain * mean + gain**2 * probability),
        ]
        for now, more in zip((probability, mean, square), found, strict=True):
            now *= 1 - hit
            now[:, 1:] += more[:, :-1]
    return np.stack([mean.sum(axis=1), square.sum(axis=1)])
