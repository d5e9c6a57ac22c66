"""The queries of a benchmark: what is read, and what is asked."""

import re

import jax
import numpy as np
import pytest

from owkg.evaluation import ranks, read_queries
from owkg.kg import KnowledgeGraph
from owkg.models import Trained, model

TEST = np.array([[0, 0, 1], [0, 0, 2], [0, 1, 2], [1, 0, 2], [3, 0, 1]], np.int32)
TRAIN = np.array([[0, 0, 3], [2, 0, 1]], np.int32)
GRAPH = KnowledgeGraph(("a", 'b"', "c", "d"), ("r", "s"), {"train": TRAIN, "test_sparse": TEST})
MODEL = model("distmult", dim=3, reciprocal=False)
TRAINED = Trained(MODEL, *MODEL.init(jax.random.key(0), 4, 2))
HEADER = "query\tside\tentity\trelation\tfull\n"


@pytest.fixture
def saved(tmp_path):
    def save(text):
        (tmp_path / "queries.tsv").write_text(text)
        return tmp_path / "queries.tsv"

    return save


def test_only_the_queries_are_asked(saved):
    text = (
        f'{HEADER}a|r|?\ttail\ta\tr\t9\n?|r|b"\thead\tb"\tr\t9\nd|s|?\ttail\td\ts\t9\na|r|?\ttail\ta\tr\t9\n'
    )
    queries = read_queries(saved(text), GRAPH)
    assert queries.rows() == [("tail", "a", "r"), ("head", 'b"', "r"), ("tail", "d", "s")]
    every = ranks(TRAINED, GRAPH, split="test_sparse")
    found = ranks(TRAINED, GRAPH, split="test_sparse", queries=queries)
    rows = [
        ("head", "a", "r", 'b"'),
        ("head", "d", "r", 'b"'),
        ("tail", "a", "r", 'b"'),
        ("tail", "a", "r", "c"),
    ]
    assert found.select("side", "head", "relation", "tail").rows() == rows
    assert found.equals(every.join(found, on=["side", "head", "relation", "tail"], how="semi"))
    assert found["filtered"].all()
    tails = ranks(TRAINED, GRAPH, split="test_sparse", queries=queries, sides=["tail"])
    assert set(tails["side"]) == {"tail"}


def test_progress_counts_what_is_asked(saved):
    queries = read_queries(saved(f"{HEADER}\ttail\ta\tr\t9\n"), GRAPH)
    seen = []
    ranks(TRAINED, GRAPH, split="test_sparse", queries=queries, on_progress=lambda *at: seen.append(at))
    assert seen == [(2, 2)]


def test_queries_that_nothing_answers(saved):
    queries = read_queries(saved(f"{HEADER}\ttail\td\ts\t9\n"), GRAPH)
    with pytest.raises(
        ValueError, match="`queries` must ask for tail of a triple of test_sparse, got no such query"
    ):
        ranks(TRAINED, GRAPH, split="test_sparse", queries=queries, sides=["tail"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\tb\n", "line 1: must name the column side once, as queries.tsv of a benchmark does, got 'a, b'"),
        ("side\tentity\trelation\tside\ntail\ta\tr\ttail\n", "line 1: must name the column side once"),
        (HEADER, "line 1: must be followed by queries, got none"),
        (f"{HEADER}x\ttail\ta\tr\n", "line 2: must be 5 columns, as the first line names, got 4 columns"),
        (f"{HEADER}x\ttail\ta\tr\t9\nx\tup\ta\tr\t9\n", "line 3: the side must be head or tail, got 'up'"),
        (f"{HEADER}x\ttail\te\tr\t9\n", "line 2: the entity must be one of the graph, got 'e'"),
        (f"{HEADER}x\ttail\ta\tq\t9\n", "line 2: the relation must be one of the graph, got 'q'"),
        ("", "line 1: must hold something"),
    ],
)
def test_bad_files_are_named(saved, text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        read_queries(saved(text), GRAPH)
