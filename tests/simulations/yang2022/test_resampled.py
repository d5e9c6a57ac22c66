"""Sparse test sets drawn again for checkpoints, against thinning by hand, and theory beside them."""

import jax
import numpy as np
import polars as pl
import pytest

from owkg import simulate
from owkg.kg import KnowledgeGraph, known_answers
from owkg.rank_weights import MRR
from owkg.simulate import full_test
from simulations.open_world.curves import FULL
from simulations.open_world.query_values import joined, query_values
from simulations.open_world.record import Record
from simulations.open_world.world import SPARSE, ClosedWorld
from simulations.yang2022.predicted import measured_strength, predicted
from simulations.yang2022.resampled import _permuted, agreement, resampled

QUERIES, ANSWERS, N = 40, 6, 80
DRAWS = 300


@pytest.fixture(scope="module")
def case():
    """(world, records): two runs of two and one checkpoints, the later the stronger."""
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(QUERIES), ANSWERS)
    tails = np.concatenate([rng.choice(N, ANSWERS, replace=False) for _ in range(QUERIES)])
    triples = np.stack([query, np.zeros_like(query), tails], axis=1).astype(np.int32)
    present = np.tile(np.arange(ANSWERS) < 3, QUERIES)
    graph = KnowledgeGraph(tuple(map(str, range(N))), ("r",), {"train": np.array([[79, 0, 79]], np.int32)})
    facts = np.concatenate([triples, graph.splits["train"]])
    known = known_answers(facts, "tail", num_entities=N, num_relations=1)
    world = ClosedWorld("w", 0.75, graph, triples, query, {SPARSE: present}, known)

    def looked(better):
        scores = rng.normal(size=(QUERIES, N))
        scores[query, tails] += better
        own = scores[query, tails]
        others = scores.copy()
        others[query, tails] = -np.inf
        rank = 1 + (others[query] > own[:, None]).sum(1)
        return rank.astype(np.int32), own.astype(np.float32)

    def run(*looks):
        rank, score = map(np.stack, zip(*map(looked, looks), strict=True))
        return Record(np.arange(1, 1 + len(looks)), rank, rank, score)

    return world, [run(0.5, 2.0), run(1.4)]


@pytest.fixture(scope="module")
def found(case):
    world, records = case
    curves = query_values(world, records, ["a", "b"], ["complex", "rotate"], metrics=["hits@3", "mrr"])
    return curves, resampled(world, records, curves, draws=DRAWS, seed=1)


def test_the_table_says_what_curves_say(found):
    curves, result = found
    table = result.table
    assert table["configuration"].to_list() == ["a", "a", "b"]
    assert table["model"].to_list() == ["complex", "complex", "rotate"]
    assert table["step"].to_list() == [1, 2, 1]
    for name in (FULL, SPARSE):
        values = curves.values[name][1].astype(np.float64)
        np.testing.assert_allclose(table[name], values.mean(1))
        np.testing.assert_allclose(table[f"{name}_error"], values.std(1, ddof=1) / QUERIES**0.5)


def test_draws_are_those_of_thinning_by_hand(case, found):
    world, records = case
    _, result = found
    rng = np.random.default_rng(7)
    read = []
    for _ in range(DRAWS):
        # Where nothing is left (one query in 64), an answer is: not quite what is resampled.
        drawn = rng.random((QUERIES, ANSWERS)) < 0.5
        drawn |= ~drawn.any(1, keepdims=True) & (np.arange(ANSWERS) == rng.integers(ANSWERS))
        own = world._replace(present={SPARSE: drawn.ravel()})
        read.append(
            query_values(own, records, ["a", "b"], ["m", "m"], metrics=["mrr"]).values[SPARSE][0].mean(1)
        )
    read = np.array(read)
    error = read.std(0) / DRAWS**0.5
    np.testing.assert_array_less(np.abs(result.table["resampled"] - read.mean(0)), 6 * error)
    np.testing.assert_allclose(result.table["resampled_deviation"], read.std(0), rtol=0.25)
    lower, upper = np.quantile(read, (0.025, 0.975), axis=0)
    np.testing.assert_allclose(result.band, [lower, upper], atol=0.02)
    order = np.sign(read[:, 0] - read[:, 2]), np.sign(read[:, 1] - read[:, 2])
    by_hand = [(order[0] > 0).mean(), (order[1] < 0).mean()]
    np.testing.assert_allclose(result.pairs["resampled"], by_hand, atol=0.06)
    assert result.num_pairs == 2
    assert result.inversions == pytest.approx(result.pairs["resampled"].mean())


def test_theory_beside_them(found):
    curves, result = found
    asked = np.full(QUERIES, ANSWERS), N
    strength = measured_strength(MRR, curves.values[FULL][1].astype(np.float64).mean(1), *asked)
    np.testing.assert_allclose(result.table["strength"], strength)
    np.testing.assert_allclose(result.table["predicted"], predicted(MRR, strength, 0.5, *asked).mean)
    # The curve runs from a scorer by chance to one without a mistake, and through what is predicted.
    read, expected = result.theory
    assert read[-1] == pytest.approx(1)
    assert read[0] == pytest.approx(np.mean(1 / np.arange(1, N - ANSWERS + 2)))
    np.testing.assert_allclose(
        np.interp(result.table["full"], read, expected), result.table["predicted"], rtol=1e-3
    )
    assert ((result.pairs["predicted"] > 0) & (result.pairs["predicted"] < 0.5)).all()


def test_ranks_are_permuted_among_queries_of_equal_size():
    query = np.repeat([0, 1, 2, 3], [2, 3, 2, 3])
    rank = np.array([[1, 9, 4, 4, 7, 2, 2, 5, 6, 8]])
    full = full_test(query, rank, rank, -rank.astype(float) + np.linspace(0, 0.1, 10))
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(50):
        permuted = _permuted(full, rng)
        for own in ([0, 1, 5, 6], [2, 3, 4, 7, 8, 9]):
            assert sorted(permuted.optimistic[0, own]) == sorted(rank[0, own])
        seen.add(tuple(permuted.optimistic[0]))
    assert len(seen) > 20


def test_ties_are_permuted_as_one_of_their_ranks():
    query, low, high = np.array([0, 0, 1, 1]), np.array([[3, 5, 5, 5]]), np.array([[9, 9, 5, 6]])
    full = full_test(query, low, high, np.array([[1.0, 1.0, 2.0, 1.0]]))
    rng = np.random.default_rng(0)
    ranks = np.sort([_permuted(full, rng).optimistic[0] for _ in range(400)], axis=1)
    assert set(ranks.ravel()) == set(range(3, 10))
    np.testing.assert_allclose(ranks.mean(), np.mean([6, 7, 5, 5.5]), atol=0.15)


def test_found_answers_together_read_less_than_permuted():
    """Half of the queries are found, half are not: mixed, permuted ranks read more when thinned."""
    query = np.repeat(np.arange(200), 6)
    rank = np.where(query % 2 == 0, 1, 300)[None]
    full = full_test(query, rank, rank, np.random.default_rng(1).random(1200) / 2 - rank)
    permuted = _permuted(full, np.random.default_rng(2))
    asked = np.full(200, 6), 10_000
    strength = measured_strength(MRR, (1 / rank).mean(), *asked)
    together, apart = (
        simulate.resample(jax.random.key(0), of, MRR, sparsity=0.5, draws=300).mean[0, 0]
        for of in (full, permuted)
    )
    expected = predicted(MRR, strength, 0.5, *asked).mean
    assert together < apart - 0.03
    assert apart == pytest.approx(expected, abs=0.01)


def test_agreement_in_numbers():
    table = pl.DataFrame(
        {
            "configuration": ["a", "a", "b", "b"],
            "sparse": [0.5, 0.29, 0.31, 0.4],
            "resampled": [0.5, 0.3, 0.2, 0.44],
            "resampled_lower": [0.0, 0.28, 0.1, 0.38],
            "resampled_upper": [1.0, 0.32, 0.3, 0.5],
            "strength": [0.01, 0.4, 0.4, 0.8],
            "predicted": [0.1, 0.25, 0.25, 0.4],
            "permuted": [0.0, 0.26, 0.27, 0.43],
        }
    )
    found = agreement(table)
    assert found["in_band"] == 0.75
    assert found["error"] == pytest.approx(((0.05**2 + 0.05**2 + 0.04**2) / 3) ** 0.5)
    assert (found["lowest_of"], found["highest_of"]) == ("b", "a")
    assert found["lowest"] == pytest.approx(-0.05)
    assert found["by_ranks"] == pytest.approx(0.06 / 3)
    assert found["by_queries"] == pytest.approx((0.04 - 0.07 + 0.01) / 3)
    assert set(agreement(table, least=0.9)) == {"in_band"}


def test_one_run_has_no_pairs(case):
    world, records = case
    curves = query_values(world, records[:1], ["a"], ["complex"], metrics=["mrr"])
    result = resampled(world, records[:1], curves, draws=10)
    assert result.num_pairs == len(result.pairs) == 0
    assert np.isnan(result.inversions)


def test_the_band_is_of_95_percent_and_follows_the_seed(case, found):
    world, records = case
    curves, result = found
    again = resampled(world, records, curves, draws=DRAWS, seed=1)
    assert again.table.equals(result.table)
    other = resampled(world, records, curves, draws=DRAWS, seed=2)
    assert (other.table["resampled"] != result.table["resampled"]).all()
    assert (other.table["permuted"] != result.table["permuted"]).all()
    key = jax.random.split(jax.random.key(1))[0]
    drawn = simulate.resample(key, joined(world, records), MRR, sparsity=0.5, draws=DRAWS).values[:, :, 0]
    np.testing.assert_allclose(result.band, np.quantile(drawn, (0.025, 0.975), axis=0), rtol=1e-5)


def test_who_reads_worse_than_chance_has_no_strength(case):
    world, records = case
    last = np.full_like(records[0].optimistic, N - ANSWERS)
    worst = records[0]._replace(optimistic=last, pessimistic=last)
    curves = query_values(world, [worst, records[1]], ["a", "b"], ["m", "m"], metrics=["mrr"])
    result = resampled(world, [worst, records[1]], curves, draws=10)
    assert result.table["strength"].to_list()[:2] == [0, 0]
    assert 0 < result.table["strength"][2] < 1
