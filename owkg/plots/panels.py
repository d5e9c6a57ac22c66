"""Small multiples: one panel a model."""

from typing import Any

_IN_A_ROW = 3


def panel_grid(count: int) -> tuple[int, int]:
    """Rows and columns for `count` panels, at most three in a row.

    Examples:
        >>> panel_grid(2), panel_grid(4), panel_grid(5)
        ((1, 2), (2, 2), (2, 3))
    """
    columns = 2 if count == 4 else min(count, _IN_A_ROW)
    return -(-count // columns), columns


def blank_panels(axes: Any, used: int) -> None:
    """Takes away the panels beyond the first `used` ones."""
    for panel in list(axes.flat)[used:]:
        panel.remove()
