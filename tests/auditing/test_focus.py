"""Required queries of two rank tables: against sums by hand, known populations, and on simulated data."""

import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.auditing import best_weight_of
from owkg.rank_weights import binned_weight, focus_of, rank_weight
from owkg.rank_weights.fitted import bin_changes, bin_ends, fitted_weights

Z = 1.6448536269514722**2
LAST = 14541


def ranks(rng, queries, shift):
    """(query, ranks of two systems) of queries of 1 to 5 answers, the first ahead by `shift`."""
    query = np.repeat(np.arange(queries), rng.integers(1, 6, queries))
    hard = rng.normal(0, 1.5, queries)[query]
    own = [np.exp(2.5 + s + hard + 1.5 * rng.normal(size=len(query))) for s in (0, shift)]
    return query, np.clip(own, 1, LAST).astype(np.int64)


def tables(query, both):
    """Rank tables, each shuffled in its own way."""
    rng = np.random.default_rng(0)
    for own in both:
        columns = {"head": query.astype(str), "tail": [f"t{i}" for i in range(len(query))]}
        bounds = {"optimistic": own, "pessimistic": own, "candidates": np.full(len(query), LAST)}
        frame = pl.DataFrame(columns | bounds).with_columns(relation=pl.lit("r"), side=pl.lit("tail"))
        yield frame[rng.permutation(len(query))]


@pytest.fixture(scope="module")
def data():
    return ranks(np.random.default_rng(1), 2000, 0.1)


@pytest.mark.parametrize("macro", [False, True])
@pytest.mark.parametrize("name", ["mrr", "hits@10", "p-mrr@1/2", "mr"])
def test_queries_of_a_metric_are_those_of_its_mean_and_variance(data, name, macro):
    query, both = data
    h = rank_weight(name).weight(both.astype(float)) * (-1 if name == "mr" else 1)
    score = np.array([(h[0] - h[1])[query == q].sum() for q in range(2000)])
    if macro:
        score = score / np.bincount(query)
    found = best_weight_of(*tables(*data), metrics=name, focus=0.1, macro=macro)
    assert found.metrics["required_queries"].item() == np.ceil(Z * score.var(ddof=1) / score.mean() ** 2)
    assert found.metrics["focus"].item() == focus_of(rank_weight(name), LAST)


@pytest.mark.parametrize("macro", [False, True])
def test_the_weight_as_a_metric_needs_what_it_is_said_to(data, macro):
    found = best_weight_of(*tables(*data), macro=macro)
    names = [f"w{i}" for i in range(len(found.weights))]
    metrics = [binned_weight(name, found.ends, row) for name, row in zip(names, found.weights, strict=True)]
    again = best_weight_of(*tables(*data), metrics=metrics, macro=macro).metrics
    assert again["required_queries"].to_list() == found.frontier["required_queries"].to_list()
    np.testing.assert_allclose(again["focus"], found.frontier["focus"])


def test_focus_costs_queries_and_no_metric_of_that_focus_is_better(data):
    names = ["hits@1", "hits@2", "hits@5", "hits@10", "hits@50", "mrr", "p-mrr@1/2"]
    focuses = [focus_of(rank_weight(name), LAST) for name in names]
    found = best_weight_of(*tables(*data), metrics=names, focus=[*focuses, 0.0])
    order = found.frontier.sort("least_focus")
    assert order["required_queries"].is_sorted()
    assert (order["focus"] >= order["least_focus"] - 1e-9).all()
    assert (np.diff(found.weights) <= 1e-9).all()
    least = found.frontier["required_queries"][:-1]
    assert (least <= found.metrics["required_queries"]).all()
    assert least[0] == found.metrics["required_queries"][0]  # Hits@1, the one weight of focus 1


def test_mrr_is_that_of_evaluation(data):
    """The order of the systems by the best weight, as a metric of `owkg.evaluate`."""
    found = best_weight_of(*tables(*data), focus=0.1)
    metric = binned_weight("best", found.ends, found.weights[0])
    values = [owkg.evaluate(table, metric, ci=None)["value"].item() for table in tables(*data)]
    assert values[0] > values[1]


def snr(queries):
    return 1 / np.sqrt(np.asarray(queries) / Z)


@pytest.mark.parametrize("least", [0.0, 0.1])
def test_held_out_is_honest_and_in_sample_is_not(least):
    """Samples of 1,000 queries from a population whose mean and variance are known.

    Gain by standard deviation, whose square the required queries are inverse to: held out, its mean over
    samples is that of the fitted weights in the population, to four standard errors; in sample it is above.
    """
    ends, rng = bin_ends(LAST), np.random.default_rng(3)
    all_queries = bin_changes(*ranks(rng, 100_000, 0.1), ends)
    mean, spread = all_queries.mean(0), np.cov(all_queries.T)
    focus = np.array([least])

    def true(weight):
        return weight @ mean / np.sqrt(weight @ spread @ weight)

    flattered, honest = [], []
    for sample in range(60):
        change = all_queries[rng.integers(len(all_queries), size=1000)]
        found = fitted_weights(change, ends, focus, 0.05, sample)
        flattered.append(snr(found.required_queries.item()) - true(found.weights[0]))
        halves = np.array_split(np.random.default_rng(sample).permutation(1000), 2)
        fits = [fitted_weights(change[half], ends, focus, 0.05, 0).weights[0] for half in halves]
        honest.append(snr(found.held_out.item()) - np.mean([true(fit) for fit in fits]))
    error = [4 * np.std(one, ddof=1) / np.sqrt(60) for one in (flattered, honest)]
    assert np.mean(flattered) > error[0]
    assert np.mean(honest) == pytest.approx(0, abs=error[1])
    assert error[1] < np.mean(flattered)  # so that the same bias would be seen


def test_held_out_of_equal_systems_promises_nothing():
    """Where neither is ahead, a fitted weight finds that the first is; on other queries it is a coin toss."""
    ends, focus = bin_ends(LAST), np.array([0.0])
    found = [
        fitted_weights(bin_changes(*ranks(np.random.default_rng(s), 400, 0.0), ends), ends, focus, 0.05, s)
        for s in range(60)
    ]
    assert np.isfinite([one.required_queries for one in found]).mean() > 0.9
    ahead = np.isfinite([one.held_out for one in found]).mean()
    assert ahead == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / 60))


def test_what_the_second_system_is_better_at_is_infinite(data):
    first, second = tables(*data)
    found = best_weight_of(second, first, metrics=("mrr", "mr"), focus=(0.0, 0.5))
    assert found.metrics["required_queries"].is_infinite().all()
    same = best_weight_of(first, first)
    assert same.frontier["required_queries"].is_infinite().all()
    assert same.frontier["held_out"].is_infinite().all()
    assert same.frontier["focus"].is_nan().all()


def test_few_queries_are_fitted_exactly_and_show_nothing():
    """Fewer queries than bins: some weight has no spread at all on them."""
    found = best_weight_of(*tables(*ranks(np.random.default_rng(0), 8, 0.1)), focus=0).frontier
    assert found["required_queries"].item() == 1 < found["held_out"].item()


def test_bins_have_the_usual_k_and_are_few():
    ends = bin_ends(LAST)
    assert len(ends) == 30
    assert {1, 2, 3, 5, 10, 20, 50, 100, 1000, LAST} <= set(ends.tolist())
    assert bin_ends(2).tolist() == [1, 2]
    query, both = np.array([0, 0, 1]), np.array([[1, 6, 14541], [2, 7, 7]])
    found = bin_changes(query, both, ends)
    assert found[0, :6].tolist() == [1, -1, 0, 0, 0, 0]
    assert (found[1, 5], found[1, -1], np.abs(found[1]).sum()) == (-1, 1, 2)


def test_it_is_ready_without_jax():
    code = "import sys, owkg.auditing.focus; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"focus": [0.1, 2]}, r"`focus` must be in \[0, 1\], got 2.0"),
        ({"focus": [[0.1]]}, "`focus` must be a number or several"),
        ({"inconsistency": 0.5}, "`inconsistency` must be in"),
        ({"metrics": "gmr"}, "`metric` must be the mean of a rank weight"),
        ({"metrics": "nothing"}, "unknown metric"),
        ({"seed": -1}, "`seed` must be"),
    ],
)
def test_bad_arguments(data, changed, message):
    with pytest.raises(ValueError, match=message):
        best_weight_of(*tables(*data), **changed)


def test_tables_that_do_not_fit(data):
    first, second = tables(*data)
    with pytest.raises(ValueError, match="`second` must rank the answers that 'first' ranks"):
        best_weight_of(first, second[1:])
    few = [table.filter(pl.col("head").is_in(["0", "1", "2"])) for table in (first, second)]
    with pytest.raises(ValueError, match="`first` must rank four queries at least, got 3"):
        best_weight_of(*few)
