"""Micro metrics under another relation distribution (Zhou et al. 2022, eq. 1)."""

import polars as pl
import pytest

from owkg.metrics import Ties, evaluate, metric, tasks_of
from owkg.ranks import reweighted


def _mrr(table):
    return evaluate(tasks_of(table)[0], [metric("mrr")], level=None)[Ties.EXACT]["mrr"].value


def test_shares_weigh_the_means_of_the_relations(full_table):
    table = full_table.filter(side="tail")
    means = {name: _mrr(part) for (name,), part in table.group_by(["relation"])}
    shares = {name: i + 1.0 for i, name in enumerate(sorted(means))}
    expected = sum(shares[name] * mean for name, mean in means.items()) / sum(shares.values())
    assert _mrr(reweighted(table, shares)) == pytest.approx(expected, rel=1e-12)
    # In any unit, and with relations that the table does not have.
    more = {name: 100 * share for name, share in shares.items()} | {"other": 7.0}
    assert _mrr(reweighted(table, more)) == pytest.approx(expected, rel=1e-12)


def test_equal_shares_are_the_macro_mean(full_table):
    table = full_table.filter(side="tail")
    means = [_mrr(part) for _, part in table.group_by("relation")]
    assert _mrr(reweighted(table)) == pytest.approx(sum(means) / len(means), rel=1e-12)


def test_own_shares_change_nothing(full_table):
    table = full_table.filter(side="head")
    shares = {name: part["weight"].sum() for (name,), part in table.group_by(["relation"])}
    assert _mrr(reweighted(table, shares)) == pytest.approx(_mrr(table), rel=1e-12)
    bare = table.drop("weight")
    counts = {name: float(len(part)) for (name,), part in bare.group_by(["relation"])}
    assert _mrr(reweighted(bare, counts)) == pytest.approx(_mrr(bare), rel=1e-12)


def test_models_are_weighed_by_themselves(full_table):
    two = pl.concat(
        [full_table.with_columns(model=pl.lit("a")), full_table[:40].with_columns(model=pl.lit("b"))]
    )
    found = reweighted(two)
    alone = reweighted(full_table)
    assert found.filter(model="a")["weight"].to_list() == pytest.approx(alone["weight"].to_list())


def test_a_share_of_zero_takes_a_relation_out(full_table):
    table = full_table.filter(side="tail")
    found = reweighted(table, {"r0": 1.0, "r1": 0.0, "r2": 0.0})
    assert _mrr(found) == pytest.approx(_mrr(table.filter(relation="r0")), rel=1e-12)


@pytest.mark.parametrize(
    ("shares", "shown"),
    [
        ({"r0": 1.0}, "'r1'|'r2'"),
        ({"r0": 1.0, "r1": -1.0, "r2": 1.0}, "-1"),
        ({"r0": 1.0, "r1": float("nan"), "r2": 1.0}, "nan"),
        ({"r0": 0.0, "r1": 0.0, "r2": 0.0}, "zeros"),
    ],
)
def test_bad_shares(full_table, shares, shown):
    with pytest.raises(ValueError, match=shown):
        reweighted(full_table, shares)


def test_a_relation_without_weight(full_table):
    table = full_table.with_columns(weight=pl.when(pl.col("relation") == "r1").then(0.0).otherwise(1.0))
    with pytest.raises(ValueError, match="weight above 0"):
        reweighted(table)


def test_each_side_has_the_shares_by_itself(full_table):
    shares = {"r0": 5.0, "r1": 1.0, "r2": 2.0}
    both = reweighted(full_table, shares)
    for side in ("head", "tail"):
        alone = reweighted(full_table.filter(side=side), shares)
        assert both.filter(side=side)["weight"].to_list() == pytest.approx(alone["weight"].to_list())
        assert alone["weight"].sum() == pytest.approx(8)
