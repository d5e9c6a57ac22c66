"""Replays of estimates from few judgements."""

import numpy as np
import pytest

from owkg.estimation.measures import measures
from simulations.few_judgements import KINDS, WORLDS, replay_candidates, replay_queries, truths_of, world


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


def test_intervals_of_replays_hold_the_truth():
    made = world("clustered", "edge", queries=300)
    said = {"world": "clustered", "missing": "edge", "queries": 300}
    rows = [*replay_queries(made, 40, 30, 0, **said), *replay_candidates(made, 200, 60, 0, **said)]
    assert {row.design for row in rows} == {"queries", "prefixes", "candidates"}
    assert np.mean([row.coverage for row in rows]) > 0.92
    queries, prefixes = (
        next(r for r in rows if (r.design, r.metric) == (d, "RR@10")) for d in ("queries", "prefixes")
    )
    assert prefixes.judgements < 0.4 * queries.judgements
    assert queries.width < 0.9 * queries.plain
