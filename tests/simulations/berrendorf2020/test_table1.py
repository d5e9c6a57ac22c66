"""Table 1 of Berrendorf et al. (2020) from rank tables."""

from pathlib import Path

import polars as pl
import pytest

import owkg
from owkg.kg import read_graph
from owkg.models import MODELS
from owkg.ranks import read_ranks
from simulations.berrendorf2020.table1 import SYSTEMS, table_1
from simulations.rank_tables import DataSet

INPUT = Path(__file__).parents[2] / "golden" / "input"


@pytest.fixture
def data_set():
    ranks = {}
    for label, name in (("ConvE", "oracle"), ("Mine", "frequency")):
        frame = read_ranks(INPUT / f"{name}.csv").frame
        ranks[label] = pl.concat([frame.with_columns(seed=pl.lit(i)) for i in range(2)])
    return DataSet("wn18rr", read_graph(INPUT / "graph"), ranks)


def test_rows_are_in_the_order_of_amri_beside_what_is_printed(data_set):
    table = table_1([data_set])
    rows = {row["model"]: row for row in table.to_dicts()}
    assert table["amri"].is_sorted(descending=True)
    assert rows["ConvE"]["printed_mr"] == 4412
    assert rows["ConvE"]["printed_amri"] == 78.4
    assert rows["Mine"]["printed_mr"] is None
    assert table["seeds"].to_list() == [2, 2]


def test_values_are_of_all_seeds_and_intervals_of_one(data_set):
    row = table_1([data_set]).filter(model="Mine").to_dicts()[0]
    once = data_set.ranks["Mine"].filter(seed=0)
    for metric, scale in (("mr", 1), ("amri", 100)):
        (expected,) = owkg.evaluate(once, metric).to_dicts()
        assert row[metric] == pytest.approx(scale * expected["value"])
        assert row[f"{metric}_low"] == pytest.approx(scale * expected["ci_low"])
        assert row[f"{metric}_high"] == pytest.approx(scale * expected["ci_high"])


def test_every_system_of_the_paper_is_a_model():
    assert set(SYSTEMS.values()) <= MODELS.keys()
