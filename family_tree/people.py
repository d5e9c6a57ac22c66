"""People: labels, genders and parents."""

from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Int32
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from owkg.errors import ArgumentError

# People of a cycle that a message shows.
_SHOWN = 6
# A line of a file, or a part of a line between tabs.
_LABEL = r"^[^\t\r\n]*[^\t\r\n\s][^\t\r\n]*$"


class People(NamedTuple):
    """People with ids 0, 1, 2, ..., in the order of their labels.

    Attributes:
        labels: names, in the strictly increasing order of their code points.
        female: whether each person is female; otherwise male.
        parents: columns parent and child, rows in increasing order.
    """

    labels: pl.Series
    female: Bool[np.ndarray, "people"]
    parents: Int32[np.ndarray, "edges 2"]


class Fault(NamedTuple):
    """Description of an error in the parents, and the row in which it is."""

    edge: int
    message: str


def people_checked(people: object) -> People:
    """`people` unchanged, if they are valid.

    A child may have one known parent, and a person may have children with several partners.

    Raises:
        ValueError: if `people` is not a `People`; or naming the attribute, if labels or rows are not in
            increasing order, a child has more than two parents or two of one gender, a person is their own
            ancestor, or a dtype, a shape or an id differs from `People`.

    Examples:
        >>> labels, female = pl.Series(["ann", "bob", "eve"]), np.array([True, False, True])
        >>> people = People(labels, female, np.array([[0, 1], [1, 2]], np.int32))
        >>> people_checked(people).labels[2]
        'eve'
    """
    if not isinstance(people, People):
        raise ArgumentError("people", f"must be People, got {people!r}.")
    labels, female, parents = people
    _check_labels(labels)
    _require("female", female, np.dtype(np.bool_), (len(labels),))
    rows = len(parents) if isinstance(parents, np.ndarray) and parents.ndim else 0
    _require("parents", parents, np.dtype(np.int32), (rows, 2))
    outside = (parents < 0) | (parents >= len(labels))
    if outside.any():
        raise ArgumentError("parents", f"must be ids in [0, {len(labels)}), got {parents[outside][0]}.")
    keys = parents[:, 0] * np.int64(len(labels)) + parents[:, 1]
    if (row := _first(keys[1:] <= keys[:-1])) is not None:
        message = f"rows in increasing order, got {parents[row + 1].tolist()} after {parents[row].tolist()}"
        raise ArgumentError("parents", f"must be {message}.")
    if found := parents_fault(people):
        raise ValueError(f"`parents`: {found.message}")
    return people


def parents_fault(people: People) -> Fault | None:
    """First invalid row of the parents, None if all are valid; rows in any order, with ids in range."""
    parent, child = people.parents.T
    order = np.argsort(child, kind="stable")  # rows of one child stay in order
    whose, female = child[order], people.female[parent[order]]
    name = people.labels.__getitem__
    third = order[2:][whose[2:] == whose[:-2]]
    if third.size:
        edge = int(third.min())
        found = [name(int(p)) for p in parent[order][whose == child[edge]][:3]]
        return Fault(edge, f"{name(int(child[edge]))!r} has more than two parents: {', '.join(found)}.")
    same = order[1:][(whose[1:] == whose[:-1]) & (female[1:] == female[:-1])]
    if same.size:
        edge = int(same.min())
        found = [name(int(p)) for p in parent[order][whose == child[edge]]]
        gender = "female" if people.female[parent[edge]] else "male"
        return Fault(edge, f"{name(int(child[edge]))!r} has two {gender} parents: {', '.join(found)}.")
    return _cycle(people)


def _cycle(people: People) -> Fault | None:
    size = len(people.labels)
    parent, child = people.parents.T
    graph = csr_array((np.ones(len(parent), np.int8), (parent, child)), (size, size))
    _, component = connected_components(graph, directed=True, connection="strong")
    # An edge is on a cycle if and only if its ends reach each other.
    edge = _first(component[parent] == component[child])
    if edge is None:
        return None
    ancestor, person = int(parent[edge]), int(child[edge])
    _, before = breadth_first_order(graph, person)
    line = [ancestor]
    while line[-1] != person:
        line.append(int(before[line[-1]]))
    names = [people.labels[i] for i in [ancestor, *line[::-1]]]
    if len(names) > _SHOWN:
        names[_SHOWN - 2 : -1] = ["..."]
    return Fault(edge, f"{names[0]!r} is their own ancestor: {' -> '.join(names)}.")


def _check_labels(labels: object) -> None:
    if not isinstance(labels, pl.Series) or labels.dtype != pl.String:
        raise ArgumentError("labels", f"must be a series of text, got {labels!r}.")
    bad = ~labels.str.contains(_LABEL).fill_null(False)
    if (row := _first(bad.to_numpy())) is not None:
        raise ArgumentError("labels", f"must be text without tabs and line ends, got {labels[row]!r}.")
    if (row := _first((labels[1:] <= labels[:-1]).to_numpy())) is not None:
        got = f"{labels[row + 1]!r} after {labels[row]!r}"
        raise ArgumentError("labels", f"must be in strictly increasing order, got {got}.")


def _require(name: str, array: object, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
        got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else repr(array)
        raise ArgumentError(name, f"must be an array of {dtype} of shape {shape}, got {got}.")


def _first(bad: np.ndarray) -> int | None:
    return int(np.argmax(bad)) if bad.any() else None
