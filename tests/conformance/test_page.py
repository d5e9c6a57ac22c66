"""docs/evidence/conformance.md says what docs/reproduction/conformance.json holds."""

import re
from pathlib import Path

from owkg.conformance import adapter, read_results, results, runner, summary, vectors, verdict_of

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "evidence" / "conformance.md").read_text(encoding="utf-8")
RECORD = read_results(DOCS / "reproduction" / "conformance.json")


def failing(one):
    """Vectors that a library fails, in their order."""
    said = {}
    for row in runner.verdicts(one):
        said.setdefault(row["vector"], []).append(row["verdict"])
    return [vector for vector, of in said.items() if verdict_of(of) in ("fail", "error")]


def test_the_table_is_that_of_the_record():
    rows = []
    for one in RECORD:
        said = summary(one)
        cells = [said[key] for key in ("library", "version", "pass", "fail", "error", "unsupported")]
        rows.append("| " + " | ".join(map(str, cells)) + " |")
    (table,) = re.findall(r"^\| library \| version .*?\n\|[-:| ]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table.splitlines() == rows


def test_every_failing_vector_is_named_under_its_library():
    sections = dict(re.findall(r"^### (.*?) \S+\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL))
    known = {vector.id for vector in vectors()}
    for one in RECORD:
        named = set(re.findall(r"`([\w-]+)`", sections.get(one["library"], ""))) & known
        assert named == set(failing(one)), one["library"]


def test_the_record_is_complete():
    assert len(RECORD) >= 10
    for one in RECORD:
        assert [of["vector"] for of in one["outcomes"]] == [vector.id for vector in vectors()]


def test_the_record_of_owkg_is_what_it_answers():
    (recorded,) = [one for one in RECORD if one["library"] == "owkg"]
    assert recorded == results(adapter("owkg"))


def test_the_numbers_of_the_page():
    numbers = len(vectors()), sum(bool(vector.defects) for vector in vectors())
    assert "{} vectors; {} of them stand for documented defects".format(*numbers) in PAGE


def test_the_adapter_of_the_page_runs():
    (source,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(source, "conformance.md", "exec"), names)  # noqa: S102
    assert set(names["table"]["verdict"]) == {"pass", "fail", "unsupported"}
