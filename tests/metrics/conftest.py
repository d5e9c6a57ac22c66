"""What the tests of the metrics share: every product of ranks, and a table with everything in it."""

import itertools

import numpy as np
import polars as pl
import pytest


def _all_ranks(sizes) -> np.ndarray:
    """Every combination of ranks of tasks with so many candidates, [combinations, tasks]."""
    return np.array(list(itertools.product(*(range(1, n + 1) for n in sizes))), float)


@pytest.fixture(scope="session")
def all_ranks():
    """The function from numbers of candidates to every combination of ranks."""
    return _all_ranks


@pytest.fixture(scope="session")
def full_table() -> pl.DataFrame:
    """A rank table with every column, ties, and queries of several answers; candidates by query."""
    rng = np.random.default_rng(11)
    rows = []
    for query in range(60):
        side = ("head", "tail")[query % 2]
        candidates = int(rng.integers(5, 60))
        for answer in range(int(rng.integers(1, 5))):
            low = int(min(rng.geometric(0.2), candidates))
            high = int(min(low + rng.integers(0, 4) * rng.integers(0, 2), candidates))
            known, other = f"k{query}", f"a{answer}"
            rows.append(
                {
                    "head": other if side == "head" else known,
                    "relation": f"r{query % 3}",
                    "tail": known if side == "head" else other,
                    "side": side,
                    "optimistic": low,
                    "pessimistic": high,
                    "candidates": candidates,
                    "weight": float(rng.uniform(0.1, 3)),
                    "popularity": int(rng.integers(0, 40)),
                    "relation_popularity": int(rng.integers(0, 9)),
                }
            )
    return pl.DataFrame(rows)
