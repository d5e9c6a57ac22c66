"""Runs and judgements of a few queries."""

import itertools

import numpy as np
import polars as pl
import pytest

from owkg.ir import POOLED
from owkg.judge.runs import run_from_lists

ENTITIES = tuple("abcdefgh")


def _world(seed):
    """(run, judgements) of three systems and four queries, with ties; some answers not judged."""
    rng = np.random.default_rng(seed)
    runs = [
        run_from_lists(
            model,
            "tail",
            np.arange(4),
            np.zeros(4, int),
            np.stack([rng.permutation(8)[:5] for _ in range(4)]),
            rng.integers(3, size=(4, 5)).astype(float),
            entities=ENTITIES,
            relations=["r"],
        )
        for model in ("one", "two", "three")
    ]
    rows = [
        {
            "query": f"{e}|r|?",
            "side": "tail",
            "entity": e,
            "relation": "r",
            "answer": a,
            "relevance": relevance,
        }
        for e, a in itertools.product("abcd", ENTITIES)
        if (relevance := int(rng.integers(-2, 3))) >= POOLED or a == "a"
    ]
    frame = pl.DataFrame(rows).with_columns(pl.col("relevance").clip(POOLED))
    return pl.concat(runs), frame


@pytest.fixture(scope="session")
def world():
    """Gives runs and judgements, another pair for each seed."""
    return _world
