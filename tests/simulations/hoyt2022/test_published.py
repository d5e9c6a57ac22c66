"""The table of published chance levels: absent, damaged, and sound."""

import numpy as np
import polars as pl
import pytest

from simulations.hoyt2022.published import chance_levels, published_chance

HEADER = "metric\tinverted\tcandidate\texpectation\tvariance\n"
ROWS = "arithmetic_mean_rank\tFalse\t4\t2.5\t0.3125\nharmonic_mean_rank\tTrue\t4\t0.52\t0.02\n"


@pytest.fixture
def table(tmp_path, monkeypatch):
    folder = tmp_path / "ranking_metrics"
    folder.mkdir()
    monkeypatch.setenv("OWKG_DATA", str(tmp_path))
    return folder / "candidates.tsv"


def test_no_data_is_none(monkeypatch):
    monkeypatch.delenv("OWKG_DATA", raising=False)
    assert published_chance() is None


def test_a_sound_table_has_our_names_and_each_level_once(table):
    table.write_text(HEADER + ROWS + ROWS)
    found = published_chance()
    assert found.rows() == [("mr", 2.5, 0.3125, 4), ("mrr", 0.52, 0.02, 4)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file"),
        (HEADER, "must have at least one row"),
        ("a\tb\n1\t2\n", "must have the column"),
        (HEADER + ROWS.replace("harmonic", "heroic"), "line 3: not a chance level"),
        (HEADER + ROWS.replace("2.5", "nan"), "line 2: not a chance level"),
        (HEADER + ROWS.replace("0.02", "-0.02"), "line 3: not a chance level"),
        (HEADER + ROWS.replace("0.02", ""), "line 3: not a chance level"),
        (HEADER + ROWS.replace("\t4\t2.5", "\t0\t2.5"), "line 2: not a chance level"),
        (HEADER + ROWS.replace("2.5", "x"), "candidates.tsv: "),
    ],
    ids=["no file", "empty", "columns", "metric", "nan", "negative", "gap", "no candidates", "text"],
)
def test_a_damaged_table_is_named(table, text, message):
    if text is not None:
        table.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        published_chance()
    assert "candidates.tsv" in str(error.value)


def test_levels_are_of_as_many_tasks_as_candidates():
    found = chance_levels(["mr", "hits@2"], [1, 5])
    assert found["metric"].to_list() == ["mr", "hits@2"] * 2
    expected = pl.DataFrame({"expectation": [1.0, 1.0, 3.0, 0.4], "variance": [0.0, 0.0, 2 / 5, 0.24 / 5]})
    for name in expected.columns:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-15)
