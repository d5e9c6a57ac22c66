"""Closure of people under an ontology, in blocks of whole families so that memory stays bounded."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32
from scipy.sparse import csr_array

from family_tree.families import numbers_of
from family_tree.fixpoint import Known, fixpoint
from family_tree.matrices import among
from family_tree.ontology import Ontology, Source, ontology_of
from family_tree.people import People, people_checked
from family_tree.rules import PARENT, SAME
from owkg import checks
from owkg.kg import KnowledgeGraph

# Large enough that a call costs little compared with its work, and small enough for the caches.
BLOCK_SIZE = 4_000


class Facts(NamedTuple):
    """Facts as ids of people and of the ontology's relations, sorted by head, relation, tail."""

    head: Int32[np.ndarray, "facts"]
    relation: Int32[np.ndarray, "facts"]
    tail: Int32[np.ndarray, "facts"]


def closure(people: People, ontology: Source, *, block_size: int = BLOCK_SIZE) -> Iterator[Facts]:
    """Facts that the rules derive, block by block; together they are the sorted closure, each fact once.

    Rules join only people of one family, so families can be closed one after the other. A block holds whole
    families with consecutive ids; families whose ids are mixed share a block.

    Args:
        people: people to close.
        ontology: rules, and relations whose facts are written: an `Ontology`, its name, or its file.
        block_size: minimum number of people in a block; only the last block may have fewer.

    Raises:
        ValueError: if `block_size` is not an integer of at least 1, `people` are invalid, or the ontology
            does not exist.

    Examples:
        >>> import polars as pl
        >>> labels, female = pl.Series(["ann", "bob", "eve"]), np.array([True, False, True])
        >>> people = People(labels, female, np.array([[0, 1], [1, 2]], np.int32))
        >>> (facts,) = closure(people, "published")
        >>> names = ontology_of("ontology", "published").relations
        >>> [(labels[h], names[r], labels[t]) for h, r, t in np.stack(facts).T.tolist() if h == 0]
        [('ann', 'grandmotherOf', 'eve'), ('ann', 'motherOf', 'bob'), ('ann', 'parentOf', 'bob')]
    """
    size = checks.whole("block_size", block_size, 1)
    return closure_of(people_checked(people), ontology_of("ontology", ontology), size)


def closure_of(people: People, ontology: Ontology, size: int = BLOCK_SIZE) -> Iterator[Facts]:
    """`closure` of checked people."""
    return (
        _facts(_closed(people, ontology, first, after), ontology, first, after)
        for first, after in family_blocks(people, size)
    )


def closed_graph(people: People, ontology: Source) -> KnowledgeGraph:
    """Knowledge graph of the closure of `people`; all its facts, sorted, are the split "train".

    Raises:
        ValueError: as `closure`.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> graph = closed_graph(sample_people(num_trees=1, max_tree_size=30), "published")
        >>> graph.num_entities, graph.num_relations
        (30, 23)
    """
    rules = ontology_of("ontology", ontology)
    blocks = [np.stack(facts, axis=1) for facts in closure(people, rules)]
    facts = np.concatenate([np.empty((0, 3), np.int32), *blocks])
    return KnowledgeGraph(tuple(people.labels), rules.relations, {"train": facts})


def fact_counts(people: People, ontology: Source) -> dict[str, int]:
    """Number of facts of each relation in the closure, in the order of the names; errors as in `closure`."""
    people_checked(people)
    rules = ontology_of("ontology", ontology)
    counts = np.zeros(len(rules.relations), np.int64)
    for block in family_blocks(people, BLOCK_SIZE):
        known = _closed(people, rules, *block)
        counts += [known[name].nnz for name in rules.relations]
    return dict(zip(rules.relations, counts.tolist(), strict=True))


def base(people: People, first: int, after: int) -> Known:
    """Parents and genders of the people with ids in [first, after), who have no relatives outside."""
    female, size = people.female[first:after], after - first
    begin, end = np.searchsorted(people.parents[:, 0], [first, after])
    parent, child = people.parents[begin:end].T - first
    ends = np.searchsorted(parent, np.arange(size + 1)).astype(np.int32)
    parents = csr_array((np.ones(len(child), bool), child, ends), shape=(size, size))
    everybody = np.ones(size, bool)
    return {PARENT: parents, "female": among(female), "male": among(~female), SAME: among(everybody)}


def _closed(people: People, ontology: Ontology, first: int, after: int) -> Known:
    return fixpoint(ontology.strata, base(people, first, after))


def _facts(known: Known, ontology: Ontology, first: int, after: int) -> Facts:
    """Facts in the matrices of the written relations, sorted by encoding each fact as one number."""
    size, relations = after - first, len(ontology.relations)
    rows = np.arange(size, dtype=np.int64) * relations
    keys = []
    for relation, name in enumerate(ontology.relations):
        matrix = known[name]
        keys.append(np.repeat((rows + relation) * size, np.diff(matrix.indptr)) + matrix.indices)
    key = np.concatenate(keys)
    key.sort()
    rest, tail = np.divmod(key, size)
    head, relation = np.divmod(rest, relations)
    return Facts(*(ids.astype(np.int32) for ids in (head + first, relation, tail + first)))


def family_blocks(people: People, size: int) -> Iterator[tuple[int, int]]:
    """(first, after) of the ids in each block of at least `size` people; every family is in one block."""
    num, family = len(people.labels), numbers_of(people)
    last = np.zeros(num, np.int64)
    np.maximum.at(last, family, np.arange(num))
    # After these ids, no family is incomplete.
    cuts = np.flatnonzero(np.maximum.accumulate(last[family]) == np.arange(num)) + 1
    first = 0
    while first < num:
        after = int(cuts[min(np.searchsorted(cuts, first + size), len(cuts) - 1)])
        yield first, after
        first = after
