"""A closed world is read from a file whatever its order, and bad lines are named."""

import gzip
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from owkg.kg import read_graph
from owkg.sampling import read_facts
from owkg.sampling.facts import sorted_facts

LABEL = st.text(st.characters(codec="utf-8", exclude_characters="\t\n\r\ufeff"), min_size=1, max_size=4)
FACTS = st.lists(st.tuples(LABEL, LABEL, LABEL), min_size=1, max_size=12)
THREE = [("b", "r", "a"), ("a", "s", "b"), ("a", "r", "b")]


def _text(facts):
    return "".join("\t".join(fact) + "\n" for fact in facts)


def _labels(graph):
    (facts,) = graph.splits.values()
    return [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in facts.tolist()]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=FACTS)
def test_the_facts_of_a_file_are_what_the_graph_reader_finds(facts, tmp_path):
    (tmp_path / "train.txt").write_text(_text(facts), encoding="utf-8", newline="")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_facts(tmp_path / "train.txt")
    graph = read_graph(tmp_path, duplicates="keep", layout="labelled")
    assert found[:2] == graph[:2]
    assert _labels(found) == sorted(set(facts))


@given(order=st.permutations(THREE))
def test_the_order_of_lines_changes_nothing(order, tmp_path_factory):
    path = tmp_path_factory.mktemp("facts") / "facts.tsv"
    path.write_text(_text(order))
    found = read_facts(path)
    assert found.entities == ("a", "b")
    assert found.relations == ("r", "s")
    assert found.splits["facts"].tolist() == [[0, 0, 1], [0, 1, 1], [1, 0, 0]]
    assert found.splits["facts"].dtype == np.int32


@pytest.mark.parametrize("suffix", [".tsv", ".tsv.gz", ".parquet", ".txt"])
def test_files_of_every_kind_say_the_same(suffix, tmp_path):
    path = tmp_path / f"facts{suffix}"
    if suffix == ".parquet":
        table = pl.DataFrame(THREE, schema=["head", "relation", "tail"], orient="row")
        table.select("tail", "head", pl.col("relation").cast(pl.Categorical)).write_parquet(path)
    elif suffix == ".tsv.gz":
        path.write_bytes(gzip.compress(_text(THREE).encode()))
    else:
        path.write_bytes(b"\xef\xbb\xbf" + _text(THREE).replace("\n", "\r\n").encode() + b"\r\n\n")
    assert _labels(read_facts(path)) == sorted(THREE)


def test_quotation_marks_hashes_and_spaces_are_letters(tmp_path):
    facts = [('"a', "#r", ' b"'), ('"', "r s", "NA"), ("*", "1", "null")]
    (tmp_path / "facts*.tsv").write_text(_text(facts))
    assert _labels(read_facts(tmp_path / "facts*.tsv")) == sorted(facts)


def test_repeated_lines_are_counted(tmp_path):
    path = tmp_path / "facts.tsv"
    path.write_text(_text([*THREE, THREE[0], THREE[0]]))
    with pytest.warns(UserWarning, match=r"facts\.tsv: 2 of 5 lines repeat an earlier fact"):
        assert _labels(read_facts(path)) == sorted(THREE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "line 1: must hold something, got an empty file"),
        (b"\n\n", "line 1: must hold something"),
        (b"a\tr\tb\na\tr\n", "line 2: must be head, relation and tail.* got 2 columns"),
        (b"a\tr\tb\na\tr\tb\tc\n", "line 2: must be .* got 4 columns"),
        (b"a\tr\tb\tc\n", "line 1: must be .* got 4 columns"),
        (b"a\tr\tb\n\na\tr\tc\n", "line 2: must be .* got a blank line"),
        (b"a\tr\tb\na\t\tb\n", "line 2: must be .* none empty"),
        (b"a r b\n", "line 1: must be .* got 1 column"),
        (b"a\tr\tb\na\tr\t\xff\n", "line 2: must be UTF-8"),
    ],
)
def test_bad_lines_are_named(text, message, tmp_path):
    path = tmp_path / "facts.tsv"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=rf"facts\.tsv, {message}"):
        read_facts(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"head": ["a"], "relation": ["r"]}, "must have the columns head, relation, tail, of text, got head"),
        ({"head": ["a"], "relation": ["r"], "tail": [1]}, r"tail \(Int64\)"),
        ({"head": ["a"], "relation": ["r"], "tail": ["b"], "more": ["c"]}, "more"),
        ({"head": ["a", "a"], "relation": ["r", "r"], "tail": ["b", ""]}, "in row 2"),
        ({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "c"]}, "in row 2"),
        ({"head": [], "relation": [], "tail": []}, "must"),
    ],
)
def test_bad_parquet_files_are_named(columns, message, tmp_path):
    pl.DataFrame(columns).write_parquet(tmp_path / "facts.parquet")
    with pytest.raises(ValueError, match=rf"facts\.parquet: .*{message}"):
        read_facts(tmp_path / "facts.parquet")


def test_what_is_no_file_of_facts(tmp_path):
    (tmp_path / "facts.parquet").write_text("no")
    (tmp_path / "facts.tsv.gz").write_bytes(gzip.compress(b"a\tr\tb\n")[:-4])
    for path, message in (("facts.parquet", "undamaged Parquet file"), ("facts.tsv.gz", "whole gzip file")):
        with pytest.raises(ValueError, match=message):
            read_facts(tmp_path / path)
    with pytest.raises(ValueError, match="`path` must be the path of a file, got 3"):
        read_facts(3)
    for path in (tmp_path / "none.tsv", tmp_path):
        with pytest.raises(OSError, match=str(path)):
            read_facts(path)


@given(triples=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), max_size=20))
def test_sorted_facts_are_the_sorted_set(triples):
    array = np.array(triples, np.int32).reshape(-1, 3)
    assert sorted_facts(array, 5, 3).tolist() == sorted(map(list, set(triples)))


def test_the_largest_ids_are_sorted_too():
    triples = np.array([[2**30 - 1, 6, 2**30 - 1], [2**30 - 1, 6, 0], [0, 0, 5]], np.int32)
    assert sorted_facts(triples, 2**30, 7).tolist() == triples[::-1].tolist()
    with pytest.raises(ValueError, match="1073741824 entities and 8 relations"):
        sorted_facts(triples, 2**30, 8)


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("f.tsv", "b\ta\tr\na\tb\ts\na\tb\tr\n", "head,tail,relation"),
        ("f.csv", "b,r,a\na,s,b\na,r,b\n", None),
        ("f.csv", "r;a;b\ns;b;a\nr;b;a\n", "relation,tail,head"),
        ("f.tsv", "p\tsub\tobj\nr\tb\ta\ns\ta\tb\nr\ta\tb\n", "head=sub,relation=p,tail=obj"),
    ],
)
def test_columns_of_facts_can_be_named(tmp_path, name, text, columns):
    (tmp_path / name).write_text(text)
    assert _labels(read_facts(tmp_path / name, columns=columns)) == sorted(THREE)


@pytest.mark.parametrize(
    ("name", "text", "columns", "words"),
    [
        ("f.tsv", "a\tr\tb\n", "labelled", "`columns` must be an order of columns"),
        ("f.tsv", "sub\tp\tobj\na\tr\tb\n", None, r"\(`columns` head=sub,relation=p,tail=obj\)"),
        ("f.tsv", "x\tsub\tp\tobj\n1\ta\tr\tb\n", None, r"\(`columns` head=sub,relation=p,tail=obj\)"),
        ("f.csv", "a,r,b,1\n", None, "f.csv, line 1: must be .* of a fact, got a class too"),
        ("f.csv", "a,r\n", None, "f.csv, line 1: must be head, relation and tail"),
    ],
)
def test_bad_columns_of_facts_are_named(tmp_path, name, text, columns, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        read_facts(tmp_path / name, columns=columns)
