"""`owkg ranks convert` as its users meet it."""

import re
import shlex

import numpy as np
import polars as pl
import pytest

from owkg import kg
from owkg.cli.ranks.ranks import ranks_app
from owkg.kg import KnowledgeGraph, write_labelled
from owkg.ranks import rank_table, read_ranks, write_ranks

ENTITIES, RELATIONS = ("a", "b", "c", "d"), ("r",)
TEST = np.array([[0, 0, 1], [2, 0, 3]], np.int32)
GRAPH = KnowledgeGraph(
    ENTITIES,
    RELATIONS,
    {
        "train": np.array([[0, 0, 2], [1, 0, 3]], np.int32),
        "valid": np.array([[3, 0, 3]], np.int32),
        "test": TEST,
    },
)
SCORES = np.array([[3.0, 1, 2, 1], [0, 0, 0, 0]])
IN_CSV = ", filtered by train, valid, test (only .parquet stores which splits)"
RUN = "a|r|? Q0 b 1 0.5 m\na|r|? Q0 c 2 0.7 m\nc|r|? Q0 d 1 0.5 m\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an input of each kind; the current one."""
    monkeypatch.chdir(tmp_path)
    write_labelled(GRAPH, tmp_path / "graph")
    np.savez("scores.npz", scores=SCORES, triples=TEST, side="tail")
    (tmp_path / "system.run").write_text(RUN)
    (tmp_path / "qrels").write_text("a|r|? 0 b 1\nc|r|? 0 d 1\n")
    (tmp_path / "own.csv").write_text("subject,relation,object,side,rank\na,r,b,tail,2\n")
    table = "head,relation,tail,side,optimistic,pessimistic,candidates\na,r,b,tail,1,2,4\n"
    (tmp_path / "table.csv").write_text(table)
    (tmp_path / "list.csv").write_text("head,relation,tail,side,rank\na,r,b,tail,2\n")
    write_ranks(rank_table(GRAPH, SCORES, TEST, "tail"), "ranks.parquet")
    return tmp_path


@pytest.fixture
def call(call, folder):
    """As `call`, of a line of `owkg ranks convert`."""
    return lambda line, *more: call("ranks", "convert", *shlex.split(line), *more)


def test_scores(done):
    out = done("scores.npz --kg graph --out new/ranks.parquet --model m")
    assert out == "wrote new/ranks.parquet: 2 ranks (2 tail), 100 % tied, filtered by train, valid, test\n"
    expected = rank_table(GRAPH, SCORES, TEST, "tail", model="m")
    assert read_ranks("new/ranks.parquet").frame.select(expected.columns).equals(expected)


def test_filter_and_tolerance(call):
    assert call("scores.npz --kg graph --filter none --tolerance 1 --out out.parquet")[0] == 0
    expected = rank_table(GRAPH, SCORES, TEST, "tail", filter_splits=[], tolerance=1)
    assert read_ranks("out.parquet").frame.equals(expected)
    expected = rank_table(GRAPH, SCORES, TEST, "tail", filter_splits=["test", "valid"])
    for splits in ("test,valid", "' test, valid '"):
        assert call(f"scores.npz --kg graph --filter {splits} --out out.parquet")[0] == 0
        assert read_ranks("out.parquet").frame.equals(expected)


def test_the_score_of_each_answer(call, answer):
    expected = rank_table(GRAPH, SCORES, TEST, "tail", score=True)
    for name in ("out.parquet", "out.csv", "out.tsv.gz"):
        assert call(f"scores.npz --kg graph --score --out {name}")[0] == 0
        assert read_ranks(name).frame.select(expected.columns).equals(expected)


def test_raw_scores_without_a_graph(call):
    assert call("scores.npz --filter none --out out.csv")[0] == 0
    assert read_ranks("out.csv").frame["candidates"].to_list() == [4, 4]


def test_run_with_a_graph(done):
    out = done("system.run --kg graph --out out.csv")
    assert out == f"wrote out.csv: 2 ranks (2 tail), 0 % tied{IN_CSV}\n"
    table = read_ranks("out.csv").frame
    assert table["model"].to_list() == ["m", "m"]
    assert table.select("optimistic", "candidates").rows() == [(1, 3), (1, 4)]  # a r c is known from train
    assert "popularity" in table.columns


def test_run_with_qrels_and_notes(call, folder):
    (folder / "system.run").write_text(RUN + "d|r|? Q0 a 1 1 m\n")
    code, out, _ = call("system.run --qrels qrels --num-entities 9 --model mine --out out.csv")
    assert code == 0
    assert "note: 1 queries of the run have no relevant answer, and therefore no row\n" in out
    assert read_ranks("out.csv").frame.select("optimistic", "candidates", "model").rows() == [
        (2, 9, "mine"),
        (1, 9, "mine"),
    ]


def test_several_models_are_counted_and_not_renamed(call, refused, folder):
    (folder / "system.run").write_text(RUN + RUN.replace(" m\n", " n\n"))
    code, out, _ = call("system.run --kg graph --out out.csv")
    assert (code, out) == (0, f"wrote out.csv: 4 ranks (4 tail), 2 models, 0 % tied{IN_CSV}\n")
    err = refused("system.run --kg graph --model one --out out.csv")
    assert "--model must be left out if system.run names several models itself ('m', 'n'), got 'one'" in err


def test_a_list_without_ties_only_when_said_so(call, done, refused):
    assert call("list.csv --no-ties --candidates 7 --out out.parquet")[0] == 0
    assert read_ranks("out.parquet").frame.select("optimistic", "pessimistic", "candidates").rows() == [
        (2, 2, 7)
    ]
    # With a graph its candidates follow, by the filter that is asked for.
    out = done("list.csv --no-ties --kg graph --out out.parquet")
    assert out == "wrote out.parquet: 1 ranks (1 tail), 0 % tied, filtered by train, valid, test\n"
    read = read_ranks("out.parquet")
    assert read.frame.select("candidates", "filtered", "category").rows() == [(3, True, "1-1")]
    assert read.about == {"split": "test", "filter": ["train", "valid", "test"]}
    out = call("list.csv --no-ties --kg graph --filter train --out out.parquet")[1]
    assert "note: test is not in the filter (train): the other answers to a query stay" in out
    assert not read_ranks("out.parquet").frame["filtered"].any()
    err = refused("list.csv --candidates 7 --out out.parquet")
    assert "ranks do not state their ties: --no-ties takes them as free of ties, --realistic as means" in err


def test_a_lone_column_of_ranks(done, folder):
    (folder / "plain.csv").write_text("rank\n1\n14\n")
    out = done("plain.csv --no-ties --candidates 14 --out out.parquet")
    assert "note: plain.csv does not name its queries: each rank counts as a separate query" in out
    assert read_ranks("out.parquet").frame.select("optimistic", "candidates").rows() == [(1, 14), (14, 14)]


def test_which_splits_filtered_stays_in_parquet(call, done, folder):
    (folder / "graph" / "test.txt").rename(folder / "graph" / "test_sparse.txt")
    for line in ("scores.npz", "system.run --split test_sparse"):
        out = done(f"{line} --kg graph --out out.parquet")
        assert "filtered by train, valid, test_sparse\n" in out
        assert "note:" not in out
        assert read_ranks("out.parquet").about == {
            "split": "test_sparse",
            "filter": ["train", "valid", "test_sparse"],
        }
        assert read_ranks("out.parquet").frame["filtered"].all()
    assert call("out.parquet --out again.parquet")[0] == 0
    assert read_ranks("again.parquet").about == read_ranks("out.parquet").about
    assert call("again.parquet --out out.csv")[0] == 0
    assert read_ranks("out.csv").about == {}
    code, out, _ = call("scores.npz --kg graph --filter train --out out.parquet")
    assert code == 0
    assert "note: test_sparse is not in the filter (train): the other answers" in out


@pytest.fixture
def wider(folder):
    """A graph with an entity and a test triple that `few.npz` has no column for."""
    splits = GRAPH.splits | {"test": np.array([[0, 0, 1], [2, 0, 3], [4, 0, 3], [0, 0, 4]], np.int32)}
    write_labelled(KnowledgeGraph((*ENTITIES, "e"), RELATIONS, splits), folder / "wider")
    labels = {"entity_labels": np.array(ENTITIES), "relation_labels": np.array(RELATIONS)}
    np.savez("few.npz", scores=SCORES, triples=TEST, side="tail", **labels)


def test_entities_that_score_matrices_have_not(call, done, refused, wider):
    err = refused("few.npz --kg wider --out out.parquet")
    assert "scores have 4 columns, one per entity, but the graph has 5 entities; --unseen drop or last" in err
    out = done("few.npz --kg wider --unseen drop --out out.parquet")
    assert "note: the model has never seen 1 entities and 0 relations of the graph: 2 triples of test" in out
    dropped = rank_table(GRAPH, SCORES, TEST, "tail")
    assert read_ranks("out.parquet").frame.drop("popularity").equals(dropped.drop("popularity"))
    expected = {"policy": "drop", "entities": 1, "relations": 0, "triples": 2, "candidates": 4}
    assert read_ranks("out.parquet").about["unseen"] == expected
    assert call("few.npz --kg wider --unseen last --out out.parquet")[0] == 0
    found = (
        read_ranks("out.parquet")
        .frame.select("head", "tail", "optimistic", "pessimistic", "candidates")
        .rows()
    )
    # For (a, r, ?), b and c are known and the model has seen them; for (e, r, ?), nothing else is known.
    assert found[2:] == [("e", "d", 4, 4, 4), ("a", "e", 3, 3, 3)]


def test_files_are_looked_at_before_the_graph_is_read(refused, monkeypatch):
    monkeypatch.setattr(kg, "read_graph", None)
    for line, words in (
        ("none.npz --kg graph --out out.csv", "No such file or directory: 'none.npz'"),
        ("system.run --kg graph --qrels none --out out.csv", "No such file or directory: 'none'"),
        ("scores.npz --kg graph --out scores.npz/out.csv", "scores.npz/out.csv: cannot be written"),
    ):
        err = refused(line)
        assert words in err


def test_tables_there_and_back(call):
    for source, target in (("ranks.parquet", "a.csv"), ("a.csv", "b.tsv.gz"), ("b.tsv.gz", "c.parquet")):
        assert call(f"{source} --out {target}")[0] == 0
    assert read_ranks("c.parquet").frame.equals(read_ranks("ranks.parquet").frame)


def test_the_kind_can_be_said(call, folder):
    (folder / "run.csv").write_text(RUN)
    assert call("run.csv --out out.csv")[0] == 2
    assert call("run.csv --from run --kg graph --out out.csv")[0] == 0
    assert read_ranks("out.csv").frame.height == 2


def test_duplicates_in_the_graph_are_told(done, folder):
    path = folder / "graph" / "train.txt"
    path.write_text(path.read_text() + path.read_text())
    out = done("scores.npz --kg graph --out out.csv")
    assert re.search("note: .*twice|note: .*duplicate", out)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("none.npz --out out.csv", "No such file or directory: 'none.npz'"),
        ("none.run --out out.csv", "No such file or directory: 'none.run'"),
        ("none.csv --out out.csv", "No such file or directory: 'none.csv'"),
        ("graph --out out.csv", "INPUT must hold .parquet files, got none in the folder graph"),
        ("qrels --out out.csv", "qrels: must be .npz, .parquet, .csv, .tsv or a run (lines"),
        ("scores.npz --out out.json", "out.json: the name of a rank table must end in .parquet, .csv, .tsv"),
        ("scores.npz", "--out must name the rank table to write"),
        (
            "scores.npz --out out.csv",
            "--kg must be given for the splits that filter, train, valid, test; --filter none: raw ranks",
        ),
        (
            "scores.npz --kg graph --filter dev --out out.csv",
            "--filter must be among train, valid, test, got 'dev'",
        ),
        ("scores.npz --kg none --out out.csv", "none"),
        (
            "scores.npz --kg graph --tolerance -1 --out out.csv",
            "--tolerance must be finite and at least 0, got -1",
        ),
        (
            "scores.npz --kg graph --qrels qrels --out out.csv",
            "--qrels has no effect on score matrices, which",
        ),
        ("scores.npz --kg graph --split test --lists m.run", "--split has no effect on score matrices"),
        ("scores.npz --kg graph --sort stable --lists m.run", "--sort has no effect without --out"),
        (
            "other.npz --kg graph --split test --lists m.run",
            "not a .npz file of scores: no array scores, triples",
        ),
        (
            "other.npz --kg graph --split test --out out.csv",
            "no array scores, triples, side; arrays found: a",
        ),
        ("scores.npz --kg graph --split test --out out.csv", "--split has no effect on score matrices"),
        ("table.csv --no-ties --out out.csv", "--no-ties has no effect on a rank table, which table.csv is"),
        (
            "ranks.parquet --filter none --out out.csv",
            "--filter has no effect on ranks.parquet, which already has",
        ),
        ("list.csv --unanswered --out out.csv", "--unanswered has no effect on a rank list"),
        ("list.csv --no-ties --filter train --out out.csv", "--filter needs a graph (--kg)"),
        (
            "list.csv --no-ties --kg graph --candidates 9 --out out.csv",
            "--candidates must be left out with a graph",
        ),
        (
            "list.csv --no-ties --out out.csv",
            "list.csv: no column candidates; give their number in --candidates",
        ),
        (
            "scores.npz --kg graph --score --tolerance 0.1 --out out.csv",
            "--score requires that only equal scores tie, so that ranks under other labels follow from it; "
            "--tolerance must be 0 with it, got 0.1",
        ),
        ("system.run --score --kg graph --out out.csv", "--score has no effect on a run"),
        ("system.run --candidates 9 --out out.csv", "--candidates has no effect on a run"),
        ("system.run --out out.csv", "--qrels or --split must give the relevant answers, got neither"),
        ("system.run --qrels qrels --out out.csv", "--kg or --num-entities must give the number of entities"),
        ("system.run --qrels none --num-entities 9 --out out.csv", "No such file or directory: 'none'"),
        ("system.run --qrels qrels --num-entities 2 --out out.csv", "--num-entities must be at least 4"),
        (
            "system.run --kg graph --split dev --out out.csv",
            "--split must be one of train, valid, test, got 'dev'",
        ),
        ("system.run --kg graph --split train --out out.csv", "--unanswered allows this"),
        ("ranks.parquet --from run --kg graph --out out.csv", "text in UTF-8, but is a Parquet file"),
        ("scores.npz --from table --out out.csv", "scores.npz: the name of a rank table must end in"),
        ("scores.npz --from table --out out.csv", "; owkg ranks convert makes one from scores (.npz), runs"),
        ("system.run --from scores --kg graph --out out.csv", "system.run: not a .npz file of scores"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(refused, line, message):
    np.savez("other.npz", a=[1.0])
    err = refused(line)
    assert message in err


def test_nothing_is_written_when_a_row_is_bad(call, folder):
    bad = pl.read_parquet("ranks.parquet").with_columns(candidates=pl.lit(1))
    bad.write_csv("bad.csv")
    code, _, err = call("bad.csv --out out.parquet")
    assert (code, err) == (
        2,
        "owkg: error: bad.csv, line 2: pessimistic must be at most candidates (1), got 3.\n",
    )
    assert not (folder / "out.parquet").exists()


(EPILOG,) = (one.epilog or "" for one in ranks_app.registered_commands if one.callback.__name__ == "convert")
EXAMPLES = [line for line in EPILOG.splitlines() if line.startswith("owkg ")]


def test_there_are_examples_of_several_kinds():
    assert len({example.split()[3].split(".")[-1] for example in EXAMPLES}) >= 3


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_in_the_help_runs(done, example):
    line = re.sub(r"data/\w+", "graph", example.removeprefix("owkg ranks convert ")).replace("judged.", "")
    out = done(line)
    assert out.startswith(("wrote ranks.", "wrote mine.run"))


def test_ranks_after_a_sort(folder, call, refused):
    code, out, _ = call("scores.npz --kg graph --filter none --sort reversed-stable --out s.parquet")
    assert (code, "0 % tied" in out) == (0, True)
    read = read_ranks("s.parquet")
    # Scores 3, 1, 2, 1: b ties with d, and is read after it from the end; of 0, 0, 0, 0 d comes first.
    assert (read.frame["optimistic"].to_list(), read.about["sort"]) == ([4, 1], "reversed-stable")
    assert "must be one of stable, quicksort, heapsort" in refused(
        "scores.npz --kg graph --sort slow --out s.csv"
    )
    assert "has no effect on a run" in call("system.run --kg graph --sort stable --out s.csv")[2]


def test_a_table_is_written_with_what_it_says_of_its_filter(call):
    row = {"head": "a", "relation": "r", "tail": "b", "side": "tail", "optimistic": 1, "pessimistic": 1}
    write_ranks(pl.DataFrame([row | {"candidates": 9}]), "keyed.parquet", {"filter": ["known"]})
    code, _, err = call("keyed.parquet --out keyed.csv")
    assert (code, err) == (0, "")


def test_an_option_that_says_nothing_is_refused_before_the_graph_is_read(call):
    code, _, err = call("ranks.parquet --kg nowhere --qrels qrels --out b.csv")
    assert code == 2
    assert "--qrels has no effect on a rank table" in err
