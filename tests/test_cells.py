"""Text of others is no command of a terminal and no formula of a spreadsheet."""

import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from owkg.cli.inputs import noted_line
from owkg.cli.main import main
from owkg.cli.output import show, wrote
from owkg.files.cells import as_it_was, harmless, harmless_table
from owkg.terminal.progress import _line, _Told
from owkg.terminal.tables import one_line, plain_text

COMMANDS = ["\x1b]0;title\x07", "\x1b[2J", "\x9b31m", "a\rb", "\x7f\x08", "abc\u202edcba", "\u2066x\u2069"]
# What a terminal may act on.
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def tables(tmp_path):
    """Rank tables of three queries, of which one is named by all that a terminal may act on."""
    rows = [
        {"head": head, "relation": "r", "tail": "t", "side": "tail", "optimistic": 1, "pessimistic": 1}
        | {"candidates": 5}
        for head in ("a", "b", "c")
    ]
    pl.DataFrame(rows).write_parquet(tmp_path / "one.parquet")
    rows[2] |= {"head": "".join(COMMANDS) + "\nowkg: error: forged"}
    pl.DataFrame(rows).write_parquet(tmp_path / "two.parquet")
    pl.DataFrame(rows).with_columns(relation=pl.lit("=1+1\x1b[31m")).write_parquet(tmp_path / "three.parquet")
    return tmp_path


def said(capsys):
    """What was printed, on both streams, none of it active."""
    out, err = capsys.readouterr()
    assert not ACTIVE.search(out + err)
    return out, err


@pytest.mark.parametrize("text", COMMANDS)
def test_what_a_terminal_acts_on_is_spelled_out(text, capsys):
    assert not ACTIVE.search(plain_text(text))
    noted_line(f"{text}\nowkg: error: forged")
    wrote(text)
    out, err = said(capsys)
    assert (out, err.count("\n")) == ("", 2)
    assert not ACTIVE.search(_line(one_line(text), "rows", 0.0, [_Told(1.0, 1, 2, text)]))


def test_errors_are_one_line_of_plain_text(tables, capsys):
    assert main(["compare", *(str(tables / f"{name}.parquet") for name in ("one", "two"))]) == 2
    out, err = said(capsys)
    assert (out, err.count("\n")) == ("", 1)
    assert r"\x1b]0;title\x07\x1b[2J" in err
    bad = tables / "bad\x1b[31m\nowkg: note: forged\u202e.parquet"
    bad.write_bytes(b"x")
    assert main(["metrics", str(bad)]) == 2
    assert said(capsys)[1].count("\n") == 1
    assert main(["metrics", "--no-such\x1b[2J"]) == 2
    assert said(capsys)[1].count("\n") == 1


@pytest.mark.parametrize("form", ["csv", "latex", "json", "table"])
def test_results_hold_no_command_in_any_format(tables, capsys, form):
    options = ["--metric", "mrr", "--by", "relation", "--format", form]
    assert main(["metrics", str(tables / "three.parquet"), *options]) == 0
    out, _ = said(capsys)
    assert "1b" in out
    assert ("'=1+1" in out) == (form == "csv")


@pytest.mark.parametrize("begin", [*"=+-@'\t\r", "\uff1d", "\uff0b"])
def test_a_cell_is_no_formula(begin):
    (cell,) = harmless(pl.Series("a", [f"{begin}cmd|' /C calc'!A0"]))
    assert cell[0] in "'\\"
    table = pl.DataFrame({"=a": [begin + "1"], "b": [-1.5], "c": pl.Series([begin], dtype=pl.Categorical)})
    shown = {"\t": "\\x09", "\r": "\\x0d"}.get(begin, f"'{begin}")
    assert harmless_table(table).write_csv() == f"'=a,b,c\n{shown}1,-1.5,{shown}\n"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_the_rule_can_be_undone(texts):
    cells = harmless(pl.Series("a", texts))
    assert as_it_was(cells).to_list() == texts
    assert not any(ACTIVE.search(cell) or "\n" in cell for cell in cells)


def test_a_path_that_is_no_text_is_printed(capsys):
    wrote(b"a\xff".decode(errors="surrogateescape"))  # type: ignore[arg-type]
    assert capsys.readouterr().err == "wrote a\\udcff\n"


def test_lines_of_a_paper_stay_comments(capsys):
    show("latex", {}, lines=["one\n\\input{secret}"])
    assert capsys.readouterr().out == "% one\\x0a\\input{secret}\n"
