"""What is drawn: sets that make up the closed world, in the expected shares, nested or independent."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg import openworld
from owkg.kg import KnowledgeGraph
from owkg.openworld import INDEPENDENT, NodeBased, PopularityBased
from owkg.sampling import RelationBased, alpha, sample

MODELS = [INDEPENDENT, NodeBased(0.2), RelationBased(0.2), PopularityBased(1.0)]
BY_NAME = {"ids": lambda model: type(model).__name__, "argvalues": MODELS, "argnames": "model"}
PUBLISHED = (0.95, 0.85, 0.75, 0.65)


def _sample(graph, **given):
    usual = {"density": 0.75, "train_rate": 0.7, "min_answers": 3, "num_queries": None, "seed": 0}
    return sample(graph, **(usual | given))


def _rows(triples):
    return set(map(tuple, triples.tolist()))


@given(
    density=st.floats(0.3, 1),
    train_rate=st.floats(0.1, 0.6),
    valid_rate=st.floats(0, 0.3),
    model=st.sampled_from(MODELS),
    seed=st.integers(0, 2**40),
)
def test_the_sets_make_up_the_closed_world(closed, density, train_rate, valid_rate, model, seed):
    rates = {"density": density, "train_rate": train_rate, "valid_rate": valid_rate}
    world = _sample(closed, **rates, missing=model, seed=seed)
    parts = [world.train, world.valid, world.test_sparse, world.missing]
    assert sum(map(len, parts)) == len(world.facts)
    assert set.union(*map(_rows, parts)) == _rows(closed.splits["facts"])
    assert _rows(world.test_full) == _rows(world.test_sparse) | _rows(world.missing)
    if not valid_rate:
        assert not len(world.valid)
    if density == 1:
        assert not len(world.missing)


@pytest.mark.parametrize(**BY_NAME)
@pytest.mark.parametrize("density", PUBLISHED)
@pytest.mark.parametrize("valid_rate", [0.0, 0.1])
def test_alpha_comes_out_within_three_deviations(closed, density, model, valid_rate):
    world = _sample(closed, density=density, missing=model, valid_rate=valid_rate)
    found = alpha(world)
    share = 0.7 + valid_rate
    assert found.expected == pytest.approx(density * (1 - share) / (1 - density * share), rel=1e-12)
    assert found.expected == openworld.test_share(density, share)
    assert found.realised == len(world.test_sparse) / len(world.test_full)
    variance = found.expected * (1 - found.expected) / len(world.test_full)
    assert found.deviation == pytest.approx(np.sqrt(variance), rel=1e-12)
    assert found.z == pytest.approx((found.realised - found.expected) / found.deviation)
    assert abs(found.z) < 3


@pytest.mark.parametrize(**BY_NAME)
def test_z_is_as_spread_as_the_deviation_says(closed, model):
    z = [alpha(_sample(closed, missing=model, seed=seed)).z for seed in range(60)]
    assert abs(np.mean(z)) < 4 / np.sqrt(60)
    # The deviation is that of independent facts, and a bound for the others.
    assert 0.3 < np.std(z) < 1.35
    if model == INDEPENDENT:
        assert np.std(z) > 0.65


def test_rates_are_shares_of_what_is_known(closed):
    world = _sample(closed, valid_rate=0.1)
    known, size = len(world.facts) - len(world.missing), len(world.facts)
    for count, share, of in (
        (known, 0.75, size),
        (len(world.train), 0.7, known),
        (len(world.valid), 0.1, known),
    ):
        assert abs(count - share * of) < 4 * np.sqrt(of * share * (1 - share))


def test_nothing_is_missing_at_density_1(closed):
    world = _sample(closed, density=1)
    assert not len(world.missing)
    assert alpha(world) == (1.0, 0.0, 1.0, None)
    assert (world.queries.full == world.queries.sparse).all()


@pytest.mark.parametrize(**BY_NAME)
def test_nested_worlds(closed, model):
    worlds = [
        _sample(
            closed, density=d, missing=model, nested=True, num_queries=50, both_sides=True, valid_rate=0.1
        )
        for d in PUBLISHED
    ]
    for denser, sparser in itertools.pairwise(worlds):
        for name in ("train", "valid", "test_sparse"):
            assert _rows(getattr(sparser, name)) < _rows(getattr(denser, name))
        assert _rows(denser.missing) < _rows(sparser.missing)
        assert _rows(denser.test_full) < _rows(sparser.test_full)


def _queries(world):
    return set(zip(*(column.tolist() for column in world.queries[:3]), strict=True))


def test_nested_worlds_share_queries(closed):
    shared = {}
    for nested in (True, False):
        one, other = (_sample(closed, density=d, nested=nested, num_queries=40) for d in (0.75, 0.65))
        shared[nested] = len(_queries(one) & _queries(other))
    assert shared[True] >= 30 > shared[False]


def test_worlds_of_different_densities_are_independent(closed):
    one, other = (_sample(closed, density=d).part for d in (0.75, 0.65))
    missing = np.corrcoef(one == 3, other == 3)[0, 1]
    assert abs(missing) < 4 / np.sqrt(len(one))
    trains = np.corrcoef(one == 0, other == 0)[0, 1]
    assert abs(trains) < 4 / np.sqrt(len(one))


@pytest.mark.parametrize(**BY_NAME)
@pytest.mark.parametrize("nested", [False, True])
def test_the_order_of_triples_and_splits_changes_nothing(closed, model, nested):
    facts = np.random.default_rng(0).permutation(closed.splits["facts"])
    mixed = closed._replace(splits={"train": facts[:999], "test": facts[900:], "wrong_negatives": facts[:1]})
    one, other = (_sample(graph, missing=model, nested=nested, num_queries=20) for graph in (closed, mixed))
    np.testing.assert_array_equal(one.facts, other.facts)
    np.testing.assert_array_equal(one.part, other.part)
    assert _queries(one) == _queries(other)


def test_seeds_matter_and_are_all_that_does(closed):
    one, again, other = (_sample(closed, seed=seed, num_queries=20) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.part, again.part)
    assert _queries(one) == _queries(again) != _queries(other)
    assert (one.part != other.part).any()


def test_what_is_asked_has_nothing_to_do_with_what_trains():
    # Every fact is a query of its own, so that it can be told what else a drawn one does.
    facts = np.array([[i, 0, i] for i in range(4000)], np.int32)
    graph = KnowledgeGraph(tuple(map(str, range(4000))), ("r",), {"facts": facts})
    few = _sample(graph, train_rate=0.2, min_answers=1, num_queries=1000)
    more = _sample(graph, train_rate=0.6, min_answers=1)
    share = np.isin(few.queries.entity, more.train[:, 0]).mean()
    assert abs(share - 0.5) < 4 * np.sqrt(0.25 / 1000)  # (0.6 - 0.2) / (1 - 0.2)


def test_asking_for_heads_too_changes_no_fact(closed):
    one = _sample(closed)
    both = _sample(closed, both_sides=True)
    np.testing.assert_array_equal(one.part, both.part)
    assert one.queries.asks_tail.all()
    assert _queries(one) == {query for query in _queries(both) if query[0]}
    assert one.num_eligible == len(one.queries.entity) < both.num_eligible == len(both.queries.entity)


def test_queries_are_eligible(closed):
    world = _sample(closed, min_answers=12, num_queries=25, both_sides=True)
    assert len(world.queries.entity) == 25 <= world.num_eligible
    assert world.queries.full.min() >= 12
    assert world.queries.sparse.min() >= 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"density": 0}, r"`density` must be in \(0, 1\], got 0"),
        ({"density": 1.01}, r"`density` must be in \(0, 1\], got 1.01"),
        ({"density": float("nan")}, "`density` must be finite, got nan"),
        ({"density": [0.5, 0.6]}, "`density` must be a single number"),
        ({"density": "half"}, "`density` must be finite, got 'half'"),
        ({"train_rate": 0}, r"`train_rate` must be in \(0, 1\), got 0"),
        ({"train_rate": 1}, r"`train_rate` must be in \(0, 1\), got 1"),
        ({"valid_rate": -0.1}, r"`valid_rate` must be in \[0, 1\), got -0.1"),
        ({"valid_rate": 0.4}, r"`valid_rate` must be below 1 - `train_rate`, 0.3, got 0.4"),
        ({"min_answers": 0}, "`min_answers` must be a whole number of at least 1, got 0"),
        ({"num_queries": 0}, "`num_queries` must be a whole number of at least 1, got 0"),
        ({"num_queries": 2.5}, "`num_queries` must be a whole number"),
        ({"num_queries": 10_000}, r"at density 0.75, `num_queries` must be at most \d+, .* got 10000"),
        ({"seed": -1}, "`seed` must be a whole number of at least 0, got -1"),
        ({"seed": 1.5}, "`seed` must be a whole number of at least 0, got 1.5"),
        ({"seed": True}, "`seed` must be a whole number of at least 0, got True"),
        ({"both_sides": "no"}, "`both_sides` must be True or False, got 'no'"),
        ({"nested": 3}, "`nested` must be True or False, got 3"),
        ({"missing": "node"}, "`missing` must be a missing-fact model, got 'node'"),
        ({"density": 1e-12}, "`train_rate` must leave facts to train, got 0.7 of"),
    ],
)
def test_bad_arguments_are_named(closed, given, message):
    with pytest.raises(ValueError, match=message):
        _sample(closed, **given)


def test_bad_graphs():
    with pytest.raises(ValueError, match="`graph` must be a KnowledgeGraph, got 3"):
        _sample(3)
    with pytest.raises(ValueError, match="`graph` must have facts, got none"):
        _sample(KnowledgeGraph(("a",), ("r",), {}))
    with pytest.raises(ValueError, match=r"`graph` must hold tail ids in \[0, 1\), got 1 in row 0"):
        _sample(KnowledgeGraph(("a",), ("r",), {"facts": np.array([[0, 0, 1]], np.int32)}))


def test_a_seed_may_be_of_any_size(closed):
    worlds = [_sample(closed, seed=seed) for seed in (2**53 + 1, 2**53 + 2, 2**200, np.int64(5))]
    assert len({world.train.tobytes() for world in worlds}) == 4
