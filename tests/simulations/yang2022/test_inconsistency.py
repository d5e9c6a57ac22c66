"""Inconsistent pairs: by a loop over all pairs, by construction, and at the limits."""

import itertools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulations.open_world.curves import Curves
from simulations.yang2022.inconsistency import Contradiction, groups, inconsistency, largest_contradiction
from simulations.yang2022.pairs import tiles_of
from simulations.yang2022.resampling import interval, query_counts

pytestmark = pytest.mark.usefixtures("quick_compilation")
KEY = jax.random.key(11)
SHARES = ("inconsistent", "of_distinct", "contradicting", "distinct")


def curves_of(values, config, models=None, *, metrics=("mrr",)):
    """Curves of one metric from values by test set, [checkpoints, queries]."""
    config = np.asarray(config, np.int32)
    labels = tuple(f"c{i}" for i in range(int(config.max()) + 1))
    return Curves(
        0.75,
        metrics,
        labels,
        models or tuple(f"m{i}" for i in range(len(labels))),
        config,
        np.arange(len(config), dtype=np.int64),
        {name: np.asarray(each, np.float32)[None] for name, each in values.items()},
    )


def drawn(seed, sizes, queries=20):
    """Curves whose strengths lie close together, so that some orders are beyond error and some are not."""
    rng = np.random.default_rng(seed)
    config = rng.permutation(np.repeat(range(len(sizes)), sizes))
    strength = 0.3 * rng.random((len(config), 1))
    easy = rng.normal(size=queries)
    values = {
        name: strength * slope + easy + 0.2 * rng.normal(size=(len(config), queries))
        for name, slope in (("full", 1), ("sparse", 0.4), ("correlated", -0.2))
    }
    return curves_of(values, config, tuple("abcabc"[: len(sizes)]))


def by_loop(curves, test_set, group, z, count=None):
    """The four shares by a loop over pairs of checkpoints, of queries drawn `count` times."""
    queries = curves.values["full"].shape[-1]
    weight = np.ones(queries) if count is None else count.astype(float)
    full, sparse = (curves.values[name][0].astype(float) for name in ("full", test_set))
    pairs = distinct = contradicting = inconsistent = 0
    for i, j in itertools.combinations(range(len(full)), 2):
        if group[i] == group[j]:
            continue
        pairs += 1
        seen = []
        for values in (full, sparse):
            each = np.repeat(values[i] - values[j], weight.astype(int))
            mean = each.mean() if np.ptp(each) > 0 or each[0] != 0 else 0.0
            seen.append((mean, abs(mean) > z * each.std(ddof=1) / np.sqrt(queries)))
        against = seen[0][0] * seen[1][0] < 0
        distinct += seen[0][1]
        contradicting += against
        inconsistent += against and seen[0][1] and seen[1][1]
    of_distinct = inconsistent / distinct if distinct else np.nan
    return inconsistent / pairs, of_distinct, contradicting / pairs, distinct / pairs


@settings(max_examples=15)
@given(
    st.integers(0, 10**6),
    st.sampled_from([(1, 1), (3, 5), (4, 1, 7), (2, 2, 2, 2, 2)]),
    st.sampled_from([0.5, 1.0, 1.96]),
    st.sampled_from(["configuration", "model"]),
)
def test_shares_are_those_of_a_loop_over_pairs(seed, sizes, z, apart):
    curves = drawn(seed, sizes)
    counts = query_counts(KEY, 20, 3)
    found = inconsistency(curves, "mrr", ["sparse", "correlated"], counts, apart=apart, z=z)
    group = curves.config if apart == "configuration" else [curves.models[c] for c in curves.config]
    for test_set, shares in found.items():
        expected = by_loop(curves, test_set, group, z)
        np.testing.assert_allclose([getattr(shares, name).value for name in SHARES], expected, rtol=1e-12)
        for i, count in enumerate(counts):
            expected = by_loop(curves, test_set, group, z, count)
            found_here = [getattr(shares, name).replicates[i] for name in SHARES]
            np.testing.assert_allclose(found_here, expected, rtol=1e-12)


@pytest.mark.parametrize("sizes", [(70, 3), (33, 65, 1)], ids=str)
def test_groups_of_several_tiles(sizes):
    curves = drawn(1, sizes)
    tiles = tiles_of(curves.config, 20)
    assert len(tiles.pairs) > 1
    counts = query_counts(KEY, 20, 2)
    found = inconsistency(curves, "mrr", ["correlated"], counts)["correlated"]
    assert found.pairs == tiles.num_pairs
    expected = by_loop(curves, "correlated", curves.config, 1.96)
    assert expected[0] > 0
    np.testing.assert_allclose([getattr(found, name).value for name in SHARES], expected, rtol=1e-12)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=200), st.integers(2, 10**6))
def test_tiles_hold_every_pair_of_different_groups_once(group, queries):
    group = np.array(group)
    tiles = tiles_of(group, queries)
    found = [
        (tiles.checkpoint[tile][real], group[tiles.checkpoint[tile][real]])
        for tile, real in enumerate(tiles.real)
    ]
    assert sorted(np.concatenate([members for members, _ in found])) == list(range(len(group)))
    assert all(len(set(names)) == 1 for _, names in found)
    pairs = sum(len(found[one][0]) * len(found[two][0]) for one, two in tiles.pairs)
    assert pairs == tiles.num_pairs == sum(a != b for a, b in itertools.combinations(group, 2))


def test_equal_tests_contradict_nothing():
    curves = drawn(0, (6, 6))
    curves.values["sparse"][:] = curves.values["full"]
    found = inconsistency(curves, "mrr", ["sparse"], query_counts(KEY, 20, 50))["sparse"]
    assert found.distinct.value > 0.1
    for shares in (found.inconsistent, found.of_distinct, found.contradicting):
        assert shares.value == 0
        assert not shares.replicates.any()
        assert interval(shares, within=(0, 1)) == (0, 0)
    assert largest_contradiction(curves, "mrr", "sparse") is None


def test_opposite_tests_contradict_everything_that_differs():
    curves = drawn(0, (6, 6))
    curves.values["sparse"][:] = -curves.values["full"]
    found = inconsistency(curves, "mrr", ["sparse"], query_counts(KEY, 20, 50))["sparse"]
    assert found.contradicting.value == found.of_distinct.value == 1
    np.testing.assert_array_equal(found.inconsistent.replicates, found.distinct.replicates)


def test_equal_checkpoints_are_in_no_order():
    rng = np.random.default_rng(0)
    one = rng.random(300)
    sparse = rng.random((6, 300))
    curves = curves_of({"full": np.tile(one, (6, 1)), "sparse": sparse}, [0, 1, 0, 1, 2, 2])
    found = inconsistency(curves, "mrr", ["sparse"], query_counts(KEY, 300, 50))["sparse"]
    for name in ("inconsistent", "contradicting", "distinct"):
        assert getattr(found, name).value == 0
        assert not getattr(found, name).replicates.any()
    assert np.isnan(found.of_distinct.value)


def test_a_difference_that_is_the_same_on_all_queries_is_beyond_any_error():
    one = np.random.default_rng(0).random(50)
    curves = curves_of({"full": [one, one + 0.25], "sparse": [one, one - 0.25]}, [0, 1])
    found = inconsistency(curves, "mrr", ["sparse"], query_counts(KEY, 50, 20))["sparse"]
    assert found.inconsistent.value == 1
    assert (found.inconsistent.replicates == 1).all()


def planted(larger=True):
    """Three configurations; checkpoint 4 is better than 1 on the full test and reads worse, by far."""
    rng = np.random.default_rng(2)
    full = np.array([0.2, 0.4, 0.1, 0.3, 0.5, 0.15])
    sparse = np.array([0.2, 0.4, 0.1, 0.25, 0.3, 0.15])
    sign = 1 if larger else -1
    values = {
        name: sign * means[:, None] + 0.05 * rng.normal(size=(6, 100))
        for name, means in (("full", full), ("sparse", sparse))
    }
    return curves_of(values, [0, 0, 0, 1, 1, 2], ("a", "b", "b"), metrics=("mrr" if larger else "mr",))


@pytest.mark.parametrize("larger", [True, False])
def test_a_planted_contradiction_is_found(larger):
    curves = planted(larger)
    metric = curves.metrics[0]
    found = inconsistency(curves, metric, ["sparse"], query_counts(KEY, 100, 20))["sparse"]
    assert found.pairs == 6 + 3 + 2
    assert found.inconsistent.value == 1 / 11
    best = largest_contradiction(curves, metric, "sparse")
    assert isinstance(best, Contradiction)
    assert best[:2] == (4, 1)
    for name, z in (("full", best.z_full), ("sparse", best.z_sparse)):
        each = np.subtract(*curves.values[name][0, [4, 1]].astype(float))
        np.testing.assert_allclose(z, abs(each.mean()) / (each.std(ddof=1) / 10), rtol=1e-6)


def test_the_largest_contradiction_is_that_of_a_loop():
    curves = drawn(3, (40, 35, 5))
    values = [curves.values[name][0].astype(float) for name in ("full", "correlated")]
    best = -1.0
    for i, j in itertools.combinations(range(80), 2):
        z = [each.mean() / each.std(ddof=1) * 20**0.5 for each in (v[i] - v[j] for v in values)]
        if curves.config[i] != curves.config[j] and z[0] * z[1] < 0:
            best = max(best, min(map(abs, z)))
    found = largest_contradiction(curves, "mrr", "correlated")
    np.testing.assert_allclose(min(found.z_full, found.z_sparse), best, rtol=1e-9)
    assert np.diff([v.mean() for v in values[0][[found.worse, found.better]]]) > 0


def test_intervals_cover_at_about_their_level():
    """The share that contradicts, over samples of queries; its truth is its mean over samples."""
    rng = np.random.default_rng(8)
    strength = np.tile(np.linspace(0.1, 0.6, 6), 4)[:, None]
    tilt = np.repeat([-0.05, -0.02, 0.02, 0.05], 6)[:, None]
    found = []
    for i in range(120):
        values = {
            "full": strength + 0.3 * rng.normal(size=(24, 100)),
            "sparse": 0.3 * strength + tilt + 0.3 * rng.normal(size=(24, 100)),
        }
        curves = curves_of(values, np.repeat(range(4), 6))
        counts = query_counts(jax.random.key(i), 100, 100)
        found.append(inconsistency(curves, "mrr", ["sparse"], counts)["sparse"])
    for name, least in (("contradicting", 0.85), ("inconsistent", 0.85), ("distinct", 0.85)):
        each = [getattr(shares, name) for shares in found]
        truth = np.mean([resampled.value for resampled in each])
        ends = [interval(resampled, within=(0, 1)) for resampled in each]
        assert np.mean([low <= truth <= high for low, high in ends]) >= least, name


# --- bad input


def test_a_single_configuration_cannot_be_inconsistent():
    curves = drawn(0, (5,))
    counts = query_counts(KEY, 20, 2)
    message = r"at least two configurations to compare, got 1 \(c0\)"
    with pytest.raises(ValueError, match=message):
        inconsistency(curves, "mrr", ["sparse"], counts)
    with pytest.raises(ValueError, match=message):
        largest_contradiction(curves, "mrr", "sparse")


def test_two_configurations_of_one_model_are_no_two_models():
    curves = drawn(0, (3, 3))._replace(models=("rotate", "rotate"))
    assert groups(curves).tolist() == curves.config.tolist()
    with pytest.raises(ValueError, match=r"at least two models to compare, got 1 \(rotate\)"):
        groups(curves, "model")


@pytest.mark.parametrize("apart", ["label", "", None, 3])
def test_bad_apart(apart):
    with pytest.raises(ValueError, match="`apart` must be one of configuration, model"):
        groups(drawn(0, (3, 3)), apart)


@pytest.mark.parametrize("z", [-1, np.nan, np.inf, "2", None, [1, 2]])
def test_bad_z(z):
    with pytest.raises(ValueError, match="`z` must be"):
        inconsistency(drawn(0, (3, 3)), "mrr", ["sparse"], query_counts(KEY, 20, 2), z=z)


def test_bad_names_and_values():
    curves, counts = drawn(0, (3, 3)), query_counts(KEY, 20, 2)
    with pytest.raises(ValueError, match=r"`test_set` must be one of sparse, correlated, got 'dense'"):
        inconsistency(curves, "mrr", ["sparse", "dense"], counts)
    with pytest.raises(ValueError, match="`test_sets` must name at least one"):
        inconsistency(curves, "mrr", [], counts)
    with pytest.raises(ValueError, match=r"`metric` must be one of mrr, got 'hits@1'"):
        largest_contradiction(curves, "hits@1", "sparse")
    curves.values["correlated"][0, 1, 2] = np.inf
    with pytest.raises(ValueError, match=r"must be finite, got inf at index \(0, 1, 2\)"):
        inconsistency(curves, "mrr", ["sparse"], counts)
