"""Macro metrics: one number for each query, from the filtered ranks of all its answers.

In a table filtered by the other answers, the i-th best answer of a query, with filtered rank r_(i), has
position r_(i) + i - 1 in the list that keeps all answers. So the whole list is known up to the order of
non-answers, and AP and nDCG need no scores. Answers with tied scores share optimistic and pessimistic rank; a
random order inside such a block has expectations in closed form. Random ranking is the case of a single
block.
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
    """Tasks as ranked lists; None if the answers of some query do not form one list.

    They do not if a query's answers were ranked among different numbers of candidates, for example because
    negatives were sampled for each triple. They also do not if ranks count the query's other answers as
    negatives, because the position of an answer is then unknown.
    """
    whole = whole_block(tasks)
    return whole if whole.listed else None


def best_value(measure: Macro, cases: Cases) -> Float[np.ndarray, "cases"]:
    """Value of a perfect ranking for each case.

    The value is 1, or less if k is below the number of answers (AP, recall, F1) or above it (precision, F1).
    """
    if isinstance(measure, AveragePrecision):
        return np.minimum(cases.answers, measure.cutoff) / cases.answers
    if isinstance(measure, BestAnswer):
        return np.full(len(cases.answers), rank_weights(measure.metric, np.ones(1))[0])
    added = np.cumsum(_discounts(measure))
    return added[np.minimum(cases.answers, len(added)) - 1] / _ideal(measure, cases.answers)


def worst_value(measure: Macro, cases: Cases) -> Float[np.ndarray, "cases"]:
    """Value for each case of a ranking with all answers at the end."""
    if isinstance(measure, BestAnswer):
        return rank_weights(measure.metric, cases.candidates)
    gain = _block_gain(measure, 0, cases.candidates - 1, cases.answers, cases.answers)
    return gain / _ideal(measure, cases.answers)


def _gain(measure: AveragePrecision | DiscountedGain, position, place):
    """Gain of an answer at `position` that is the `place`-th answer of its query."""
    if isinstance(measure, AveragePrecision):
        return place / position
    return GAINS[measure.gain].discount(position)


def _discounts(measure: DiscountedGain) -> np.ndarray:
    """Gain of an answer at each position up to the cutoff, or up to the end of the longest list."""
    last = measure.cutoff if measure.longest is None else min(measure.cutoff, measure.longest)
    return GAINS[measure.gain].discount(np.arange(1, last + 1))


def _ideal(measure: AveragePrecision | DiscountedGain, answers: np.ndarray) -> np.ndarray:
    """Divisor of the sum of the gains of a query."""
    if isinstance(measure, AveragePrecision):
        return answers.astype(float)
    return GAINS[measure.gain].ideal(np.cumsum(_discounts(measure)), answers, measure.cutoff)


def values(
    measure: Macro, lists: Block, ties: Ties, tables: RankTables | None = None
) -> Float[np.ndarray, "lists"]:
    """Measure of every list under a tie rule; under `Ties.EXACT` its expectation.

    AP@k is the sum of place / position over the answers up to position k, divided by the number of answers.
    The other measures are sums of discounts divided by their ideal (`GAINS`).

    Args:
        measure: macro measure.
        lists: lists of whole queries.
        ties: tie rule.
        tables: tables of the rank weight of `BestAnswer`, up to the length of the longest list; None: they
            are made.
    """
    low, high = lists.tasks.optimistic, lists.tasks.pessimistic
    if isinstance(measure, BestAnswer) and tables is None:
        tables = rank_tables(measure.metric, int(lists.candidates.max()))
    if ties is Ties.EXACT and low is not high and (low < high).any():
        return _exact(measure, lists, tables)
    if ties is Ties.OPTIMISTIC or low is high:
        halves = 2 * low
    else:  # the order may differ from the order by optimistic rank
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
    """Measure with its cutoff at the longest list, which gives equal values with less work."""
    if isinstance(measure, BestAnswer):
        return measure
    longest = int((cases.candidates + cases.answers).max()) - 1
    if isinstance(measure, DiscountedGain):
        return replace(measure, longest=longest)
    return replace(measure, cutoff=min(measure.cutoff, longest))


def _block_gain(measure, before, ahead, size, answers) -> np.ndarray:
    """Expected gain of a block of `size` positions after `ahead`, with `answers` answers in random order.

    A position holds an answer with probability k / n. Given this, (j - 1)(k - 1)/(n - 1) of the j - 1
    positions of the block ahead of it hold answers on average (McSherry and Najork 2008).
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


# Number of entries of one [blocks, positions] array of `first_place`.
_ENTRIES = 2**20
# Up to this number of answers, a block's moments come from repeated sums, which then stay below 10^300.
_FEW_ANSWERS = 32


def first_place(
    metric: RankWeight, ahead: np.ndarray, size: np.ndarray, answers: np.ndarray, moments: int = 2
) -> Float[np.ndarray, "moments blocks"]:
    """E[h] and E[h^2] of the position of the first of `answers` answers in a block in random order.

    P(first at j) = C(n - j, k - 1) / C(n, k) for the j-th of n positions with k answers.

    Args:
        metric: rank weight h, evaluated at ahead + j.
        ahead: number of positions ahead of the block.
        size: n >= k.
        answers: k >= 1.
        moments: 2 for E[h] and E[h^2] (default), 1 for E[h] alone.
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
    # Repeated sums are used if they take less work than a scan over the positions of every block.
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
    """Moments of blocks at the top of their lists, with few answers, by summing k times.

    G_k(n) = C(n, k) E_k(n) is the sum of G_(k - 1) over 0 .. n - 1, and G_1 is the running sum of h. This
    gives all n at once, without cancellation.
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
    """Moments of blocks by a scan over their positions, as far as these are likely to matter."""
    result = np.zeros((2, len(ahead)))
    reach = _reach(weight, ahead, size, answers)
    # Rows of similar length share an array.
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
    """Number of positions to scan: up to the last with weight, or until probability exp(-50) is left."""
    last = int(np.flatnonzero(weight)[-1]) + 1 if weight.any() else 1
    likely = np.minimum(size - answers + 1, np.ceil(50 * size / answers).astype(np.int64) + 1)
    return np.minimum(likely, np.maximum(last - ahead, 1))


def list_chance(measure: Macro, cases: Cases) -> Float[np.ndarray, "2 cases"]:
    """Exact mean and variance of the measure of a list of each shape under random ranking.

    AP is computed by going down the first k positions with the distribution of the number of answers seen so
    far, and the first two moments of the sum of gains for each such number.
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

    The mean is pi S1, the variance pi (1 - pi) (S2 - (S1^2 - S2) / (n - 1)), where pi = k / n and S1, S2 are
    the sums of d and d^2 over the first positions, because the indicators of answers at two positions have
    covariance -pi (1 - pi) / (n - 1).
    """
    depth = np.minimum(n, len(discounts)) - 1
    once, twice = np.cumsum(discounts)[depth], np.cumsum(discounts**2)[depth]
    share = k / n
    pairs = (once**2 - twice) / np.maximum(n - 1, 1)
    return np.stack([share * once, np.maximum(share * (1 - share) * (twice - pairs), 0)])


def _precision_moments(depth: int, n: np.ndarray, k: np.ndarray) -> Float[np.ndarray, "2 cases"]:
    """E[X] and E[X^2] of X = sum of place / position over the answers in the first `depth` positions."""
    most = min(depth, int(k.max()))
    met = np.arange(most + 1)  # number of answers seen so far
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
