"""Summaries hold the numbers of the functions that they join."""

import numpy as np
import pytest

from owkg import theory
from owkg.errors import ArgumentError
from owkg.openworld import NodeBased

SETTING = {"strength": 0.7, "sparsity": 0.35, "num_answers": 12, "num_entities": 200}


def test_closed_forms():
    mrr, hits = theory.closed_forms(["mrr", "hits@10"], **SETTING)
    exact = theory.moments("mrr", **SETTING)
    assert mrr["expectation"] == pytest.approx(float(exact.expectation))
    assert mrr["variance"] == pytest.approx(float(exact.variance))
    assert mrr["lemma_expectation"] == pytest.approx(float(theory.lemma_expectation("mrr", **SETTING)))
    assert mrr["derivative"] == pytest.approx(float(theory.lemma_derivative("mrr", **SETTING)))
    assert mrr["log_approximation"] == pytest.approx(float(theory.log_approximation(**SETTING)))
    assert hits["metric"] == "hits@10"
    assert hits["log_approximation"] is None
    assert hits["lemma_expectation"] is not None


def test_answer_weights_average():
    several = SETTING | {"num_answers": [5, 12]}
    (row,) = theory.closed_forms("mrr", **several, answer_weights=[1, 3])
    each = [theory.closed_forms("mrr", **SETTING | {"num_answers": n})[0] for n in (5, 12)]
    expected = np.average([one["lemma_expectation"] for one in each], weights=[1, 3])
    assert row["lemma_expectation"] == pytest.approx(expected)


def test_what_does_not_apply_is_none():
    (row,) = theory.closed_forms("mrr", **SETTING, missing=NodeBased(0.2))
    assert row["variance"] is not None
    assert row["lemma_expectation"] is None
    (row,) = theory.closed_forms("mrr", **SETTING, prediction="score")
    assert row["expectation"] == pytest.approx(float(theory.score_expectation("mrr", **SETTING)))
    assert row["variance"] is None


def test_queries_to_tell_apart():
    pair = SETTING | {"other_strength": 0.75}
    (row,) = theory.queries_to_tell_apart("mrr", **pair, num_queries=500)
    for paired, suffix in ((False, ""), (True, "_paired")):
        assert row[f"required_queries{suffix}"] == theory.required_queries(
            "mrr", **pair, inconsistency=0.05, paired=paired
        )
        wrong = theory.inconsistency_probability("mrr", **pair, num_queries=500, paired=paired)
        assert row[f"inconsistency_probability{suffix}"] == pytest.approx(float(wrong))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"prediction": "foo"}, "prediction"),
        ({"prediction": None}, "prediction"),
        ({"strength": [0.1, 0.2]}, "strength"),
        ({"num_answers": [5, 12]}, "num_answers"),
        ({"num_answers": [5, 12], "answer_weights": [-1, 2]}, "answer_weights"),
        ({"num_answers": [5, 12], "answer_weights": [0, 0]}, "answer_weights"),
        ({"num_answers": [5, 12], "answer_weights": [1]}, "answer_weights"),
        ({"answer_weights": [1]}, "answer_weights"),
    ],
)
def test_what_is_no_one_setting_is_refused(change, name):
    for prediction in ("classification", "score"):
        with pytest.raises(ArgumentError) as error:
            theory.closed_forms("mrr", **{"prediction": prediction} | SETTING | change)
        assert error.value.name == name


@pytest.mark.parametrize(
    "change", [{"num_queries": [1, 2]}, {"inconsistency": [0.1, 0.2]}, {"strength": [0.1, 0.2]}]
)
def test_several_numbers_are_refused(change):
    given = SETTING | {"other_strength": 0.75} | change
    with pytest.raises(ArgumentError, match="single number"):
        theory.queries_to_tell_apart("mrr", **given)
