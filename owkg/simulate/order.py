"""Answers in the order of their queries and, within a query, of one model's scores."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64


class Order(NamedTuple):
    """Rows: answers sorted by query, and by falling score within.

    Attributes:
        answer: that stands at each row, [rows].
        begin: the row at which the query of each row begins, [rows].
        first: the first row of those that share a row's query and score, [rows].
        last: the row behind the last of them, [rows].
    """

    answer: Int64[np.ndarray, "rows"]
    begin: Int64[np.ndarray, "rows"]
    first: Int64[np.ndarray, "rows"]
    last: Int64[np.ndarray, "rows"]


def ordered(query: Any, score: Any) -> Order:
    """The order of one model's answers; answers that tie keep the order they have.

    Args:
        query: of each answer, [answers].
        score: of each answer, [answers].
    """
    answer = np.lexsort((-score, query))
    query, score = query[answer], score[answer]
    begins = _changes(query)
    tie_begins = begins | _changes(score)
    rows = np.arange(len(answer))
    first = np.maximum.accumulate(np.where(tie_begins, rows, 0))
    ends = np.append(np.flatnonzero(tie_begins)[1:], len(rows))
    last = ends[np.cumsum(tie_begins) - 1]
    return Order(answer, np.maximum.accumulate(np.where(begins, rows, 0)), first, last)


def _changes(values: np.ndarray) -> Bool[np.ndarray, "rows"]:
    return np.append(True, values[1:] != values[:-1])
