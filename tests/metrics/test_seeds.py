"""Metrics of models with several seeds: means over seeds, errors over queries and seeds."""

import numpy as np
import polars as pl
import pytest
from scipy import special

import owkg
from owkg.metrics import Ties, evaluate, metric, part_of, tasks_of
from owkg.stats.interval import BoundedMean, intervals
from owkg.stats.nested import crossed_spread, nested

SEEDS = (0, 3, 8)
NAMES = ("mrr", "hits@3", "mr", "amri", "macro-mrr")


def ranks(effect=0.4, queries=40):
    """A model under three seeds, on queries with 1 to 3 answers."""
    rng = np.random.default_rng(1)
    rows = [(f"h{i}", f"t{j}") for i in range(queries) for j in range(1 + i % 3)]
    shared = rng.normal(size=queries)[[int(head[1:]) for head, _ in rows]]
    parts = []
    for seed in SEEDS:
        own = 1.5 + shared + effect * rng.normal() + 0.5 * rng.normal(size=len(rows))
        rank = np.clip(np.exp(own).round(), 1, 99).astype(int)
        parts.append(
            pl.DataFrame(rows, schema=["head", "tail"], orient="row").with_columns(
                relation=pl.lit("r"), side=pl.lit("tail"), optimistic=rank, pessimistic=rank, candidates=99,
                seed=seed,
            )
        )  # fmt: skip
    return pl.concat(parts).sample(fraction=1.0, shuffle=True, seed=2)


@pytest.fixture(scope="module")
def found():
    tasks, rows = tasks_of(ranks())
    seeds = rows["seed"].to_numpy()
    each = {seed: part_of(tasks, seeds == seed) for seed in SEEDS}
    return tasks, seeds, each


def test_seeds_of_other_weights_are_refused(tmp_path):
    table = ranks().with_columns(weight=pl.when(pl.col("seed") == 3).then(0.0).otherwise(2.0))
    table.write_parquet(tmp_path / "a.parquet")
    for of in (table, tmp_path):
        with pytest.raises(ValueError, match=r"must have the same weights: .*the tail of .*, 0 and 2"):
            owkg.evaluate(of, "mrr")


def test_errors_are_those_of_the_two_way_layout(found):
    """Known from the errors of each seed and of all together; here from the scores of each query."""
    tasks, seeds, each = found
    chosen = [metric(name) for name in NAMES]
    whole = evaluate(tasks, chosen, ties=Ties.REALISTIC, seeds=seeds)[Ties.REALISTIC]
    runs = {s: owkg.judge.scores({"m": ranks().filter(seed=s)}, chosen)[0] for s in SEEDS}
    for m, name in enumerate(NAMES):
        value = np.stack([of.value[m, 0] for of in runs.values()])
        weight = runs[0].weight[m]
        mean = value.mean(0)
        left = mean - mean.sum() / weight.sum() * weight
        queries = left.var(ddof=1) * len(left) / weight.sum() ** 2
        effective = weight.sum() ** 2 / (weight @ weight)
        variance, freedom = nested(queries, effective - 1, *crossed_spread(value, weight))
        one = whole[name]
        assert one.value == pytest.approx(mean.sum() / weight.sum())
        assert one.standard_error == pytest.approx(np.sqrt(variance))
        assert one.seeds == 3
        assert one.deviation_over_seeds == pytest.approx(
            np.std([evaluate(t, chosen)[Ties.REALISTIC][name].value for t in each.values()], ddof=1)
        )
        if name == "mrr":
            mean = BoundedMean(one.value, one.standard_error, 1 / 99, 1.0, effective, True, freedom)
            assert (one.ci_low, one.ci_high) == pytest.approx(tuple(intervals([mean], 0.95)[0]))


@pytest.mark.parametrize("name", ["zmrr", "gmr", "agmri", "median_rank", "imr", "amr", "probe@0.5,0"])
def test_every_metric_is_the_mean_over_seeds(found, name):
    tasks, seeds, each = found
    of = metric(name)
    one = evaluate(tasks, of, ties=Ties.REALISTIC, seeds=seeds)[Ties.REALISTIC][name]
    own = [evaluate(t, of, ties=Ties.REALISTIC)[Ties.REALISTIC][name] for t in each.values()]
    assert one.value == pytest.approx(np.mean([x.value for x in own]))
    assert one.ci_low <= one.value <= one.ci_high
    assert one.expectation == own[0].expectation
    assert one.variance == own[0].variance
    # Seeds that differ by much: their mean is known less well than their queries say.
    assert one.standard_error > np.mean([x.standard_error for x in own]) / np.sqrt(3)


def test_the_mean_of_z_has_the_scale_of_one_seed(found):
    """Copies of one seed change nothing."""
    alone = found[2][0]
    twice = alone._replace(**{
        name: np.concatenate([column, column])
        for name, column in alone._asdict().items()
        if isinstance(column, np.ndarray)
    })  # fmt: skip
    twice = twice._replace(ranking=np.arange(len(twice.query)) // len(alone.query) * 99 + twice.query)
    seeds = np.repeat([0, 1], len(alone.query))
    chosen = [metric(name) for name in (*NAMES, "zmrr", "gmr", "median_rank")]
    found_twice = evaluate(twice, chosen, ties=Ties.REALISTIC, seeds=seeds)[Ties.REALISTIC]
    for name, one in evaluate(alone, chosen, ties=Ties.REALISTIC)[Ties.REALISTIC].items():
        two = found_twice[name]
        assert two.deviation_over_seeds == 0
        for field in ("value", "standard_error", "ci_low", "ci_high", "expectation"):
            assert getattr(two, field) == pytest.approx(getattr(one, field), rel=1e-3), (name, field)


def test_one_seed_is_as_no_seed(found):
    own = found[2][3]
    of = [metric(name) for name in NAMES]
    one, other = evaluate(own, of, seeds=np.full(len(own.query), 3)), evaluate(own, of)
    np.testing.assert_equal(one, other)


def test_the_normal_cdf_of_z_is_averaged(found):
    tasks, seeds, each = found
    of = [metric("cdf-zhits@1"), metric("zhits@1")]
    one = evaluate(tasks, of, ties=Ties.REALISTIC, seeds=seeds)[Ties.REALISTIC]
    values = [evaluate(t, of[1])[Ties.REALISTIC]["zhits@1"].value for t in each.values()]
    assert one["cdf-zhits@1"].value == pytest.approx(special.ndtr(values).mean())


def test_a_dataset_as_in_memory(tmp_path, monkeypatch):
    """In parts of few rows, a folder a model and seed; with the breakdown by seed too."""
    for module in ("metrics.fold", "ranks.partitions"):
        monkeypatch.setattr(f"owkg.{module}.rows_of_part", lambda rows: 70)
    frame = pl.concat([ranks().with_columns(model=pl.lit("a")), ranks(2.0).with_columns(model=pl.lit("b"))])
    for (model, seed), part in frame.partition_by("model", "seed", as_dict=True, include_key=False).items():
        folder = tmp_path / f"model={model}" / f"seed={seed}"
        folder.mkdir(parents=True)
        part.write_parquet(folder / "0.parquet")
    few = ["mrr", "macro-mrr"]
    for by, names in (
        ((), [*NAMES, "gmr", "median_rank", "zmrr"]),
        ("seed", few),
        (("side", "relation"), few),
    ):
        found, expected = owkg.evaluate(tmp_path, names, by=by), owkg.evaluate(frame, names, by=by)
        assert found.columns == expected.columns
        for name, column in zip(expected.columns, expected, strict=True):
            if column.dtype.is_float():
                one, other = (x.fill_null(np.nan).to_numpy() for x in (found[name], column))
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=name)
            else:
                assert found[name].equals(column), name
    assert ("seeds" in found.columns) == (by != "seed")


@pytest.mark.parametrize("streamed", [False, True])
def test_seeds_of_other_tasks_are_refused(tmp_path, streamed):
    frame = ranks().with_columns(model=pl.lit("a"))
    short = frame.filter((pl.col("seed") != 3) | (pl.col("head") != "h4"))
    (tmp_path / "a").mkdir()
    short.write_parquet(tmp_path / "a" / "0.parquet")
    message = (
        r"seeds of 'a' must rank the same tasks: seed 3 lacks 2, such as the tail of h4\|r\|t0, which seed"
    )
    with pytest.raises(ValueError, match=message):
        owkg.evaluate(tmp_path / "a" if streamed else short, "mrr")
    assert len(owkg.evaluate(frame, "mrr", by="seed")) == 3


def test_seeds_and_a_bootstrap_are_refused():
    with pytest.raises(ValueError, match="`interval` must be analytic if a model has several seeds"):
        owkg.evaluate(ranks(), "mrr", interval="bca")
