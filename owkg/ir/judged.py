"""Ranked lists of answers with graded or binary judgements, which may cover only some of the answers."""

from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int

from owkg import checks
from owkg.errors import ArgumentError

POOLED = -1
"""Relevance of an answer that was in the pool of candidates for judging, but was not judged."""

UNJUDGED = -2
"""Relevance of a retrieved answer that the judgements do not contain."""


class Judged(NamedTuple):
    """One ranked list for each query, stored flat: one list after the other, best answer first.

    Attributes:
        queries: names of the queries, ascending; every query with a judgement, once.
        query: for each retrieved answer, the index of its query in `queries`.
        rank: for each retrieved answer, its rank in the list, from 1.
        relevance: for each retrieved answer, its relevance of at least 0, `POOLED`, or `UNJUDGED`.
        retrieved: number of answers in each query's list; 0 if the run does not answer the query.
        relevant: number of answers judged relevant for each query, retrieved or not.
        nonrelevant: number of answers judged not relevant for each query, retrieved or not.
        ideal_query, ideal_rank, ideal_relevance: query, rank and relevance of the answers of positive
            relevance, retrieved or not, in the order of the ideal list, highest relevance first.
        relevance_level: lowest relevance that counts as relevant.
    """

    queries: pl.Series
    query: Int[np.ndarray, "answers"]
    rank: Int[np.ndarray, "answers"]
    relevance: Int[np.ndarray, "answers"]
    retrieved: Int[np.ndarray, "queries"]
    relevant: Int[np.ndarray, "queries"]
    nonrelevant: Int[np.ndarray, "queries"]
    ideal_query: Int[np.ndarray, "ideal"]
    ideal_rank: Int[np.ndarray, "ideal"]
    ideal_relevance: Int[np.ndarray, "ideal"]
    relevance_level: int


def judge(run: pl.DataFrame, qrels: pl.DataFrame, *, relevance_level: int = 1) -> Judged:
    """Ranked lists of a run, with the relevance that the judgements give each answer.

    Lists are ordered as trec_eval orders them: by score, highest first, and answers of equal score by their
    names as text, last first ("9" before "10", "b" before "a"), whatever the order of the rows. (trec_eval
    keeps scores in single precision, so it also ties scores that differ by less than that; this function does
    not.)

    Every query with a judgement is kept. If the run does not answer it, its list is empty and every measure
    is 0, as with trec_eval's option -c.

    Args:
        run: polars frame with the columns `query`, `answer` (text or whole numbers) and `score` (numbers,
            which may be infinite). Other columns are ignored.
        qrels: polars frame with the columns `query`, `answer` and `relevance` (whole numbers: 0 for judged
            and not relevant, `POOLED` = -1 for pooled and not judged).
        relevance_level: lowest relevance that counts as relevant, at least 1. Default 1.

    Raises:
        ValueError: if a frame is empty or lacks a column, a name is missing or has another type than in the
            other frame, a (query, answer) pair occurs twice, a score is not a number, a relevance is not a
            whole number of at least -1, or the run answers a query without judgements.

    Examples:
        >>> run = pl.DataFrame(
        ...     {"query": ["q", "q", "q"], "answer": ["a", "b", "c"], "score": [0.1, 0.9, 0.5]}
        ... )
        >>> qrels = pl.DataFrame({"query": ["q", "q"], "answer": ["c", "b"], "relevance": [2, 0]})
        >>> judge(run, qrels).relevance.tolist()
        [0, 2, -2]
    """
    level = checks.whole("relevance_level", relevance_level, 1)
    answers = _checked("run", run, "score")
    judgements = _checked("qrels", qrels, "relevance")
    for column in ("query", "answer"):
        if answers[column].dtype != judgements[column].dtype:
            raise ArgumentError(
                "qrels",
                f"must have the type of `run` in the column {column}, {answers[column].dtype}, "
                f"got {judgements[column].dtype}.",
            )
    judgements = judgements.with_columns(relevance=_graded(judgements["relevance"]))
    answers = answers.with_columns(score=_ordered(answers["score"]))

    names = judgements["query"].unique().sort()
    places = pl.DataFrame({"query": names, "place": np.arange(len(names))})
    answers = answers.join(places, on="query", how="left", maintain_order="left")
    if unknown := answers.filter(pl.col("place").is_null())["query"].head(1).to_list():
        raise ArgumentError("run", f"must answer queries that `qrels` judges, got {unknown[0]!r}.")
    judgements = judgements.join(places, on="query", how="left", maintain_order="left")

    answers = (
        answers.join(judgements.drop("place"), on=["query", "answer"], how="left")
        .with_columns(pl.col("relevance").fill_null(UNJUDGED), text=pl.col("answer").cast(pl.String))
        .sort("place", "score", "text", descending=[False, True, True])
    )
    ideal = judgements.filter(pl.col("relevance") > 0).sort("place", "relevance", descending=[False, True])
    place, relevance = judgements["place"].to_numpy(), judgements["relevance"].to_numpy()
    query = answers["place"].to_numpy()
    return Judged(
        queries=names,
        query=query,
        rank=_ranks(query),
        relevance=answers["relevance"].to_numpy(),
        retrieved=np.bincount(query, minlength=len(names)),
        relevant=np.bincount(place[relevance >= level], minlength=len(names)),
        nonrelevant=np.bincount(place[(relevance >= 0) & (relevance < level)], minlength=len(names)),
        ideal_query=ideal["place"].to_numpy(),
        ideal_rank=_ranks(ideal["place"].to_numpy()),
        ideal_relevance=ideal["relevance"].to_numpy(),
        relevance_level=level,
    )


def _ranks(query: Int[np.ndarray, "answers"]) -> Int[np.ndarray, "answers"]:
    """Ranks 1, 2, 3, ... within each run of equal, ascending queries."""
    counts = np.bincount(query)
    return np.arange(1, query.size + 1) - (np.cumsum(counts) - counts)[query]


def _checked(name: str, frame: object, number: str) -> pl.DataFrame:
    """Columns query, answer and `number` of a frame; the first two as text or 64-bit numbers."""
    if not isinstance(frame, pl.DataFrame):
        raise ArgumentError(name, f"must be a polars DataFrame, got {type(frame).__name__}.")
    columns = ("query", "answer", number)
    if missing := [column for column in columns if column not in frame.columns]:
        raise ArgumentError(
            name,
            f"must have the columns {', '.join(columns)}, got {', '.join(frame.columns) or 'none'} "
            f"(without {', '.join(missing)}).",
        )
    if frame.is_empty():
        raise ArgumentError(name, "must have at least one row, got none.")
    frame = frame.select(columns).with_columns(_named(name, frame[c]) for c in ("query", "answer"))
    twice = frame.filter(pl.struct("query", "answer").is_duplicated())
    if not twice.is_empty():
        query, answer = twice.row(0)[:2]
        raise ArgumentError(name, f"must list each answer of a query once, got {(query, answer)!r} twice.")
    return frame


def _named(name: str, column: pl.Series) -> pl.Series:
    """Column of names as one of two types, so that two frames can be matched."""
    for index in column.is_null().arg_true().head(1):
        raise ArgumentError(name, f"must name the {column.name} in every row, got none at index ({index},).")
    if column.dtype.is_integer():
        if int(column.max()) >= 2**63:  # pyright: ignore[reportArgumentType]
            raise ArgumentError(name, f"must name each {column.name} below 2**63, got {column.max()}.")
        return column.cast(pl.Int64)
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    raise ArgumentError(name, f"must name each {column.name} by text or a whole number, got {column.dtype}.")


def _graded(relevance: pl.Series) -> pl.Series:
    """Relevances as 64-bit whole numbers, none of them missing."""
    if not relevance.dtype.is_integer() and not relevance.dtype.is_float():
        raise ArgumentError(
            "relevance", f"must be a whole number of at least {POOLED}, got {relevance.dtype}."
        )
    return pl.Series(checks.integer("relevance", relevance.to_numpy(), POOLED))


def _ordered(score: pl.Series) -> pl.Series:
    """Scores, none of them missing or NaN."""
    if not score.dtype.is_integer() and not score.dtype.is_float():
        raise ArgumentError("score", f"must be a number, got {score.dtype}.")
    numbers = score.to_numpy()  # missing whole numbers become NaN
    checks.require("score", numbers, ~np.isnan(numbers), "a number")
    return score
