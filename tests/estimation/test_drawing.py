"""Draws: the same for a seed, larger ones hold smaller ones, in an order whose parts are samples."""

import numpy as np
import polars as pl
import pytest

from owkg.estimation.drawing import Asked, Unit, depths, draw, pair_of, size_classes
from owkg.estimation.permanent import permanent_numbers
from owkg.estimation.population import population
from owkg.estimation.proxy import FOLDS, free_proxy, known_share_probabilities, proxy_of, refitted
from tests.estimation.worlds import populated, world

ASKED = [
    Asked(Unit.QUERIES, 12),
    Asked(Unit.QUERIES, 30, "size"),
    Asked(Unit.PREFIXES, 12),
    Asked(Unit.CANDIDATES, 40, None, ("p@5",)),
    Asked(Unit.CANDIDATES, 40, None, ("p@5", "rbp"), ("m0", "m2")),
]


def test_permanent_numbers_are_the_same_on_any_machine():
    """A change of these would make drawn pools unreadable."""
    found = permanent_numbers(7, pl.Series(["a|r|?", "?|s|b"]), pl.Series(["x", "é"]))
    assert found.tolist() == [0.34179763489960857, 0.967870724884143]


def test_permanent_numbers_are_uniform_and_differ_by_seed_and_column():
    names = pl.Series([f"e{i}|r|?" for i in range(20_000)])
    found = permanent_numbers(0, names)
    counts = np.histogram(found, 20, (0, 1))[0]
    assert ((counts - 1000) ** 2 / 1000).sum() < 50
    for other in (permanent_numbers(1, names), permanent_numbers(0, names, names)):
        assert abs(np.corrcoef(found, other)[0, 1]) < 0.03
    swapped = (
        permanent_numbers(0, pl.Series(["a"]), pl.Series(["b"])),
        permanent_numbers(0, pl.Series(["b"]), pl.Series(["a"])),
    )
    assert swapped[0] != swapped[1]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_more_goes_on_where_the_draw_stopped(asked):
    people, _ = populated()
    first = draw(people, asked, seed=3, proxy=free_proxy(people))
    order, batch = first.order()
    assert len(order) == asked.size == len(set(order.tolist()))
    assert not batch.any()
    second = first.more(9)
    longer, batches = second.order()
    assert longer[: len(order)].tolist() == order.tolist()
    assert np.bincount(batches).tolist() == [asked.size, 9]
    # In each stratum they are the units of the smallest numbers: one draw of the whole size is the same.
    for h, n in enumerate(second.counts):
        own = np.flatnonzero(second.stratum == h)
        smallest = own[np.argsort(second.place[own])[:n]]
        assert set(smallest.tolist()) == set(longer[second.stratum[longer] == h].tolist())


def test_units_do_not_depend_on_the_order_of_rows_and_of_systems():
    run, before, _ = world()
    drawn = []
    for frame in (run, run.sample(fraction=1.0, shuffle=True, seed=1)):
        people = population(frame, 5, before)
        drawing = draw(people, Asked(Unit.CANDIDATES, 30), seed=5, proxy=free_proxy(people))
        drawn.append(people.pairs(drawing.frame[drawing.order()[0]]))
    assert drawn[0].equals(drawn[1])


def test_every_unit_is_drawn_as_often_as_its_probability_says():
    people, _ = populated(queries=20)
    proxy, count = free_proxy(people), 0.0
    for seed in range(400):
        drawing = draw(people, Asked(Unit.QUERIES, 10, "size"), seed=seed, proxy=proxy)
        count = count + np.bincount(drawing.order()[0], minlength=20)
    expected = drawing.probabilities
    np.testing.assert_allclose(count / 400, expected, atol=4 * np.sqrt(0.25 / 400))


def test_prefixes_reach_as_deep_as_their_probability_says():
    people, _ = populated(queries=3000, answers=12, depth=6)
    deep = depths(people, 0)
    assert set(deep.tolist()) == {3, 6}
    assert (deep == 6).mean() == pytest.approx(0.34, abs=0.03)


def test_classes_of_sizes_keep_equal_sizes_together():
    sizes = np.random.default_rng(0).geometric(0.3, 500).astype(float)
    found = size_classes(sizes, 5)
    assert all(len(set(found[sizes == one])) == 1 for one in set(sizes))
    assert (np.diff(found[np.argsort(sizes, kind="stable")]) >= 0).all()
    assert np.bincount(found).min() >= 2


def test_few_queries_with_most_of_the_answers_have_classes_of_their_own():
    sizes = np.sort(np.random.default_rng(0).pareto(1.3, 2000))
    found = size_classes(sizes, 4)
    both, count = np.bincount(found, 1 + sizes / sizes.mean()), np.bincount(found)
    assert both.max() / both.min() < 1.1
    assert count[-1] < count[0] / 4


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked(Unit.QUERIES, 61), "`draw` must be at most the 60 queries"),
        (Asked(Unit.QUERIES, 0), "`draw` must be a whole number of at least 1"),
        (Asked(Unit.QUERIES, 5, "relation"), "`strata` must be size or left out"),
        (Asked(Unit.QUERIES, 5, None, ("p@5",)), "`for` must be left out if queries are drawn"),
        (Asked(Unit.CANDIDATES, 5, "size"), "`strata` must be left out if candidates"),
        (Asked(Unit.CANDIDATES, 5, None, ("rr",)), "`for` must be P@k or RBP.*got RR@5: draw prefixes"),
        (
            Asked(Unit.CANDIDATES, 5, None, (), ("m0", "m9")),
            "`for` must be two systems of the runs .*got 'm0-m9'",
        ),
        (Asked(Unit.BELOW, 5), "`draw` must be at most the 0 candidates below depth 5"),
    ],
    ids=str,
)
def test_draws_that_cannot_be(asked, message):
    people, _ = populated()
    with pytest.raises(ValueError, match=message):
        draw(people, asked, seed=0, proxy=free_proxy(people), below=5)


def test_pairs_may_have_hyphens():
    assert pair_of("a-1-b", ("a-1", "b", "c")) == ("a-1", "b")
    for bad in ("a-1", "a-1-c-b", "b"):
        with pytest.raises(ValueError, match="`for` must be two systems"):
            pair_of(bad, ("a-1", "b", "c"))
    with pytest.raises(ValueError, match="got 'a-b-c'"):
        pair_of("a-b-c", ("a", "b-c", "a-b", "c"))


def test_the_free_proxy_says_where_missing_answers_are():
    people, true = populated(0, queries=400)
    proxy, unknown = free_proxy(people), people.unknown
    order = np.argsort(proxy[unknown])
    parts = np.array_split(true[unknown][order], 4)
    assert parts[3].mean() > 3 * parts[0].mean()
    assert proxy[unknown].mean() == pytest.approx(true[unknown].mean(), rel=0.3)
    np.testing.assert_array_equal(proxy[people.label >= 0], people.label[people.label >= 0])


def test_probabilities_follow_bayes():
    truth, share = 0.3, 0.4
    known = truth * share
    assert known_share_probabilities(np.array([known]), share)[0] == pytest.approx(truth * 0.6 / (1 - known))


def test_probabilities_that_are_fitted_again_do_not_know_their_own_queries():
    people, true = populated(0, queries=100)
    rows = np.arange(40)
    fold = np.full(100, -1)
    fold[rows] = rows % FOLDS
    judged = np.where((fold[people.query] >= 0) | (people.label >= 0), true, -1)
    first, folds = refitted(people, judged, free_proxy(people), rows)
    assert folds.tolist() == fold[rows].tolist()
    other = np.where((fold[people.query] == 2) & (people.label < 0), 1 - judged, judged)
    second, _ = refitted(people, other, free_proxy(people), rows)
    np.testing.assert_array_equal(first[2], second[2])
    assert not np.array_equal(first[1], second[1])


def test_probabilities_of_others_are_checked():
    people, _ = populated()
    frame = people.pairs(people.unknown).select("query", "answer").with_columns(probability=pl.lit(0.25))
    assert proxy_of(people, frame, "llm")[people.unknown].tolist() == [0.25] * len(people.unknown)
    for bad, message in (
        (
            frame.drop("probability"),
            "llm: must have the columns query, answer, probability, but has no probability",
        ),
        (
            frame.with_columns(probability=pl.lit(1.5)),
            "llm: must have probabilities in .0, 1., got 1.5 in row 1",
        ),
        (frame[1:], "llm: must have a probability for every unjudged candidate, got none for"),
        (pl.concat([frame, frame[:1]]), "llm: must give each candidate once"),
    ):
        with pytest.raises(ValueError, match=f"`proxy` {message}"):
            proxy_of(people, bad, "llm")
