"""Where people stand in a drawing: nobody on anybody, children below, spouses together, few crossings."""

from collections import defaultdict
from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from family_tree import People, sample_people
from family_tree.families import couples, family, family_numbers
from family_tree.layout import FamilyLayout, layout

LIMITS = st.fixed_dictionaries(
    {
        "max_tree_size": st.integers(1, 60),
        "max_depth": st.integers(1, 5),
        "max_branching": st.integers(1, 8),
        "strict_depth": st.booleans(),
        "seed": st.integers(0, 2**30),
    }
)


@st.composite
def related(draw) -> People:
    """Any family: half-siblings, cousins who marry, uncles and nieces, one known parent."""
    size = draw(st.integers(1, 14))
    female = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    edges = []
    for child in range(1, size):
        one = draw(st.integers(0, child - 1))
        others = [p for p in range(child) if female[p] != female[one]]
        other = draw(st.sampled_from([None, *others]))
        edges += [[one, child]] + ([] if other is None else [[other, child]])
    return drawn(female, sorted(edges))


def drawn(female, edges) -> People:
    labels = pl.Series([f"p{i:03d}" for i in range(len(female))])
    return People(labels, np.asarray(female, bool), np.array(edges, np.int32).reshape(-1, 2))


def check(people: People, places: FamilyLayout) -> None:
    """What every drawing keeps to."""
    parent, child = people.parents.T
    assert places.row.min() == 0
    assert (places.row[child] > places.row[parent]).all()
    for row in range(int(places.row.max()) + 1):
        x = np.sort(places.x[places.row == row])
        assert x.size
        assert (np.diff(x) > 1 - 1e-6).all()
    edges = [(p, c) for one in places.families for p in one.parents for c in one.children]
    assert sorted(edges) == sorted(map(tuple, people.parents.tolist()))
    for one in places.families:
        parents, children = places.row[list(one.parents)], places.row[list(one.children)]
        assert parents.max() < one.bar < children.min()
    for one, other in combinations(places.families, 2):
        if one.bar == other.bar:  # two lines at one height do not touch
            (left, right), (start, end) = sorted([extent(one, places), extent(other, places)])
            assert right < start or end < left


def extent(one, places: FamilyLayout) -> tuple[float, float]:
    ends = [*(at for at, _ in one.drops), *places.x[list(one.children)]]
    return min(ends), max(ends)


def crossings(places: FamilyLayout) -> int:
    """Pairs of straight lines from parents to children that cross."""
    lines = defaultdict(list)
    for one in places.families:
        top = places.x[list(one.parents)].mean()
        lines[places.row[one.parents[0]]] += [(top, places.x[c]) for c in one.children]
    pairs = (pair for gap in lines.values() for pair in combinations(gap, 2))
    return sum((a - c) * (b - d) < 0 for (a, b), (c, d) in pairs)


@given(LIMITS)
def test_sampled_families(limits):
    people = sample_people(num_trees=1, **limits)
    places = layout(people)
    check(people, places)
    parent, child = people.parents.T
    assert (places.row[child] == places.row[parent] + 1).all()
    beside = {frozenset(pair) for pair in neighbours(places)}
    assert {frozenset(pair) for pair in couples(people).tolist()} <= beside
    for one in places.families:
        ((at, row),) = one.drops
        assert at == pytest.approx(places.x[list(one.parents)].mean())
        assert row == places.row[one.parents[0]]


def neighbours(places: FamilyLayout):
    for row in range(int(places.row.max()) + 1):
        who = np.flatnonzero(places.row == row)
        yield from pairwise(who[np.argsort(places.x[who])].tolist())


@given(related())
def test_any_family(people):
    places = layout(people)
    check(people, places)
    beside = {frozenset(pair) for pair in neighbours(places)}
    for one in places.families:
        assert len(one.drops) == (1 if frozenset(one.parents) in beside else len(one.parents))


def test_a_drawing_is_always_the_same():
    people = sample_people(num_trees=1, max_tree_size=60)
    one, other = layout(people), layout(people)
    assert one.families == other.families
    assert np.array_equal(one.x, other.x)


def test_children_stand_under_their_parents():
    places = layout(drawn([True, False, True, False, True], [[0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4]]))
    assert places.row.tolist() == [0, 0, 1, 1, 1]
    assert np.sort(places.x[2:]).mean() == pytest.approx(places.x[:2].mean())
    assert abs(places.x[0] - places.x[1]) == pytest.approx(1)


def test_both_spouses_may_have_parents_and_siblings():
    # 0 + 1 have 4, 5, 6; 2 + 3 have 7, 8, 9; 5 + 8 have 10, 11.
    edges = [[p, c] for p in (0, 1) for c in (4, 5, 6)] + [[p, c] for p in (2, 3) for c in (7, 8, 9)]
    people = drawn(np.arange(12) % 2 == 0, sorted([*edges, [5, 10], [5, 11], [8, 10], [8, 11]]))
    places = layout(people)
    check(people, places)
    assert places.row.tolist() == [0] * 4 + [1] * 6 + [2] * 2
    assert crossings(places) == 0
    assert len({one.bar for one in places.families if one.bar < 1}) == 1  # side by side, at one height


def test_several_partners_stand_in_a_line():
    # 2 has children with 0, 1 and 3 has them with 1 too: 0 - 2 - 1 - 3.
    people = drawn([1, 1, 0, 0, 1, 1, 0], [[0, 4], [1, 5], [1, 6], [2, 4], [2, 5], [3, 6]])
    places = layout(people)
    check(people, places)
    line = np.argsort(places.x[:4]).tolist()
    assert line in ([0, 2, 1, 3], [3, 1, 2, 0])
    assert all(len(one.drops) == 1 for one in places.families)


@pytest.mark.parametrize(("size", "most"), [(12, 0), (25, 0), (40, 1), (60, 3)])
def test_few_lines_cross(size, most):
    families = [sample_people(num_trees=1, max_tree_size=size, seed=seed) for seed in range(10)]
    assert np.mean([crossings(layout(people)) for people in families]) <= most


def test_somebody_alone():
    places = layout(drawn([True], []))
    assert (places.x.shape, places.row.tolist(), places.families) == ((1,), [0], ())


def test_a_long_line_of_descent():
    people = drawn(np.zeros(400), [[i, i + 1] for i in range(399)])
    places = layout(people)
    check(people, places)
    assert places.row.tolist() == list(range(400))


def test_one_family_of_at_most_400():
    with pytest.raises(ValueError, match="`people` must be one family, got 2"):
        layout(sample_people(num_trees=2, max_tree_size=20))
    with pytest.raises(ValueError, match="a family of 401 people cannot be drawn; it must have at most 400"):
        layout(sample_people(num_trees=1, max_tree_size=401))


# --- families


def test_families_are_counted_by_their_first_labels():
    people = drawn([1, 0, 1, 0, 1, 0], [[0, 3], [1, 4], [4, 5]])
    assert family_numbers(people).tolist() == [0, 1, 2, 0, 1, 1]
    one = family(people, 1)
    assert one.labels.to_list() == ["p001", "p004", "p005"]
    assert one.female.tolist() == [False, True, False]
    assert one.parents.tolist() == [[0, 1], [1, 2]]
    assert one.parents.dtype == np.int32
    for tree in (-10, -1, 3):
        with pytest.raises(
            ValueError, match=rf"`tree` must be the number of a family, in \[0, 3\), got {tree}"
        ):
            family(people, tree)


@pytest.mark.parametrize("tree", [0.5, "1", None, True, [0, 1], 2**70])
def test_numbers_of_families_that_are_none(tree):
    with pytest.raises(ValueError, match="`tree` must be"):
        family(drawn([1, 0], [[0, 1]]), tree)


def test_nobody_is_no_family():
    nobody = People(pl.Series([], dtype=pl.String), np.zeros(0, bool), np.empty((0, 2), np.int32))
    with pytest.raises(ValueError, match="`people` must hold at least one person, got none"):
        family(nobody, 0)
    with pytest.raises(ValueError, match="`people` must be one family, got 0"):
        layout(nobody)
    assert family_numbers(nobody).shape == (0,)
    assert couples(nobody).shape == (0, 2)


def test_a_sampled_tree_is_a_family():
    people = sample_people(num_trees=4, max_tree_size=30)
    for tree in range(4):
        alone = sample_people(num_trees=1, max_tree_size=30, first_tree=tree)
        one = family(people, tree)
        assert one.labels.equals(alone.labels)
        assert np.array_equal(one.female, alone.female)
        assert np.array_equal(one.parents, alone.parents)


def test_couples_are_counted_once():
    people = drawn([1, 0, 1, 0, 1, 0, 1], [[0, 3], [0, 4], [0, 5], [1, 3], [1, 4], [2, 6]])
    assert couples(people).tolist() == [[0, 1]]
    assert couples(drawn([1, 0], [])).shape == (0, 2)
