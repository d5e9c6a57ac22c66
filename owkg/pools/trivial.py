"""Trivial candidates: answers that the training facts rule out, by rule."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import polars as pl
from jaxtyping import Bool, Int32

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph, answer_ranges, fact_splits, is_known, joined_splits, known_answers
from owkg.kg import relation_categories as categories_of
from owkg.kg.graph import graph_checked
from owkg.ordered import distinct
from owkg.pools.pool import candidates_checked
from owkg.ranks.table import SIDES

# Categories in which a query for a side has one answer.
_ONE = {"head": ("1-1", "1-N"), "tail": ("1-1", "N-1")}
# Candidates processed at a time, because each needs a row over all slots.
_BLOCK = 2**14


class TrivialRule(StrEnum):
    """Reason why a candidate need not be judged."""

    FUNCTIONAL = "functional"
    TYPE = "type"


def trivial(
    candidates: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    known: Sequence[str],
    rules: Sequence[TrivialRule | str] = tuple(TrivialRule),
    min_share: int = 1,
    threshold: float = 1.5,
) -> pl.DataFrame:
    """Candidates with a mark for those that a rule calls not relevant.

    - "functional": the relation gives the query one answer (tails of 1-1 and N-1, heads of 1-1 and 1-N,
      `owkg.kg.relation_categories` of train), and a known fact already gives that answer.
    - "type": no slot (a side of a relation) that the candidate fills in train has at least `min_share`
      entities in common with the slot asked for. The rule does not apply to a candidate that fills no slot in
      train, or to a slot that train never fills.

    Known answers are never marked. If several rules mark a candidate, the first is named. Both rules make
    errors: a relation of the category N-1 may sometimes have several tails, and train does not show every
    type.

    Args:
        candidates: table with columns query, side, entity, relation, answer, such as `owkg.pools.pool.pool`
            returns.
        graph: graph with a split train, which must hold all labels of the candidates.
        known: splits whose facts are known, such as the splits that filter the ranks.
        rules: rules to apply. Default: all.
        min_share: number of entities that two slots must share to have the same type, at least 1. Default 1.
        threshold: threshold of the relation categories, at least 1. Default 1.5.

    Returns:
        `candidates` with a column rule: "functional", "type", or null if the candidate must be judged.

    Raises:
        ValueError: if the candidates are malformed, a label is not in the graph, or an argument is out of
            range.

    Examples:
        >>> train = np.array([[0, 0, 1], [2, 0, 3], [2, 1, 0]], np.int32)
        >>> graph = KnowledgeGraph(("ann", "oslo", "ben", "rome"), ("born", "likes"), {"train": train})
        >>> asked = {"query": "ann|likes|?", "side": "tail", "entity": "ann", "relation": "likes"}
        >>> pool = pl.DataFrame([asked | {"answer": answer} for answer in ("oslo", "ben")])
        >>> trivial(pool, graph, known=["train"])["rule"].to_list()
        ['type', None]

    References:
        Zhou et al. (SIGIR 2022), section 3: the filter before manual annotation. Their filter is the
        functional rule with known = train, valid, test: it marks all 8,899 triples that they filtered, and 3
        more.
    """
    graph = graph_checked(graph)
    chosen = _rules(rules)
    facts = fact_splits(graph)
    for name in ("train", *known):
        if name not in facts:
            raise ArgumentError("known", f"must be among {', '.join(facts)}, with train, got {name!r}.")
    share = checks.whole("min_share", min_share, 1)
    frame = candidates_checked(candidates)
    triples = triples_of(frame, graph)
    train, given = graph.splits["train"], joined_splits(graph, list(known))
    category = categories_of(train, graph.num_relations, threshold=threshold)
    rule = np.full(len(frame), None, dtype=object)
    for side in SIDES:
        own = np.flatnonzero((frame["side"] == side).to_numpy())
        if not own.size:
            continue
        index = known_answers(given, side, **graph.sizes)
        relation = triples[own, 1]
        entity, answer = (triples[own, i] for i in ((0, 2) if side == "tail" else (2, 0)))
        marked = np.full(own.size, None, dtype=object)
        if TrivialRule.TYPE in chosen:
            slot = 2 * relation + (side == "tail")
            marked[~plausible(train, answer, slot, min_share=share, **graph.sizes)] = TrivialRule.TYPE.value
        if TrivialRule.FUNCTIONAL in chosen:
            start, stop = answer_ranges(index, entity, relation)
            marked[np.isin(category[relation], _ONE[side]) & (stop > start)] = TrivialRule.FUNCTIONAL.value
        marked[is_known(index, triples[own])] = None
        rule[own] = marked
    return candidates.with_columns(rule=pl.Series("rule", rule.tolist(), dtype=pl.String))


def rule_counts(marked: pl.DataFrame) -> pl.DataFrame:
    """Number of candidates that each rule marks.

    Args:
        marked: result of `trivial`.

    Returns:
        Columns rule and candidates; the last row, with rule null, counts the unmarked candidates.

    Raises:
        ValueError: if `marked` lacks the column rule.
    """
    if not isinstance(marked, pl.DataFrame) or "rule" not in marked.columns:
        raise ArgumentError("marked", "must be a result of `trivial`, with a column rule.")
    names = [*(rule.value for rule in TrivialRule), None]
    rules = pl.DataFrame({"rule": pl.Series(names, dtype=pl.String)})
    counts = marked.group_by("rule").agg(candidates=pl.len().cast(pl.Int64))
    found = rules.join(counts, on="rule", how="left", nulls_equal=True, maintain_order="left")
    return found.with_columns(pl.col("candidates").fill_null(0))


def plausible(
    train: Int32[np.ndarray, "_ 3"],
    entity: Int32[np.ndarray, "candidates"],
    slot: Int32[np.ndarray, "candidates"],
    *,
    min_share: int,
    num_entities: int,
    num_relations: int,
) -> Bool[np.ndarray, "candidates"]:
    """Whether a slot that the entity fills shares enough entities with the slot asked for, or one is empty.

    With M[e, s] = 1 if e fills s, the number of entities that two slots share is an entry of M' M.

    Args:
        train: triples.
        entity: id of the entity of each candidate.
        slot: slot asked for: 2 * relation, plus 1 for the tail.
        min_share: number of entities that two slots must share.
        num_entities: number of entities of the graph.
        num_relations: number of relations of the graph.
    """
    head, relation, tail = train.T.astype(np.int64)
    slots = 2 * num_relations
    pairs = np.concatenate([head * slots + 2 * relation, tail * slots + 2 * relation + 1])
    of, fills = np.divmod(distinct(pairs), slots)
    shape = (num_entities, slots)
    from scipy import sparse  # slow to import; few need it

    filled = sparse.csr_array((np.ones(len(of), np.int32), (of, fills)), shape=shape)
    common = sparse.csr_array(filled.T @ filled)
    common.data = (common.data >= min_share).astype(np.int32)
    reached = np.empty(len(entity), bool)
    for begin in range(0, len(entity), _BLOCK):
        own = slice(begin, begin + _BLOCK)
        asked, row = np.unique(entity[own], return_inverse=True)
        reached[own] = np.asarray((filled[asked] @ common)[row, slot[own]]).reshape(-1) > 0
    typed = np.bincount(of, minlength=num_entities)[entity] > 0
    seen = np.bincount(fills, minlength=slots)[slot] > 0
    return reached | ~typed | ~seen


def _rules(rules: Sequence[TrivialRule | str]) -> set[TrivialRule]:
    if isinstance(rules, str) or not all(rule in list(TrivialRule) for rule in rules):
        raise ArgumentError("rules", f"must be some of {', '.join(TrivialRule)}, got {rules!r}.")
    return {TrivialRule(rule) for rule in rules}


def triples_of(frame: pl.DataFrame, graph: KnowledgeGraph) -> Int32[np.ndarray, "rows 3"]:
    """Triple of each candidate, as ids.

    Args:
        frame: columns side, entity, relation, answer.
        graph: graph that holds the labels.

    Raises:
        ValueError: naming a label that the graph does not have.
    """
    ids = {}
    for column in ("entity", "relation", "answer"):
        labels = graph.relations if column == "relation" else graph.entities
        found = frame[column].replace_strict(
            pl.Series(labels, dtype=pl.String), np.arange(len(labels)), default=None, return_dtype=pl.Int32
        )
        if found.null_count():
            row = int(found.is_null().arg_true()[0])
            kind = "relation" if column == "relation" else "entity"
            raise ArgumentError(
                "candidates", f"must use labels of the graph, which has no {kind} {frame[column][row]!r}."
            )
        ids[column] = found.to_numpy()
    is_tail = (frame["side"] == "tail").to_numpy()
    head = np.where(is_tail, ids["entity"], ids["answer"])
    return np.stack([head, ids["relation"], np.where(is_tail, ids["answer"], ids["entity"])], axis=1)
