"""The verdict on a printed number."""

import pytest

from simulations.printed import Cell, counts_of, table_of, verdict


@pytest.mark.parametrize(
    ("printed", "ours", "expected"),
    [
        ("0.26", 0.2649, "equal"),
        ("0.26", 0.2551, "equal"),
        ("0.26", 0.2549, "differs"),
        ("0.26", 0.2701, "differs"),
        ("0.26", 0.255, "equal"),  # a half goes up, or to the even digit
        ("0.26", 0.265, "equal"),
        ("0.26", 0.26999, "cut"),
        ("-0.26", -0.26999, "cut"),
        ("-0.26", 0.26, "differs"),
        (".26", 0.26, "equal"),
        ("192,532", 192532, "equal"),
        ("192,532", 192533, "differs"),
        ("7.4e-3", 0.00744, "equal"),
        ("7.4e-3", 0.00746, "cut"),
        ("7.4e-3", 0.0075, "differs"),
        ("40k", 40.559, "cut"),
        ("82%", 82.29, "equal"),
        ("0.3", 0.1 + 0.2, "equal"),
        ("0.15", 0.1549999999999999, "equal"),  # a hair below what is rounded up to .16
        ("✓", 1.0, "equal"),
        ("✗", 1.0, "differs"),
        ("5", None, "not recomputed"),
    ],
)
def test_verdict(printed, ours, expected):
    assert verdict(Cell("Table 1", printed, ours, "H1")) == expected


@pytest.mark.parametrize("ours", [None, 2.0])
def test_what_is_not_equal_says_why(ours):
    with pytest.raises(ValueError, match="must say why Table 1, '1', is"):
        verdict(Cell("Table 1", "1", ours))


def test_a_number_is_compared_with_a_number():
    with pytest.raises(ValueError, match="must hold a number"):
        verdict(Cell("Table 1", "none", 1.0))


def test_counts_are_of_each_verdict():
    cells = [
        Cell("a", "1", 1.0),
        Cell("b", "1", 1.7, ""),
        Cell("c", "1", 3.0, "Y1"),
        Cell("d", "1", None, "no"),
    ]
    table = table_of(cells)
    assert table["verdict"].to_list() == ["equal", "cut", "differs", "not recomputed"]
    assert counts_of({"yang2022": table}).row(0) == ("yang2022", 4, 1, 1, 1, 1)
