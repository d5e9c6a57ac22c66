"""Rank table of a model on a graph."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.evaluation.arrays import ScoredRanks, rank_arrays
from owkg.evaluation.queries import is_asked
from owkg.keys import seeded, settled
from owkg.kg import KnowledgeGraph, KnownAnswers, is_known, joined_splits, known_answers
from owkg.kg.graph import graph_checked
from owkg.kg.seen import seen_ids, with_ids
from owkg.models import SIDES, Trained
from owkg.models.model import trained_checked
from owkg.ranks import Ranks, validated
from owkg.ranks.build import default_filters, described, filter_facts, query_names, score_checked
from owkg.ranks.unseen import last_ranks

PRECISIONS = ("float32", "float64")
"""Precisions for computing scores."""


@settled()
def ranks(
    trained: Trained,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    filter_splits: Sequence[str] | None = None,
    sides: str | Sequence[str] = SIDES,
    tolerance: float = 0.0,
    precision: str = "float32",
    name: str | None = None,
    popularity: bool = False,
    score: bool = False,
    queries: pl.DataFrame | None = None,
    seen: KnowledgeGraph | None = None,
    devices: Sequence[Any] | None = None,
    block_bytes: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """Rank table of a model: every triple of a split, on every side, against all entities.

    Args:
        trained: model with its parameters, whose rows follow the ids of the graph, or of `seen` if given.
        graph: KnowledgeGraph to evaluate on.
        split: split to rank. Default "test".
        filter_splits: splits whose other answers leave the candidates; an empty list gives raw ranks. None:
            train, valid and test, where the graph has them, and `split`.
        sides: sides to rank, "head", "tail" or both (default).
        tolerance: largest absolute difference of scores that counts as a tie. Default 0.
        precision: "float32" (default): scores have the precision of the parameters. "float64": scores are
            computed in float64 from the given parameters. Sums in another order, for example on another
            device or in another library, differ in their last bits and may reverse near ties; in float64 this
            hardly ever happens.
        name: value of the column `model`. None: no such column.
        popularity: add the columns popularity, relation_popularity and category, computed from the split
            train.
        score: add the column score, the score of each answer, which orders the answers to one query. Requires
            tolerance 0.
        queries: table from `read_queries`; only triples that answer one of these queries are ranked. None:
            all.
        seen: part of the graph that the model has seen (`owkg.kg.seen_part`). The candidates are then the
            entities of `seen` and the answer, and a triple with an unseen entity or relation gets the last
            rank, its number of candidates. (To leave such triples out, pass `seen` as the graph.) None: the
            whole graph.
        devices: devices that share the entities. None: all devices that JAX sees.
        block_bytes: bytes of memory for the scores of a block, as in `rank_arrays`.
        on_progress: function called with (ranks done, all ranks).

    Returns:
        A rank table (`owkg.ranks.validated`), with the triples in their order for each side in turn. A triple
        that the model cannot rank has the score minus infinity.

    Raises:
        ValueError: if the parameters do not have the size of the graph, the graph has no such split, an
            argument is out of range, or a score is not finite; in the last case the message names the query.

    Examples:
        >>> import jax, numpy as np
        >>> from owkg.models import Trained, model
        >>> graph = KnowledgeGraph(("a", "b", "c"), ("r",), {"test": np.array([[0, 0, 1]], np.int32)})
        >>> params = {"entity": jax.numpy.array([[0.0], [2.0], [1.0]]), "relation": jax.numpy.array([[1.0]])}
        >>> table = ranks(Trained(model("transe", dim=1), params), graph, sides=["tail"])
        >>> table.select("optimistic", "pessimistic", "candidates").rows()
        [(2, 3, 3)]
    """
    graph = graph_checked(graph)
    part = graph if seen is None else graph_checked(seen)
    with_score = score_checked(score, tolerance)
    if precision not in PRECISIONS:
        raise ArgumentError("precision", f"must be {' or '.join(PRECISIONS)}, got {precision!r}.")
    check_sizes(trained, part)
    if name == "":
        raise ArgumentError("name", f"must not be empty, got {name!r}.")
    if filter_splits is None:
        filter_splits = default_filters(graph, split)
    filter_splits = checks.names("filter_splits", filter_splits)
    sides = asked_sides(sides)
    triples, facts = joined_splits(graph, [split]), filter_facts(graph, filter_splits)
    if not len(triples):
        raise ArgumentError("split", f"must have triples to rank, got {split!r}, which has none.")
    asked = dict.fromkeys(sides, triples)
    if queries is not None:
        asked = {side: triples[is_asked(graph, triples, side, queries)] for side in sides}
    asked = {side: own for side, own in asked.items() if len(own)}
    if not asked:
        raise ArgumentError(
            "queries", f"must ask for {' or '.join(sides)} of a triple of {split}, got no such query."
        )
    total = sum(map(len, asked.values()))
    parts: list[ScoredRanks] = []
    filtered = bool(filter_splits)
    with in_precision(precision, trained) as scorer:
        scorer = scorer.encoded()
        for side, own in asked.items():
            before = sum(len(part.score) for part in parts)
            is_filter = split in filter_splits
            # A part that was seen has an index of its own.
            needed = part is graph or not is_filter
            known = known_answers(facts, side, **graph.sizes, asked=own) if needed else None
            found = _one_side(
                scorer,
                graph,
                part,
                own,
                side,
                facts=facts if filter_splits else None,
                known=known if filter_splits else None,
                tolerance=tolerance,
                devices=devices,
                block_bytes=block_bytes,
                on_progress=on_progress and (lambda done, _, at=before: on_progress(at + done, total)),
            )
            parts.append(found)
            filtered = filtered and (is_filter or (known is not None and bool(is_known(known, own).all())))
    every = ScoredRanks(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    side_of = np.repeat(list(asked), list(map(len, asked.values())))
    triples = np.concatenate(list(asked.values()))
    ranked = Ranks(every.optimistic, every.pessimistic, every.candidates)
    table = described(graph, triples, side_of, ranked, filtered=filtered, model=name, popularity=popularity)
    if with_score:
        table = table.with_columns(score=every.score)
    return validated(table)


@contextmanager
def in_precision(precision: str, trained: Trained) -> Iterator[Trained]:
    """Trained model; its arrays are float64 inside the context if `precision` is "float64"."""
    if precision == "float32":
        yield trained
        return
    with jax.enable_x64(True):
        yield jax.tree.map(
            lambda x: jnp.asarray(x, jnp.float64 if jnp.issubdtype(x.dtype, jnp.floating) else x.dtype),
            trained,
        )


def _one_side(
    trained: Trained,
    graph: KnowledgeGraph,
    seen: KnowledgeGraph,
    triples: np.ndarray,
    side: str,
    *,
    facts: np.ndarray | None,
    known: KnownAnswers | None,
    **options: Any,
) -> ScoredRanks:
    """Ranks of triples, by ids of the graph, on one side; triples that `seen` lacks get the last rank.

    `facts` are those that leave the candidates, and `known` are these by query; None: raw ranks.
    """
    own, inside = triples, np.ones(len(triples), bool)
    if seen is not graph:
        ids = seen_ids(graph, seen.entities, seen.relations)
        own = with_ids(triples, *ids)
        inside = (own >= 0).all(axis=1)
        if facts is not None:
            inner = with_ids(facts, *ids)
            inner = inner[(inner >= 0).all(axis=1)]
            known = known_answers(inner, side, **seen.sizes, asked=own[inside])
    names = query_names(own[inside], np.full(int(inside.sum()), side), seen.entities, seen.relations)
    found = rank_arrays(trained, own[inside], side, known=known, named=names, **options)
    if inside.all():
        return found
    last = last_ranks(graph, seen, triples[~inside], side, facts)
    every = ScoredRanks(*(np.empty(len(triples), column.dtype) for column in found))
    behind = np.full(len(last.candidates), -np.inf)
    for column, ranked, unseen in zip(every, found, (*last, behind), strict=True):
        column[inside], column[~inside] = ranked, unseen
    return every


def asked_sides(sides: str | Sequence[str]) -> list[str]:
    """Sides as a list; ValueError if there is none, an unknown one, or one twice."""
    names: list[Any] = list(sides) if isinstance(sides, list | tuple) else [sides]
    if not names or any(name not in SIDES or names.count(name) > 1 for name in names):
        got = ", ".join(map(str, names)) or "none"
        raise ArgumentError("sides", f"must be head, tail, or both, each once, got {got}.")
    return names


def check_sizes(trained: object, graph: KnowledgeGraph) -> None:
    """Raises ValueError unless the parameters have the graph's numbers of entities and relations."""
    trained = trained_checked(trained)
    held = trained.params | trained.statistics
    for name in ("entity", "relation"):
        if getattr(held[name], "ndim", 0) < 1:
            got = type(held[name]).__name__
            raise ArgumentError("trained", f"must have an array of rows in {name}, got {got}.")
    relations = graph.num_relations * (2 if trained.model.config.reciprocal else 1)
    for array, rows in (("entity", graph.num_entities), ("relation", relations)):
        if (got := len(trained.params[array])) != rows:
            raise ArgumentError(
                "trained",
                f"must have {rows} rows in {array} for a graph of {graph.num_entities} entities and "
                f"{graph.num_relations} relations, got {got}.",
            )
    wanted = jax.eval_shape(
        lambda key: trained.model.init(key, graph.num_entities, graph.num_relations), seeded(0)
    )
    known = trained.model.graph_shapes(graph.num_entities, graph.num_relations)
    for name, of in [pair for part in (*wanted, known) for pair in part.items()]:
        if name in known and getattr(held.get(name), "ndim", None) == of.ndim:  # however many facts
            continue
        if name not in held or getattr(held[name], "shape", None) != of.shape:
            got = f"shape {getattr(held[name], 'shape', ())}" if name in held else "none"
            must = f"must have the array {name} of shape {of.shape} ({trained.model.name})"
            raise ArgumentError("trained", f"{must}, got {got}.")
