"""Ranks within many short lists at once."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from owkg.ordered import distinct, located, searched


class RetrievedAnswers(NamedTuple):
    """Answers to queries in the lists of several systems.

    Attributes:
        system: number of the system, [answers].
        query: number of the query, [answers].
        answer: entity id, [answers].
    """

    system: Int64[np.ndarray, "answers"]
    query: Int64[np.ndarray, "answers"]
    answer: Int64[np.ndarray, "answers"]


class RetrievedCounts(NamedTuple):
    """Numbers of candidates that rank above or level with each target, in its system's list for its query.

    Attributes:
        asked: whether there is such a list, [targets].
        retrieved: whether the list has the target, [targets].
        above: number of candidates in the list that score above the target, [targets]; all of them if the
            target is not in the list.
        level: number of candidates that score at least as much, [targets].
    """

    asked: Bool[np.ndarray, "targets"]
    retrieved: Bool[np.ndarray, "targets"]
    above: Int64[np.ndarray, "targets"]
    level: Int64[np.ndarray, "targets"]


def counts_in_lists(
    lists: RetrievedAnswers,
    score: Float64[np.ndarray, "answers"],
    candidate: Bool[np.ndarray, "answers"],
    targets: RetrievedAnswers,
    *,
    tolerance: float,
) -> RetrievedCounts:
    """Numbers of candidates above and level with each target.

    Args:
        lists: retrieved answers of the systems, each answer once in a list.
        score: scores of these answers, not NaN; larger is better.
        candidate: whether each of these answers counts; targets must not.
        targets: answers to find.
        tolerance: largest absolute difference from the target's score that counts as a tie.
    """
    queries = 1 + max((int(a.query.max()) for a in (lists, targets) if len(a.query)), default=0)
    in_list = lists.system * queries + lists.query
    keys = distinct(in_list)
    number = searched(keys, in_list)
    of, asked = located(keys, targets.system * queries + targets.query)
    entities = 1 + max((int(a.answer.max()) for a in (lists, targets) if len(a.answer)), default=0)
    facts = number * entities + lists.answer
    order = np.argsort(facts)
    place, found = located(facts[order], of * entities + targets.answer)
    retrieved = asked & found
    own = np.full(len(place), np.inf)
    own[retrieved] = score[order[place[retrieved]]]
    # All lists in one increasing array of (number of the list, place of the score among all scores).
    values = distinct(score[candidate])
    width = len(values) + 1
    ranked = np.sort(number[candidate] * width + searched(values, score[candidate]))

    def from_place(place: np.ndarray) -> np.ndarray:
        return np.where(asked, end - searched(ranked, of * width + place), 0)

    end = searched(ranked, (of + 1) * width)
    everything = from_place(np.zeros(len(of), np.int64))
    above = from_place(searched(values, own + tolerance, side="right"))
    level = from_place(searched(values, own - tolerance, side="left"))
    return RetrievedCounts(
        asked, retrieved, np.where(retrieved, above, everything), np.where(retrieved, level, everything)
    )
