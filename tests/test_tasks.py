"""Task pages, tutorials and the README: every command that they show prints what they show.

`python tests/test_tasks.py PAGE...` writes what the commands print today into pages; without arguments into
all but the README, which leaves out lines (`...`).
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import pytest

from owkg.cli.main import main

ROOT = Path(__file__).parents[1]
INPUT = ROOT / "tests" / "golden" / "input"
PAGES = sorted(path for path in (ROOT / "docs" / "how_to" / "tasks").glob("*.md"))
# These begin in an empty folder, with `owkg example`.
STARTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "get_started").glob("[0-9]_*.md")),
    ROOT / "docs" / "understand" / "audit.md",
    *(
        ROOT / "docs" / "how_to" / f"{name}.md"
        for name in ("choose_sparsity", "figures", "published_numbers", "report_in_a_paper")
    ),
]
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
# What a trained model reads depends on the processor in its last digits; speed on everything.
SECONDS = re.compile(r"in [\d.]+ s\b")
TRAINED, NUMBERS = ("other_libraries", "training", "4_benchmark"), re.compile(r"[-\d.,e]+|─+| +")


def commands(block):
    """(line, output) of each command of a block; a line that ends in a backslash goes on."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [tuple(re.split(r"(?<!\\)\n", part, maxsplit=1)) for part in parts]


def printed(line):
    """What a command prints."""
    out = io.StringIO()
    program, *words = shlex.split(line.replace("\\\n", " "), comments=True)
    if program == "cd":
        os.chdir(*words)
        return ""
    assert program == "owkg", line
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(words)
    assert code == 0, (line, err.getvalue())
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()).strip("\n")


@contextlib.contextmanager
def folder(page):
    """The folder in which a page begins, the current one."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as place:
        if page not in STARTS:
            shutil.copytree(INPUT, place, dirs_exist_ok=True)
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


@pytest.mark.parametrize("page", [*STARTS, *PAGES], ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page):
    seen = 0
    with folder(page):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line, shown in commands(block):
                found = printed(line)
                found, shown = (SECONDS.sub("", text) for text in (found, shown.strip("\n")))
                if page.stem in TRAINED:
                    found, shown = NUMBERS.sub(" ", found), NUMBERS.sub(" ", shown)
                assert found == shown or same(found, shown), line
                seen += 1
        if page.stem == "figures":
            draws_all(page.read_text(encoding="utf-8"))
    assert seen


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


def rewrite(pages):
    """Writes the outputs of today into pages."""

    def block(found):
        parts = []
        for line, shown in commands(found[1]):
            out = printed(line)
            out = shown.strip("\n") if same(out, shown.strip("\n")) else out
            parts.append(f"$ {line}\n{out}\n" if out else f"$ {line}\n")
        return f"```console\n{''.join(parts)}```"

    for page in pages:
        with folder(page):
            text = BLOCK.sub(block, page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite([Path(name).resolve() for name in sys.argv[1:]] or [*STARTS[1:], *PAGES])
