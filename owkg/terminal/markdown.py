"""Tables of Markdown, as GitHub and Jupyter show them."""

import re
from collections.abc import Sequence

from owkg.terminal.tables import plain_text

_ACTIVE = re.compile(r"[\\`*_\[\]<>|~&#$]")


def marked(text: object) -> str:
    """Text on one line, with the special characters of Markdown escaped."""
    return _ACTIVE.sub(lambda match: "\\" + match[0], " ".join(plain_text(text).split()))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> str:
    """Markdown table whose first `names` columns hold text; the other columns hold numbers.

    Args:
        head: heading of each column, as text.
        rows: rows of cells, as text; cells of number columns are not escaped.
        names: number of text columns.
    """
    ruler = "|" + "---|" * names + "---:|" * (len(head) - names)
    body = (_line([*map(marked, row[:names]), *row[names:]]) for row in rows)
    return "\n".join([_line(list(map(marked, head))), ruler, *body])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
