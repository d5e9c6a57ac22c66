"""Registry of metrics that add up a gain for every answer in the first K positions of a list.

An entry is all that such a metric needs: its value under every tie rule, chance level, interval, name,
aliases and listing follow from it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class ListGain(NamedTuple):
    """Metric that sums discounts over the positions of answers and divides the sum by a norm.

    Attributes:
        name: NAME in the metric's name, macro-NAME@K.
        aliases: other words for NAME.
        discount: function from positions 1, 2, ... to the gain of an answer there.
        ideal: function of (cumulative discounts of the first positions, number of answers of each list, K)
            that returns the divisor of each list's sum. The discounts end at K, or at the longest list.
        formula: formula for readers; p_i is the position of the i-th answer.
        source: publication or library that defines the metric.
    """

    name: str
    aliases: tuple[str, ...]
    discount: Callable[[np.ndarray], np.ndarray]
    ideal: Callable[[np.ndarray, np.ndarray, int], np.ndarray]
    formula: str
    source: str


def _of_perfect_list(added: np.ndarray, answers: np.ndarray, cutoff: int) -> np.ndarray:
    return added[np.minimum(answers, len(added)) - 1]


def _one(position: np.ndarray) -> np.ndarray:
    return np.ones(np.shape(position))


GAINS = {
    gain.name: gain
    for gain in (
        ListGain(
            "ndcg",
            (),
            lambda position: 1 / np.log2(1 + position),
            _of_perfect_list,
            "mean over queries of (sum of 1/log2(1+p_i) over p_i <= K) / (sum of a perfect list)",
            "Zhou et al. 2022, trec_eval",
        ),
        ListGain(
            "recall",
            ("r",),
            _one,
            lambda added, answers, cutoff: answers.astype(float),
            "mean over queries of (number of p_i <= K) / (number of answers)",
            "trec_eval",
        ),
        ListGain(
            "precision",
            ("p",),
            _one,
            lambda added, answers, cutoff: np.full(len(answers), float(cutoff)),
            "mean over queries of (number of p_i <= K) / K",
            "Mei et al. 2018, trec_eval",
        ),
        ListGain(
            "f1",
            (),
            _one,
            lambda added, answers, cutoff: (answers + cutoff) / 2,
            "mean over queries of (number of p_i <= K) / (mean of K and the number of answers)",
            "Mei et al. 2018",
        ),
    )
}
"""Gains by name. A new entry adds a metric to every command."""
