"""Learning curves of training runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from owkg.errors import ArgumentError
from owkg.plots.figure import COLOURS, figure

if TYPE_CHECKING:
    import matplotlib.figure

_VALID = "valid_"
_STYLES = ("-", "--", ":", "-.")


def learning_curves(
    paths: pl.DataFrame | Mapping[str, pl.DataFrame], *, metric: str = "mrr", best: int | None = None
) -> "matplotlib.figure.Figure":
    """Loss and validation metric during training, a line for each run.

    Args:
        paths: training path of a run (`Run.path`, or path.parquet of its folder), or the paths of several
            runs by name. Columns: `epoch`, `step`, `loss`, and `valid_*` if the run was validated.
        metric: validation metric to draw, without `valid_`. If the runs did not compute it, the first metric
            that they have is drawn. Default "mrr".
        best: step to mark, usually `Run.step`. Default: none.

    Returns:
        The figure: a panel for the loss, and a second one for the validation metric unless no run was
        validated. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if there is no path, or a path lacks a column or has no rows.

    Examples:
        >>> path = pl.DataFrame({"step": [10, 20], "epoch": [1.0, 2.0], "loss": [3.0, 2.0]})
        >>> [panel.get_ylabel() for panel in learning_curves(path).axes]
        ['training loss']
    """
    runs = {"": paths} if isinstance(paths, pl.DataFrame) else dict(paths)
    if not runs:
        raise ArgumentError("paths", "must have the path of at least one run, got none.")
    for name, path in runs.items():
        for column in ("step", "epoch", "loss"):
            if column not in path.columns:
                of = f" of {name!r}" if name else ""
                raise ArgumentError("paths", f"must have the column {column}{of}.")
        if path.is_empty():
            raise ArgumentError("paths", "must have at least one row: the training recorded none.")
    drawn = _validated(runs, metric)
    with figure(1, 1 + bool(drawn), (3.6 + 3.4 * bool(drawn), 3.0), squeeze=False) as (fig, axes):
        panels = list(axes.flat)
        for i, (name, path) in enumerate(runs.items()):
            turn = i // len(COLOURS)
            look: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "ls": _STYLES[turn % len(_STYLES)]}
            panels[0].plot(path["epoch"], path["loss"], lw=1.3, label=name, **look)
            if drawn and drawn in path.columns:
                rows = path.drop_nulls(drawn)
                panels[1].plot(rows["epoch"], rows[drawn], marker="o", ms=3, lw=1.3, label=name, **look)
        panels[0].set_ylabel("training loss")
        if drawn:
            panels[1].set_ylabel(f"validation {drawn.removeprefix(_VALID)}")
        for panel in panels:
            panel.set_xlabel("epoch")
            panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
        if drawn and len(runs) == 1 and best is not None:
            _mark(next(iter(runs.values())), drawn, best, panels[1])
        if len(runs) > 1:
            panels[0].legend(fontsize=8)
        return fig


def _validated(runs: Mapping[str, pl.DataFrame], metric: str) -> str | None:
    """Column of the validation metric to draw; None if no run was validated."""
    found = [name for path in runs.values() for name in path.columns if name.startswith(_VALID)]
    wanted = f"{_VALID}{metric}"
    return wanted if wanted in found else next(iter(found), None)


def _mark(path: pl.DataFrame, drawn: str, best: int, panel: Any) -> None:
    rows = path.filter(step=best).drop_nulls(drawn)
    if rows.is_empty():
        return
    epoch, value = rows["epoch"][-1], rows[drawn][-1]
    text = f"best step {best:,}: {value:.3f}"
    panel.plot([epoch], [value], "o", ms=9, mfc="none", mew=1.5, color=COLOURS[1], label=text)
    panel.legend(fontsize=8, loc="lower right")
