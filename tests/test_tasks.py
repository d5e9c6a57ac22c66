"""Task pages, tutorials and the README: every command that they show prints what they show.

`python tests/test_tasks.py [PAGE...]` writes what the commands print today into pages; lines that a page
leaves out (`...`) stay left out.
"""

import contextlib
import difflib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from owkg.cli.errors import options_of
from owkg.cli.main import app, main

ROOT = Path(__file__).parents[1]
HOW_TO = ROOT / "docs" / "how_to"
# Every page begins in an empty folder, most of them with `owkg example`.
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "get_started").glob("[0-9]_*.md")),
    ROOT / "docs" / "understand" / "audit.md",
    *sorted(HOW_TO.rglob("*.md")),
]
# A block of commands, with the reason why it is not run, if it has one; or a file to save, and its name.
BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```console\n(?P<commands>.*?)```"
    r"|as `(?P<name>[\w.]+)`:\n\n```\w+\n(?P<file>.*?)```",
    re.DOTALL,
)
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
# What a trained model reads depends on the processor in its last digits; speed on everything.
SECONDS = re.compile(r"in [\d.]+ s\b")
TRAINED, NUMBERS = ("other_libraries", "training", "4_benchmark"), re.compile(r"[-+\d.,e]+|─+| +")


def commands(block):
    """(line, output) of each command of a block; a line that ends in a backslash goes on."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [tuple(re.split(r"(?<!\\)\n", part, maxsplit=1)) for part in parts]


def shows(block):
    """Whether a block shows what its commands print; if not, they only have to succeed."""
    return any(shown.strip() for _, shown in commands(block))


def printed(line):
    """What a command prints."""
    out = io.StringIO()
    program, *words = shlex.split(line.replace("\\\n", " "), comments=True)
    if program == "cd":
        os.chdir(*words)
        return ""
    if program in ("cp", "mkdir"):
        subprocess.run([program, *words], check=True)
        return ""
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        if program == "python":
            runpy.run_path(words[0])
            code = 0
        else:
            assert program == "owkg", line
            code = main(words)
    assert code == 0, (line, err.getvalue())
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()).strip("\n")


@contextlib.contextmanager
def folder():
    """An empty folder, the current one."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        os.environ["COLUMNS"] = "100"
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)


def same(found, shown):
    """Whether a command prints what is shown, where lines of `...` stand for any lines."""
    parts = re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)
    return re.fullmatch(".*".join(map(re.escape, parts)), found, re.DOTALL) is not None


def name(page):
    return page.relative_to(ROOT).with_suffix("").as_posix()


def run(page):
    """Runs a page: (whether it is compared, line, what it prints, what the page shows) of each command."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["name"]:
            Path(block["name"]).write_text(block["file"], encoding="utf-8")
        elif not block["reason"]:
            compared = shows(block["commands"])
            for line, shown in commands(block["commands"]):
                yield compared, line, printed(line), shown.strip("\n")


def without_numbers(text):
    """The text with a space for each number, except lines of `...`."""
    return "\n".join(line if line == "..." else NUMBERS.sub(" ", line) for line in text.splitlines())


def has_commands(page):
    blocks = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return any(block["commands"] and not block["reason"] for block in blocks)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", [page for page in PAGES if has_commands(page)], ids=name)
def test_commands_print_what_the_page_shows(page):
    with folder():
        for compared, line, found, shown in run(page):
            found, shown = (SECONDS.sub("", text) for text in (found, shown))
            if page.stem in TRAINED:
                found, shown = without_numbers(found), without_numbers(shown)
            assert not compared or found == shown or same(found, shown), line
        if page.stem == "figures":
            draws_all(page.read_text(encoding="utf-8"))


def draws_all(text):
    """Runs the Python of the page of figures; every picture that the page names is then there."""
    with warnings.catch_warnings(action="ignore"):  # notes, which commands print
        for source in PYTHON.findall(text):
            exec(compile(source, "figures.md", "exec"), {})  # noqa: S102
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    drawn = {Path(name) for name in re.findall(r"\b\w+\.(?:png|svg)\b", text)} - {Path("learning_curves.png")}
    drawn |= {Path("compared").with_suffix(end) for end in starts}
    assert len(drawn) == 12
    for path in drawn:
        assert path.read_bytes().startswith(starts[path.suffix]), path


# Why commands of the task pages are not run.
REASONS = ("needs a benchmark", "your files", "needs several machines", "takes minutes", "another program")


@pytest.mark.parametrize("page", sorted(HOW_TO.rglob("*.md")), ids=name)
def test_commands_that_are_not_run_say_why(page):
    """And they are commands, with options, that there are."""
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if not block["reason"]:
            continue
        assert block["reason"].startswith(REASONS)
        for line, _ in commands(block["commands"]):
            words = shlex.split(line.replace("\\\n", " "), comments=True)
            if "owkg" not in words:
                assert block["reason"].startswith("another program"), line
                continue
            words = words[words.index("owkg") + 1 :]
            options = options_of(app, words) or options_of(app, [words[0], "mine"])  # of `owkg rules`
            given = [word.partition("=")[0] for word in words if word.startswith("--")]
            assert options is not None, line
            assert [option for option in given if option not in options.values()] == [], line


def test_every_block_of_commands_is_seen():
    """None is marked in a way that is not understood."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("```console\n") == sum(bool(block["commands"]) for block in BLOCK.finditer(text)), (
            page
        )
        assert text.count("not run:") == sum(bool(block["reason"]) for block in BLOCK.finditer(text)), page


def test_every_page_is_listed():
    index = (HOW_TO / "index.md").read_text(encoding="utf-8")
    names = [page.relative_to(HOW_TO).with_suffix("").as_posix() for page in HOW_TO.rglob("*.md")]
    assert [name for name in names if name != "index" and f"\n{name}\n" not in index] == []


@pytest.mark.parametrize(
    ("shown", "is_same"),
    [
        ("a\n...", True),
        ("...\nc", True),
        ("a\nb\nc", True),
        ("a\n...\nd", False),
        ("a", False),
        ("b\n...", False),
    ],
)
def test_lines_may_be_left_out(shown, is_same):
    assert same("a\nb\nc", shown) == is_same


def shortened(found, shown):
    """What a command prints, without the lines that a page leaves out."""
    if same(found, shown) or not re.search(r"^\.\.\.$", shown, re.MULTILINE):
        return shown if same(found, shown) else found
    lines, parts, begin = found.split("\n"), [], 0
    for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE):
        if wanted := part.strip("\n").split("\n") if part.strip() else []:
            # The lines that are the most similar to those that the page has.
            begin = max(
                range(begin, max(begin + 1, len(lines) - len(wanted) + 1)),
                key=lambda at: sum(map(similar, wanted, lines[at : at + len(wanted)])),
            )
        parts.append("\n".join(lines[begin : begin + len(wanted)]))
        begin += len(wanted)
    return "\n...\n".join(parts).strip("\n")


def similar(one, other):
    return difflib.SequenceMatcher(None, one, other).ratio()


@pytest.mark.parametrize(
    ("shown", "expected"),
    [("x\ny", "a 1\nb 2\nc 3"), ("...\nb 0\n...", "...\nb 2\n..."), ("a 0\n...\nc 0", "a 1\n...\nc 3")],
)
def test_lines_stay_left_out(shown, expected):
    assert shortened("a 1\nb 2\nc 3", shown) == expected


def rewrite(pages):
    """Writes the outputs of today into pages."""

    def block(found):
        if found["name"]:
            Path(found["name"]).write_text(found["file"], encoding="utf-8")
        if found["name"] or found["reason"]:
            return found[0]
        parts = []
        for line, shown in commands(found["commands"]):
            out = printed(line)
            shown = shown.strip("\n")
            out = shortened(out, shown) if shows(found["commands"]) else ""
            parts.append(f"$ {line}\n{out}\n" if out else f"$ {line}\n")
        return f"```console\n{''.join(parts)}```"

    for page in pages:
        with folder():
            text = BLOCK.sub(block, page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite([Path(name).resolve() for name in sys.argv[1:]] or PAGES)
