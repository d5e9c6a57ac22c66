"""Full test set under fixed models: scores, ranks and order of its answers, and sparse test sets."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ordered import changes

# Scores with a smaller relative difference may be equal, but computed in another order.
_ROUNDING = 1e-5


class FullTest(NamedTuple):
    """Full test set with the ranks and scores of fixed models, made and checked by `full_test`.

    Attributes:
        query: number of the query of each answer, [answers].
        optimistic, pessimistic: filtered ranks of each answer if ties favour it or go against it,
            [models, answers].
        score: score of each answer, larger is better, [models, answers].
        fact: head, relation and tail of each answer's fact, [answers, 3]; or None.
        popularity: popularity of each entity, [entities]; or None.
    """

    query: Int64[np.ndarray, "answers"]
    optimistic: Int64[np.ndarray, "models answers"]
    pessimistic: Int64[np.ndarray, "models answers"]
    score: Float64[np.ndarray, "models answers"]
    fact: Int64[np.ndarray, "answers 3"] | None = None
    popularity: Int64[np.ndarray, "entities"] | None = None


def full_test(
    query: ArrayLike,
    optimistic: ArrayLike,
    pessimistic: ArrayLike,
    score: ArrayLike,
    *,
    fact: ArrayLike | None = None,
    popularity: ArrayLike | None = None,
) -> FullTest:
    """`FullTest` of checked arrays.

    Args:
        query: number of the query of each answer, any integers of at least 0, [answers].
        optimistic, pessimistic: filtered ranks of each answer if ties favour it or go against it,
            [models, answers], or [answers] for one model.
        score: score of each answer, larger is better, in the same shape. May be infinite.
        fact: ids of head, relation and tail of each answer's fact, [answers, 3]. Answers with the same fact,
            such as an answer to a tail query and one to a head query, go missing together. Default: each
            answer is a fact of its own.
        popularity: number of facts that contain each entity, [entities]. `PopularityBased` needs it.

    Raises:
        ValueError: naming the argument, if shapes do not fit, a score is NaN, a rank is not an integer of at
            least 1, an optimistic rank exceeds the pessimistic one, ranks and scores contradict each other by
            more than rounding, or a fact answers one query twice.

    Examples:
        >>> full_test([0, 0, 1], [1, 4, 2], [1, 4, 2], [0.9, 0.2, 0.5]).score.shape
        (1, 3)
    """
    query = checks.integer("query", query, 0)
    if query.ndim != 1:
        raise ArgumentError("query", f"must have one axis (answers), got an array of shape {query.shape}.")
    ranks = {"optimistic": optimistic, "pessimistic": pessimistic}
    ranks = {k: np.atleast_2d(checks.integer(k, v, 1)) for k, v in ranks.items()}
    scores = np.atleast_2d(_scores(score))
    shape = (len(ranks["optimistic"]), len(query))
    for name, array in (*ranks.items(), ("score", scores)):
        if array.shape != shape:
            raise ArgumentError(name, f"must be of shape [models, answers] {shape}, got {array.shape}.")
    low, high = ranks.values()
    checks.require("pessimistic", high, low <= high, "at least the optimistic rank")
    _check_order(query, low, high, scores)
    if fact is not None:
        fact = checks.integer("fact", fact, 0)
        if fact.shape != (len(query), 3):
            raise ArgumentError("fact", f"must be of shape [answers, 3] {len(query), 3}, got {fact.shape}.")
        if len(np.unique(np.column_stack([query, fact]), axis=0)) < len(query):
            raise ArgumentError("fact", "must not answer one query twice.")
    if popularity is not None:
        popularity = checks.integer("popularity", popularity, 0)
        if popularity.ndim != 1:
            raise ArgumentError("popularity", f"must be of shape [entities], got {popularity.shape}.")
        if fact is None:
            raise ArgumentError(
                "popularity", "needs `fact`, which gives the entities of each answer; got None."
            )
        largest = int(fact[:, [0, 2]].max())
        if largest >= len(popularity):
            text = f"must have an entry for entity {largest} of `fact`, got {len(popularity)} entries."
            raise ArgumentError("popularity", text)
    return FullTest(query, low, high, scores, fact, popularity)


def _scores(score: ArrayLike) -> np.ndarray:
    try:
        array = np.asarray(score, np.float64)
    except (TypeError, ValueError):
        raise ArgumentError("score", f"must be numbers, got {type(score).__name__}.") from None
    if (kind := np.asarray(score).dtype).kind not in "iuf":
        raise ArgumentError("score", f"must be numbers, got {kind}.")
    checks.require("score", array, ~np.isnan(array), "a number, not NaN")
    return array


def _check_order(query: np.ndarray, low: np.ndarray, high: np.ndarray, score: np.ndarray) -> None:
    for model in range(len(score)):
        found = contradiction(query, low[model], high[model], score[model])
        if found is not None:
            one, two = found
            raise ArgumentError(
                "score",
                f"must be larger where ranks are better, got model {model} with score "
                f"{score[model, one]:g} at rank {high[model, one]} and {score[model, two]:g} at rank "
                f"{low[model, two]} of query {query[one]}.",
            )


def contradiction(
    query: np.ndarray, low: np.ndarray, high: np.ndarray, score: np.ndarray
) -> tuple[int, int] | None:
    """First pair of answers to one query of which the first scores higher but is not ranked ahead.

    `low` and `high` are optimistic and pessimistic ranks, [answers]; a larger score is better. None if ranks
    and scores agree.
    """
    order = np.lexsort((-score, query))
    better, worse = order[:-1], order[1:]
    s, t = score[better], score[worse]
    with np.errstate(invalid="ignore"):  # infinity minus infinity: equal scores
        above = s - t > _ROUNDING * np.maximum(np.abs(s), np.abs(t))
    above |= np.isinf(s) & (s > t)
    wrong = (query[better] == query[worse]) & above & (high[better] > low[worse])
    if not wrong.any():
        return None
    return int(better[wrong.argmax()]), int(worse[wrong.argmax()])


class ScoreOrder(NamedTuple):
    """Rows of answers, sorted by query and by decreasing score within each query.

    Attributes:
        answer: answer in each row, [rows].
        begin: first row of each row's query, [rows].
        first: first row with the same query and score as each row, [rows].
        last: row after the last one with the same query and score, [rows].
    """

    answer: Int64[np.ndarray, "rows"]
    begin: Int64[np.ndarray, "rows"]
    first: Int64[np.ndarray, "rows"]
    last: Int64[np.ndarray, "rows"]


def score_order(query: Int64[np.ndarray, "answers"], score: Float64[np.ndarray, "answers"]) -> ScoreOrder:
    """`ScoreOrder` of the answers of one model, [answers]; tied answers keep their order."""
    answer = np.lexsort((-score, query))
    query, score = query[answer], score[answer]
    begins = changes(query)
    tie_begins = begins | changes(score)
    rows = np.arange(len(answer))
    first = np.maximum.accumulate(np.where(tie_begins, rows, 0))
    ends = np.append(np.flatnonzero(tie_begins)[1:], len(rows))
    last = ends[np.cumsum(tie_begins) - 1]
    return ScoreOrder(answer, np.maximum.accumulate(np.where(begins, rows, 0)), first, last)


def thin(
    full: FullTest, present: ArrayLike
) -> tuple[Int64[np.ndarray, "models present"], Int64[np.ndarray, "models present"]]:
    """Ranks of the answers that remain if the others are missing from the test set; no model scores again.

    A missing answer is no longer filtered. It is a candidate like any wrong one:

        optimistic  = optimistic on the full test  + #{missing answers with a larger score}
        pessimistic = pessimistic on the full test + #{missing answers with no smaller score}

    Args:
        full: full test set of `full_test`.
        present: whether each answer is in the sparse test set, bool [answers].

    Returns:
        (optimistic, pessimistic), ranks of the present answers in their order, [models, present].

    Raises:
        ValueError: if `present` has another shape, or no answer is present.

    Examples:
        >>> full = full_test([0, 0, 1], [1, 4, 2], [1, 4, 2], [0.9, 0.2, 0.5])
        >>> [ranks.tolist() for ranks in thin(full, [False, True, True])]
        [[[5, 2]], [[5, 2]]]
    """
    present = np.asarray(present)
    if present.dtype != bool or present.shape != full.query.shape:
        raise ArgumentError(
            "present",
            f"must be true or false for each of {len(full.query)} answers, "
            f"got {present.dtype} of shape {present.shape}.",
        )
    if not present.any():
        raise ArgumentError("present", "must be true for at least one answer, got none.")
    low, high = full.optimistic.copy(), full.pessimistic.copy()
    for model, score in enumerate(full.score):
        order = score_order(full.query, score)
        missing_before = np.append(0, np.cumsum(~present[order.answer]))
        at_query = missing_before[order.begin]
        low[model, order.answer] += missing_before[order.first] - at_query
        high[model, order.answer] += missing_before[order.last] - at_query
    return low[:, present], high[:, present]
