"""Judgements (qrels): which answers to a question are relevant, which are not, which nobody has judged."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from owkg import checks
from owkg.judge.frames import QRELS, checked, once, with_questions, write_fields
from owkg.judge.runs import known_pairs
from owkg.kg import KnowledgeGraph
from owkg.kg.lines import line_error
from owkg.metrics import POOLED
from owkg.ranks.table import SIDES
from owkg.ranks.trec import read_qrels

_PAIR = ("question", "answer")


def read_judgements(path: Any) -> pl.DataFrame:
    """Judgements from a file of TREC qrels, lines `question 0 answer grade`; .gz is unpacked.

    Returns:
        Columns question, side, entity, relation, answer, grade: above 0 relevant, 0 judged and not relevant,
        -1 (`owkg.metrics.POOLED`) pooled and not judged.

    Raises:
        ValueError: naming file and line: if a line is malformed, a grade is below -1, or an answer stands
            twice under one question.
        OSError: if the file cannot be opened.
    """
    path = checks.path("path", path)
    frame = read_qrels(path).rename({"relevance": "grade"})
    below = frame.filter(pl.col("grade") < POOLED)
    if len(below):
        line, grade = below.select("line", "grade").row(0)
        raise line_error(path, line, f"a grade must be at least {POOLED}, got {grade}.")
    return frame.select(QRELS)


def write_judgements(qrels: Any, path: Any) -> None:
    """Writes TREC qrels, lines `question 0 answer grade`, tabs between where a label has a space.

    Raises:
        ValueError: if `qrels` is malformed, judges an answer twice, or a label cannot be written.
    """
    frame = with_questions("qrels", judgements_checked("qrels", qrels))
    write_fields("qrels", frame.select("question", pl.lit("0").alias("zero"), "answer", "grade"), path)


def judgements_checked(name: str, qrels: Any) -> pl.DataFrame:
    """The columns of judgements, each answer of a question judged once; ValueError naming `name` if not."""
    return once(name, checked(name, qrels, QRELS), *_PAIR)


def qrels_from_graph(
    graph: KnowledgeGraph, splits: str | Sequence[str], *, sides: Sequence[str] = SIDES
) -> pl.DataFrame:
    """The facts of one split or several as judgements: every answer that they know is relevant.

    Args:
        graph: of the facts.
        splits: of the graph.
        sides: the sides that are asked for.

    Raises:
        ValueError: if the graph has no facts under such a name, or a side is unknown.

    Examples:
        >>> import numpy as np
        >>> graph = KnowledgeGraph(("a", "b"), ("r",), {"test": np.array([[0, 0, 1]], np.int32)})
        >>> qrels_from_graph(graph, "test").select("question", "answer", "grade").rows()
        [('?|r|b', 'a', 1), ('a|r|?', 'b', 1)]
    """
    names = [splits] if isinstance(splits, str) else list(splits)
    if not names:
        raise ValueError("`splits` must name at least one split, got none.")
    chosen = (sides,) if isinstance(sides, str) else tuple(sides)
    if not chosen or not set(chosen) <= set(SIDES):
        raise ValueError(f"`sides` must be some of {', '.join(SIDES)}, got {sides!r}.")
    pairs = known_pairs(graph, names)
    return pairs.filter(pl.col("side").is_in(chosen)).with_columns(grade=pl.lit(1, pl.Int64))


def merged(first: Any, second: Any) -> pl.DataFrame:
    """The judgements of both; an answer that only one of them has judged is judged so.

    Args:
        first: columns question, side, entity, relation, answer, grade.
        second: likewise.

    Returns:
        The rows of `first`, then those that only `second` has.

    Raises:
        ValueError: if one is malformed, or they judge an answer differently; it counts and names one.
    """
    left, right = judgements_checked("first", first), judgements_checked("second", second)
    both = left.join(right.select(*_PAIR, other="grade"), on=_PAIR, how="left", maintain_order="left")
    judged = (pl.col("grade") != POOLED) & (pl.col("other") != POOLED)
    against = both.filter(judged & (pl.col("grade") != pl.col("other")))
    if len(against):
        row = against.row(0, named=True)
        raise ValueError(
            f"`first` and `second` must not contradict each other: {len(against):,} answers have two grades, "
            f"such as {row['answer']!r} to {row['question']!r}, {row['grade']} and {row['other']}."
        )
    grade = pl.max_horizontal("grade", pl.col("other").fill_null(POOLED))
    new = right.join(left, on=_PAIR, how="anti", maintain_order="left")
    return pl.concat([both.with_columns(grade=grade).select(QRELS), new])


def binary(qrels: Any, *, level: Any = 1) -> pl.DataFrame:
    """The judgements with grades 1 (at least `level`) and 0; what is not judged stays so.

    Raises:
        ValueError: if `qrels` is malformed, or `level` is no whole number of at least 1.
    """
    lowest = checks.scalar("level", checks.integer("level", level, 1))
    relevant = (pl.col("grade") >= lowest).cast(pl.Int64)
    unjudged = pl.col("grade") == POOLED
    return judgements_checked("qrels", qrels).with_columns(
        grade=pl.when(unjudged).then(pl.lit(POOLED, pl.Int64)).otherwise(relevant)
    )


def judged_for(qrels: Any, questions: Any, *, intersect: bool = False) -> tuple[pl.DataFrame, int]:
    """The judgements of some questions.

    Args:
        qrels: columns question, side, entity, relation, answer, grade.
        questions: a frame with the column question, such as a run.
        intersect: leave out the judgements of other questions; else that there are some is an error.

    Returns:
        (judgements, number of questions that are judged, not among `questions`, and were left out).

    Raises:
        ValueError: if `qrels` is malformed, judges other questions, or none of `questions`.
    """
    frame = judgements_checked("qrels", qrels)
    asked = checked("questions", questions, ("question",)).unique()
    other = frame.join(asked, on="question", how="anti", maintain_order="left")["question"]
    unknown = other.unique(maintain_order=True)
    if len(unknown) and not checks.flag("intersect", intersect):
        raise ValueError(
            f"`qrels` must judge questions that are asked: {len(unknown):,} are not, such as {unknown[0]!r}; "
            "`intersect` leaves them out."
        )
    kept = frame.join(asked, on="question", how="semi", maintain_order="left")
    if kept.is_empty():
        raise ValueError("`qrels` must judge some question that is asked, got none.")
    return kept, len(unknown)
