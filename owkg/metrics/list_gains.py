"""Registry of metrics that add up a gain for every answer in the first K positions of a list.

An entry is all that such a metric takes: value under every tie rule, chance level, interval, name, aliases
and listing follow from it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class ListGain(NamedTuple):
    """A sum of discounts of the positions of answers, over what it is normalised by.

    Attributes:
        name: the metric is macro-NAME@K.
        aliases: other words for it.
        discount: of positions 1, 2, ...: what an answer there adds.
        ideal: of (discounts of positions 1 .. K added up, answers of each list): what the sum is divided by.
        formula: for people; p_i is the position of the i-th answer.
        source: where it is from.
    """

    name: str
    aliases: tuple[str, ...]
    discount: Callable[[np.ndarray], np.ndarray]
    ideal: Callable[[np.ndarray, np.ndarray], np.ndarray]
    formula: str
    source: str


def _of_perfect_list(added: np.ndarray, answers: np.ndarray) -> np.ndarray:
    return added[np.minimum(answers, len(added)) - 1]


GAINS = {
    gain.name: gain
    for gain in (
        ListGain(
            "ndcg",
            (),
            lambda position: 1 / np.log2(1 + position),
            _of_perfect_list,
            "mean over queries of sum of 1/log2(1+p_i) over p_i <= K, over that of a perfect list",
            "Zhou et al. 2022, trec_eval",
        ),
        ListGain(
            "recall",
            ("r",),
            lambda position: np.ones(np.shape(position)),
            lambda added, answers: answers.astype(float),
            "mean over queries of the number of p_i <= K, over the number of answers",
            "trec_eval",
        ),
    )
}
"""By name. A new entry is a new metric, in every command."""
