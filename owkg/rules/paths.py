"""Paths of a graph as sparse matrices: pairs of entities that a body connects, with distinct entities."""

from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Int
from scipy import sparse

from owkg.kg import KnowledgeGraph

Body = tuple[int, ...]


class Paths:
    """Train facts of a graph by directed relation: r from head to tail, r + R from tail to head.

    Facts from an entity to itself and repeated facts are left out, because different variables stand for
    different entities.

    Attributes:
        num_entities, num_relations: size of the graph.
        facts: distinct facts of the graph in both directions: start, directed relation, end.
        steps: matrix [n, n] of the facts of each directed relation.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.num_entities, self.num_relations = graph.num_entities, graph.num_relations
        train = np.unique(graph.splits["train"].astype(np.int64), axis=0)
        train = train[train[:, 0] != train[:, 2]]
        self.facts: Int[np.ndarray, "facts 3"] = np.concatenate(
            [train, train[:, [2, 1, 0]] + [0, self.num_relations, 0]]
        )
        order = np.argsort(self.facts[:, 1], kind="stable")
        own = self.facts[order]
        ends = np.searchsorted(own[:, 1], np.arange(2 * self.num_relations + 1))
        self.steps = [self._matrix(own[begin:end, 0], own[begin:end, 2]) for begin, end in pairwise(ends)]
        self._cycles: dict[Body, np.ndarray] = {}

    def _matrix(self, rows: np.ndarray, columns: np.ndarray) -> sparse.csr_matrix:
        shape = self.num_entities, self.num_entities
        return sparse.csr_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape)

    def inverse(self, relation: int) -> int:
        """The same relation in the other direction."""
        return (relation + self.num_relations) % (2 * self.num_relations)

    def reversed(self, body: Body) -> Body:
        """The body from its end to its beginning."""
        return tuple(self.inverse(one) for one in reversed(body))

    @cached_property
    def degrees(self) -> Int[np.ndarray, "directed entities"]:
        """Number of facts that leave each entity, by directed relation."""
        return np.stack([np.diff(step.indptr) for step in self.steps]).astype(np.int64)

    def walks(self, body: Body) -> int:
        """Number of walks along the body, with repeated entities, which bounds its pairs and the work."""
        count = self.degrees[body[-1]].astype(float)
        for one in reversed(body[:-1]):
            count = self.steps[one] @ count
        return int(count.sum())

    def counts(self, body: Body, rows: np.ndarray | None = None) -> sparse.csr_matrix:
        """Number of paths of distinct entities from each entity to each other entity along the body.

        Args:
            body: one to three directed relations.
            rows: entities at the start. None: all entities.

        Returns:
            Int32 counts [rows, n] without stored zeros.
        """
        begin = np.arange(self.num_entities) if rows is None else np.asarray(rows)
        first = self.steps[body[0]] if rows is None else self.steps[body[0]][begin]
        return self.further(first, body, begin)

    def further(self, first: sparse.csr_matrix, body: Body, rows: np.ndarray) -> sparse.csr_matrix:
        """Continuation of `counts` after the first step, for these `rows`."""
        if len(body) == 1:
            return first
        two = _without(first @ self.steps[body[1]], rows)
        return two if len(body) == 2 else self.third(first, two, body, rows)

    def third(
        self, first: sparse.csr_matrix, two: sparse.csr_matrix, body: Body, rows: np.ndarray
    ) -> sparse.csr_matrix:
        """`counts` of three steps, from the counts of the first two.

        N = offdiag(A B) C - A diag(B C) + A * B' * C, which removes walks that return to the second entity.
        """
        _, b, c = body
        if (b, c) not in self._cycles:
            there_and_back = self.steps[b].multiply(self.steps[self.inverse(c)])
            self._cycles[b, c] = np.asarray(there_and_back.sum(1)).ravel().astype(np.int32)
        found = two @ self.steps[c]
        if (cycles := self._cycles[b, c]).any():
            back = first.copy()
            back.data = back.data * cycles[back.indices]
            both = first.multiply(self.steps[self.inverse(b)][rows]).multiply(self.steps[c][rows])
            found = found - back + sparse.csr_matrix(both)
        return _without(sparse.csr_matrix(found), rows)


def _without(counts: sparse.csr_matrix, rows: np.ndarray) -> sparse.csr_matrix:
    """Counts without paths from an entity to itself and without stored zeros."""
    own = counts.indices == np.repeat(rows, np.diff(counts.indptr))
    if own.any():
        counts.data[own] = 0
    if not counts.data.all():
        counts.eliminate_zeros()
    return counts
