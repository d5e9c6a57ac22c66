"""Turns of phrase that readers of the field do not expect: none in docs, docstrings, messages and help.

python tests/test_prose.py [FILE or FOLDER ...]     counts by folder, and each place
"""

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WHERE = (
    *("owkg", "family_tree", "simulations", "benchmarks", "docs", "notebooks"),
    *("README.md", "CONTRIBUTING.md"),
)
# By name of what is wrong, how it is found in running text.
TURNS = {
    "a metric reads": r"\breads? (?:[-+−]?[.\d]|chance|zero|above|below)",
    "fronted Of": r"(?:^|[.;:] )Of (?:the|an?|each|every|all|both|two|three|what|those|these|its?)\b",
    "for as because": r", for (?:it|the|an?|they|there|this|that|no|each|every) ",
    "but for": r"\bbut for\b",
    "beside": r"\b[Bb]eside\b",
    "is said": r"\b(?:is|are) said\b|\bsaid so\b|\bsays so\b",
    "no sample": r"\bno (?:random )?sample\b|\b[Nn]obody (?:said|says)\b",
    "turns an order": r"\bturns? (?:the|an?|its|their|this) (?:order|ranking)",
    "refuted": r"\brefut(?:ed|es?)\b",
    "stands": r"\b(?:as it stands|that stands?|stands? (?:in|at|above|between|before|for itself))\b",
    "headless What": r"(?:^|[.;:] )What (?![^.]*\?)",
    "alike": r"\balike\b",
}
# What remains to be written anew, by folder; it may only fall.
REST: dict[str, int] = {}


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """(line, running text) of what people read in a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "markdown":
                yield 0, "".join(cell["source"])
    elif path.suffix == ".md":
        yield from paragraphs(re.sub(r"(?ms)^```.*?^```$", lambda block: "\n" * block[0].count("\n"), text))
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield from paragraphs(node.value, node.lineno)
        run: list[tuple[int, str]] = []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                run.append((token.start[0], token.string.lstrip("# ")))
            elif run and token.type not in (tokenize.NL, tokenize.NEWLINE):
                yield run[0][0], " ".join(part for _, part in run)
                run = []


def paragraphs(text: str, line: int = 1) -> Iterator[tuple[int, str]]:
    for part in re.split(r"(\n\s*\n)", text):
        if part.strip():
            yield line, part
        line += part.count("\n")


def found(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, turn of phrase, text around it)."""
    for line, text in passages(path):
        running = re.sub(r"\s+", " ", re.sub(r"`[^`]*`", "`x`", text)).strip()
        for name, pattern in TURNS.items():
            for hit in re.finditer(pattern, running):
                yield line, name, running[max(0, hit.start() - 30) : hit.end() + 30]


def files(where: tuple[str, ...] = WHERE) -> Iterator[Path]:
    listed = subprocess.run(["git", "ls-files", *where], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        path = ROOT / name
        if path.suffix in (".py", ".md", ".ipynb") and path.is_file():
            yield path


def folder(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[: 2 if parts[0] == "owkg" and len(parts) > 2 else 1])


def prose_of(page: str) -> list[str]:
    """Blocks of running text of a page: paragraphs, items of lists, headings.

    Blocks of code, tables, formulas, pictures, markers of directives and targets of links are left out. Code
    in a sentence counts as one word without digits.
    """
    text = re.sub(r"(?ms)^```.*?^```$|^\$\$.*?\$\$$|<!--.*?-->", "", page)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]*`|\$[^$]+\$", "code", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    lines = [line for line in text.splitlines() if not re.match(r"\s*(?:\||:::|:class:)", line)]
    text = re.sub(r"(?m)^\s*(?:[-*]|\d+\.|#+) ", "\n\n", "\n".join(lines))
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]


def numbers_in_100_words(page: str) -> float:
    """How many words with a digit are among 100 words of running text."""
    words = [word for part in prose_of(page) for word in part.split() if re.search(r"\w", word)]
    return 100 * sum(bool(re.search(r"\d", word)) for word in words) / len(words)


def long_sentences(page: str, longest: int = 25) -> tuple[int, int]:
    """(sentences with more than `longest` words, all sentences); ".", "?" and "!" end one, a colon does not.

    A word is anything between spaces that has a letter or a digit.
    """
    ends = r"(?<=[.!?])[)*\"]*\s+(?=[^a-z]|owkg|code)"
    sentences = [sentence for part in prose_of(page) for sentence in re.split(ends, part)]
    return sum(len(re.findall(r"\S*\w\S*", one)) > longest for one in sentences), len(sentences)


def test_the_page_of_the_audit_has_few_numbers():
    """Outside tables, on the page of the main command."""
    page = (ROOT / "docs" / "understand" / "audit.md").read_text(encoding="utf-8")
    assert numbers_in_100_words(page) <= 2.5


def test_pages_have_few_long_sentences():
    docs, found, seen = ROOT / "docs", {}, 0
    for path in files(tuple(f"docs/{name}" for name in ("understand", "how_to", "get_started", "evidence"))):
        name = path.relative_to(docs).as_posix()
        if path.suffix == ".md":
            number, of = long_sentences(path.read_text(encoding="utf-8"))
            found |= {name: f"{number} of {of}"} if number > max(1, 0.12 * of) else {}
            seen += 1
    assert seen > 50
    assert found == {}


def test_numbers_and_long_sentences_are_counted():
    page = f"# Two\n\n| 1 | 2 |\n\n```\n3 4\n```\n\n- The `5` of [these](6.md) is 7.\n- {'word ' * 26}ends.\n"
    assert numbers_in_100_words(page) == pytest.approx(100 / 34)
    assert long_sentences(page) == (1, 3)


def test_turns_of_phrase_do_not_come_back():
    counts = Counter(folder(path) for path in files() for _ in found(path))
    assert {name: count for name, count in counts.items() if count > REST.get(name, 0)} == {}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The MRR reads .35 here.", "a metric reads"),
        ("Of each pair it says more.", "fronted Of"),
        ("It is left out, for it\nis not known.", "for as because"),
        ("all but for one", "but for"),
        ("beside chance", "beside"),
        ("which is said below", "is said"),
    ],
)
def test_a_turn_of_phrase_is_found(text, name, tmp_path):
    path = tmp_path / "page.md"
    path.write_text(text, encoding="utf-8")
    assert [turn for _, turn, _ in found(path)] == [name]


if __name__ == "__main__":
    listed = list(files(tuple(sys.argv[1:]) or WHERE))
    rows = [(path, *hit) for path in listed for hit in found(path)]
    if sys.argv[1:]:
        for path, line, name, text in rows:
            sys.stdout.write(f"{path.relative_to(ROOT)}:{line}: {name}: {text}\n")
    for name, count in sorted(Counter(folder(path) for path, *_ in rows).items()):
        sys.stdout.write(f"{count:6} {name}\n")
    sys.stdout.write(f"{dict(Counter(name for _, _, name, _ in rows))}\n")
