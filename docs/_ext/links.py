"""Links of pages to files of the repository: to their page in the site, or to the file as a download."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sphinx.util import logging

from _ext.places import DOCS, LESSONS, NOTEBOOKS, ROOT

COPIES = {"project/changelog": ROOT / "CHANGELOG.md", "project/contributing": ROOT / "CONTRIBUTING.md"}
"""Pages that are a file of the repository."""
_PAGES = {path: f"{page}.md" for page, path in COPIES.items()} | {
    ROOT / "README.md": "index.md",
    DOCS / "reproduction": "evidence/downloads.md",
}
_FOLDERS = {ROOT / "notebooks": NOTEBOOKS, ROOT / "notebooks" / "lessons": LESSONS}
_CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)(\[[^\]]+\])\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")
_LOG = logging.getLogger(__name__)


def in_prose(text: str, change: Callable[[str], str]) -> str:
    """A Markdown text with its parts that are no code changed."""
    parts = _CODE.split(text)
    return "".join(part if i % 2 else change(part) for i, part in enumerate(parts))


def relinked(text: str, origin: Path, page: str) -> str:
    """The text of a page with links that lead to what they name.

    Args:
        text: Markdown.
        origin: file that the text is from; its links are relative to this file.
        page: name of the page in the site.

    Returns:
        The text; a link to a file or folder that neither is there nor has a page stays, with a warning.
    """

    def one(link: re.Match[str]) -> str:
        words, target, anchor = link[1], link[2], link[3] or ""
        path = Path(os.path.normpath(origin.parent / target))
        to = _PAGES.get(path)
        if to is None and path.parent in _FOLDERS and path.is_file():
            to = f"{_FOLDERS[path.parent]}/{path.name}"
        if to is None and not path.is_file():
            _LOG.warning("%s: the link to %s leads nowhere", page, target)
            return link[0]
        leads = os.path.relpath(path if to is None else DOCS / to, (DOCS / page).parent)
        return f"{words}({leads}{anchor})"

    return in_prose(text, lambda part: _LINK.sub(one, part))


def read(_app: Any, page: str, source: list[str]) -> None:
    """Changes the source of a page; Sphinx calls it."""
    origin = COPIES.get(page, DOCS / f"{page}.md")
    if page in COPIES:
        source[0] = origin.read_text(encoding="utf-8")
    if origin.suffix == ".md" and origin.is_file():
        source[0] = relinked(source[0], origin, page)
