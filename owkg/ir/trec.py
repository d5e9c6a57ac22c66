"""TREC run and qrels files as tables of queries and answers."""

from pathlib import Path
from typing import Literal

import polars as pl

from owkg.files.lines import line_error, read_lines, split_lines
from owkg.ir import POOLED
from owkg.kg.names import QUERY_TEXT, TOPIC, query_parts, query_text, unescaped

_RUN = ("query", "q0", "answer", "rank", "score", "tag")
_QRELS = ("query", "zero", "answer", "relevance")
Topics = bool | Literal["allowed"]
"""Whether queries are topics, any text; allowed: if none in the file begins with ?| or ends with |?."""


def read_run(path: Path, *, topics: Topics = False) -> pl.DataFrame:
    """A run, lines `query Q0 answer rank score tag`, as they stand; .gz is unpacked.

    Fields are separated by white space, or by tabs where the first line holds five of them: then labels may
    hold spaces. A query is `head|relation|?` or `?|relation|tail`, with bars and the like in labels escaped
    as `owkg.kg.names` has it.

    Args:
        path: of the file.
        topics: whether queries are any text, as in TREC, and not taken apart; "allowed": if none of the file
            begins with ?| or ends with |?, they are topics, of side tail and relation `TOPIC`.

    Returns:
        Columns line, side, entity, relation, answer, score, tag, and query, the text of it; of topics without
        side, entity and relation.

    Raises:
        ValueError: naming file and line: if a line is malformed, a score is no number, or an answer stands
            twice under one query and tag.
    """
    frame = _fields(path, _RUN)
    score = frame["score"].cast(pl.Float64, strict=False)
    _refuse(path, frame["score"], score.is_null(), "a score must be a number")
    _refuse(path, frame["score"], score.is_nan(), "a score must not be NaN")
    frame = frame.with_columns(score=score).drop("q0", "rank")
    return _once(path, _queries(path, frame, topics), "tag", "query", "answer")


def read_qrels(path: Path, *, topics: Topics = False) -> pl.DataFrame:
    """Judgements, lines `query 0 answer relevance`; otherwise as `read_run`.

    Returns:
        Columns line, side, entity, relation, answer, relevance (Int64), and query. A relevance below -1, such
        as TREC's -2 for spam, is -1: pooled and not judged, as trec_eval takes it.
    """
    frame = _fields(path, _QRELS)
    relevance = frame["relevance"].cast(pl.Int64, strict=False)
    _refuse(path, frame["relevance"], relevance.is_null(), "a relevance must be a whole number")
    frame = frame.with_columns(relevance=relevance.clip(POOLED)).drop("zero")
    return _once(path, _queries(path, frame, topics), "query", "answer")


def _fields(path: Path, names: tuple[str, ...]) -> pl.DataFrame:
    """The fields of each line, and the number of the line."""
    lines = read_lines(path)
    tabs = lines[0].count("\t") == len(names) - 1
    # Between tabs, spaces at the ends of a field are none of it. A no-break space is no white space of TREC.
    field, between = (r"[^\t ](?:[^\t]*[^\t ])?", r" *\t *") if tabs else (r"[^ \t\r\v\f]+", r"[ \t]+")
    edge = " *" if tabs else r"[ \t]*"
    pattern = edge + between.join(f"(?P<{name}>{field})" for name in names) + edge
    expected = f"{len(names)} fields: {', '.join(names)}"
    frame = split_lines(path, lines, pattern, expected, separator="\t" if tabs else None)
    return frame.with_row_index("line", offset=1)


def _queries(path: Path, frame: pl.DataFrame, topics: Topics) -> pl.DataFrame:
    if topics is True:
        return frame
    query = frame["query"]
    if topics and not (query.str.ends_with("|?") | query.str.starts_with("?|")).any():
        return frame.with_columns(side=pl.lit("tail"), entity="query", relation=pl.lit(TOPIC))
    return _parsed(path, frame)


def _parsed(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` with its queries taken apart: columns side, entity, relation."""
    asked = frame.unique("query", keep="first", maintain_order=True).select("query", "line")
    asked = asked.with_columns(query_parts(pl.col("query")))
    if asked["side"].null_count():
        line, text = asked.filter(pl.col("side").is_null()).select("line", "query").row(0)
        raise line_error(path, line, f"a query must be {QUERY_TEXT}, got {text!r}.")
    found = frame.join(asked.drop("line"), on="query", how="left", maintain_order="left")
    if not frame.select(
        pl.any_horizontal(pl.col("query", "answer").str.contains("\\", literal=True).any())
    ).item():
        return found
    # One text for each query, however another program escapes it.
    return found.with_columns(query_text(), unescaped(pl.col("answer")))


def _once(path: Path, frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """`frame`, in which no line repeats an earlier one in all `columns`."""
    again = ~frame.select(pl.struct(columns).is_first_distinct()).to_series()
    if again.any():
        line, query, answer = frame.filter(again).select("line", "query", "answer").row(0)
        raise line_error(path, line, f"the answer {answer!r} to {query!r} stands on an earlier line too.")
    return frame


def _refuse(path: Path, column: pl.Series, bad: pl.Series, must: str) -> None:
    """Raises ValueError for the first line that is `bad`."""
    if bad.any():
        row = bad.arg_max() or 0
        raise line_error(path, row + 1, f"{must}, got {column[row]!r}.")
