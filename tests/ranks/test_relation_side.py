"""Relation prediction, (head, ?, tail): ranks among relations, their table, their metrics."""

import numpy as np
import polars as pl
import pytest

import owkg
from owkg import judge
from owkg.kg import KnowledgeGraph
from owkg.metrics import tasks_of
from owkg.ranks import RankTable, annotated, other_candidates, rank_table, read_ranks, validated, write_ranks

ROW = {"head": "a", "relation": "r", "tail": "b", "optimistic": 1, "pessimistic": 1, "candidates": 9}


@pytest.fixture(scope="module", params=[(6, 9), (9, 4)], ids=["more relations", "more entities"])
def graph(request):
    entities, relations = request.param
    rng = np.random.default_rng(3)
    facts = np.unique(rng.integers(0, (entities, relations, entities), (140, 3)), axis=0).astype(np.int32)
    facts = rng.permutation(facts)
    splits = {"train": facts[:70], "valid": facts[70:80], "test": facts[80:]}
    names = [f"e{i}" for i in range(entities)], [f"r{i}" for i in range(relations)]
    return KnowledgeGraph(tuple(names[0]), tuple(names[1]), splits)


@pytest.fixture(scope="module")
def scores(graph):
    # Few values, so that some tie.
    shape = (len(graph.splits["test"]), graph.num_relations)
    return np.random.default_rng(4).integers(0, 5, shape).astype(float)


@pytest.mark.parametrize("filters", [None, []], ids=["filtered", "raw"])
def test_ranks_are_those_by_hand(graph, scores, filters):
    table = owkg.rank(scores, graph, side="relation", filter=filters).frame
    facts = {tuple(fact) for split in graph.splits.values() for fact in split.tolist()}
    for row, score, (h, r, t) in zip(
        table.iter_rows(named=True), scores, graph.splits["test"].tolist(), strict=True
    ):
        others = [
            i
            for i in range(graph.num_relations)
            if i != r and (filters is not None or (h, i, t) not in facts)
        ]
        above, level = (sum(f(score[i], score[r]) for i in others) for f in (np.greater, np.equal))
        assert row["candidates"] == len(others) + 1
        assert (row["optimistic"], row["pessimistic"]) == (1 + above, 1 + above + level)
        assert (row["head"], row["relation"], row["tail"]) == (f"e{h}", f"r{r}", f"e{t}")
    assert table["side"].unique().to_list() == ["relation"]
    assert table["filtered"].all() == (filters is None)
    trained = pl.Series(graph.splits["train"][:, 1]).value_counts()
    counts = dict(trained.iter_rows())
    for column in ("popularity", "relation_popularity"):
        assert table[column].to_list() == [counts.get(r, 0) for r in graph.splits["test"][:, 1].tolist()]


def test_queries_are_pairs_of_entities(graph, scores):
    table = owkg.rank(scores, graph, side="relation")
    tasks, rows = tasks_of(table)
    asked = rows.select("head", "tail").with_columns(query=pl.Series(tasks.query))
    assert asked.n_unique() == asked["query"].n_unique() == asked.select("head", "tail").n_unique()
    assert asked["query"].n_unique() < len(asked)


def test_metrics_are_of_the_side(graph, scores, tmp_path):
    table = owkg.rank(scores, graph, side="relation")
    found = owkg.evaluate(table, ["mrr", "amri", "macro-mrr", "probe@1,1"])
    assert found["side"].unique().to_list() == ["relation"]
    rank = (table.frame["optimistic"] + table.frame["pessimistic"]) / 2
    assert found.filter(metric="mrr")["value"].item() == pytest.approx((1 / rank).mean(), rel=1e-12)
    assert found["queries"].unique().to_list() == [table.frame.select("head", "tail").n_unique()]
    # A constant scorer is at its chance level.
    nothing = owkg.rank(0 * scores, graph, side="relation")
    amri = owkg.evaluate(nothing, "amri", side="relation", ties="exact")["value"].item()
    assert amri == pytest.approx(0, abs=1e-12)
    table.write(tmp_path / "ranks.parquet")
    again = read_ranks(tmp_path / "ranks.parquet")
    assert owkg.evaluate(again, "mrr", by="side")["side"].to_list() == ["relation"]


def test_both_sides_are_those_of_entities(graph, scores):
    entity = np.random.default_rng(5).normal(size=(len(scores), graph.num_entities))
    alone = owkg.rank({"head": entity, "tail": entity}, graph)
    table = owkg.rank({"head": entity, "tail": entity, "relation": scores}, graph)
    found = owkg.evaluate(table, "mrr", by="side")
    assert found["side"].to_list() == ["head", "tail", "relation"]
    both = owkg.evaluate(table, "mrr").drop("side")
    assert both.equals(owkg.evaluate(alone, "mrr").drop("side"))
    assert owkg.evaluate(table, "mrr", side="relation")["tasks"].item() == len(scores)
    # The ids of the other queries stay apart from those of relations.
    assert tasks_of(table)[0].num_queries == (
        tasks_of(alone)[0].num_queries + table.frame.filter(side="relation").select("head", "tail").n_unique()
    )


def test_columns_and_candidates_of_a_graph(graph, scores):
    table = owkg.rank(scores, graph, side="relation").frame
    columns = ["popularity", "relation_popularity", "category"]
    again = annotated(table.drop(columns), graph)
    assert again.select(columns).equals(table.select(columns))
    assert other_candidates(table, graph) == 0
    raw = owkg.rank(scores, graph, side="relation", filter=[])
    assert other_candidates(raw, graph, filter_splits=[]) == 0
    assert other_candidates(raw, graph) > 0


def test_files_keep_the_side(tmp_path):
    table = RankTable(pl.DataFrame([ROW | {"side": "relation"}]))
    write_ranks(table, tmp_path / "ranks.csv")
    assert read_ranks(tmp_path / "ranks.csv").frame["side"].item() == "relation"


def test_what_cannot_be_is_refused(graph, scores):
    with pytest.raises(ValueError, match='row 1: side must be "head", "tail" or "relation", got \'both\''):
        validated(pl.DataFrame([ROW | {"side": "both"}]))
    square = np.zeros((len(scores), graph.num_entities))
    with pytest.raises(ValueError, match=r"`scores` must be of shape \[triples, relations\]"):
        owkg.rank(square, graph, side="relation")
    with pytest.raises(ValueError, match=r"`scores` must be of shape \[triples, entities\]"):
        owkg.rank(scores, graph, side="tail")
    mixed = ["relation"] + ["tail"] * (len(scores) - 1)
    with pytest.raises(ValueError, match='must be "head" or "tail", got \'relation\''):
        rank_table(graph, square, graph.splits["test"], mixed)


def test_comparisons_under_qrels_refuse_it():
    table = pl.DataFrame([ROW | {"side": "relation"}, ROW | {"side": "relation", "relation": "s"}])
    fact = {"side": "tail", "entity": "a", "relation": "r", "answer": "b", "relevance": 1}
    message = 'side must be "head" or "tail" here, got "relation"'
    with pytest.raises(ValueError, match=message):
        judge.relabelled(table, pl.DataFrame([fact]))
    with pytest.raises(ValueError, match=f"one: {message}"):
        owkg.compare({"one": table, "two": table})
