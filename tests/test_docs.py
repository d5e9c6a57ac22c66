"""What the documentation prints is what the commands print, and its examples run."""

import pkgutil
import re
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path

import polars as pl
import pytest

from family_tree import ontology
from owkg.auditing.result import VERDICTS
from owkg.cli.errors import options_of
from owkg.cli.main import app
from owkg.example import judge_by_truth, write_example
from owkg.pools import Queries, draw
from owkg.train import Training
from simulations import printed

ROOT = Path(__file__).resolve().parents[1]
# The pages that people write; others are made when the site is built.
SITE = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if path.parent.name not in {"notebooks", "api", "commands"}
)
PAGES = (
    "understand/audit.md",
    *(f"how_to/{name}.md" for name in ("classification", "family_tree", "sampling", "training")),
)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("inventory", ["published", "hohenecker"])
def test_the_tables_of_relations_are_those_of_the_command(inventory):
    command = [sys.executable, "-m", "owkg", "family-tree", "relations", inventory, "--format", "markdown"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert f"\n\n{printed.strip()}\n\n" in page("how_to/family_tree.md")


def test_the_rules_that_are_shown_can_be_read(tmp_path):
    (text,) = blocks("how_to/family_tree.md", "toml")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    assert ontology(tmp_path / "mine.toml").relations == ("ancestorOf", "halfSiblingOf", "parentOf")


def test_every_setting_of_a_training_is_explained():
    rows = [
        line.split("|")[1:3] for line in page("how_to/training.md").splitlines() if line.startswith("| `")
    ]
    named = {name for row in rows for text in row for name in re.findall(r"`(\w+)`", text)}
    assert {field.name for field in fields(Training)} - {"model", "options"} <= named


@pytest.mark.parametrize("name", PAGES)
def test_python_examples_run(name):
    (source,) = blocks(name, "python")
    exec(compile(source, name, "exec"), {})  # noqa: S102


@pytest.mark.parametrize("source", blocks("how_to/missing_facts.md", "python"))
def test_python_of_missing_facts_runs(source):
    exec(compile(source, "missing_facts.md", "exec"), {})  # noqa: S102


def test_files_that_pages_name_are_there():
    """Paths in backquotes that begin with a folder of the repository."""
    lost = []
    for path in [ROOT / "README.md", *SITE]:
        named = re.findall(
            r"`((?:owkg|family_tree|simulations|tests|docs|benchmarks|notebooks)/[\w/.]+\.\w+)`",
            path.read_text(),
        )
        lost += [f"{path.name}: {name}" for name in named if not (ROOT / name).exists()]
    assert lost == []


def test_the_python_of_the_readme_runs(tmp_path, monkeypatch):
    """In the folder of the example, with a pool that is drawn and judged."""
    write_example(tmp_path / "example")
    monkeypatch.chdir(tmp_path / "example")
    warnings.simplefilter("ignore")  # notes, which commands print
    draw(["a.run", "b.run", "c.run"], "graph", Queries(20, strata="size"), depth=5, seed=7, out="pool")
    judge_by_truth(".", "pool/sheet.tsv")
    (source,) = re.findall(
        r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    names = {}
    exec(compile(source, "README.md", "exec"), names)  # noqa: S102
    assert set(names["ranks"]) == {"a", "b", "c"}


WRITTEN = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")), *SITE]


def prose(path: Path) -> str:
    """The text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(path: Path) -> list[tuple[str, str]]:
    """(file, heading) of each link within the project; either may be empty."""
    return re.findall(r"\]\((?!\w+:)([^)#]*)(?:#([^)]*))?\)", re.sub(r"`[^`\n]*`", "code", prose(path)))


def anchors(path: Path) -> set[str]:
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_and_pictures_are_there(path):
    lost = []
    for target, heading in links(path):
        to = path.parent / target if target else path
        if not to.exists() or (heading and heading not in anchors(to)):
            lost.append((target, heading))
    assert lost == []


def test_every_picture_is_shown():
    shown = {(path.parent / target).resolve() for path in WRITTEN for target, _ in links(path) if target}
    assert set((ROOT / "docs" / "images").iterdir()) <= shown


def test_names_of_the_library_are_there():
    """Every `owkg.room.name` in backquotes, on pages and in docstrings."""
    pages = (ROOT / "README.md", *SITE, *(ROOT / "owkg").rglob("*.py"))
    names = {name for page in pages for name in re.findall(r"`(owkg(?:\.\w+)+)", page.read_text())}
    assert len(names) > 50
    assert [name for name in sorted(names) if not resolves(name)] == []
    assert not resolves("owkg.judge.pool")


def resolves(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


def test_the_effect_of_a_smaller_alignment_test_is_that_of_the_study():
    table = pl.read_csv(ROOT / "docs" / "reproduction" / "alignment_effect.csv")
    own = table.filter(model="gcn-align", train_pairs=4500)
    text = page("evidence/alignment.md")
    rows = re.findall(r"^\| (MR|Hits@1|Hits@10|AMRR|AMRI) \| (\S+) \| (\S+) \| (\S+) \|$", text, re.M)
    assert len(rows) == 5
    for metric, *shown in rows:
        found = own.row(by_predicate=pl.col("metric") == metric.lower(), named=True)
        values = (found[name] for name in ("of_few", "of_most", "change_in_deviations"))
        for text, value in zip(shown, values, strict=True):
            digits = len(text.partition(".")[2])
            assert float(text) == pytest.approx(value, abs=0.5 * 10**-digits)


def test_options_that_were_renamed_are_those_of_the_commands():
    """In the changelog, a row that begins with a command gives what its options are called now."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`owkg .*?) \| (.*?) \|$", text, re.MULTILINE)
    seen = 0
    for before, now in rows:
        flags = re.findall(r"(--[a-z-]+)", now)
        for command in re.findall(r"`owkg ([^`-]*) --", before):
            known = options_of(app, command.split())
            assert known is not None, command
            assert [flag for flag in flags if flag.replace("--no-card", "--card") not in known.values()] == []
            assert not set(re.findall(r"(--[a-z-]+)", before)) & set(known.values()) - {
                "--layout",
                "--no-figure",
            }
            seen += len(flags)
    assert seen > 10


def test_every_variable_of_the_environment_is_explained():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "owkg").rglob("*.py"))
    read = set(re.findall(r"OWKG_\w+", sources))
    shown = set(re.findall(r"^\| `(OWKG_\w+)`", page("reference/environment.md"), re.MULTILINE))
    assert len(read) > 1
    assert read <= shown


def test_every_erratum_has_a_test():
    text, _, tests = page("evidence/errata.md").partition("## Tests")
    rows = set(re.findall(r"^\| ([A-Z]\d+) \|", text, re.MULTILINE))
    shown = set(re.findall(r"^- ([A-Z]\d+)", tests, re.MULTILINE))
    assert len(rows) > 40
    assert shown == rows
    files = re.split(r"^\[.*?\]\(\.\./\.\./(.*?)\)$", tests, flags=re.MULTILINE)
    for file, listed in zip(files[1::2], files[2::2], strict=True):
        source = (ROOT / file).read_text(encoding="utf-8")
        assert [name for name in re.findall(r"`(test_\w+)`", listed) if f"def {name}(" not in source] == []


def test_the_page_of_printed_numbers_counts_the_tables_beside_it():
    rows = re.findall(
        r"^\| (\w+20\d\d) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", page("evidence/printed.md"), re.M
    )
    tables = {
        paper: pl.read_csv(ROOT / "docs" / "reproduction" / f"printed_{paper}.csv")
        for paper in printed.PAPERS
    }
    assert [(row[0], *map(int, row[1:])) for row in rows] == printed.counts_of(tables).rows()
    assert f"print {sum(map(len, tables.values()))} numbers" in page("evidence/printed.md")


def test_the_printed_numbers_that_are_kept_are_those_of_today(owkg_data):
    for paper in ("yang2022", "hoyt2022"):  # the others: tests/simulations/test_printed_ir.py
        kept = pl.read_csv(ROOT / "docs" / "reproduction" / f"printed_{paper}.csv", infer_schema=False)
        found = printed.table_of(printed.cells_of(paper, owkg_data))
        assert kept["place"].to_list() == found["place"].to_list()
        assert kept["verdict"].to_list() == found["verdict"].to_list()


def test_the_page_of_the_audit_explains_every_verdict():
    rows = re.findall(r"^\| ([^|`]+) \| [^|]+ \| [^|]+ \|$", page("understand/audit.md"), re.MULTILINE)
    assert sorted(rows[1:]) == sorted(VERDICTS)


def test_the_implied_full_tests_of_the_page_are_those_of_its_example(capsys):
    (source,) = blocks("understand/audit.md", "python")
    exec(compile(source, "audit.md", "exec"), {})  # noqa: S102
    values = [f"{float(x):.2f}" for x in capsys.readouterr().out.strip("[]\n").split()]
    assert "full-test MRR of {}, {} or {}.".format(*values) in " ".join(page("understand/audit.md").split())
