"""The pages "I have ...; I want ...": every command that they show prints what they show.

`python tests/test_tasks.py` writes what the commands print today into the pages.
"""

import contextlib
import io
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from owkg.cli.main import main

ROOT = Path(__file__).parents[1]
INPUT = ROOT / "tests" / "golden" / "input"
PAGES = sorted(path for path in (ROOT / "docs" / "how_to" / "tasks").glob("*.md"))
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
# What a trained model reads depends on the processor in its last digits; speed on everything.
SECONDS = re.compile(r"in [\d.]+ s\b")
TRAINED, NUMBERS = ("other_libraries", "training"), re.compile(r"[-\d.,e]+|─+| +")


def commands(block):
    """(line, output) of each command of a block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [tuple(part.split("\n", 1)) for part in parts]


def printed(line):
    """What a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(line.removeprefix("owkg ").split())
    assert code == 0, (line, err.getvalue())
    return "\n".join(text.rstrip() for text in out.getvalue().splitlines()).strip("\n")


@contextlib.contextmanager
def folder():
    """A folder with the input, the current one."""
    before, columns = Path.cwd(), os.environ.get("COLUMNS")
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(INPUT, place, dirs_exist_ok=True)
        os.chdir(place)
        os.environ["COLUMNS"] = "100"
        try:
            yield
        finally:
            os.chdir(before)
            os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_print_what_the_page_shows(page):
    seen = 0
    with folder():
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            for line, shown in commands(block):
                found = printed(line)
                found, shown = (SECONDS.sub("", text) for text in (found, shown.strip("\n")))
                if page.stem in TRAINED:
                    found, shown = NUMBERS.sub(" ", found), NUMBERS.sub(" ", shown)
                assert found == shown, line
                seen += 1
    assert seen


def test_every_page_is_listed():
    index = (ROOT / "docs" / "how_to" / "index.md").read_text(encoding="utf-8")
    assert all(f"\ntasks/{page.stem}\n" in index for page in PAGES)


def rewrite():
    """Writes the outputs of today into the pages."""

    def block(found):
        parts = []
        for line, _ in commands(found[1]):
            out = printed(line)
            parts.append(f"$ {line}\n{out}\n" if out else f"$ {line}\n")
        return f"```console\n{''.join(parts)}```"

    for page in PAGES:
        with folder():
            text = BLOCK.sub(block, page.read_text(encoding="utf-8"))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    rewrite()
