"""The replay of unbiased sampled evaluation: its draws by brute force, its means beside full evaluation."""

import numpy as np
import polars as pl
import pytest

from owkg.cli.main import main as owkg_main
from owkg.errors import ArgumentError
from owkg.evaluation.correction import weights_named
from simulations import unbiased_evaluation as script
from simulations.unbiased_evaluation import Lists, _drawn, _first, baselines, run

SIZE = 60


@pytest.fixture(scope="module")
def lists():
    """Tasks of one side: ranks among typical candidates, and which of the others score higher."""
    rng = np.random.default_rng(0)
    tasks = 300
    others = np.where(rng.random(tasks) < 0.5, 0, rng.integers(0, SIZE // 2, tasks))
    ids = [rng.choice(SIZE, count, replace=False) for count in others]
    query = np.arange(tasks) // 2
    rank = 1.0 + rng.integers(0, 3, tasks)
    return Lists(rank, query, query // 40, others, np.concatenate(ids), np.full(tasks, 5))


def test_the_first_candidate_of_an_order(lists):
    """One order and one set of clocks a batch: tasks of a batch agree, and nothing comes before the first."""
    place, clock = _first(lists, SIZE, np.random.default_rng(1))
    ends = np.cumsum(lists.others)
    assert (place[lists.others == 0] == SIZE).all()
    assert np.isinf(clock[lists.others == 0]).all()
    for batch in np.unique(lists.batch):
        own = np.flatnonzero((lists.batch == batch) & (lists.others > 0))
        sets = [set(lists.ids[ends[i] - lists.others[i] : ends[i]].tolist()) for i in own]
        for i, here in zip(own, sets, strict=True):
            for j, there in zip(own, sets, strict=True):
                # A place names one candidate, so two tasks that share it share a candidate; and no task whose
                # candidates hold all of another's begins later.
                assert place[i] != place[j] or here & there
                assert not (there <= here) or place[i] <= place[j]
                assert (place[i] < place[j]) == (clock[i] < clock[j])


def test_places_of_one_candidate_are_uniform():
    one = Lists(
        np.ones(1), np.zeros(1, int), np.zeros(1, int), np.ones(1, int), np.array([7]), np.ones(1, int)
    )
    rng = np.random.default_rng(0)
    found = np.bincount([int(_first(one, 10, rng)[0][0]) for _ in range(5000)], minlength=10)
    assert ((found - 500) ** 2 / 500).sum() < 27.9  # chi-squared with 9 degrees: .001


def test_estimates_are_unbiased_and_know_their_error(lists):
    table, cost = run([lists], SIZE, 0.3, 400, np.random.default_rng(2))
    own = table.filter(pl.col("method") == "unbiased")
    rank = lists.rank + lists.others
    assert own["full"].to_list() == pytest.approx([(1 / rank).mean(), (rank <= 1).mean()], rel=1e-12)
    assert (own["bias"].abs() < 4 * own["bias_error"]).all()
    assert own["told"].to_list() == pytest.approx(own["rmse"].to_list(), rel=0.25)
    for held in ("coverage", "interval_coverage"):
        assert (own[held] - 0.95).abs().max() < 0.04
    assert 0 < cost < 1
    negatives = table.filter(pl.col("method") == "negatives")
    assert (negatives["bias"].to_numpy() > 3 * own["rmse"].to_numpy()).all()


def test_queries_are_drawn_with_all_their_tasks():
    query = np.array([0, 0, 1, 2, 2, 2])
    at, copy = _drawn(query, np.random.default_rng(3))
    assert copy[-1] == 2
    for i in range(3):
        own = query[at[copy == i]]
        assert len(set(own)) == 1
        assert sorted(at[copy == i]) == np.flatnonzero(query == own[0]).tolist()


def test_baselines_with_all_negatives_are_full_evaluation():
    rank = np.array([1.0, 2.0, 2.0, 7.0])
    found = baselines(weights_named(["mrr"])[0], rank, 20, 19, np.random.default_rng(0), trials=2)
    for name in ("negatives", "scaled rank"):
        assert found[name] == pytest.approx((1 / rank).mean(), rel=1e-12), name
    assert found["most likely ranks"] == pytest.approx((1 / rank).mean(), rel=1e-3)


def test_full_metric_is_that_of_the_command(tmp_path, capsys):
    """A run trained, replayed from its lists, and evaluated in full by `owkg rank`."""
    graph = tmp_path / "graph"
    assert owkg_main(["family-tree", "generate", str(tmp_path / "families"), "--num-trees", "1"]) == 0
    facts = (tmp_path / "families" / "facts.tsv").read_text().splitlines(keepends=True)
    graph.mkdir()
    (graph / "train.txt").write_text("".join(facts))
    (graph / "test.txt").write_text("".join(facts[::9]))
    train = ["train", str(graph), "--model", "distmult", "--dim", "8", "--epochs", "2", "--valid-every", "0"]
    assert owkg_main([*train, "--out", str(tmp_path / "run")]) == 0
    script.main(tmp_path / "run", graph, [0.1], 5, 0, tmp_path)
    table = pl.read_csv(tmp_path / "unbiased_evaluation.csv")
    capsys.readouterr()
    evaluate = ["rank", str(tmp_path / "run"), "--kg", str(graph), "--split", "test"]
    assert owkg_main([*evaluate, "--out", str(tmp_path / "ranks.parquet")]) == 0
    ranks = pl.read_parquet(tmp_path / "ranks.parquet", glob=False)
    own = table.filter(pl.col("method") == "unbiased")
    expected = [(1 / ranks["optimistic"]).mean(), (ranks["optimistic"] == 1).mean()]
    assert own["full"].to_list() == pytest.approx(expected, rel=1e-9)


def test_a_run_without_its_graph(tmp_path):
    with pytest.raises(ArgumentError, match="kg"):
        script.main(tmp_path, None)
