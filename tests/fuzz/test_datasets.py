"""A dataset says what its rows say in one table, however they are divided, ordered, typed and repeated."""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import owkg
from owkg.judge import streamed
from owkg.metrics import fold
from owkg.ranks import partitions
from tests.fuzz.cases import FUZZ

METRICS = ("mrr", "hits@3", "gmr", "median_rank", "amri", "zmrr", "macro-mrr", "macro-map@5", "probe@0.5,0.5")
_WHOLE = (pl.Int16, pl.Int32, pl.Int64, pl.UInt16, pl.UInt32, pl.UInt64)
_TEXT = (pl.String, pl.Categorical, None)  # None: an enum of its entries


@st.composite
def _tables(draw, *, systems: int = 1) -> pl.DataFrame:
    """Rank tables of some models over the same tasks, perhaps with ties, weights, popularity."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), "numbers"))
    tasks, labels = draw(st.integers(1, 40), "tasks"), draw(st.integers(1, 6), "labels")
    frame = pl.DataFrame(
        {
            "head": rng.integers(0, labels, tasks),
            "relation": rng.integers(0, 2, tasks),
            "tail": rng.integers(0, 9, tasks),
            "side": rng.choice(["head", "tail", "relation"], tasks, p=[0.4, 0.5, 0.1]),
        }
    ).unique(maintain_order=True)
    known = pl.when(pl.col("side") == "head").then("tail").otherwise("head")
    of = pl.struct("side", "relation", known.alias("known"))
    frame = frame.with_columns(candidates=20 + of.hash(seed=1) % 7)
    frame = frame.with_columns(
        pl.format("{}{}", pl.lit(name[0]), name).alias(name) for name in ("head", "relation", "tail")
    )
    found = []
    for i in range(systems):
        low = rng.integers(1, 15, len(frame))
        high = low + rng.integers(0, 6, len(frame)) * rng.integers(0, 2, len(frame))
        found.append(frame.with_columns(optimistic=low, pessimistic=high, model=pl.lit(f"m{i}")))
    table = pl.concat(found)
    if draw(st.booleans(), "weights"):
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(frame))
        weight[rng.integers(len(frame))] = 1.0
        table = table.with_columns(weight=np.tile(weight, systems))
    if draw(st.booleans(), "popularity"):
        counts = rng.integers(0, 50, len(frame))
        table = table.with_columns(
            popularity=np.tile(counts, systems), relation_popularity=np.tile(counts // 2, systems)
        )
    return table


def _typed(draw, table: pl.DataFrame) -> pl.DataFrame:
    """The table in other types of columns."""
    whole = [name for name, kind in table.schema.items() if kind.is_integer()]
    kinds = {name: draw(st.sampled_from(_WHOLE), name) for name in whole}
    for name in ("head", "relation", "tail", "side", "model"):
        kind = draw(st.sampled_from(_TEXT), name)
        kinds[name] = pl.Enum(table[name].unique().sort()) if kind is None else kind
    if "weight" in table.columns:
        kinds["weight"] = draw(st.sampled_from((pl.Float32, pl.Float64)), "weight")
    return table.cast(kinds)


def _divided(draw, table: pl.DataFrame, folder: Path) -> Path:
    """The rows in an order of their own, in files of a folder or of folders of the models."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    seed, count = draw(st.integers(0, 99), "order"), draw(st.integers(1, 4), "files")
    table = table.sample(fraction=1.0, shuffle=True, seed=seed)
    by_folder = draw(st.booleans(), "folders of models")
    parts = table.partition_by("model", as_dict=True, include_key=not by_folder)
    if not by_folder:
        parts = {(): table}
    for (*name,), rows in parts.items():
        own = folder.joinpath(*(f"model={one}" for one in name))
        own.mkdir(exist_ok=True)
        for i in range(min(count, len(rows))):
            rows[i::count].write_parquet(own / f"{i}.parquet")
    return folder


def _near(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert found.columns == expected.columns
    text = [name for name, kind in expected.schema.items() if not kind.is_numeric()]
    found, expected = (frame.sort(*text, maintain_order=True) for frame in (found, expected))
    assert found.select(text).equals(expected.select(text))
    for name in set(expected.columns) - set(text):
        one, other = (
            frame[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for frame in (found, expected)
        )
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10, err_msg=name)


def _outcome(call):
    """What a call gives, or its error."""
    try:
        return call()
    except ValueError as error:
        return error


def _alike(found, expected) -> bool:
    """Whether both are results; one error is as good as another one."""
    failed = isinstance(found, ValueError), isinstance(expected, ValueError)
    assert failed[0] == failed[1], (found, expected)
    return not failed[0]


@pytest.fixture(scope="module", autouse=True)
def small_parts():
    """Parts of few rows, so that few rows are several."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (fold, partitions, streamed):
            patch.setattr(module, "rows_of_part", lambda rows: 8)
        yield


@FUZZ
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_metrics(place, data):
    table = data.draw(_tables(), "table")
    if data.draw(st.booleans(), "a row twice"):
        table = pl.concat([table, table[data.draw(st.integers(0, len(table) - 1), "which")]])
        one_file = True
    else:
        one_file = False
    by = data.draw(st.sampled_from([(), ("relation",), ("side",)]), "by")
    metrics = data.draw(st.lists(st.sampled_from(METRICS), min_size=1, max_size=4, unique=True), "metrics")
    if "popularity" not in table.columns:
        metrics = [name for name in metrics if not name.startswith("probe")] or ["mrr"]
    expected = _outcome(lambda: owkg.evaluate(table, metrics, by=by, ties=["exact", "realistic"]))
    if one_file:  # two files with one task are an error
        shutil.rmtree(place / "ranks", ignore_errors=True)
        (place / "ranks").mkdir()
        _typed(data.draw, table).write_parquet(place / "ranks" / "0.parquet")
    else:
        _divided(data.draw, _typed(data.draw, table), place / "ranks")
    found = _outcome(lambda: owkg.evaluate(place / "ranks", metrics, by=by, ties=["exact", "realistic"]))
    if _alike(found, expected):
        _near(found, expected)


@FUZZ
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_comparisons(place, data):
    table = data.draw(_tables(systems=2), "table")
    metrics = data.draw(
        st.lists(st.sampled_from(METRICS[:7]), min_size=1, max_size=3, unique=True), "metrics"
    )
    options = {"metrics": metrics, "test": "t"}
    systems = dict(
        zip(
            "ab",
            table.drop("model").with_columns(table["model"]).partition_by("model", include_key=False),
            strict=True,
        )
    )
    expected = _outcome(lambda: owkg.compare(systems, **options))
    paths = {}
    for name, own in systems.items():
        typed = _typed(data.draw, own.with_columns(model=pl.lit(name)))
        paths[name] = _divided(data.draw, typed, place / name)
    found = _outcome(lambda: owkg.compare(paths, **options))
    if _alike(found, expected):
        _near(found.values, expected.values)
        _near(found.pairs, expected.pairs)


@FUZZ
@given(data=st.data())
def test_nulls_nan_and_ranks_that_are_none_are_refused(place, data):
    """Of any column that a rank table needs, in any file."""
    table = data.draw(_tables(), "table")
    column = data.draw(
        st.sampled_from(["head", "relation", "tail", "side", "optimistic", "pessimistic", "candidates"]),
        "column",
    )
    whole = table.schema[column].is_integer()
    bad = data.draw(st.sampled_from([None, 0, -1, 2.5, float("nan"), 2**62] if whole else [None]), "value")
    row = data.draw(st.integers(0, len(table) - 1), "row")
    kind = pl.Float64 if isinstance(bad, float) else pl.Int64 if whole else table.schema[column]
    values = table[column].cast(kind).to_list()
    values[row] = bad
    if bad == 2**62 and column == "candidates":
        return
    broken = table.with_columns(pl.Series(column, values, kind))
    folder = _divided(data.draw, broken, place / "ranks")
    for source in (broken, folder):
        with pytest.raises(ValueError, match=column):
            owkg.evaluate(source, "mrr")
