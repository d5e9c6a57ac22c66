"""What a rank table may hold, and what is said when it holds something else."""

import math

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from owkg.ranks import validated

GOOD = {
    "head": ["a", "b", "c"],
    "relation": ["r", "r", "s"],
    "tail": ["x", "y", "z"],
    "side": ["head", "tail", "tail"],
    "optimistic": [1, 2, 3],
    "pessimistic": [1, 4, 3],
    "candidates": [9, 4, 3],
}
OPTIONAL = {
    "filtered": [True, False, True],
    "model": ["m", "m", "n"],
    "seed": [0, -1, 2],
    "weight": [0.0, 1.5, 2.0],
    "popularity": [0, 3, 1],
    "relation_popularity": [0, 1, 1],
    "category": ["1-N", "", "N-N"],
    "score": [-math.inf, 0.5, math.inf],
}


def table(**columns) -> pl.DataFrame:
    return pl.DataFrame(GOOD | columns, strict=False)


def test_a_good_table_stays_as_it_is():
    good = table(**OPTIONAL, note=[None, "kept", {"as": 1}["as"]])
    assert_frame_equal(validated(good), good)


def test_canonical_types():
    odd = table(
        optimistic=[1.0, 2.0, 3.0],
        pessimistic=["1", "4.0", "3"],
        weight=["0", "1e-3", "2"],
        score=["-inf", "0.1", "2"],
        seed=[0.0, 1.0, 2.0],
        filtered=["true", "false", "true"],
    ).with_columns(pl.col("side").cast(pl.Categorical), pl.col("candidates").cast(pl.UInt16))
    checked = validated(odd)
    assert checked.select("optimistic", "pessimistic", "candidates", "seed").dtypes == [pl.Int64] * 4
    assert checked["pessimistic"].to_list() == [1, 4, 3]
    assert checked["weight"].to_list() == [0.0, 1e-3, 2.0]
    assert checked["score"].to_list() == [-math.inf, 0.1, 2.0]
    assert checked["side"].dtype == pl.String
    assert checked["filtered"].to_list() == [True, False, True]


def test_ids_stay_whole_numbers_and_labels_stay_text():
    ids = validated(table(head=[0, 1, 2], relation=[0, 0, 1], tail=[5, 6, 7]))
    assert ids.select("head", "relation", "tail").dtypes == [pl.Int64] * 3
    digits = validated(table(head=["007", "1", "2"]))
    assert digits["head"].to_list() == ["007", "1", "2"]


# The value stands in the second row.
BAD_VALUES = [
    ("optimistic", 0, "row 2: optimistic must be a whole number of at least 1, got 0"),
    ("optimistic", -3, "row 2: optimistic must be a whole number of at least 1, got -3"),
    ("optimistic", 2.5, "row 2: optimistic must be a whole number of at least 1, got 2.5"),
    ("optimistic", "two", "row 2: optimistic must be a number, got 'two'"),
    ("optimistic", None, "row 2: optimistic is missing"),
    ("optimistic", 5, "row 2: optimistic must be at most pessimistic (4), got 5"),
    ("pessimistic", 5, "row 2: pessimistic must be at most candidates (4), got 5"),
    ("pessimistic", math.nan, "row 2: pessimistic must be a whole number of at least 1, got nan"),
    ("pessimistic", math.inf, "row 2: pessimistic must be a whole number of at least 1, got inf"),
    ("pessimistic", 1e17, "row 2: pessimistic must be a whole number of at least 1, at most 2^53, got 1e+17"),
    (
        "candidates",
        "9" * 20,
        f"row 2: candidates must be a whole number of at least 1, below 2^63, got '{'9' * 20}'",
    ),
    ("candidates", 0, "row 2: candidates must be a whole number of at least 1, got 0"),
    ("candidates", 3, "row 2: pessimistic must be at most candidates (3), got 4"),
    ("candidates", None, "row 2: candidates is missing"),
    ("side", "both", 'row 2: side must be "head", "tail" or "relation", got \'both\''),
    ("side", "lhs", 'row 2: side must be "head", "tail" or "relation", got \'lhs\''),
    ("side", None, "row 2: side is missing"),
    ("head", None, "row 2: head is missing"),
    ("weight", -0.5, "row 2: weight must be finite and at least 0, got -0.5"),
    ("weight", math.nan, "row 2: weight must be finite and at least 0, got nan"),
    ("weight", math.inf, "row 2: weight must be finite and at least 0, got inf"),
    ("weight", None, "row 2: weight is missing"),
    ("weight", "heavy", "row 2: weight must be a number, got 'heavy'"),
    ("score", math.nan, "row 2: score must not be NaN, got nan"),
    ("score", None, "row 2: score is missing"),
    ("score", "high", "row 2: score must be a number, got 'high'"),
    ("seed", 0.5, "row 2: seed must be a whole number, got 0.5"),
    ("popularity", -1, "row 2: popularity must be a whole number of at least 0, got -1"),
    ("relation_popularity", -1, "row 2: relation_popularity must be a whole number of at least 0, got -1"),
    ("category", None, "row 2: category is missing"),
    ("model", None, "row 2: model is missing"),
    ("filtered", None, "row 2: filtered is missing"),
    ("filtered", "yes", "row 2: filtered must be true or false, got 'yes'"),
]


@pytest.mark.parametrize(("column", "value", "message"), BAD_VALUES)
def test_a_bad_value_is_named_with_its_row_and_column(column, value, message):
    values = list((GOOD | OPTIONAL)[column])
    values[1] = value
    kind = pl.Float64 if isinstance(value, float) else None
    bad = table(**OPTIONAL).with_columns(pl.Series(column, values, kind, strict=False))
    if isinstance(value, str) and column not in ("side",):
        text = ["true" if v is True else str(v) for v in values]
        bad = bad.with_columns(pl.Series(column, text))
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared whole
        validated(bad, source="mine")
    assert str(error.value).rstrip(".") == f"mine, {message}"


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("optimistic", [True, True, True], "optimistic must hold whole numbers, got values of type Boolean"),
        ("optimistic", [[1], [1], [1]], "optimistic must hold whole numbers, got values of type List"),
        ("weight", [0, 0, 0], "weight must be above 0 in some row, got 0 in all 3"),
        ("weight", [True, True, True], "weight must hold numbers, got values of type Boolean"),
        (
            "head",
            [0.5, 1.0, 2.0],
            "head must hold labels (text) or ids (whole numbers), got values of type F",
        ),
        ("tail", [0, 1, 2], "head and tail must both hold labels (text) or both ids"),
        ("filtered", [0, 1, 1], "filtered must hold true or false, got values of type Int64"),
        ("model", [0, 1, 2], "model must hold text, got values of type Int64"),
    ],
)
def test_a_bad_column_is_named(column, values, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
        validated(table(**{column: values}), source="mine")
    assert str(error.value).startswith(f"mine: {message}")


def test_a_negative_id_is_refused():
    with pytest.raises(ValueError, match="table, row 3: head must be a whole number of at least 0, got -1"):
        validated(table(head=[0, 1, -1], tail=[0, 1, 2]))


def test_missing_columns_are_named_with_those_found():
    with pytest.raises(
        ValueError, match=r"^t: no column side, candidates; columns found: head, rel.*istic; `columns`"
    ):
        validated(table().drop("side", "candidates"), source="t")


def test_a_column_rank_is_pointed_to_its_converter():
    bare = table().drop("optimistic", "pessimistic").with_columns(rank=pl.lit(1))
    with pytest.raises(ValueError, match="candidates, rank; ranks do not state their ties: `untied`"):
        validated(bare)
    with pytest.raises(ValueError, match=r"no column side; .*candidates, rank; `columns` names"):
        validated(table(rank=[1, 1, 1]).drop("side"))


def test_an_empty_table_is_refused():
    with pytest.raises(ValueError, match="t: no rows"):
        validated(table().clear(), source="t")


@pytest.mark.parametrize("other", [None, 3, "ranks.csv"])
def test_anything_but_a_table_is_refused(other):
    with pytest.raises(ValueError, match=r"`table` must be a DataFrame of polars or pandas, .*, got"):
        validated(other)


def test_rows_may_repeat():
    twice = pl.concat([table(), table()])
    assert_frame_equal(validated(twice), twice)


def test_flags_may_be_written_in_any_case():
    assert validated(table(filtered=["True", "FALSE", "true"]))["filtered"].to_list() == [True, False, True]
