"""Scores to ranks, against counting by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import known_answers
from owkg.ranks import EntitySets, kernels, known_sets, ranks_from_scores
from owkg.ranks import scores as scores_module

# Few values, so that ties are common. Zero ties with minus zero, and not with a subnormal number.
VALUES = [0.0, -0.0, 1.0, 1.5, -2.0, np.inf, -np.inf, 6e-8, 1.2e-7, -6e-8, 1e-40, 1e-310, 3.0]
DTYPES = [np.float16, np.float32, np.float64, jnp.bfloat16]


def oracle(scores, target, known=None, candidates=None, tolerance=0.0):
    """Optimistic rank, pessimistic rank and candidates of each query, one candidate after the other."""
    rows = []
    width = scores.dtype.type(tolerance)
    for q, own in enumerate(target):
        with np.errstate(over="ignore"):
            high, low = scores[q, own] + width, scores[q, own] - width
        optimistic, pessimistic, count = 1, 0, 0
        for e in range(scores.shape[1]):
            ranked = candidates is None or candidates[q, e]
            if e == own or (ranked and not (known is not None and known[q, e])):
                optimistic += bool(scores[q, e] > high)
                pessimistic += bool(scores[q, e] >= low)
                count += 1
        rows.append((optimistic, pessimistic, count))
    return [list(column) for column in zip(*rows, strict=True)]


def as_lists(ranks):
    return [column.tolist() for column in ranks]


def as_pair(mask, rng):
    """A mask as (offsets, ids), each set shuffled and with repetitions."""
    sets = [rng.permutation(np.repeat(np.flatnonzero(row), rng.integers(1, 3))) for row in mask]
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    return offsets, np.concatenate([np.empty(0, np.int64), *sets])


@st.composite
def problems(draw):
    queries, entities = draw(st.integers(1, 5)), draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(DTYPES))
    scores = rng.choice(VALUES, (queries, entities)).astype(dtype)
    masks = [draw(st.booleans()) and rng.random((queries, entities)) < draw(st.floats(0, 1)) for _ in "kc"]
    known, candidates = (None if mask is False else mask for mask in masks)
    return scores, rng.integers(entities, size=queries), known, candidates, rng


@given(
    problem=problems(),
    chunk=st.sampled_from([None, 1, 2, 3, 100]),
    tolerance=st.sampled_from([0.0, 0.0, 0.5, 1e-7, 6e4]),
    sparse=st.booleans(),
    on_device=st.booleans(),
)
def test_ranks_are_what_counting_gives(problem, chunk, tolerance, sparse, on_device):
    scores, target, known, candidates, rng = problem
    expected = oracle(scores, target, known, candidates, tolerance)
    if sparse:
        known = None if known is None else as_pair(known, rng)
        candidates = None if candidates is None else as_pair(candidates, rng)
    with jax.enable_x64(True):
        scores = jnp.asarray(scores) if on_device else scores
    ranks = ranks_from_scores(
        scores, target, known=known, candidates=candidates, tolerance=tolerance, chunk=chunk
    )
    assert as_lists(ranks) == expected
    assert all(column.dtype == np.int64 for column in ranks)


@given(problem=problems())
def test_a_rank_lies_between_one_and_its_candidates(problem):
    scores, target, known, candidates, _ = problem
    best, worst, count = ranks_from_scores(scores, target, known=known, candidates=candidates)
    assert ((best >= 1) & (best <= worst) & (worst <= count)).all()


def test_many_chunks_and_the_default_give_the_same():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 50, (700, 600)).astype(np.float32)
    target = rng.integers(600, size=700)
    known = rng.random((700, 600)) < 0.05
    expected = as_lists(ranks_from_scores(scores, target, known=known))
    assert expected[0] == (1 + ((scores > scores[np.arange(700), target][:, None]) & ~known).sum(1)).tolist()
    for chunk in (1, 37, 350, 699, 700, 10_000):
        assert as_lists(ranks_from_scores(scores, target, known=known, chunk=chunk)) == expected


def test_default_chunks_are_many_where_scores_are():
    # More than two chunks of the default size, the last of them not whole.
    rows = 2 * (scores_module._CHUNK_BYTES // (4 * 1000)) + 5
    scores = np.random.default_rng(0).standard_normal((rows, 1000), dtype=np.float32)
    expected = 1 + (scores > scores[:, :1]).sum(1)
    assert (ranks_from_scores(scores, np.zeros(rows, int)).optimistic == expected).all()


def test_a_constant_scorer_ties_with_everything():
    ranks = ranks_from_scores(np.full((3, 7), 0.25, np.float32), [0, 3, 6])
    assert as_lists(ranks) == [[1] * 3, [7] * 3, [7] * 3]


def test_float32_stays_float32():
    # One unit in the last place of float32 apart; as float64 0.1 and float32(0.1) would differ too.
    low = np.float32(0.1)
    scores = np.array([[low, np.nextafter(low, np.float32(1)), low]])
    assert as_lists(ranks_from_scores(scores, [0])) == [[2], [3], [3]]
    assert as_lists(ranks_from_scores(scores, [0], tolerance=1e-8)) == [[1], [3], [3]]


def test_known_answers_of_a_graph_leave_the_candidates():
    triples = [[0, 0, 1], [0, 0, 2], [3, 0, 2]]
    known = known_answers(triples, "tail", num_entities=4, num_relations=1)
    scores = np.array([[9.0, 5.0, 7.0, 1.0]] * 3)
    ranks = ranks_from_scores(scores, [1, 3, 0], known=known_sets(known, [0, 3, 1], [0, 0, 0]))
    assert as_lists(ranks) == [[2, 3, 1], [2, 3, 1], [3, 3, 4]]


def test_loops_over_batches_of_any_size_compile_a_handful_of_times():
    scores, target = np.zeros((64, 23), np.float32), np.zeros(64, int)
    ranks_from_scores(scores, target)
    before = kernels.score_counts._cache_size()
    for size in range(1, 65):
        ranks_from_scores(scores[:size], target[:size])
    assert kernels.score_counts._cache_size() - before <= 6


# --- bad input

GOOD = np.zeros((3, 4))


@pytest.mark.parametrize("convert", [np.asarray, jnp.asarray])
@pytest.mark.parametrize("chunk", [None, 1, 2])
@pytest.mark.parametrize("mode", ["raw", "filtered", "restricted"])
def test_nan_never_earns_a_rank(convert, chunk, mode):
    scores = np.zeros((5, 4), np.float32)
    scores[3, 2] = np.nan
    others = {"known": np.ones((5, 4), bool)} if mode == "filtered" else {}
    others |= {"candidates": np.zeros((5, 4), bool)} if mode == "restricted" else {}
    for target in (2, 0):  # NaN is the target's score, or another's
        with pytest.raises(ValueError, match=r"`scores` must not be NaN, got NaN for query 3, entity 2"):
            ranks_from_scores(convert(scores), [target] * 5, chunk=chunk, **others)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_of_either_sign_and_any_type_is_seen(dtype):
    scores = np.zeros((2, 3), dtype)
    scores[1, 0] = np.copysign(np.nan, -1)
    with pytest.raises(ValueError, match="NaN for query 1, entity 0"):
        ranks_from_scores(scores, [1, 1])


FLOATS = "`scores` must be floating-point numbers of 16, 32 or 64 bits"
BAD = [
    ({"scores": np.zeros((3, 4), int)}, f"{FLOATS}, got values of type int64"),
    ({"scores": np.zeros((3, 4), np.longdouble)}, f"{FLOATS}, got values of type {np.dtype(np.longdouble)}"),
    ({"scores": jnp.zeros((3, 4), jnp.float8_e4m3fn)}, f"{FLOATS}, got values of type float8_e4m3fn"),
    ({"scores": np.zeros((3, 4), complex)}, "`scores` must be floating-point numbers"),
    ({"scores": [[1.0], [1.0, 2.0]]}, "`scores` must be floating-point numbers"),
    ({"known": ([0, 0, 1, 2], [[0], [1, 2]])}, "`known` must hold entity ids along one axis"),
    ({"scores": [["a"]]}, "`scores` must be floating-point numbers"),
    ({"scores": np.ma.masked_array(GOOD, GOOD > 0)}, "`scores` must not be masked"),
    ({"scores": np.zeros(4)}, "`scores` must be of shape [queries, entities], got shape (4,)"),
    ({"scores": np.zeros((0, 4))}, "`scores` must be of shape [queries, entities], got shape (0, 4)"),
    ({"target": [0, 1]}, "`target` must have one id for each of 3 queries, got shape (2,)"),
    ({"target": [0, 1, 4]}, "`target` must be entity ids below 4, got 4 at index (2,)"),
    ({"target": [0, -1, 2]}, "`target` must be a whole number of at least 0, got -1"),
    ({"target": [0, 1.5, 2]}, "`target` must be a whole number of at least 0, got 1.5"),
    ({"tolerance": -1e-3}, "`tolerance` must be finite and at least 0, got -0.001"),
    ({"tolerance": np.nan}, "`tolerance` must be finite and at least 0, got nan"),
    ({"tolerance": [0.1, 0.2]}, "`tolerance` must be a single number"),
    ({"scores": GOOD.astype(np.float16), "tolerance": 1e6}, "`tolerance` must be finite as float16"),
    ({"chunk": 0}, "`chunk` must be a whole number of at least 1, got 0"),
    ({"known": np.zeros((3, 3), bool)}, "`known` must be a mask [3, 4], a pair (offsets, ids) or EntitySets"),
    ({"known": np.zeros((3, 4))}, "`known` must be a mask [3, 4], a pair (offsets, ids) or EntitySets"),
    ({"candidates": [[0], [1], [2]]}, "`candidates` must be a mask [3, 4]"),
    ({"candidates": [[0], [1, 2], [2]]}, "`candidates` must be a mask [3, 4]"),
    ({"known": ([0, 1, 2], [0, 1])}, "`known` must have 4 offsets from 0 to the 2 ids, got 3 offsets"),
    ({"known": ([1, 1, 2, 2], [0, 1])}, "`known` must have 4 offsets from 0 to the 2 ids"),
    ({"known": ([0, 1, 1, 1], [0, 1])}, "`known` must have 4 offsets from 0 to the 2 ids"),
    ({"known": ([0, 2, 1, 2], [0, 1])}, "`known` must be sets that begin before they end"),
    ({"known": ([0, 0, 1, 2], [0, 4])}, "`known` must be entity ids below 4, got 4 at index (1,)"),
    ({"known": ([0, 0, 1, 2], [0, -1])}, "`known` must be entity ids below 4, got -1 at index (1,)"),
    ({"known": ([0, 0, 1, 2], [0, 1.0])}, "`known` must hold entity ids along one axis"),
    ({"known": ([0, 0, 1, 2.5], [0, 1])}, "`known` must have offsets that are whole numbers"),
    ({"known": EntitySets([0, 0], [0, 0], [1])}, "`known` must have one set for each of 3 queries, got 2"),
    ({"known": EntitySets([0] * 3, [2] * 3, [1])}, "`known` must be sets that begin before they end"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[m[:60] for _, m in BAD])
def test_bad_input_is_named(change, message):
    call = {"scores": GOOD, "target": [0, 1, 2]} | change
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
        ranks_from_scores(call.pop("scores"), call.pop("target"), **call)
    assert str(error.value).startswith(message)
