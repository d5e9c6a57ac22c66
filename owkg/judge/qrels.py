"""Judgements (qrels): relevant, non-relevant and unjudged answers of each query."""

from collections.abc import Sequence

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.ir import POOLED
from owkg.ir.trec import Topics, read_qrels
from owkg.judge.runs import known_pairs
from owkg.judge.schema import QRELS, checked, once, write_fields
from owkg.kg import KnowledgeGraph
from owkg.kg.names import query_text
from owkg.ranks.table import SIDES

_PAIR = ("query", "answer")


def read_judgements(path: StrPath, *, topics: Topics = False) -> pl.DataFrame:
    """Judgements from a file of TREC qrels, lines `query 0 answer relevance`; .gz is unpacked.

    Args:
        path: path of the file.
        topics: "allowed" if queries may be topics (`owkg.ir.trec.read_run`). Default False.

    Returns:
        Columns query, side, entity, relation, answer, relevance: above 0 relevant, 0 judged and not relevant,
        -1 (`owkg.ir.POOLED`) or lower pooled and not judged.

    Raises:
        ValueError: naming file and line, if a line is malformed or an answer is repeated under one query.
        OSError: if the file cannot be opened.
    """
    return read_qrels(checks.path("path", path), topics=topics).select(QRELS)


def write_judgements(qrels: pl.DataFrame, path: StrPath) -> None:
    """Writes TREC qrels, lines `query 0 answer relevance`, separated by tabs if a label has a space.

    Args:
        qrels: columns query, side, entity, relation, answer, relevance.
        path: path of the file; a name that ends in .gz is packed.

    Raises:
        ValueError: if `qrels` is malformed, judges an answer twice, or a label cannot be written.
    """
    frame = judgements_checked("qrels", qrels).with_columns(query_text())
    columns = ("query", pl.lit("0").alias("zero"), "answer", "relevance", "relation")
    write_fields("qrels", frame.select(columns), path)


def judgements_checked(name: str, qrels: pl.DataFrame) -> pl.DataFrame:
    """Columns of judgements, each answer of a query judged once; ValueError naming `name` otherwise."""
    return once(name, checked(name, qrels, QRELS), *_PAIR)


def qrels_from_graph(
    graph: KnowledgeGraph, splits: str | Sequence[str], *, sides: Sequence[str] = SIDES
) -> pl.DataFrame:
    """Judgements from the facts of one or several splits: every known answer is relevant.

    Args:
        graph: knowledge graph of the facts.
        splits: name or names of splits of the graph.
        sides: sides that are asked for. Default head and tail.

    Raises:
        ValueError: if the graph has no facts under such a name, or a side is unknown.

    Examples:
        >>> import numpy as np
        >>> graph = KnowledgeGraph(("a", "b"), ("r",), {"test": np.array([[0, 0, 1]], np.int32)})
        >>> qrels_from_graph(graph, "test").select("query", "answer", "relevance").rows()
        [('?|r|b', 'a', 1), ('a|r|?', 'b', 1)]
    """
    names = [splits] if isinstance(splits, str) else list(splits)
    if not names:
        raise ArgumentError("splits", "must name at least one split, got none.")
    chosen = (sides,) if isinstance(sides, str) else tuple(sides)
    if not chosen or not set(chosen) <= set(SIDES):
        raise ArgumentError("sides", f"must be some of {', '.join(SIDES)}, got {sides!r}.")
    pairs = known_pairs(graph, names)
    return pairs.filter(pl.col("side").is_in(chosen)).with_columns(relevance=pl.lit(1, pl.Int64))


def merged(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Union of two sets of judgements; an answer judged in only one of them keeps that judgement.

    Args:
        first: columns query, side, entity, relation, answer, relevance.
        second: the same columns.

    Returns:
        Rows of `first`, then the rows that only `second` has.

    Raises:
        ValueError: if one is malformed, or they judge an answer differently; the message counts such answers
            and names one.
    """
    left, right = judgements_checked("first", first), judgements_checked("second", second)
    both = left.join(right.select(*_PAIR, other="relevance"), on=_PAIR, how="left", maintain_order="left")
    judged = (pl.col("relevance") != POOLED) & (pl.col("other") != POOLED)
    against = both.filter(judged & (pl.col("relevance") != pl.col("other")))
    if len(against):
        row = against.row(0, named=True)
        raise ArgumentError(
            "first",
            f"and `second` must not contradict each other: {len(against):,} answers have two relevances, "
            f"such as {row['answer']!r} to {row['query']!r}, {row['relevance']} and {row['other']}.",
        )
    relevance = pl.max_horizontal("relevance", pl.col("other").fill_null(POOLED))
    new = right.join(left, on=_PAIR, how="anti", maintain_order="left")
    return pl.concat([both.with_columns(relevance=relevance).select(QRELS), new])


def binary(qrels: pl.DataFrame, *, level: int = 1) -> pl.DataFrame:
    """Judgements with relevance 1 (at least `level`) or 0; unjudged answers stay unjudged.

    Args:
        qrels: columns query, side, entity, relation, answer, relevance.
        level: lowest relevance that counts as relevant, at least 1. Default 1.

    Raises:
        ValueError: if `qrels` is malformed, or `level` is not a whole number of at least 1.
    """
    lowest = checks.whole("level", level, 1)
    relevant = (pl.col("relevance") >= lowest).cast(pl.Int64)
    unjudged = pl.col("relevance") == POOLED
    return judgements_checked("qrels", qrels).with_columns(
        relevance=pl.when(unjudged).then(pl.lit(POOLED, pl.Int64)).otherwise(relevant)
    )


def judged_for(
    qrels: pl.DataFrame, queries: pl.DataFrame, *, intersect: bool = False
) -> tuple[pl.DataFrame, int]:
    """Judgements of some queries.

    Args:
        qrels: columns query, side, entity, relation, answer, relevance.
        queries: frame with the column query, such as a run.
        intersect: whether to leave out judgements of other queries; otherwise they are an error. Default
            False.

    Returns:
        Judgements, and the number of judged queries that are not among `queries` and were left out.

    Raises:
        ValueError: if `qrels` is malformed, judges other queries, or judges none of `queries`.
    """
    frame = judgements_checked("qrels", qrels)
    asked = checked("queries", queries, ("query",)).unique()
    other = frame.join(asked, on="query", how="anti", maintain_order="left")["query"]
    unknown = other.unique(maintain_order=True)
    if len(unknown) and not checks.flag("intersect", intersect):
        raise ArgumentError(
            "qrels",
            f"must only judge queries that are asked: {len(unknown):,} are not, such as {unknown[0]!r}; "
            "`intersect` leaves them out.",
        )
    kept = frame.join(asked, on="query", how="semi", maintain_order="left")
    if kept.is_empty():
        raise ArgumentError("qrels", "must judge some query that is asked, got none.")
    return kept, len(unknown)
