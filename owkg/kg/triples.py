"""Checks of triples and ids at the public boundary."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Int32, Int64
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.lines import COLUMNS
from owkg.ordered import changes

# Ids are int32.
MOST_IDS = 2**31 - 1


def size(name: str, value: int) -> int:
    """`value` as the number of entities or relations: a whole number from 1 to 2^31 - 1."""
    array = checks.integer(name, value, 1)
    checks.require(name, array, array <= MOST_IDS, f"at most {MOST_IDS}")
    return checks.scalar(name, array)


def side_checked(side: object) -> str:
    """`side` if it is "head" or "tail"; ValueError otherwise."""
    if not isinstance(side, str) or side not in ("head", "tail"):
        raise ValueError(f'`side` must be "head" or "tail", got {side!r}.')
    return side


def ids(name: str, value: ArrayLike, below: int) -> Int64[np.ndarray, "..."]:
    """`value` as int64, with every entry a whole number in [0, `below`); an empty array passes."""
    array = _whole(name, value)
    checks.require(name, array, (array >= 0) & (array < below), f"an id in [0, {below})")
    return array.astype(np.int64, copy=False)


def triples_checked(
    triples: ArrayLike, num_entities: int | None, num_relations: int | None, *, name: str = "triples"
) -> Int32[np.ndarray, "triples 3"]:
    """`triples` as int32 [triples, 3] with ids in range; any id that fits passes if a size is None."""
    array = _whole(name, triples)
    if array.ndim == 1 and array.size == 0:
        array = array.reshape(0, 3)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ArgumentError(name, f"must be of shape [triples, 3], got {array.shape}.")
    bounds = [MOST_IDS if n is None else n for n in (num_entities, num_relations, num_entities)]
    for values, column, bound in zip(array.T, COLUMNS, bounds, strict=True):
        bad = (values < 0) | (values >= bound)
        if bad.any():
            row = int(np.argmax(bad))
            raise ArgumentError(
                name, f"must hold {column} ids in [0, {bound}), got {values[row]} in row {row}."
            )
    return array.astype(np.int32, copy=False)


def query_ids(
    triples: Int32[np.ndarray, "triples 3"], side: str
) -> tuple[Int32[np.ndarray, "triples"], Int32[np.ndarray, "triples"], Int32[np.ndarray, "triples"]]:
    """Known entity, relation and answer of each triple if `side` is predicted."""
    head, relation, tail = triples.T
    return (head, relation, tail) if side == "tail" else (tail, relation, head)


def triple_keys(*splits: Int32[np.ndarray, "_ 3"]) -> Any:
    """Number for each triple, equal for equal triples in all of several arrays.

    Returns:
        int64 [triples]; a list of these for several arrays.
    """
    sizes = _below(splits)
    if math.prod(sizes) < 2**63:
        # Computed in place, because memory holds few copies of a large graph.
        found = []
        for triples in splits:
            keys = triples[:, 0].astype(np.int64)
            for i in (1, 2):
                keys *= sizes[i]
                keys += triples[:, i]
            found.append(keys)
    else:
        parts = np.cumsum([len(triples) for triples in splits])[:-1]
        frame = triple_frame(np.concatenate(splits))
        codes = frame.select(pl.struct(COLUMNS)).to_series().rank("dense").to_numpy().astype(np.int64)
        found = np.split(codes, parts)
    return found[0] if len(splits) == 1 else found


def _below(splits: Sequence[np.ndarray]) -> list[int]:
    """Largest id of each column plus one."""
    return [max([int(of[:, i].max()) for of in splits if len(of)], default=0) + 1 for i in range(3)]


def distinct_triples(triples: Int32[np.ndarray, "_ 3"]) -> Int32[np.ndarray, "_ 3"]:
    """Each triple once, in any order."""
    keys = triple_keys(triples)
    ordered = np.sort(keys)
    new = changes(ordered)
    if new.all():
        return triples
    sizes = _below([triples])
    if math.prod(sizes) >= 2**63:
        return triples[np.unique(keys, return_index=True)[1]]
    ordered = ordered[new]
    found = np.empty((len(ordered), 3), np.int32)
    for i in (2, 1):
        found[:, i] = ordered % sizes[i]
        ordered //= sizes[i]
    found[:, 0] = ordered
    return found


def triple_frame(triples: Int32[np.ndarray, "triples 3"]) -> pl.DataFrame:
    """Ids in columns head, relation, tail."""
    return pl.DataFrame(triples, schema=list(COLUMNS), orient="row")


def labelled(
    triples: Int32[np.ndarray, "triples 3"], entities: Sequence[str], relations: Sequence[str]
) -> pl.DataFrame:
    """Labels in columns head, relation, tail."""
    entity, relation = (pl.Series(labels, dtype=pl.String) for labels in (entities, relations))
    columns = zip(COLUMNS, (entity, relation, entity), triples.T, strict=True)
    return pl.DataFrame({name: of.gather(ids) for name, of, ids in columns})


def _whole(name: str, value: ArrayLike) -> np.ndarray:
    """Array of integers; ArgumentError otherwise."""
    try:
        array = np.asarray(value)
    except ValueError:  # nested lists of different lengths
        array = np.asarray(None)
    if array.size == 0 and array.dtype.kind == "f":  # an empty list
        array = array.astype(np.int64)
    if isinstance(value, np.ma.MaskedArray) or array.dtype.kind not in "iu":
        raise ArgumentError(name, f"must be whole numbers (an integer array), got {value!r}.")
    return array
