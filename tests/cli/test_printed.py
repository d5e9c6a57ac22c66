"""Tables on a terminal: no wider than it, names kept and repeated; p-values as bounds; tables of papers."""

import pytest

from owkg.terminal.latex import small_caps, three_digits
from owkg.terminal.tables import p_value, printed

HEADS = ["first_system", "second", *(f"metric_{i}" for i in range(9))]
ROWS = [["complex_neg", f"system {i}", *(f"0.{i}{j}00 [0.1000, 0.2000]" for j in range(9))] for i in range(3)]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_names_are_repeated(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    printed("Title", HEADS, ROWS, 2)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    blocks = out.count("first system")
    assert blocks > 1
    assert out.count("complex_neg") == 3 * blocks
    assert all(f"metric {i}" in out for i in range(9))
    assert all(cell.split()[0] in out for row in ROWS for cell in row[2:])


def test_heads_that_are_names_stay_as_given(capsys):
    printed("", ["metric", "complex_neg"], [["mrr", "0.5"]], as_given=True)
    assert "complex_neg" in capsys.readouterr().out
    printed("", ["metric", "full_low"], [["mrr", "0.5"]])
    assert "full low" in capsys.readouterr().out


def test_long_names_are_broken_and_none_is_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    name = "a system of a long name, as people give them when they try many settings"
    printed("", ["model", "value"], [[name, "0.1234 [0.1000, 0.2000]"], ["b", "0.1 [0.1, 0.2]"]])
    out = capsys.readouterr().out
    assert all(word in out for word in name.split())
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("p", "draws", "text"),
    [
        (1 / 10_001, 10_000, "< 0.0002"),
        (2 / 10_001, 10_000, "0.0002"),
        (1 / 101, 100, "< 0.02"),
        (0.25, 100, "0.2500"),
        (1e-9, None, "< 0.0001"),
        (1.0, None, "1.0000"),
    ],
)
def test_a_p_value_at_the_floor_of_its_test_is_a_bound(p, draws, text):
    assert p_value(p, draws) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.12345, "0.123"), (-0.0001, "0.000"), (12.345, "12.35"), (1234.56, "1,234.6")]
)
def test_papers_show_three_digits(value, text):
    assert three_digits(value) == text


def test_papers_show_names_in_small_capitals():
    assert small_caps("complex_neg") == r"\textsc{complex\_neg}"
