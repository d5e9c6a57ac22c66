"""Metrics by sampled negatives: closed form against every draw, and against ranks among drawn candidates."""

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.rank_weights import rank_weight
from owkg.ranks import ranks_from_scores
from simulations.sampled_evaluation import METRICS, drawn_values, reversals, sampled_moments

ROOT = Path(__file__).parents[2]
INPUT = ROOT / "tests" / "golden" / "input"


@pytest.mark.parametrize("name", ["mrr", "hits@2", "mr", "log-mrr"])
@given(st.data())
def test_moments_are_those_of_every_draw(name, data):
    candidates = data.draw(st.integers(2, 8))
    rank, negatives = data.draw(st.integers(1, candidates)), data.draw(st.integers(1, candidates - 1))
    # Of the others, numbered from 1, those below the rank are ahead.
    drawn = combinations(range(1, candidates), negatives)
    ranks = 1 + np.array([sum(other < rank for other in others) for others in drawn], float)
    h = np.asarray(rank_weight(name).weight(ranks), float)
    found = sampled_moments(rank_weight(name), np.array([rank]), np.array([candidates]), negatives)
    np.testing.assert_allclose(found[:, 0], [h.mean(), h.var()], rtol=1e-9, atol=1e-12)


def test_all_negatives_give_the_full_rank():
    rank, candidates = np.array([1, 4, 9]), np.array([9, 9, 9])
    for negatives in (8, 100):
        mean, variance = sampled_moments(rank_weight("mrr"), rank, candidates, negatives)
        np.testing.assert_allclose(mean, 1 / rank, rtol=1e-12)
        np.testing.assert_allclose(variance, 0, atol=1e-12)


def test_ranks_among_drawn_candidates_have_these_moments():
    """Scores ranked among the answer and drawn others, by `owkg.ranks`."""
    rng, entities, negatives, trials = np.random.default_rng(0), 40, 9, 3000
    scores = rng.normal(size=(3, entities))
    answer = np.array([0, 5, 7])
    full = ranks_from_scores(scores, answer)
    h = np.empty((trials, 3))
    for trial in range(trials):
        chosen = np.zeros((3, entities), bool)
        for i, own in enumerate(answer):
            chosen[i, rng.choice(np.delete(np.arange(entities), own), negatives, replace=False)] = True
            chosen[i, own] = True
        h[trial] = 1 / np.asarray(ranks_from_scores(scores, answer, candidates=chosen).optimistic)
    rank = np.asarray(full.optimistic)
    mean, variance = sampled_moments(rank_weight("mrr"), rank, np.full(3, entities), negatives)
    z = (h.mean(axis=0) - mean) / np.sqrt(variance / trials)
    assert abs(z).max() < 4
    np.testing.assert_allclose(h.var(axis=0), variance, rtol=0.15)


def test_draws_have_these_moments():
    rank, candidates = np.array([1, 3, 50, 200]), np.array([60, 300, 60, 300])
    weight = rank_weight("mrr")
    found = drawn_values(weight, rank, candidates, 20, 4000, np.random.default_rng(1))
    mean, variance = sampled_moments(weight, rank, candidates, 20)
    assert abs(found.mean() - mean.mean()) < 4 * np.sqrt(variance.sum() / 16 / 4000)
    np.testing.assert_allclose(found.var(), variance.sum() / 16, rtol=0.1)


def test_few_negatives_can_turn_the_order():
    """One model has half of its answers first and half last, the other all of them on rank 20."""
    candidates = np.full(2, 1001)
    values = {"ends": np.array([1, 1001]), "middle": np.array([20, 20])}
    rows = []
    for model, rank in values.items():
        rows.append((model, None, (1 / rank).mean()))
        sampled = sampled_moments(rank_weight("mrr"), rank, candidates, 10)[0].mean()
        rows.append((model, 10, sampled))
    table = pl.DataFrame(rows, schema=["model", "negatives", "expected"], orient="row")
    found = reversals(table.with_columns(data=pl.lit("d"), metric=pl.lit("mrr")))
    assert found.rows() == [("d", "mrr", 10, "ends", "middle")]


@pytest.mark.parametrize(
    ("rank", "negatives", "message"), [(4, 0, "`negatives` must be at least 1"), (10, 3, "`rank` must be in")]
)
def test_bad_input_is_refused(rank, negatives, message):
    with pytest.raises(ValueError, match=message):
        sampled_moments(rank_weight("mrr"), np.array([rank]), np.array([9]), negatives)


def test_the_script_of_own_rank_tables(tmp_path):
    tables = [part for name in ("oracle", "frequency") for part in ("--ranks", INPUT / f"{name}.csv")]
    command = [sys.executable, ROOT / "simulations" / "sampled_evaluation.py", "--kg", INPUT / "graph"]
    done = subprocess.run(
        [*command, *tables, "--negatives", "5", "--negatives", "20", "--trials", "20", "--out", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "closed form and 20 draws: 12 standardised differences" in done.stdout
    table = pl.read_csv(tmp_path / "sampled_evaluation.csv", glob=False)
    assert len(table) == 2 * len(METRICS) * 3
    assert table["standardised_difference"].drop_nulls().abs().max() < 4.5
    assert (tmp_path / "sampled_evaluation.png").stat().st_size > 500


def test_the_numbers_of_the_page_are_those_of_the_study():
    table = pl.read_csv(ROOT / "docs" / "reproduction" / "sampled_evaluation.csv", glob=False)
    page = (ROOT / "docs" / "understand" / "rank_theory.md").read_text(encoding="utf-8")
    own = table.filter(data="codex-s", metric="mrr")
    shown = re.findall(r"^\| (10|50|100|500|all) \| (0\.\d+) \| (0\.\d+) \|$", page, re.MULTILINE)
    assert len(shown) == 5
    for count, *values in shown:
        at = pl.col("negatives").is_null() if count == "all" else pl.col("negatives") == int(count)
        for model, text in zip(("RotatE", "TransE"), values, strict=True):
            assert f"{own.filter(at, model=model)['expected'].item():.3f}" == text
    assert table["standardised_difference"].drop_nulls().abs().max() < 3.5
    turned = reversals(table).filter(data="codex-s", metric="mrr")
    assert turned["negatives"].to_list() == [10, 50, 100, 500]
