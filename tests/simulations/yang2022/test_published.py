"""The table of published simulations: absent, damaged, and sound."""

import pytest

from simulations.yang2022.published import agreement, compared_with_published, published_simulations

HEADER = "rho,alpha,strength,mrr_mean,mrr_standard_error,trials,num_answers,num_entities\n"
ROW = "0,0.65,0.7,0.1927,0.0035,500,43,14505\n"


@pytest.fixture
def table(tmp_path, monkeypatch):
    folder = tmp_path / "open_world_simulation"
    folder.mkdir()
    monkeypatch.setenv("OWKG_DATA", str(tmp_path))
    return folder / "published.csv"


def test_no_data_is_none(monkeypatch):
    monkeypatch.delenv("OWKG_DATA", raising=False)
    assert published_simulations() is None


def test_a_sound_table_is_compared(table):
    table.write_text(HEADER + ROW + "0.1,0.8,0.99,0.3,0.005,500,43,14505\n")
    compared = compared_with_published(published_simulations())
    assert compared["expectation"][0] == pytest.approx(0.192762, abs=1e-6)
    assert abs(compared["standardised_difference"][0]) < 0.1
    assert compared["saturated"].to_list() == [False, True]
    assert agreement(compared["standardised_difference"].to_numpy()).points == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file"),
        (HEADER, "must have at least one row"),
        ("a,b\n1,2\n", "must have the column"),
        (HEADER + ROW + ROW.replace("0.65", "1.0"), "line 3: not a simulated point"),
        (HEADER + ROW.replace("0.7", ""), "line 2: not a simulated point"),
        (HEADER + ROW.replace("0.0035", "nan"), "line 2: not a simulated point"),
        (HEADER + ROW.replace("0.7", "x"), "published.csv: "),
    ],
    ids=["no file", "empty", "columns", "alpha", "gap", "nan", "text"],
)
def test_a_damaged_table_is_named(table, text, message):
    if text is not None:
        table.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        published_simulations()
    assert "published.csv" in str(error.value)
