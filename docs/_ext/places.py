"""Folders of the repository, and pages that are made when the site is built."""

from pathlib import Path

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
NOTEBOOKS, LESSONS = "evidence/notebooks", "get_started/lessons"
API, COMMANDS = "reference/api", "reference/commands"
MADE = (NOTEBOOKS, LESSONS, API, COMMANDS)
"""Folders of docs/ whose pages are all made, and not kept."""
GLOSSARY = "reference/glossary"


def written() -> list[Path]:
    """The pages that people write, in docs/."""
    made = tuple(DOCS / folder for folder in MADE)
    return sorted(path for path in DOCS.rglob("*.md") if path.parent not in made)
