"""Ranking tasks: what is refused, queries, repeated rows."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.metrics import Tasks, Ties, evaluate, metric, part_of, tasks, tasks_of


def test_tasks_holds_what_it_is_given():
    made = tasks(
        [1, 4], [2, 4], [9, 8], weight=[0.5, 0], query=[7, 3], popularity=[0, 5], relation_popularity=[1, 2]
    )
    assert made.optimistic.tolist() == [1, 4]
    assert made.pessimistic.tolist() == [2, 4]
    assert made.candidates.tolist() == [9, 8]
    assert made.weight.tolist() == [0.5, 0]
    assert made.query.tolist() == [1, 0]
    assert made.popularity.tolist() == [0, 5]
    assert made.relation_popularity.tolist() == [1, 2]
    assert made.num_queries == 2
    plain = tasks([1, 4, 4], candidates=9)
    assert plain.pessimistic is plain.optimistic
    assert plain.weight is plain.query is plain.popularity is None
    assert plain.num_queries == 3


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.uint8, np.uint16, np.int64, np.float32])
def test_small_integer_types_do_not_overflow(kind):
    top = 100 if kind in (np.int8, np.uint8) else 20_000
    made = tasks(np.array([top], kind), np.array([top + 2], kind), np.array([top + 20], kind))
    assert made.optimistic.dtype == made.candidates.dtype == np.int64
    names = ("mr", "median_rank", "macro-mr", "variance", "amri")
    found = evaluate(made, [metric(name) for name in names], level=None)
    for ties, rank in (("realistic", top + 1), ("exact", top + 1), ("optimistic", top)):
        for name in names[:3]:
            assert found[Ties(ties)][name].value == rank, (ties, name)
    np.testing.assert_allclose(found[Ties.EXACT]["amri"].value, 1 - 2 * top / (top + 19), rtol=1e-12)


def test_int64_arrays_are_not_copied():
    ranks = np.array([1, 2, 3])
    assert tasks(ranks, candidates=np.array([9, 9, 9])).optimistic is ranks


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("optimistic", {"optimistic": [0, 1]}),
        ("optimistic", {"optimistic": [1.5, 1]}),
        ("optimistic", {"optimistic": [float("nan"), 1]}),
        ("optimistic", {"optimistic": []}),
        ("optimistic", {"optimistic": 3}),
        ("optimistic", {"optimistic": [[1, 1]]}),
        ("optimistic", {"optimistic": ["1", "2"]}),
        ("optimistic", {"optimistic": None}),
        ("optimistic", {"optimistic": np.array([-3, 1])}),
        ("optimistic", {"optimistic": [True, False]}),
        ("optimistic", {"optimistic": [3, 3]}),
        ("pessimistic", {"pessimistic": [11, 2]}),
        ("pessimistic", {"pessimistic": [2, 2, 2]}),
        ("pessimistic", {"pessimistic": [2, 1.5]}),
        ("candidates", {"candidates": None}),
        ("candidates", {"candidates": [10, 0]}),
        ("candidates", {"candidates": [10, 10, 10]}),
        ("candidates", {"candidates": "ten"}),
        ("weight", {"weight": [-1, 1]}),
        ("weight", {"weight": [0, 0]}),
        ("weight", {"weight": [float("nan"), 1]}),
        ("weight", {"weight": [float("inf"), 1]}),
        ("weight", {"weight": [1]}),
        ("weight", {"weight": 2.0}),
        ("query", {"query": [0.5, 1]}),
        ("query", {"query": [0]}),
        ("popularity", {"popularity": [-1, 0]}),
        ("popularity", {"popularity": [1, 2, 3]}),
        ("relation_popularity", {"relation_popularity": [0.5, 1]}),
    ],
)
def test_bad_tasks(argument, change):
    good = {"optimistic": [1, 2], "pessimistic": [2, 2], "candidates": [10, 10]}
    tasks(**good)
    with pytest.raises(ValueError, match=f"`{argument}`"):
        tasks(**{**good, **change})


@given(st.lists(st.integers(-(2**50), 2**50), min_size=1, max_size=30))
def test_queries_are_numbered_without_gaps(codes):
    made = tasks(np.ones(len(codes), int), candidates=3, query=codes)
    query = made.query
    assert set(query.tolist()) == set(range(made.num_queries))
    for i in range(len(codes)):
        for j in range(i):
            assert (codes[i] == codes[j]) == (query[i] == query[j])


def test_part_of(full_table):
    made, _ = tasks_of(full_table)
    mask = made.optimistic <= 3
    for where in (mask, np.flatnonzero(mask)):
        part = part_of(made, where)
        for name in set(Tasks._fields) - {"ranking", "filtered"}:
            if name != "query":
                np.testing.assert_array_equal(getattr(part, name), getattr(made, name)[mask])
        assert part.num_queries == len(set(made.query[mask].tolist()))
    assert part_of(tasks([1, 2], candidates=4), slice(0, 1)).weight is None


def test_a_part_of_no_tasks_is_refused_by_evaluate(full_table):
    for made in (tasks([1, 2], candidates=4), tasks_of(full_table)[0]):
        part = part_of(made, np.zeros(len(made.optimistic), bool))
        with pytest.raises(ValueError, match="`tasks` must be at least one, got none"):
            evaluate(part, [metric("mrr")])


# --- tasks_of


def _row(**changes):
    row = {"head": "a", "relation": "r", "tail": "b", "side": "tail"}
    return row | {"optimistic": 1, "pessimistic": 2, "candidates": 9} | changes


def _queries(*changes):
    return tasks_of(pl.DataFrame([_row(**change) for change in changes]))[0].query.tolist()


def test_queries_of_a_table():
    assert _queries({}, {"tail": "c"}) == [0, 0]
    for other in ({"head": "c"}, {"relation": "s"}, {"side": "head"}):
        first, second = _queries({}, other | {"optimistic": 2})
        assert first != second, other
    # The known entity of a head query is the tail.
    assert len(set(_queries({"side": "head"}, {"side": "head", "head": "c"}))) == 1
    assert len(set(_queries({"side": "head"}, {"side": "head", "tail": "c"}))) == 2
    assert len(set(_queries({"head": 5, "tail": 6}, {"head": 5, "tail": 2**40}))) == 1


@pytest.mark.parametrize("name", ["model", "seed"])
def test_models_and_seeds_share_queries_but_not_lists(name):
    values = ("m", "n") if name == "model" else (-1, 2)
    rows = [_row(tail=tail, **{name: value}) for tail in "bc" for value in values]
    made = tasks_of(pl.DataFrame(rows))[0]
    assert made.query.tolist() == [0] * 4
    assert len(set(made.ranking.tolist())) == 2
    assert made.ranking[0] == made.ranking[2] != made.ranking[1]
    assert tasks_of(pl.DataFrame([_row()]))[0].ranking is None


def test_more_seeds_are_no_more_queries(full_table):
    """The same ranks under five seeds say as much as under one, but to chance."""
    seeds = [full_table.with_columns(seed=pl.lit(seed)) for seed in range(5)]
    names = [metric(name) for name in ("mrr", "amri", "gmr", "median_rank", "macro-mrr", "macro-map@3")]
    once, often = (evaluate(tasks_of(table)[0], names) for table in (full_table, pl.concat(seeds)))
    for rule, by_name in once.items():
        for name, one in by_name.items():
            for key in ("value", "standard_error", "ci_low", "ci_high"):
                assert getattr(often[rule][name], key) == pytest.approx(getattr(one, key), rel=1e-9), (
                    rule,
                    name,
                )


def test_the_same_label_on_both_sides_is_the_same_entity():
    table = pl.DataFrame([_row(head="x", tail="y"), _row(head="y", tail="x", side="head")])
    query = tasks_of(table)[0].query
    assert query[0] != query[1]  # sides differ, the known entity does not


def test_repeated_rows_are_one_task():
    rows = [_row(), _row(tail="c"), _row(), _row()]
    made, table = tasks_of(pl.DataFrame(rows))
    assert table["tail"].to_list() == ["b", "c"]
    assert made.weight.tolist() == table["weight"].to_list() == [3.0, 1.0]
    assert made.query.tolist() == [0, 0]
    weighted = pl.DataFrame([row | {"weight": i + 0.5} for i, row in enumerate(rows)])
    assert tasks_of(weighted)[0].weight.tolist() == [0.5 + 2.5 + 3.5, 1.5]


@pytest.mark.parametrize("change", [{"optimistic": 2}, {"pessimistic": 3}, {"candidates": 10}])
def test_two_ranks_of_one_task_are_refused(change):
    rows = [_row(), _row(tail="c"), _row(**change)]
    with pytest.raises(ValueError, match="rows 1 and 3 rank the same task differently"):
        tasks_of(pl.DataFrame(rows))
    # Unless of two seeds.
    made, table = tasks_of(pl.DataFrame([row | {"seed": i} for i, row in enumerate(rows)]))
    assert len(table) == 3
    assert made.query.tolist() == [0, 0, 0]


def test_two_scores_of_one_task_are_refused():
    rows = [_row(score=0.5), _row(tail="c", score=0.1), _row(score=0.5)]
    assert tasks_of(pl.DataFrame(rows))[1].select("score", "weight").rows() == [(0.5, 2.0), (0.1, 1.0)]
    rows[2]["score"] = 0.6
    with pytest.raises(ValueError, match="rows 1 and 3 rank the same task differently"):
        tasks_of(pl.DataFrame(rows))


def test_a_table_without_repetition_is_kept_as_it_is(full_table):
    made, table = tasks_of(full_table)
    assert table.equals(full_table)
    for name in set(Tasks._fields) - {"query", "ranking", "filtered"}:
        np.testing.assert_array_equal(getattr(made, name), full_table[name].to_numpy())


def test_ranks_that_count_other_answers_have_no_macro_metric(full_table):
    names = [metric("mrr"), metric("macro-mrr")]
    for filtered, expected in ((True, {"mrr", "macro-mrr"}), (False, {"mrr"})):
        found = evaluate(tasks_of(full_table.with_columns(filtered=pl.lit(filtered)))[0], names)
        assert all(set(by_name) == expected for by_name in found.values())


@pytest.mark.parametrize("table", [None, {}, [1], "ranks.csv", pl.DataFrame({"head": ["a"]})])
def test_what_is_no_rank_table(table):
    with pytest.raises(ValueError, match="table"):
        tasks_of(table)
