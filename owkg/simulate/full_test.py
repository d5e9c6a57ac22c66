"""What fixed models say of a full test set: the scores and the ranks of all its answers."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from owkg import checks

# Scores that differ by less, relative to them, may have been computed in another order.
_ROUNDING = 1e-5


class FullTest(NamedTuple):
    """A full test set and what fixed models say of it; `full_test` checks and makes one.

    Attributes:
        question: which question each answer answers, any whole numbers, [answers].
        optimistic: rank of each answer when all other known answers leave the candidates and ties count
            for it, [models, answers].
        pessimistic: the same, ties against it, [models, answers].
        score: of each answer; larger is better, [models, answers].
        fact: head, relation and tail of the fact that each answer is, [answers, 3]; or None.
        popularity: of each entity, [entities]; or None.
    """

    question: Int64[np.ndarray, "answers"]
    optimistic: Int64[np.ndarray, "models answers"]
    pessimistic: Int64[np.ndarray, "models answers"]
    score: Float64[np.ndarray, "models answers"]
    fact: Int64[np.ndarray, "answers 3"] | None = None
    popularity: Int64[np.ndarray, "entities"] | None = None


def full_test(
    question: Any,
    optimistic: Any,
    pessimistic: Any,
    score: Any,
    *,
    fact: Any = None,
    popularity: Any = None,
) -> FullTest:
    """A `FullTest` of checked arrays.

    Args:
        question: which question each answer answers, any whole numbers of at least 0, [answers].
        optimistic: filtered rank of each answer, ties for it, [models, answers], or [answers] of one model.
        pessimistic: the same, ties against it.
        score: of each answer, larger is better, the same shape. Infinities are numbers like others.
        fact: ids of head, relation and tail of the fact that each answer is, [answers, 3]. Answers that are
            one fact, such as to a question of its tail and to one of its head, go missing together. None:
            each answer is a fact of its own.
        popularity: in how many facts each entity is, [entities]; `PopularityBased` needs it.

    Raises:
        ValueError: naming the argument: if shapes do not fit, a score is NaN, a rank is no whole number of
            at least 1 or the optimistic one is the larger, ranks and scores contradict each other by more
            than rounding, or a fact answers one question twice.

    Examples:
        >>> full_test([0, 0, 1], [1, 4, 2], [1, 4, 2], [0.9, 0.2, 0.5]).score.shape
        (1, 3)
    """
    question = checks.integer("question", question, 0)
    if question.ndim != 1:
        raise ValueError(f"`question` must be one number an answer, got an array of shape {question.shape}.")
    ranks = {"optimistic": optimistic, "pessimistic": pessimistic}
    ranks = {k: np.atleast_2d(checks.integer(k, v, 1)) for k, v in ranks.items()}
    scores = np.atleast_2d(_scores(score))
    shape = (len(ranks["optimistic"]), len(question))
    for name, array in (*ranks.items(), ("score", scores)):
        if array.shape != shape:
            raise ValueError(f"`{name}` must be of shape [models, answers] {shape}, got {array.shape}.")
    low, high = ranks.values()
    checks.require("pessimistic", high, low <= high, "at least the optimistic rank")
    _check_order(question, low, high, scores)
    if fact is not None:
        fact = checks.integer("fact", fact, 0)
        if fact.shape != (len(question), 3):
            raise ValueError(f"`fact` must be of shape [answers, 3] {len(question), 3}, got {fact.shape}.")
        if len(np.unique(np.column_stack([question, fact]), axis=0)) < len(question):
            raise ValueError("`fact` must not answer one question twice.")
    if popularity is not None:
        popularity = checks.integer("popularity", popularity, 0)
        if popularity.ndim != 1:
            raise ValueError(f"`popularity` must be of shape [entities], got {popularity.shape}.")
        if fact is None:
            raise ValueError("`popularity` is of entities, and `fact` must say which those are; got None.")
        largest = int(fact[:, [0, 2]].max())
        if largest >= len(popularity):
            raise ValueError(f"`popularity` must have entity {largest} of `fact`, got {len(popularity)}.")
    return FullTest(question, low, high, scores, fact, popularity)


def _scores(score: Any) -> np.ndarray:
    try:
        array = np.asarray(score, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"`score` must be numbers, got {type(score).__name__}.") from None
    if (kind := np.asarray(score).dtype).kind not in "iuf":
        raise ValueError(f"`score` must be numbers, got {kind}.")
    checks.require("score", array, ~np.isnan(array), "a number, not NaN")
    return array


def _check_order(question: np.ndarray, low: np.ndarray, high: np.ndarray, score: np.ndarray) -> None:
    for model in range(len(score)):
        found = contradiction(question, low[model], high[model], score[model])
        if found is not None:
            one, two = found
            raise ValueError(
                f"`score` must be larger where ranks are better, got model {model} with score "
                f"{score[model, one]:g} at rank {high[model, one]} and {score[model, two]:g} at rank "
                f"{low[model, two]} of question {question[one]}."
            )


def contradiction(
    question: np.ndarray, low: np.ndarray, high: np.ndarray, score: np.ndarray
) -> tuple[int, int] | None:
    """Two answers to a question of which the first scores more and does not stand before the other.

    Args:
        question: of each answer, [answers].
        low: optimistic rank of each answer, [answers].
        high: its pessimistic rank.
        score: of each answer; larger is better.
    """
    order = np.lexsort((-score, question))
    better, worse = order[:-1], order[1:]
    s, t = score[better], score[worse]
    with np.errstate(invalid="ignore"):  # infinity less infinity: equal scores
        above = s - t > _ROUNDING * np.maximum(np.abs(s), np.abs(t))
    above |= np.isinf(s) & (s > t)
    wrong = (question[better] == question[worse]) & above & (high[better] > low[worse])
    if not wrong.any():
        return None
    return int(better[wrong.argmax()]), int(worse[wrong.argmax()])
