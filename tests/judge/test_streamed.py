"""Systems in datasets compare as in memory, in parts of few rows."""

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.errors import ArgumentError
from owkg.judge import scores, streamed
from owkg.metrics import metric
from owkg.ranks import RankDataset, partitions

NAMES = ["mrr", "hits@10", "amri", "macro-map@20"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of few rows."""
    for module in (streamed, partitions):
        monkeypatch.setattr(module, "rows_of_part", lambda rows: 70)


@pytest.fixture(scope="module")
def tables() -> dict[str, pl.DataFrame]:
    """Three systems on the same queries, with ties."""
    rng = np.random.default_rng(2)
    rows = [
        {"head": f"h{i % 20}", "relation": f"r{i % 3}", "tail": f"t{i % 31}", "side": side, "candidates": 50}
        for i in range(150)
        for side in ("head", "tail")
    ]
    asked = pl.DataFrame(rows).unique(maintain_order=True)
    found = {}
    for i, name in enumerate(("transe", "complex", "rotate")):
        low = rng.integers(1, 5 + 10 * i, len(asked))
        high = np.minimum(low + rng.integers(0, 2, len(asked)), 50)
        found[name] = asked.with_columns(optimistic=pl.Series(low), pessimistic=pl.Series(high))
    return found


def written(tables: dict[str, pl.DataFrame], folder) -> None:
    """A folder a model, each of two files."""
    for name, table in tables.items():
        own = folder / f"model={name}"
        own.mkdir(parents=True)
        shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
        for i in range(2):
            shuffled[i::2].write_parquet(own / f"{i}.parquet")


@pytest.fixture
def folder(tables, tmp_path):
    """The systems as one dataset."""
    written(tables, tmp_path / "ranks")
    return tmp_path / "ranks"


def same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert found.columns == expected.columns
    for name in expected.columns:
        if expected[name].dtype.is_numeric():
            one, other = (
                frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for frame in (found, expected)
            )
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12, err_msg=name)
        else:
            assert found[name].equals(expected[name]), name


@pytest.mark.parametrize("ties", ["realistic", "exact"])
def test_scores_are_those_of_tables(folder, tables, ties):
    chosen = [metric(name) for name in NAMES]
    found, _ = streamed.stream_scores(RankDataset.of(folder), chosen, ties=ties)
    expected, _ = scores({name: tables[name] for name in sorted(tables)}, chosen, ties=ties)
    assert found.systems == expected.systems
    assert found.queries.equals(expected.queries)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(found.weight, expected.weight, rtol=1e-12, atol=1e-15)


def test_comparisons_are_those_of_tables(folder, tables):
    options = {"metrics": NAMES, "draws": 300, "by": ["side", "relation"]}
    expected = owkg.compare({name: tables[name] for name in sorted(tables)}, **options)
    by_model = {name: folder / f"model={name}" for name in sorted(tables)}
    patterns = [str(path / "*.parquet") for path in by_model.values()]
    for systems in (
        [folder],
        [RankDataset.of(folder)],
        by_model,
        patterns,
        [str(folder / "*" / "?.parquet")],
    ):
        found = owkg.compare(systems, **options)
        for (name, table), (_, other) in zip(found.items(), expected.items(), strict=True):
            assert name == "agreement" or len(table)
            same(table, other)


def test_systems_are_called_by_their_folders(tables, tmp_path):
    for name, table in tables.items():
        (tmp_path / name).mkdir()
        table.write_parquet(tmp_path / name / "0.parquet")
    found = owkg.compare([tmp_path / name for name in tables], "mrr", test="t")
    assert found.values["system"].to_list() == list(tables)
    called = owkg.compare(
        {"one": tmp_path / "transe", "two": tmp_path / "rotate" / "0.parquet"}, "mrr", test="t"
    )
    assert called.values["system"].to_list() == ["one", "two"]


def refused(systems, message, **options):
    with pytest.raises(ValueError, match=message):
        owkg.compare(systems, "mrr", **options)


def test_what_cannot_be_streamed_is_told(folder, tables, tmp_path, monkeypatch):
    refused({"a": folder / "model=transe", "b": tables["rotate"]}, "`systems` must all be paths or datasets")
    refused(
        {"a": folder / "model=transe", "b": folder / "model=rotate"}, "is named 'a', but its column model"
    )
    refused([folder, folder], "both have a model 'complex'")
    refused([folder / "model=transe"], "must name at least two systems")
    monkeypatch.setattr(streamed, "free_memory", lambda: 1000)
    refused([folder], r"must leave memory for the scores of about \d+ queries")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table[1:], "the same answers to the same queries: .* is not ranked by rotate"),
        (
            lambda table: table.with_columns(candidates=60.0),
            "must have the same columns in every file: candidates",
        ),
        (
            lambda table: table.with_columns(candidates=pl.lit(60, pl.Int64)),
            "the same candidates and weights",
        ),
        (
            lambda table: table.with_columns(side=pl.lit("relation")).unique(["head", "relation", "tail"]),
            "heads and",
        ),
        (lambda table: table.with_columns(filtered=False), "filtered is not in"),
        (lambda table: table.with_columns(weight=pl.lit(1.0)), "weight is not in"),
    ],
)
def test_systems_of_other_tasks_are_refused(tables, tmp_path, change, message):
    written(tables | {"rotate": change(tables["rotate"])}, tmp_path / "ranks")
    with pytest.raises(ValueError, match=message):
        owkg.compare([tmp_path / "ranks"], "amri")


def test_other_weights_are_refused_by_macro_metrics_too(tables, tmp_path):
    weights = {"rotate": 2.0}
    weighted = {name: of.with_columns(weight=pl.lit(weights.get(name, 1.0))) for name, of in tables.items()}
    written(weighted, tmp_path / "ranks")
    with pytest.raises(ValueError, match=r"must have the same weights .* differ, such as .*, 1 and 2"):
        owkg.compare([tmp_path / "ranks"], "macro-mrr")


def test_rows_without_weight_change_nothing(tables, tmp_path):
    """Neither in memory nor in a dataset, whose parts may have no other rows; macro metrics too."""
    weighted = {
        name: of.with_columns(weight=1.0 - of["head"].is_in(["h1", "h2"])) for name, of in tables.items()
    }
    kept = {name: of.filter(pl.col("weight") > 0) for name, of in weighted.items()}
    names = [*NAMES, "macro-mrr"]
    expected = owkg.compare(kept, names, test="t")
    same(owkg.compare(weighted, names, test="t").pairs, expected.pairs)
    none = {name: of.with_columns(weight=(pl.col("relation") != "r1") * 1.0) for name, of in tables.items()}
    assert owkg.compare(none, names, test="t", by="relation").parts["relation"].unique().sort().to_list() == [
        "r0",
        "r2",
    ]
    written(weighted, tmp_path / "ranks")
    found = owkg.compare({name: tmp_path / "ranks" / f"model={name}" for name in tables}, names, test="t")
    same(found.values, expected.values)
    same(found.pairs, expected.pairs)


def test_raw_ranks_beside_filtered(tables, tmp_path):
    flagged = {name: table.with_columns(filtered=name != "rotate") for name, table in tables.items()}
    written(flagged, tmp_path / "ranks")
    refused([tmp_path / "ranks"], "raw ranks of 'rotate' cannot be compared with filtered ranks of 'complex'")


def test_several_seeds_as_in_memory(tables, tmp_path):
    """`transe` has two seeds, `complex` has one."""
    several = pl.concat([tables["transe"].with_columns(seed=0), tables["rotate"].with_columns(seed=4)])
    of = {"transe": several, "complex": tables["complex"].with_columns(seed=4)}
    written(of, tmp_path / "r")
    with pytest.warns(UserWarning, match="complex has one seed"):
        found = owkg.compare([tmp_path / "r"], NAMES, test="t")
    with pytest.warns(UserWarning, match="complex has one seed"):
        expected = owkg.compare({name: of[name] for name in sorted(of)}, NAMES, test="t")
    assert expected.values["seeds"].to_list() == [1] * 4 + [2] * 4
    for name, table in expected.items():
        same(dict(found.items())[name], table)


def test_a_seed_that_lacks_an_answer_is_named(tables, tmp_path):
    several = pl.concat([tables["transe"].with_columns(seed=0), tables["rotate"][1:].with_columns(seed=4)])
    written({"transe": several, "complex": tables["complex"].with_columns(seed=4)}, tmp_path / "r")
    with pytest.raises(ArgumentError, match="is not ranked by transe, seed 4"):
        owkg.compare([tmp_path / "r"], "mrr")
