"""Words that left for those of the field (docs/reference/glossary.md) do not come back."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WHERE = ("owkg", "family_tree", "simulations", "benchmarks", "docs", "notebooks", "README.md")
# What stays: names of others' files, ordinary English.
KEPT = re.compile(
    r"""question_id|["'`]question["'`]|\bquestion,|question=|QuestionType|asks? .*questions|\| question"""
    r"""|questions? .* answers|Figures .* redrawn"""
)
LEFT = r"questions?|grades?|redraw\w*|misorder\w*|vanishing|witness\w*|regimes?|label sets?|tall(?:y|ies)"


def lines():
    listed = subprocess.run(["git", "ls-files", *WHERE], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in listed.stdout.split():
        if name.endswith((".py", ".md", ".ipynb")) and (ROOT / name).is_file():
            for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), start=1):
                yield f"{name}:{number}", line


def found(word, text):
    return re.search(rf"(?<![a-z]){word}(?![a-z])", KEPT.sub("", text), re.IGNORECASE)


def test_words_that_left_do_not_come_back():
    assert [f"{place}: {line.strip()[:80]}" for place, line in lines() if found(f"(?:{LEFT})", line)] == []


@pytest.mark.parametrize(
    "text", ["a question of", "of `Redrawn`", "num_questions=3", "two label sets", "# Grade"]
)
def test_a_word_that_left_is_found(text):
    assert found(f"(?:{LEFT})", text)
