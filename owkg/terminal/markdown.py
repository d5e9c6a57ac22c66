"""Tables of Markdown, as GitHub and Jupyter show them."""

import re
from collections.abc import Sequence

from owkg.terminal.tables import plain_text

_ACTIVE = re.compile(r"[\\`*_\[\]<>|~&#$]")


def marked(text: object) -> str:
    """Text as Markdown prints it, on one line."""
    return _ACTIVE.sub(lambda match: "\\" + match[0], " ".join(plain_text(text).split()))


def table(head: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> str:
    """A table; its first columns, `names` of them, are of text, the others of numbers.

    Args:
        head: of each column, as text.
        rows: of cells, as text; those of numbers stand as they are.
        names: number of columns of text.
    """
    ruler = "|" + "---|" * names + "---:|" * (len(head) - names)
    body = (_line([*map(marked, row[:names]), *row[names:]]) for row in rows)
    return "\n".join([_line(list(map(marked, head))), ruler, *body])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
