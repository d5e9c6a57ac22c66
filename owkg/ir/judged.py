"""Ranked lists whose answers have been judged: graded, binary, or in part not at all."""

from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int

from owkg import checks
from owkg.errors import ArgumentError

POOLED = -1
"""The relevance of an answer that was in the pool of candidates for judging, and was not judged."""

UNJUDGED = -2
"""The relevance of a retrieved answer of which the judgements say nothing."""


class Judged(NamedTuple):
    """One ranked list a query, flat: the lists stand one after the other, best answer first.

    Attributes:
        queries: the queries' names, ascending; every query that has a judgement, once.
        query: of each retrieved answer, its place in `queries`.
        rank: of each retrieved answer, 1 for the first of its query.
        relevance: of each retrieved answer, at least 0, or `POOLED`, or `UNJUDGED`.
        retrieved: how many answers a query's list has; 0 where the run says nothing.
        relevant: how many answers are judged relevant, retrieved or not.
        nonrelevant: how many answers are judged not relevant, retrieved or not.
        ideal_query, ideal_rank, ideal_relevance: the answers of positive relevance, retrieved or not, in the
            order of the ideal list: highest relevance first.
        relevance_level: the lowest relevance that counts as relevant.
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
    """The ranked lists of a run with the relevances that the judgements give their answers.

    Lists are ordered as trec_eval orders them: by score, highest first; answers of equal score by their
    names as text, last first ("9" before "10", "b" before "a"), whatever the order of the rows. (Unlike
    here, trec_eval keeps scores in single precision, so it ties what differs less than that.)

    Every query with a judgement is kept, with an empty list where the run does not answer it, as under
    trec_eval's option -c: every measure is then 0.

    Args:
        run: polars frame with the columns `query`, `answer` (text or whole numbers) and `score`
            (numbers; infinite ones are in order). Other columns are not looked at.
        qrels: polars frame with the columns `query`, `answer` and `relevance` (whole numbers: 0 for judged
            and not relevant, `POOLED` = -1 for pooled and not judged).
        relevance_level: the lowest relevance that counts as relevant, at least 1.

    Raises:
        ValueError: if a frame is empty or lacks a column, a name is missing or of another kind than in the
            other frame, a (query, answer) stands there twice, a score is not a number, a relevance is no
            whole number from -1, or the run answers a query that has no judgement.

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
                f"must name each {column} as `run` does, by {answers[column].dtype}, "
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
    """1, 2, 3, ... within each run of equal, ascending queries."""
    counts = np.bincount(query)
    return np.arange(1, query.size + 1) - (np.cumsum(counts) - counts)[query]


def _checked(name: str, frame: object, number: str) -> pl.DataFrame:
    """The frame's columns query, answer and `number`; the first two as text or 64-bit numbers."""
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
    """A column of names in one of two kinds, so that two frames can be matched."""
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
    """The relevances as 64-bit whole numbers, none of them missing."""
    if not relevance.dtype.is_integer() and not relevance.dtype.is_float():
        raise ArgumentError(
            "relevance", f"must be a whole number of at least {POOLED}, got {relevance.dtype}."
        )
    return pl.Series(checks.integer("relevance", relevance.to_numpy(), POOLED))


def _ordered(score: pl.Series) -> pl.Series:
    """The scores, none of which is missing or no number."""
    if not score.dtype.is_integer() and not score.dtype.is_float():
        raise ArgumentError("score", f"must be a number, got {score.dtype}.")
    numbers = score.to_numpy()  # NaN where whole numbers are missing
    checks.require("score", numbers, ~np.isnan(numbers), "a number")
    return score
