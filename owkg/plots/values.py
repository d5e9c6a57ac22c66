"""Figure of values with their intervals, with a panel for each metric."""

from typing import TYPE_CHECKING

import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.plots.figure import COLOURS, blank_panels, figure, legend_below, panel_grid

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

# Names of the ends of intervals: in `owkg.evaluate` and `owkg.classify`, and in `owkg.compare`.
_ENDS = (("ci_low", "ci_high"), ("lower", "upper"))
_NAMES = ("model", "system")
_CHANCE = "expectation"
_LABEL = "shown name"
_PER_ROW, _LEAST = 0.27, 1.15  # inches


def values(table: pl.DataFrame, *, metrics: str | list[str] | None = None) -> "matplotlib.figure.Figure":
    """Values with confidence intervals: a panel for each metric, a row for each model.

    Takes the table of `owkg.evaluate`, the `values` of `owkg.compare` or of `owkg.classify`, or any table
    with these columns. A row is named by its model or system, and by every other text column that precedes
    `metric` and differs between rows (side, ties, relation, test set). If there is a column `expectation`, a
    short grey bar marks the chance level.

    Args:
        table: table with the columns `metric` and `value`, and for intervals `ci_low` and `ci_high`, or
            `lower` and `upper`. Rows without a value are left out.
        metrics: metrics to draw, in this order. Default: all, in the order of the table.

    Returns:
        The figure. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if a column is missing, a metric is not in the table, no row has a value, or two rows of a
            metric have the same name.

    Examples:
        >>> table = pl.DataFrame({"model": ["a", "b"], "metric": "mrr", "value": [0.3, 0.4]})
        >>> [panel.get_title() for panel in values(table).axes]
        ['mrr']
    """
    rows, name = _labelled(table)
    known = rows["metric"].unique(maintain_order=True).to_list()
    chosen = known if metrics is None else checks.some_of("metrics", metrics, known, least=1)
    rows = rows.filter(pl.col("metric").is_in(chosen))
    labels = rows[name].unique(maintain_order=True).to_list()
    count, columns = panel_grid(len(chosen))
    height = _LEAST + _PER_ROW * len(labels)
    size = (max(4.2, 2.9 * columns + 0.7), height * count)
    with figure(count, columns, size, squeeze=False, sharey=True) as (fig, axes):
        for panel, metric in zip(axes.flat, chosen, strict=False):
            draw_intervals(rows.filter(metric=metric), name, labels, panel)
            panel.set_title(metric)
        axes.flat[0].set_ylim(len(labels) - 0.5, -0.5)
        blank_panels(axes, len(chosen))
        legend_below(fig)
        return fig


def draw_intervals(rows: pl.DataFrame, name: str, labels: list[str], panel: "matplotlib.axes.Axes") -> None:
    """Draws a value, its interval and the chance level of each row, at the place of its name in `labels`."""
    if (twice := rows[name].is_duplicated()).any():
        model = rows.filter(twice)[name][0]
        raise ArgumentError("table", f"must have one row for each metric and model, got two of {model!r}.")
    at = [labels.index(label) for label in rows[name]]
    ends = next((pair for pair in _ENDS if {*pair} <= {*rows.columns}), None)
    if ends:
        low, high = (rows[end].cast(pl.Float64) for end in ends)
        panel.hlines(at, low, high, color=COLOURS[0], lw=1.6, label="interval")
    panel.plot(rows["value"], at, "o", color=COLOURS[0], ms=5, label="value")
    if _CHANCE in rows.columns and rows[_CHANCE].null_count() < len(rows):
        panel.plot(rows[_CHANCE].cast(pl.Float64), at, "|", color="0.45", ms=9, mew=1.4, label="chance level")
    panel.set_yticks(range(len(labels)), labels)
    panel.grid(axis="y", visible=False)
    drawn = pl.concat([rows[column].cast(pl.Float64) for column in ("value", *(ends or ()))])
    if not (drawn < 0).any():
        panel.set_xlim(left=0)


def _labelled(table: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Rows that have a value, and the name of the added column with their names."""
    if not isinstance(table, pl.DataFrame):
        raise ArgumentError("table", f"must be a polars frame, got {type(table).__name__}.")
    for name in ("metric", "value"):
        if name not in table.columns:
            raise ArgumentError("table", f"must have the columns metric and value; there is no {name}.")
    rows = table.filter(pl.col("value").is_not_null() & pl.col("value").cast(pl.Float64).is_finite())
    if rows.is_empty():
        raise ArgumentError("table", "must have a value in some row, got none.")
    before = table.columns[: table.columns.index("metric")]
    texts = [name for name in [*_NAMES, *before, "qrels", "side", "ties"] if name in table.columns]
    texts = [
        name for name in dict.fromkeys(texts) if rows[name].dtype in (pl.String, pl.Enum, pl.Categorical)
    ]
    shown = [name for name in texts if rows[name].n_unique() > 1]
    named = shown or [name for name in texts if name in _NAMES][:1]
    label = pl.concat_str([pl.col(name).cast(pl.String) for name in named], separator=", ", ignore_nulls=True)
    return rows.with_columns((label if named else pl.lit("")).alias(_LABEL)), _LABEL
