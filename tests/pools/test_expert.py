"""A sample of judged candidates for an expert, and what the expert says."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.ir import POOLED
from owkg.pools import expert_check, expert_sample


def labelled(relevances):
    asked = {"query": "a|r|?", "side": "tail", "entity": "a", "relation": "r"}
    return pl.DataFrame([asked | {"answer": a, "relevance": g} for a, g in relevances.items()])


@given(counts=st.tuples(*[st.integers(0, 12)] * 3), seed=st.integers(0, 99), data=st.data())
def test_as_many_of_one_relevance_as_of_another(counts, seed, data):
    relevances = [g for g, count in zip((POOLED, 0, 1), counts, strict=True) for _ in range(count)]
    judged = counts[1] + counts[2]
    if not judged:
        return
    frame = labelled({f"b{i}": g for i, g in enumerate(relevances)})
    size = data.draw(st.integers(1, judged))
    found = expert_sample(frame, size, seed=seed)
    drawn = [int((found["relevance"] == g).sum()) for g in (0, 1)]
    assert (len(found), sum(drawn)) == (size, size)
    # As even as the counts allow.
    for mine, of, other in ((0, counts[1], 1), (1, counts[2], 0)):
        assert drawn[mine] == of or drawn[mine] >= drawn[other] - 1
    assert found.join(frame, on=frame.columns).height == size
    assert found.equals(expert_sample(frame.reverse(), size, seed=seed))


def test_every_candidate_is_as_likely():
    frame = labelled({f"b{i}": int(i < 4) for i in range(10)})
    draws = pl.concat([expert_sample(frame, 4, seed=seed) for seed in range(2000)])
    times = draws.group_by("relevance", "answer").len()
    for relevance, share in ((1, 2 / 4), (0, 2 / 6)):
        seen = times.filter(relevance=relevance)["len"].to_numpy()
        assert abs(seen / 2000 - share).max() < 4 * (share * (1 - share) / 2000) ** 0.5


def test_what_the_expert_says():
    said = labelled({f"b{i}": int(i < 5) for i in range(10)} | {"x": POOLED})
    expert = labelled({"b0": 1, "b1": 1, "b2": 0, "b7": 0, "b8": 0, "b9": POOLED, "x": 1})
    found = expert_check(said, expert)
    rows = found.shares.select("relevance", "candidates", "equal").rows()
    assert rows == [(None, 5, 4), (0, 2, 2), (1, 3, 2)]
    assert found.agreement.unsure == 2
    assert found.agreement.agreeing == found.shares["share"][0] == 0.8
    for count, equal, lower, upper in found.shares.select("candidates", "equal", "lower", "upper").rows():
        wilson = stats.binomtest(equal, count).proportion_ci(0.95, method="wilson")
        assert (lower, upper) == pytest.approx((wilson.low, wilson.high), abs=1e-12)


def test_the_published_check():
    """Section 3.2: 200 triples, half positive, 92 % as the expert says; kappa .84 if errors are even."""
    said = labelled({f"b{i}": int(i < 100) for i in range(200)})
    wrong = {*range(8), *range(100, 108)}
    expert = labelled({f"b{i}": int((i < 100) != (i in wrong)) for i in range(200)})
    found = expert_check(said, expert)
    assert found.agreement.kappa == pytest.approx(0.84)
    assert found.shares.row(0)[:4] == (None, 200, 184, 0.92)


@pytest.mark.parametrize("size", [0, 11, 1.5])
def test_bad_sizes(size):
    with pytest.raises(ValueError, match="`size`"):
        expert_sample(labelled({f"b{i}": 0 for i in range(10)}), size, seed=0)


def test_nothing_in_common():
    with pytest.raises(ValueError, match="must share a judged candidate"):
        expert_check(labelled({"b": 1}), labelled({"c": 1}))
