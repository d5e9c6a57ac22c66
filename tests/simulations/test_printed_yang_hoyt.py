"""The printed numbers of Yang et al. and of Hoyt et al. (2022), recomputed from the published data."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from owkg.judge import relabelled
from simulations.printed import cells_of, counts_of, table_of
from simulations.yang2022.printed import ANSWERS, REPORTED, corrected_ranks

ERRATA = (Path(__file__).parents[2] / "docs" / "evidence" / "errata.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=["yang2022", "hoyt2022"])
def recomputed(request, owkg_data):
    return request.param, table_of(cells_of(request.param, owkg_data))


def test_how_many_cells_have_which_verdict(recomputed):
    paper, table = recomputed
    expected = {"yang2022": (49, 22, 0, 4, 23), "hoyt2022": (131, 45, 1, 82, 3)}
    assert counts_of({paper: table}).row(0)[1:] == expected[paper]
    assert table["place"].is_unique().all()


def test_every_number_that_differs_names_an_erratum(recomputed):
    _, table = recomputed
    rows = set(re.findall(r"^\| ([A-Z]\d+) ", ERRATA, re.MULTILINE))
    notes = table.filter(pl.col("verdict") == "differs")["note"].to_list()
    assert notes
    assert {name for note in notes for name in note.split(", ")} <= rows
    assert set(re.findall(r"\b[YH]\d+\b", " ".join(table["note"]))) <= rows


@pytest.mark.parametrize("recomputed", ["hoyt2022"], indirect=True)
def test_only_amri_of_figure_1_is_as_published(recomputed):
    figure = recomputed[1].filter(pl.col("place").str.starts_with("Figure 1"))
    assert len(figure) == 4 * 4 * 6
    assert (figure["place"].str.ends_with("amri") == (figure["verdict"] == "equal")).all()


def test_taking_the_correction_back_gives_the_reported_ranks():
    """Yang et al. (2022), Table 1: the ranks of the test answers, from those filtered by all eight."""
    num_test, size = len(ANSWERS["test"]), len(REPORTED)
    corrected = corrected_ranks(REPORTED, num_test)
    # Two answers of the same corrected rank are told apart by their scores.
    score = -REPORTED + 0.5 * (np.arange(size) < num_test)
    asked = {"head": "1956 Summer Olympics", "relation": "sports", "side": "tail"}
    names = [name for kind in ANSWERS.values() for name in kind]
    table = pl.DataFrame(
        [
            asked | {"tail": name, "optimistic": r, "pessimistic": r, "candidates": 14498, "score": s}
            for name, r, s in zip(names, corrected, score, strict=True)
        ]
    )
    known = {"side": "tail", "entity": asked["head"], "relation": "sports", "relevance": 1}
    test = pl.DataFrame([known | {"answer": name} for name in ANSWERS["test"]])
    assert relabelled(table, test).table["optimistic"].to_list() == REPORTED[:num_test].tolist()


def test_ranks_of_no_list_are_refused():
    with pytest.raises(ValueError, match="must be ranks of one list"):
        corrected_ranks(np.array([5, 5, 1, 1]), 2)
