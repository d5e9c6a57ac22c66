"""Ranked lists whose answers have been judged: graded, binary, or in part not at all."""

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int

from owkg import checks

POOLED = -1
"""The grade of an answer that was in the pool of candidates for judging, and was not judged."""

UNJUDGED = -2
"""The grade of a retrieved answer of which the judgements say nothing."""


class Judged(NamedTuple):
    """One ranked list a question, flat: the lists stand one after the other, best answer first.

    Attributes:
        questions: the questions' names, ascending; every question that has a judgement, once.
        question: of each retrieved answer, its place in `questions`.
        rank: of each retrieved answer, 1 for the first of its question.
        grade: of each retrieved answer, at least 0, or `POOLED`, or `UNJUDGED`.
        retrieved: how many answers a question's list has; 0 where the run says nothing.
        relevant: how many answers are judged relevant, retrieved or not.
        nonrelevant: how many answers are judged not relevant, retrieved or not.
        ideal_question, ideal_rank, ideal_grade: the answers of positive grade, retrieved or not, in the
            order of the ideal list: highest grade first.
        relevance_level: the lowest grade that counts as relevant.
    """

    questions: pl.Series
    question: Int[np.ndarray, "answers"]
    rank: Int[np.ndarray, "answers"]
    grade: Int[np.ndarray, "answers"]
    retrieved: Int[np.ndarray, "questions"]
    relevant: Int[np.ndarray, "questions"]
    nonrelevant: Int[np.ndarray, "questions"]
    ideal_question: Int[np.ndarray, "ideal"]
    ideal_rank: Int[np.ndarray, "ideal"]
    ideal_grade: Int[np.ndarray, "ideal"]
    relevance_level: int


def judge(run: Any, qrels: Any, *, relevance_level: Any = 1) -> Judged:
    """The ranked lists of a run with the grades that the judgements give their answers.

    Lists are ordered as trec_eval orders them: by score, highest first; answers of equal score by their
    names as text, last first ("9" before "10", "b" before "a"), whatever the order of the rows. (Unlike
    here, trec_eval keeps scores in single precision, so it ties what differs less than that.)

    Every question with a judgement is kept, with an empty list where the run does not answer it, as under
    trec_eval's option -c: every measure is then 0.

    Args:
        run: polars frame with the columns `question`, `answer` (text or whole numbers) and `score`
            (numbers; infinite ones are in order). Other columns are not looked at.
        qrels: polars frame with the columns `question`, `answer` and `grade` (whole numbers: 0 for judged
            and not relevant, `POOLED` = -1 for pooled and not judged).
        relevance_level: the lowest grade that counts as relevant, at least 1.

    Raises:
        ValueError: if a frame is empty or lacks a column, a name is missing or of another kind than in the
            other frame, a (question, answer) stands there twice, a score is not a number, a grade is no
            whole number from -1, or the run answers a question that has no judgement.

    Examples:
        >>> run = pl.DataFrame(
        ...     {"question": ["q", "q", "q"], "answer": ["a", "b", "c"], "score": [0.1, 0.9, 0.5]}
        ... )
        >>> qrels = pl.DataFrame({"question": ["q", "q"], "answer": ["c", "b"], "grade": [2, 0]})
        >>> judge(run, qrels).grade.tolist()
        [0, 2, -2]
    """
    level = checks.scalar("relevance_level", checks.integer("relevance_level", relevance_level, 1))
    answers = _checked("run", run, "score")
    judgements = _checked("qrels", qrels, "grade")
    for column in ("question", "answer"):
        if answers[column].dtype != judgements[column].dtype:
            raise ValueError(
                f"`qrels` must name each {column} as `run` does, by {answers[column].dtype}, "
                f"got {judgements[column].dtype}."
            )
    judgements = judgements.with_columns(grade=_graded(judgements["grade"]))
    answers = answers.with_columns(score=_ordered(answers["score"]))

    names = judgements["question"].unique().sort()
    places = pl.DataFrame({"question": names, "place": np.arange(len(names))})
    answers = answers.join(places, on="question", how="left", maintain_order="left")
    if unknown := answers.filter(pl.col("place").is_null())["question"].head(1).to_list():
        raise ValueError(f"`run` must answer questions that `qrels` judges, got {unknown[0]!r}.")
    judgements = judgements.join(places, on="question", how="left", maintain_order="left")

    answers = (
        answers.join(judgements.drop("place"), on=["question", "answer"], how="left")
        .with_columns(pl.col("grade").fill_null(UNJUDGED), text=pl.col("answer").cast(pl.String))
        .sort("place", "score", "text", descending=[False, True, True])
    )
    ideal = judgements.filter(pl.col("grade") > 0).sort("place", "grade", descending=[False, True])
    place, grade = judgements["place"].to_numpy(), judgements["grade"].to_numpy()
    question = answers["place"].to_numpy()
    return Judged(
        questions=names,
        question=question,
        rank=_ranks(question),
        grade=answers["grade"].to_numpy(),
        retrieved=np.bincount(question, minlength=len(names)),
        relevant=np.bincount(place[grade >= level], minlength=len(names)),
        nonrelevant=np.bincount(place[(grade >= 0) & (grade < level)], minlength=len(names)),
        ideal_question=ideal["place"].to_numpy(),
        ideal_rank=_ranks(ideal["place"].to_numpy()),
        ideal_grade=ideal["grade"].to_numpy(),
        relevance_level=level,
    )


def _ranks(question: Int[np.ndarray, "answers"]) -> Int[np.ndarray, "answers"]:
    """1, 2, 3, ... within each run of equal, ascending questions."""
    return np.arange(question.size) - np.searchsorted(question, question) + 1


def _checked(name: str, frame: Any, number: str) -> pl.DataFrame:
    """The frame's columns question, answer and `number`; the first two as text or 64-bit numbers."""
    if not isinstance(frame, pl.DataFrame):
        raise ValueError(f"`{name}` must be a polars DataFrame, got {type(frame).__name__}.")
    columns = ("question", "answer", number)
    if missing := [column for column in columns if column not in frame.columns]:
        raise ValueError(
            f"`{name}` must have the columns {', '.join(columns)}, got {', '.join(frame.columns) or 'none'} "
            f"(without {', '.join(missing)})."
        )
    if frame.is_empty():
        raise ValueError(f"`{name}` must have at least one row, got none.")
    frame = frame.select(columns).with_columns(_named(name, frame[c]) for c in ("question", "answer"))
    twice = frame.filter(pl.struct("question", "answer").is_duplicated())
    if not twice.is_empty():
        question, answer = twice.row(0)[:2]
        raise ValueError(
            f"`{name}` must list each answer of a question once, got {(question, answer)!r} twice."
        )
    return frame


def _named(name: str, column: pl.Series) -> pl.Series:
    """A column of names in one of two kinds, so that two frames can be matched."""
    for index in column.is_null().arg_true().head(1):
        raise ValueError(f"`{name}` must name the {column.name} in every row, got none at index ({index},).")
    if column.dtype.is_integer():
        if int(column.max()) >= 2**63:  # pyright: ignore[reportArgumentType]
            raise ValueError(f"`{name}` must name each {column.name} below 2**63, got {column.max()}.")
        return column.cast(pl.Int64)
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    raise ValueError(f"`{name}` must name each {column.name} by text or a whole number, got {column.dtype}.")


def _graded(grade: pl.Series) -> pl.Series:
    """The grades as 64-bit whole numbers, none of them missing."""
    if not grade.dtype.is_integer() and not grade.dtype.is_float():
        raise ValueError(f"`grade` must be a whole number of at least {POOLED}, got {grade.dtype}.")
    return pl.Series(checks.integer("grade", grade.to_numpy(), POOLED))


def _ordered(score: pl.Series) -> pl.Series:
    """The scores, none of which is missing or no number."""
    if not score.dtype.is_integer() and not score.dtype.is_float():
        raise ValueError(f"`score` must be a number, got {score.dtype}.")
    numbers = score.to_numpy()  # NaN where whole numbers are missing
    checks.require("score", numbers, ~np.isnan(numbers), "a number")
    return score
