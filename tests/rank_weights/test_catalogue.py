"""Every metric's weight against a plain formula, and every name that users know it by."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from owkg.rank_weights import LOG_MRR, MR, MRR, forms, hits_at, p_mrr, rank_weight
from owkg.rank_weights.rank_weight import _CATALOGUE

RANKS = np.array([1, 2, 3, 4, 9, 10, 11, 99, 100, 101, 14_505], np.float64)

# Plain formulas, in NumPy alone.
WEIGHTS = [
    (MRR, lambda r: 1.0 / r),
    (LOG_MRR, lambda r: np.log(2.0) / np.log(1.0 + r)),
    (MR, lambda r: r),
    *((hits_at(k), lambda r, k=k: np.where(r <= k, 1.0, 0.0)) for k in (1, 3, 10, 100)),
    *((p_mrr(p), lambda r, p=p: 1.0 / r**p) for p in (0.25, 1 / 3, 0.5, 1.0, 2.0)),
]
ALL = [metric for metric, _ in WEIGHTS]
IDS = [metric.name for metric in ALL]


@pytest.mark.parametrize(("metric", "formula"), WEIGHTS, ids=IDS)
def test_weight_is_the_formula(metric, formula):
    single = metric.weight(jnp.asarray(RANKS, jnp.float32))
    np.testing.assert_allclose(single, formula(RANKS), rtol=2e-6)
    assert single.dtype == jnp.float32
    with jax.enable_x64(True):
        double = np.asarray(metric.weight(jnp.asarray(RANKS, jnp.float64)))
    assert double.dtype == np.float64
    np.testing.assert_allclose(double, formula(RANKS), rtol=1e-13)


@pytest.mark.parametrize("metric", ALL, ids=IDS)
def test_weight_is_elementwise_and_traceable(metric):
    ranks = jnp.asarray(RANKS, jnp.float32)
    together = metric.weight(ranks)
    assert together.shape == ranks.shape
    np.testing.assert_array_equal(metric.weight(ranks[:, None])[:, 0], together)
    np.testing.assert_allclose([metric.weight(r) for r in ranks], together, rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(metric.weight))(ranks), together, rtol=1e-6)


@pytest.mark.parametrize("metric", ALL, ids=IDS)
def test_better_ranks_never_weigh_worse(metric):
    steps = np.diff(np.asarray(metric.weight(jnp.asarray(RANKS, jnp.float32))))
    assert (steps <= 0).all() if metric.larger_is_better else (steps >= 0).all()
    assert steps.any()


@pytest.mark.parametrize("metric", [m for m in ALL if m.larger_is_better], ids=lambda m: m.name)
def test_rank_one_weighs_one_and_no_rank_weighs_more(metric):
    weight = np.asarray(metric.weight(jnp.asarray(RANKS, jnp.float32)))
    assert weight[0] == 1
    assert ((weight >= 0) & (weight <= 1)).all()


def test_only_the_mean_rank_is_better_small():
    assert not MR.larger_is_better
    assert all(m.larger_is_better for m in ALL if m != MR)


# --- names


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("mrr", MRR),
        ("MRR", MRR),
        ("  mrr ", MRR),
        ("mean_reciprocal_rank", MRR),
        ("Mean Reciprocal Rank", MRR),
        ("inverse_harmonic_mean_rank", MRR),
        ("log-mrr", LOG_MRR),
        ("log_mrr", LOG_MRR),
        ("Log MRR", LOG_MRR),
        ("mr", MR),
        ("mean_rank", MR),
        ("arithmetic_mean_rank", MR),
        ("hits@10", hits_at(10)),
        ("Hits@10", hits_at(10)),
        ("HITS@10", hits_at(10)),
        ("hit@10", hits_at(10)),
        ("hits_at_10", hits_at(10)),
        ("hits-at-10", hits_at(10)),
        ("hits at 10", hits_at(10)),
        ("hits10", hits_at(10)),
        ("hits_10", hits_at(10)),
        ("hits@1", hits_at(1)),
        ("sqrt-mrr", p_mrr(0.5)),
        ("sqrt_mrr", p_mrr(0.5)),
        ("p-mrr@1/2", p_mrr(0.5)),
        ("p-mrr@0.5", p_mrr(0.5)),
        ("p-mrr@.5", p_mrr(0.5)),
        ("P-MRR@1/3", p_mrr(1 / 3)),
        ("p_mrr@1/3", p_mrr(1 / 3)),
        ("pmrr@2", p_mrr(2)),
        ("p-mrr@1", p_mrr(1)),
    ],
)
def test_names_and_aliases(name, metric):
    found = rank_weight(name)
    assert found.name == metric.name
    assert found == metric


def test_a_fraction_is_the_nearest_number_and_keeps_its_name():
    third = rank_weight("p-mrr@1/3")
    assert third.name == "p-mrr@1/3"
    np.testing.assert_allclose(third.weight(jnp.float32(8)), 0.5, rtol=1e-6)


@pytest.mark.parametrize("form", forms())
def test_every_form_is_a_name(form):
    name = form.replace("@K", "@7").replace("@P", "@1/7")
    assert rank_weight(name).name == name
    # Which is taken for granted of those of the catalogue.
    assert rank_weight(name).weight.__module__ == _CATALOGUE
    assert jax.eval_shape(rank_weight(name).weight, jax.ShapeDtypeStruct((3,), jnp.float32)).shape == (3,)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("mmr", "mrr"),
        ("mrrr", "mrr"),
        ("log-mr", "log-mrr"),
        ("sqrtmrr", "sqrt-mrr"),
        ("htis@10", "hits@10"),
        ("hist@10", "hits@10"),
        ("mean-reciprocal", "mean-reciprocal-rank"),
        ("p-mrr", "p-mrr@"),
        ("hits", "hits@"),
        ("hits@", "hits@"),
        ("hitz@10", "hits@10"),
    ],
)
def test_unknown_names_answer_with_near_ones(name, near):
    with pytest.raises(ValueError, match="did you mean") as error:
        rank_weight(name)
    said = str(error.value)
    assert repr(name) in said
    assert near in said.partition("did you mean")[2]


@pytest.mark.parametrize("name", ["", " ", "xyzzy", "42", "@", "ndcg", "mrr@10"])
def test_strange_names_are_refused_and_shown(name):
    with pytest.raises(ValueError, match="metric") as error:
        rank_weight(name)
    assert repr(name) in str(error.value)
    assert "mrr" in str(error.value).replace(repr(name), "")


# --- bad K and P


@pytest.mark.parametrize(
    "k", [0, -1, 1.5, math.nan, math.inf, -math.inf, True, "3", None, 3 + 0j, 2**53, 2**70, 1e300]
)
def test_bad_k(k):
    # Whether 1.0, which True equals, and 3.0 were asked for before must not matter.
    hits_at(1.0), hits_at(3.0)
    with pytest.raises(ValueError, match="`k` must be a whole number of at least 1"):
        hits_at(k)


@pytest.mark.parametrize("p", [0, 0.0, -0.5, math.nan, math.inf, -math.inf, True, "1/2", None, 1 + 0j])
def test_bad_p(p):
    p_mrr(1.0)
    with pytest.raises(ValueError, match="`p` must be finite and above 0"):
        p_mrr(p)


@pytest.mark.parametrize("p", [5e-324, 1e-9, 1e-4, 0.000999])
def test_a_power_that_rounding_would_decide_is_refused(p):
    with pytest.raises(ValueError, match=r"`p` must be at least 0.001, got .* log-mrr and gmr"):
        p_mrr(p)
    assert p_mrr(0.001).name == "p-mrr@0.001"


@pytest.mark.parametrize("k", [2**24 + 1, 2**31, 10**12, 2**53 - 1])
def test_a_k_above_every_rank_is_a_hit(k):
    ranks = jnp.array([1.0, 2.0**23])
    assert jax.jit(hits_at(k).weight)(ranks).tolist() == [1, 1]
    assert hits_at(k).name == f"hits@{k}"


@pytest.mark.parametrize("k", [[3], [1, 2], np.array([3]), np.array([1, 2])], ids=repr)
def test_many_k_are_refused(k):
    with pytest.raises((ValueError, TypeError)):
        hits_at(k)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hits@0", "whole number of at least 1"),
        ("hits@-1", "whole number of at least 1"),
        ("hits@1.5", "whole number of at least 1"),
        ("hits@nan", "not a number|did you mean"),
        ("hits@inf", "whole number"),
        ("hits@1/0", "not a number"),
        ("hits@1e400", "whole number"),
        ("hits@ten", "not a number|did you mean"),
        ("p-mrr@0", "above 0"),
        ("p-mrr@-1/2", "above 0"),
        ("p-mrr@1/0", "not a number"),
        ("p-mrr@nan", "not a number|did you mean"),
        ("p-mrr@half", "not a number|did you mean"),
    ],
)
def test_bad_parameters_in_names(name, expected):
    with pytest.raises(ValueError, match=expected) as error:
        rank_weight(name)
    assert repr(name) in str(error.value)


def test_a_space_before_the_number_is_not_a_minus():
    try:
        assert rank_weight("hits@ 10") == hits_at(10)
    except ValueError as error:
        assert "-10" not in str(error)  # noqa: PT017 - refusing is as good


# --- equality and hashing


def test_the_factories_share_equal_metrics():
    assert hits_at(10) is hits_at(10)
    assert p_mrr(0.5) is p_mrr(0.5)


@pytest.mark.parametrize("same", [10.0, np.int64(10), np.float64(10), np.int32(10)], ids=repr)
def test_equal_k_give_equal_metrics(same):
    assert hits_at(same) == hits_at(10)
    assert hash(hits_at(same)) == hash(hits_at(10))
    assert hits_at(k=10) == hits_at(10)


@pytest.mark.parametrize("same", [2.0, np.int64(2), np.float32(2), np.float64(2)], ids=repr)
def test_equal_p_give_equal_metrics(same):
    assert p_mrr(same) == p_mrr(2)
    assert hash(p_mrr(same)) == hash(p_mrr(2))
    assert p_mrr(p=2) == p_mrr(2)


def test_metrics_are_told_apart():
    different = [MRR, LOG_MRR, MR, hits_at(1), hits_at(10), p_mrr(0.5), p_mrr(1 / 3)]
    assert len(set(different)) == len({m.name for m in different}) == len(different)


def test_a_metric_is_frozen():
    with pytest.raises(AttributeError):
        MRR.name = "other"


def test_equal_metrics_share_one_trace():
    traces = []

    def total(metric, ranks):
        traces.append(metric.name)
        return metric.weight(ranks).sum()

    compiled = jax.jit(total, static_argnums=0)
    ranks = jnp.arange(1.0, 5.0)
    for metric in (hits_at(10), rank_weight("hits@10"), rank_weight("hits_at_10")):
        compiled(metric, ranks)
    assert traces == ["hits@10"]


# --- properties


@given(k=st.integers(1, 2**53 - 1))
def test_the_name_of_hits_at_k_leads_back(k):
    assert hits_at(k).name == f"hits@{k}"
    assert rank_weight(hits_at(k).name) == hits_at(k)


@given(p=st.floats(min_value=0.001, allow_infinity=False, allow_nan=False))
def test_the_name_of_power_p_leads_back(p):
    assert rank_weight(p_mrr(p).name) == p_mrr(p)


@given(top=st.integers(1, 200), bottom=st.integers(1, 200))
def test_fractions_lead_back(top, bottom):
    metric = rank_weight(f"p-mrr@{top}/{bottom}")
    assert metric == p_mrr(top / bottom)
    assert rank_weight(metric.name) == metric


@given(p=st.floats(0.01, 8), q=st.floats(0.01, 8))
def test_different_p_have_different_names(p, q):
    assume(p != q)
    assert p_mrr(p).name != p_mrr(q).name
    assert p_mrr(p) != p_mrr(q)


_STARTS = st.sampled_from(["", "hits@", "hit", "hits_at_", "p-mrr@", "pmrr ", "mr", "log "])
_ENDS = st.one_of(st.text(max_size=6), st.text("0123456789eE./+-_ naif", max_size=6))


@given(name=st.builds(str.__add__, _STARTS, _ENDS))
def test_any_text_is_a_metric_or_a_value_error(name):
    try:
        found = rank_weight(name)
    except ValueError as error:
        assert repr(name) in str(error)  # noqa: PT017 - either end is fine
    else:
        assert rank_weight(found.name) == found


def test_a_number_written_with_a_great_exponent_is_answered_at_once():
    with pytest.raises(ValueError, match="finite"):
        rank_weight("p-mrr@1e99999999")


def test_a_name_without_end_is_refused_at_once():
    with pytest.raises(ValueError, match="at most 1000 letters, got 100,000"):
        rank_weight("strat-" + "1" * 99_994)
