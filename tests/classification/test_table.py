"""The table of scored triples: what is taken, and what is refused with its place."""

import polars as pl
import pytest

from owkg.classification import checked_triples, read_triples, write_triples

GOOD = pl.DataFrame(
    {"head": ["a", "b"], "relation": ["r", "r"], "tail": ["c", "d"], "label": [1, 0], "score": [0.5, -1]}
)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([1, 0], ["positive", "negative"]),
        ([1, -1], ["positive", "negative"]),
        ([1.0, 0.0], ["positive", "negative"]),
        ([True, False], ["positive", "negative"]),
        (["Positive", " unknown "], ["positive", "unknown"]),
    ],
)
def test_labels(labels, expected):
    found = checked_triples(GOOD.with_columns(pl.Series("label", labels)))
    assert found["label"].to_list() == expected
    assert found["split"].to_list() == ["test", "test"]
    assert found["score"].dtype == pl.Float64


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "label",
            [1, 2],
            r"mine, row 1: label must be positive \(1, .*\), negative \(0, -1, .*\) or unknown, got 2",
        ),
        ("label", [1, 0.5], "mine, row 1: label must be positive"),
        ("label", [None, 1], "mine, row 0: label is missing"),
        ("score", [0.5, None], "mine, row 1: score is missing"),
        ("head", ["a", None], "mine, row 1: head is missing"),
        ("score", [0.0, float("nan")], "mine, row 1: score must be a finite number, got nan"),
        ("score", [float("inf"), 0.0], "mine, row 0: score must be a finite number, got inf"),
        ("score", ["0.1", "x"], "mine, row 1: score must be a finite number, got 'x'"),
        ("head", ["a", "a"], None),
    ],
)
def test_bad_values(column, values, message):
    table = GOOD.with_columns(pl.Series(column, values, strict=False))
    if message is None:  # twice the same triple
        table = table.with_columns(pl.lit("c").alias("tail"))
        message = "mine, row 1: the triple 'a r c' is already in test"
    with pytest.raises(ValueError, match=message):
        checked_triples(table, source="mine")


def test_missing_columns_and_rows():
    with pytest.raises(ValueError, match="mine: a table of scored triples needs the columns label, score"):
        checked_triples(GOOD.drop("label", "score"), source="mine")
    with pytest.raises(ValueError, match="mine: must have at least one triple, got none"):
        checked_triples(GOOD.clear(), source="mine")
    with pytest.raises(ValueError, match=r"`triples` must be a DataFrame of polars or pandas, .*, got list"):
        checked_triples([])


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv.gz"])
def test_files(tmp_path, name):
    write_triples(GOOD.with_columns(mine=pl.lit("x")), tmp_path / name)
    assert read_triples(tmp_path / name).equals(checked_triples(GOOD.with_columns(mine=pl.lit("x"))))


def test_a_bad_line_of_a_file_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("head,relation,tail,label,score\na,r,b,1,0.5\na,r,c,maybe,0.5\n")
    with pytest.raises(ValueError, match=r"t.csv, line 3: label must be .*, got 'maybe'"):
        read_triples(path)
    with pytest.raises(ValueError, match="must end in"):
        read_triples(tmp_path / "t.pickle")


def test_a_triple_may_stand_in_two_splits_and_models():
    two = pl.concat([GOOD.with_columns(split=pl.lit(s), model=pl.lit(m)) for s in "ab" for m in "xy"])
    assert checked_triples(two).height == 8
