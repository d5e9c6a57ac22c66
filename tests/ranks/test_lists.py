"""Rank lists without ties, and what a file is taken for."""

import gzip
import lzma

import numpy as np
import polars as pl
import pytest

from owkg.kg import KnowledgeGraph
from owkg.metrics import tasks_of
from owkg.ranks import rank_table, ranks_from_list, read_ranks
from owkg.ranks.formats import kind_of

HEADER = "head,relation,tail,side,rank"


@pytest.fixture
def saved(tmp_path):
    def save(text, name="list.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return save


def test_a_rank_is_both_ranks(saved):
    expected = ["head", "relation", "tail", "side", "optimistic", "pessimistic", "candidates"]
    table = ranks_from_list(saved(f"{HEADER}\na,r,b,tail,3\nc,r,d,head,1.0\n"), num_candidates=9)
    assert sorted(table.columns) == sorted(expected)
    assert table.select(expected).rows() == [
        ("a", "r", "b", "tail", 3, 3, 9),
        ("c", "r", "d", "head", 1, 1, 9),
    ]
    table = ranks_from_list(saved(f"{HEADER},candidates\na,r,b,tail,3,7\n".replace(",", "\t"), "list.tsv"))
    assert table["candidates"].to_list() == [7]


@pytest.mark.parametrize(
    ("text", "number", "message"),
    [
        (f"{HEADER}\na,r,b,tail,0\n", 9, ", line 2: rank must be a whole number of at least 1, got '0'"),
        (f"{HEADER}\na,r,b,tail,2.5\n", 9, ", line 2: rank must be a whole number of at least 1, got '2.5'"),
        (f"{HEADER}\na,r,b,tail,10\n", 9, ", line 2: rank must be at most candidates (9), got 10"),
        (f"{HEADER}\na,r,b,tail,1\n", None, ": no column candidates; give their number in `num_candidates`"),
        (
            f"{HEADER},candidates\na,r,b,tail,1,9\n",
            9,
            ": `num_candidates` must be an option or the column candidates, got both",
        ),
        (
            f"{HEADER},optimistic\na,r,b,tail,1,1\n",
            9,
            ": has a column rank and optimistic, so that ranks are not free of ties",
        ),
        (
            "head,relation,tail,side\na,r,b,tail\n",
            9,
            ": no column rank; columns found: head, relation, tail, side",
        ),
        ("rank,side\n1,tail\n", 9, ": no column head, relation, tail"),
        (f"{HEADER}\na,r,b,tail\n", 9, ", line 2: 4 fields instead of 5"),
    ],
)
def test_a_bad_list_is_named(saved, text, number, message):
    path = saved(text)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
        ranks_from_list(path, num_candidates=number)
    assert str(error.value).startswith(f"{path}{message}")


@pytest.fixture
def graph():
    """To (a, r, ?) and (?, r, c) another answer is known, by train and valid."""
    splits = {"train": [(0, 0, 1), (3, 1, 0)], "valid": [(1, 0, 2)], "test": [(0, 0, 2), (0, 1, 2)]}
    arrays = {name: np.array(triples, np.int32) for name, triples in splits.items()}
    return KnowledgeGraph(("a", "b", "c", "d"), ("r", "s"), arrays)


ROWS = f"{HEADER}\na,r,c,tail,1\na,r,c,head,2\na,s,c,tail,4\n"


@pytest.mark.parametrize("read", [ranks_from_list, lambda *a, **o: read_ranks(*a, **o, untied=True).frame])
def test_candidates_follow_from_the_graph(saved, graph, read):
    table = read(saved(ROWS), graph=graph)
    expected = pl.concat(
        [
            rank_table(graph, np.zeros((len(rows), 4)), np.array(rows), side)
            for side, rows in (("tail", [(0, 0, 2)]), ("head", [(0, 0, 2)]), ("tail", [(0, 1, 2)]))
        ]
    )
    given = [
        *HEADER.split(",")[:-1],
        "candidates",
        "filtered",
        "popularity",
        "relation_popularity",
        "category",
    ]
    assert table["candidates"].to_list() == [3, 3, 4]
    assert table.select(given).equals(expected.select(given))
    # Candidates of the file are kept, and what train says is added all the same.
    kept = read(saved(f"{HEADER},candidates\na,r,c,tail,1,9\n"), graph=graph)
    assert kept.select("candidates", "relation_popularity").rows() == [(9, 0)]


def test_the_filter_of_a_list(saved, graph):
    for splits, counts, filtered in (
        ([], [4, 4, 4], False),
        (["train"], [3, 4, 4], False),
        (["valid", "test"], [4, 3, 4], True),
    ):
        table = ranks_from_list(saved(ROWS), graph=graph, filter_splits=splits)
        assert table["candidates"].to_list() == counts
        assert table["filtered"].to_list() == [filtered] * 3


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (f"{ROWS}a,r,e,tail,1\n", {}, "line 5: the graph has no entity 'e'"),
        (
            f"{ROWS}a,r,d,tail,1\n",
            {},
            r"line 5: the graph has no triple 'a r d' in any split, .* \(1 of 4 rows",
        ),
        (f"{HEADER}\na,r,c,tail,4\n", {}, r"line 2: rank must be at most candidates \(3\), got 4"),
        (f"{HEADER},filtered\na,r,c,tail,1,false\n", {}, "`filter_splits` must name the splits that filter"),
        ("rank\n3\n", {}, "`columns` must give the side of ranks without head, relation and tail, as"),
        (ROWS, {"num_candidates": 4}, "`num_candidates` must be left out with a graph"),
        (ROWS, {"filter_splits": ["dev"]}, "`filter_splits` must be among train, valid, test, got 'dev'"),
    ],
)
def test_a_list_that_is_not_of_the_graph(saved, graph, text, options, message):
    with pytest.raises(ValueError, match=message):
        ranks_from_list(saved(text), graph=graph, **options)


@pytest.mark.filterwarnings("ignore:.* does not name its queries")
def test_a_lone_rank_is_of_a_query_of_its_own(saved):
    table = ranks_from_list(saved("rank,model\n3,m\n1,m\n"), num_candidates=9)
    assert table.select("head", "relation", "tail", "side", "optimistic", "pessimistic", "model").rows() == [
        (0, 0, 0, "tail", 3, 3, "m"),
        (1, 0, 1, "tail", 1, 1, "m"),
    ]
    assert tasks_of(table)[0].num_queries == 2
    table = ranks_from_list(saved("rank,candidates\n3,14\n"))
    assert table["candidates"].to_list() == [14]


def test_bad_arguments_are_named(saved):
    path = saved(f"{HEADER}\na,r,b,tail,1\n")
    with pytest.raises(ValueError, match="`num_candidates` must be a whole number of at least 1, got 0"):
        ranks_from_list(path, num_candidates=0)
    with pytest.raises(ValueError, match=r"list.txt: the name of a rank table must end in"):
        ranks_from_list(saved("", "list.txt"), num_candidates=9)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("x.npz", "", "scores"),
        ("x.npy", "", "list"),
        ("x.parquet", "", "table"),
        ("x.csv", "head,optimistic\n", "table"),
        ("x.tsv", "head\trank\toptimistic\n", "table"),
        ("x.csv", "", "table"),
        ("x.csv", f"{HEADER}\n", "list"),
        ("x.tsv", "tail\trank\n", "list"),
        ("x.run", "a|r|? Q0 b 1 0.5 m\n", "run"),
        ("x", "a|r|?\tQ0\tthe b\t1\t0.5\tm\n", "run"),
    ],
)
def test_what_a_file_is(saved, name, text, kind):
    assert kind_of(saved(text, name)) == kind


def test_a_packed_list_is_seen(tmp_path):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(f"{HEADER}\n".encode()))
    assert kind_of(tmp_path / "x.csv.gz") == "list"
    (tmp_path / "x.run.gz").write_bytes(gzip.compress(b"a|r|? Q0 b 1 0.5 m\n"))
    assert kind_of(tmp_path / "x.run.gz") == "run"


def test_a_binary_file_of_another_kind_is_told(tmp_path):
    (tmp_path / "ranks.xz").write_bytes(lzma.compress(HEADER.encode()))
    (tmp_path / "ranks.pt").write_bytes(b"PK\x03\x04\0\0")
    for name in ("ranks.xz", "ranks.pt"):
        with pytest.raises(
            ValueError, match=rf"{name}: must be \.npz, \.npy, .* got a binary file\. A list of ranks is"
        ):
            kind_of(tmp_path / name)


@pytest.mark.parametrize("text", ["a b c\n", "", "one two three four five six seven\n"])
def test_what_no_file_of_ranks_is(saved, text):
    with pytest.raises(ValueError, match=r"x\.txt"):
        kind_of(saved(text, "x.txt"))
