"""Trivial candidates: answers that the training facts rule out, by rule."""

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import polars as pl
from jaxtyping import Bool, Int32
from scipy import sparse

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph, answer_ranges, fact_splits, is_known, joined_splits, known_answers
from owkg.kg import relation_categories as categories_of
from owkg.kg.graph import graph_checked
from owkg.ordered import distinct
from owkg.pools.pool import candidates_checked
from owkg.ranks.table import SIDES

# The categories in which a side has one answer to a query.
_ONE = {"head": ("1-1", "1-N"), "tail": ("1-1", "N-1")}
# Candidates at a time, for each of which a row of all slots is held.
_BLOCK = 2**14


class TrivialRule(StrEnum):
    """Why a candidate need not be judged."""

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
    """Marks the candidates that a rule takes for non-relevant.

    - "functional": the relation gives the query one answer (tails of 1-1 and N-1, heads of 1-1 and 1-N,
      `owkg.kg.relation_categories` of train), and a known fact gives it already.
    - "type": no slot (a side of a relation) that the candidate fills in train has at least `min_share`
      entities in common with the slot asked for. A candidate that fills no slot has no type, so the rule
      says nothing of it; nor does it of a slot that train never fills.

    What is known itself is never marked. The first rule that marks a candidate is named. Both rules err: a
    relation of the category N-1 may have several tails now and then, and train does not show every type.

    Args:
        candidates: columns query, side, entity, relation, answer, such as of `owkg.pools.pool.pool`.
        graph: with a split train; knows all labels of the candidates.
        known: splits whose facts are known, such as those that filter the ranks.
        rules: that are applied.
        min_share: entities that two slots must have in common to be of a kind, at least 1.
        threshold: of the relation categories, at least 1.

    Returns:
        `candidates` with a column rule: "functional", "type", or null where it has to be judged.

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
        Zhou et al. (SIGIR 2022), section 3: the filter before manual annotation. The functional rule with
        known = train, valid, test is theirs: it marks all 8,899 triples that they filtered, and 3 more.
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
    """How many candidates each rule marks.

    Args:
        marked: of `trivial`.

    Returns:
        Columns rule and candidates; the last row, of the rule null, are those that no rule marks.

    Raises:
        ValueError: if `marked` lacks the column rule.
    """
    if not isinstance(marked, pl.DataFrame) or "rule" not in marked.columns:
        raise ArgumentError("marked", "must be of `trivial`, with a column rule.")
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

    With M[e, s] = 1 if e fills s, two slots share the entries of M' M.

    Args:
        train: triples.
        entity: id of each candidate.
        slot: asked for: 2 * relation, and 1 more if it is the tail.
        min_share: entities in common.
        num_entities: of the graph.
        num_relations: of the graph.
    """
    head, relation, tail = train.T.astype(np.int64)
    slots = 2 * num_relations
    pairs = np.concatenate([head * slots + 2 * relation, tail * slots + 2 * relation + 1])
    of, fills = np.divmod(distinct(pairs), slots)
    shape = (num_entities, slots)
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
    """The triple of each candidate, by ids.

    Args:
        frame: columns side, entity, relation, answer.
        graph: whose labels they are.

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
                "candidates", f"must have labels of the graph, which has no {kind} {frame[column][row]!r}."
            )
        ids[column] = found.to_numpy()
    is_tail = (frame["side"] == "tail").to_numpy()
    head = np.where(is_tail, ids["entity"], ids["answer"])
    return np.stack([head, ids["relation"], np.where(is_tail, ids["answer"], ids["entity"])], axis=1)
