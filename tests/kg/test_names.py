"""Queries as text: every label survives, and other programs' texts are read."""

from itertools import product

import polars as pl
import pytest

from owkg.judge import read_judgements, read_runs, write_judgements, write_run
from owkg.kg.names import escaped, parts_of, query_of, query_text, unescaped

LABELS = (
    "a",
    "a|b",
    "|",
    "?",
    " a ",
    "\\",
    "a\\",
    "a\\|b",
    "a\\sb",
    "t\tb\n",
    "\\?",
    "caf\\u00e9",
    "é b",
    " ",
    "😀",
)


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize(
    ("entity", "relation"), list(product(LABELS, ("r", "r|s", "?", "r\\", "|", "\\|", "(topic)", " ")))
)
def test_every_label_survives(entity, relation, side):
    assert parts_of(query_of(entity, relation, side)) == (side, entity, relation)


def test_plain_labels_stand_as_they_are():
    assert query_of("/m/0f8", "/film/actor", "tail") == "/m/0f8|/film/actor|?"
    assert query_of("a b", "r|s", "head") == "?|r|s|a b"


@pytest.mark.parametrize("text", ["a", "a|b", "a|?", "?|a", "?|r|?", "h||?", "?||t", "", "a\\|r|?"])
def test_other_text_is_no_query(text):
    assert parts_of(text) is None


def test_bars_of_a_relation_need_no_escape():
    assert parts_of("h|a|b|?") == ("tail", "h", "a|b")
    assert parts_of("?|a|b|t") == ("head", "t", "a|b")


def test_fields_come_back():
    frame = pl.DataFrame({"answer": LABELS})
    written = frame.select(escaped("answer"))
    assert not written["answer"].str.contains(r"[\t\n\r]|^ | $").any()
    assert written.select(unescaped(pl.col("answer")))["answer"].to_list() == list(LABELS)


def asked(**columns):
    rows = [("tail", entity, "r", answer) for entity, answer in product(LABELS, ("b|c", "?", " d", "e\\"))]
    frame = pl.DataFrame(rows, ["side", "entity", "relation", "answer"], orient="row")
    return frame.with_columns(query_text(), **columns)


def test_runs_and_judgements_come_back(tmp_path):
    run = asked(model=pl.lit("m"), score=pl.int_range(0, pl.len()).cast(pl.Float64))
    write_run(run, tmp_path / "run")
    assert set(read_runs([tmp_path / "run"]).select(run.columns).rows()) == set(run.rows())
    qrels = asked(relevance=pl.lit(1, pl.Int64))
    write_judgements(qrels, tmp_path / "qrels")
    assert set(read_judgements(tmp_path / "qrels").select(qrels.columns).rows()) == set(qrels.rows())


def test_texts_that_others_escape_otherwise_are_one_query(tmp_path):
    """A backslash before a letter that needs none stands for itself, as in a path of Windows."""
    (tmp_path / "paths").write_text("C:\\temp|r|? 0 C:\\new 1\n")
    row = read_judgements(tmp_path / "paths").row(0, named=True)
    assert (row["entity"], row["answer"]) == ("C:\\temp", "C:\\new")
    (tmp_path / "qrels").write_text("caf\\u00e9|r|? 0 b 1\ncaf\\\\u00e9|r|? 0 c 1\n")
    found = read_judgements(tmp_path / "qrels")
    assert found["query"].unique().to_list() == [query_of("caf\\u00e9", "r", "tail")]
    assert found["entity"].unique().to_list() == ["caf\\u00e9"]
