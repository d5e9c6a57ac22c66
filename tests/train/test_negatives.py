"""Negatives are uniform over what is not known, and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.train import negatives

pytestmark = pytest.mark.usefixtures("quick_compilation")


def as_arrays(sets):
    """(answers, start, stop, most) of sets of ids."""
    # Padded, so that few shapes are compiled; nothing reads beyond the last end.
    flat = np.zeros(24, np.int32)
    found = [entity for s in sets for entity in sorted(s)]
    flat[: len(found)] = found
    ends = np.cumsum([len(s) for s in sets])
    starts = ends - [len(s) for s in sets]
    return *(jnp.asarray(x, jnp.int32) for x in (flat, starts, ends)), max(map(len, sets))


# Two numbers of queries, each compiled once for each of the sizes below.
known_sets = st.sampled_from([1, 3]).flatmap(
    lambda n: st.lists(st.sets(st.integers(0, 8), min_size=1, max_size=8), min_size=n, max_size=n)
)


@given(known_sets, st.integers(0, 2**31))
def test_never_a_known_answer(sets, seed):
    answers, start, stop, most = as_arrays(sets)
    drawn = negatives.unknown(
        jax.random.key(seed), answers, start, stop, num_negatives=16, num_entities=9, most=most
    )
    for row, known in zip(np.asarray(drawn), sets, strict=True):
        assert set(row.tolist()) <= set(range(9)) - known


def test_every_other_entity_equally_often():
    known = {0, 3, 4, 8}
    answers, start, stop, most = as_arrays([{5}, known])
    drawn = negatives.unknown(
        jax.random.key(1), answers, start, stop, num_negatives=50_000, num_entities=9, most=most
    )
    counts = np.bincount(np.asarray(drawn[1]), minlength=9)
    assert counts[sorted(known)].sum() == 0
    others = np.delete(counts, sorted(known))
    deviation = np.sqrt(50_000 * 0.2 * 0.8)
    assert (abs(others - 10_000) < 4 * deviation).all()


@given(known_sets, st.lists(st.integers(0, 8), min_size=9, max_size=9))
def test_known_are_those_in_the_set(sets, candidates):
    answers, start, stop, most = as_arrays(sets)
    found = negatives.known(jnp.asarray(candidates, jnp.int32), answers, start, stop, most=most)
    assert found.tolist() == [[c in known for c in candidates] for known in sets]
