"""Own words of annotation sheets, and addresses."""

import polars as pl
import pytest

from owkg.kg.names import query_text
from owkg.pools.annotation import read_sheet, sheet_rows, write_again, write_sheet
from owkg.pools.templates import addresses, read_templates

RELATIONS = ("directed", "nationality")


def read(path, text):
    (path / "t").write_text(text)
    return read_templates(path / "t", RELATIONS)


def test_templates_by_relation_and_side(tmp_path):
    text = "directed\ttail\tWhat was directed by {entity}?\nnationality\tboth\tIs {head} from {tail}?\r\n"
    assert read(tmp_path, text) == {
        ("directed", "tail"): "What was directed by {entity}?",
        ("nationality", "head"): "Is {head} from {tail}?",
        ("nationality", "tail"): "Is {head} from {tail}?",
    }


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        (["made\ttail\t{entity}"], "line 1: the relation must be one of the graph, got 'made'"),
        (["directed\ttail\tWhat?"], r"line 1: the template must hold \{entity\} or \{head\}"),
        (["directed\thead\t{head}?"], r"line 1: the template must hold \{entity\} or \{tail\}"),
        (["directed\tboth\t{head}?"], r"line 1: the template must hold"),
        (["directed\ttail\t{entity} {who}"], r"line 1: the template may hold .* got \{who\}"),
        (["directed\ttail\t{entity}", "directed\tboth\t{entity}?"], "line 2: .* one template .* tail"),
        (["directed\tall\t{entity}"], "line 1: the side must be"),
        (["directed\ttail\t{entity}", "directed"], "line 2: must be a relation, the side"),
        (["directed\ttail\t{entity}", ""] * 2, "line 2: .*blank line"),
    ],
)
def test_bad_templates(tmp_path, lines, shown):
    with pytest.raises(ValueError, match=f"t, {shown}"):
        read(tmp_path, "\n".join(lines) + "\n")


def candidates():
    frame = pl.DataFrame(
        {
            "side": ["tail", "head", "tail"],
            "entity": ["lee", "jaws", "lee"],
            "relation": ["directed", "directed", "nationality"],
            "answer": ["jaws", "lee", "=us\\x"],
        }
    )
    return frame.with_columns(query_text())


def test_what_a_sheet_says(tmp_path):
    own = {
        ("directed", "tail"): "Did {entity} direct {answer}?",
        ("directed", "head"): "{relation}: did {head} direct {tail}?",
    }
    names = {"lee": "Ang {answer} Lee", "directed": "has directed"}
    write_sheet(candidates(), tmp_path / "s.tsv", seed=0, labels=names, templates=own)
    rows, place = sheet_rows(tmp_path / "s.tsv")
    assert dict(rows.select("question_id", "question").rows()) == {
        "lee|directed|?": "Did Ang {answer} Lee direct jaws?",  # a name is not read as a template
        "?|directed|jaws": "has directed: did Ang {answer} Lee direct jaws?",
        "lee|nationality|?": "Which X makes this true: 'Ang {answer} Lee' -- nationality --> X?",
    }
    assert place(0).endswith("s.tsv, line 2")
    assert set(rows["source"]) == {""}


def test_addresses_are_spelled():
    shown = pl.DataFrame({"side": ["head"], "entity": ["a b"], "relation": ["r&s"], "answer": ["ü/{x}"]})
    (found,) = addresses(shown, "https://e.org/{head}?q={entity}&r={relation}")
    assert found == "https://e.org/%C3%BC%2F%7Bx%7D?q=a%20b&r=r%26s"


def test_a_sheet_written_again_has_the_same_words(tmp_path):
    first, again = tmp_path / "s.tsv", tmp_path / "again.tsv"
    write_sheet(candidates(), first, seed=0, source="https://e.org/{answer}")
    part = candidates()[2:]
    write_again(part, [first], again, seed=1)
    assert sheet_rows(again)[0]["source"].to_list() == [""]
    again.unlink()
    write_again(part, [first], again, seed=1, original=first)
    expected = [line for line in first.read_text().splitlines() if "nationality" in line]
    assert again.read_text().splitlines()[1:] == expected
    with pytest.raises(ValueError, match="`candidates` must be in one of the sheets, got 'lee'"):
        write_again(candidates(), [again], tmp_path / "x.tsv", seed=0)
    with pytest.raises(ValueError, match="at least one row"):
        write_again(candidates()[:0], [again], tmp_path / "x.tsv", seed=0)


def test_sheets_without_the_further_columns_are_read(tmp_path):
    (tmp_path / "s.tsv").write_text("question_id\tanswer_id\tlabel\nlee|directed|?\tjaws\ty\n")
    assert read_sheet(tmp_path / "s.tsv")["relevance"].to_list() == [1]
    write_again(candidates()[:1], [tmp_path / "s.tsv"], tmp_path / "again.tsv", seed=0)
    assert (tmp_path / "again.tsv").read_text().splitlines()[0].endswith("comment")
