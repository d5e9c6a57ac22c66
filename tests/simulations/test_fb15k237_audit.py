"""The study of FB15k-237: what its judged sample says, and its commands."""

from pathlib import Path

import polars as pl
import pytest

import owkg
from owkg.auditing import missing_share
from simulations import fb15k237_audit as study
from simulations.zhou2022.published import read_study

MAIN = study.main


@pytest.fixture(scope="module")
def sample(owkg_data):
    return study.judged_sample(owkg_data)


def test_the_sample(sample, owkg_data):
    whole = owkg.read_graph(owkg_data / "fb15k237")
    splits = sample.graph.splits
    assert len(splits["test"]) == 1023
    assert len(splits["rest"]) + len(splits["test"]) == len(whole.splits["test"])
    assert len(sample.drawn) == 2046
    # Of FB-Test-S as a test of its own, and of the whole test that it was drawn from.
    own = missing_share(sample.judged, sample.graph).row(0, named=True)
    assert (own["known"], own["found"]) == (2046, 2138)
    drawn = missing_share(sample.judged, whole, sample=sample.drawn).row(0, named=True)
    assert drawn["sparsity_at_least"] == pytest.approx(0.394, abs=5e-4)
    # Pools are a lower bound: no limit above.
    assert (round(drawn["ci_low"], 3), drawn["ci_high"]) == (0.364, None)


def test_published_orders(sample, owkg_data):
    published, graph = read_study(owkg_data), owkg.read_graph(owkg_data / "fb15k237")
    found = study.published_order(published, graph, (0.36, 0.42))
    assert len(found) == 13 * 12 // 2
    assert (found["difference"] >= 0).all()
    for d, wider in ((0, 0.05), (0.05, 0.1)):
        assert (found[f"low_{d:g}"] >= found[f"low_{wider:g}"] - 1e-9).all()
        assert (found[f"high_{d:g}"] <= found[f"high_{wider:g}"] + 1e-9).all()


def test_models(call, owkg_data, tmp_path):
    code, out, _ = call("models", "--data", owkg_data, "--out", tmp_path, "--quick")
    assert code == 0
    assert "the full test, implied and judged" in out
    rows = pl.read_csv(tmp_path / "fb15k237_models.csv", glob=False)
    assert rows["model"].unique().sort().to_list() == ["ComplEx", "DistMult"]
    assert (rows["low"] <= rows["complete"]).all()
    assert (rows["complete"] <= rows["high"]).all()
    page = (tmp_path / "fb15k237_models.html").read_text()
    assert "Results of judging" in page


def test_detectable(owkg_data):
    graph = owkg.read_graph(owkg_data / "codex-s")
    few, many = (study.detectable_difference(graph, beta) for beta in (0.1, 0.7))
    both = few.join(many, on="metric").filter(pl.col("metric").is_in(["mrr", "hits@1"]))
    assert len(both) == 2
    assert (both["strength_difference"] < both["strength_difference_right"]).all()
    assert (both["difference"] > 0).all()


def test_the_page_says_what_was_measured():
    """The committed table of the full study, as docs/evidence/calibration.md shows it."""
    docs = Path(__file__).parents[2] / "docs"
    rows = pl.read_csv(docs / "reproduction" / "fb15k237_models.csv", glob=False).filter(metric="mrr")
    page = (docs / "evidence" / "calibration.md").read_text(encoding="utf-8")
    for row in rows.iter_rows(named=True):
        cells = (f"{row[key]:.3f}" for key in ("sparse", "implied", "independent", "complete"))
        assert f"| {row['model']} | {' | '.join(cells)} |" in page
    for name, words in (("implied", "MRR is off by {}"), ("independent", "and by {}")):
        error = f"{((rows[name] - rows['complete']) ** 2).mean() ** 0.5:.3f}"
        assert words.format(error) in page
