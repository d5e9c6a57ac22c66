"""Metrics of the pool: against the measures of judged lists, and expectations against enumeration."""

from itertools import product

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.estimation.measures import bounds, measure, measures, values
from owkg.estimation.population import population
from owkg.ir.names import measure as ir_measure
from tests.estimation.worlds import populated, world

NAMES = ("rr", "success@3", "p@5", "p@2", "rbp", "ap", "ap@3", "ndcg", "ndcg@3")


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_judged_lists(name):
    run, _, truth = world()
    people = population(run, 5, truth)
    true = (people.label == 1).astype(float)
    of = measure(name, 5)
    found = values(of, people, true)
    cut = owkg.judge.runs.top(run, 5)
    for s, model in enumerate(people.models):
        judged = owkg.ir.judge(cut.filter(model=model).select("query", "answer", "score"), truth)
        expected = ir_measure(
            of.name if of.name.startswith("RBP") else name if "@" in name else f"{name}@5"
        ).of(judged)
        names = judged.queries.to_list()
        assert names == people.queries["query"].to_list()
        np.testing.assert_allclose(found[s], expected, atol=1e-12)


@pytest.mark.parametrize("name", ["mrr", "hits@2", "macro-mrr", "macro-hits@3"])
def test_values_over_answers_are_those_of_filtered_ranks(name):
    run, _, truth = world()
    people = population(run, 5, truth)
    of = measure(name, 5)
    true = (people.label == 1).astype(float)
    found = values(of, people, true)
    relevant = people.relevant(true)
    for s, model in enumerate(people.models):
        for q, query in enumerate(people.queries["query"]):
            own = run.filter(model=model, query=query).sort("score", descending=True)["answer"].to_list()[:5]
            good = set(truth.filter(query=query)["answer"])
            ranks = [r - sum(a in good for a in own[: r - 1]) for r, a in enumerate(own, 1) if a in good]
            gain = [1 / r if "mrr" in name else float(r <= of.depth) for r in ranks]
            assert found[s, q] == pytest.approx(sum(gain) / (1 if of.micro else relevant[q]))


@pytest.mark.parametrize("name", ["rr@4", "success@3", "p@4", "rbp(p=0.5)"])
def test_values_under_probabilities_are_expectations(name):
    of = measure(name, 4)
    p = np.array([0.2, 0.7, 0.05, 0.9])
    total = 0.0
    for labels in product((0.0, 1.0), repeat=4):
        chance = np.prod([a if y else 1 - a for a, y in zip(p, labels, strict=True)])
        total += chance * of.value(np.array([labels]), np.ones(1))[0]
    assert of.value(p[None], np.ones(1))[0] == pytest.approx(total, abs=1e-14)


@pytest.mark.parametrize("name", [*NAMES, "mrr", "hits@2", "macro-mrr"])
def test_labels_stay_within_the_bounds(name):
    people, _ = populated()
    of = measure(name, 5)
    low, high = bounds(of, people)
    rng = np.random.default_rng(0)
    for share in (0.0, 0.3, 1.0):
        labels = np.where(people.label == 1, 1.0, rng.random(len(people.answers)) < share)
        found = values(of, people, labels)
        assert (found >= low - 1e-12).all()
        assert (found <= high + 1e-12).all()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("rr@6", "must be answered by a pool of depth 5, got rr@6, which needs depth 6"),
        ("amr", "must be one of rr@k"),
        ("bpref", "must be one of rr@k"),
        ([], "must name at least one metric"),
        ([3], "must be the name of a metric, got 3"),
    ],
)
def test_other_metrics_are_refused(names, message):
    with pytest.raises(ValueError, match=f"`metric` {message}"):
        measures(names, 5)


def test_a_part_has_the_values_of_its_queries():
    people, true = populated()
    rows = np.array([3, 11, 40])
    part = people.part(rows)
    chosen = np.isin(people.query, rows)
    for name in ("rr", "ap", "macro-mrr"):
        of = measure(name, 5)
        np.testing.assert_array_equal(values(of, part, true[chosen]), values(of, people, true)[:, rows])
    assert part.queries.equals(people.queries[rows])
    assert pl.Series(part.answers).equals(people.answers.filter(pl.Series(chosen)))
