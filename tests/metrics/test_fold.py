"""Metrics of datasets: equal to those of the same rows in memory, whatever is in one file or one part."""

import itertools
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import owkg
from owkg.errors import ArgumentError
from owkg.metrics import fold, metric, report
from owkg.metrics.registry import LISTING
from owkg.metrics.report import report_and_sizes
from owkg.metrics.sources import reports
from owkg.ranks import RankDataset, partitions, read_ranks, write_ranks
from owkg.ranks.dataset import is_dataset

NUMBERS = ["value", "expectation", "variance", "standard_error", "ci_low", "ci_high", "effective_queries"]


# One of each kind: with a link, of medians and scatter, by weights, macro, adjusted; nothing that is drawn.
SOME = [
    metric(name)
    for name in (
        "mrr",
        "zmr",
        "gmr",
        "wgmr",
        "max_rank",
        "variance",
        "probe@1,0.5",
        "macro-map@20",
        "cdf-zhits@10",
    )
]


def written(table: pl.DataFrame, folder, files: int = 4) -> RankDataset:
    """The rows, shuffled, in some files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=5)
    for i in range(files):
        shuffled[i::files].write_parquet(folder / f"part-{i}.parquet")
    return RankDataset.of(folder)


def same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    keys = [name for name in expected.columns if expected[name].dtype == pl.String]
    assert found.columns == expected.columns
    assert found.select(keys).equals(expected.select(keys))
    for name in set(expected.columns) - set(keys):
        one, other = (
            frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for frame in (found, expected)
        )
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of few rows, so that a small table has several."""
    for module in (fold, partitions):
        monkeypatch.setattr(module, "rows_of_part", lambda rows: 60)


@pytest.fixture
def table(full_table) -> pl.DataFrame:
    """Two models, two of whose tasks are of the relation; whole numbers of candidates for each query."""
    other = full_table.with_columns(optimistic=pl.lit(1, pl.Int64), model=pl.lit("b"))
    return pl.concat([full_table.with_columns(model=pl.lit("a")), other])


@pytest.mark.parametrize("options", [{}, {"by": ["relation", "popularity"]}, {"level": None}, {"level": 0.5}])
def test_a_report_is_that_of_the_rows_in_memory(small_parts, table, tmp_path, options):
    found, sizes = report_and_sizes(written(table, tmp_path / "ranks"), SOME, **options)
    same(found, report(table, SOME, **options))
    tied = table.filter(pl.col("optimistic") < pl.col("pessimistic"))
    assert sizes == (len(table), len(tied))


def test_every_metric_is_that_of_the_rows_in_memory(small_parts, table, tmp_path):
    every = [metric(entry.example) for entry in LISTING]
    chosen = {"sides": ("both",), "ties": ("optimistic", "exact"), "draws": 300}
    found, _ = report_and_sizes(written(table, tmp_path / "ranks"), every, **chosen)
    same(found, report(table, every, **chosen))


@pytest.mark.parametrize("drop", [["weight"], ["weight", "popularity", "relation_popularity"]])
def test_without_weights_and_popularity(small_parts, table, tmp_path, drop):
    table = table.drop(drop)
    names = ["mrr", "zmr", "gmr", "hmr", "count", "macro-mrr"] + ["median_rank"] * (len(drop) == 1)
    chosen = {"metrics": [metric(name) for name in names], "sides": ("both",), "ties": ("exact", "realistic")}
    same(report_and_sizes(written(table, tmp_path / "ranks"), **chosen)[0], report(table, **chosen))


def test_tasks_of_relations(small_parts, table, tmp_path):
    relations = table.with_columns(side=pl.lit("relation")).unique(["head", "relation", "tail", "model"])
    both = pl.concat([table, relations])
    for i, one in enumerate((relations, both)):
        same(report_and_sizes(written(one, tmp_path / str(i)), SOME)[0], report(one, SOME))


@pytest.mark.filterwarnings("ignore:.*intervals may be too narrow")
def test_raw_ranks_have_no_macro_metrics(small_parts, table, tmp_path):
    some = table.with_columns(filtered=pl.Series(np.arange(len(table)) > 3))
    same(report_and_sizes(written(some, tmp_path / "some"), SOME)[0], report(some, SOME))
    raw = table.with_columns(filtered=False).drop("weight")
    with pytest.warns(UserWarning, match="no macro metrics"):
        found, _ = reports([tmp_path], [written(raw, tmp_path / "raw")], sides=("both",))
    assert not found["metric"].str.starts_with("macro").any()


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Int64])
def test_labels_and_ids(small_parts, table, tmp_path, kind):
    labels = pl.col("head", "tail").str.slice(1)
    ids = table.with_columns(labels, pl.col("relation").str.slice(1)).unique(
        ["head", "relation", "tail", "side", "model"], maintain_order=True
    )
    ids = ids.with_columns(pl.col("head", "relation", "tail").cast(kind))
    same(report_and_sizes(written(ids, tmp_path / "ranks"), SOME)[0], report(ids, SOME))


def test_rows_of_one_file_that_say_the_same_are_one_task(small_parts, table, tmp_path):
    again = pl.concat([table, table[:7]])
    found, sizes = report_and_sizes(written(again, tmp_path / "ranks", files=1), SOME)
    same(found, report(again, SOME))
    assert sizes[0] == len(table)


def test_a_temporary_folder_that_is_not_there(small_parts, table, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", "/nowhere")
    with pytest.raises(ValueError, match=r"the variable TMPDIR must name a folder .* got '/nowhere'"):
        report_and_sizes(written(table, tmp_path), [metric("mrr")])


def test_progress_ends_with_all_rows(small_parts, table, tmp_path):
    told = []
    dataset = written(table, tmp_path / "ranks")
    report_and_sizes(dataset, SOME, on_progress=lambda *counts: told.append(counts))
    assert told[-1] == (2 * len(table), 2 * len(table))
    assert told == sorted(told)


def test_drawn_chance_levels_of_many_tasks_are_left_out(small_parts, table, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["owkg.metrics.evaluate"], "MOST_DRAWN", 10)
    dataset = written(table, tmp_path / "ranks")
    with pytest.warns(UserWarning, match="2 chance levels are left out"):
        found, _ = report_and_sizes(dataset, [metric("power-mean@2")], sides=("both",), ties=("exact",))
    assert found["expectation"].null_count() == 2
    assert found["value"].null_count() == 0


def test_owkg_evaluate_takes_a_path(small_parts, table, tmp_path, monkeypatch):
    dataset = written(table, tmp_path / "ranks")
    write_ranks(table, tmp_path / "all[1].parquet")
    monkeypatch.chdir(tmp_path)
    names = ["mrr", "amri", "macro-mrr"]
    expected = owkg.evaluate(table, names, by="relation", side=["both", "head"])
    for ranks in (
        dataset,
        "ranks",
        tmp_path / "ranks",
        "ranks/*.parquet",
        "ranks/part-?.parquet",
        "all[1].parquet",
    ):
        same(owkg.evaluate(ranks, names, by="relation", side=["both", "head"]), expected)
    with pytest.raises(
        ArgumentError, match="`side` must be a side of the table, which has no rows of relation"
    ):
        owkg.evaluate("ranks", names, side="relation")


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum])
def test_labels_of_categories_are_text_in_a_folder(table, tmp_path, kind):
    of = kind if kind is pl.Categorical else pl.Enum(table["relation"].cast(pl.String).unique().sort())
    named = table.with_columns(
        pl.col("relation").cast(pl.String).cast(of), pl.col("model").cast(pl.Categorical)
    )
    folder = written(named, tmp_path / "ranks").source
    same(owkg.evaluate(folder, "mrr", by="relation"), owkg.evaluate(table, "mrr", by="relation"))


def test_half_links_that_the_files_have(small_parts, table, tmp_path):
    links = table.with_columns(
        half_link=pl.when(pl.col("optimistic") > 2)
        .then(pl.lit("both seen"))
        .otherwise(pl.lit("neither seen"))
    )
    folder = written(links, tmp_path / "ranks").source
    same(owkg.evaluate(folder, "mrr", by="half-link"), owkg.evaluate(links, "mrr", by="half-link"))


def test_the_name_of_a_file_is_no_pattern(tmp_path, table, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_ranks(table, "a[1].parquet")
    write_ranks(table.head(3), "a1.parquet")
    assert not is_dataset(tmp_path / "a[1].parquet")
    assert RankDataset.of("a[1].parquet").rows == len(table)
    assert RankDataset.of("a[0-9].parquet").rows == 3


def test_folders_name_columns(small_parts, table, tmp_path):
    for name in ("a", "b c"):
        own = table.filter(model="a").drop("model")
        own.write_parquet(
            (folder(tmp_path / "ranks" / f"model={name.replace(' ', '%20')}")) / "part-0.parquet"
        )
    (tmp_path / "ranks" / "_done").touch()
    table.write_parquet(tmp_path / "ranks" / ".part-1.parquet")
    both = pl.concat([table.filter(model="a").with_columns(model=pl.lit(name)) for name in ("a", "b c")])
    same(report_and_sizes(RankDataset.of(tmp_path / "ranks"), SOME)[0], report(both, SOME))
    for source in (tmp_path / "ranks" / "model=a", tmp_path / "ranks" / "model=a" / "*.parquet"):
        assert report_and_sizes(RankDataset.of(source), SOME)[0]["model"].unique().to_list() == ["a"]


@pytest.mark.parametrize(
    "kinds",
    [
        {"model": pl.Categorical, "relation": pl.Categorical},
        {"model": pl.Enum(["a"])},
        {"candidates": pl.Int32, "optimistic": pl.UInt16, "weight": pl.Float32},
    ],
)
def test_files_may_hold_a_column_in_another_width_or_form(table, tmp_path, kinds):
    own = table.filter(model="a").cast({"weight": pl.Float32}).cast({"weight": pl.Float64})
    ranks = folder(tmp_path / "ranks")
    own[::2].write_parquet(ranks / "0.parquet")
    own[1::2].cast(kinds).write_parquet(ranks / "1.parquet")
    same(report_and_sizes(RankDataset.of(ranks), SOME)[0], report(own, SOME))


def folder(path):
    path.mkdir(parents=True)
    return path


def refused(source, message, **options):
    with pytest.raises(ValueError, match=message):
        report_and_sizes(source if isinstance(source, RankDataset) else RankDataset.of(source), **options)


def test_bad_files_are_named(table, tmp_path):
    ranks = tmp_path / "ranks"
    refused(folder(ranks), "`ranks` must hold .parquet files, got none in the folder .*ranks")
    refused(ranks / "*.parquet", r"`ranks` must name files, but no file matches the pattern .*\*.parquet")
    with pytest.raises(FileNotFoundError):
        RankDataset.of(ranks / "none.parquet")
    table.clear().write_parquet(ranks / "0.parquet")
    refused(ranks, "must have rows, got none in 1 files")
    table[:9].write_parquet(ranks / "1.parquet")
    for wrong, column, said in (
        (
            table.with_columns(pl.col("candidates").cast(pl.Float32)),
            "candidates",
            "is Int64 in .*0.parquet and Float32 in",
        ),
        (table.drop("weight"), "weight", "is Float64 in .*0.parquet and not in"),
        (table.with_columns(more=1), "more", "is not in .*0.parquet and Int32 in"),
    ):
        wrong[9:].write_parquet(ranks / "2.parquet")
        refused(ranks, f"same columns in every file: {column} {said} .*2.parquet")
    (ranks / "2.parquet").write_text("no Parquet file")
    refused(ranks, "2.parquet: must be an undamaged Parquet file")
    table.drop("optimistic").write_parquet(ranks / "2.parquet")
    refused(ranks / "2.parquet", "2.parquet: no column optimistic")
    table.write_parquet(folder(ranks / "model=x") / "3.parquet")
    refused(ranks / "model=x", "3.parquet: model is both a column of the file and in the name of its folder")


@pytest.mark.parametrize(
    ("column", "entry", "message"),
    [
        ("optimistic", None, "row 3: optimistic is missing"),
        ("optimistic", 0, "row 3: optimistic must be a whole number of at least 1, got 0"),
        ("pessimistic", 10**6, r"row 3: pessimistic must be at most candidates \(\d+\), got 1000000"),
        ("head", None, "row 3: head is missing"),
        ("side", "left", 'row 3: side must be "head"'),
        ("weight", float("nan"), "row 3: weight must be finite"),
    ],
)
def test_bad_entries_are_named(small_parts, table, tmp_path, column, entry, message):
    values = table[column].to_list()
    values[12] = entry
    table[:10].write_parquet(folder(tmp_path / "ranks") / "0.parquet")
    bad = table.with_columns(pl.Series(column, values, table[column].dtype))
    bad[10:].write_parquet(tmp_path / "ranks" / "1.parquet")
    refused(tmp_path / "ranks", f"1.parquet, {message}")


def test_nan_earns_no_rank(small_parts, table, tmp_path):
    floats = table.with_columns(pl.col("optimistic").cast(pl.Float64))
    bad = floats.with_columns(
        optimistic=pl.when(pl.int_range(pl.len()) == 5).then(np.nan).otherwise("optimistic")
    )
    bad.write_parquet(folder(tmp_path / "ranks") / "0.parquet")
    refused(tmp_path / "ranks", "row 6: optimistic must be a whole number of at least 1, got nan")


def test_a_task_in_two_files_is_named(small_parts, table, tmp_path):
    for again in (
        table[4:5],
        table[4:5].with_columns(optimistic=pl.lit(1), pessimistic=pl.lit(2), candidates=9),
    ):
        ranks = tmp_path / str(again["candidates"][0])
        table.write_parquet(folder(ranks) / "0.parquet")
        again.cast(dict(table.schema)).write_parquet(ranks / "1.parquet")
        row = table.row(4, named=True)
        task = ", ".join(f"{key} '{row[key]}'" for key in ("head", "relation", "tail", "side", "model"))
        refused(
            ranks, f"`ranks` must have each task once: .*0.parquet and .*1.parquet both rank the task {task}"
        )


def test_a_file_that_ranks_a_task_differently_is_named(small_parts, table, tmp_path):
    again = table[4:5].with_columns(optimistic=pl.lit(1), pessimistic=pl.lit(10**3), candidates=pl.lit(10**3))
    pl.concat([table, again.cast(dict(table.schema))]).write_parquet(folder(tmp_path / "ranks") / "0.parquet")
    refused(tmp_path / "ranks", "0.parquet ranks twice the task head")


def test_rows_of_no_weight_change_nothing(small_parts, table, tmp_path):
    """Nor does a group of which some part, or every part, has nothing else."""
    weight = pl.when(pl.col("head").hash() % 3 == 0).then(0.0).otherwise(pl.col("weight") + 1)
    lacking = pl.col("relation") == pl.col("relation").max()
    some = table.with_columns(weight=pl.when(lacking).then(0.0).otherwise(weight))
    chosen = [*SOME, metric("median_rank"), metric("count")]
    options = {"by": ["relation"], "group_metrics": chosen}
    dataset = report_and_sizes(written(some, tmp_path / "some"), chosen, **options)[0]
    same(dataset, report(some, chosen, **options))
    whole = report_and_sizes(written(some.filter(pl.col("weight") > 0), tmp_path / "cut"), chosen)[0]
    same(dataset.filter(pl.col("by").is_null()), whole)


def test_no_weight_at_all(small_parts, table, tmp_path):
    zero = table.with_columns(weight=0.0)
    refused(written(zero, tmp_path / "ranks"), "must have a weight above 0 in some row")


def test_too_little_memory_or_disk_is_told_before_the_work(table, tmp_path, monkeypatch):
    dataset = written(table, tmp_path / "ranks")
    monkeypatch.setattr(partitions, "free_memory", lambda: 2**27)
    refused(
        dataset, r"`ranks` must leave memory for parts of \d+ of \d+ rows: 0\.25 GiB .* and 0\.12 are free"
    )
    for module in (fold, partitions):
        monkeypatch.setattr(module, "free_memory", lambda: 2**28 + 2**20)
    wide = written(table.with_columns(candidates=pl.lit(10**6, pl.Int64)), tmp_path / "wide")
    refused(
        wide,
        "`by` must leave memory for the counts of ranks of all groups",
        by="relation",
        metrics=[metric("median_rank")],
    )
    for module in (fold, partitions):
        monkeypatch.setattr(module, "free_memory", lambda: None)
    monkeypatch.setattr(partitions, "disk_free", lambda folder: 10)
    refused(dataset, "must fit on the disk once more")


def test_nothing_is_left_behind(small_parts, table, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(folder(tmp_path / "aside")))
    report_and_sizes(written(table, tmp_path / "ranks"), SOME)
    table[4:5].write_parquet(tmp_path / "ranks" / "again.parquet")
    refused(tmp_path / "ranks", "both rank")
    assert list((tmp_path / "aside").iterdir()) == []


def test_powers_beyond_the_scale_of_a_sum_are_refused(small_parts, table, tmp_path):
    dataset = written(table, tmp_path / "ranks")
    refused(dataset, "`metrics` must weigh by smaller powers", metrics=[metric("probe@1,90")])
    heavy = written(table.with_columns(pl.col("weight") * 1e60), tmp_path / "heavy")
    refused(heavy, "`ranks` must have a largest weight between 1e-50 and 1e50")


def test_the_number_of_parts_changes_nothing(table, tmp_path, monkeypatch):
    dataset, found = written(table, tmp_path / "ranks"), []
    for size in (7, 50, 10**6):
        monkeypatch.setattr(fold, "rows_of_part", lambda rows, size=size: size)
        found.append(report_and_sizes(dataset, SOME, sides=("both",))[0])
    for one, other in itertools.pairwise(found):
        same(one, other)
    assert read_ranks(dataset.files[0].path).frame.height == dataset.files[0].rows


def test_what_needs_all_ranks_has_a_dataset_in_memory_or_says_what_is_lacking(table, tmp_path, monkeypatch):
    """The size decides, and not whether the ranks are in one file."""
    folder = Path(written(table, tmp_path / "ranks").source)
    options = {"interval": "percentile", "replicates": 20}
    monkeypatch.setattr(partitions, "rows_of_part", lambda rows: 60)
    same(owkg.evaluate(folder, "mrr", **options), owkg.evaluate(table, "mrr", **options))
    monkeypatch.setattr(partitions, "free_memory", lambda: 2**28)
    with pytest.raises(ValueError, match=r"^`interval` must leave memory for all .* ranks at once: .* GiB"):
        owkg.evaluate(folder, "mrr", **options)


def test_a_folder_keeps_what_other_commands_ask_of_a_file(table, tmp_path):
    scored = table.with_columns(score=pl.int_range(pl.len()) * 0.5)
    read = partitions.whole_table(written(scored, tmp_path / "ranks")).frame
    key = ["head", "relation", "tail", "side", "model"]
    assert read.sort(key)["score"].to_list() == scored.sort(key)["score"].to_list()


def test_a_row_that_stands_twice_in_one_part_alone(small_parts, table, tmp_path):
    plain = table.filter(model="b").drop("weight")
    twice = pl.concat([plain, plain[:1]])
    names = [metric(name) for name in ("mrr", "gmr", "hmr", "median_rank")]
    found = report(written(twice, tmp_path / "ranks", files=1), names, sides=("both",))
    same(found, report(twice, names, sides=("both",)))
