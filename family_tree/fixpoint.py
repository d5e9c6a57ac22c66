"""Least fixed point: all facts that the rules derive from given matrices."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Int64

from family_tree.matrices import Apply, Expression, Matrix, either, of_pairs, pairs, value, without
from family_tree.rules import SAME
from family_tree.strata import Step, Stratum

Known = dict[Expression, Matrix]
# Known pairs, in disjoint sorted arrays.
Layers = list[Int64[np.ndarray, "_"]]
# Minimum size of a layer relative to the next one, so that layers are few and rarely merged.
_RATIO = 8


def fixpoint(strata: Iterable[Stratum], known: Known) -> Known:
    """`known` and the matrix of every relation, computed stratum by stratum.

    `known` holds the matrices of `parentOf`, `female`, `male` and `=`. Intermediate results are added to it.
    """
    nothing = without(known[SAME], known[SAME])
    for relations, start, grow in strata:
        new = dict.fromkeys(relations, nothing) | _derived(start, known, known)
        known |= new
        if grow:
            known |= _grown(grow, known, new)
    return known


def _grown(grow: Sequence[Step], known: Known, new: Known) -> Known:
    """Relations of one stratum, grown by its recursive rules from the `new` pairs of its other rules.

    New pairs of a linear rule come only from new pairs, so the work of a round does not grow with the pairs
    found before. Rules that are not linear use all pairs again.
    """
    size, linear = len(known[SAME].indptr) - 1, all(step.linear for step in grow)
    for step in grow:
        for part in _apart(step.matrix, new):
            value(part, known)
    layers: dict[Expression, Layers] = {name: _with([], pairs(matrix)) for name, matrix in new.items()}
    while any(matrix.nnz for matrix in new.values()):
        # Intermediate results are discarded after the round.
        now = known if linear else known | _whole(layers, size)
        fresh = {name: _fresh(layers[name], m) for name, m in _derived(grow, known | new, now).items()}
        layers |= {name: _with(layers[name], keys) for name, keys in fresh.items()}
        new = {name: of_pairs(keys, size) for name, keys in fresh.items()}
    return _whole(layers, size)


def _apart(expression: Expression, names: Iterable[Expression]) -> Iterator[Expression]:
    """Largest parts of an expression that name none of `names`."""
    if _names(expression).isdisjoint(names):
        yield expression
    elif isinstance(expression, Apply):
        for part in expression.parts:
            yield from _apart(part, names)


def _names(expression: Expression) -> set[Expression]:
    return set().union(*map(_names, expression.parts)) if isinstance(expression, Apply) else {expression}


def _whole(layers: dict[Expression, Layers], size: int) -> Known:
    return {name: of_pairs(_merged(found), size) for name, found in layers.items()}


def _fresh(layers: Layers, matrix: Matrix) -> Int64[np.ndarray, "_"]:
    """Pairs of a matrix that are in no layer."""
    keys = pairs(matrix)
    for layer in layers:
        at = np.searchsorted(layer, keys)
        keys = keys[layer[np.minimum(at, len(layer) - 1)] != keys]
    return keys


def _with(layers: Layers, keys: Int64[np.ndarray, "_"]) -> Layers:
    layers = [*layers, keys] if keys.size else layers
    while len(layers) > 1 and len(layers[-2]) < _RATIO * len(layers[-1]):
        layers = [*layers[:-2], _merged(layers[-2:])]
    return layers


def _merged(layers: Layers) -> Int64[np.ndarray, "_"]:
    keys = np.concatenate([np.empty(0, np.int64), *layers])
    keys.sort(kind="stable")  # a stable sort detects the sorted parts
    return keys


def _derived(steps: Iterable[Step], recent: Known, known: Known) -> Known:
    """Matrix of each relation after applying every rule once."""
    derived: Known = {}
    for relation, expression, linear in steps:
        matrix = value(expression, recent if linear else known)
        derived[relation] = either(derived[relation], matrix) if relation in derived else matrix
    return derived
