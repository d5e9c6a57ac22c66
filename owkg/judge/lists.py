"""Runs of the best answers, made from score matrices."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.judge.runs import run_from_lists
from owkg.kg import KnowledgeGraph, fact_splits, joined_splits, known_answers
from owkg.kg.graph import graph_checked
from owkg.ranks import known_sets
from owkg.ranks.build import answer_sides, by_columns, split_of
from owkg.ranks.table import SIDES

# Number of scores handled at a time.
_BLOCK = 2**25


def known_of_lists(graph: KnowledgeGraph, split: str | None) -> list[str]:
    """Splits whose answers leave lists: train and valid, except `split`, because pools seek new answers."""
    return [name for name in ("train", "valid") if name in graph.splits and name != split]


def lists_of(
    scores: ArrayLike | Mapping[str, ArrayLike],
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    side: str = "tail",
    depth: int = 100,
    model: str = "scores",
    entities: Iterable[str] | None = None,
) -> pl.DataFrame:
    """Run of the best answers to the queries of a split, as `owkg rank --lists` writes it.

    Answers known from train and valid are removed from the lists, except the answers of the split itself.

    Args:
        scores: score matrix as for `owkg.rank`: [triples of the split, entities], or one such matrix for each
            side.
        graph: knowledge graph of the scores.
        split: split whose queries are asked. Default "test".
        side: predicted side if `scores` is one matrix, "head" or "tail". Default "tail".
        depth: maximum number of answers in a list; of equal scores, smaller ids come first. Default 100.
        model: name of the system. Default "scores".
        entities: labels of the columns of `scores`, in their order. Default: order of the graph.

    Returns:
        Columns model, query, side, entity, relation, answer, score, as for `owkg.judge.write_run`.

    Raises:
        ValueError: naming the argument, if a shape is wrong, a score is NaN, or two rows of one query have
            different scores.

    Examples:
        >>> triples = np.array([[0, 0, 1]], np.int32)
        >>> graph = KnowledgeGraph(("a", "b", "c"), ("r",), {"train": triples[:0], "test": triples})
        >>> lists_of([[0.1, 0.7, 0.9]], graph, depth=2).select("query", "answer", "score").rows()
        [('a|r|?', 'c', 0.9), ('a|r|?', 'b', 0.7)]
    """
    graph = graph_checked(graph)
    if split not in (splits := fact_splits(graph)):
        raise ArgumentError("split", f"must be one of {', '.join(splits)}, got {split!r}.")
    of_side = scores if isinstance(scores, Mapping) else {side: scores}
    if not of_side or set(of_side) - set(SIDES):
        raise ArgumentError("side", f"must be head or tail, got {', '.join(map(str, of_side)) or 'none'}.")
    graph = graph if entities is None else by_columns(graph, entities, None)
    triples = fact_splits(graph)[split]
    parts = [
        lists_of_rows(graph, np.asarray(one), triples, name, split=split, depth=depth, model=model)
        for name, one in of_side.items()
    ]
    return pl.concat(parts)


def lists_of_rows(
    graph: KnowledgeGraph,
    scores: np.ndarray,
    triples: np.ndarray,
    side: Any,
    *,
    depth: int,
    model: str,
    split: str | None = None,
) -> pl.DataFrame:
    """Run of the best answers, from one row of scores for each triple.

    Args:
        graph: knowledge graph with entity ids in the order of the columns.
        scores: scores, [triples, entities].
        triples: ids, [triples, 3].
        side: predicted side: one for all triples, or one for each.
        depth: maximum number of answers in a list.
        model: name of the system.
        split: split that holds the triples. Default: the smallest that holds them all.
    """
    deep = min(checks.whole("depth", depth, 1), graph.num_entities)
    if scores.shape != (len(triples), graph.num_entities) or scores.dtype.kind not in "iuf":
        raise ArgumentError(
            "scores",
            f"must be numbers of shape ({len(triples)}, {graph.num_entities}), one row for each triple and "
            f"one column for each entity, got {scores.dtype} of shape {scores.shape}.",
        )
    sides = answer_sides(side, len(triples))
    facts = joined_splits(graph, known_of_lists(graph, split_of(graph, triples) if split is None else split))
    parts = []
    for one in SIDES:
        rows = np.flatnonzero(sides == one)
        if not len(rows):
            continue
        asked = triples[rows][:, [0, 1] if one == "tail" else [2, 1]]
        queries, first, of = np.unique(asked, axis=0, return_index=True, return_inverse=True)
        _require_equal(scores, rows, rows[first][of.reshape(-1)])
        entity, relation = queries.T
        known = known_sets(known_answers(facts, one, **graph.sizes), entity, relation)
        answer, score = _best(scores, rows[first], known, deep)
        labels = {"entities": graph.entities, "relations": graph.relations}
        parts.append(run_from_lists(model, one, entity, relation, answer, score, **labels))
    return pl.concat(parts)


def _require_equal(scores: np.ndarray, rows: np.ndarray, first: np.ndarray) -> None:
    """ArgumentError if two rows of scores for the same query differ."""
    again = rows != first
    for row, other in zip(rows[again], first[again], strict=True):
        if not np.array_equal(scores[row], scores[other], equal_nan=True):
            raise ArgumentError(
                "scores", f"must be equal in rows of the same query, got different rows {other} and {row}."
            )


def _best(scores: np.ndarray, rows: np.ndarray, known: Any, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Best candidates of some rows and their scores, [rows, depth]; -1 after the last candidate."""
    answer, score = np.full((len(rows), depth), -1), np.zeros((len(rows), depth))
    step = max(1, _BLOCK // scores.shape[1])
    for begin in range(0, len(rows), step):
        own = rows[begin : begin + step]
        block = scores[own].astype(np.float64)
        if (bad := np.isnan(block).any(axis=1)).any():
            raise ArgumentError("scores", f"must not be NaN, got NaN in row {own[bad.argmax()]}.")
        gone = np.zeros(block.shape, bool)
        for i in range(len(own)):
            gone[i, known.ids[known.start[begin + i] : known.stop[begin + i]]] = True
        block[gone] = -np.inf
        last = np.partition(block, -depth, axis=1)[:, [-depth]]
        above, level = block > last, (block == last) & ~gone
        room = depth - above.sum(axis=1, keepdims=True)
        row, column = np.nonzero(above | (level & (np.cumsum(level, axis=1) <= room)))
        order = np.lexsort((column, -block[row, column], row))
        row, column = row[order], column[order]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        answer[begin + row, place], score[begin + row, place] = column, block[row, column]
    return answer, score
