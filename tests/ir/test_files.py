"""Runs and judgements in files of several kinds, told apart by their content."""

import gzip
import json
import os

import pytest

from owkg.ir.trec import read_qrels, read_run

RUN = {("q1", "d1"): -1.0, ("q1", "d2"): -2.0, ("q2", "d3"): -1.0}
QRELS = {("q1", "d1"): 1, ("q1", "d2"): 0, ("q2", "d3"): 2}
HELD = {"q1": {"d1": -1, "d2": -2.0}, "q2": {"d3": -1}}


def pairs(frame, value):
    return {
        (query, answer): number for query, answer, number in frame.select("query", "answer", value).rows()
    }


def written(path, text):
    if isinstance(text, bytes):
        path.write_bytes(text)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.run", "q1 Q0 d1 1 -1 a\nq1 Q0 d2 2 -2 a\nq2 Q0 d3 1 -1 a\n"),
        ("a.run", "\ufeffq1\tQ0 d1 1\t-1 a\r\nq1 Q0 d2  2 -2 a\r\nq2 Q0 d3 1 -1 a"),
        ("a.tsv", "q1\td1\t1\nq1\td2\t2\nq2\td3\t1\n"),
        ("a.run", "q1 d1 1\nq1 d2 2\nq2 d3 1\n"),
        ("a.tsv.gz", "q1\td1\t1\nq1\td2\t2\nq2\td3\t1\n"),
        ("a.json", json.dumps(HELD)),
        ("a.json", json.dumps(HELD, indent=2)),
        ("a.json.gz", json.dumps(HELD)),
        ("a.run", json.dumps(HELD)),
    ],
)
@pytest.mark.filterwarnings("ignore:.*each score is minus the rank")
def test_runs(name, text, tmp_path):
    frame = read_run(written(tmp_path / name, text), topics=True)
    assert pairs(frame, "score") == RUN
    assert set(frame["tag"]) == {"a"}


def test_ranks_without_scores_are_noted(tmp_path):
    with pytest.warns(UserWarning, match=r"a\.tsv: has ranks but no scores, so each score is minus the rank"):
        read_run(written(tmp_path / "a.tsv", "q1\td1\t1\n"), topics=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.qrels", "q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\n"),
        ("a.tsv", "q1\t0\td1\t1\nq1\t0\td2\t0\nq2\t0\td3\t2\n"),
        ("test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\nq2\td3\t2\n"),
        ("test.csv", "query-id,corpus-id,score\nq1,d1,1\nq1,d2,0\nq2,d3,2\n"),
        ("test.csv", "query_id;doc_id;relevance\nq1;d1;1\nq1;d2;0\nq2;d3;2\n"),
        ("test.tsv", "query-id\titeration\tcorpus-id\tscore\nq1\t0\td1\t1\nq1\t0\td2\t0\nq2\t0\td3\t2\n"),
        ("a.qrels", "q1 0 d1 1.0\nq1 0 d2 0\nq2 0 d3 2.\n"),
        ("a.json", '{"q1": {"d1": 1, "d2": 0.0}, "q2": {"d3": 2}}'),
    ],
)
def test_qrels(name, text, tmp_path):
    assert pairs(read_qrels(written(tmp_path / name, text), topics=True), "relevance") == QRELS


RULES = (
    "a r c\nHeads: a\t0.9\td\t0.8\t\nTails: c\t0.7\n"
    "b s d\nHeads: \nTails: d\t1\n"
    "a r e\nHeads: a\t0.4\nTails: c\t0.7\te\t0.5\n"
)


def test_predictions_of_rules(tmp_path):
    """The lists of one query, which differ by the answers that were filtered, are one list."""
    with pytest.warns(UserWarning, match=r"1 queries have an empty list, such as '\?\|s\|d' .line 5."):
        frame = read_run(written(tmp_path / "alpha-100", RULES), topics="allowed")
    assert pairs(frame, "score") == {
        ("?|r|c", "a"): 0.9,
        ("?|r|c", "d"): 0.8,
        ("?|r|e", "a"): 0.4,
        ("a|r|?", "c"): 0.7,
        ("a|r|?", "e"): 0.5,
        ("b|s|?", "d"): 1.0,
    }
    assert frame.filter(query="?|r|e").select("line", "side", "entity", "relation", "tag").rows() == [
        (8, "head", "e", "r", "alpha-100")
    ]
    spaced = written(tmp_path / "b", "a b\tr\tc|d\nHeads: a b\t1\nTails: \n")
    with pytest.warns(UserWarning, match="1 queries have an empty list"):
        assert pairs(read_run(spaced), "score") == {("?|r|c\\|d", "a b"): 1.0}


def test_whole_letters_of_two_escapes_are_read(tmp_path):
    text = r'{"\ud83d\ude00": {"\\ud800": 1}}'
    assert pairs(read_run(written(tmp_path / "x", text), topics=True), "score") == {
        ("\U0001f600", "\\ud800"): 1
    }


def test_an_empty_list_beside_another_of_the_same_query_is_not_told(tmp_path):
    text = "a r c\nHeads: a\t1\nTails: \na r e\nHeads: a\t1\nTails: e\t1\n"
    assert len(read_run(written(tmp_path / "x", text))) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: must hold something"),
        ("hello world\n", "line 1: must be lines `query Q0 answer rank score tag`.*got 2 columns"),
        ("q1 Q0 d1 1 2 a\nq1 d2 2\n", "line 2: must be 6 fields"),
        ("q1 Q0 d1 1 2 a\n\nq1 Q0 d2 2 1 a\n", "line 2: .* got a blank line"),
        ("q1 Q0 d1 1 nan a\n", "line 1: a score must not be NaN"),
        ("q1\td1\t1\nq1\td2\t1\n", "line 2: a rank must occur once"),
        ("q1\td1\t1\nq1\td2\t0\n", "line 2: a rank must be a whole number from 1"),
        ("q1\td1\t1\nq1\td1\t2\n", "line 2: the answer 'd1' to 'q1' is also on an earlier line"),
        ('{"q": {"d": NaN}}', "x: the score of 'd' to 'q' must be a number, got nan"),
        ('{"q": {"d": 1, "d": 2}}', "line 1: must have each key of an object once, got 'd' twice"),
        ('{"q": {"d": 1},\n"q": {"e": 2}}', "must have each key of an object once, got 'q' twice"),
        ('{"q": {"d": 1},\n"e": }', "line 2: must be JSON"),
        ('{"q": [1]}', "got list for the query 'q'"),
        ('{"q":' * 100_000, "not nested so deep"),
        ('{"q": {"d": 1},\n"e": {"\\ud800": 1}}', r"line 2: must be Unicode, got .ud800, half of a letter"),
        ('{"\\ude00": {"d": 1}}', r"line 1: must be Unicode, got .ude00"),
        ('{"\\ud83d \\ude00": {"d": 1}}', r"line 1: must be Unicode, got .ud83d"),
        ("PAR1 and so on", "must be a run, text in UTF-8, but is a Parquet file"),
        (b"\x89PNG\r\n", "but is an image"),
        ("q1 Q0 d1 1 2 a\n".encode("utf-16"), "but is text in UTF-16"),
        (b"q1 Q0 d1 1 2 \0\n", "but is a binary file"),
        (gzip.compress(b"q1 Q0 d1 1 2 a", mtime=0), "whose name must end in .gz"),
        (RULES + "b s d\nHeads: a\t1\n", "line 11: must be followed by the other lines|end of the file"),
        (RULES.replace("0.4", "x"), "line 8: must be candidates with scores, got 'a' with score 'x'"),
        (RULES.replace("\t0.4", ""), "line 8: .* in turn"),
        (RULES.replace("b s d", "b s"), "line 4: must be a triple"),
        (RULES.replace("Heads: \n", "Tails: \n"), "line 5: must begin with 'Heads:'"),
        (RULES.replace("c\t0.7\te", "c\t0.6\te"), "line 9: the answer 'c' to 'a|r|?' has a different score"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*have an empty list")
@pytest.mark.filterwarnings("ignore:.*each score is minus the rank")
def test_bad_runs(text, message, tmp_path):
    with pytest.raises(ValueError, match=message.replace("|r|?", r"\|r\|\?")):
        read_run(written(tmp_path / "x", text), topics=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q1\td1\t1\n", "line 1: must be lines `query 0 answer relevance`"),
        ("query-id\tcorpus-id\tscore\n", "line 1: must be followed by judgements"),
        (
            "query-id\tcorpus-id\tscore\nq1\td1\t0.5\n",
            "line 2: a relevance must be a whole number, got '0.5'",
        ),
        ("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td1\t1\n", "line 3: the answer 'd1' to 'q1' is also"),
        ("q\titer\tdoc\trel\nq1\t0\td1\t1\n", "line 1: .* got 'rel'; is this a header line"),
        ("q1 0 d1 nan\n", "line 1: a relevance must be a whole number, got 'nan'"),
        ("q1 0 d1 1e300\n", "line 1: a relevance must be a whole number, got '1e300'"),
        ('{"q": {"d": 0.5}}', "x: the relevance of 'd' to 'q' must be a whole number, got 0.5"),
        ('{"q": {"d": 1e999}}', "must be a whole number, got inf"),
        ('{"q": {"d": "1"}}', "must be a whole number, got '1'"),
    ],
)
def test_bad_qrels(text, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_qrels(written(tmp_path / "x", text), topics=True)


def test_a_pipe_is_refused_before_it_is_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=r"pipe: must be a file.*got a pipe"):
        read_run(tmp_path / "pipe")
