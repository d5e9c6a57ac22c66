"""The rank table of a model's scores over a knowledge graph."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph, fact_splits, is_known, joined_splits, known_answers, num_candidates
from owkg.kg.graph import graph_checked
from owkg.kg.popularity import popularity_columns
from owkg.kg.seen import seen_part
from owkg.kg.triples import triple_keys, triples_checked
from owkg.ranks.scores import Ranks, gathered, is_jax, ranks_from_scores
from owkg.ranks.sets import EntitySets, known_sets
from owkg.ranks.table import RANKS, RELATION, SIDES, TRIPLE, RankTable, validated

FILTER_SPLITS = ("train", "valid", "test")


def rank_table(
    graph: KnowledgeGraph,
    scores: ArrayLike,
    triples: ArrayLike,
    side: ArrayLike,
    *,
    filter_splits: Sequence[str] | None = None,
    tolerance: float = 0.0,
    model: str | None = None,
    popularity: bool = True,
    score: bool = False,
    chunk: int | None = None,
    sort: str | None = None,
) -> pl.DataFrame:
    """Ranks the answer of each triple on one side among all entities, and describes it.

    Args:
        graph: the KnowledgeGraph that the triples are of.
        scores: floats [triples, entities], of all entities in the place of the answer; larger is better.
            [triples, relations] where relations are predicted.
        triples: int [triples, 3], head, relation, tail.
        side: the side that is predicted, "head" or "tail"; one for all, or one a triple. Or "relation" for
            all: the relation between head and tail is ranked among all relations.
        filter_splits: the other answers that these splits know leave the candidates; none: raw ranks. None:
            `default_filters` of the split that the triples are of.
        tolerance: scores that differ from the answer's by at most this are ties; absolute.
        model: name for the column `model`; None: no such column.
        popularity: add the columns popularity, relation_popularity and category, from the split train.
        score: add the column score: of each answer, which orders the answers to one query. Not with a
            tolerance.
        chunk: queries in one call; changes memory and time, never the result.
        sort: the rank after a sort instead, as in `ranks_from_scores`.

    Returns:
        A rank table (`validated`), one row a triple, in their order, with labels. Its column `filtered` is
        true if `filter_splits` know every one of the triples, so that the answers to one query left each
        other's candidates.

    Raises:
        ValueError: as `ranks_from_scores`; if an id is out of range, or the graph has no such split.
    """
    graph = graph_checked(graph)
    with_score = score_checked(score, tolerance)
    triples = triples_checked(triples, graph.num_entities, graph.num_relations)
    of_relations = isinstance(side, str) and side == RELATION
    side = np.full(len(triples), side) if of_relations else answer_sides(side, len(triples))
    shape = (len(triples), graph.num_relations if of_relations else graph.num_entities)
    try:
        got: Any = np.shape(scores)
    except ValueError:
        got = "of lists of different lengths"
    if got != shape:
        what = "relations" if of_relations else "entities"
        raise ArgumentError("scores", f"must be of shape [triples, {what}], {shape}, got shape {got}.")
    if filter_splits is None:
        filter_splits = default_filters(graph, split_of(graph, triples))
    known, filtered = _known(graph, triples, side, filter_splits) if filter_splits else (None, False)
    answer = answer_ids(triples, side)
    named = query_names(triples, side, graph.entities, graph.relations)
    ranks = ranks_from_scores(
        scores, answer, known=known, tolerance=tolerance, chunk=chunk, named=named, sort=sort
    )
    table = described(graph, triples, side, ranks, filtered=filtered, model=model, popularity=popularity)
    if with_score:
        table = table.with_columns(score=own_scores(scores, answer))
    return validated(table)


def rank(
    scores: ArrayLike | Mapping[str, ArrayLike],
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    side: str = "tail",
    filter: Sequence[str] | None = None,  # noqa: A002
    tolerance: float = 0.0,
    model: str | None = None,
    sort: str | None = None,
    entities: Iterable[str] | None = None,
    relations: Iterable[str] | None = None,
) -> RankTable:
    """Filtered ranks of the answers of a split among all entities.

    Args:
        scores: floats [triples of the split, entities], of every entity in the place of the answer; larger is
            better. Or one such matrix for each side, {"head": ..., "tail": ...}. Of the side "relation",
            [triples of the split, relations], of every relation between head and tail.
        graph: of `owkg.read_graph`. Rows of `scores` are in the order of the triples in its split. Columns
            are in the order of `graph.entities`, which for labelled files is sorted and is seldom the order
            of another library, unless `entities` says otherwise; of the side "relation", in that of
            `graph.relations`, unless `relations` does.
        split: whose triples are ranked.
        side: that is predicted, "head", "tail" or "relation", where `scores` is one matrix.
        filter: splits whose other answers leave the candidates; none: raw ranks. None: train, valid, test and
            `split`.
        tolerance: scores that differ from the answer's by at most this are ties.
        model: name for the column `model`.
        sort: the non-deterministic rank instead: the answer's index after a sort of the scores by stable,
            quicksort or heapsort, or reversed-stable and so on: ascending, read from the end.
        entities: labels of the columns of `scores`, in their order: those of the graph, each once.
        relations: labels of the columns where relations are ranked, likewise.

    Returns:
        The rank table: a row for each triple and side, with optimistic and pessimistic ranks.

    Raises:
        ValueError: naming the argument, if the graph has no such split, a matrix has another shape, a score
            is NaN, or labels are not those of the graph.

    Examples:
        >>> triples = np.array([[0, 0, 1]], np.int32)
        >>> graph = KnowledgeGraph(("a", "b", "c"), ("r",), {"train": triples[:0], "test": triples})
        >>> rank([[0.1, 0.7, 0.9]], graph).frame["optimistic"].item()
        2
    """
    graph = graph_checked(graph)
    facts = fact_splits(graph)
    if not isinstance(split, str) or split not in facts:
        raise ArgumentError("split", f"must be one of {', '.join(facts)}, got {split!r}.")
    filters = default_filters(graph, split) if filter is None else checks.some_of("filter", filter, facts)
    if model is not None and not isinstance(model, str):
        raise ArgumentError("model", f"must be text, got {model!r}.")
    if not isinstance(scores, Mapping) and side not in (*SIDES, RELATION):
        raise ArgumentError(
            "side", f"must be head, tail or relation, got {side!r}; several sides take a matrix each."
        )
    of_side = scores if isinstance(scores, Mapping) else {side: scores}
    if not of_side or set(of_side) - {*SIDES, RELATION}:
        raise ArgumentError(
            "scores", f"must be of the sides head, tail and relation, got {', '.join(map(str, of_side))}."
        )
    options: Any = {"filter_splits": filters, "tolerance": tolerance, "model": model, "score": not tolerance}
    options["sort"] = sort
    options["popularity"] = "train" in graph.splits
    if entities is not None or relations is not None:
        graph = by_columns(graph, entities, relations)
        facts = fact_splits(graph)
    tables = [rank_table(graph, given, facts[split], one, **options) for one, given in of_side.items()]
    return RankTable.trusted(pl.concat(tables), {"split": split, "filter": filters})


def by_columns(
    graph: KnowledgeGraph, entities: Iterable[str] | None, relations: Iterable[str] | None
) -> KnowledgeGraph:
    """The graph with ids in the order of the labels that are given."""
    given = {"entities": entities, "relations": relations}
    orders = {}
    for name, labels in given.items():
        own = getattr(graph, name)
        if labels is not None and (isinstance(labels, str) or not isinstance(labels, Iterable)):
            raise ArgumentError(name, f"must be labels, got {labels!r}.")
        order = orders[name] = own if labels is None else tuple(map(str, labels))
        if missing := set(own) - set(order):
            some = f"{len(missing):,} of {len(own):,}, such as {min(missing)!r}"
            raise ArgumentError(name, f"must be all those of the graph, and there is no column of {some}.")
    return seen_part(graph, orders["entities"], orders["relations"])


def require_facts(graph: KnowledgeGraph, triples: np.ndarray, *, most: float = 0.0, hint: str) -> None:
    """A look whether ids are those of the graph: whether its splits, also of false triples, hold the triples.

    Args:
        graph: whose ids the triples should be.
        triples: int [triples, 3], in range.
        most: share of them that may be in no split.
        hint: what to do otherwise, the end of the message.

    Raises:
        ValueError: counting those in no split, and naming one.
    """
    strange = in_no_split(graph, triples)
    if strange.sum() <= most * len(triples):
        return
    head, relation, tail = triples[int(np.argmax(strange))].tolist()
    labels = graph.entities[head], graph.relations[relation], graph.entities[tail]
    raise ValueError(
        f"{strange.sum():,} of {len(triples):,} triples are in no split of the graph, such as {head} "
        f"{relation} {tail}, which is {' '.join(map(repr, labels))} by the ids of the graph. {hint}"
    )


def in_no_split(graph: KnowledgeGraph, triples: np.ndarray) -> np.ndarray:
    """Whether each triple is in no split of a graph, neither of facts nor of false triples."""
    own, *others = triple_keys(triples, *graph.splits.values()) if graph.splits else [triples[:, 0]]
    return ~np.isin(own, np.concatenate([own[:0], *others]))


def perfect_ranks(
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    filter: Sequence[str] | None = None,  # noqa: A002
) -> RankTable:
    """The ranks of a model that puts every answer of a split first, on both sides: what chance levels need.

    Args:
        graph, split, filter: of `rank`.

    Raises:
        ValueError: naming the argument, if the graph has no such split.
    """
    graph = graph_checked(graph)
    facts = fact_splits(graph)
    if split not in facts:
        raise ArgumentError("split", f"must be one of {', '.join(facts)}, got {split!r}.")
    filters = checks.names("filter", filter) if filter is not None else default_filters(graph, split)
    triples, first = facts[split], np.ones(len(facts[split]), np.int64)
    tables = []
    for side in SIDES:
        candidates, filtered = np.full(len(triples), graph.num_entities), False
        if filters:
            known = known_answers(filter_facts(graph, filters), side, **graph.sizes)
            candidates, filtered = num_candidates(known, triples), bool(is_known(known, triples).all())
        ranks, sides = Ranks(first, first, candidates), np.full(len(triples), side)
        popularity = "train" in graph.splits
        tables.append(
            described(graph, triples, sides, ranks, filtered=filtered, model=None, popularity=popularity)
        )
    return RankTable(pl.concat(tables), {"split": split, "filter": filters})


def answer_sides(side: ArrayLike, count: int) -> np.ndarray:
    """The side that is predicted for each of `count` triples, from one for all or one for each."""
    array = np.asarray(side)
    if array.dtype.kind != "U" or array.shape not in ((), (1,), (count,)):
        got = f"{array.dtype} of shape {array.shape}"
        raise ArgumentError("side", f"must be one string, or one for each of {count} triples, got {got}.")
    checks.require("side", array, np.isin(array, SIDES), '"head" or "tail"')
    return np.broadcast_to(array, count)


def answer_ids(triples: np.ndarray, side: np.ndarray) -> np.ndarray:
    """The entity, or relation, that is predicted of each triple."""
    entity = np.where(side == "tail", triples[:, 2], triples[:, 0])
    return np.where(side == RELATION, triples[:, 1], entity)


def _asked(graph: KnowledgeGraph, triples: np.ndarray, side: str) -> tuple[np.ndarray, str, dict[str, int]]:
    """Triples, side and sizes as `known_answers` takes them: relation and tail change places if need be."""
    if side != RELATION:
        return triples, side, graph.sizes
    sizes = {
        "num_entities": max(graph.num_entities, graph.num_relations),
        "num_relations": graph.num_entities,
    }
    return triples[:, [0, 2, 1]], "tail", sizes


def candidates_of(
    graph: KnowledgeGraph, facts: np.ndarray, triples: np.ndarray, side: str
) -> Int64[np.ndarray, "triples"]:
    """Number of candidates of each triple's answer on a side, filtered by the other answers among `facts`."""
    known, one, sizes = _asked(graph, facts, side)
    found = num_candidates(known_answers(known, one, **sizes), _asked(graph, triples, side)[0])
    more = sizes["num_entities"] - graph.num_relations if side == RELATION else 0
    return found - more


def own_scores(scores: ArrayLike, answer: np.ndarray) -> np.ndarray:
    """Of each row of `scores`, that of its answer; float64."""
    scores = scores if is_jax(scores) else np.asarray(scores)
    return gathered(scores, np.arange(len(answer)), answer).astype(np.float64)


def score_checked(score: bool, tolerance: float) -> bool:
    """Whether the column score is wanted; ValueError if ties are wider than equal scores, which it tells."""
    wanted = checks.flag("score", score)
    if wanted and np.any(np.asarray(tolerance) != 0):
        raise ArgumentError(
            "score",
            "tells that only equal scores tie, so that ranks under other labels follow from it; "
            f"`tolerance` must be 0 with it, got {tolerance!r}.",
        )
    return wanted


def query_names(
    triples: np.ndarray, side: np.ndarray, entities: Sequence[str] | None, relations: Sequence[str] | None
) -> Callable[[int], str]:
    """What messages call the query of a row: its triple and the side that is predicted.

    Args:
        triples: int [triples, 3].
        side: the side that is predicted, one a triple.
        entities: labels; None: entities are called by their ids.
        relations: likewise.
    """

    def name(row: int) -> str:
        names = (entities, relations, entities)
        parts = [repr(of[i]) if of else str(i) for i, of in zip(triples[row].tolist(), names, strict=True)]
        return f"the {side[row]} of {', '.join(parts)}"

    return name


def default_filters(graph: KnowledgeGraph, split: str | None) -> list[str]:
    """The splits that filter where none are named: train, valid, test, and the one whose answers are ranked.

    Args:
        graph: those that it has filter.
        split: whose answers are ranked; it filters unless it holds false triples. None: not known.

    Examples:
        >>> import numpy as np
        >>> none = np.empty((0, 3), np.int32)
        >>> graph = KnowledgeGraph((), (), dict.fromkeys(("train", "test_sparse", "test_full"), none))
        >>> default_filters(graph, "test_full")
        ['train', 'test_full']
    """
    facts = fact_splits(graph)
    return [name for name in dict.fromkeys((*FILTER_SPLITS, split)) if name in facts]


def split_of(graph: KnowledgeGraph, triples: np.ndarray) -> str | None:
    """The smallest split of facts that holds all the triples, in doubt the first; None if there is none."""
    splits = fact_splits(graph)
    for name in sorted(splits, key=lambda name: len(splits[name])):
        if is_known(known_answers(splits[name], "tail", **graph.sizes), triples).all():
            return name
    return None


def filter_facts(graph: KnowledgeGraph, filter_splits: Sequence[str]) -> np.ndarray:
    """The triples of the splits whose answers are filtered, int32 [triples, 3].

    Raises:
        ValueError: if the graph has no facts under such a name; the message lists the splits.
    """
    facts, names = fact_splits(graph), checks.names("filter_splits", filter_splits)
    for name in names:
        if name not in facts:
            raise ArgumentError("filter_splits", f"must be among {', '.join(facts)}, got {name!r}.")
    return joined_splits(graph, names)


def _known(
    graph: KnowledgeGraph, triples: np.ndarray, side: np.ndarray, filter_splits: Sequence[str]
) -> tuple[EntitySets, bool]:
    """The known answers to the query of each triple; whether every triple itself is known."""
    facts = filter_facts(graph, filter_splits)
    start, stop = np.zeros((2, len(triples)), np.int64)
    ids, all_known = np.empty(0, np.int32), True
    for one in (*SIDES, RELATION):
        own = side == one
        if not own.any():
            continue
        known, asked_side, sizes = _asked(graph, facts, one)
        index, asked = known_answers(known, asked_side, **sizes), _asked(graph, triples[own], one)[0]
        sets = known_sets(index, asked[:, 0 if asked_side == "tail" else 2], asked[:, 1])
        start[own], stop[own] = len(ids) + sets.start, len(ids) + sets.stop
        ids = np.concatenate([ids, sets.ids])
        all_known = all_known and bool(is_known(index, asked).all())
    return EntitySets(start, stop, ids), all_known


def described(
    graph: KnowledgeGraph,
    triples: np.ndarray,
    side: np.ndarray,
    ranks: Ranks,
    *,
    filtered: bool,
    model: str | pl.Series | None,
    popularity: bool,
) -> pl.DataFrame:
    """The rank table of `triples`, not yet validated, with labels and what train says of the answers.

    Args:
        graph: that the ids are of.
        triples: int [triples, 3].
        side: the side that is predicted, one a triple.
        ranks: of their answers.
        filtered: whether the other answers to their queries left the candidates.
        model: one name, or one for each triple; None: no column `model`.
        popularity: add the columns popularity, relation_popularity and category.
    """
    entities = pl.Series(graph.entities, dtype=pl.String)
    relations = pl.Series(graph.relations, dtype=pl.String)
    names = (entities, relations, entities)
    columns: dict[str, Any] = {
        column: of.gather(ids) for column, of, ids in zip(TRIPLE, names, triples.T, strict=True)
    }
    columns["side"] = pl.Series(side.tolist(), dtype=pl.String)
    columns |= {column: getattr(ranks, column) for column in RANKS}
    columns["filtered"] = pl.repeat(filtered, len(triples), dtype=pl.Boolean, eager=True)
    if model is not None:
        columns["model"] = pl.repeat(model, len(triples), eager=True) if isinstance(model, str) else model
    if popularity:
        if "train" not in graph.splits:
            raise ArgumentError("popularity", f"needs a split train, got {', '.join(graph.splits)}.")
        columns |= popularity_columns(graph, triples, side)
    return pl.DataFrame(columns)
