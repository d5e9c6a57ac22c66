"""Prediction files of AnyBURL and PyClause, with the candidates for the head and the tail of each triple."""

import warnings
from pathlib import Path

import polars as pl

from owkg.files.lines import line_error
from owkg.kg.names import query_text

_SIDES = {"head": "Heads:", "tail": "Tails:"}
_EXPECTED = "a triple, 'head relation tail', followed by a line 'Heads: ...' and a line 'Tails: ...'"


def is_predictions(lines: pl.Series) -> bool:
    """Whether the second line of a file lists the candidates for a head."""
    return len(lines) > 1 and lines[1].startswith(_SIDES["head"])


def read_predictions(path: Path, lines: pl.Series) -> pl.DataFrame:
    """Candidates for the heads and tails of triples, in the format of AnyBURL and PyClause.

    Each triple has three lines: `head relation tail`, separated by tabs or spaces, and `Heads: e1 score e2
    ...` and `Tails: ...`, separated by tabs. Triples with the same query have lists that differ only by the
    answers that their filter removed; these lists are merged into one. A run cannot hold an empty list, so a
    warning counts the queries whose lists are all empty.

    Args:
        path: path of the file.
        lines: lines of the file.

    Returns:
        A frame with the columns line, query, side, entity, relation, answer, score.

    Raises:
        ValueError: naming file and line, if a line has another format, a score is not a number, or a
            candidate of one query has two scores.
    """
    while len(lines) and not lines[-1].strip():
        lines = lines.head(-1)
    frame = lines.alias("text").to_frame().with_row_index("line", offset=1)
    asked, *lists = (frame.gather_every(3, offset) for offset in range(3))
    separator = "\t" if "\t" in asked["text"][0] else " "
    parts = asked["text"].str.strip_chars(" \t" if separator == " " else "").str.split(separator)
    bad = (parts.list.len() != 3) | parts.list.eval(pl.element() == "").list.any()
    if bad.any():
        row = bad.arg_max() or 0
        raise line_error(path, 3 * row + 1, f"must be {_EXPECTED}, got {asked['text'][row][:80]!r}.")
    for name, held, offset in zip(_SIDES, lists, (2, 3), strict=True):
        wrong = ~held["text"].str.starts_with(_SIDES[name])
        if wrong.any():
            row = wrong.arg_max() or 0
            shown = held["text"][row][:80]
            raise line_error(path, 3 * row + offset, f"must begin with {_SIDES[name]!r}, got {shown!r}.")
    if len(lists[1]) < len(asked):
        raise line_error(
            path, len(lines), "must be followed by the lines of its triple, got the end of the file."
        )
    head, relation, tail = (parts.list.get(i) for i in range(3))
    queries = pl.concat(
        pl.DataFrame({"line": held["line"], "side": side, "entity": entity, "relation": relation})
        for (side, held), entity in zip(zip(_SIDES, lists, strict=True), (tail, head), strict=True)
    ).with_columns(query_text())
    found = pl.concat(_candidates(path, held, side) for side, held in zip(_SIDES, lists, strict=True))
    if found.is_empty():
        raise ValueError(f"{path}: must have at least one candidate, got none for any triple.")
    found = found.join(queries, on="line", maintain_order="left")
    empty = queries.join(found, on="query", how="anti").unique("query").sort("line")
    if len(empty):
        line, query = empty.select("line", "query").row(0)
        warnings.warn(
            f"{path}: {len(empty):,} queries have an empty list, such as {query!r} (line {line}). A run "
            "cannot hold an empty list, so they count as queries that the run does not answer.",
            UserWarning,
            stacklevel=3,
        )
    found = found.unique(["query", "answer", "score"], keep="first", maintain_order=True)
    again = ~found.select(pl.struct("query", "answer").is_first_distinct()).to_series()
    if again.any():
        line, query, answer = found.filter(again).select("line", "query", "answer").row(0)
        raise line_error(
            path, line, f"the answer {answer!r} to {query!r} has a different score on an earlier line."
        )
    return found.select("line", "query", "side", "entity", "relation", "answer", "score")


def _candidates(path: Path, held: pl.DataFrame, side: str) -> pl.DataFrame:
    """Columns line, answer and score of the lines of one side."""
    fields = pl.col("text").str.strip_prefix(_SIDES[side]).str.strip_prefix(" ").str.strip_chars_end("\t")
    fields = held.select("line", fields=fields.str.strip_prefix("\t"))
    fields = fields.filter(pl.col("fields").str.strip_chars() != "").with_columns(
        pl.col("fields").str.split("\t")
    )
    odd = fields.filter(pl.col("fields").list.len() % 2 == 1)
    if len(odd):
        line = odd["line"][0]
        raise line_error(
            path, line, "must be candidates and scores in turn, separated by tabs, got an odd number."
        )
    every = fields.explode("fields")
    pairs = pl.DataFrame(
        {
            "line": every["line"].gather_every(2),
            "answer": every["fields"].gather_every(2),
            "text": every["fields"].gather_every(2, 1),
        }
    )
    score = pairs["text"].cast(pl.Float64, strict=False)
    bad = score.is_null() | score.is_nan() | (pairs["answer"] == "")
    if bad.any():
        line, answer, text = pairs.row(bad.arg_max() or 0)
        raise line_error(path, line, f"must be candidates with scores, got {answer!r} with score {text!r}.")
    return pairs.select("line", "answer", score=score)
