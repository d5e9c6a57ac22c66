"""The rank table of a model over a graph."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from owkg.evaluate.arrays import rank_arrays
from owkg.kg import KnowledgeGraph, fact_splits, is_known, joined_splits, known_answers
from owkg.kg.graph import graph_checked
from owkg.models import SIDES, Model, Params, Statistics
from owkg.ranks import Ranks, validated
from owkg.ranks.build import FILTER_SPLITS, described, filter_facts, query_names, score_checked


def ranks(
    model: Model,
    params: Params,
    statistics: Statistics,
    graph: Any,
    *,
    split: str = "test",
    filter_splits: Sequence[str] | None = None,
    sides: Any = SIDES,
    tolerance: Any = 0.0,
    name: str | None = None,
    popularity: bool = False,
    score: Any = False,
    devices: Sequence[Any] | None = None,
    block_bytes: Any = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """The rank table of a model: every triple of a split on every side, against all entities.

    Args:
        model: what scores.
        params: of the model, rows in the order of the graph's ids.
        statistics: of the model.
        graph: the KnowledgeGraph.
        split: whose triples are ranked.
        filter_splits: the other answers that these splits know leave the candidates; none of them: raw ranks.
            None: train, valid and test, as far as the graph has them.
        sides: that are asked for, of "head" and "tail".
        tolerance: scores that differ from the answer's by at most this are ties; absolute.
        name: for the column `model`; None: no such column.
        popularity: add the columns popularity, relation_popularity and category, from the split train.
        score: add the column score: of each answer, which orders the answers to one question. Not with a
            tolerance.
        devices: that share the entities; None: all that JAX sees.
        block_bytes: of the scores that are there at a time, as in `rank_arrays`.
        on_progress: told how many ranks are done, and of how many.

    Returns:
        A rank table (`owkg.ranks.validated`), the triples in their order for each side in turn.

    Raises:
        ValueError: if the parameters are not of the graph's size, the graph has no such split, an argument is
            out of range, or a score is no finite number, naming the query.

    Examples:
        >>> import jax, numpy as np
        >>> from owkg.models import model
        >>> graph = KnowledgeGraph(("a", "b", "c"), ("r",), {"test": np.array([[0, 0, 1]], np.int32)})
        >>> transe = model("transe", dim=1)
        >>> params = {"entity": jax.numpy.array([[0.0], [2.0], [1.0]]), "relation": jax.numpy.array([[1.0]])}
        >>> table = ranks(transe, params, {}, graph, sides=["tail"])
        >>> table.select("optimistic", "pessimistic", "candidates").rows()
        [(2, 3, 3)]
    """
    graph = graph_checked(graph)
    with_score = score_checked(score, tolerance)
    _check_sizes(model, params, graph)
    if name == "":
        raise ValueError(f"`name` must not be empty, got {name!r}.")
    if filter_splits is None:
        filter_splits = [one for one in FILTER_SPLITS if one in fact_splits(graph)]
    sides = _sides_checked(sides)
    triples, facts = joined_splits(graph, [split]), filter_facts(graph, filter_splits)
    if not len(triples):
        raise ValueError(f"`split` must have triples to rank, got {split!r}, which has none.")
    sizes = {"num_entities": graph.num_entities, "num_relations": graph.num_relations}
    parts: list[Ranks] = []
    scores: list[np.ndarray] = []
    known = None
    for i, side in enumerate(sides):
        known = known_answers(facts, side, **sizes) if filter_splits else None
        asked = np.full(len(triples), side)
        found = rank_arrays(
            model,
            params,
            statistics,
            triples,
            side,
            known=known,
            tolerance=tolerance,
            devices=devices,
            block_bytes=block_bytes,
            named=query_names(triples, asked, graph.entities, graph.relations),
            on_progress=on_progress and partial(_onward, on_progress, i, len(sides)),
        )
        parts.append(Ranks(found.optimistic, found.pessimistic, found.candidates))
        scores.append(found.score)
    filtered = known is not None and bool(is_known(known, triples).all())
    every = Ranks(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    asked = np.repeat(sides, len(triples))
    triples = np.tile(triples, (len(sides), 1))
    table = described(graph, triples, asked, every, filtered=filtered, model=name, popularity=popularity)
    if with_score:
        table = table.with_columns(score=np.concatenate(scores))
    return validated(table)


def _onward(tell: Callable[[int, int], None], side: int, sides: int, done: int, total: int) -> None:
    """Tells what is done of all sides, `done` of this one."""
    tell(side * total + done, sides * total)


def _sides_checked(sides: Any) -> list[str]:
    names = list(sides) if isinstance(sides, list | tuple) else [sides]
    if not names or any(name not in SIDES or names.count(name) > 1 for name in names):
        raise ValueError(f"`sides` must be head, tail, or both, each once, got {sides!r}.")
    return names


def _check_sizes(model: Model, params: Params, graph: KnowledgeGraph) -> None:
    relations = graph.num_relations * (2 if model.config.reciprocal else 1)
    for array, rows in (("entity", graph.num_entities), ("relation", relations)):
        if len(params[array]) != rows:
            raise ValueError(
                f"`params` must have {rows} rows in {array} for a graph of {graph.num_entities} entities and "
                f"{graph.num_relations} relations, got {len(params[array])}."
            )
