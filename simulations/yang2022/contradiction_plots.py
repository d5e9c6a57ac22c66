"""Checkpoints that the sparse test puts in the wrong order: one case in close-up, and how many there are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Int

from owkg.plots.figure import COLOURS, figure, save_figure
from simulations.open_world.curves import SPARSE, Curves
from simulations.yang2022.claims import ALL, claim
from simulations.yang2022.curve_plots import looks, shown_name
from simulations.yang2022.inconsistency import Apart, Contradiction, larger_is_better, largest_contradiction
from simulations.yang2022.selection import Selection, checked_curves, selected

_NAMES = {"sparse": "independent", "correlated": "correlated"}
_SHARES = {
    "inconsistent": "pairs in the wrong order beyond error",
    "of_distinct": "pairs in the wrong order beyond error,\nof those distinct on the full test",
    "contradicting": "pairs in the wrong order",
    "distinct": "pairs distinct on the full test",
}


def contradicted(
    curves: Curves, metric: str, test_set: str, found: Contradiction
) -> Int[np.ndarray, "checkpoints"]:
    """The checkpoints of the better one's configuration that the full test puts above the worse one, and the
    other test set below it.

    Args:
        curves: of one density.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` but the full one.
        found: of `largest_contradiction`.
    """
    sign = 1 if larger_is_better(curves, metric) else -1
    full, sparse = (
        sign * values.mean(axis=1, dtype=np.float64) for values in selected(curves, metric, test_set)
    )
    own = curves.config == curves.config[found.better]
    return np.flatnonzero(own & (full > full[found.worse]) & (sparse < sparse[found.worse]))


def draw_contradiction(
    curves: Curves, panel: Any, *, metric: str, test_set: str, found: Contradiction
) -> None:
    """Both curves around the checkpoint that is overrated, and those that are better and read worse.

    Error bars are one standard error over queries; that of a difference is smaller, as both answer the
    same queries.

    Args:
        curves: of one density.
        panel: to draw on.
        metric, test_set: as in `largest_contradiction`.
        found: by it.
    """
    chosen = selected(curves, metric, test_set)
    mean = [values.mean(axis=1, dtype=np.float64) for values in chosen]
    error = _errors(chosen)
    by_label = looks([curves])
    better = contradicted(curves, metric, test_set, found)
    for checkpoints, marker, what in (
        (np.array([found.worse]), "s", "worse, reads better"),
        (better, "o", f"better, read{'s' if len(better) == 1 else ''} worse"),
    ):
        config = int(curves.config[checkpoints[0]])
        label = curves.labels[config]
        look = by_label[label]
        # Two configurations of one model share a colour, so the second gets another.
        colour = look.colour if marker == "o" or _models_differ(curves, found) else "0.2"
        own = np.flatnonzero(curves.config == config)
        own = own[np.argsort(curves.step[own], kind="stable")]
        panel.plot(mean[0][own], mean[1][own], ls=look.style, color=colour, lw=1, alpha=0.6, label=label)
        panel.errorbar(
            mean[0][checkpoints],
            mean[1][checkpoints],
            xerr=error[0][checkpoints],
            yerr=error[1][checkpoints],
            fmt=marker,
            color=colour,
            ms=4,
            lw=0.7,
            label=f"{label}: {what}",
        )
    shown = np.append(better, found.worse)
    for values, errors, limits in ((mean[0], error[0], panel.set_xlim), (mean[1], error[1], panel.set_ylim)):
        low, high = (values[shown] - errors[shown]).min(), (values[shown] + errors[shown]).max()
        limits(low - 0.25 * (high - low), high + 0.25 * (high - low))
    name = shown_name(curves, metric)
    at = mean[0][found.worse], mean[1][found.worse]
    panel.axvline(at[0], color="0.5", lw=0.6, ls=":")
    panel.axhline(at[1], color="0.5", lw=0.6, ls=":")
    panel.set(
        xlabel=f"{name}, full test",
        ylabel=f"{name}, {test_set} test",
        title=f"density {curves.density:g}: {len(better)} better checkpoints read worse\n"
        f"the clearest by {found.z_full:.1f} and {found.z_sparse:.1f} standard errors",
    )
    panel.legend(fontsize=8, loc="best")


def _errors(chosen: Selection) -> list[np.ndarray]:
    return [values.std(axis=1, ddof=1, dtype=np.float64) / np.sqrt(values.shape[1]) for values in chosen]


def _models_differ(curves: Curves, found: Contradiction) -> bool:
    one, two = (curves.models[int(curves.config[at])] for at in (found.better, found.worse))
    return one != two


def contradiction_figure(
    curves: Curves,
    stem: Path,
    *,
    metric: str = "mrr",
    test_set: str = "sparse",
    apart: Any = Apart.CONFIGURATION,
) -> list[Path]:
    """The largest contradiction in close-up: Figure 4 of Yang et al. (2022).

    Args:
        curves: of one density.
        stem: of the files.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` but the full one.
        apart: "configuration" or "model": what the two checkpoints must not share.

    Returns:
        The paths written: .png, .svg and .pdf; none if the test set contradicts no order.

    Raises:
        ValueError: if a name is not known, or the curves do not hold together.
        OSError: if the files cannot be written.
    """
    found = largest_contradiction(checked_curves(curves), metric, test_set, apart=apart)
    if found is None:
        return []
    with figure(1, 1, (6, 4.4)) as (fig, panel):
        draw_contradiction(curves, panel, metric=metric, test_set=test_set, found=found)
        return save_figure(fig, stem)


def draw_by_density(table: pl.DataFrame, panel: Any, *, metric: str, share: str = "inconsistent") -> None:
    """A share by density, one line of points a test set, with intervals.

    Args:
        table: of `simulations.yang2022.claims.claims`.
        panel: to draw on.
        metric: one of the table's.
        share: a claim about pairs.
    """
    sets = _known(table, metric=metric, share=share)
    densities = sorted(table["density"].unique(), reverse=True)
    for i, test_set in enumerate(sets):
        rows = claim(table, share, metric=metric, test_set=test_set).drop_nulls()
        # Side by side: intervals of two test sets would hide one another.
        x = np.array([densities.index(d) for d in rows["density"]]) + 0.12 * (i - (len(sets) - 1) / 2)
        _points(panel, x, rows, COLOURS[i % len(COLOURS)], _NAMES.get(test_set, test_set))
    panel.set_xticks(range(len(densities)), [f"{density:g}" for density in densities])
    panel.set_xlim(-0.5, len(densities) - 0.5)
    panel.set_ylim(bottom=0)
    panel.set(xlabel="density: share of the facts that are known", ylabel=_SHARES[share])
    panel.set_title(f"{metric}: wrong order under missing facts")
    panel.legend(fontsize=8, title="missing facts")
    _percent(panel.yaxis)


def _points(panel: Any, x: np.ndarray, rows: pl.DataFrame, colour: str, label: str) -> None:
    value = rows["value"].to_numpy()
    ends = np.abs(np.stack([value - rows["lower"].to_numpy(), rows["upper"].to_numpy() - value]))
    panel.errorbar(x, value, yerr=ends, fmt="o-", color=colour, lw=0.9, capsize=2.5, ms=4, label=label)


def draw_by_metric(table: pl.DataFrame, panel: Any, *, density: float, share: str = "inconsistent") -> None:
    """A share by metric at one density: bars from the smallest to the largest, with intervals.

    Args:
        table: of `simulations.yang2022.claims.claims`.
        panel: to draw on.
        density: one of the table's.
        share: a claim about pairs.
    """
    if density not in table["density"].to_list():
        known = ", ".join(f"{d:g}" for d in table["density"].unique().sort())
        raise ValueError(f"`density` must be one of {known}, got {density!r}.")
    here = table.filter(pl.col("density") == density)
    sets = _known(here, share=share)
    metrics = here.filter(pl.col("claim") == share)["metric"].unique(maintain_order=True).to_list()
    by_set = {
        name: {m: claim(here, share, metric=m, test_set=name).row(0, named=True) for m in metrics}
        for name in sets
    }
    first = by_set[sets[0]]
    order = sorted(metrics, key=lambda m: -1.0 if first[m]["value"] is None else first[m]["value"])
    height = 0.8 / len(sets)
    for i, (test_set, rows) in enumerate(by_set.items()):
        at = [m for m in order if rows[m]["value"] is not None]
        value, lower, upper = (
            np.array([rows[m][end] for m in at], float) for end in ("value", "lower", "upper")
        )
        panel.barh(
            np.array([order.index(m) for m in at]) + height * ((len(sets) - 1) / 2 - i),
            value,
            height,
            xerr=np.nan_to_num(np.abs(np.stack([value - lower, upper - value]))),
            color=COLOURS[i % len(COLOURS)],
            alpha=0.75,
            ecolor="0.2",
            error_kw={"lw": 0.8, "capsize": 2},
            label=_NAMES.get(test_set, test_set),
        )
    panel.set_yticks(range(len(order)), order)
    panel.set(xlabel=_SHARES[share], title=f"density {density:g}: wrong order by metric")
    panel.set_xlim(left=0)
    panel.grid(axis="y", visible=False)
    panel.legend(fontsize=8, title="missing facts", loc="center left", bbox_to_anchor=(1, 0.5))
    _percent(panel.xaxis)


def _known(table: pl.DataFrame, *, share: str, metric: str | None = None) -> list[str]:
    """The test sets of the rows that are asked for, "sparse" first.

    Raises:
        ValueError: if the table has no such share or metric.
    """
    if share not in _SHARES:
        raise ValueError(f"`share` must be one of {', '.join(_SHARES)}, got {share!r}.")
    rows = table.filter((pl.col("claim") == share) & (pl.col("configuration") == ALL))
    if metric is not None:
        known = rows["metric"].unique(maintain_order=True).to_list()
        if metric not in known:
            raise ValueError(f"`metric` must be one of {', '.join(known)}, got {metric!r}.")
        rows = rows.filter(pl.col("metric") == metric)
    names = rows["test_set"].unique(maintain_order=True).to_list()
    return sorted(names, key=lambda name: name != SPARSE)


def _percent(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))


def share_figures(
    table: pl.DataFrame,
    folder: Path,
    *,
    metric: str = "mrr",
    density: float | None = None,
    shares: Sequence[str] = ("inconsistent",),
) -> list[Path]:
    """Pairs in the wrong order: `<share>_by_density` at one metric, `<share>_by_metric` at one density.

    Args:
        table: of `simulations.yang2022.claims.claims`.
        folder: of the files.
        metric: drawn by density.
        density: drawn by metric; None: the one that is nearest to 3/4.
        shares: claims about pairs, two files each.

    Returns:
        The paths written: .png, .svg and .pdf.

    Raises:
        ValueError: if a name is not known.
        OSError: if the files cannot be written.
    """
    drawn = density
    if drawn is None:
        drawn = min(table["density"].unique().sort().to_list(), key=lambda d: abs(d - 0.75))
    paths = []
    for share in shares:
        with figure(1, 1, (5.6, 3.8)) as (fig, panel):
            draw_by_density(table, panel, metric=metric, share=share)
            paths += save_figure(fig, folder / f"{share}_by_density")
        count = table["metric"].n_unique()
        with figure(1, 1, (7, 1.6 + 0.28 * count)) as (fig, panel):
            draw_by_metric(table, panel, density=drawn, share=share)
            paths += save_figure(fig, folder / f"{share}_by_metric")
    return paths
