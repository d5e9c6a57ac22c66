"""What a rank table says, by model, side, tie rule and group."""

import numpy as np
import polars as pl
import pytest

from owkg.metrics import (
    Breakdown,
    Ties,
    default_group_metrics,
    default_metrics,
    evaluate,
    metric,
    report,
    tasks_of,
)
from owkg.metrics.fold import popularity_bins

NAMES = ("mrr", "amri", "macro-hits@3")
SUMMARIES = [metric(name) for name in NAMES]


def _value(found, **where):
    rows = found.filter(**where)
    assert len(rows) == 1, where
    return rows.row(0, named=True)


def _own(rows, name, rule="exact"):
    tasks, _ = tasks_of(rows)
    return evaluate(tasks, [metric(name)])[Ties(rule)][name]


def test_a_row_for_each_side_rule_and_metric(full_table):
    found = report(full_table, SUMMARIES)
    assert len(found) == 3 * 4 * len(NAMES)
    assert (
        found["by"].null_count() == found["group"].null_count() == found["model"].null_count() == len(found)
    )
    for side in ("head", "tail", "both"):
        rows = full_table if side == "both" else full_table.filter(side=side)
        for rule in Ties:
            for name in NAMES:
                row = _value(found, side=side, ties=rule.value, metric=name)
                own = _own(rows, name, rule)
                for key in ("value", "expectation", "variance", "standard_error", "ci_low", "ci_high"):
                    assert row[key] == pytest.approx(getattr(own, key), rel=1e-12), (side, rule, name, key)
                assert row["tasks"] == len(rows)


def test_groups_are_reported_by_themselves(full_table):
    table = full_table.with_columns(
        category=pl.col("relation").replace({"r0": "1-1", "r1": "1-N", "r2": "1-N"}),
        half_link=pl.when(pl.col("popularity") > 2)
        .then(pl.lit("both seen"))
        .otherwise(pl.lit("neither seen")),
        seed=7,
    )
    found = report(table, SUMMARIES, by=list(Breakdown), ties=["exact"])
    divided = ["relation", "category", "popularity", "half-link", "seed"]
    assert found["by"].unique(maintain_order=True).to_list() == [None, *divided]
    for relation in ("r0", "r1", "r2"):
        row = _value(found, by="relation", group=relation, side="both", metric="mrr")
        assert row["value"] == pytest.approx(_own(table.filter(relation=relation), "mrr").value, rel=1e-12)
    row = _value(found, by="category", group="1-N", side="tail", metric="amri")
    rows = table.filter(pl.col("relation").is_in(["r1", "r2"]), side="tail")
    assert row["value"] == pytest.approx(_own(rows, "amri").value, rel=1e-12)
    groups = found.filter(by="popularity")["group"].unique(maintain_order=True).to_list()
    assert groups == [g for g in ("0", "1-9", "10-99") if g in groups]
    row = _value(found, by="popularity", group="1-9", side="both", metric="mrr")
    rows = table.filter(pl.col("popularity").is_between(1, 9))
    assert row["value"] == pytest.approx(_own(rows, "mrr").value, rel=1e-12)
    # Groups divide the tasks.
    for by in divided:
        whole = found.filter(by=by, side="both", metric="mrr")
        assert whole["tasks"].sum() == len(table)


def test_models_are_reported_by_themselves(full_table):
    one = pl.lit(1, pl.Int64)
    better = full_table.with_columns(optimistic=one, pessimistic=one)
    both = pl.concat([full_table.with_columns(model=pl.lit("b")), better.with_columns(model=pl.lit("a"))])
    found = report(both, SUMMARIES, ties=["exact"], sides=["both"])
    assert _value(found, model="a", metric="mrr")["value"] == pytest.approx(1, rel=1e-14)
    alone = _value(report(full_table, SUMMARIES, ties=["exact"], sides=["both"]), metric="mrr")
    assert _value(found, model="b", metric="mrr")["value"] == pytest.approx(alone["value"], rel=1e-13)


def test_sides_that_are_not_there_are_left_out(full_table):
    found = report(full_table.filter(side="tail"), SUMMARIES)
    assert found["side"].unique(maintain_order=True).to_list() == ["tail", "both"]


def test_no_number_is_null_not_nan(full_table):
    found = report(full_table, [metric("count")])
    assert found["expectation"].null_count() == len(found)
    assert not found["value"].is_nan().any()


def test_progress_counts_up_to_the_end(full_table):
    seen = []
    report(full_table, SUMMARIES, by=["relation"], on_progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert {total for _, total in seen} == {len(seen)}


def test_defaults_know_whether_popularity_is_known(full_table):
    names = {one.name for one in default_metrics(popularity=True)}
    assert names - {one.name for one in default_metrics(popularity=False)} == {
        "probe@1,0.5",
        "probe@0.5,0.5",
        "strat-mrr@0.5",
    }
    bare = full_table.drop("popularity", "relation_popularity")
    found = set(report(bare, ties=["exact"], sides=["both"])["metric"])
    assert found == {one.name for one in default_metrics(popularity=False)}
    grouped = report(full_table, ties=["exact"], sides=["both"], by=["relation"])
    assert set(grouped.filter(by="relation")["metric"]) == {one.name for one in default_group_metrics()}


def test_decades():
    bins = popularity_bins(pl.Series([0, 1, 9, 10, 99, 100, 12_345, 10**9]))
    expected = ["0", "1-9", "1-9", "10-99", "10-99", "100-999", "10000-99999", "1000000000-9999999999"]
    assert bins.to_list() == expected


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"by": ["sides"]}, "by"),
        ({"by": ["category"]}, "by"),
        ({"sides": ["middle"]}, "middle"),
        ({"sides": []}, "sides"),
        ({"level": 2}, "level"),
    ],
)
def test_bad_arguments_are_named(full_table, options, shown):
    with pytest.raises(ValueError, match=shown):
        report(full_table, SUMMARIES, **options)


def test_a_popularity_metric_needs_the_column(full_table):
    with pytest.raises(ValueError, match="popularity"):
        report(full_table.drop("popularity"), [metric("strat-mrr@1")])


def test_integer_relations_are_groups_too(full_table):
    table = full_table.with_columns(
        relation=pl.col("relation").str.slice(1).cast(pl.Int64),
        head=pl.col("head").hash() % 10**9,
        tail=pl.col("tail").hash() % 10**9,
    ).with_columns(pl.col("head", "tail").cast(pl.Int64))
    found = report(table, SUMMARIES, by=["relation"], ties=["exact"])
    assert set(found.filter(by="relation")["group"]) == {"0", "1", "2"}
    assert np.isfinite(found["value"].to_numpy()).all()


def test_one_breakdown_and_one_rule_need_no_list(full_table):
    one = report(full_table, SUMMARIES, by="relation", ties="exact")
    assert one.equals(report(full_table, SUMMARIES, by=["relation"], ties=["exact"]))
