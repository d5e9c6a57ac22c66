"""Every metric's weight against a plain formula, and every name that users know it by."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from owkg import metrics

RANKS = np.array([1, 2, 3, 4, 9, 10, 11, 99, 100, 101, 14_505], np.float64)

# Plain formulas, in NumPy alone.
WEIGHTS = [
    (metrics.MRR, lambda r: 1.0 / r),
    (metrics.LOG_MRR, lambda r: np.log(2.0) / np.log(1.0 + r)),
    (metrics.MR, lambda r: r),
    *((metrics.hits_at(k), lambda r, k=k: np.where(r <= k, 1.0, 0.0)) for k in (1, 3, 10, 100)),
    *((metrics.p_mrr(p), lambda r, p=p: 1.0 / r**p) for p in (0.25, 1 / 3, 0.5, 1.0, 2.0)),
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
    assert not metrics.MR.larger_is_better
    assert all(m.larger_is_better for m in ALL if m != metrics.MR)


# --- names


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("mrr", metrics.MRR),
        ("MRR", metrics.MRR),
        ("  mrr ", metrics.MRR),
        ("mean_reciprocal_rank", metrics.MRR),
        ("Mean Reciprocal Rank", metrics.MRR),
        ("inverse_harmonic_mean_rank", metrics.MRR),
        ("log-mrr", metrics.LOG_MRR),
        ("log_mrr", metrics.LOG_MRR),
        ("Log MRR", metrics.LOG_MRR),
        ("mr", metrics.MR),
        ("mean_rank", metrics.MR),
        ("arithmetic_mean_rank", metrics.MR),
        ("hits@10", metrics.hits_at(10)),
        ("Hits@10", metrics.hits_at(10)),
        ("HITS@10", metrics.hits_at(10)),
        ("hit@10", metrics.hits_at(10)),
        ("hits_at_10", metrics.hits_at(10)),
        ("hits-at-10", metrics.hits_at(10)),
        ("hits at 10", metrics.hits_at(10)),
        ("hits10", metrics.hits_at(10)),
        ("hits_10", metrics.hits_at(10)),
        ("hits@1", metrics.hits_at(1)),
        ("sqrt-mrr", metrics.p_mrr(0.5)),
        ("sqrt_mrr", metrics.p_mrr(0.5)),
        ("p-mrr@1/2", metrics.p_mrr(0.5)),
        ("p-mrr@0.5", metrics.p_mrr(0.5)),
        ("p-mrr@.5", metrics.p_mrr(0.5)),
        ("P-MRR@1/3", metrics.p_mrr(1 / 3)),
        ("p_mrr@1/3", metrics.p_mrr(1 / 3)),
        ("pmrr@2", metrics.p_mrr(2)),
        ("p-mrr@1", metrics.p_mrr(1)),
    ],
)
def test_names_and_aliases(name, metric):
    found = metrics.rank_weight(name)
    assert found.name == metric.name
    assert found == metric


def test_a_fraction_is_the_nearest_number_and_keeps_its_name():
    third = metrics.rank_weight("p-mrr@1/3")
    assert third.name == "p-mrr@1/3"
    np.testing.assert_allclose(third.weight(jnp.float32(8)), 0.5, rtol=1e-6)


@pytest.mark.parametrize("form", metrics.FORMS)
def test_every_form_is_a_name(form):
    name = form.replace("@K", "@7").replace("@P", "@1/7")
    assert metrics.rank_weight(name).name == name


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
        metrics.rank_weight(name)
    said = str(error.value)
    assert repr(name) in said
    assert near in said.partition("did you mean")[2]


@pytest.mark.parametrize("name", ["", " ", "xyzzy", "42", "@", "ndcg", "mrr@10"])
def test_strange_names_are_refused_and_shown(name):
    with pytest.raises(ValueError, match="metric") as error:
        metrics.rank_weight(name)
    assert repr(name) in str(error.value)
    assert "mrr" in str(error.value).replace(repr(name), "")


# --- bad K and P


@pytest.mark.parametrize(
    "k", [0, -1, 1.5, math.nan, math.inf, -math.inf, True, "3", None, 3 + 0j, 2**53, 2**70, 1e300]
)
def test_bad_k(k):
    # Whether 1.0, which True equals, and 3.0 were asked for before must not matter.
    metrics.hits_at(1.0), metrics.hits_at(3.0)
    with pytest.raises(ValueError, match="`k` must be a whole number of at least 1"):
        metrics.hits_at(k)


@pytest.mark.parametrize("p", [0, 0.0, -0.5, math.nan, math.inf, -math.inf, True, "1/2", None, 1 + 0j])
def test_bad_p(p):
    metrics.p_mrr(1.0)
    with pytest.raises(ValueError, match="`p` must be finite and above 0"):
        metrics.p_mrr(p)


@pytest.mark.parametrize("p", [5e-324, 1e-9, 1e-4, 0.000999])
def test_a_power_that_rounding_would_decide_is_refused(p):
    with pytest.raises(ValueError, match=r"`p` must be at least 0.001, got .* log-mrr, or gmr"):
        metrics.p_mrr(p)
    assert metrics.p_mrr(0.001).name == "p-mrr@0.001"


@pytest.mark.parametrize("k", [2**24 + 1, 2**31, 10**12, 2**53 - 1])
def test_a_k_above_every_rank_is_a_hit(k):
    ranks = jnp.array([1.0, 2.0**23])
    assert jax.jit(metrics.hits_at(k).weight)(ranks).tolist() == [1, 1]
    assert metrics.hits_at(k).name == f"hits@{k}"


@pytest.mark.parametrize("k", [[3], [1, 2], np.array([3]), np.array([1, 2])], ids=repr)
def test_many_k_are_refused(k):
    with pytest.raises((ValueError, TypeError)):
        metrics.hits_at(k)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hits@0", "whole number of at least 1"),
        ("hits@-1", "whole number of at least 1"),
        ("hits@1.5", "whole number of at least 1"),
        ("hits@nan", "not a number|did you mean|whole number|finite"),
        ("hits@inf", "not a number|did you mean|whole number|finite"),
        ("hits@1/0", "not a number|did you mean|whole number|finite"),
        ("hits@1e400", "not a number|did you mean|whole number|finite"),
        ("hits@ten", "not a number|did you mean|whole number|finite"),
        ("p-mrr@0", "above 0"),
        ("p-mrr@-1/2", "above 0"),
        ("p-mrr@1/0", "not a number"),
        ("p-mrr@nan", "not a number|did you mean|whole number|finite"),
        ("p-mrr@half", "not a number|did you mean|whole number|finite"),
    ],
)
def test_bad_parameters_in_names(name, expected):
    with pytest.raises(ValueError, match=expected) as error:
        metrics.rank_weight(name)
    assert repr(name) in str(error.value)


def test_a_space_before_the_number_is_not_a_minus():
    try:
        assert metrics.rank_weight("hits@ 10") == metrics.hits_at(10)
    except ValueError as error:
        assert "-10" not in str(error)  # noqa: PT017 - refusing is as good


# --- equality and hashing


def test_the_factories_share_equal_metrics():
    assert metrics.hits_at(10) is metrics.hits_at(10)
    assert metrics.p_mrr(0.5) is metrics.p_mrr(0.5)


@pytest.mark.parametrize("same", [10.0, np.int64(10), np.float64(10), np.int32(10)], ids=repr)
def test_equal_k_give_equal_metrics(same):
    assert metrics.hits_at(same) == metrics.hits_at(10)
    assert hash(metrics.hits_at(same)) == hash(metrics.hits_at(10))
    assert metrics.hits_at(k=10) == metrics.hits_at(10)


@pytest.mark.parametrize("same", [2.0, np.int64(2), np.float32(2), np.float64(2)], ids=repr)
def test_equal_p_give_equal_metrics(same):
    assert metrics.p_mrr(same) == metrics.p_mrr(2)
    assert hash(metrics.p_mrr(same)) == hash(metrics.p_mrr(2))
    assert metrics.p_mrr(p=2) == metrics.p_mrr(2)


def test_metrics_are_told_apart():
    different = [
        metrics.MRR,
        metrics.LOG_MRR,
        metrics.MR,
        metrics.hits_at(1),
        metrics.hits_at(10),
        metrics.p_mrr(0.5),
        metrics.p_mrr(1 / 3),
    ]
    assert len(set(different)) == len({m.name for m in different}) == len(different)


def test_a_metric_is_frozen():
    with pytest.raises(AttributeError):
        metrics.MRR.name = "other"


def test_equal_metrics_share_one_trace():
    traces = []

    def total(metric, ranks):
        traces.append(metric.name)
        return metric.weight(ranks).sum()

    compiled = jax.jit(total, static_argnums=0)
    ranks = jnp.arange(1.0, 5.0)
    for metric in (metrics.hits_at(10), metrics.rank_weight("hits@10"), metrics.rank_weight("hits_at_10")):
        compiled(metric, ranks)
    assert traces == ["hits@10"]


# --- properties


@given(k=st.integers(1, 2**53 - 1))
def test_the_name_of_hits_at_k_leads_back(k):
    assert metrics.hits_at(k).name == f"hits@{k}"
    assert metrics.rank_weight(metrics.hits_at(k).name) == metrics.hits_at(k)


@given(p=st.floats(min_value=0.001, allow_infinity=False, allow_nan=False))
def test_the_name_of_power_p_leads_back(p):
    assert metrics.rank_weight(metrics.p_mrr(p).name) == metrics.p_mrr(p)


@given(top=st.integers(1, 200), bottom=st.integers(1, 200))
def test_fractions_lead_back(top, bottom):
    metric = metrics.rank_weight(f"p-mrr@{top}/{bottom}")
    assert metric == metrics.p_mrr(top / bottom)
    assert metrics.rank_weight(metric.name) == metric


@given(p=st.floats(0.01, 8), q=st.floats(0.01, 8))
def test_different_p_have_different_names(p, q):
    assume(p != q)
    assert metrics.p_mrr(p).name != metrics.p_mrr(q).name
    assert metrics.p_mrr(p) != metrics.p_mrr(q)


_STARTS = st.sampled_from(["", "hits@", "hit", "hits_at_", "p-mrr@", "pmrr ", "mr", "log "])
_ENDS = st.one_of(st.text(max_size=6), st.text("0123456789eE./+-_ naif", max_size=6))


@given(name=st.builds(str.__add__, _STARTS, _ENDS))
def test_any_text_is_a_metric_or_a_value_error(name):
    try:
        found = metrics.rank_weight(name)
    except ValueError as error:
        assert repr(name) in str(error)  # noqa: PT017 - either end is fine
    else:
        assert metrics.rank_weight(found.name) == found


def test_a_number_written_with_a_great_exponent_is_answered_at_once():
    with pytest.raises(ValueError, match="finite"):
        metrics.rank_weight("p-mrr@1e99999999")
