"""Style of the figures, and how they are saved."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from owkg.files.storage import written_aside

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

# Okabe and Ito's colours, which colour-blind readers can distinguish.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

# Suffixes of the files of a figure.
SUFFIXES = (".png", ".svg", ".pdf")
# Dots per inch of a picture in a notebook.
_SCREEN = 110

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
    "svg.hashsalt": "owkg",  # for the names inside an .svg, which are random otherwise
}
# Metadata of each file, without a date, so that equal figures give equal bytes.
_SAID: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


@contextmanager
def figure(rows: int, columns: int, size: tuple[float, float], **options: Any) -> Iterator[tuple]:
    """Context with (figure, axes) in the project's style, drawn without a screen; `size` is in inches.

    `options` are passed to `matplotlib.pyplot.subplots`.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        fig = Figure(figsize=size)
        FigureCanvasAgg(fig)
        # IPython shows only figures of pyplot, and this one is not.
        vars(fig)["_repr_png_"] = partial(_png, fig)
        yield fig, fig.subplots(rows, columns, **options)


def save_figure(
    fig: "matplotlib.figure.Figure", path: str | PathLike[str], *, dpi: float | None = None
) -> list[Path]:
    """Writes a figure: one file for a path that ends in .png, .svg or .pdf, otherwise all three.

    Equal figures give equal bytes, because no file holds a date or a random name.

    Args:
        fig: figure to write, for example one that `owkg.plots.values` returns.
        path: file to write (.png, .svg or .pdf), or the stem of three files. Missing folders are made.
        dpi: dots per inch of a .png. Default: 160.

    Returns:
        The paths written, in the order .png, .svg, .pdf.

    Raises:
        OSError: if a file cannot be written.
    """
    import matplotlib as mpl

    path = Path(path)
    paths = [path] if path.suffix in SUFFIXES else [path.with_name(path.name + end) for end in SUFFIXES]
    for one in paths:
        # Made in memory, because the PDF writer does not report a full disk.
        content = BytesIO()
        with mpl.rc_context(_STYLE):
            more: dict[str, Any] = {} if dpi is None else {"dpi": dpi}
            fig.savefig(content, format=one.suffix[1:], metadata=_SAID.get(one.suffix), **more)
        with written_aside(one) as aside:
            aside.write_bytes(content.getvalue())
    return paths


def _png(fig: "matplotlib.figure.Figure") -> bytes:
    """PNG bytes that a notebook shows for a figure."""
    content = BytesIO()
    fig.savefig(content, format="png", dpi=_SCREEN)
    return content.getvalue()


def label_ends(
    panel: "matplotlib.axes.Axes", ends: Sequence[tuple[float, float, str, Any]], *, size: float = 7.5
) -> None:
    """Writes names at the right ends of lines, moved apart if they would overlap.

    `ends` holds (y, x, name, colour) of each line. The limits of the panel must be set.
    """
    low, high = panel.get_ylim()
    height: float = panel.get_window_extent().height / panel.figure.dpi * 72  # points
    least = 1.25 * size / height * (high - low)
    placed: list[float] = []
    order = sorted(ends, key=lambda end: end[0])
    for y, *_ in order:
        placed.append(max(y, placed[-1] + least) if placed else y)
    # The loop pushes names up only, so they are moved back down by their mean shift.
    shift = float(np.mean([at - end[0] for at, end in zip(placed, order, strict=True)])) if placed else 0.0
    for at, (_, x, name, colour) in zip(placed, order, strict=True):
        panel.annotate(
            name,
            (x, at - shift),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=colour,
            annotation_clip=False,
        )
    panel.set_ylim(low, high)


def legend_below(fig: "matplotlib.figure.Figure", *, columns: int = 3) -> None:
    """Adds one legend for all panels below them, unless there is only one kind of mark."""
    entries: dict[str, Any] = {}
    for panel in fig.axes:
        handles, names = panel.get_legend_handles_labels()
        entries |= dict(zip(names, handles, strict=True))
    if len(entries) > 1:
        fig.legend(entries.values(), entries, loc="outside lower center", ncols=columns, fontsize=8)


def panel_grid(count: int) -> tuple[int, int]:
    """Rows and columns for `count` panels, at most three in a row.

    Examples:
        >>> panel_grid(2), panel_grid(4), panel_grid(5)
        ((1, 2), (2, 2), (2, 3))
    """
    columns = 2 if count == 4 else min(count, 3)
    return -(-count // columns), columns


def blank_panels(axes: np.ndarray, used: int) -> None:
    """Hides the panels after the first `used` ones."""
    for panel in list(axes.flat)[used:]:
        panel.remove()
