"""Checkpoints that the sparse test puts in the wrong order: one case in close-up, and the number of cases."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from owkg.plots.figure import COLOURS, figure, save_figure
from simulations.open_world.curves import SPARSE, Curves
from simulations.yang2022.claims import ALL, claim
from simulations.yang2022.curve_plots import looks, shown_name
from simulations.yang2022.inconsistency import Apart, Contradiction, larger_is_better, largest_contradiction
from simulations.yang2022.selection import checked_curves, selected

# Radius of the 95 % region of two means: the quantile of a chi-squared with two degrees of freedom.
_REGION = -2 * np.log(0.05)
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
    """Checkpoints of the better one's configuration that are better on the full test and worse on the other.

    Args:
        curves: curves of one density.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` except the full one.
        found: pair from `largest_contradiction`.
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
    """Draws the two checkpoints with the regions of their means, and the quadrant of wrong orders.

    An ellipse is the 95 % region of both means over other queries. In the grey quadrant, a model is better
    than the worse checkpoint on the full test and worse on the other test; small points are further
    checkpoints of the better one's configuration in this quadrant. Both test sets have the same queries, so
    that differences are more certain than the ellipses suggest: the title has their standard errors.

    Args:
        curves: curves of one density.
        panel: axes to draw on.
        metric, test_set: as in `largest_contradiction`.
        found: pair from `largest_contradiction`.
    """
    from matplotlib.patches import Ellipse, Rectangle

    chosen = selected(curves, metric, test_set)
    mean = np.stack([values.mean(axis=1, dtype=np.float64) for values in chosen])
    by_label = looks([curves])
    others = contradicted(curves, metric, test_set, found)
    corners = []
    for at, marker in ((found.worse, "s"), (found.better, "o")):
        config = int(curves.config[at])
        look, label = by_label[curves.labels[config]], curves.labels[config]
        # Two configurations of one model share a colour, so the second one gets a different colour here.
        colour = look.colour if marker == "o" or _models_differ(curves, found) else "0.2"
        own = np.flatnonzero(curves.config == config)
        own = own[np.argsort(curves.step[own], kind="stable")]
        panel.plot(*mean[:, own], ls=look.style, color=colour, lw=0.9, alpha=0.45)
        if marker == "o":
            panel.plot(*mean[:, others], "o", color=colour, ms=2.5, alpha=0.6, ls="")
        panel.plot(*mean[:, [at]], marker, color=colour, ms=7, label=label)
        width, height, angle = _ellipse(np.stack([values[at] for values in chosen]))
        centre = float(mean[0, at]), float(mean[1, at])
        panel.add_patch(Ellipse(centre, width, height, angle=angle, fc=colour, ec=colour, alpha=0.22, lw=1))
        spread = np.array([values[at].std(ddof=1, dtype=np.float64) for values in chosen])
        half = np.sqrt(_REGION / chosen.full.shape[1]) * spread
        above = mean[0, at], mean[1, at] + half[1]
        panel.annotate(
            label, above, (0, 5), textcoords="offset points", ha="center", weight="bold", color=colour
        )
        corners += [mean[:, at] - half, mean[:, at] + half]
    low, high = np.min(corners, axis=0), np.max(corners, axis=0)
    low, high = low - 0.3 * (high - low), high + 0.3 * (high - low)
    panel.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    x, y = mean[:, found.worse]
    # Towards better values on the full test, and towards worse values on the other test.
    right = larger_is_better(curves, metric)
    corner = (x, low[1]) if right else (low[0], y)
    size = (high[0] - x, y - low[1]) if right else (x - low[0], high[1] - y)
    panel.add_patch(Rectangle(corner, *size, fc="0.93", ec="0.6", ls=":", lw=0.8, zorder=0))
    panel.text(
        0.98 if right else 0.02,
        0.03 if right else 0.97,
        f"better on the full test,\nworse on the {test_set} test",
        transform=panel.transAxes,
        ha="right" if right else "left",
        va="bottom" if right else "top",
        color="0.3",
    )
    name = shown_name(curves, metric)
    panel.grid(visible=False)
    panel.set(xlabel=f"{name}, full test", ylabel=f"{name}, {test_set} test")
    better, worse = (curves.labels[int(curves.config[at])] for at in (found.better, found.worse))
    panel.set_title(
        f"{better} is better than {worse} by {found.z_full:.1f} standard errors,\n"
        f"and worse by {found.z_sparse:.1f} on the {test_set} test (density {curves.density:g})",
        loc="left",
    )


def _ellipse(values: Float[np.ndarray, "2 queries"]) -> tuple[float, float, float]:
    """(width, height, angle in degrees) of the 95 % region of the means of two values over queries."""
    covariance = np.cov(values.astype(np.float64)) / values.shape[1]
    sizes, axes = np.linalg.eigh(covariance)
    along = 2 * np.sqrt(_REGION * np.maximum(sizes, 0))
    return float(along[1]), float(along[0]), float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))


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
    """Draws the largest contradiction: Figure 4 of Yang et al. (2022).

    Args:
        curves: curves of one density.
        stem: path of the files without their ending.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` except the full one.
        apart: "configuration" or "model": what the two checkpoints must not share.

    Returns:
        The written paths: .png, .svg and .pdf; empty if the test set contradicts no order.

    Raises:
        ValueError: if a name is unknown, or arrays of the curves do not fit together.
        OSError: if the files cannot be written.
    """
    found = largest_contradiction(checked_curves(curves), metric, test_set, apart=apart)
    if found is None:
        return []
    with figure(1, 1, (6, 4.4)) as (fig, panel):
        draw_contradiction(curves, panel, metric=metric, test_set=test_set, found=found)
        return save_figure(fig, stem)


def draw_by_density(table: pl.DataFrame, panel: Any, *, metric: str, share: str = "inconsistent") -> None:
    """Draws a share by density, one line of points with intervals for each test set.

    Args:
        table: table from `simulations.yang2022.claims.claims`.
        panel: axes to draw on.
        metric: a metric of the table.
        share: a claim about pairs.
    """
    sets = _known(table, metric=metric, share=share)
    densities = sorted(table["density"].unique(), reverse=True)
    for i, test_set in enumerate(sets):
        rows = claim(table, share, metric=metric, test_set=test_set).drop_nulls()
        # Next to each other, because overlapping intervals of two test sets would hide one another.
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
    """Draws a share by metric at one density: bars from the smallest to the largest, with intervals.

    Args:
        table: table from `simulations.yang2022.claims.claims`.
        panel: axes to draw on.
        density: a density of the table.
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
    """Test sets of the wanted rows, "sparse" first.

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
        table: table from `simulations.yang2022.claims.claims`.
        folder: folder for the files.
        metric: metric of the figures by density.
        density: density of the figures by metric; None: the one that is nearest to 3/4.
        shares: claims about pairs, with two figures each.

    Returns:
        The written paths: .png, .svg and .pdf.

    Raises:
        ValueError: if a name is unknown.
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
