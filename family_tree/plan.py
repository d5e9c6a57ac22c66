"""Matrix operations of a rule, by eliminating the variables that only its body names.

The body is a graph: variables are its nodes, and each edge has the matrix of the relations between its ends.
A variable between two others is eliminated by a matrix product. A variable at the end of a path becomes a
condition on its neighbour. Rules of kinship need nothing else, and no step costs more than a product.
"""

from functools import cache

from family_tree.matrices import Apply, Expression, both, having, inverse, product, without
from family_tree.rules import HEAD, SAME, Atom, Rule

Edges = dict[tuple[str, str], Expression]


@cache
def planned(rule: Rule) -> Expression:
    """Expression of the matrix of all (X, Y) for which the body of `rule` holds.

    Raises:
        ValueError: naming the variables that cannot be eliminated in this way.

    Examples:
        >>> from family_tree.rules import parse_rule
        >>> planned(parse_rule("grandparentOf", "parentOf(X, Z), parentOf(Z, Y)", []))
        Apply(operation=<function product at ...>, parts=('parentOf', 'parentOf'))
    """
    edges: Edges = {}
    for atom in rule.body:
        if not atom.negated:
            first, last = atom.variables[0], atom.variables[-1]
            loop = len(atom.variables) == 2 and first == last
            _join(edges, first, last, Apply(both, (atom.name, SAME)) if loop else atom.name)
    denied = _deny(edges, [atom for atom in rule.body if atom.negated])
    while inner := sorted({v for edge in edges for v in edge} - set(HEAD)):
        held = {variable for atom in denied for variable in atom.variables}
        free = [v for v in inner if v not in held and len(_neighbours(edges, v)) <= 2]
        if not free:
            raise ValueError(_stuck(edges, inner, denied))
        _eliminate(edges, min(free, key=lambda v: len(_neighbours(edges, v))))
        denied = _deny(edges, denied)
    if HEAD not in edges and HEAD[::-1] not in edges:
        raise ValueError("X and Y must be joined by relations, directly or through others.")
    return _with_conditions(edges, *HEAD)


def _join(edges: Edges, first: str, last: str, matrix: Expression) -> None:
    """Adds an edge; if the same variables have one already, both must hold."""
    if first > last:
        first, last, matrix = last, first, _turned(matrix)
    there = edges.get((first, last))
    edges[first, last] = matrix if there is None else Apply(both, (there, matrix))


def _deny(edges: Edges, denied: list[Atom]) -> list[Atom]:
    """Removes negated atoms from the edges; returns the atoms whose variables are not joined yet."""
    later = []
    for atom in denied:
        first, last = atom.variables[0], atom.variables[-1]
        matrix: Expression = atom.name
        if first == last:
            edges.setdefault((first, first), SAME)
        elif first > last:
            first, last, matrix = last, first, _turned(matrix)
        if (first, last) in edges:
            edges[first, last] = Apply(without, (edges[first, last], matrix))
        else:
            later.append(atom)
    return later


def _neighbours(edges: Edges, variable: str) -> list[str]:
    return sorted({v for edge in edges if variable in edge for v in edge} - {variable})


def _eliminate(edges: Edges, variable: str) -> None:
    near = _neighbours(edges, variable)
    if not near:
        raise ValueError(f"{variable} must be joined with X or Y by relations, directly or through others.")
    path = _edge(edges, near[0], variable)
    if (variable, variable) in edges:
        path = Apply(product, (path, edges[variable, variable]))
    if len(near) == 1:
        _join(edges, near[0], near[0], Apply(having, (path,)))
    else:
        _join(edges, near[0], near[1], Apply(product, (path, _edge(edges, variable, near[1]))))
    for edge in [edge for edge in edges if variable in edge]:
        del edges[edge]


def _edge(edges: Edges, first: str, last: str) -> Expression:
    return edges[first, last] if first <= last else _turned(edges[last, first])


def _turned(matrix: Expression) -> Expression:
    if isinstance(matrix, Apply) and matrix.operation is inverse:
        return matrix.parts[0]
    return matrix if matrix == SAME else Apply(inverse, (matrix,))


def _with_conditions(edges: Edges, first: str, last: str) -> Expression:
    """Edge between two variables, restricted to people for whom the variables' conditions hold."""
    matrix = _edge(edges, first, last)
    if (first, first) in edges:
        matrix = Apply(product, (edges[first, first], matrix))
    if (last, last) in edges:
        matrix = Apply(product, (matrix, edges[last, last]))
    return matrix


def _stuck(edges: Edges, inner: list[str], denied: list[Atom]) -> str:
    if denied:
        return f"{denied[0]}: its variables must be joined by relations, directly or through others."
    others = ", ".join(_neighbours(edges, inner[0]))
    return f"{inner[0]} must be joined with at most two others; it cannot be separated from {others}."
