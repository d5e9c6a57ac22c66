"""Replays of estimates from few judgements."""

import numpy as np
import polars as pl
import pytest

from owkg.estimation import DrawnPool, draw, estimate, free_proxy
from owkg.estimation.drawing import Asked, Unit
from owkg.estimation.measures import measures
from owkg.judge.schema import QRELS
from simulations.few_judgements import annotators, coverage, fb_test_s, replays
from simulations.few_judgements.worlds import DEPTH, KINDS, WORLDS, truths_of, world


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "edge") for name in WORLDS), *(("clustered", k) for k in KINDS)]
)
def test_worlds_miss_about_half_of_their_answers(name, kind):
    people, truth = world(name, kind, queries=200)
    assert (truth[people.label == 1] == 1).all()
    known = (people.label == 1).sum() + people.outside.sum()
    missing = truth[people.unknown].sum()
    assert 0.2 < missing / (missing + known) < 0.6
    # Systems are of growing strength.
    (of,) = measures("p@10", 10)
    assert (np.diff(truths_of(of, world(name, kind, queries=200))[:4]) > 0).all()


@pytest.fixture(scope="module")
def made():
    return world("clustered", "edge", queries=300)


@pytest.mark.parametrize("design", replays.DESIGNS)
def test_intervals_of_replays_hold_the_truth(made, design):
    n = 40 if "queries" in design or design == "prefixes" else 200
    rows = replays.replayed(replays.DESIGNS[design](made, n), 40, 0)
    assert rows["coverage"].mean() > 0.92
    assert (rows["width"] > 0).all()


class Places(np.random.Generator):
    """A generator of random numbers that gives those of a draw."""

    def __init__(self, place):
        super().__init__(np.random.PCG64(0))
        self.place = place

    def random(self, size):
        assert size == len(self.place)
        return self.place


@pytest.mark.parametrize(
    ("design", "asked"),
    [
        ("queries", Asked(Unit.QUERIES, 60)),
        ("queries, strata", Asked(Unit.QUERIES, 60, "size")),
        ("candidates", Asked(Unit.CANDIDATES, 200)),
    ],
)
def test_replays_are_what_estimate_gives(made, design, asked):
    people, truth = made
    proxy = free_proxy(people)
    known = people.pairs(np.flatnonzero(people.label == 1)).with_columns(relevance=pl.lit(1, pl.Int64))
    drawing = draw(people, asked, seed=3, proxy=proxy)
    chosen = drawing.candidates(people, people.label, drawing.order()[0])
    judged = people.asked().with_columns(relevance=pl.Series(truth.astype(np.int64))).filter(chosen)
    replay = replays.DESIGNS[design](made, asked.size).replay(Places(drawing.place))
    missing = replay.found.pop("missing share", None)
    found = estimate(
        DrawnPool(people, drawing, proxy, known, DEPTH), judged.select(QRELS), list(replay.found)
    )
    assert found.metrics["judgements"][0] == replay.judgements
    for metric, (low, high, _) in replay.found.items():
        tables = [table.filter(metric=metric) for table in (found.metrics, found.differences)]
        ends = pl.concat([table.select("ci_low", "ci_high") for table in tables]).to_numpy().T
        # Candidates are replayed without what known answers add.
        base = ends[0] - low if missing else np.zeros(len(low))
        np.testing.assert_allclose(ends, [low + base, high + base], atol=1e-12)
    if missing:
        assert (found.missing.low, found.missing.high) == pytest.approx((missing[0][0], missing[1][0]))


def test_a_proxy_narrows_intervals_and_prefixes_take_fewer_judgements(made):
    free = replays.replayed(replays.of_whole_queries(made, 40), 20, 0).filter(metric="RR@10")
    prefixes = replays.replayed(replays.of_random_prefixes(made, 40), 20, 0).filter(metric="RR@10")
    single = free.head(4)
    assert (single["width"] < 0.9 * single["plain"]).all()
    assert prefixes["judgements"][0] < 0.4 * free["judgements"][0]


def test_blocks_are_read_again_and_joined(made, tmp_path):
    of = [coverage.Setting("clustered", "edge", 300, "prefixes", 20)]
    first = coverage.found_in(tmp_path, of, 300, 0)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert first["replays"].unique().to_list() == [300]
    stamps = [file.stat().st_mtime_ns for file in files]
    assert coverage.found_in(tmp_path, of, 300, 0).equals(first)
    assert [file.stat().st_mtime_ns for file in files] == stamps
    both = pl.concat([pl.read_parquet(file) for file in files]).filter(metric="RR@10", target="m0")
    mean = (both["coverage"] * both["replays"]).sum() / 300
    assert first.filter(metric="RR@10", target="m0")["coverage"][0] == pytest.approx(mean)


def test_correction_and_planned_looks_restore_coverage(made):
    rows = pl.DataFrame(annotators.with_errors(made, 0.1, 0.1, 25, 0)).filter(metric="P@10")
    of = dict(rows.select("how", "coverage").rows())
    assert of["as judged"] < 0.3
    assert of["known rates"] > 0.9
    looks = annotators.with_looks(made, (30, 60, 90, 120), 60, 0)
    assert looks["planned"] < looks["naive"]


def test_draws_from_published_judgements_hold_their_share():
    rng = np.random.default_rng(0)
    depth = rng.integers(1, 11, 2000).astype(float)
    positive = (rng.random(2000) < 1 / (1 + depth)).astype(float)
    low, high = fb_test_s.pool_share(depth, positive, 300, 200, 200, 0)
    share = positive.sum() / (positive.sum() + 300)
    assert np.mean((low <= share) & (share <= high)) > 0.9
    deep = depth > 5
    low, high = fb_test_s.count_below(positive[deep], depth[deep], 200, 200, 0)
    assert np.mean((low <= positive[deep].sum()) & (positive[deep].sum() <= high)) > 0.9
