"""Typical candidates of each relation and side, which sampled evaluation always scores in full."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64
from numpy.typing import ArrayLike
from scipy import sparse

from owkg.errors import ArgumentError
from owkg.kg.triples import ids, triples_checked

# Largest number of entries in one [entities, slots] array of affinities.
_ENTRIES = 2**26


class TypicalCandidates(NamedTuple):
    """Typical candidates of each relation and side, in CSR form.

    The candidates of relation r are `entities[offsets[i] : offsets[i + 1]]`, increasing, where i is r for
    heads and r + `num_relations` for tails.

    Attributes:
        offsets: start of the candidates of each relation and side, and finally their total number.
        entities: entity ids.
        num_entities, num_relations: size of the graph.
    """

    offsets: Int64[np.ndarray, "slots+1"]
    entities: Int32[np.ndarray, "candidates"]
    num_entities: int
    num_relations: int

    def of(self, relation: int, side: str) -> Int32[np.ndarray, "candidates"]:
        """Typical candidates of a relation and side, increasing."""
        slot = relation + (self.num_relations if side == "tail" else 0)
        return self.entities[self.offsets[slot] : self.offsets[slot + 1]]


def typical_candidates(
    facts: ArrayLike,
    *,
    num_entities: int,
    num_relations: int,
    more: float = 0.02,
    relations: ArrayLike | None = None,
) -> TypicalCandidates:
    """Entities that some fact has at a relation and side, and the entities most similar to them.

    Similarity comes from the other relations and sides (slots) where an entity occurs: its affinity to slot s
    is the sum, over its slots s', of the share of the entities at s' that also occur at s.

    Args:
        facts: int [facts, 3], including all known answers that leave the candidates.
        num_entities, num_relations: size of the graph.
        more: number of similar entities to add to the entities of facts, as a share of all entities, in [0,
            1]. Of equal affinity, the smaller id is added first. Default 0.02.
        relations: ids of the relations to treat; other relations get no typical candidates. None: all
            relations.

    Raises:
        ValueError: if an id or `more` is out of range.

    Examples:
        >>> facts = [[0, 0, 2], [1, 0, 2], [0, 1, 3], [4, 1, 3]]
        >>> found = typical_candidates(facts, num_entities=6, num_relations=2, more=1 / 6)
        >>> found.of(0, "head").tolist(), found.of(0, "tail").tolist()
        ([0, 1, 4], [0, 2])

    References:
        L-WD of Cornell et al. 2022, "Challenging the assumption of structure-based embeddings".
    """
    triples = triples_checked(facts, num_entities, num_relations)
    if not 0 <= more <= 1:
        raise ArgumentError("more", f"must be in [0, 1], got {more!r}.")
    extra = int(more * num_entities)
    entity = np.concatenate([triples[:, 0], triples[:, 2]])
    slot = np.concatenate([triples[:, 1], triples[:, 1] + num_relations])
    seen = sparse.csr_matrix(
        (np.ones(len(entity), np.float32), (entity, slot)), shape=(num_entities, 2 * num_relations)
    )
    seen.data[:] = 1  # repeated entries were summed
    size = np.asarray(seen.sum(0)).ravel()
    shared = (seen.T @ seen).tocsr()
    share = (sparse.diags(1 / np.maximum(size, 1)) @ shared).astype(np.float32)
    columns = seen.tocsc()
    found: list[np.ndarray] = []
    step = max(1, _ENTRIES // num_entities)
    asked = np.arange(num_relations) if relations is None else ids("relations", relations, num_relations)
    slots = np.unique(np.concatenate([asked, asked + num_relations]))
    sizes = np.zeros(2 * num_relations, np.int64)
    for begin in range(0, len(slots), step):
        own = slots[begin : begin + step]
        affinity = seen @ share[:, own].toarray() if extra else None
        for i, slot in enumerate(own):
            inside = columns.indices[columns.indptr[slot] : columns.indptr[slot + 1]]
            if affinity is not None:
                column = np.ascontiguousarray(affinity[:, i])
                column[inside] = -1
                inside = np.concatenate([inside, _largest(column, min(extra, num_entities - len(inside)))])
            found.append(np.sort(inside).astype(np.int32))
            sizes[slot] = len(inside)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return TypicalCandidates(
        offsets, np.concatenate([*found, np.empty(0, np.int32)]), num_entities, num_relations
    )


def _largest(values: np.ndarray, count: int) -> np.ndarray:
    """Indices of the `count` largest values; of equal values, the first."""
    if count <= 0:
        return np.empty(0, np.int64)
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = np.flatnonzero(values > least)
    return np.concatenate([above, np.flatnonzero(values == least)[: count - len(above)]])
