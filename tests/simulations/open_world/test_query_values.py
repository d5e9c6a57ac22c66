"""What checkpoints read, against ranks that are counted from all scores with each test set's own filter."""

import numpy as np
import pytest

from owkg.kg import KnowledgeGraph, known_answers
from owkg.metrics import Ties, evaluate, metric, tasks
from owkg.rank_weights import rank_weight
from owkg.ranks import known_sets, ranks_from_scores
from simulations.open_world.curves import FULL
from simulations.open_world.query_values import METRICS, query_values
from simulations.open_world.record import Record
from simulations.open_world.world import CORRELATED, SPARSE, ClosedWorld

N, M, CHECKPOINTS = 30, 2, 3
SIZES = {"num_entities": N, "num_relations": M}


@pytest.fixture(scope="module")
def case():
    """(world, scores of all entities by checkpoint and answer, with many ties)."""
    rng = np.random.default_rng(5)
    facts = np.unique(rng.integers(0, (6, M, N), (200, 3)), axis=0).astype(np.int32)
    trains = rng.random(len(facts)) < 0.3
    full = facts[~trains]
    code = full[:, 0] * M + full[:, 1]
    query = np.unique(code, return_inverse=True)[1]
    first = np.append(True, np.diff(query) > 0)
    present = {
        SPARSE: first | (rng.random(len(full)) < 0.4),
        CORRELATED: first | (rng.random(len(full)) < 0.7),
    }
    graph = KnowledgeGraph(tuple(map(str, range(N))), tuple(map(str, range(M))), {"train": facts[trains]})
    world = ClosedWorld("w", 0.75, graph, full, query, present, known_answers(facts, "tail", **SIZES))
    scores = rng.integers(0, 12, (CHECKPOINTS, query.max() + 1, N)).astype(np.float32)
    return world, scores


def ranked(world, scores, present):
    """Ranks of the present answers, filtered by train and by themselves."""
    asked = world.triples[present]
    known = known_answers(np.concatenate([world.graph.splits["train"], asked]), "tail", **SIZES)
    sets = known_sets(known, asked[:, 0], asked[:, 1])
    return ranks_from_scores(scores[world.query[present]], asked[:, 2], known=sets)


def test_every_metric_on_every_test_set(case):
    world, scores = case
    everything = np.ones(len(world.triples), bool)
    ranks = [ranked(world, of, everything) for of in scores]
    own = np.stack([of[world.query, world.triples[:, 2]] for of in scores])
    low, high = (np.stack([getattr(r, end) for r in ranks]) for end in ("optimistic", "pessimistic"))
    found = query_values(world, [Record(np.arange(CHECKPOINTS), low, high, own)], ["a"], ["complex"])
    assert found.metrics == METRICS
    assert set(found.values) == {FULL, SPARSE, CORRELATED}
    wanted = [metric(name) for name in METRICS]
    for name, present in {FULL: everything, **world.present}.items():
        for checkpoint in range(CHECKPOINTS):
            of_set = ranked(world, scores[checkpoint], present)
            for query in range(world.num_queries):
                here = world.query[present] == query
                of_query = tasks(*(column[here] for column in of_set))
                values = evaluate(of_query, wanted, ties=[Ties.EXACT], level=None)[Ties.EXACT].values()
                expected = [value.value for value in values]
                got = found.values[name][:, checkpoint, query]
                assert got == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_several_runs_stand_one_after_the_other(case):
    world, scores = case
    everything = np.ones(len(world.triples), bool)
    ranks = ranked(world, scores[0], everything)
    score = scores[0][world.query, world.triples[:, 2]]

    def run(steps):
        columns = (np.tile(x, (len(steps), 1)) for x in (ranks.optimistic, ranks.pessimistic, score))
        return Record(np.array(steps), *columns)

    found = query_values(world, [run([5]), run([2, 9])], ["a", "b"], ["rotate", "betae"], metrics=["hits@3"])
    assert (found.config.tolist(), found.step.tolist()) == ([0, 1, 1], [5, 2, 9])
    assert (found.labels, found.models, found.density) == (("a", "b"), ("rotate", "betae"), 0.75)
    assert rank_weight("hits@3").name == found.metrics[0]


@pytest.mark.parametrize("name", ["median-rank", "macro-mrr", "zmrr", "probe@0.5,0.5", "strat-mrr@1"])
def test_what_is_no_mean_over_answers_is_refused(case, name):
    world, _ = case
    with pytest.raises(ValueError, match="`metrics` must be"):
        query_values(world, [], [], [], metrics=[name])


def test_runs_need_a_label_and_a_model_each(case):
    world, _ = case
    with pytest.raises(ValueError, match="`records` must be one for each of 0 runs"):
        query_values(world, [], [], [])
    everything = np.ones((1, len(world.triples)), np.int32)
    one = Record(np.array([1]), everything, everything, everything.astype(np.float32))
    with pytest.raises(ValueError, match="`labels` must be one for each of 1 runs, got 2"):
        query_values(world, [one], ["a", "b"], ["complex"])
    with pytest.raises(ValueError, match="`models` must be one for each of 1 runs, got 0"):
        query_values(world, [one], ["a"], [])
