"""Macro metrics: of each question one number, from the filtered ranks of all its answers.

In a table filtered by the other answers, the i-th best answer of a question with filtered rank r_(i) stands
at position r_(i) + i - 1 of the list that keeps all of them. So the whole list is known up to the order of
non-answers, and AP and nDCG need no scores. Answers whose scores are tied share optimistic and pessimistic
rank; a random order inside such a block has expectations in closed form. Random ranking is one block.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.metrics.measures import AveragePrecision, BestAnswer, DiscountedGain
from owkg.metrics.metric import Metric
from owkg.metrics.sums import padded_size, prefix_sums, rank_weights
from owkg.metrics.tasks import Tasks
from owkg.metrics.ties import Ties, half_rank_weights

Macro = BestAnswer | AveragePrecision | DiscountedGain


class Answers(NamedTuple):
    """The answers of every ranked list, sorted by rank; lists one after the other.

    A list is a question's under one model and seed.

    Attributes:
        optimistic, pessimistic: filtered ranks.
        ranking: id of each answer's list.
        first: index of the first answer of each list.
        place: 1 for the best answer of its list, 2 for the next, ...
        answers: of each list, how many.
        candidates: of each list, how long it is with its answers and all non-answers.
        weight: of each list, the mean weight of its tasks.
        question: of each list.
    """

    optimistic: Int[np.ndarray, "answers"]
    pessimistic: Int[np.ndarray, "answers"]
    ranking: Int[np.ndarray, "answers"]
    first: Int[np.ndarray, "lists"]
    place: Int[np.ndarray, "answers"]
    answers: Int[np.ndarray, "lists"]
    candidates: Int[np.ndarray, "lists"]
    weight: Float[np.ndarray, "lists"]
    question: Int[np.ndarray, "lists"]


def answers_of(tasks: Tasks) -> Answers | None:
    """The tasks as ranked lists; None if they are in no one list each.

    A question whose answers were ranked among different numbers of candidates, as by sampling negatives for
    each triple, has no one list; nor is the place of an answer known from ranks that count the question's
    other answers as negatives.
    """
    if tasks.filtered is not None and not tasks.filtered.all():
        return None
    n = len(tasks.optimistic)
    question = np.arange(n) if tasks.question is None else tasks.question
    ranking = question if tasks.ranking is None else tasks.ranking
    order = np.lexsort((tasks.pessimistic, tasks.optimistic, ranking))
    ranking = ranking[order]
    first = np.flatnonzero(np.diff(ranking, prepend=-1))
    answers = np.diff(first, append=n)
    candidates = tasks.candidates[order]
    if (candidates != np.repeat(candidates[first], answers)).any():
        return None
    weight = np.ones(n) if tasks.weight is None else tasks.weight[order]
    return Answers(
        tasks.optimistic[order],
        tasks.pessimistic[order],
        ranking,
        first,
        np.arange(n) - np.repeat(first, answers) + 1,
        answers,
        candidates[first] + answers - 1,
        np.add.reduceat(weight, first) / answers,
        question[order][first],
    )


def best_value(measure: Macro, lists: Answers) -> Float[np.ndarray, "questions"]:
    """What a perfect ranking gets: 1, but trec_eval's AP@k of a question with more than k answers less."""
    if isinstance(measure, AveragePrecision):
        return np.minimum(lists.answers, measure.cutoff) / lists.answers
    if isinstance(measure, BestAnswer):
        return np.full(len(lists.answers), rank_weights(measure.metric, np.ones(1))[0])
    return np.ones(len(lists.answers))


def worst_value(measure: Macro, lists: Answers) -> Float[np.ndarray, "questions"]:
    """What a ranking with all answers at the end gets."""
    if isinstance(measure, BestAnswer):
        last = lists.candidates - lists.answers + 1
        return half_rank_weights(measure.metric, int(last.max()))[2 * last]
    ahead = lists.candidates - lists.answers
    return _block_gain(measure, 0, ahead, lists.answers, lists.answers) / _ideal(measure, lists.answers)


def _gain(measure: AveragePrecision | DiscountedGain, position, place):
    """What an answer at `position`, the `place`-th of its question, adds."""
    if isinstance(measure, AveragePrecision):
        return place / position
    return 1 / np.log2(1 + position)


def _ideal(measure: AveragePrecision | DiscountedGain, answers: np.ndarray) -> np.ndarray:
    """What the gains of a question are divided by."""
    if isinstance(measure, AveragePrecision):
        return answers.astype(float)
    discounts = np.cumsum(1 / np.log2(1 + np.arange(1, measure.cutoff + 1)))
    return discounts[np.minimum(answers, measure.cutoff) - 1]


def values(measure: Macro, lists: Answers, ties: Ties) -> Float[np.ndarray, "questions"]:
    """The measure of every question under a tie rule; its expectation under `Ties.EXACT`.

    AP@k is sum of place / position over the answers up to position k, over the number of answers; nDCG@k
    the sum of 1 / log2(1 + position) over that of a perfect list.
    """
    if ties is Ties.EXACT and (lists.optimistic < lists.pessimistic).any():
        return _exact(measure, lists)
    low, high = lists.optimistic, lists.pessimistic
    halves = {Ties.OPTIMISTIC: 2 * low, Ties.PESSIMISTIC: 2 * high}.get(ties, low + high)
    if ties is not Ties.OPTIMISTIC:  # another order, perhaps, than that of the optimistic ranks
        halves = halves[np.lexsort((halves, lists.ranking))]
    if isinstance(measure, BestAnswer):
        best = halves[lists.first]
        return half_rank_weights(measure.metric, int(best.max()) // 2 + 1)[best]
    position = halves / 2 + lists.place - 1
    gains = np.where(position <= measure.cutoff, _gain(measure, position, lists.place), 0.0)
    return np.add.reduceat(gains, lists.first) / _ideal(measure, lists.answers)


def _exact(measure: Macro, lists: Answers) -> np.ndarray:
    """Expectations over a random order of every block of tied answers and non-answers."""
    new = (
        (np.diff(lists.optimistic, prepend=-1) != 0)
        | (np.diff(lists.pessimistic, prepend=-1) != 0)
        | (lists.place == 1)
    )
    start = np.flatnonzero(new)
    block_answers = np.diff(start, append=len(new))
    before = lists.place[start] - 1  # answers ahead of the block
    ahead = lists.optimistic[start] - 1 + before  # positions ahead of the block
    size = block_answers + lists.pessimistic[start] - lists.optimistic[start]
    if isinstance(measure, BestAnswer):
        leading = before == 0
        return first_place(measure.metric, ahead[leading], size[leading], block_answers[leading])[0]
    gains = _block_gain(measure, before, ahead, size, block_answers)
    first_block = np.flatnonzero(lists.place[start] == 1)
    return np.add.reduceat(gains, first_block) / _ideal(measure, lists.answers)


def shortened(measure: Macro, lists: Answers) -> Macro:
    """The measure with a cutoff of at most the longest list, which changes nothing but the work."""
    if isinstance(measure, BestAnswer):
        return measure
    return replace(measure, cutoff=min(measure.cutoff, int(lists.candidates.max())))


def _block_gain(measure, before, ahead, size, answers) -> np.ndarray:
    """Expected gain of a block of `size` positions after `ahead`, `answers` of them answers in random order.

    A position holds an answer with probability k / n, and then (j - 1)(k - 1)/(n - 1) of the j - 1
    positions of the block ahead of it do (McSherry and Najork 2008).
    """
    k = measure.cutoff
    low, high = np.minimum(ahead, k), np.minimum(ahead + size, k)
    share = answers / size
    if isinstance(measure, DiscountedGain):
        discounts = np.concatenate([[0.0], np.cumsum(1 / np.log2(1 + np.arange(1, k + 1)))])
        return share * (discounts[high] - discounts[low])
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, k + 1))])
    slope = (answers - 1) / np.maximum(size - 1, 1)
    constant = before + 1 - slope * (ahead + 1)
    return share * (constant * (harmonic[high] - harmonic[low]) + slope * (high - low))


# Entries of one [blocks, positions] array of `first_place`.
_ENTRIES = 2**22


def first_place(
    metric: Metric, ahead: np.ndarray, size: np.ndarray, answers: np.ndarray
) -> Float[np.ndarray, "2 blocks"]:
    """E[h] and E[h^2] of the position of the first of `answers` answers in a block in random order.

    P(first at j) = C(n - j, k - 1) / C(n, k) for the j-th of n positions with k answers.

    Args:
        metric: gives h of ahead + j.
        ahead: positions ahead of the block.
        size: n >= k.
        answers: k >= 1.
    """
    cases, back = np.unique(np.stack([ahead, size, answers]), axis=1, return_inverse=True)
    ahead, size, answers = cases
    result = np.zeros((2, len(ahead)))
    sums = prefix_sums(metric, padded_size((ahead + size).max()))
    single = answers == 1
    for row, total in zip(result, sums, strict=True):
        row[single] = (total[ahead + size] - total[ahead])[single] / size[single]
    weight = np.diff(sums[0])
    # From the last case with the longest reach to the first: rows of like length share an array.
    several = np.flatnonzero(~single)
    several = several[np.argsort(_reach(size, answers)[several])]
    begin = 0
    while begin < len(several):
        rows = several[begin : begin + max(1, _ENTRIES // int(_reach(size, answers)[several[-1]]))]
        begin += len(rows)
        j = np.arange(int(_reach(size, answers)[rows].max()))
        n, k = size[rows, None], answers[rows, None]
        # P(1) = k / n, and P(j + 1) / P(j) = (n - j - k + 1) / (n - j).
        probability = np.maximum(n - j - k + 1, 0) / np.maximum(n - j, 1)
        probability[:, 0] = k[:, 0] / n[:, 0]
        np.cumprod(probability, axis=1, out=probability)
        h = weight[np.minimum(ahead[rows, None] + j, len(weight) - 1)]
        result[0, rows] = (probability * h).sum(axis=1)
        result[1, rows] = (probability * h**2).sum(axis=1)
    return result[:, back.reshape(-1)]


def _reach(size: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Positions in which the first answer lies but for a probability of exp(-50)."""
    return np.minimum(size - answers + 1, np.ceil(50 * size / answers).astype(np.int64) + 1)


def chance(measure: Macro, lists: Answers) -> Float[np.ndarray, "2 questions"]:
    """Mean and variance of the measure of every question under random ranking, exact.

    AP by going down the first k positions with the law of the number of answers met so far, and the first
    two moments of the sum of gains on each of its values.
    """
    if isinstance(measure, BestAnswer):
        nothing = np.zeros_like(lists.answers)
        first, second = first_place(measure.metric, nothing, lists.candidates, lists.answers)
        return np.stack([first, np.maximum(second - first**2, 0)])
    cases, back = np.unique(np.stack([lists.candidates, lists.answers]), axis=1, return_inverse=True)
    n, k = cases
    if isinstance(measure, DiscountedGain):
        moments = _discounted_moments(measure.cutoff, n, k)
    else:
        first, second = _precision_moments(measure.cutoff, n, k)
        moments = np.stack([first, np.maximum(second - first**2, 0)])
    ideal = _ideal(measure, k)
    return (moments / np.stack([ideal, ideal**2]))[:, back.reshape(-1)]


def _discounted_moments(cutoff: int, n: np.ndarray, k: np.ndarray) -> Float[np.ndarray, "2 cases"]:
    """Mean and variance of the sum of discounts d over k of n positions, chosen at random.

    Mean pi S1, variance pi (1 - pi) (S2 - (S1^2 - S2) / (n - 1)) with pi = k / n and S1, S2 sums of d and d^2
    over the first positions: two positions both hold answers with covariance -pi (1 - pi) / (n - 1).
    """
    discounts = 1 / np.log2(1 + np.arange(1, cutoff + 1))
    depth = np.minimum(n, cutoff) - 1
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
