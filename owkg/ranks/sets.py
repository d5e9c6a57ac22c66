"""Sets of entities for queries: known answers or candidates."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import KnownAnswers, answer_ranges
from owkg.ordered import distinct


class EntitySets(NamedTuple):
    """Sets of entities: query i has `ids[start[i]:stop[i]]`, and queries may share ids.

    Attributes:
        start: index of the first id of each query, [queries].
        stop: index after the last id of each query, [queries].
        ids: entity ids, [ids]; repeated ids in one set count once.
    """

    start: np.ndarray
    stop: np.ndarray
    ids: np.ndarray


# Sets of queries: `EntitySets`, a pair (offsets, ids), or a mask [queries, entities].
Sets = EntitySets | tuple[ArrayLike, ArrayLike] | ArrayLike


def known_sets(known: KnownAnswers, entity: ArrayLike, relation: ArrayLike) -> EntitySets:
    """Known answers of each query, as for `ranks_from_scores`; nothing is copied.

    Args:
        known: known answers on the predicted side.
        entity: id of the known entity of each query, [queries].
        relation: id of the relation of each query, [queries].

    Raises:
        ValueError: if an id is out of range, or the shapes do not broadcast.

    Examples:
        >>> from owkg.kg import known_answers
        >>> known = known_answers([[0, 0, 1], [0, 0, 2]], "tail", num_entities=3, num_relations=1)
        >>> sets = known_sets(known, [0, 1], [0, 0])
        >>> sets.ids[sets.start[0] : sets.stop[0]].tolist(), int(sets.stop[1] - sets.start[1])
        ([1, 2], 0)
    """
    return EntitySets(*answer_ranges(known, entity, relation), known.answers)


def sets_checked(
    name: str, value: Sets, queries: int, entities: int
) -> EntitySets | Bool[np.ndarray, "queries entities"]:
    """`value` as entity sets, or as a mask if it is one.

    Args:
        name: name of the argument in messages.
        value: `EntitySets`, a pair (offsets [queries + 1], ids [ids]), or a mask [queries, entities].
        queries: number of queries that there must be.
        entities: number of entities; ids are smaller.
    """
    shape = f"a mask [{queries}, {entities}], a pair (offsets, ids) or EntitySets"
    if isinstance(value, tuple) and len(value) in (2, 3):
        ids = _ids(name, value[-1], entities)
        bounds = [_bounds(name, part) for part in value[:-1]]
        if len(value) == 2:
            offsets = bounds[0]
            if offsets.size != queries + 1 or offsets[0] != 0 or offsets[-1] != ids.size:
                raise ArgumentError(
                    name,
                    f"must have {queries + 1} offsets from 0 to the {ids.size} ids, "
                    f"got {offsets.size} offsets: {offsets}.",
                )
            bounds = [offsets[:-1], offsets[1:]]
        start, stop = bounds
        if start.shape != (queries,) or stop.shape != (queries,):
            raise ArgumentError(
                name, f"must have one set for each of {queries} queries, got {start.size} and {stop.size}."
            )
        inside = (start >= 0) & (start <= stop) & (stop <= ids.size)
        checks.require(name, start, inside, f"sets that begin before they end, within the {ids.size} ids")
        return EntitySets(start, stop, ids)
    mask = as_array(value)
    if mask.dtype != bool or mask.shape != (queries, entities):
        raise ArgumentError(name, f"must be {shape}, got {mask.dtype} values of shape {mask.shape}.")
    return mask


def members(
    sets: EntitySets | Bool[np.ndarray, "queries entities"], begin: int, end: int, entities: int
) -> Int64[np.ndarray, "members"]:
    """Members of the sets of queries begin, ..., end - 1.

    Returns:
        (query - begin) * entities + id of each member, increasing.
    """
    if not isinstance(sets, EntitySets):
        return np.flatnonzero(sets[begin:end]).astype(np.int64, copy=False)
    start = sets.start[begin:end]
    sizes = sets.stop[begin:end] - start
    ends = np.cumsum(sizes)
    # Indices into `ids`: a count over all sets, shifted by the start of each set.
    place = np.arange(ends[-1]) + np.repeat(start - ends + sizes, sizes)
    keys = np.repeat(np.arange(end - begin) * entities, sizes) + sets.ids[place]
    return keys if (np.diff(keys) > 0).all() else distinct(keys)


def as_array(value: object) -> np.ndarray:
    """`value` as an array; an empty array of booleans for nested lists of different lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty(0, bool)


def _bounds(name: str, value: ArrayLike) -> np.ndarray:
    """Offsets as int64; ArgumentError if they are not whole numbers."""
    array = as_array(value)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ArgumentError(name, f"must have offsets that are whole numbers, got {value!r}.")
    return array.astype(np.int64)


def _ids(name: str, value: ArrayLike, entities: int) -> np.ndarray:
    """Entity ids, checked."""
    array = as_array(value)
    if not array.size and array.dtype != bool:
        return np.empty(0, np.int32)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ArgumentError(name, f"must hold entity ids along one axis, got {value!r}.")
    checks.require(name, array, (array >= 0) & (array < entities), f"entity ids below {entities}")
    return array
