"""Training queries of a graph: every fact on both sides, with the known answers."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from owkg import kg
from owkg.errors import ArgumentError
from owkg.kg.triples import query_ids
from owkg.models import MODELS, SIDES
from owkg.train.config import Training

# Assumed number of further answers of every query, for weights by subsampling.
_COUNTED_FROM = 3


class SideQueries(NamedTuple):
    """Queries of one side.

    Attributes:
        entity, relation: entity and relation given by each query, [queries].
        answer: answer of the fact; if all answers of a query count, the first one.
        start, stop: range of the known answers of each query in `answers`.
        weight: weight of each query in the loss, or [1] if all weights are equal.
        answers: known answers of all queries, [facts], increasing within each query.
    """

    entity: Int[Array, "q"]
    relation: Int[Array, "q"]
    answer: Int[Array, "q"]
    start: Int[Array, "q"]
    stop: Int[Array, "q"]
    weight: Float[Array, "weights"]
    answers: Int[Array, "facts"]


class Sizes(NamedTuple):
    """Integers that determine shapes and loops; tuples give the number for heads, then for tails.

    Attributes:
        num_entities, num_relations: size of the graph.
        num_facts: number of facts of train.
        queries: number of queries of each side.
        most: largest number of known answers of a query.
        batch: queries per step.
        per_epoch: steps per epoch.
        total: steps of the training.
        batch_answers: largest number of known answers of the queries of a step together.
    """

    num_entities: int
    num_relations: int
    num_facts: int
    queries: tuple[int, ...]
    most: tuple[int, ...]
    batch: tuple[int, ...]
    per_epoch: int
    total: int
    batch_answers: tuple[int, ...]


def require_trainable(config: Training) -> None:
    """Raises ArgumentError if the model cannot be trained."""
    if made_by := MODELS[config.model].made_by:
        raise ArgumentError(
            "model", f"must be a model to train, got {config.model!r}, which {made_by} makes."
        )


def queries(graph: kg.KnowledgeGraph, config: Training) -> tuple[tuple[SideQueries, ...], Sizes]:
    """Queries of the split train for each side, and their sizes.

    Raises:
        ValueError: if the split train is missing or empty, or no entity is left to draw negatives from.
    """
    require_trainable(config)
    facts = kg.joined_splits(graph, ["train"])
    if not len(facts):
        raise ArgumentError("graph", "must have triples in train, got none.")
    known = [kg.known_answers(facts, side, **graph.sizes) for side in SIDES]
    if config.training_loop == "kvsall":
        parts = [_distinct(index) for index in known]
    else:
        # Both sides hold the same arrays, because the entity given by one side is the answer of the other
        # side.
        columns = [jnp.asarray(np.ascontiguousarray(column)) for column in facts.T]
        weights = _weights(facts, known, config)
        parts = [_every(facts, columns, *of_side) for of_side in zip(weights, known, strict=True)]
    counts = [np.asarray(part.stop - part.start) for part in parts]
    if config.training_loop == "negatives" and config.filtered_negatives:
        for side, part, count in zip(SIDES, parts, counts, strict=True):
            _refuse_full(graph, side, part, count)
    asked = tuple(len(part.entity) for part in parts)
    at_least = -(-sum(asked) // config.batch_size)
    batch = tuple(-(-q // at_least) for q in asked)
    # Rounding up both batches may leave fewer steps in an epoch; none may be without queries.
    per_epoch = max(-(-q // b) for q, b in zip(asked, batch, strict=True))
    total = config.steps or config.epochs * per_epoch
    if total >= 2**31:
        name = "steps" if config.steps else "epochs"
        raise ArgumentError(name, f"must make fewer than 2**31 steps, got {total}.")
    largest = (int(np.sort(c)[-b:].sum()) for c, b in zip(counts, batch, strict=True))
    return tuple(parts), Sizes(
        **graph.sizes,
        num_facts=len(facts),
        queries=asked,
        most=tuple(int(c.max()) for c in counts),
        batch=batch,
        per_epoch=per_epoch,
        total=total,
        batch_answers=tuple(largest),
    )


def some_queries(part: SideQueries, rows: Int[Array, "q"], counts: Bool[Array, "q"]) -> SideQueries:
    """Some of the queries, with weight 0 where they do not count; `answers` still holds all answers."""
    of_query = ("entity", "relation", "answer", "start", "stop")
    weight = part.weight if len(part.weight) == 1 else part.weight[rows]
    own = {name: getattr(part, name)[rows] for name in of_query}
    return part._replace(**own, weight=jnp.where(counts, weight, 0))


def _every(facts: np.ndarray, columns: list[Array], weight: Array, known: kg.KnownAnswers) -> SideQueries:
    """One query per fact, from `columns` of the facts on the device."""
    start, stop = kg.answer_ranges(known, *query_ids(facts, known.side)[:2])
    asked = columns if known.side == "tail" else columns[::-1]
    start, stop, answers = _arrays(start, stop, known.answers)
    return SideQueries(*asked, start=start, stop=stop, weight=weight, answers=answers)


def _distinct(known: kg.KnownAnswers) -> SideQueries:
    """Every distinct query once."""
    entity, relation = np.divmod(known.keys, known.num_relations)
    start, stop = known.offsets[:-1], known.offsets[1:]
    columns = _arrays(entity, relation, known.answers[start], start, stop)
    return SideQueries(*columns, weight=jnp.ones(1), answers=jnp.asarray(known.answers.astype(np.int32)))


def _arrays(*columns: np.ndarray) -> tuple[Array, ...]:
    """Columns as 32-bit arrays on the device."""
    return tuple(jnp.asarray(column.astype(np.int32)) for column in columns)


def _weights(facts: np.ndarray, known: list[kg.KnownAnswers], config: Training) -> list[Array]:
    """Weights of the queries of each side; [1] if all weights are equal."""
    both = _subsampled(facts, known) if config.subsampling else np.ones(1)
    weights = [both, both]
    if config.sides == "bernoulli":
        # Tails per head are facts / heads, and heads per tail are facts / tails.
        tails, heads = (np.bincount(k.keys % k.num_relations, minlength=k.num_relations) for k in known)
        share = (tails / np.maximum(heads + tails, 1))[facts[:, 1]]
        weights = [both * share, both * (1 - share)]
    if s := config.answer_frequency:
        frequency = np.bincount(facts[:, [0, 2]].ravel())
        of_entity = s * frequency / frequency.max() + 1 - s
        weights = [one * of_entity[facts[:, at]] for one, at in zip(weights, (0, 2), strict=True)]
    found = [jnp.asarray(one, jnp.float32) for one in weights]
    return found if weights[0] is not weights[1] else found[:1] * 2


def _subsampled(facts: np.ndarray, known: list[kg.KnownAnswers]) -> Float[np.ndarray, "facts"]:
    """1 / sqrt(answers of (?, r, t) + answers of (h, r, ?) + 6) for every fact.

    The code of Sun et al. 2019 starts each of the two counts at 4.
    """
    ranges = [kg.answer_ranges(k, *query_ids(facts, k.side)[:2]) for k in known]
    return 1 / np.sqrt(sum(stop - start for start, stop in ranges) + 2 * _COUNTED_FROM)


def _refuse_full(graph: kg.KnowledgeGraph, side: str, part: SideQueries, count: np.ndarray) -> None:
    """Raises ArgumentError if every entity answers some query, so that no negative can be drawn for it."""
    full = np.flatnonzero(count >= graph.num_entities)
    if full.size:
        entity = graph.entities[int(part.entity[full[0]])]
        relation = graph.relations[int(part.relation[full[0]])]
        raise ArgumentError(
            "filtered_negatives", f"must be False: every entity is a {side} of {entity!r} and {relation!r}."
        )
