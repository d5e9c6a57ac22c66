"""Rank tables under other qrels, derived from ranks without scoring again."""

from typing import NamedTuple

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg.names import asked_entity, known_entity, query_of, query_text
from owkg.metrics import tasks_of
from owkg.ranks import RankTable, realistic

_KEY = ("side", "entity", "relation", "answer")


class Relabelled(NamedTuple):
    """Rank table under other qrels.

    Attributes:
        table: rows of the relevant answers, with their ranks among more candidates.
        unlabelled: number of lists (a query of a system) without a relevant answer, which have no row.
        undetermined: share of rows whose rank is only known as a range, because the order of answers of equal
            rank is unknown; 0 if the table has scores, which determine the order and the ties.
    """

    table: pl.DataFrame
    unlabelled: int
    undetermined: float


def relabelled(table: RankTable | pl.DataFrame, qrels: pl.DataFrame, *, level: int = 1) -> Relabelled:
    """Rank table under qrels with fewer relevant answers, without scoring again.

    Answers that are no longer relevant become candidates like all others, and rank above the answers that
    they outscore. A column score, if the table has one, determines this order. Without scores, filtered ranks
    do: of two answers in one list, the one with the better rank has the higher score. Answers of equal rank,
    such as all answers at rank 1, may then be in any order: the optimistic rank assumes the best order, the
    pessimistic rank the worst, and the value of a metric is its expectation over these orders (tie rule
    "exact"). The mean of the two ranks ("realistic") would be far off.

    Args:
        table: filtered ranks of all answers that any qrels call relevant; of one system, or of several in the
            columns model and seed. In a column score, larger is better and equal is tied: ranks that were
            made with a tolerance do not fit.
        qrels: columns side, entity, relation, answer and relevance, as from `owkg.ir.trec.read_qrels`.
        level: lowest relevance that counts as relevant. Default 1.

    Raises:
        ValueError: if the table is malformed or unfiltered, or its answers to a query cannot come from one
            scoring; if `level` is not a whole number of at least 1; if `qrels` lacks a column, calls an
            answer relevant that the table does not rank, or leaves no answer.

    Examples:
        >>> row = {"head": "h", "relation": "r", "side": "tail", "candidates": 9}
        >>> ranks = pl.DataFrame(
        ...     [row | {"tail": t, "optimistic": r, "pessimistic": r} for t, r in (("a", 1), ("b", 2))]
        ... )
        >>> fact = {"side": "tail", "entity": "h", "relation": "r", "answer": "b", "relevance": 1}
        >>> relabelled(ranks, pl.DataFrame([fact])).table.select("tail", "optimistic", "candidates").row(0)
        ('b', 3, 10)
    """
    from owkg.simulate import full_test, thin
    from owkg.simulate.full_test import contradiction

    tasks, rows = tasks_of(RankTable.of_entities(table))
    if tasks.filtered is not None and not tasks.filtered.all():
        raise ArgumentError("table", "must hold ranks filtered by the query's other answers, got raw ranks.")
    present = _present(rows, qrels, level)
    if tasks.ranking is not None:
        ranking = tasks.ranking
    else:
        ranking = np.arange(len(rows)) if tasks.query is None else tasks.query
    best, worst = rows["optimistic"].to_numpy(), rows["pessimistic"].to_numpy()
    scored = "score" in rows.columns
    score = rows["score"].to_numpy() if scored else -realistic(best, worst)
    if (pair := contradiction(ranking, best, worst, score)) is not None:
        raise ArgumentError(
            "table",
            "must rank the answers to a query by one scoring, filtered by each other, without a "
            f"tolerance for ties; it has {_told(rows[pair[0]])}, but {_told(rows[pair[1]])}.",
        )
    full = full_test(ranking, best, worst, score)
    low, high = thin(full, present)
    gone = np.bincount(ranking, ~present)
    found = rows.filter(present).with_columns(
        optimistic=pl.Series(low[0], dtype=pl.Int64),
        pessimistic=pl.Series(high[0], dtype=pl.Int64),
        candidates=pl.col("candidates") + pl.Series(gone[ranking][present].astype(np.int64)),
    )
    open_ = (high - low)[0] > (worst - best)[present]
    undetermined = 0.0 if scored else float(open_.mean())
    return Relabelled(found, int((np.bincount(ranking, present) == 0).sum()), undetermined)


def _told(row: pl.DataFrame) -> str:
    """Answer with its ranks, and its score if there is one, for messages."""
    of = row.with_columns(known_entity(), asked_entity()).with_columns(query_text()).row(0, named=True)
    run = "".join(f" of {name} {of[name]!r}" for name in ("model", "seed") if name in of)
    low, high = of["optimistic"], of["pessimistic"]
    ranks = f"rank {low}" if low == high else f"ranks {low} to {high}"
    score = f", score {of['score']:g}," if "score" in of else ""
    return f"{of['answer']!r} to {of['query']}{run}{score} at {ranks}"


def _present(rows: pl.DataFrame, qrels: pl.DataFrame, level: int) -> np.ndarray:
    """Whether the qrels call each row relevant."""
    wanted = (*_KEY, "relevance")
    if not isinstance(qrels, pl.DataFrame) or any(name not in qrels.columns for name in wanted):
        got = ", ".join(qrels.columns) if isinstance(qrels, pl.DataFrame) else repr(qrels)
        raise ArgumentError("qrels", f"must have the columns {', '.join(wanted)}, got {got}.")
    asked = rows.select(
        "side",
        entity=known_entity().cast(pl.String),
        relation=pl.col("relation").cast(pl.String),
        answer=asked_entity().cast(pl.String),
    )
    if not qrels["relevance"].dtype.is_integer():
        raise ArgumentError(
            "qrels", f"must hold each relevance as a whole number, got {qrels['relevance'].dtype}."
        )
    least = checks.whole("level", level, 1)
    relevant = qrels.filter(pl.col("relevance") >= least).select(
        pl.col(name).cast(pl.String) for name in _KEY
    )
    unranked = relevant.join(asked, on=_KEY, how="anti")
    if len(unranked):
        side, entity, relation, answer = unranked.sort(*_KEY).row(0)
        query = query_of(entity, relation, side)
        raise ArgumentError(
            "qrels",
            f"must only call ranked answers relevant; {len(unranked):,} of them are not ranked, such as "
            f"{answer!r} to {query}. A run has them if the system lists them (owkg compare RUN... "
            "--kg DIR).",
        )
    marked = asked.join(
        relevant.unique().with_columns(present=True), on=_KEY, how="left", maintain_order="left"
    )
    present = marked["present"].fill_null(False).to_numpy()
    if not present.any():
        raise ArgumentError("qrels", "must call at least one answer relevant, got none.")
    return present
