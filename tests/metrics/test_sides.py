"""Metrics of triples by the mean rank of both sides (Berrendorf et al. 2020, section 2.1)."""

import numpy as np
import polars as pl
import pytest

from owkg import evaluate
from owkg.errors import ArgumentError
from owkg.metrics import side_means


@pytest.fixture
def rng():
    """A generator of fixed seed."""
    return np.random.default_rng(5)


def table(rng, n, *, models=(None,)):
    parts = []
    for name in models:
        low = rng.integers(1, 30, 2 * n)
        part = pl.DataFrame(
            {
                "head": [f"h{i}" for i in range(n)] * 2,
                "relation": "r",
                "tail": "t",
                "side": ["head"] * n + ["tail"] * n,
                "optimistic": low,
                "pessimistic": low + rng.integers(0, 4, 2 * n),
                "candidates": 50,
            }
        )
        parts.append(part if name is None else part.with_columns(model=pl.lit(name)))
    return pl.concat(parts)


@pytest.mark.parametrize("ties", ["optimistic", "realistic", "pessimistic"])
def test_by_hand(rng, ties):
    ranks = table(rng, 40)
    low, high = (ranks[name].to_numpy().reshape(2, 40) for name in ("optimistic", "pessimistic"))
    each = {"optimistic": low, "pessimistic": high, "realistic": (low + high) / 2}[ties]
    mean = each.mean(0)
    found = side_means(ranks, ["mr", "mrr", "hits@10", "gmr"], ties=ties)
    assert found["of_triples"].to_list() == pytest.approx(
        [mean.mean(), (1 / mean).mean(), (mean <= 10).mean(), np.exp(np.log(mean).mean())]
    )
    usual = evaluate(ranks, ["mr", "mrr", "hits@10", "gmr"], ties=ties, ci=None)["value"]
    assert found["of_tasks"].to_list() == pytest.approx(usual.to_list())
    assert set(found["triples"]) == {40}


def test_models(rng):
    ranks = table(rng, 20, models=("a", "b"))
    found = side_means(ranks)
    alone = side_means(ranks.filter(pl.col("model") == "b").drop("model"))
    assert found.filter(pl.col("model") == "b").drop("model").equals(alone)


def test_predicted_relations_do_not_count(rng):
    ranks = table(rng, 5)
    more = pl.concat([ranks, ranks[:5].with_columns(side=pl.lit("relation"))])
    assert side_means(more).equals(side_means(ranks))


def test_bad_input(rng):
    ranks = table(rng, 5)
    with pytest.raises(
        ArgumentError, match="`ranks` must hold each triple once on each side, which 'h4 r t'"
    ):
        side_means(ranks[:-1])
    for names in ("amri", "macro-mrr", "median_rank"):
        with pytest.raises(ArgumentError, match="`metrics` must be plain means over tasks"):
            side_means(ranks, names)
    with pytest.raises(
        ArgumentError, match="`ties` must be of optimistic, pessimistic, realistic, got exact"
    ):
        side_means(ranks, ties="exact")
