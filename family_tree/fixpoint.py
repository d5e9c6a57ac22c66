"""The least fixed point: everything that the rules derive of given matrices, and nothing else."""

from collections.abc import Iterable

from family_tree.matrices import Expression, Matrix, either, value, without
from family_tree.rules import SAME
from family_tree.strata import Step, Stratum

Known = dict[Expression, Matrix]


def fixpoint(strata: Iterable[Stratum], known: Known) -> Known:
    """`known` and the matrix of every relation.

    Args:
        strata: in their order.
        known: matrices of `parentOf`, `female`, `male` and `=`; grows by what is computed on the way.
    """
    nothing = without(known[SAME], known[SAME])
    for relations, start, grow in strata:
        new = dict.fromkeys(relations, nothing) | _derived(start, known, known)
        known |= new
        while grow and any(matrix.nnz for matrix in new.values()):
            # Of a linear rule, new pairs come of new pairs alone; the other rules look at all again. What
            # is computed on the way here does not outlive the round.
            found = _derived(grow, known | new, dict(known))
            new = {name: without(matrix, known[name]) for name, matrix in found.items()}
            known |= {name: either(known[name], matrix) for name, matrix in new.items()}
    return known


def _derived(steps: Iterable[Step], recent: Known, known: Known) -> Known:
    """What each relation gets by applying every rule once."""
    derived: Known = {}
    for relation, expression, linear in steps:
        matrix = value(expression, recent if linear else known)
        derived[relation] = either(derived[relation], matrix) if relation in derived else matrix
    return derived
