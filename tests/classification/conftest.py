"""Random tables of scored triples."""

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def rng():
    """A generator of fixed seed."""
    return np.random.default_rng(20)


@pytest.fixture
def scored():
    """A function to make a table of `n` scored triples; `labels` as many kinds as there are."""

    def make(rng, n, *, relations=3, labels=("positive", "negative"), levels=8, split=("valid", "test")):
        label = rng.choice(labels, n)
        score = rng.integers(0, levels, n) + 2.0 * (label == "positive") - (label == "negative")
        return pl.DataFrame(
            {
                "split": rng.choice(split, n),
                "head": [f"h{i}" for i in range(n)],
                "relation": rng.integers(0, relations, n).astype(str),
                "tail": "t",
                "label": label,
                "score": np.asarray(score, float),
            }
        )

    return make
