"""A population of short lists, without files."""

import numpy as np
import polars as pl

from owkg.estimation.population import Population


def small_population(queries=60, systems=2, depth=3, seed=0):
    """Lists of a few candidates, some of them known, and the truth."""
    random = np.random.default_rng(seed)
    each = 5
    slot = np.stack(
        [[random.permutation(each)[:depth] + each * q for q in range(queries)] for _ in range(systems)]
    ).astype(np.int32)
    truth = (random.random(each * queries) < 0.4).astype(np.int8)
    label = np.where((truth == 1) & (random.random(len(truth)) < 0.3), 1, -1).astype(np.int8)
    names = [f"q{i}" for i in range(queries)]
    return Population(
        tuple(f"m{i}" for i in range(systems)),
        pl.DataFrame({"query": names}),
        pl.Series([f"a{i}" for i in range(each * queries)]),
        np.repeat(np.arange(queries), each),
        slot,
        label,
        np.zeros(queries, np.int64),
    ), truth
