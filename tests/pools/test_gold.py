"""Gold items: error rates counted on them, and what is refused."""

import re

import polars as pl
import pytest

from owkg.pools.gold import gold_rates

ROWS = [("q1", "a", "1", "0"), ("q1", "b", "no", "0"), ("q2", "a", "?", "1"), ("q2", "b", "yes", "1")] + [
    (f"q{i}", "a", "relevant", "relevant") for i in range(3, 10)
]
WRONG = [(f"w{i}", "a", "0", "0") for i in range(8)]


def table(rows, **columns):
    return pl.DataFrame(rows, ["query", "answer", "label", "truth"], orient="row").with_columns(**columns)


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet", None])
def test_rates_are_counted_on_judged_items(tmp_path, ending):
    gold = table(ROWS + WRONG)
    source = gold if ending is None else tmp_path / f"gold.{ending}"
    if ending == "parquet":
        gold.write_parquet(source)
    elif ending is not None:
        gold.write_csv(source, separator="\t" if ending == "tsv" else ",")
    found = gold_rates(source)
    # Of 10 wrong items one is judged relevant; one of 9 true ones is not judged.
    assert (found.fp, found.fn, found.gold_negative, found.gold_positive) == (0.1, 0.0, 10, 8)


def test_numbers_are_labels_too():
    gold = table(ROWS + WRONG).head(2).with_columns(label=pl.Series([1, 0]), truth=pl.lit(0, pl.Int64))
    with pytest.raises(ValueError, match=r"`fn` must be given if no gold item is true"):
        gold_rates(gold)
    assert gold_rates(gold[1:], fn=0.1).fn == 0.1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("q", "a", "maybe", "1")], "gold.tsv, line 2: the label must be 1, y, yes, .*, got 'maybe'"),
        (
            [*WRONG, ("q", "a", "1", "?")],
            "gold.tsv, line 10: the truth must be 1, y, yes, relevant; .*, got '?'",
        ),
        ([*WRONG, ("q", "a", "1", "")], "gold.tsv, line 10: the truth must be .*, got ''"),
        ([*WRONG, WRONG[0]], "gold.tsv, line 10: the answer must occur once for its query, got 'a'"),
    ],
    ids=str,
)
def test_a_bad_item_is_named(tmp_path, rows, message):
    table(rows).write_csv(tmp_path / "gold.tsv", separator="\t")
    with pytest.raises(ValueError, match=message.replace("'?'", re.escape("'?'"))):
        gold_rates(tmp_path / "gold.tsv")


def test_a_table_without_a_column_is_refused(tmp_path):
    table(ROWS).drop("truth").write_csv(tmp_path / "gold.tsv", separator="\t")
    with pytest.raises(ValueError, match=r"gold.tsv, line 1: must have the columns .*, but has no truth"):
        gold_rates(tmp_path / "gold.tsv")
    with pytest.raises(ValueError, match=r"`errors`: must have the columns"):
        gold_rates(table(ROWS).drop("label"))
    with pytest.raises(ValueError, match=r"`errors`, row 1: the label must be"):
        gold_rates(table([("q", "a", "x", "1")]))
