"""The report of an audit: an HTML page that needs no network, Markdown, LaTeX."""

from owkg.report.page import html, require_html
from owkg.report.text import ENDINGS, latex, markdown, write_report

__all__ = ["ENDINGS", "html", "latex", "markdown", "require_html", "write_report"]
