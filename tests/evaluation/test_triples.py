"""Scores of triples, and the labelled triples of a graph."""

from dataclasses import replace

import jax
import numpy as np
import polars as pl
import pytest

from owkg.errors import ArgumentError
from owkg.evaluation import score_triples, scored_triples
from owkg.kg import KnowledgeGraph
from owkg.models import Trained, model, score

SPLITS = {
    "train": [(0, 0, 1), (1, 0, 2), (3, 1, 0)],
    "valid": [(2, 0, 3), (2, 0, 3)],
    "test": [(0, 1, 2), (1, 1, 3)],
    "test_negatives": [(3, 0, 3)],
    "test_unknown": [(2, 1, 2)],
}


@pytest.fixture
def world():
    """(model with its arrays, graph) of four entities."""
    graph = KnowledgeGraph(tuple("abcd"), ("r", "s"), {k: np.array(v, np.int32) for k, v in SPLITS.items()})
    made = model("transe", dim=4)
    return Trained(made, *made.init(jax.random.key(1), 4, 2)), graph


@pytest.mark.parametrize("n", [0, 1, 5, 2**14 + 3])
def test_blocks_change_no_score(world, n):
    trained, _ = world
    triples = np.random.default_rng(0).integers(0, [4, 2, 4], (n, 3)).astype(np.int32)
    found = score_triples(trained, triples)
    assert (found.shape, found.dtype) == ((n,), np.float64)
    if n:
        np.testing.assert_allclose(found, score(trained, *triples.T), rtol=1e-6)


def test_labels_of_splits(world):
    table = scored_triples(*world, name="m")
    test = table.filter(pl.col("split") == "test")
    assert test.select("head", "relation", "tail", "label").rows() == [
        ("a", "s", "c", "positive"),
        ("b", "s", "d", "positive"),
        ("d", "r", "d", "negative"),
        ("c", "s", "c", "unknown"),
    ]
    # The validation set has no negatives of its own: one is drawn of each distinct triple.
    valid = table.filter(pl.col("split") == "valid")["label"].to_list()
    assert valid.count("positive") == 1
    assert 1 <= valid.count("negative") <= 2
    assert set(table["model"]) == {"m"}
    drawn = scored_triples(*world, negatives="uniform").filter(pl.col("split") == "test")
    assert drawn["label"].to_list().count("negative") == 2


def test_draws_follow_the_seed(world):
    options = {"negatives": "uniform"}
    assert scored_triples(*world, **options, seed=4).equals(scored_triples(*world, **options, seed=4))
    tables = [scored_triples(*world, **options, seed=s).select("head", "tail").rows() for s in range(8)]
    assert len(set(map(tuple, tables))) > 1


def test_bad_arguments(world):
    trained, graph = world
    with pytest.raises(ArgumentError, match="`negatives` must be one of uniform, frequency, got 'hard'"):
        scored_triples(*world, negatives="hard")
    with pytest.raises(ArgumentError, match="`fit` must be another split"):
        scored_triples(*world, fit="test")
    both = graph.splits | {"test_negatives": graph.splits["test"]}
    with pytest.raises(ArgumentError, match="one label, got 'a s c' as positive and negative"):
        scored_triples(trained, KnowledgeGraph(graph.entities, graph.relations, both))
    empty = graph.splits | {"valid": np.empty((0, 3), np.int32)}
    with pytest.raises(ArgumentError, match="`fit` must have triples to classify, got 'valid'"):
        scored_triples(trained, KnowledgeGraph(graph.entities, graph.relations, empty))
    wrong = trained.params | {"entity": trained.params["entity"].at[2].set(np.nan)}
    with pytest.raises(ArgumentError, match="`trained` must give scores that are finite"):
        scored_triples(replace(trained, params=wrong), graph)
