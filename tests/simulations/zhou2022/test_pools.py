"""Pools of a closed world: candidates, labels and ranks against sets and sorting by hand."""

import jax
import numpy as np
import pytest

from owkg.evaluation import rank_arrays
from owkg.kg import known_answers
from owkg.metrics import metric
from owkg.train import load_run
from simulations.open_world.curves import CORRELATED, SPARSE
from simulations.open_world.experiment import records
from simulations.open_world.presets import Configuration
from simulations.zhou2022 import pools as pooling
from simulations.zhou2022.judged import judged
from simulations.zhou2022.pools import labels, labels_without, pools, pools_of_lists, scores_under

SETTINGS = {"dim": 4, "batch_size": 20, "training_loop": "1vsall", "n3": 0.0}
THREE = (
    Configuration("Dist 4", "distmult", SETTINGS, (5,)),
    Configuration("Com 4", "complex", SETTINGS, (2, 6)),
    Configuration("Com 2", "complex", SETTINGS | {"dim": 2}, (3,)),
)
SUMMARIES = [metric(name) for name in ("mrr", "hits@1", "mr", "macro-mrr", "macro-map@20")]
DEPTH = 4


@pytest.fixture(scope="module")
def case(world, tmp_path_factory):
    """(world, with some labels missing; records; folder of the runs)"""
    rng = np.random.default_rng(2)
    present = rng.random(len(world.triples)) < 0.5
    present[np.searchsorted(world.query, np.arange(world.num_queries))] = True
    folder = tmp_path_factory.mktemp("runs")
    (found,) = records([world], THREE, folder)
    return world._replace(present={SPARSE: present}), found, folder


@pytest.fixture(scope="module")
def found(case):
    world, records_, folder = case
    return pools(world, records_, THREE, folder, depth=DEPTH)


def lists_of(case, number):
    """The best candidates of each query of a run, by sorting all scores."""
    world, _, folder = case
    run = load_run(folder / world.name / THREE[number].folder / "run", step="last")
    train = world.graph.splits["train"]
    best = []
    for query in range(world.num_queries):
        head, relation, _ = world.triples[world.query == query][0]
        embedded = run.trained.queries(np.array([head]), np.array([relation]), "tail")
        score = np.array(run.trained.model.similarity.all(embedded, run.trained.candidates()))[0]
        score[train[(train[:, 0] == head) & (train[:, 1] == relation), 2]] = -np.inf
        order = np.argsort(-score, kind="stable")
        best.append([e for e in order if np.isfinite(score[e])][:DEPTH])
    return best


def test_what_enters_at_which_depth(case, found):
    world = case[0]
    pooled = [set() for _ in range(DEPTH)]
    for number in range(len(THREE)):
        own = lists_of(case, number)
        for answer, (query, tail) in enumerate(zip(world.query, world.triples[:, 2], strict=True)):
            where = own[query].index(tail) + 1 if tail in own[query] else pooling._NEVER
            assert found.entered[number, answer] == where
        for depth in range(DEPTH):
            pooled[depth] |= {(q, e) for q, row in enumerate(own) for e in row[: depth + 1]}
    assert found.candidates.tolist() == [len(one) for one in pooled]
    assert found.systems == ("Dist 4", "Com 4", "Com 2")


def test_labels(case, found):
    world = case[0]
    sparse = world.present[SPARSE]
    assert (labels(world, found, 0) == sparse).all()
    for depth in range(1, DEPTH + 1):
        assert (labels(world, found, depth) == sparse | (found.entered <= depth).any(0)).all()
        without = labels_without(world, found, depth, 1)
        assert (without == sparse | (found.entered[[0, 2]] <= depth).any(0)).all()
    other = world._replace(present=world.present | {CORRELATED: ~sparse})
    assert (labels(other, found, 0, test_set=CORRELATED) == ~sparse).all()
    alone = pools_of_lists(world, case[1][:1], ("a",), np.zeros((1, world.num_queries, 1), np.int32))
    assert (labels_without(world, alone, 1, 0) == sparse).all()


def test_lists_with_ends(case):
    world, records_, _ = case
    lists = np.full((1, world.num_queries, 3), -1, np.int32)
    lists[0, 0, 0] = 5
    assert pools_of_lists(world, records_[:1], ("a",), lists).candidates.tolist() == [1, 1, 1]


def test_ranks_under_labels_are_those_of_evaluating_with_them(case, found):
    world, _, folder = case
    present = labels(world, found, 1)
    sizes = {"num_entities": world.graph.num_entities, "num_relations": world.graph.num_relations}
    facts = np.concatenate([world.graph.splits["train"], world.triples[present]])
    known = known_answers(facts, "tail", **sizes)
    own = scores_under(world, found, present, SUMMARIES)
    for number, one in enumerate(THREE):
        run = load_run(folder / world.name / one.folder / "run", step="last")
        again = rank_arrays(run.trained, world.triples[present], "tail", known=known)
        np.testing.assert_allclose(own.mean[0, number], (1 / again.optimistic).mean())
        np.testing.assert_allclose(own.mean[2, number], again.optimistic.mean())


def test_the_study_in_numbers(case, found):
    world = case[0]
    told = []
    result = judged(
        jax.random.key(0), world, found, SUMMARIES, replicates=50, on_progress=lambda *n: told.append(n)
    )
    assert told[-1] == (DEPTH + 2, DEPTH + 2)
    assert result.labels["labels"].to_list() == [labels(world, found, d).sum() for d in range(DEPTH + 1)]
    sparse = world.present[SPARSE]
    known = [(sparse & (found.depth <= depth)).sum() for depth in range(DEPTH + 1)]
    assert result.labels["candidates"].to_list() == ([0, *found.candidates] - np.array(known)).tolist()
    assert known[-1] > 0
    assert set(result.agreement["depth"]) == set(range(DEPTH + 1))
    assert set(result.agreement["coefficient"]) == {"tau", "tau-ap", "spearman"}
    truth = scores_under(world, found, np.ones(len(world.triples), bool), SUMMARIES)
    rows = result.systems.filter(metric="mrr", system="Com 2")
    assert rows.filter(rows["depth"].is_null())["value"].item() == truth.mean[0, 2]
    alone = scores_under(world, found, labels(world, found, 0), SUMMARIES)
    signs = [np.sign(np.subtract.outer(one.strength[0], one.strength[0])) for one in (truth, alone)]
    tau = (signs[0] * signs[1]).sum() / 6
    tau_row = result.agreement.filter(depth=0, metric="mrr", coefficient="tau")
    assert tau_row["value"].item() == pytest.approx(tau)
    inside = result.differences.drop_nulls("lower").fill_nan(None).drop_nulls()
    assert (inside["lower"] <= inside["value"] + 1e-9).all()
    assert (inside["value"] <= inside["upper"] + 1e-9).all()
    gap = result.differences.filter(metric="mr", minus="mrr", coefficient="tau")["value"].item()
    taus = result.agreement.filter(depth=0, coefficient="tau")
    assert gap == pytest.approx(
        taus.filter(metric="mr")["value"].item() - taus.filter(metric="mrr")["value"].item(), nan_ok=True
    )


def test_pool_bias(case, found):
    world = case[0]
    result = judged(jax.random.key(0), world, found, SUMMARIES, replicates=2)
    for at, system in enumerate(found.systems):
        row = result.left_out.filter(system=system, metric="macro-mrr").row(0, named=True)
        whole, less = labels(world, found, DEPTH), labels_without(world, found, DEPTH, at)
        assert row["unique"] == (whole & ~less).sum()
        without = scores_under(world, found, less, SUMMARIES)
        place = without.metrics.index("macro-mrr")
        assert row["value_without"] == without.mean[place, at]
        assert row["rank_without"] == 1 + (without.mean[place] > without.mean[place, at]).sum()


def test_refused(case, found):
    world, records_, folder = case
    with pytest.raises(ValueError, match="`configurations` must be one for each of 3 records, got 2"):
        pools(world, records_, THREE[:2], folder, depth=2)
    alone = pools(world, records_[:1], THREE[:1], folder, depth=1)
    with pytest.raises(ValueError, match="at least two systems"):
        judged(jax.random.key(0), world, alone, SUMMARIES, replicates=2)
    with pytest.raises(ValueError, match="`test_set` must be one of sparse, got 'correlated'"):
        judged(jax.random.key(0), world, found, SUMMARIES, test_set="correlated")
    with pytest.raises(ValueError, match="`replicates` must be"):
        judged(jax.random.key(0), world, found, SUMMARIES, replicates=1)
