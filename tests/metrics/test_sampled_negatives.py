"""Full values that agree with sampled negatives: the truth is inside, and both ends are attained."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from owkg.metrics import full_values, full_values_of_published
from owkg.metrics.sampled_negatives import _chances, _grid
from owkg.rank_weights import hits_at

SIZE, NEGATIVES = 3000, 50
METRICS = ["mrr", "hits@1", "hits@10", "p-mrr@0.5"]


def table(rank, candidates):
    n = len(rank)
    return pl.DataFrame(
        {
            "head": [f"h{i}" for i in range(n)],
            "relation": "r",
            "tail": "t",
            "side": "tail",
            "optimistic": rank,
            "pessimistic": rank,
            "candidates": candidates,
        }
    )


def worlds():
    rng = np.random.default_rng(0)
    for strength in (0.3, 0.7, 0.95):
        yield 1 + (rng.random(4000) ** (1 / (1 - strength)) * (SIZE - 1)).astype(int)


@pytest.mark.parametrize("number", range(3))
def test_the_full_value_is_inside(number):
    rank = list(worlds())[number]
    rng = np.random.default_rng(number)
    sampled = 1 + rng.hypergeometric(rank - 1, SIZE - rank, NEGATIVES)
    found = full_values(table(sampled, NEGATIVES + 1), METRICS, num_entities=SIZE)
    truth = {"mrr": (1 / rank).mean(), "hits@1": (rank <= 1).mean(), "hits@10": (rank <= 10).mean()}
    truth["p-mrr@0.5"] = (rank**-0.5).mean()
    for row in found.iter_rows(named=True):
        assert row["full_low"] <= truth[row["metric"]] <= row["full_high"]
        assert row["full_low"] < row["sampled"]
    assert found.filter(metric="mrr")["sampled"].item() == pytest.approx((1 / sampled).mean())


def test_many_negatives_leave_little_open():
    rank = next(worlds())
    size = NEGATIVES + 1
    clipped = np.minimum(rank, size)
    found = full_values(table(clipped, size), ["mrr"], num_entities=size + 1)
    assert found["full_high"].item() - found["full_low"].item() < 0.25


def test_published_values():
    """The ends are means of distributions that have the published value."""
    chances, grid = _chances(_grid(SIZE, []), SIZE, NEGATIVES), _grid(SIZE, [])
    drawn = (1 / np.arange(1, NEGATIVES + 2)) @ chances
    found = full_values_of_published(
        {"mrr": 0.9}, "mrr", negatives=NEGATIVES, num_entities=SIZE, rounding=0.0
    )
    low, high = found.select("full_low", "full_high").row(0)
    ends = []
    for i in range(len(grid)):  # mixtures of two ranks attain the ends
        for j in np.flatnonzero((drawn - 0.9) * (drawn[i] - 0.9) <= 0):
            share = 1.0 if drawn[i] == drawn[j] else (0.9 - drawn[j]) / (drawn[i] - drawn[j])
            ends.append(share / grid[i] + (1 - share) / grid[j])
    assert low == pytest.approx(min(ends), abs=1e-9)
    assert high == pytest.approx(max(ends), abs=1e-9)
    more = full_values_of_published(
        {"mrr": 0.9, "hits@1": 0.85}, "mrr", negatives=NEGATIVES, num_entities=SIZE
    )
    assert low - 0.001 <= more["full_low"].item() <= more["full_high"].item() <= high + 0.001


def test_chances_are_hypergeometric():
    grid = _grid(400, [])
    expected = stats.hypergeom.pmf(np.arange(21)[:, None], 399, grid[None] - 1, 20)
    np.testing.assert_allclose(_chances(grid, 400, 20), expected, atol=1e-10)
    np.testing.assert_allclose(_chances(_grid(10**6, []), 10**6, 500).sum(0), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: full_values(table([1, 2], [9, 8]), num_entities=10),
            "must all be among the same number of negatives, got .8, 9",
        ),
        (
            lambda: full_values(table([1, 2], 9), num_entities=8),
            "`num_entities` must be more than the 8 negatives",
        ),
        (lambda: full_values(table([1, 2], 9), "mr", num_entities=99), "must be a mean over ranks .* got mr"),
        (lambda: full_values(table([1, 2], 9), [], num_entities=99), "`metrics` must name at least one"),
        (
            lambda: full_values_of_published({"mrr": 2.0}, negatives=5, num_entities=99),
            r"`published` must be in \[0.166667, 1\] for mrr, got 2.0; percentages",
        ),
        (
            lambda: full_values_of_published({"mrr": 0.5, "hits@1": 0.9}, negatives=5, num_entities=99),
            "`published` must be values that some distribution of ranks has",
        ),
        (lambda: full_values_of_published({}, negatives=5, num_entities=99), "`published` must hold"),
        (lambda: full_values_of_published({"mrr": 0.5}, negatives=0, num_entities=9), "`negatives` must"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_band_is_of_whole_queries():
    """Populations of easy queries with many answers and hard ones with one: the set holds the true value."""
    rng = np.random.default_rng(4)

    def drawn(queries):
        easy = rng.random(queries) < 0.3
        head = np.repeat(np.arange(queries), np.where(easy, 40, 1))
        rank = np.where(np.repeat(easy, np.where(easy, 40, 1)), 1, rng.integers(1, SIZE + 1, len(head)))
        above = rng.hypergeometric(rank - 1, SIZE - rank, NEGATIVES)
        return head, rank, above + 1

    truth = (1 / drawn(100_000)[1]).mean()
    held = []
    for _ in range(60):
        head, _, seen = drawn(50)
        frame = table(seen, NEGATIVES + 1).with_columns(head=pl.Series(head.astype(str)), tail=pl.lit("t"))
        frame = frame.with_columns(tail=pl.int_range(pl.len()).cast(pl.String))
        low, high = full_values(frame, "mrr", num_entities=SIZE).select("full_low", "full_high").row(0)
        held.append(low - 1e-9 <= truth <= high + 1e-9)
    assert np.mean(held) >= 0.95


def test_rounding_of_every_metric():
    with pytest.raises(ValueError, match="`rounding` must have every published metric, but has no 'mrr'"):
        full_values_of_published({"mrr": 0.9}, negatives=5, num_entities=99, rounding={"hits@1": 0.1})


def test_weighted_ranks_are_refused():
    frame = table([1, 2], 9).with_columns(weight=pl.Series([1.0, 3.0]))
    with pytest.raises(ValueError, match="`ranks` must not be weighted"):
        full_values(frame, num_entities=99)


def test_far_hits_are_told_apart_at_their_k():
    """Every K of Hits@K is an end of what is told apart: the set is that of all ranks, however far."""
    grid = _grid(3000, [hits_at(400), hits_at(2999), hits_at(9000)])
    assert {400, 401, 2999, 3000} <= set(grid.tolist())
    found = full_values_of_published(
        {"mrr": 0.5, "hits@10": 0.7}, "hits@400", negatives=50, num_entities=3000
    )
    # A linear program over all 3,000 ranks.
    low, high = found.select("full_low", "full_high").row(0)
    assert low == pytest.approx(0.43920, abs=1e-5)
    assert high == pytest.approx(0.73490, abs=1e-5)
