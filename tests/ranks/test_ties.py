"""One rank out of a tie."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from owkg.ranks import random_ranks, realistic

TIES = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 50)), min_size=1, max_size=20)


@given(ties=TIES, seed=st.integers(0, 9))
def test_every_rank_lies_between_its_bounds(ties, seed):
    low, width = np.array(ties).T
    high = low + width
    drawn = random_ranks(jax.random.key(seed), low, high)
    assert drawn.dtype == np.int64
    assert ((low <= drawn) & (drawn <= high)).all()
    assert (realistic(low, high) * 2 == low + high).all()


def test_equal_keys_give_equal_ranks_and_others_do_not():
    low, high = np.full(64, 1), np.full(64, 1000)
    first = random_ranks(jax.random.key(1), low, high)
    assert (first == random_ranks(jax.random.key(1), low, high)).all()
    assert (first != random_ranks(jax.random.key(2), low, high)).any()


def test_all_ranks_of_a_tie_are_equally_likely():
    drawn = random_ranks(jax.random.key(0), np.full(70_000, 4), np.full(70_000, 10))
    counts = np.bincount(drawn, minlength=11)[4:]
    assert counts.sum() == 70_000
    assert stats.chisquare(counts).pvalue > 1e-3


def test_ranks_beyond_32_bits():
    far = 2**40
    drawn = random_ranks(jax.random.key(0), [far] * 9, [far + 1] * 9)
    assert set(drawn.tolist()) == {far, far + 1}


@pytest.mark.parametrize("rule", [realistic, lambda *ranks: random_ranks(jax.random.key(0), *ranks)])
@pytest.mark.parametrize(
    ("optimistic", "pessimistic", "message"),
    [
        ([0], [1], "`optimistic` must be a whole number of at least 1, got 0"),
        ([1.5], [2], "`optimistic` must be a whole number of at least 1, got 1.5"),
        ([1, 3], [1, 2], "`optimistic` must be at most the pessimistic rank, got 3 at index (1,)"),
        ([1], [np.nan], "`pessimistic` must be a whole number of at least 1, got nan"),
        ([1], [1, 2], "`optimistic` must have the shape of `pessimistic`"),
    ],
)
def test_bad_ranks_are_named(rule, optimistic, pessimistic, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
        rule(optimistic, pessimistic)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("key", [-1, 0.0, None, np.zeros(2, np.uint32)])
def test_what_is_no_key_is_refused(key):
    with pytest.raises(ValueError, match=r"`key` must be one key of jax\.random\.key"):
        random_ranks(key, [1], [2])
