"""Judgements: in files, from graphs, merged, made binary."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.ir import POOLED
from owkg.ir.trec import read_qrels
from owkg.judge.qrels import binary, judged_for, merged, qrels_from_graph, read_judgements, write_judgements
from owkg.judge.schema import QRELS
from owkg.kg import KnowledgeGraph

GRAPH = KnowledgeGraph(
    ("a", "b", "c"),
    ("r",),
    {
        "train": np.array([[0, 0, 1]], np.int32),
        "test": np.array([[0, 0, 2], [0, 0, 1], [0, 0, 2]], np.int32),
        "test_negatives": np.array([[1, 0, 1]], np.int32),
    },
)


def qrels(relevances, query="a|r|?"):
    """Judgements of one query, from {answer: relevance}."""
    asked = {"query": query, "side": "tail", "entity": query[0], "relation": "r"}
    return pl.DataFrame([asked | {"answer": a, "relevance": g} for a, g in relevances.items()])


relevances_of = st.dictionaries(st.sampled_from("abcdef"), st.integers(-1, 2), min_size=1)


@given(relevances=relevances_of, spaced=st.booleans())
def test_what_is_written_is_read_again(tmp_path_factory, relevances, spaced):
    frame = qrels({(f"{name} {name}" if spaced else name): g for name, g in relevances.items()})
    path = tmp_path_factory.mktemp("qrels") / "judged.qrels.gz"
    write_judgements(frame, path)
    assert read_judgements(path).equals(frame.select(QRELS))
    assert read_qrels(path)["relevance"].to_list() == list(relevances.values())


def test_lines_are_those_of_trec(tmp_path):
    write_judgements(qrels({"b": 1, "c": -1}), tmp_path / "q")
    assert (tmp_path / "q").read_text() == "a|r|? 0 b 1\na|r|? 0 c -1\n"


def test_all_relevances_below_0_are_pooled_and_not_judged(tmp_path):
    """As trec_eval takes TREC's -2 for spam."""
    (tmp_path / "q").write_text("a|r|? 0 b 1\na|r|? 0 c -2\na|r|? 0 d -1\n")
    assert read_judgements(tmp_path / "q")["relevance"].to_list() == [1, -1, -1]


def test_facts_are_relevant_answers():
    found = qrels_from_graph(GRAPH, ["train", "test"], sides=["tail"])
    assert found.columns == list(QRELS)
    assert found.select("query", "answer", "relevance").rows() == [("a|r|?", "b", 1), ("a|r|?", "c", 1)]
    both = qrels_from_graph(GRAPH, "test")
    assert len(both) == 4
    assert set(both["query"]) == {"a|r|?", "?|r|b", "?|r|c"}


@pytest.mark.parametrize(
    ("splits", "sides", "shown"),
    [
        ("valid", ("tail",), "'valid'"),
        ("test_negatives", ("tail",), "'test_negatives'"),
        ([], ("tail",), "`splits`"),
        ("test", ("left",), "`sides`"),
        ("test", (), "`sides`"),
    ],
)
def test_bad_facts(splits, sides, shown):
    with pytest.raises(ValueError, match=shown):
        qrels_from_graph(GRAPH, splits, sides=sides)


@given(first=relevances_of, second=relevances_of)
def test_merging_against_dictionaries(first, second):
    """Judged beats not judged; two different judgements are refused."""
    torn = [
        name
        for name in first
        if POOLED not in (first[name], second.get(name, POOLED)) and first[name] != second[name]
    ]
    if torn:
        with pytest.raises(ValueError, match=f"{len(torn)} answers have two relevances, such as '{torn[0]}'"):
            merged(qrels(first), qrels(second))
        return
    found = merged(qrels(first), qrels(second))
    names = [*first, *(name for name in second if name not in first)]
    expected = {name: max(first.get(name, -1), second.get(name, -1)) for name in names}
    assert dict(found.select("answer", "relevance").rows()) == expected
    assert found["answer"].to_list() == names
    assert merged(found, found).equals(found)


def test_binary_relevances():
    frame = qrels({"a": -1, "b": 0, "c": 1, "d": 2, "e": 3})
    assert binary(frame)["relevance"].to_list() == [-1, 0, 1, 1, 1]
    assert binary(frame, level=2)["relevance"].to_list() == [-1, 0, 0, 1, 1]
    with pytest.raises(ValueError, match="`level`"):
        binary(frame, level=0)


def test_judgements_of_queries_that_nobody_asked():
    frame = pl.concat([qrels({"a": 1}), qrels({"b": 1, "c": 0}, "b|r|?"), qrels({"b": 1}, "c|r|?")])
    asked = pl.DataFrame({"query": ["a|r|?", "a|r|?"]})
    with pytest.raises(ValueError, match=r"2 are not, such as 'b\|r\|\?'"):
        judged_for(frame, asked)
    found, dropped = judged_for(frame, asked, intersect=True)
    assert (dropped, found["answer"].to_list()) == (2, ["a"])
    assert judged_for(found, asked)[1] == 0
    with pytest.raises(ValueError, match="some query that is asked"):
        judged_for(frame, pl.DataFrame({"query": ["d|r|?"]}), intersect=True)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (pl.lit(0.5).alias("relevance"), "whole number, got Float64"),
        (pl.lit(-2).alias("relevance"), "at least -1, got -2"),
        (pl.lit("b").alias("answer"), "'b' to 'a.r.. twice|twice"),
        (pl.lit(None, pl.Int64).alias("relevance"), "relevance in every row"),
    ],
)
def test_malformed_judgements(change, shown):
    with pytest.raises(ValueError, match=shown):
        binary(qrels({"a": 1, "b": 0}).with_columns(change))
