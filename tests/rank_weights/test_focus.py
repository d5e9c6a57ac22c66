"""Focus of rank weights against sums by hand; the best falling weight against another solver, and KKT."""

import re

import numpy as np
import pytest
from scipy import optimize

from owkg.rank_weights import MR, MRR, RankWeight, binned_weight, focus_of, hits_at, rank_weight
from owkg.rank_weights.fitted import bin_changes, bin_ends
from owkg.rank_weights.focus import best_decreasing, focus_of_bins
from owkg.rank_weights.registry import plain


@pytest.mark.parametrize("k", [1, 2, 10, 99])
def test_hits_look_at_k_ranks(k):
    assert focus_of(hits_at(k), 100) == pytest.approx(1 / k)


@pytest.mark.parametrize("persistence", [0.5, 0.8, 0.95])
def test_rank_biased_precision_has_the_focus_of_its_stopping(persistence):
    weight = RankWeight("rbp", lambda rank: persistence ** (rank - 1))
    assert focus_of(weight, 2000) == pytest.approx(1 - persistence)


@pytest.mark.parametrize("entry", plain(), ids=lambda entry: entry.name)
def test_the_focus_is_one_over_the_mean_last_rank_of_a_reader(entry):
    metric = rank_weight(entry.example)
    h = np.array([float(metric.weight(np.array([float(r)]))[0]) for r in range(1, 41)])
    scaled = (h - h[-1]) / (h[0] - h[-1])
    stops = scaled - np.append(scaled[1:], 0)
    assert (stops >= 0).all()
    assert focus_of(metric, 40) == pytest.approx(1 / (stops @ np.arange(1, 41)))


def test_the_table_of_the_docstring():
    rows = re.findall(r"^ {8}(\S+) +([.\d]+) +([\d.,]+)$", focus_of.__doc__ or "", re.MULTILINE)
    assert len(rows) == 7
    for name, focus, depth in rows:
        found = focus_of(rank_weight(name), 14541)
        assert found == pytest.approx(float(focus), rel=0.03)
        assert 1 / found == pytest.approx(float(depth.replace(",", "")), rel=0.005)


def test_a_weight_that_counts_all_ranks_alike_has_the_least_focus():
    assert focus_of(hits_at(50), 40) == 1 / 40 < focus_of(MR, 40)


@pytest.mark.parametrize(
    ("metric", "last", "message"),
    [
        (
            RankWeight("low", lambda rank: rank),
            9,
            "`metric` must be the mean of a rank weight that does not rise",
        ),
        (rank_weight("gmr"), 9, "`metric` must be the mean"),
        (MRR, 1, "`largest_rank` must be a whole number of at least 2"),
    ],
)
def test_what_has_no_focus(metric, last, message):
    with pytest.raises(ValueError, match=message):
        focus_of(metric, last)


def test_equal_bins_are_equal_metrics():
    one, two = (binned_weight("b", np.array([1, 3]), [1.0, 0.25]) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert one != binned_weight("b", [1, 3], [1.0, 0.5])
    assert focus_of(one, 10) == pytest.approx(1 / 1.5)
    assert focus_of_bins(np.array([1.0, 0.25]), np.array([1, 3])) == pytest.approx(1 / 1.5)


@pytest.mark.parametrize(
    ("ends", "values", "message"),
    [([2, 1], [1, 1], "`ends` must be"), ([1, 2], [1], "`values` must have shape .2,")],
)
def test_bad_bins(ends, values, message):
    with pytest.raises(ValueError, match=message):
        binned_weight("b", ends, values)


ENDS = np.array([1, 2, 3, 5, 8, 13, 20])
FOCUSES = [0.0, 0.08, 0.2, 1 / 3, 0.6, 0.97, 1.0]


def problem(seed):
    """(d, S): of which the model with the larger mean is better in most of the steps."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(7, 9)) * rng.uniform(0.1, 2, (7, 1))
    return rng.normal(0.1, 0.3, 7), factor @ factor.T


def ratio(weight, change, spread):
    gain = weight @ change
    return weight @ spread @ weight / gain**2 if gain > 0 else np.inf


def by_rays(change, spread, focus):
    """The least ratio over the cone, as non-negative sums of its extreme rays."""
    room = 1 - focus * ENDS
    steps = np.tril(np.ones((7, 7)))
    rays = [steps[i] for i in range(7) if room[i] >= 0]
    rays += [
        -room[j] * steps[i] + room[i] * steps[j] for i in range(7) for j in range(7) if room[j] < 0 < room[i]
    ]
    rays = np.array([ray / np.sqrt(ray @ spread @ ray) for ray in rays])
    root = np.linalg.cholesky(spread)
    amounts, _ = optimize.nnls(root.T @ rays.T, np.linalg.solve(root, change), maxiter=1000)
    return ratio(amounts @ rays, change, spread)


@pytest.mark.parametrize("focus", FOCUSES)
def test_the_best_weight_is_that_of_another_solver(focus):
    reached = 0
    for seed in range(40):
        change, spread = problem(seed)
        weight = best_decreasing(change, spread, ENDS, focus)
        assert ratio(weight, change, spread) == pytest.approx(by_rays(change, spread, focus), rel=1e-6)
        assert (np.diff(weight) <= 1e-9).all()
        if weight[0] > 0:
            assert weight[0] == pytest.approx(1)
            assert focus_of_bins(weight, ENDS) >= focus - 1e-9
            reached += 1
    assert reached > 15


# No end is the depth, so that the conditions name the price.
@pytest.mark.parametrize("focus", [0.0, 0.06, 0.18, 0.35, 0.6, 0.97])
def test_the_conditions_of_karush_kuhn_and_tucker(focus):
    """With G, g and r of the steps: G a = g + price r + (what is not negative, and 0 where a is not)."""
    tight = 0
    for seed in range(40):
        change, spread = problem(seed)
        weight = best_decreasing(change, spread, ENDS, focus)
        if weight[0] == 0:
            continue
        # On the scale on which the programme has its least value.
        weight = weight * (weight @ change) / (weight @ spread @ weight)
        amounts = weight - np.append(weight[1:], 0)
        slope = np.cumsum(spread @ weight - change)
        room = 1 - focus * ENDS
        used = amounts > 1e-9 * amounts.max()
        slack = room @ amounts
        assert slack >= -1e-8 * amounts.max()
        price = max((slope[used] @ room[used]) / (room[used] @ room[used]), 0) if slack < 1e-7 else 0.0
        tight += price > 0
        rest = slope - price * room
        np.testing.assert_allclose(rest[used], 0, atol=1e-6 * np.abs(change).sum())
        assert (rest >= -1e-6 * np.abs(change).sum()).all()
    assert tight > 10 or focus < 0.1


def test_ranks_that_are_never_reached_count_for_nothing():
    change, spread = problem(3)
    wide = np.zeros((9, 9))
    at = [0, 1, 2, 4, 5, 6, 8]
    wide[np.ix_(at, at)] = spread
    more = np.zeros(9)
    more[at] = change
    ends = np.array([1, 2, 3, 4, 5, 8, 13, 17, 20])
    weight = best_decreasing(more, wide, ends, 0.2)
    narrow = best_decreasing(change, spread, ENDS, 0.2)
    assert ratio(weight, more, wide) <= ratio(narrow, change, spread) * (1 + 1e-9)
    assert np.isfinite(weight).all()


@pytest.mark.parametrize("sizes", [[2, 1, 1, 1, 4, 27], [1, 3, 1, 60]])
def test_fewer_queries_than_bins_have_best_weights_of_the_focus_that_is_asked_for(sizes):
    """Covariances without full rank, whose rounding made them indefinite."""
    query, share = np.repeat(np.arange(len(sizes)), sizes), 1 / np.array(sizes)
    fitted_some = 0
    for seed in range(60):
        ranks = np.exp(np.random.default_rng(seed).uniform(0, 9, (2, len(query)))).astype(int)
        ends = bin_ends(9000)
        change = bin_changes(query, ranks, ends) * share[:, None]
        spread = np.cov(change, rowvar=False)
        for focus in (0.0, 0.02, 0.2, 1.0):
            weight = best_decreasing(change.mean(0), spread, ends, focus)
            assert (np.diff(weight) <= 1e-9).all()
            if weight[0] > 0:
                assert focus_of_bins(weight, ends) >= focus - 1e-9
                fitted_some += 1
    assert fitted_some > 100


def test_no_weight_where_the_other_model_is_better_by_all():
    _, spread = problem(0)
    assert not best_decreasing(-np.ones(7), spread, ENDS, 0.2).any()
    assert not best_decreasing(np.zeros(7), np.zeros((7, 7)), ENDS).any()
