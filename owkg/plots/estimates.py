"""Figure of estimates from judged samples: values of systems and differences of pairs, with intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.plots.figure import figure, legend_below, panel_grid
from owkg.plots.values import draw_intervals

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from owkg.estimation.estimate import Estimate

_PAIRS = 15  # most pairs of systems that are all drawn
_DIFFERENCES = ", differences"
_PER_ROW, _LEAST = 0.27, 0.95  # inches


def estimate_figure(
    found: "Estimate", *, metrics: str | Sequence[str] | None = None, against: str | None = None
) -> "matplotlib.figure.Figure":
    """Estimated values of systems, and below them the differences of pairs, with their intervals.

    Each metric has a panel for its values and a panel for its differences. An order is decided if the
    interval of a difference does not contain 0, which a line marks. A grey line without a point shows bounds
    of a system that was not pooled, and a blue line without a point shows limits that hold whatever the open
    labels are.

    Args:
        found: result of `owkg.estimate`.
        metrics: metrics to draw, in this order. Default: all.
        against: system whose differences from all others are drawn. Default: all pairs are drawn; if there
            are more than 15, those of the system with the highest value of the first metric.

    Returns:
        The figure. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if there is nothing to draw, or a metric or the system was not estimated.
    """
    values, pairs = _rows(found)
    known = pl.concat([values["metric"], pairs["metric"]]).unique(maintain_order=True).to_list()
    if not known:
        raise ArgumentError("found", "must have estimates of a metric, got none.")
    chosen = known if metrics is None else checks.some_of("metrics", metrics, known, least=1)
    pairs = _chosen_pairs(values, pairs, chosen[0], against)
    wanted = pl.col("metric").is_in(chosen)
    parts = [
        (rows, rows["name"].unique(maintain_order=True).to_list(), more)
        for rows, more in ((values.filter(wanted), ""), (pairs.filter(wanted), _DIFFERENCES))
        if len(rows)
    ]
    blocks, columns = panel_grid(len(chosen))
    heights = [_LEAST + _PER_ROW * len(names) for _, names, _ in parts] * blocks
    widest = max(len(name) for _, names, _ in parts for name in names)
    size = (max(4.2, 2.6 * columns + 0.5 + 0.07 * widest), sum(heights) + 0.3)
    with figure(len(heights), columns, size, squeeze=False, sharey="row", height_ratios=heights) as (
        fig,
        axes,
    ):
        for i, panels in enumerate(axes):
            rows, names, more = parts[i % len(parts)]
            start = i // len(parts) * columns
            shown = chosen[start : start + columns]
            for panel, metric in zip(panels, shown, strict=False):
                _draw(rows.filter(metric=metric), names, panel)
                panel.set_title(f"{metric}{more}", fontsize=9)
                if more:
                    panel.axvline(0, color="0.5", lw=0.8)
                    panel.autoscale(axis="x")
            panels[0].set_ylim(len(names) - 0.5, -0.5)
            for panel in panels[len(shown) :]:
                panel.remove()
        legend_below(fig)
        return fig


def _rows(found: "Estimate") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Values and differences with a column `name`."""
    values = found.metrics.with_columns(name="model")
    pairs = found.differences.with_columns(name=pl.format("{} - {}", "first", "second"))
    return values, pairs.filter(pl.col("ci_low").is_not_null())


def _chosen_pairs(
    values: pl.DataFrame, pairs: pl.DataFrame, metric: str, against: str | None
) -> pl.DataFrame:
    """Differences to draw; those of one system are turned so that it comes first."""
    if pairs.is_empty():
        if against is not None:
            raise ArgumentError("against", f"must be left out without differences, got {against!r}.")
        return pairs
    known = pl.concat([pairs["first"], pairs["second"]]).unique(maintain_order=True).to_list()
    if against is None:
        best = values.filter(pl.col("metric") == metric, pl.col("model").is_in(known)).sort(
            "value", descending=True, nulls_last=True
        )
        if pairs["name"].n_unique() <= _PAIRS or best.is_empty():
            return pairs
        against = str(best["model"][0])
    elif against not in known:
        raise ArgumentError("against", f"must be one of {', '.join(known)}, got {against!r}.")
    is_second = pl.col("second") == against
    turned = {
        "first": pl.lit(against),
        "second": pl.when(is_second).then("first").otherwise("second"),
        "value": pl.when(is_second).then(-pl.col("value")).otherwise("value"),
        "ci_low": pl.when(is_second).then(-pl.col("ci_high")).otherwise("ci_low"),
        "ci_high": pl.when(is_second).then(-pl.col("ci_low")).otherwise("ci_high"),
    }
    own = pairs.filter((pl.col("first") == against) | is_second).with_columns(**turned)
    return own.with_columns(name=pl.format("{} - {}", "first", "second"))


def _draw(rows: pl.DataFrame, labels: list[str], panel: "matplotlib.axes.Axes") -> None:
    if "least" in rows.columns:
        bounded = rows.filter(pl.col("ci_low").is_null())
        places: Any = [labels.index(name) for name in bounded["name"]]
        if len(bounded):
            panel.hlines(
                places, bounded["least"], bounded["most"], color="0.6", lw=1.6, label="bounds, not pooled"
            )
        rows = rows.filter(pl.col("ci_low").is_not_null())
    draw_intervals(rows, "name", labels, panel)
    panel.tick_params(labelsize=8)
    panel.locator_params(axis="x", nbins=5)
