"""The numbers of a query: how they hang together, and which are refused."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from owkg import openworld

QUERY = {"strength": 0.7, "sparsity": 0.35, "num_answers": 43, "num_entities": 14_505}
INSIDE = st.floats(0.001, 0.999)
PART = st.floats(0, 1)


def _feasible(strength: float, sparsity: float, part: float) -> float:
    """A correlation `part` of the way through the feasible interval."""
    low, high = openworld.feasible_correlation(strength, sparsity)
    return float(min(max(low + part * (high - low), low), high))


# --- conditional strengths


@given(strength=INSIDE, sparsity=INSIDE, part=PART)
def test_joint_table_has_the_marginals_and_the_correlation(strength, sparsity, part):
    rho = _feasible(strength, sparsity, part)
    l1, l2 = openworld.conditional_strengths(strength, sparsity, rho)
    # Rows: missing, in the test set. Columns: positive, negative.
    table = np.array([[sparsity * l1, sparsity * (1 - l1)], [(1 - sparsity) * l2, (1 - sparsity) * (1 - l2)]])
    assert (table >= -1e-12).all()
    np.testing.assert_allclose(table.sum(1), [sparsity, 1 - sparsity], atol=1e-12)
    np.testing.assert_allclose(table.sum(0), [strength, 1 - strength], atol=1e-12)
    determinant = table[0, 0] * table[1, 1] - table[0, 1] * table[1, 0]
    spread = math.sqrt(strength * (1 - strength) * sparsity * (1 - sparsity))
    assert determinant / spread == pytest.approx(rho, abs=1e-9)


def test_against_simulated_indicators():
    rng = np.random.default_rng(0)
    draws = 400_000
    l1, l2 = openworld.conditional_strengths(0.7, 0.35, 0.3)
    missing = rng.random(draws) < 0.35
    positive = rng.random(draws) < np.where(missing, l1, l2)
    assert abs(positive.mean() - 0.7) < 4 * math.sqrt(0.21 / draws)
    assert abs(np.corrcoef(missing, positive)[0, 1] - 0.3) < 4 / math.sqrt(draws)


@given(strength=st.floats(0, 1), sparsity=INSIDE)
def test_without_correlation_missing_answers_are_like_the_others(strength, sparsity):
    assert openworld.conditional_strengths(strength, sparsity, 0.0) == (strength, strength)


@pytest.mark.parametrize("strength", [0.0, 1.0])
@given(sparsity=INSIDE, correlation=st.floats(-1, 1))
def test_a_strength_of_zero_or_one_cannot_correlate(strength, sparsity, correlation):
    assert openworld.feasible_correlation(strength, sparsity) == (-1, 1)
    pair = openworld.conditional_strengths(strength, sparsity, correlation)
    assert pair == (strength, strength)
    setting = openworld.grid(
        **(QUERY | {"strength": strength, "sparsity": sparsity}), correlation=correlation
    )
    assert setting.conditional_strengths() == (strength, strength)


@given(strength=INSIDE, sparsity=INSIDE)
def test_positive_correlation_puts_the_strength_on_missing_answers(strength, sparsity):
    rho = _feasible(strength, sparsity, 0.75)
    assume(rho > 1e-3)
    l1, l2 = openworld.conditional_strengths(strength, sparsity, rho)
    assert l1 > strength > l2
    l1, l2 = openworld.conditional_strengths(strength, sparsity, -rho)
    assert l1 < strength < l2


def test_conditional_strengths_of_arrays_broadcast():
    strength = np.array([[0.3], [0.6]])
    l1, l2 = openworld.conditional_strengths(strength, np.array([0.2, 0.4, 0.5]), 0.1)
    assert l1.shape == l2.shape == (2, 3)
    assert isinstance(l1, np.ndarray)
    np.testing.assert_allclose(
        (l1[1, 2], l2[1, 2]), openworld.conditional_strengths(0.6, 0.5, 0.1), rtol=1e-15
    )


# --- the feasible interval


@given(strength=INSIDE, sparsity=INSIDE, part=PART)
def test_inside_the_feasible_interval_both_are_probabilities(strength, sparsity, part):
    rho = _feasible(strength, sparsity, part)
    for probability in openworld.conditional_strengths(strength, sparsity, rho):
        assert -1e-12 <= probability <= 1 + 1e-12
    openworld.grid(**(QUERY | {"strength": strength, "sparsity": sparsity}), correlation=rho)


@given(strength=INSIDE, sparsity=INSIDE)
def test_at_either_end_one_of_them_is_zero_or_one(strength, sparsity):
    for rho in openworld.feasible_correlation(strength, sparsity):
        pair = openworld.conditional_strengths(strength, sparsity, rho)
        assert min(abs(p - end) for p in pair for end in (0, 1)) < 1e-9
    low, high = openworld.feasible_correlation(strength, sparsity)
    assert -1 <= low < 0 < high <= 1 + 1e-15


@given(strength=INSIDE, sparsity=INSIDE, high_end=st.booleans())
def test_just_outside_is_refused_and_the_interval_shown(strength, sparsity, high_end):
    low, high = openworld.feasible_correlation(strength, sparsity)
    rho = float(high + 1e-9 if high_end else low - 1e-9)
    assume(abs(rho) <= 1)
    setting = QUERY | {"strength": strength, "sparsity": sparsity, "correlation": rho}
    with pytest.raises(ValueError, match="`correlation` must be in the feasible interval") as error:
        openworld.grid(**setting)
    assert f"[{low:.6g}, {high:.6g}]" in str(error.value)
    assert f"strength {strength:g} and sparsity {sparsity:g}" in str(error.value)
    assert repr(rho) in str(error.value)


def test_the_interval_by_hand():
    low, high = openworld.feasible_correlation(0.5, 0.5)
    assert (low, high) == (-1, 1)
    # a = 7/3, b = 7/13: sqrt(ab) = 1.12, sqrt(a/b) = 2.08.
    low, high = openworld.feasible_correlation(0.7, 0.35)
    assert low == pytest.approx(-math.sqrt(39 / 49), rel=1e-12)
    assert high == pytest.approx(math.sqrt(3 / 13), rel=1e-12)


@given(strength=INSIDE, sparsity=INSIDE)
def test_symmetries_of_the_interval(strength, sparsity):
    low, high = openworld.feasible_correlation(strength, sparsity)
    # Who calls positives negative turns the sign; who swaps missing and positive changes nothing.
    turned = openworld.feasible_correlation(1 - strength, sparsity)
    np.testing.assert_allclose(turned, (-high, -low), rtol=1e-9)
    swapped = openworld.feasible_correlation(sparsity, strength)
    np.testing.assert_allclose(swapped, (low, high), rtol=1e-9)


def test_the_interval_of_a_grid():
    low, high = openworld.feasible_correlation([[0.3], [0.0]], [0.2, 0.5, 0.9])
    assert low.shape == high.shape == (2, 3)
    assert (low[1] == -1).all()
    assert (high[1] == 1).all()
    assert (low[0, 2], high[0, 2]) == openworld.feasible_correlation(0.3, 0.9)


@pytest.mark.parametrize("strength", [1e-300, 1e-12, 1 - 2**-53])
@pytest.mark.parametrize("sparsity", [1e-300, 1e-12, 0.5, 1 - 2**-53])
def test_the_interval_at_the_edge_of_double_precision(strength, sparsity):
    low, high = openworld.feasible_correlation(strength, sparsity)
    assert -1 <= low < 0 < high <= 1 + 1e-15


@pytest.mark.parametrize("name", ["strength", "sparsity"])
@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, True, "0.5", None, [], 0.5j])
def test_bad_input_of_the_interval_is_named(name, bad):
    with pytest.raises(ValueError, match=f"`{name}`"):
        openworld.feasible_correlation(**({"strength": 0.5, "sparsity": 0.5} | {name: bad}))


def test_shapes_of_the_interval_that_do_not_broadcast_are_named():
    with pytest.raises(ValueError, match=r"strength.*\(2,\).*sparsity.*\(3,\)"):
        openworld.feasible_correlation([0.1, 0.2], [0.1, 0.2, 0.3])


# --- grid


def test_a_single_query():
    setting = openworld.grid(**QUERY)
    assert setting.shape == ()
    assert setting._asdict() == QUERY | {"correlation": 0}


def test_fields_share_the_broadcast_shape():
    setting = openworld.grid(
        strength=[[0.1], [0.9]], sparsity=0.35, num_answers=[1, 5, 43], num_entities=14_505
    )
    assert setting.shape == (2, 3)
    assert all(np.shape(field) == (2, 3) for field in setting)
    np.testing.assert_array_equal(setting.strength[:, 0], [0.1, 0.9])
    np.testing.assert_array_equal(setting.num_answers[0], [1, 5, 43])
    assert setting.num_answers.dtype == setting.num_entities.dtype == np.int64
    assert setting.strength.dtype == setting.sparsity.dtype == np.float64


BAD_NUMBERS = [
    math.nan,
    math.inf,
    -math.inf,
    True,
    np.bool_(False),
    "0.5",
    b"1",
    None,
    0.5 + 0j,
    1 + 0j,
    [],
    np.zeros((0, 3)),
    [0.5, math.nan],
    [True],
    [None],
    ["1"],
    {1},
    np.datetime64("2020"),
    10**400,
    [1, [2, 3]],
]


@pytest.mark.parametrize("bad", BAD_NUMBERS, ids=lambda b: repr(b)[:20])
@pytest.mark.parametrize("name", [*QUERY, "correlation"])
def test_what_is_no_number_is_refused_by_name(name, bad):
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        openworld.grid(**(QUERY | {name: bad}))


@pytest.mark.parametrize(
    ("name", "bad", "expected"),
    [
        ("strength", -1e-9, r"in \[0, 1\], got -1e-09"),
        ("strength", 1.1, r"in \[0, 1\], got 1.1"),
        ("strength", [0.5, 1.5], r"in \[0, 1\], got 1.5 at index \(1,\)"),
        ("sparsity", 0, r"in \(0, 1\), got 0"),
        ("sparsity", 1, r"in \(0, 1\), got 1"),
        ("sparsity", -0.1, r"in \(0, 1\), got -0.1"),
        ("correlation", 1.5, r"in the feasible interval .*, got 1.5"),
        ("correlation", -1.5, r"in the feasible interval .*, got -1.5"),
        ("num_answers", 0, "a whole number of at least 1, got 0"),
        ("num_answers", -3, "a whole number of at least 1, got -3"),
        ("num_answers", 1.5, "a whole number of at least 1, got 1.5"),
        ("num_answers", [[3, 4], [5, 0]], r"at least 1, got 0 at index \(1, 1\)"),
        ("num_entities", 1, "a whole number of at least 2, got 1"),
        ("num_entities", 99.5, "a whole number of at least 2, got 99.5"),
        ("num_entities", 2**53, r"a whole number of at least 2 and below 2\*\*53, got 9007199254740992"),
    ],
)
def test_what_is_out_of_range_is_shown(name, bad, expected):
    with pytest.raises(ValueError, match=f"`{name}` must be .*{expected}"):
        openworld.grid(**(QUERY | {name: bad}))


@pytest.mark.parametrize(("answers", "entities"), [(43, 43), (43, 42), (43, 2)])
def test_there_must_be_more_entities_than_answers(answers, entities):
    expected = rf"`num_entities` must exceed `num_answers` \({answers}\), got {entities}"
    with pytest.raises(ValueError, match=expected):
        openworld.grid(**(QUERY | {"num_answers": answers, "num_entities": entities}))


def test_the_first_entity_count_that_is_too_small_is_shown():
    with pytest.raises(ValueError, match=r"exceed `num_answers` \(43\), got 42"):
        openworld.grid(**(QUERY | {"num_answers": [5, 43], "num_entities": [[50], [42]]}))


def test_one_more_entity_than_answers_is_enough():
    assert openworld.grid(**(QUERY | {"num_answers": 1, "num_entities": 2})).num_entities == 2


def test_the_first_infeasible_correlation_of_a_grid_is_shown():
    with pytest.raises(ValueError, match=r"of strength 0.2 and sparsity 0.35, got 0.9"):
        openworld.grid(**(QUERY | {"strength": [0.7, 0.2]}), correlation=[0.1, 0.9])


@pytest.mark.parametrize(
    "change",
    [
        {"strength": [0.1, 0.2], "sparsity": [0.1, 0.2, 0.3]},
        {"strength": [0.1, 0.2], "num_answers": [1, 2, 3]},
        {"num_answers": [1, 2], "num_entities": [5, 6, 7]},
        {"correlation": [0.0, 0.1], "num_entities": [[50, 60, 70]]},
    ],
)
def test_shapes_that_do_not_broadcast_are_named(change):
    with pytest.raises(ValueError, match="do not broadcast") as error:
        openworld.grid(**(QUERY | change))
    for name, value in change.items():
        assert f"{name} {np.shape(value)}" in str(error.value)


@pytest.mark.parametrize(
    "kind", [np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, np.float64, float]
)
def test_whole_numbers_of_any_kind(kind):
    setting = openworld.grid(**(QUERY | {"num_answers": kind(43), "num_entities": kind(100)}))
    assert (setting.num_answers, setting.num_entities) == (43, 100)
    assert setting.num_answers.dtype == np.int64


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, jnp.float32, Ellipsis])
def test_real_numbers_of_any_kind(kind):
    value = [0.5] if kind is Ellipsis else kind(0.5)
    setting = openworld.grid(**(QUERY | {"strength": value, "sparsity": value}))
    np.testing.assert_array_equal(setting.strength, 0.5)
    assert setting.strength.dtype == np.float64


# --- under jax's transformations


def _conditional(strength):
    return jnp.stack(openworld.conditional_strengths(strength, 0.35, 0.2))


def test_traced_conditional_strengths_are_the_concrete_ones():
    expected = openworld.conditional_strengths(0.7, 0.35, 0.2)
    np.testing.assert_allclose(jax.jit(_conditional)(0.7), expected, rtol=1e-6)
    many = jax.vmap(_conditional)(jnp.array([0.7, 0.6]))
    np.testing.assert_allclose(many[0], expected, rtol=1e-6)


def test_slope_of_the_conditional_strengths():
    # d l1 / dl = 1 + rho (1 - 2 l) / (2 sqrt(l (1 - l))) sqrt(alpha / beta).
    bend, odds = 0.2 * (1 - 1.4) / (2 * math.sqrt(0.21)), math.sqrt(0.65 / 0.35)
    slopes = jax.jacobian(_conditional)(0.7)
    np.testing.assert_allclose(slopes, [1 + bend * odds, 1 - bend / odds], rtol=1e-5)


@pytest.mark.parametrize("strength", [0.0, 0.4, 1.0])
def test_without_correlation_the_slope_is_one_even_at_the_ends(strength):
    slopes = jax.jacobian(lambda l: jnp.stack(openworld.conditional_strengths(l, 0.35, 0.0)))
    np.testing.assert_array_equal(slopes(strength), [1, 1])


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap])
def test_grid_under_a_trace(transform):
    def pair(strength):
        setting = openworld.grid(**(QUERY | {"strength": strength}), correlation=0.2)
        assert setting.shape == ()
        return jnp.stack(setting.conditional_strengths())

    strengths = jnp.array([0.7, 0.6])
    found = transform(pair)(strengths if transform is jax.vmap else strengths[0])
    expected = openworld.conditional_strengths(0.7, 0.35, 0.2)
    np.testing.assert_allclose(found.reshape(-1, 2)[0], expected, rtol=1e-6)


def test_concrete_numbers_stay_concrete_beside_traced_ones():
    # Table sizes follow from the counts; a count that turned into a tracer would stop everything.
    def sizes(strength):
        setting = openworld.grid(**(QUERY | {"strength": strength}))
        assert int(np.max(setting.num_answers)) == 43
        assert int(np.max(setting.num_entities)) == 14_505
        assert float(setting.sparsity) == 0.35
        return setting.strength

    assert jax.jit(sizes)(0.5) == 0.5


def test_concrete_numbers_are_checked_beside_traced_ones():
    def with_sparsity(strength, sparsity):
        return openworld.grid(**(QUERY | {"strength": strength, "sparsity": sparsity})).strength

    with pytest.raises(ValueError, match=r"`sparsity` must be in \(0, 1\), got 2"):
        jax.jit(lambda strength: with_sparsity(strength, 2.0))(0.5)
    with pytest.raises(ValueError, match="`num_entities` must exceed"):
        jax.jit(lambda l: openworld.grid(**(QUERY | {"strength": l, "num_entities": 43})))(0.5)
