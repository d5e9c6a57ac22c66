"""The published tables of the ranking-metrics work (Hoyt et al. 2022), recomputed."""

import numpy as np
import polars as pl
import pytest

from owkg.kg import fact_splits, read_graph
from owkg.metrics import Ties, adjusted_from, evaluate, metric, tasks
from simulations.hoyt2022.published import NAMES, task_candidates

# --- candidates.tsv: chance level of N ranks with N candidates each


@pytest.fixture(scope="module")
def levels(owkg_data):
    """(name, number of candidates, published and own expectation, published and own variance)."""
    table = pl.read_csv(owkg_data / "ranking_metrics" / "candidates.tsv", separator="\t")
    own = {}
    rows = []
    for row in table.iter_rows(named=True):
        name, count = NAMES[row["metric"], row["inverted"]], row["candidate"]
        if name in ("imr", "hmr") and count > 5_000:
            continue  # a second each, and drawn anyway
        if (name, count) not in own:
            ranks = tasks(np.ones(count, np.int64), candidates=count)
            own[name, count] = evaluate(ranks, [metric(name)], ties=["exact"], level=None)[Ties.EXACT][name]
        found = own[name, count]
        rows.append((name, count, row["expectation"], found.expectation, row["variance"], found.variance))
    return pl.DataFrame(
        rows,
        schema=["name", "candidates", "expectation", "own_expectation", "variance", "own_variance"],
        orient="row",
    )


@pytest.mark.parametrize("name", ["mr", "mrr", "hits@1", "hits@10", "hits@100"])
def test_closed_columns_agree(levels, name):
    rows = levels.filter(pl.col("name") == name)
    assert len(rows) == 40
    np.testing.assert_allclose(rows["own_expectation"], rows["expectation"], rtol=1e-11)
    np.testing.assert_allclose(rows["own_variance"], rows["variance"], rtol=1e-10, atol=1e-300)


def test_the_geometric_mean_is_published_exactly_in_its_expectation_and_drawn_in_its_variance(levels):
    rows = levels.filter(pl.col("name") == "gmr")
    # Their running product loses digits with a million candidates.
    np.testing.assert_allclose(rows["own_expectation"], rows["expectation"], rtol=1e-8)
    several = rows.filter(pl.col("candidates") > 1)
    assert (np.abs(several["variance"] / several["own_variance"] - 1) > 1e-3).mean() > 0.9
    _agrees_as_drawn(several)


@pytest.mark.parametrize("name", ["imr", "hmr", "igmr"])
def test_drawn_columns_agree_within_their_sampling_error(levels, name):
    rows = levels.filter(pl.col("name") == name)
    one = rows.filter(pl.col("candidates") == 1)
    np.testing.assert_allclose(one["own_expectation"], 1, rtol=1e-15)
    assert (one["own_variance"] == 0).all()
    several = rows.filter(pl.col("candidates") > 1)
    deviation = np.sqrt(several["own_variance"].to_numpy())
    z = (several["expectation"] - several["own_expectation"]).to_numpy() / deviation * np.sqrt(1000)
    assert np.abs(z).max() < 4  # as of 1,000 draws ...
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.4  # ... and of no other number
    _agrees_as_drawn(several)


def _agrees_as_drawn(rows):
    """Variances of 1,000 draws have a relative standard error of sqrt(2 / 1000), 4.5%, or so."""
    error = rows["variance"].to_numpy() / rows["own_variance"].to_numpy() - 1
    assert np.abs(error).max() < 0.22
    assert abs(error.mean()) < 0.03


@pytest.mark.parametrize("count", [2, 4, 5])
def test_own_chance_of_the_geometric_mean_is_that_of_all_ranks(all_ranks, count):
    ranks = all_ranks([count] * count)
    for name, exact in (("gmr", np.exp(np.log(ranks).mean(1))), ("igmr", np.exp(-np.log(ranks).mean(1)))):
        own = evaluate(tasks(ranks[0].astype(int), candidates=count), [metric(name)], level=None)
        np.testing.assert_allclose(own[Ties.EXACT][name].expectation, exact.mean(), rtol=1e-13)
        np.testing.assert_allclose(own[Ties.EXACT][name].variance, exact.var(), rtol=1e-12)


# --- collated.tsv: index and z columns from the base metrics and the candidates of each data set


@pytest.fixture(scope="module", params=["nations", "kinships", "wn18rr", "fb15k237"])
def collated(request, owkg_data):
    """The rows of a data set, and the numbers of candidates of its tasks."""
    table = pl.read_csv(owkg_data / "ranking_metrics" / "collated.tsv", separator="\t")
    return table.filter(pl.col("dataset") == request.param), task_candidates(owkg_data / request.param)


_BASES = {
    "mr": "arithmetic_mean_rank",
    "mrr": "inverse_harmonic_mean_rank",
    "gmr": "geometric_mean_rank",
    "hits@1": "hits_at_1",
    "hits@3": "hits_at_3",
    "hits@5": "hits_at_5",
    "hits@10": "hits_at_10",
}


def _levels(candidates):
    ranks = tasks(np.ones(len(candidates), np.int64), candidates=candidates)
    return evaluate(ranks, [metric(name) for name in _BASES], level=None)[Ties.EXACT]


def test_collated_counts(collated):
    rows, candidates = collated
    assert (rows["count"] == len(candidates)).all()
    assert len(rows) == 4


def test_collated_index_columns(collated):
    rows, candidates = collated
    own = _levels(candidates)

    def index(name):
        chance = own[name].expectation
        return (rows[_BASES[name]].to_numpy() - chance) / (1 - chance)

    for name in ("hits@1", "hits@3", "hits@5", "hits@10"):
        np.testing.assert_allclose(index(name), rows[f"adjusted_{_BASES[name]}"], rtol=1e-12)
    # The mean rank and what is made of it are published in single precision.
    ratio = rows["arithmetic_mean_rank"].to_numpy() / own["mr"].expectation
    np.testing.assert_allclose(ratio, rows["adjusted_arithmetic_mean_rank"], rtol=3e-7)
    published = rows["adjusted_arithmetic_mean_rank_index"]
    np.testing.assert_allclose(index("mr"), published, rtol=1e-6, atol=1e-7)


def test_the_published_amrr_takes_the_chance_of_a_continuous_rank_at_the_mean_number_of_candidates(collated):
    rows, candidates = collated
    mrr = rows["inverse_harmonic_mean_rank"].to_numpy()
    mean = candidates.mean()
    continuous = np.log(mean) / (mean - 1)
    published = rows["adjusted_inverse_harmonic_mean_rank"].to_numpy()
    np.testing.assert_allclose((mrr - continuous) / (1 - continuous), published, rtol=1e-6)
    # Ours has the sum of 1 / r of each task, which is more.
    assert _levels(candidates)["mrr"].expectation > 1.02 * continuous


def test_published_z_and_agmri_leave_the_target_out_of_the_candidates(collated):
    rows, candidates = collated
    without, own = _levels(candidates - 1), _levels(candidates)
    for name, base in _BASES.items():
        value = rows[base].to_numpy()
        chance = without[name]
        z = (value - chance.expectation) / np.sqrt(chance.variance)
        # Their zMR falls as ranks improve; in ours, and in their zGMR, larger is better.
        sign = -1 if name == "gmr" else 1
        published = rows[f"z_{base}"].to_numpy()
        np.testing.assert_allclose(sign * z, published, rtol=1e-6 if name in ("mr", "gmr") else 1e-9)
        right = (value - own[name].expectation) / np.sqrt(own[name].variance)
        assert (np.abs(right - z) > 1e-9 * np.abs(z)).all()
    index = (rows["geometric_mean_rank"].to_numpy() - without["gmr"].expectation) / (
        1 - without["gmr"].expectation
    )
    np.testing.assert_allclose(index, rows["adjusted_geometric_mean_rank_index"], rtol=1e-6)


# --- what the paper says of them


@pytest.fixture(scope="module")
def adjusted(owkg_data):
    """The published models with the adjusted metrics as they ought to be, in columns of our names."""
    table = pl.read_csv(owkg_data / "ranking_metrics" / "collated.tsv", separator="\t")
    candidates = {name: task_candidates(owkg_data / name) for name in table["dataset"].unique()}
    return table.with_columns(
        pl.Series(
            of,
            [
                adjusted_from(metric(of), row[_BASES[of[1:]]], candidates[row["dataset"]])
                for row in table.iter_rows(named=True)
            ],
        )
        for of in ("amrr", "zmrr", "zmr")
    )


def test_models_of_small_graphs_differ_from_random(adjusted):
    small = adjusted.filter(pl.col("dataset").is_in(["nations", "kinships"]))
    for columns in (("z_inverse_harmonic_mean_rank", "z_arithmetic_mean_rank"), ("zmrr", "zmr")):
        assert [int((small[name].abs() > 1.96).sum()) for name in columns] == [7, 8]
    turned = small.filter(pl.col("zmrr").sign() != pl.col("z_inverse_harmonic_mean_rank").sign())
    assert turned.select("dataset", "model").sort("model").rows() == [
        ("nations", "complex"),
        ("nations", "transe"),
    ]


def test_tucker_is_better_on_nations_by_amrr(adjusted):
    tucker = {row["dataset"]: row for row in adjusted.filter(model="tucker").iter_rows(named=True)}
    for column in ("amrr", "adjusted_inverse_harmonic_mean_rank"):
        assert tucker["nations"][column] > tucker["wn18rr"][column] + 0.1
    assert tucker["nations"]["zmrr"] < tucker["wn18rr"]["zmrr"]


def test_adjusted_mrr_orders_data_sets_as_mrr_does(adjusted):
    """Of the three larger data sets; and by entities the largest is not FB15k-237 but WN18RR."""
    larger = ["kinships", "fb15k237", "wn18rr"]
    for (model,), part in adjusted.group_by("model"):
        of = {row["dataset"]: row for row in part.iter_rows(named=True)}
        by = {
            name: sorted(larger, key=lambda one, name=name: -of[one][name])
            for name in ("inverse_harmonic_mean_rank", "amrr")
        }
        assert by["inverse_harmonic_mean_rank"] == by["amrr"], model


def test_the_largest_data_set_by_entities_is_wn18rr(owkg_data):
    facts = {name: read_graph(owkg_data / name) for name in ("fb15k237", "wn18rr")}
    assert facts["fb15k237"].num_entities < facts["wn18rr"].num_entities
    assert sum(map(len, facts["fb15k237"].splits.values())) > sum(map(len, facts["wn18rr"].splits.values()))


def test_table_4_counts_entities_of_train(owkg_data):
    for name, of_train, of_all in (("fb15k237", 14505, 14541), ("wn18rr", 40559, 40943)):
        graph = read_graph(owkg_data / name)
        facts = fact_splits(graph)
        assert len(np.unique(facts["train"][:, [0, 2]])) == of_train
        assert graph.num_entities == of_all
        assert len(np.unique(facts["train"][:, 1])) == graph.num_relations
