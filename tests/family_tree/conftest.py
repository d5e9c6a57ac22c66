"""People made at random, more varied than sampled ones: half-siblings, one known parent, kin who marry."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from family_tree import People

MakePeople = Callable[..., People]


@pytest.fixture(scope="session")
def make_people() -> MakePeople:
    """Makes people; labels, and so ids, say nothing of age or family."""

    def make(seed: int, size: int, *, reach: int = 12) -> People:
        rng = np.random.default_rng(seed)
        female = rng.random(size) < 0.5
        name = rng.permutation(size)
        edges = []
        for child in range(size):
            # Parents are a few people older than the child; so nobody is their own ancestor.
            older = np.arange(max(0, child - reach), child)
            for gender in (False, True):
                able = older[female[older] == gender]
                if able.size and rng.random() < 0.75:
                    edges.append((name[rng.choice(able)], name[child]))
        by_name = np.empty(size, bool)
        by_name[name] = female
        parents = np.array(sorted(edges), np.int32).reshape(-1, 2)
        return People(pl.Series([f"p{i:04d}" for i in range(size)]), by_name, parents)

    return make
