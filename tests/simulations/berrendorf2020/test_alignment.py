"""The study of entity alignment against the number of test pairs."""

import numpy as np
import polars as pl
import pytest

from simulations.berrendorf2020 import alignment
from simulations.berrendorf2020.__main__ import main
from simulations.berrendorf2020.alignment import RAW, TRAINED, Study, effect, summary, two_views

SMALL = Study(train_pairs=(0, 60), test_pairs=(20, 40, 100, 10**6), splits=2, dim=8, steps=5)


@pytest.fixture(scope="module")
def views():
    return two_views(0)


@pytest.fixture(scope="module")
def runs(views, tmp_path_factory):
    return alignment.run(views, SMALL, tmp_path_factory.mktemp("runs"))


def test_two_views_have_other_names_and_other_facts(views):
    assert not set(views.left.entities) & set(views.right.entities)
    left, right = ({tuple(f) for f in g.splits["train"].tolist()} for g in (views.left, views.right))
    shared = len(left & right) / len(left | right)
    assert (
        0.49 / 0.91 - 0.02 < shared < 0.49 / 0.91 + 0.02
    )  # of facts that are in either, .7 * .7 are in both
    assert views.one_to_one


def test_each_model_on_each_test_that_there_is(runs):
    kinds = runs.select("model", "train_pairs").unique().sort("model", "train_pairs").rows()
    assert kinds == [(TRAINED, 0), (TRAINED, 60), (RAW, 0)]
    assert sorted(set(runs["test_pairs"])) == [20, 40, 100]
    assert len(runs) == 3 * 3 * 2 * len(alignment.METRICS)


def test_what_is_there_is_not_trained_again(views, runs, tmp_path):
    folder = tmp_path / "runs"
    first = alignment.run(views, SMALL, folder)
    assert first.equals(runs)
    gone = sorted(folder.iterdir())[0]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if path != gone}
    gone.unlink()
    assert alignment.run(views, SMALL, folder).equals(runs)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    with pytest.raises(ValueError, match="belongs to another study; choose another folder"):
        alignment.run(views, Study(**(vars(SMALL) | {"dim": 9})), folder)


def test_means_and_changes_by_hand(runs):
    table = summary(runs)
    own = runs.filter(model=TRAINED, train_pairs=60, metric="mr")
    few, most = (own.filter(test_pairs=n)["value"].to_numpy() for n in (20, 100))
    row = table.row(
        by_predicate=(pl.col("model") == TRAINED)
        & (pl.col("train_pairs") == 60)
        & (pl.col("metric") == "mr")
        & (pl.col("test_pairs") == 20),
        named=True,
    )
    assert (row["mean"], row["deviation"]) == pytest.approx((few.mean(), few.std(ddof=1)))
    change = effect(table).filter(model=TRAINED, train_pairs=60, metric="mr").row(0, named=True)
    spread = max(few.std(ddof=1), most.std(ddof=1))
    assert change["change_in_deviations"] == pytest.approx((few.mean() - most.mean()) / spread)
    assert few.mean() < most.mean()  # fewer candidates


def test_correlations(views):
    found = dict(alignment.correlations(views, 32, 0).select("of", "spearman").rows())
    assert abs(found["length and degree, without messages"]) < 0.15
    assert found["length and degree, two convolutions, incoming"] < -0.3
    left, right = (alignment.degrees(g) for g in (views.left, views.right))
    ranks = [pl.Series(d).rank().to_numpy() for d in (left, right)]
    assert found["degrees of matched entities"] == pytest.approx(np.corrcoef(*ranks)[0, 1])


def test_the_command_draws_and_goes_on(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(alignment, "QUICK", SMALL)
    assert main(["alignment", "--quick", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for name in ("test_size.csv", "effect.csv", "correlations.csv", "test_size.png", "degrees.pdf"):
        assert f"alignment_{name}" in out
        assert (tmp_path / f"alignment_{name}").stat().st_size
    assert main(["alignment", "--quick", "--out", str(tmp_path), "--splits", "3"]) == 2
    assert "belongs to another study" in capsys.readouterr().err


def test_too_few_pairs_are_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(alignment, "QUICK", Study(train_pairs=(10**6,), test_pairs=(10,)))
    assert main(["alignment", "--quick", "--out", str(tmp_path)]) == 2
    assert "must hold at least 1,000,010 pairs" in capsys.readouterr().err
