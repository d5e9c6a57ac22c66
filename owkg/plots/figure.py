"""The look of the figures, and how they are saved."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from owkg.files.storage import written_aside
from owkg.terminal.tables import one_line

if TYPE_CHECKING:
    import matplotlib.figure

# Okabe and Ito's colours, told apart by colour-blind readers too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_STYLE: Any = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 9,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 160,
    "svg.hashsalt": "owkg",  # of the names inside an .svg, else drawn anew
}
# What is said of a file beside its picture: no date, so that equal figures are equal to the byte.
_SAID: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


@contextmanager
def figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> Iterator[tuple]:
    """Yields (figure, axes) in the project's style, drawn without a screen; `size` is in inches.

    `options` are those of `matplotlib.pyplot.subplots`.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        fig = Figure(figsize=size)
        FigureCanvasAgg(fig)
        yield fig, fig.subplots(rows, columns, **options)


def write_figure(fig: "matplotlib.figure.Figure", stem: Path) -> list[Path]:
    """Writes `stem` as .png and .pdf and returns both paths."""
    paths = [stem.with_name(stem.name + suffix) for suffix in (".png", ".pdf")]
    for path in paths:
        write_picture(fig, path)
    return paths


def write_picture(fig: "matplotlib.figure.Figure", path: Path) -> None:
    """Writes `path`, .png, .pdf or .svg; equal figures give equal bytes."""
    # Made in memory: where the disk is full, what writes PDF does not say so.
    content = BytesIO()
    fig.savefig(content, format=path.suffix.removeprefix("."), metadata=_SAID.get(path.suffix))
    with written_aside(path) as aside:
        aside.write_bytes(content.getvalue())


def save_figure(fig: "matplotlib.figure.Figure", stem: Path) -> list[Path]:
    """As `write_figure`, and prints both paths."""
    paths = write_figure(fig, stem)
    for path in paths:
        print(f"wrote {one_line(path)}")
    return paths


def panel_grid(count: int) -> tuple[int, int]:
    """Rows and columns for `count` panels, at most three in a row.

    Examples:
        >>> panel_grid(2), panel_grid(4), panel_grid(5)
        ((1, 2), (2, 2), (2, 3))
    """
    columns = 2 if count == 4 else min(count, 3)
    return -(-count // columns), columns


def blank_panels(axes: np.ndarray, used: int) -> None:
    """Takes away the panels beyond the first `used` ones."""
    for panel in list(axes.flat)[used:]:
        panel.remove()
