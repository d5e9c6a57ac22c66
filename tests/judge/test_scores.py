"""Scores of systems on queries: their means are what `owkg.metrics.evaluate` says."""

import jax
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import owkg
from owkg.judge.scores import intersected, scores
from owkg.judge.significance import pairwise
from owkg.judge.stability import stability, stability_by_triple
from owkg.metrics import Ties, evaluate, metric, tasks_of

NAMES = ("mrr", "hits@3", "mr", "amri", "adjusted_hits@3", "macro-mrr", "macro-map@20", "probe@0.5")
SUMMARIES = [metric(name) for name in NAMES]


def table(seed, *, queries=8, answers=3, candidates=40):
    rng = np.random.default_rng(seed)
    count = queries * answers
    low = rng.integers(1, candidates - 4, count)
    return pl.DataFrame(
        {
            "head": np.repeat([f"h{i}" for i in range(queries)], answers),
            "relation": np.repeat([f"r{i % 2}" for i in range(queries)], answers),
            "tail": [f"t{i % answers}" for i in range(count)],
            "side": ["tail"] * count,
            "optimistic": low,
            "pessimistic": low + rng.integers(0, 4, count),
            "candidates": [candidates] * count,
        }
    )


@given(seed=st.integers(0, 2**32 - 4), rule=st.sampled_from(sorted(Ties)))
def test_means_are_those_of_evaluate(seed, rule):
    tables = {name: table(seed + i) for i, name in enumerate("abc")}
    # The order of rows does not matter.
    tables["b"] = tables["b"].sample(fraction=1, shuffle=True, seed=1)
    found, left_out = scores(tables, SUMMARIES, ties=rule)
    assert left_out == 0
    assert (found.systems, found.metrics) == (("a", "b", "c"), tuple(s.name for s in SUMMARIES))
    for column, of in enumerate(tables.values()):
        expected = evaluate(tasks_of(of)[0], SUMMARIES, ties=rule)[Ties(rule)]
        np.testing.assert_allclose(found.mean[:, column], [expected[s.name].value for s in SUMMARIES])
    turned = [name for name, larger in zip(found.metrics, found.larger_is_better, strict=True) if not larger]
    assert turned == ["mr"]
    np.testing.assert_array_equal(found.strength[2], -found.mean[2])


@pytest.mark.parametrize("names", [["mrr"], ["macro-mrr"]])
@pytest.mark.parametrize("by_triple", [False, True])
def test_weights_are_those_of_every_system(names, by_triple):
    """A column weight in one table only: the others weigh 1, so other weights are an error, everywhere."""
    a, b = table(0), table(1)
    chosen = [metric(name) for name in names]

    def read(first, second):
        if by_triple:
            return stability_by_triple(
                7, {"a": first, "b": second}, chosen, sizes=[0.5], draws=5
            ).tau.tolist()
        found, _ = scores({"a": first, "b": second}, chosen)
        return found.value.tolist(), found.weight.tolist()

    own = pl.Series("weight", np.where(np.arange(len(a)) % 4 == 3, 9.0, 0.25))
    ones = pl.Series("weight", np.ones(len(a)))
    assert read(a.with_columns(ones), b) == read(a, b.with_columns(ones)) == read(a, b)
    read(a.with_columns(own), b.with_columns(own))
    for first, second in ((a.with_columns(own), b), (a, b.with_columns(own))):
        with pytest.raises(
            ValueError, match=r"must have the same weights .*: the weights of 24 answers differ, such as"
        ):
            read(first, second)


def test_a_table_that_does_not_say_whether_it_is_filtered_is():
    a, b = table(0), table(1)
    chosen = [metric("macro-map@20")]
    found = scores({"a": a.with_columns(filtered=True), "b": b}, chosen)[0]
    np.testing.assert_array_equal(found.value, scores({"a": a, "b": b}, chosen)[0].value)
    with pytest.raises(ValueError, match="or other answers are not filtered"):
        scores({"a": a.with_columns(filtered=False), "b": b}, chosen)


def test_what_each_query_reads():
    of = table(0)
    found, _ = scores({"a": of}, [metric("mrr"), metric("macro-mrr")], ties="optimistic")
    for i, row in enumerate(found.queries.iter_rows(named=True)):
        ranks = of.filter(head=row["entity"], relation=row["relation"])["optimistic"].to_numpy()
        assert row["side"] == "tail"
        np.testing.assert_allclose(found.value[:, 0, i], [(1 / ranks).sum(), 1 / ranks.min()])
        np.testing.assert_array_equal(found.weight[:, i], [len(ranks), 1])


def test_queries_that_a_system_lacks_are_counted():
    tables = {"a": table(0), "b": table(1).filter(pl.col("head") != "h3")}
    with pytest.raises(ValueError, match=r"1 of 8 are missing in some system, such as h3\|r1\|\? in b"):
        scores(tables, SUMMARIES)
    found, left_out = scores(tables, SUMMARIES, intersect=True)
    assert (left_out, len(found.queries)) == (1, 7)
    assert "h3" not in found.queries["entity"]
    expected, _ = scores({k: v.filter(pl.col("head") != "h3") for k, v in tables.items()}, SUMMARIES)
    np.testing.assert_array_equal(found.value, expected.value)


def test_columns_that_only_some_tables_have():
    tables = {"a": table(0).with_columns(model=pl.lit("x"), seed=3), "b": table(1).with_columns(seed=4)}
    assert scores(tables, SUMMARIES)[0].systems == ("a", "b")


def test_ids_for_labels():
    ids = {"head": pl.Int64, "tail": pl.Int64, "relation": pl.Int64}
    of = {
        name: table(seed).with_columns(pl.col(column).str.slice(1).cast(kind) for column, kind in ids.items())
        for seed, name in enumerate("ab")
    }
    plain = scores({"a": table(0), "b": table(1)}, SUMMARIES)[0]
    np.testing.assert_array_equal(scores(of, SUMMARIES)[0].mean, plain.mean)


@pytest.mark.parametrize(
    ("tables", "metrics", "message"),
    [
        ({}, SUMMARIES, "`tables` must hold a rank table for each system"),
        ({"a": table(0)}, [], "`metrics` must name at least one metric"),
        ({"a": table(0)}, ["mrr"], "`metrics` must be metrics from owkg.metrics.metric, got 'mrr'"),
        ({"a": table(0)}, [metric("zmrr")], "`metrics` must be means"),
        ({"a": table(0)}, [metric("median-rank")], "`metrics` must be means"),
        ({"a": table(0)}, [metric("gmr")], "`metrics` must be means"),
        ({"a": table(0)}, [metric("mrr")] * 2, "`metrics` must be different"),
        ({"a": table(0), "b": table(0, queries=2).with_columns(relation=pl.lit("s"))}, SUMMARIES, "no query"),
        (
            {"a": table(0), "b": table(0)[1:]},
            SUMMARIES,
            r"1 are not in all, such as 't0' to h0\|r0\|\?, in 1 of 2",
        ),
        ({"a": table(0), "b": table(0, candidates=50)}, [metric("amri")], "the same candidates"),
        (
            {"a": table(0).with_columns(filtered=False)},
            [metric("macro-mrr")],
            "`metrics` must not include macro-mrr, because the answers of a query do not form one list",
        ),
    ],
)
def test_refused(tables, metrics, message):
    with pytest.raises(ValueError, match=message):
        scores(tables, metrics)


def test_an_unknown_tie_rule():
    with pytest.raises(ValueError, match="`ties` must be one of"):
        scores({"a": table(0)}, SUMMARIES, ties="best")


def test_places_are_shared_by_systems_that_read_the_same():
    tables = {"a": table(0), "b": table(0).sample(fraction=1, shuffle=True, seed=2), "c": table(1)}
    found, _ = scores(tables, [metric("mrr"), metric("mr")])
    better = found.mean[0, 2] > found.mean[0, 0]
    assert found.places[0].tolist() == ([2, 2, 1] if better else [1, 1, 3])
    lower = found.mean[1, 2] < found.mean[1, 0]
    assert found.places[1].tolist() == ([2, 2, 1] if lower else [1, 1, 3])


def test_answers_that_a_system_lacks_are_left_out_too():
    whole = {"a": table(0), "b": table(1)}
    found, left_out = scores({"a": whole["a"], "b": whole["b"][1:]}, SUMMARIES, intersect=True)
    expected, _ = scores({name: of[1:] for name, of in whole.items()}, SUMMARIES)
    assert left_out == 0
    np.testing.assert_array_equal(found.value, expected.value)
    cut, left = intersected({"a": whole["a"][:-2], "b": whole["b"][1:]})
    assert {name: len(of) for name, of in cut.items()} == dict.fromkeys("ab", len(whole["a"]) - 3)
    assert left.select("answers", "of_answers").rows() == [
        (len(whole["a"]) - 3, len(whole["a"]) - 2),
        (len(whole["a"]) - 3, len(whole["a"]) - 1),
    ]


def test_the_order_of_rows_changes_nothing_that_is_drawn():
    tables = {name: table(seed) for seed, name in enumerate("abc")}
    mixed = {name: of.sample(fraction=1, shuffle=True, seed=3) for name, of in tables.items()}
    chosen = [metric("mrr"), metric("macro-mrr")]
    one, two = (scores(of, chosen)[0] for of in (tables, mixed))
    assert one.queries.equals(two.queries)
    for name in one.metrics:
        p = [pairwise(of, name, test="randomisation", key=0, draws=99).p for of in (one, two)]
        np.testing.assert_array_equal(*p)
    drawn = [stability(jax.random.key(0), of, [0.3, 0.6], 20).tau for of in (one, two)]
    np.testing.assert_array_equal(*drawn)


def test_bounds_of_ranks_are_no_ties_of_the_default_rule(tmp_path):
    """A list left out 2 of 4 answers: Hits@1 lies between two ends; Hits@10 of ranks beyond 10 does not."""
    row = {"relation": "r", "tail": "t", "side": "tail", "candidates": 99}
    ranks = [(1, 1, False), (2, 2, False), (1, 99, True), (1, 99, True)]
    rows = [
        row | {"head": f"h{i}", "optimistic": a, "pessimistic": b, "bounded": c}
        for i, (a, b, c) in enumerate(ranks)
    ]
    part, full = pl.DataFrame(rows), pl.DataFrame(rows).drop("bounded")
    part.write_csv(tmp_path / "part.csv")
    full.with_columns(pessimistic="optimistic").write_csv(tmp_path / "full.csv")
    files = [tmp_path / "part.csv", tmp_path / "full.csv"]
    told = r"2 of 4 ranks of 'part' \(.*part.csv\) are bounds, between which its hits@1 is 0.2500 to 0.7500"
    for of in (files, {"part": part, "full": full}):
        with pytest.raises(ValueError, match=told if of is files else r"hits@1 is 0\.2500 to"):
            owkg.compare(of, "hits@1")
    with pytest.raises(ValueError, match=r"hits@1 is 0\.2500 to 0\.7500"):
        owkg.audit(files, "hits@1")
    with pytest.warns(UserWarning, match="the tie rule pessimistic selects"):
        assert owkg.compare(files, "hits@1", ties="pessimistic").values["value"].to_list() == [0.25, 0.75]
    with pytest.warns(UserWarning, match="ranks: 2 of 4 ranks are bounds"):
        ends = owkg.evaluate(part, "hits@1", ties=["pessimistic", "optimistic"], ci=None)
    assert ends["value"].to_list() == [0.25, 0.75]
    beyond = part.with_columns(optimistic=pl.when("bounded").then(11).otherwise("optimistic"))
    assert owkg.compare({"part": beyond, "full": full}, "hits@10").pairs["p_value"].is_not_null().all()
    folder = tmp_path / "folder"
    folder.mkdir()
    part.with_columns(model=pl.lit("part")).write_parquet(folder / "a.parquet")
    full.with_columns(model=pl.lit("full"), bounded=pl.lit(False)).write_parquet(folder / "b.parquet")
    with pytest.raises(ValueError, match=r"`ties` must state the rank of answers .*folder\) are bounds"):
        owkg.compare([folder], "hits@1")
    with pytest.warns(UserWarning, match="the tie rule pessimistic"):
        owkg.compare([folder], "hits@1", ties="pessimistic")
    with pytest.warns(UserWarning, match="2 of 8 ranks are bounds"):
        owkg.evaluate(folder, "hits@1")


@pytest.mark.parametrize("harder", [False, True])
def test_heavy_queries_that_score_differently_are_noted_once_for_all_systems(harder):
    """Of 400 queries, ten have 10 answers: together a fifth of the weight."""
    sizes = np.repeat([10, 1], [10, 390])
    query = np.repeat(np.arange(400), sizes)
    place = np.arange(len(query)) % 4
    ranks = np.where((sizes[query] > 1) & harder, 50, place + 1)
    frame = pl.DataFrame(
        {
            "head": [f"h{q}" for q in query],
            "relation": "r",
            "tail": [f"t{i}" for i in range(len(query))],
            "side": "tail",
            "optimistic": ranks,
            "pessimistic": ranks,
            "candidates": 100,
        }
    )
    systems = {"a": frame, "b": frame.with_columns(pl.col("optimistic", "pessimistic") + 1)}
    found = scores(systems, [metric("mrr"), metric("macro-mrr")])[0].heavy_queries()
    assert len(found) == harder
    assert not harder or found[0].startswith("a, b: the ten queries with the most weight")
    assert not harder or "of the variance of mrr and score" in found[0]
    notes = owkg.audit(systems, "mrr", test="t").assumptions["notes"]
    same = [note for note in notes if "owkg audit --average queries), the order is the same: mrr" in note]
    assert len(same) == harder
