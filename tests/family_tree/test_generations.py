"""How many generations are known above each person."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from family_tree import People
from family_tree.families import generations_of


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda e: e[0] < e[1]), unique=True))
def test_the_longest_line_of_parents(edges):
    edges = np.array(sorted(edges), np.int32).reshape(-1, 2)
    people = People(pl.Series([f"{i:02d}" for i in range(12)]), np.zeros(12, bool), edges)
    above = [0] * 12
    for child in range(12):  # parents come before their children
        above[child] = max((above[p] + 1 for p, c in edges.tolist() if c == child), default=0)
    assert generations_of(people).tolist() == above  # whoever the parents are
