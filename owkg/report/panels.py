"""Small multiples: one panel a model, at most three in a row."""

from typing import Any

_IN_A_ROW = 3


def panel_grid(count: int) -> tuple[int, int]:
    """Rows and columns for `count` panels.

    Examples:
        >>> panel_grid(2), panel_grid(5)
        ((1, 2), (2, 3))
    """
    columns = min(count, _IN_A_ROW)
    return -(-count // columns), columns


def blank_panels(axes: Any, used: int) -> None:
    """Takes away the panels beyond the first `used` ones."""
    for panel in list(axes.flat)[used:]:
        panel.remove()
