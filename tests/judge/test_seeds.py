"""Systems with several seeds are one system: values, intervals, tests, files, notes."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import owkg
from owkg.judge import scores
from owkg.judge.significance import difference_intervals, pairwise
from owkg.judge.stability import stability, stability_by_triple
from owkg.metrics import metric

CHOSEN = [metric(name) for name in ("mrr", "hits@3", "mr", "macro-mrr")]


def table(seed, *, queries=12, answers=3, easier=0.0):
    """Ranks of a run, queries with 1 to `answers` answers."""
    rng = np.random.default_rng(seed)
    rows = [(f"h{i}", f"t{j}") for i in range(queries) for j in range(1 + i % answers)]
    rank = np.clip(np.exp(rng.normal(2.0 - easier, 1.0, len(rows))).round(), 1, 60).astype(int)
    return pl.DataFrame(rows, schema=["head", "tail"], orient="row").with_columns(
        relation=pl.lit("r"), side=pl.lit("tail"), optimistic=rank, pessimistic=rank, candidates=60
    )


def seeded(*seeds, **options):
    return pl.concat([table(seed, **options).with_columns(seed=seed) for seed in seeds])


@pytest.fixture
def both():
    return {"a": seeded(1, 2, 3, easier=0.4), "b": seeded(4, 5)}


def test_scores_are_means_over_seeds(both):
    found = scores(both, CHOSEN)[0]
    each = {seed: scores({"a": table(seed, easier=0.4)}, CHOSEN)[0].value[:, 0] for seed in (1, 2, 3)}
    np.testing.assert_allclose(found.value[:, 0], np.mean(list(each.values()), 0))
    assert found.seeds[0].seeds == (1, 2, 3)
    np.testing.assert_array_equal(found.seeds[0].value[:, 1], each[2])


def test_a_system_may_be_called_like_a_seed_of_another(both):
    other = table(9)
    found = scores({"a, seed 1": other, "a": both["a"]}, CHOSEN)[0]
    np.testing.assert_array_equal(found.value[:, 0], scores({"x": other}, CHOSEN)[0].value[:, 0])
    np.testing.assert_array_equal(found.value[:, 1], scores({"a": both["a"]}, CHOSEN)[0].value[:, 0])


def test_one_pair_whose_interval_is_over_queries_and_seeds(both):
    """By hand, of a macro metric: mean squares of both systems, Welch's degrees of freedom."""
    of = scores(both, CHOSEN)[0]
    own = [one.value[3] for one in of.seeds]
    count = own[0].shape[1]
    gap = own[0].mean(0) - own[1].mean(0)
    variance = gap.var(ddof=1) / count
    unseen = (np.ptp(of.value[3]) / count) ** 2 * (1 / 3**2 + 1 / 2**2) / 2
    component = square = 0.0
    for each in own:
        seeds = len(each)
        left = each - each.mean(1, keepdims=True) - each.mean(0) + each.mean()
        of_seeds = each.mean(1).var(ddof=1) / seeds
        component += of_seeds - (left**2).sum() / ((seeds - 1) * (count - 1)) / count / seeds
        square += of_seeds**2 / (seeds - 1)
    queries = variance + unseen
    total = queries + max(component, 0.0)
    freedom = total**2 / (queries**2 / (count - 1) + square) if component > 0 else count - 1
    low, high = difference_intervals(of, "macro-mrr")
    reach = stats.t.ppf(0.975, freedom) * np.sqrt(total)
    np.testing.assert_allclose([low, high], [[gap.mean() - reach], [gap.mean() + reach]])
    for test in ("t", "wilcoxon", "randomisation"):
        found = pairwise(of, "macro-mrr", test=test, key=0)
        np.testing.assert_allclose(found.p, 2 * stats.t.sf(abs(gap.mean()) / np.sqrt(total), freedom))
    assert len(found.p) == 1


def test_a_pair_without_seeds_keeps_its_test(both):
    alone = {"c": table(7), "d": table(8, easier=0.5)}
    for test in ("t", "wilcoxon", "randomisation"):
        own = pairwise(scores(alone, CHOSEN)[0], "mrr", test=test, key=0).p[0]
        among = pairwise(scores(alone | both, CHOSEN)[0], "mrr", test=test, key=0)
        at = next(i for i in range(6) if {int(among.first[i]), int(among.second[i])} == {0, 1})
        if test != "randomisation":  # whose signs all pairs share
            assert among.p[at] == own
        assert among.seed_variance[at] == 0


def test_wilcoxon_says_symmetry_of_pairs_without_seeds_alone(both):
    for systems, of in ((both, []), (both | {"c": table(8), "d": table(9)}, [("c", "d")])):
        with pytest.warns(UserWarning, match=r".") as told:
            found = owkg.compare(systems, "mrr", test="wilcoxon").pairs
        assert found.filter(hypothesis="symmetry").select("first", "second").rows() == of
        assert any("symmetric around 0" in str(one.message) for one in told) is bool(of)


def test_rows_that_a_column_seed_would_tell_apart_name_their_file(both, tmp_path):
    both["a"].drop("seed").write_csv(tmp_path / "a.csv")
    both["b"].write_csv(tmp_path / "b.csv")
    with pytest.raises(ValueError, match=r"a\.csv: rows 1 and 25 rank the same task differently"):
        owkg.compare([tmp_path / "b.csv", tmp_path / "a.csv"], "mrr")


def test_values_are_those_of_metrics(both):
    with pytest.warns(UserWarning, match="randomisation test takes seeds as given"):
        found = owkg.compare(both, ["mrr", "macro-mrr"])
    for name, frame in both.items():
        rows = owkg.evaluate(frame, ["mrr", "macro-mrr"])
        own = found.values.filter(system=name)
        for here, there in zip(
            ("value", "lower", "upper", "seeds", "seed_deviation"),
            ("value", "ci_low", "ci_high", "seeds", "deviation_over_seeds"),
            strict=True,
        ):
            np.testing.assert_allclose(own[here].to_numpy(), rows[there].to_numpy(), err_msg=here)
    assert found.pairs.select("first", "second").unique().rows() == [("a", "b")]
    assert found.pairs["p_corrected"].equals(found.pairs["p_value"])


@pytest.mark.parametrize("name", ["seeds.csv", "seeds.parquet"])
def test_seeds_in_files(both, tmp_path, name):
    """All in one file by model and seed; a file a model; a file a run."""
    expected = owkg.compare(both, "mrr", test="t")
    rows = {called: frame.with_columns(model=pl.lit(called)) for called, frame in both.items()}
    several = {"all": [(name, pl.concat(rows.values()))]}
    several["models"] = [(f"{called}.{name}", frame.drop("model")) for called, frame in rows.items()]
    several["runs"] = [
        (f"{called}{seed}{name}", part)
        for called, frame in rows.items()
        for (seed,), part in frame.partition_by("seed", as_dict=True).items()
    ]
    for layout, files in several.items():
        paths = []
        for called, frame in files:
            owkg.ranks.write_ranks(frame, tmp_path / layout / called)
            paths.append(tmp_path / layout / called)
        assert owkg.compare(paths, "mrr", test="t").pairs.equals(expected.pairs), layout


def test_a_system_with_one_seed_is_noted(both):
    with pytest.warns(UserWarning, match="c has one seed, so that its variation over seeds is unknown"):
        found = owkg.compare({"a": both["a"], "c": table(9)}, "mrr", test="t")
    assert found.values["seeds"].to_list() == [3, 1]
    assert found.values["seed_deviation"].is_null().to_list() == [False, True]


def test_a_seed_twice_is_noted():
    again = pl.concat([table(1).with_columns(seed=0), table(1).with_columns(seed=1)])
    with pytest.warns(UserWarning, match="seeds 0 and 1 of a score the same on every query"):
        owkg.compare({"a": again, "b": seeded(4, 5)}, "mrr", test="t")


def test_stability_has_the_order_of_means(both):
    """Of queries with one answer each, both units draw the same."""
    single = {name: frame.filter(pl.col("tail") == "t0") for name, frame in both.items()}
    whole = scores(single, CHOSEN[:1])[0]
    by_query = stability(0, whole, [0.5], 40)
    by_triple = stability_by_triple(0, single, CHOSEN[:1], [0.5], 40)
    ranked = np.sign(np.diff(whole.strength[0]))[0]
    assert ranked != 0
    for found in (by_query, by_triple):
        assert set(np.unique(found.tau)) == {-1.0, 1.0}
        assert 0 < found.mean[0, 0] < 1


def test_intersect_keeps_what_every_seed_ranks(both):
    short = both | {"a": both["a"].filter((pl.col("seed") != 2) | (pl.col("head") != "h3"))}
    with pytest.raises(ValueError, match=r"such as h3\|r\|\? in a, seed 2; `intersect` leaves them out"):
        scores(short, CHOSEN)
    found, left_out = scores(short, CHOSEN, intersect=True)
    cut = {name: frame.filter(pl.col("head") != "h3") for name, frame in both.items()}
    assert left_out == 1
    np.testing.assert_array_equal(found.value, scores(cut, CHOSEN)[0].value)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (lambda run: run, r"two.csv: seed 1 of the system 'a' is in .*one.csv too"),
        (lambda run: run.drop("seed"), r"two.csv: the system 'a' is in .*one.csv too; tell its runs apart"),
        (
            lambda run: run.with_columns(seed=2, candidates=70),
            "must have the same candidates and weights in every system",
        ),
    ],
)
def test_files_that_are_no_seeds_of_one_system(tmp_path, second, message):
    run = table(1).with_columns(seed=1, model=pl.lit("a"))
    of = {"one": run, "two": second(run), "three": table(3).with_columns(seed=1, model=pl.lit("b"))}
    for name, frame in of.items():
        owkg.ranks.write_ranks(frame, tmp_path / f"{name}.csv")
    with pytest.raises(ValueError, match=message):
        owkg.compare([tmp_path / f"{name}.csv" for name in of], "amri")
