"""Chance levels of a benchmark, and published values adjusted by them."""

import itertools

import numpy as np
import pytest

import owkg
from owkg import metrics
from owkg.kg import KnowledgeGraph
from owkg.ranks.build import perfect_ranks

FACTS = np.array([[0, 0, 1], [0, 0, 2], [3, 0, 1], [1, 1, 0]], np.int32)
GRAPH = KnowledgeGraph(tuple("abcde"), ("r", "s"), {"train": FACTS[:1], "test": FACTS[1:]})
# Candidates by hand: 5 less the other answers that train and test know.
CANDIDATES = {"head": [5, 4, 5], "tail": [4, 5, 5]}


def test_candidates_by_hand_and_raw():
    table = perfect_ranks(GRAPH).frame
    for side, counts in CANDIDATES.items():
        assert table.filter(side=side)["candidates"].to_list() == counts
    assert set(table["optimistic"]) == {1}
    assert set(perfect_ranks(GRAPH, filter=[]).frame["candidates"]) == {5}


@pytest.mark.parametrize("name", ["mrr", "mr", "hits@2", "gmr"])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_mean_and_variance_by_enumeration(name, side):
    found = metrics.chance_levels(GRAPH, name).filter(side=side).row(0, named=True)
    ranks = np.array(list(itertools.product(*(range(1, n + 1) for n in CANDIDATES[side]))))
    values = {
        "mrr": (1 / ranks).mean(axis=1),
        "mr": ranks.mean(axis=1),
        "hits@2": (ranks <= 2).mean(axis=1),
        "gmr": np.exp(np.log(ranks).mean(axis=1)),
    }[name]
    assert (found["expectation"], found["variance"]) == pytest.approx(
        (values.mean(), values.var()), rel=1e-12
    )
    assert found["tasks"] == 3


def test_published_values_are_adjusted_as_the_ranks_would_be(owkg_data):
    graph = owkg.read_graph(owkg_data / "nations", duplicates="keep")
    rng = np.random.default_rng(0)
    table = perfect_ranks(graph).frame
    ranks = rng.integers(1, table["candidates"].to_numpy() + 1)
    table = table.with_columns(optimistic=ranks, pessimistic=ranks)
    names = ["mrr", "mr", "hits@3", "amrr", "zmrr", "amr", "amri", "zmr", "ahits@3", "zhits@3"]
    for side in ("head", "tail", "both"):
        rows = owkg.evaluate(table, names, side=side, ci=None).select("metric", "value").rows()
        values = dict(rows)
        published = {name: values[name] for name in ("mrr", "mr", "hits@3")}
        found = metrics.adjusted_values(graph, published, side=side)
        assert set(found["metric"]) == set(names) - set(published)
        for row in found.iter_rows(named=True):
            assert row["value"] == pytest.approx(values[row["metric"]], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "valid"}, "`split` must be one of train, test, got 'valid'"),
        ({"filter": ["dev"]}, "`filter_splits` must be among"),
        ({"metrics": "mmr"}, "mmr"),
    ],
)
def test_bad_arguments_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        metrics.chance_levels(GRAPH, **options)


@pytest.mark.parametrize(
    ("published", "options", "message"),
    [
        ({"amri": 0.5}, {}, "amri cannot be adjusted"),
        ({"macro-mrr": 0.5}, {}, "must be a mean over ranking tasks"),
        ({"mrr": float("nan")}, {}, "`value` must be finite"),
        ({"hits@10": 85.0}, {}, r"`published` must be in \[.*, 1\] for hits@10, got 85.0; percentages are"),
        ({"mr": 0.5}, {}, r"`published` must be in \[1, .*\] for mr, got 0.5"),
        ({"mrr": 0.5}, {"side": "left"}, "`side` must be head, tail or both"),
    ],
)
def test_what_cannot_be_adjusted_is_refused(published, options, message):
    with pytest.raises(ValueError, match=message):
        metrics.adjusted_values(GRAPH, published, **options)
