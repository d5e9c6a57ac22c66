"""Ranks counted in blocks against ranks of whole score matrices."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.evaluation import rank_arrays
from owkg.kg import known_answers
from owkg.models import MODELS, Similarity, Trained, model, score_all
from owkg.ranks import known_sets, ranks_from_scores

N, M = 23, 3
SIZES = {"num_entities": N, "num_relations": M}
SMALL = {
    "hitter": {"dim": 4, "heads": 2, "hidden": 4, "triple_layers": 1, "context_layers": 1, "neighbours": 3},
    "conve": {"dim": 12, "height": 4},
    "betae": {"dim": 5},
    "transe": {"dim": 5, "norm": 1},
}
SMALL |= {"interacte": {"dim": 12, "height": 2, "kernel": 3, "channels": 2}}
SMALL |= {name: {"dim": 6} for name in ("rote", "refe", "atte", "roth", "refh", "atth")}


def drawn(seed, count):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, below, count) for below in (N, M, N)], axis=1).astype(np.int32)


def asked(triples, side):
    """(entity, answer) of each triple."""
    return (triples[:, 0], triples[:, 2]) if side == "tail" else (triples[:, 2], triples[:, 0])


def of_matrix(scores, triples, side, known, tolerance=0.0):
    entity, answer = asked(triples, side)
    sets = None if known is None else known_sets(known, entity, triples[:, 1])
    return ranks_from_scores(scores, answer, known=sets, tolerance=tolerance)


def same(own, other):
    for name, expected in other._asdict().items():
        np.testing.assert_array_equal(getattr(own, name), expected)


@pytest.fixture(scope="module", params=MODELS)
def made(request):
    """A model with its parameters and statistics."""
    scorer = model(request.param, **SMALL.get(request.param, {"dim": 5}))
    return jax.jit(lambda key: Trained(scorer, *scorer.begun(key, N, M, drawn(2, 60))))(jax.random.key(1))


@pytest.mark.parametrize("side", ["head", "tail"])
def test_every_model_ranks_as_its_score_matrix_does(made, side):
    """Raw ranks in blocks, filtered ones at once; scores that are told go through the other pairs too."""
    triples, facts = drawn(0, 90), drawn(1, 200)
    entity, _ = asked(triples, side)
    scores = jax.jit(lambda own: score_all(own, entity, triples[:, 1], side))(made)
    of_answers = np.asarray(scores)[np.arange(len(triples)), asked(triples, side)[1]]
    filtered = known_answers(np.concatenate([facts, triples]), side, **SIZES)
    for known, bytes_ in ((None, 4 * N * 7), (filtered, 2**26)):
        own = rank_arrays(made, triples, side, known=known, block_bytes=bytes_, devices=None)
        same(own, of_matrix(scores, triples, side, known))
        np.testing.assert_allclose(own.score, of_answers, rtol=1e-4, atol=1e-5)


# --- any scores: a model that is told them


def told_query(params, statistics, entity, relation, side, *, key=None):
    return params["scores"][entity * M + relation], statistics


def told_candidates(params, entity=None):
    return params["entity"]


def told_all(queries, candidates):
    return queries[:, candidates[:, 0].astype(int)]


TOLD = replace(
    model("distmult", reciprocal=False),
    query=told_query,
    candidates=told_candidates,
    similarity=Similarity(jnp.add, told_all, jax.vmap(told_all, in_axes=(None, 0))),
)


def told(scores):
    """A model by which entity a answers the query (e, r) with scores[e * M + r, a]."""
    ids = jnp.arange(N, dtype=jnp.float32)[:, None]
    scores = jnp.asarray(scores, jnp.float32)
    return Trained(TOLD, {"entity": ids, "relation": jnp.zeros((M, 1)), "scores": scores})


SPECIAL = np.float32([0.0, -0.0, 1e-45, -1e-45, 2e-40, 1.0, 1.5, -2.0, 3.4e38, -3.4e38])


# (triples, rows of a block), (facts, whether the triples are among them); each with each side.
BLOCKS = [(1, 80), (2, 1), (17, 7), (60, 7), (60, 80), (17, 1)]
FACTS = [(None, False), (0, True), (1, False), (300, True), (0, False), (1, True), (300, False)]
SHAPES = [(BLOCKS[i % 6], FACTS[i % 7], ("head", "tail")[i // 7 % 2]) for i in range(14)]


@pytest.mark.parametrize(("blocks", "facts", "side"), SHAPES)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), tolerance=st.sampled_from([0.0, 0.5, 1e-30]))
def test_ties_extremes_subnormals_and_zeros(blocks, facts, side, seed, tolerance):
    """The scores differ from example to example, the triples from shape to shape."""
    (count, rows), (more, is_known) = blocks, facts
    scores = np.random.default_rng(seed).choice(SPECIAL, (N * M, N))
    triples = drawn(count + rows, count)
    known = None
    if more is not None:
        known = known_answers(
            np.concatenate([drawn(more, more), *([triples] if is_known else [])]), side, **SIZES
        )
    own = rank_arrays(told(scores), triples, side, known=known, tolerance=tolerance, block_bytes=4 * N * rows)
    whole = scores[asked(triples, side)[0] * M + triples[:, 1]]
    same(own, of_matrix(whole, triples, side, known, tolerance))
    np.testing.assert_array_equal(own.score, whole[np.arange(count), asked(triples, side)[1]])


def test_progress_counts_triples_to_the_end():
    seen = []
    triples = drawn(0, 50)
    rank_arrays(
        told(np.zeros((N * M, N))),
        triples,
        "tail",
        known=None,
        block_bytes=4 * N * 5,
        on_progress=lambda done, total: seen.append((done, total)),
    )
    done, total = zip(*seen, strict=True)
    assert len(seen) > 3
    assert list(done) == sorted(set(done))
    assert done[-1] == 50
    assert set(total) == {50}


def test_blocks_of_a_side_share_compiled_code():
    from owkg.evaluation.counts import counts

    triples = drawn(5, 1000)
    known = known_answers(drawn(6, 2000), "tail", **SIZES)
    before = counts._cache_size()
    scores = told(np.zeros((N * M, N)))
    rank_arrays(scores, triples, "tail", known=known, block_bytes=4 * N * 9)
    assert counts._cache_size() == before + 1


def test_no_triples_no_ranks():
    none = np.empty((0, 3), np.int32)
    ranks = rank_arrays(told(np.zeros((N * M, N))), none, "tail", known=None)
    assert [len(column) for column in ranks] == [0, 0, 0, 0]


# --- what is refused


@pytest.mark.parametrize("score", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("entity", [4, 5, 6], ids=["the answer", "a known answer", "a candidate"])
def test_a_score_that_is_no_finite_number_is_named(entity, score):
    scores = np.zeros((N * M, N), np.float32)
    scores[2 * M + 1, entity] = score
    triples = np.int32([[0, 0, 1], [1, 0, 1], [2, 1, 4], [3, 1, 4]])
    known = known_answers([[2, 1, 4], [2, 1, 5]], "tail", **SIZES)
    for named, words in (
        (None, "NaN or infinity for the tail of triple 2"),
        (lambda row: f"number {row}", "number 2"),
    ):
        with pytest.raises(ValueError, match=f"`trained` must give .*{words}"):
            rank_arrays(told(scores), triples, "tail", known=known, named=named, block_bytes=1)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"side": "both"}, '`side` must be "head" or "tail", got \'both\''),
        ({"triples": [[0, 0, N]]}, "`triples` must hold tail ids"),
        ({"triples": [[0, M, 0]]}, "`triples` must hold relation ids"),
        ({"tolerance": -1}, "`tolerance` must be .*-1"),
        ({"tolerance": 1e39}, r"`tolerance` must be .*1e\+39"),
        ({"tolerance": 1e-45}, "`tolerance` must be 0 or at least 1e-30, got 1e-45"),
        ({"block_bytes": 0}, "`block_bytes` must be .*0"),
        ({"known": [1]}, r"`known` must be KnownAnswers, or None for raw ranks, got \[1\]"),
        ({"known": known_answers([[0, 0, 1]], "head", **SIZES)}, "`known` must have side, .* got .*head"),
        (
            {"known": known_answers([[0, 0, 1]], "tail", num_entities=5, num_relations=M)},
            "`known` must have side, .* got .*5",
        ),
    ],
)
def test_refusals(changed, words):
    given = {"triples": [[0, 0, 1]], "side": "tail", "known": None} | changed
    triples, side = given.pop("triples"), given.pop("side")
    with pytest.raises(ValueError, match=words):
        rank_arrays(told(np.zeros((N * M, N))), triples, side, **given)
