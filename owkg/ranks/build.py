"""Rank table of a model's scores over a knowledge graph."""

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
from owkg.kg.known import filtered_candidates
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
    """Rank table of the answers of triples on one side, ranked among all entities.

    Args:
        graph: knowledge graph of the triples.
        scores: scores of all entities as the answer, floats [triples, entities]; larger is better. [triples,
            relations] if relations are predicted.
        triples: head, relation and tail ids, int [triples, 3].
        side: predicted side, "head" or "tail": one for all triples, or one for each. "relation" for all
            triples: the relation between head and tail is ranked among all relations.
        filter_splits: splits whose other known answers are removed from the candidates; empty for raw ranks.
            Default: `default_filters` of the split that holds the triples.
        tolerance: largest absolute difference from the answer's score that counts as a tie. Default 0.
        model: entry of the column `model`. Default: no such column.
        popularity: whether to add the columns popularity, relation_popularity and category, computed from the
            split train. Default True.
        score: whether to add the column score, with the score of each answer, which orders the answers to one
            query. Requires a tolerance of 0. Default False.
        chunk: number of queries in one call; it changes memory and time, never the result. Default: chosen.
        sort: kind of sort whose index is the rank, as in `ranks_from_scores`. Default: tie-aware ranks.

    Returns:
        Validated rank table with labels, one row for each triple, in their order. The column `filtered` is
        true if `filter_splits` contain every one of the triples, so that the answers to one query were
        removed from each other's candidates.

    Raises:
        ValueError: as `ranks_from_scores`; if an id is out of range, or the graph lacks a split.
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
        scores: scores of every entity as the answer, floats [triples of the split, entities]; larger is
            better. Or one such matrix for each side, {"head": ..., "tail": ...}. For the side "relation",
            scores of every relation between head and tail, [triples of the split, relations].
        graph: knowledge graph, from `owkg.read_graph`. Rows of `scores` are in the order of the triples in
            its split. Columns are in the order of `graph.entities` (for the side "relation", of
            `graph.relations`) unless `entities` (`relations`) gives another one. This order is sorted for
            labelled files, and seldom the order of another library.
        split: split whose triples are ranked. Default "test".
        side: predicted side if `scores` is one matrix: "head", "tail" or "relation". Default "tail".
        filter: splits whose other answers are removed from the candidates; empty for raw ranks. Default:
            train, valid, test and `split`.
        tolerance: largest absolute difference from the answer's score that counts as a tie. Default 0.
        model: entry of the column `model`. Default: no such column.
        sort: non-deterministic rank instead: the index of the answer after a sort of the scores by "stable",
            "quicksort" or "heapsort", or "reversed-stable" and so on, an ascending sort that is read from its
            end. Default: tie-aware ranks.
        entities: labels of the columns of `scores`, in their order: all labels of the graph, each once.
        relations: labels of the columns if relations are ranked, likewise.

    Returns:
        The rank table: a row for each triple and side, with optimistic and pessimistic ranks.

    Raises:
        ValueError: naming the argument, if the graph lacks the split, a matrix has the wrong shape, a score
            is NaN, or labels differ from the graph's labels.

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
            "side", f"must be head, tail or relation, got {side!r}; several sides need one matrix each."
        )
    of_side = scores if isinstance(scores, Mapping) else {side: scores}
    if not of_side or set(of_side) - {*SIDES, RELATION}:
        raise ArgumentError(
            "scores", f"must have the sides head, tail or relation, got {', '.join(map(str, of_side))}."
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
    """Graph with ids in the order of the given labels."""
    given = {"entities": entities, "relations": relations}
    orders = {}
    for name, labels in given.items():
        own = getattr(graph, name)
        if labels is not None and (isinstance(labels, str) or not isinstance(labels, Iterable)):
            raise ArgumentError(name, f"must be labels, got {labels!r}.")
        order = orders[name] = own if labels is None else tuple(map(str, labels))
        if missing := set(own) - set(order):
            some = f"{len(missing):,} of {len(own):,}, such as {min(missing)!r}"
            raise ArgumentError(name, f"must be all labels of the graph, but have no column for {some}.")
    return seen_part(graph, orders["entities"], orders["relations"])


def require_facts(graph: KnowledgeGraph, triples: np.ndarray, *, most: float = 0.0, hint: str) -> None:
    """ValueError if too many triples are in no split of a graph, so that their ids are probably wrong.

    Args:
        graph: knowledge graph whose ids the triples should use; splits of false triples count too.
        triples: ids in range, int [triples, 3].
        most: largest share of triples that may be in no split. Default 0.
        hint: advice at the end of the message.

    Raises:
        ValueError: counting the triples in no split, and naming one.
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
    """Ranks of a model that ranks every answer of a split first, on both sides; chance levels need them.

    Args:
        graph, split, filter: as for `rank`.

    Raises:
        ValueError: naming the argument, if the graph lacks the split.
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
            known = known_answers(filter_facts(graph, filters), side, **graph.sizes, asked=triples)
            candidates, stands = filtered_candidates(known, triples)
            filtered = bool(stands.all())
        ranks, sides = Ranks(first, first, candidates), np.full(len(triples), side)
        popularity = "train" in graph.splits
        tables.append(
            described(graph, triples, sides, ranks, filtered=filtered, model=None, popularity=popularity)
        )
    return RankTable(pl.concat(tables), {"split": split, "filter": filters})


def answer_sides(side: ArrayLike, count: int) -> np.ndarray:
    """Predicted side of each of `count` triples, from one for all or one for each."""
    array = np.asarray(side)
    if array.dtype.kind != "U" or array.shape not in ((), (1,), (count,)):
        got = f"{array.dtype} of shape {array.shape}"
        raise ArgumentError("side", f"must be one string, or one for each of {count} triples, got {got}.")
    checks.require("side", array, np.isin(array, SIDES), '"head" or "tail"')
    return np.broadcast_to(array, count)


def answer_ids(triples: np.ndarray, side: np.ndarray) -> np.ndarray:
    """Id of the predicted entity, or relation, of each triple."""
    entity = np.where(side == "tail", triples[:, 2], triples[:, 0])
    return np.where(side == RELATION, triples[:, 1], entity)


def _asked(graph: KnowledgeGraph, triples: np.ndarray, side: str) -> tuple[np.ndarray, str, dict[str, int]]:
    """Triples, side and sizes as for `known_answers`; relation and tail are swapped to predict relations."""
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
    """Number of candidates of each triple's answer on a side, filtered by the other answers in `facts`."""
    known, one, sizes = _asked(graph, facts, side)
    asked, *_ = _asked(graph, triples, side)
    found = num_candidates(known_answers(known, one, **sizes, asked=asked), asked)
    more = sizes["num_entities"] - graph.num_relations if side == RELATION else 0
    return found - more


def own_scores(scores: ArrayLike, answer: np.ndarray) -> np.ndarray:
    """Score of the answer in each row of `scores`, float64."""
    scores = scores if is_jax(scores) else np.asarray(scores)
    return gathered(scores, np.arange(len(answer)), answer).astype(np.float64)


def score_checked(score: bool, tolerance: float) -> bool:
    """Whether the column score is wanted; ArgumentError if a tolerance makes unequal scores tie."""
    wanted = checks.flag("score", score)
    if wanted and np.any(np.asarray(tolerance) != 0):
        raise ArgumentError(
            "score",
            "requires that only equal scores tie, so that ranks under other labels follow from it; "
            f"`tolerance` must be 0 with it, got {tolerance!r}.",
        )
    return wanted


def query_names(
    triples: np.ndarray, side: np.ndarray, entities: Sequence[str] | None, relations: Sequence[str] | None
) -> Callable[[int], str]:
    """Function from a row to the name of its query in messages: its triple and the predicted side.

    Args:
        triples: ids, int [triples, 3].
        side: predicted side of each triple.
        entities: labels of entities. None: messages show ids.
        relations: labels of relations, likewise.
    """

    def name(row: int) -> str:
        names = (entities, relations, entities)
        parts = [repr(of[i]) if of else str(i) for i, of in zip(triples[row].tolist(), names, strict=True)]
        return f"the {side[row]} of {', '.join(parts)}"

    return name


def default_filters(graph: KnowledgeGraph, split: str | None) -> list[str]:
    """Splits that filter by default: train, valid, test, and the split whose answers are ranked.

    Args:
        graph: knowledge graph; only its splits are returned.
        split: split whose answers are ranked; it filters unless it holds false triples. None: unknown.

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
    """Smallest split of facts that holds all the triples, the first of several; None if there is none."""
    splits = fact_splits(graph)
    for name in sorted(splits, key=lambda name: len(splits[name])):
        if is_known(known_answers(splits[name], "tail", **graph.sizes, asked=triples), triples).all():
            return name
    return None


def filter_facts(graph: KnowledgeGraph, filter_splits: Sequence[str]) -> np.ndarray:
    """Triples of the splits whose answers are filtered, int32 [triples, 3].

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
    """Known answers to the query of each triple, and whether every triple itself is known."""
    facts = filter_facts(graph, filter_splits)
    start, stop = np.zeros((2, len(triples)), np.int64)
    ids, all_known = np.empty(0, np.int32), True
    for one in (*SIDES, RELATION):
        own = side == one
        if not own.any():
            continue
        known, asked_side, sizes = _asked(graph, facts, one)
        asked, *_ = _asked(graph, triples[own], one)
        index = known_answers(known, asked_side, **sizes, asked=asked)
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
    """Rank table of `triples`, not yet validated, with labels and with popularity from train.

    Args:
        graph: knowledge graph of the ids.
        triples: ids, int [triples, 3].
        side: predicted side of each triple.
        ranks: ranks of the answers.
        filtered: whether the other answers to their queries were removed from the candidates.
        model: entry of the column `model`: one for all triples, or one for each. None: no such column.
        popularity: whether to add the columns popularity, relation_popularity and category.
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
