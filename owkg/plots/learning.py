"""Learning curves of training runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.plots.figure import COLOURS, figure

if TYPE_CHECKING:
    import matplotlib.figure

_Path = pl.DataFrame | StrPath
_METRIC = "mrr"
_MEAN = COLOURS[-1]
_VALID = "valid_"
_STYLES = ("-", "--", ":", "-.")


def learning_curves(
    paths: "_Path | Mapping[str, _Path]",
    *,
    metric: str | None = None,
    best: int | None = None,
    mean: bool | None = None,
) -> "matplotlib.figure.Figure":
    """Loss and validation metric during training, a line for each run, and their mean over seeds.

    Args:
        paths: a run: its training path (`Run.path`), its folder, or a folder that `owkg train --seeds` wrote;
            or several runs by name. Columns of a path: `epoch`, `step`, `loss`, and `valid_*` if the run was
            validated.
        metric: validation metric to draw, without `valid_`. If the runs did not compute it, the first metric
            that they have is drawn. Default: the metric that chose the best step for a folder, otherwise
            "mrr".
        best: step to mark, usually `Run.step`. Default: none.
        mean: whether to draw the mean over the runs, at the epochs that all of them have. Default: only for a
            folder of several seeds.

    Returns:
        The figure: a panel for the loss, and a second one for the validation metric unless no run was
        validated. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if there is no path, a folder is not that of a run, or a path lacks a column or has no
            rows.

    Examples:
        >>> path = pl.DataFrame({"step": [10, 20], "epoch": [1.0, 2.0], "loss": [3.0, 2.0]})
        >>> [panel.get_ylabel() for panel in learning_curves(path).axes]
        ['training loss']
    """
    runs, chosen, of_seeds = _runs(paths)
    if not runs:
        raise ArgumentError("paths", "must have the path of at least one run, got none.")
    for name, path in runs.items():
        for column in ("step", "epoch", "loss"):
            if column not in path.columns:
                of = f" of {name!r}" if name else ""
                raise ArgumentError("paths", f"must have the column {column}{of}.")
        if path.is_empty():
            raise ArgumentError("paths", "must have at least one row: the training recorded none.")
    drawn = _validated(runs, metric or chosen)
    columns = ["loss", *([drawn] if drawn else [])]
    several, averaged = len(runs) > 1, of_seeds if mean is None else mean
    colours = [colour for colour in COLOURS if not averaged or colour != _MEAN]
    size = (3.6 + 3.4 * (len(columns) - 1) + 1.2 * several, max(3.0, 0.8 + 0.18 * len(runs)))
    with figure(1, len(columns), size, squeeze=False) as (fig, axes):
        panels = list(axes.flat)
        for panel, column in zip(panels, columns, strict=True):
            for i, (name, path) in enumerate(runs.items()):
                turn = i // len(colours)
                look: dict[str, Any] = {
                    "color": colours[i % len(colours)],
                    "ls": _STYLES[turn % len(_STYLES)],
                }
                look |= {"lw": 0.9, "alpha": 0.7} if averaged else {"lw": 1.3}
                if column != "loss":
                    look |= {"marker": "o", "ms": 2 if averaged else 3}
                if column in path.columns:
                    rows = path.drop_nulls(column)
                    panel.plot(rows["epoch"], rows[column], label=name, **look)
            if averaged and several:
                rows = _mean([path for path in runs.values() if column in path.columns], column)
                panel.plot(rows["epoch"], rows[column], color=_MEAN, lw=2.2, label="mean")
            panel.set_ylabel(
                "training loss" if column == "loss" else f"validation {column.removeprefix(_VALID)}"
            )
            panel.set_xlabel("epoch")
            panel.locator_params(axis="x", integer=True)
            panel.set_ylim(bottom=min(0.0, panel.get_ylim()[0]))
        if drawn and not several and best is not None:
            _mark(next(iter(runs.values())), drawn, best, panels[1])
        if several:
            handles, names = panels[0].get_legend_handles_labels()
            fig.legend(handles, names, loc="outside right upper", fontsize=8)
        return fig


def _runs(paths: "_Path | Mapping[str, _Path]") -> tuple[dict[str, pl.DataFrame], str, bool]:
    """Training paths by name, the validation metric to draw, and whether the runs are seeds of one model."""
    if isinstance(paths, pl.DataFrame):
        return {"": paths}, _METRIC, False
    if isinstance(paths, Mapping):
        every = {name: _runs(one) for name, one in paths.items()}
        for name, (found, _, _) in every.items():
            if len(found) > 1:
                raise ArgumentError("paths", f"must have one run for each name, got several for {name!r}.")
        metrics = dict.fromkeys(metric for _, metric, _ in every.values())
        runs = {str(name): next(iter(found.values())) for name, (found, _, _) in every.items()}
        return runs, next(iter(metrics), _METRIC), False
    from owkg.train import run_config, run_path, seed_runs

    folder = checks.path("paths", paths)
    named = {f"seed {seed}": run for seed, run in seed_runs(folder).items()} or {"": folder}
    runs = {name: run_path(run) for name, run in named.items()}
    return runs, run_config(next(iter(named.values()))).valid_metric, len(runs) > 1


def _mean(paths: Sequence[pl.DataFrame], column: str) -> pl.DataFrame:
    """Mean of a column at the epochs at which all runs have it."""
    rows = pl.concat(path.select("epoch", pl.col(column).cast(pl.Float64)) for path in paths).drop_nulls()
    found = rows.group_by("epoch").agg(pl.col(column).mean(), count=pl.len())
    return found.filter(count=len(paths)).sort("epoch")


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
