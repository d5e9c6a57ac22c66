"""Rank tables in files: round trips, and messages that say which line is wrong."""

import gzip

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from owkg.ranks import read_ranks, write_ranks

SUFFIXES = ("parquet", "csv", "tsv", "csv.gz", "tsv.gz")
HEADER = "head,relation,tail,side,optimistic,pessimistic,candidates"
TASK = {
    "head": "a",
    "relation": "r",
    "tail": "b",
    "side": "tail",
    "optimistic": 2,
    "pessimistic": 3,
    "candidates": 9,
}

# Any text that UTF-8 can hold. A lone carriage return is whitespace to some readers and text to others.
LABELS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=6)


@st.composite
def tasks(draw):
    candidates = draw(st.integers(1, 2**40))
    pessimistic = draw(st.integers(1, candidates))
    return {
        "head": draw(LABELS),
        "relation": draw(LABELS),
        "tail": draw(LABELS),
        "side": draw(st.sampled_from(["head", "tail"])),
        "optimistic": draw(st.integers(1, pessimistic)),
        "pessimistic": pessimistic,
        "candidates": candidates,
        "filtered": draw(st.booleans()),
        "model": draw(LABELS),
        "seed": draw(st.integers(-(2**62), 2**62)),
        "weight": draw(st.floats(1e-300, 1e300)),
        "popularity": draw(st.integers(0, 9)),
        "category": draw(LABELS),
        "note": draw(LABELS),
    }


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(rows=st.lists(tasks(), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory, suffix, rows):
    table = pl.DataFrame(rows)
    path = tmp_path_factory.mktemp("ranks") / f"ranks.{suffix}"
    write_ranks(table, path)
    assert_frame_equal(read_ranks(path).frame, table)


def test_ids_keep_their_type_in_parquet_and_become_text_in_csv(tmp_path):
    table = pl.DataFrame([TASK | {"head": 7, "relation": 0, "tail": 8}])
    for suffix, head in (("parquet", 7), ("csv", "7")):
        write_ranks(table, tmp_path / f"ranks.{suffix}")
        assert read_ranks(tmp_path / f"ranks.{suffix}").frame["head"].to_list() == [head]


def test_equal_tables_give_equal_packed_bytes(tmp_path):
    for name in ("a", "b"):
        write_ranks(pl.DataFrame([TASK]), tmp_path / f"{name}.csv.gz")
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


def test_a_bad_table_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="row 1: pessimistic must be at most candidates"):
        write_ranks(pl.DataFrame([TASK | {"candidates": 1}]), tmp_path / "ranks.csv")
    with pytest.raises(ValueError, match=r"ranks\.csv: .*nested"):
        write_ranks(pl.DataFrame([TASK | {"note": [1, 2]}]), tmp_path / "ranks.csv")
    assert list(tmp_path.iterdir()) == []


def test_folders_are_made_and_odd_names_are_names(tmp_path):
    path = tmp_path / "new" / "ranks[1]*.csv"
    write_ranks(pl.DataFrame([TASK]), path)
    assert read_ranks(str(path)).frame.height == 1


def test_line_endings_and_byte_order_mark(tmp_path):
    path = tmp_path / "ranks.csv"
    path.write_bytes(b"\xef\xbb\xbf" + f"{HEADER}\r\na,r,b,tail,1,2,3\r\n".encode())
    assert read_ranks(path).frame.row(0) == ("a", "r", "b", "tail", 1, 2, 3)


def test_an_empty_last_field_and_quoted_quotes_are_fine(tmp_path):
    table = pl.DataFrame([TASK | {"tail": ',x"y', "note": None}, TASK | {"note": '"'}])
    write_ranks(table, tmp_path / "ranks.csv")
    assert_frame_equal(read_ranks(tmp_path / "ranks.csv").frame, table)


@pytest.mark.parametrize("ends", [",", ",,"])
def test_separators_at_the_ends_of_all_lines_are_no_column(tmp_path, ends):
    path = tmp_path / "ranks.csv"
    path.write_text(f"{HEADER}\n{GOOD}\n")
    plain = read_ranks(path).frame
    path.write_text(f"{HEADER}{ends}\n{GOOD}{ends}\n")
    assert_frame_equal(read_ranks(path).frame, plain)


GOOD = "a,r,b,tail,1,2,3"
BAD_FILES = [
    ("", ": the file is empty"),
    (f"{HEADER}\n", ": no rows"),
    ("head,relation\na,r\n", ": no column tail, side, optimistic"),
    (f"{HEADER},head\n{GOOD},a\n", ", line 1: each column needs a name of its own, got 'head'"),
    (f"{HEADER},\n{GOOD},a\n", ", line 1: each column needs a name of its own, got ''"),
    (f"{HEADER},\n{GOOD},\n{GOOD},a\n", ", line 1: each column needs a name of its own, got ''"),
    (f"{HEADER},\n{GOOD},\n{GOOD}\n", ", line 3: 7 fields instead of 8"),
    (f"{HEADER}\n{GOOD}\n{GOOD},4\n", ", line 3: 8 fields instead of 7"),
    (f"{HEADER}\n{GOOD}\na,r,b,tail,1,2\n", ", line 3: 6 fields instead of 7"),
    (f"{HEADER}\n{GOOD}\n\n{GOOD}\n", ", line 3: blank"),
    (f"{HEADER},note\n{GOOD},x\n{GOOD}\n", ", line 3: 7 fields instead of 8"),
    (
        f"{HEADER}\n{GOOD}\na,r,b,tail,1,2.5,3\n",
        ", line 3: pessimistic must be a whole number of at least 1, got '2.5'",
    ),
    (f"{HEADER}\n{GOOD}\na,r,b,tail,1,4,3\n", ", line 3: pessimistic must be at most candidates (3), got 4"),
    (f"{HEADER}\n{GOOD}\na,r,b,tail,0,2,3\n", ", line 3: optimistic must be a whole number of at least 1"),
    (f"{HEADER}\n{GOOD}\na,r,b,tail,one,2,3\n", ", line 3: optimistic must be a number, got 'one'"),
    (f"{HEADER}\n{GOOD}\na,r,,tail,1,2,3\n", ", line 3: tail is missing"),
    (f"{HEADER}\n{GOOD}\na,r,b,left,1,2,3\n", ", line 3: side must be"),
    (f'{HEADER}\n"a\n\na",r,b,tail,1,2,3\na,r,b,tail,1,3,2\n', ", line 5: pessimistic must be at most"),
    (f'{HEADER}\n{GOOD}\n"a,r,b,tail,1,2,3\n{GOOD}\n', ", line 3: unexpected end of data"),
    (f'{HEADER}\n{GOOD}\n"a"b,r,b,tail,1,2,3\n', ", line 3: ',' expected after '\"'"),
    (f'{HEADER}\n{GOOD}\na"b,r,b,tail,1,2,3\n', ", line 3: a quotation mark inside an unquoted field"),
    (f"{HEADER}\n{GOOD}\n\udcffa,r,b,tail,1,2,3\n", ", line 3: the text is not UTF-8"),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_a_bad_line_is_named(tmp_path, text, message, packed):
    raw = text.encode(errors="surrogateescape")
    path = tmp_path / ("ranks.csv.gz" if packed else "ranks.csv")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
        read_ranks(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_a_bad_row_of_a_parquet_file_is_named(tmp_path):
    path = tmp_path / "ranks.parquet"
    pl.DataFrame([TASK, TASK | {"optimistic": 4}]).write_parquet(path)
    with pytest.raises(ValueError, match=r"ranks\.parquet, row 2: optimistic must be at most pessimistic"):
        read_ranks(path)


def test_a_file_that_is_not_what_its_name_says(tmp_path):
    path = tmp_path / "ranks.parquet"
    path.write_text(HEADER)
    with pytest.raises(ValueError, match=r"ranks\.parquet: must be an undamaged Parquet file"):
        read_ranks(path)
    path = tmp_path / "ranks.csv.gz"
    packed = gzip.compress((HEADER + "\n" + "a,r,b,tail,1,2,3\n" * 99).encode())
    path.write_bytes(packed[:-20])
    with pytest.raises(ValueError, match=r"ranks\.csv\.gz: must be a whole gzip file"):
        read_ranks(path)
    path.write_bytes(np.random.default_rng(0).bytes(1000))
    with pytest.raises(ValueError, match=r"ranks\.csv\.gz"):
        read_ranks(path)


@pytest.mark.parametrize("name", ["ranks", "ranks.txt", "ranks.json", "csv", "ranks.gz", "ranks.parquet.gz"])
def test_an_unknown_suffix_is_refused(tmp_path, name):
    path = tmp_path / name
    path.touch()
    for call in (lambda: read_ranks(path).frame, lambda: write_ranks(pl.DataFrame([TASK]), path)):
        with pytest.raises(ValueError, match=r"name of a rank table must end in \.parquet, \.csv, \.tsv"):
            call()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_missing_file_or_a_folder_is_an_oserror(tmp_path, suffix):
    with pytest.raises(OSError, match="No such file"):
        read_ranks(tmp_path / f"ranks.{suffix}")
    (tmp_path / f"ranks.{suffix}").mkdir()
    with pytest.raises(ValueError, match=r"must hold \.parquet files, got none"):
        read_ranks(tmp_path / f"ranks.{suffix}")
