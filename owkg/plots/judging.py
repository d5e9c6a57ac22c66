"""Figures of rankings under different judgements: by pool depth, by share of the queries, by test set.

Every figure takes a plain table, so that it can draw published numbers and the numbers of a study. If the
table has a column `panel`, each of its values gets a panel, in the order of their first rows.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy import stats

from owkg import checks
from owkg.errors import ArgumentError
from owkg.plots.figure import COLOURS, blank_panels, figure, panel_grid, save_figure
from owkg.stats.discrimination import asl_area, asl_curve, discriminative_power
from owkg.stats.rank_correlation import kendall_tau

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from owkg.judge.stability import Stability

_MARKERS = "os^DvPX"
_STYLES = ("-", "--", ":", "-.")
_REAL = (-np.inf, np.inf)
_TAU = (-1.0, 1.0)
# Column names of `sparse_against_full`, and the names that its drawing uses.
_OLD = {"full": "first", "sparse": "second"}
_ENDS = ("_lower", "_upper")
_COEFFICIENTS = {"tau": "Kendall's tau", "tau-ap": "AP correlation", "spearman": "Spearman's rho"}
_BANDS = 4  # most metrics with bands in one panel
_MANY = 4  # panels; more panels are smaller, in two rows


def depth_figure(
    table: pl.DataFrame, stem: Path, *, xlabel: str = "pool depth", ylabel: str = "Kendall's tau"
) -> list[Path]:
    """Agreement of rankings by pool depth, a line for each metric: Figures 4 and 5 of Zhou et al. (2022).

    Args:
        table: columns metric, depth and tau; panel, if there are several; and lower and upper, the ends of
            intervals, which are drawn as bands. A null tau, of a ranking in which all systems tie, is a gap.
        stem: path of the files without suffix.
        xlabel, ylabel: labels of the axes.

    Returns:
        The paths written: .png, .svg and .pdf.

    Raises:
        ValueError: if a column is missing, or one of its numbers is missing or out of range.
        OSError: if the files cannot be written.
    """
    checked = _checked(table, {"depth": (0, np.inf)}, {"tau": _TAU, "lower": _TAU, "upper": _TAU}, "metric")
    return save_figure(_lines(checked, x="depth", y="tau", xlabel=xlabel, ylabel=ylabel), stem)


def stability_figure(
    found: "Stability", *, metrics: str | Sequence[str] | None = None
) -> "matplotlib.figure.Figure":
    """Agreement of rankings by a share of the queries with the ranking by all, a line for each metric.

    Lines are means over the draws. For up to four metrics, a band around each line lies between the smallest
    and the largest quantile of the result, by default between the 2.5 and 97.5 % quantiles. A line has a gap
    where a metric ties all systems on every draw.

    Args:
        found: result of `owkg.judge.stability` or `owkg.judge.stability_by_triple`.
        metrics: metrics to draw, in this order. Default: all.

    Returns:
        The figure. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if a metric is not in the result.

    References:
        Zhou, Chen, He, Ye, Sun (SIGIR 2022), section 5.1.
    """
    chosen = found.metrics if metrics is None else checks.some_of("metrics", metrics, found.metrics, least=1)
    columns: dict[str, np.ndarray] = {"mean": found.mean}
    title = "mean over the draws"
    if len(found.at) > 1 and len(chosen) <= _BANDS:
        least, most = int(np.argmin(found.at)), int(np.argmax(found.at))
        columns |= {"lower": found.quantiles[least], "upper": found.quantiles[most]}
        title = f"mean, and {100 * found.at[least]:g} to {100 * found.at[most]:g} % quantiles"
    rows = [found.metrics.index(metric) for metric in chosen]
    table = pl.DataFrame(
        {
            "metric": np.repeat(chosen, len(found.sizes)),
            "share": np.tile(found.sizes, len(chosen)),
            **{name: of[rows].reshape(-1) for name, of in columns.items()},
        }
    ).fill_nan(None)
    unit = {"query": "queries", "triple": "triples"}[found.unit]
    labels = {
        "xlabel": f"share of the {unit}",
        "ylabel": f"{_COEFFICIENTS[found.coefficient]} with all {unit}",
    }
    fig = _lines(table, x="share", y="mean", **labels)
    fig.axes[0].set_title(title, loc="left", fontsize=8)
    return fig


def asl_figure(
    table: pl.DataFrame, stem: Path, *, alpha: float = 0.05, xlabel: str = "pairs of systems"
) -> list[Path]:
    """P-values of all pairs from the largest to the smallest, a curve for each metric; lower is better.

    The legend gives the area under each curve (the mean p-value) and the share of pairs below `alpha`, in (0,
    1), which is drawn as a line. `table` has a row for each pair with the columns metric, p_value, and panel,
    if there are several. The other arguments, results and errors are as in `depth_figure`.

    References:
        Sakai (SIGIR 2006), "Evaluating evaluation metrics based on the bootstrap".
    """
    level = checks.real_number("alpha", alpha, 0, 1, closed=False)
    checked = _checked(table, {"p_value": (0, 1)}, {}, "metric")
    look = _looks(checked["metric"])

    def draw(part: pl.DataFrame, panel: "matplotlib.axes.Axes") -> None:
        curves = {name: asl_curve(rows["p_value"].to_numpy()) for name, rows in _by(part, "metric").items()}
        for name in sorted(curves, key=lambda name: float(asl_area(curves[name]))):
            p = curves[name]
            area, power = float(asl_area(p)), float(discriminative_power(p, level))
            label = f"{name}: area {area:.3f}, {power:.0%} below {level:g}"
            panel.step(
                np.arange(len(p) + 1), np.append(p, p[-1]), where="post", lw=1.2, label=label, **look[name]
            )
        panel.axhline(level, color="0.5", lw=0.8, ls=(0, (1, 1)))
        most = max(map(len, curves.values()))
        panel.set(xlabel=xlabel, ylabel="p-value", ylim=(-0.02, 1.02), xlim=(-0.01 * most, most))
        # The curves fall from the upper left, so the upper right corner is the emptiest.
        panel.legend(fontsize=7, loc="upper right")

    return save_figure(_panels(checked, draw, size=(4.6, 3.6)), stem)


def ranking_figure(table: pl.DataFrame, stem: Path) -> list[Path]:
    """Ranks of the systems on several qrels side by side, the best at the top, a line for each system.

    Tied systems share the mean of their ranks, and are named together. `table` has the columns qrels, system,
    value (larger is better), and panel, if there are several. Every system must occur once in each qrels. The
    qrels are in the order of their first rows. The other arguments, results and errors are as in
    `depth_figure`.
    """
    checked = _checked(table, {"value": _REAL}, {}, "qrels", "system")
    look = _looks(checked["system"], markers=True)

    def draw(part: pl.DataFrame, panel: "matplotlib.axes.Axes") -> None:
        sets = part["qrels"].unique(maintain_order=True).to_list()
        wide = part.pivot("qrels", index="system", values="value", maintain_order=True)
        ranks = stats.rankdata(-wide.select(sets).to_numpy(), axis=0)
        for name, own in zip(wide["system"], ranks, strict=True):
            panel.plot(range(len(sets)), own, lw=1.3, ms=4, **look[name])
        for at, side, offset in ((0, "right", -6), (len(sets) - 1, "left", 6)):
            for rank in np.unique(ranks[:, at]):
                names = ", ".join(wide["system"].filter(ranks[:, at] == rank))
                options: Any = {"va": "center", "ha": side, "fontsize": 7.5, "textcoords": "offset points"}
                panel.annotate(names, (at, rank), (offset, 0), annotation_clip=False, **options)
        panel.set_xticks(range(len(sets)), sets)
        panel.set_yticks([])
        panel.set(ylim=(len(ranks) + 0.5, 0.5), xlim=(-0.05, len(sets) - 0.95))
        # The names of the systems are there.
        panel.spines["left"].set_visible(False)

    _once(checked, "qrels")
    sets = checked["qrels"].n_unique()
    height = 0.9 + 0.22 * checked["system"].n_unique()
    return save_figure(_panels(checked, draw, size=(2.2 + 1.1 * sets, height)), stem)


def qrels_figure(
    table: pl.DataFrame, stem: Path, *, xlabel: str = "sparse test", ylabel: str = "full test"
) -> list[Path]:
    """Metrics of systems on two qrels, a point for each system, written to files.

    The figure is `sparse_against_full` for any two qrels. `table` has the columns system, first and second;
    panel, if there are several; and first_lower, first_upper, second_lower and second_upper, if there are
    intervals. The other arguments, results and errors are as in `depth_figure`.
    """
    return save_figure(_against(table, xlabel, ylabel), stem)


def sparse_against_full(
    table: pl.DataFrame, *, xlabel: str = "complete test", ylabel: str = "incomplete test"
) -> "matplotlib.figure.Figure":
    """Values on an incomplete test plotted over values on the complete test, a point for each system.

    Both axes have one scale, so that systems on the grey line have equal values. The title gives Kendall's
    tau-b of the two rankings. Larger values count as better; tau is the same if smaller values are better.

    Args:
        table: columns `system`, `full` and `sparse`; `panel`, if there are several metrics or test sets; and
            `full_lower`, `full_upper`, `sparse_lower` and `sparse_upper`, if there are intervals.
        xlabel: label of the axis of `full`. Default "complete test".
        ylabel: label of the axis of `sparse`. Default "incomplete test".

    Returns:
        The figure. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if a column is missing, one of its numbers is not finite, or a panel lacks a system.

    Examples:
        >>> table = pl.DataFrame({"system": ["a", "b"], "full": [0.6, 0.8], "sparse": [0.4, 0.3]})
        >>> [panel.get_title() for panel in sparse_against_full(table).axes]
        ['tau -1.000']
    """
    if not isinstance(table, pl.DataFrame):
        raise ArgumentError("table", f"must be a polars frame with rows, got {table!r}.")
    for name in ("full", "sparse"):
        if name not in table.columns:
            raise ArgumentError("table", f"must have the columns system, full, sparse; there is no {name}.")
    new = {f"{old}{end}": f"{name}{end}" for old, name in _OLD.items() for end in ("", *_ENDS)}
    return _against(table.rename(new, strict=False), xlabel, ylabel)


def _against(table: pl.DataFrame, xlabel: str, ylabel: str) -> "matplotlib.figure.Figure":
    checked = _checked(table, {"first": _REAL, "second": _REAL}, {}, "system")
    _once(checked)
    ends = [f"{name}{end}" for name in _OLD.values() for end in _ENDS]
    given = [name for name in ends if name in checked.columns]
    if given and len(given) < len(ends):
        absent = next(name for name in ends if name not in given)
        raise ArgumentError("table", f"must have the ends of all intervals or of none; there is no {absent}.")
    look = _looks(checked["system"], markers=True)

    def draw(part: pl.DataFrame, panel: "matplotlib.axes.Axes") -> None:
        for row in part.iter_rows(named=True):
            marks = look[row["system"]] | {"ls": "", "ms": 6, "alpha": 0.85}
            panel.plot(row["first"], row["second"], label=row["system"], **marks)
            errors = {}
            for name, axis in (("first", "xerr"), ("second", "yerr")) if given else ():
                low, high = (row[f"{name}{end}"] for end in _ENDS)
                if low is not None and high is not None:
                    errors[axis] = [[max(row[name] - low, 0.0)], [max(high - row[name], 0.0)]]
            if errors:
                at = row["first"], row["second"]
                panel.errorbar(*at, **errors, fmt="none", ecolor=marks["color"], elinewidth=1)
        _equal_axes(panel)
        tau = kendall_tau(part["first"].to_numpy(), part["second"].to_numpy()) if len(part) > 1 else np.nan
        shown = "no tau: all tied" if np.isnan(tau) else f"tau {float(tau):.3f}"
        panel.set(xlabel=xlabel, ylabel=ylabel)
        panel.set_title(f"{part['panel'][0]}: {shown}" if "panel" in part.columns else shown)

    return _panels(checked, draw, size=(3.3, 3.1), legend=True, titled=False)


def _equal_axes(panel: "matplotlib.axes.Axes") -> None:
    """Sets equal limits on both axes, from 0 if no value is negative, and draws the line of equal values."""
    ends = np.array([panel.get_xlim(), panel.get_ylim()])
    low, high = float(ends.min()), float(ends.max())
    shown = [panel.dataLim.x0, panel.dataLim.y0]
    low = 0.0 if min(shown) >= 0 else low
    high += 0.03 * (high - low)  # so that no marker is cut
    panel.axline((high, high), slope=1, color="0.6", lw=0.8, label="equal")
    panel.set(xlim=(low, high), ylim=(low, high), aspect="equal")
    panel.locator_params(nbins=5)


def _lines(table: pl.DataFrame, *, x: str, y: str, xlabel: str, ylabel: str) -> "matplotlib.figure.Figure":
    """Figure with a line for each metric, and a band if the table has its ends."""
    keys = [name for name in ("panel", "metric", x) if name in table.columns]
    if (twice := table.select(keys).is_duplicated()).any():
        shown = ", ".join(map(str, table.filter(twice).select(keys).row(0)))
        raise ArgumentError("table", f"must have one row for each {', '.join(keys)}, got several of {shown}.")
    look = _looks(table["metric"], markers=True)
    ends = {"lower", "upper"} <= set(table.columns)

    def draw(part: pl.DataFrame, panel: "matplotlib.axes.Axes") -> None:
        for name, rows in _by(part, "metric").items():
            rows = rows.sort(x)
            if ends:
                lower, upper = (rows[end].cast(pl.Float64).to_numpy() for end in ("lower", "upper"))
                panel.fill_between(rows[x], lower, upper, color=look[name]["color"], alpha=0.13, lw=0)
            panel.plot(rows[x], rows[y].cast(pl.Float64), lw=1.2, ms=3.5, label=name, **look[name])
        place: Any = panel.get_subplotspec()
        locator: Any = panel.xaxis.get_major_locator()
        panel.set(xlabel=xlabel, ylabel=ylabel if place.is_first_col() else "")
        if x == "depth":
            locator.set_params(integer=True)

    panels = table["panel"].n_unique() if "panel" in table.columns else 1
    size: dict[str, Any] = {"size": (3.6, 3.1)}
    if panels > _MANY:
        size = {"size": (2.5, 2.4), "grid": (2, -(-panels // 2))}
    fig = _panels(table, draw, **size, legend=True, sharey=True)
    # All panels have one scale, so that their heights can be compared.
    low, high = fig.axes[0].get_ylim()
    fig.axes[0].set_ylim(max(low, -1.05), min(high, 1.05))
    if low < 0 < high:
        for panel in fig.axes:
            panel.axhline(0, color="0.5", lw=0.8)
    return fig


def _panels(
    table: pl.DataFrame,
    draw: Callable[[pl.DataFrame, Any], None],
    *,
    size: tuple[float, float],
    legend: bool = False,
    titled: bool = True,
    grid: tuple[int, int] | None = None,
    **shared: bool,
) -> "matplotlib.figure.Figure":
    """Figure with a panel for each value of `panel`, and with `legend` one legend for all at their side."""
    parts = _by(table, "panel") if "panel" in table.columns else {"": table}
    rows, columns = grid or panel_grid(len(parts))
    whole = (size[0] * columns + 1.5 * legend, size[1] * rows)
    with figure(rows, columns, whole, squeeze=False, **shared) as (fig, axes):
        entries: dict[str, Any] = {}
        for panel, (name, part) in zip(axes.flat, parts.items(), strict=False):
            draw(part, panel)
            if titled:
                panel.set_title(name)
            for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, handle)
        blank_panels(axes, len(parts))
        if legend:
            fig.legend(entries.values(), entries, loc="outside right center", fontsize=8)
        return fig


def _by(table: pl.DataFrame, column: str) -> dict[str, pl.DataFrame]:
    return {str(key[0]): rows for key, rows in table.group_by(column, maintain_order=True)}


def _looks(names: pl.Series, *, markers: bool = False) -> dict[str, dict[str, Any]]:
    """Colour, line style and marker of each name; the first 28 names all differ."""
    found = {}
    for i, name in enumerate(names.unique(maintain_order=True)):
        turn = i // len(COLOURS)
        found[name] = {"color": COLOURS[i % len(COLOURS)], "ls": _STYLES[turn % len(_STYLES)]}
        if markers:
            found[name]["marker"] = _MARKERS[(i + turn) % len(_MARKERS)]
    return found


def _checked(
    table: pl.DataFrame,
    numbers: Mapping[str, tuple[float, float]],
    gaps: Mapping[str, tuple[float, float]],
    *names: str,
) -> pl.DataFrame:
    """`table` with checked columns of names, and of numbers in their ranges; `gaps` may hold nulls.

    The first of `gaps` is required. The table must have all others or none of them.
    """
    if not isinstance(table, pl.DataFrame) or table.is_empty():
        raise ArgumentError("table", f"must be a polars frame with rows, got {table!r}.")
    first, *ends = [*gaps] or [None]
    optional = ends if set(ends) & set(table.columns) else []
    wanted = [*names, *numbers, *([first] if first else []), *optional]
    if missing := [name for name in wanted if name not in table.columns]:
        raise ArgumentError("table", f"must have the columns {', '.join(wanted)}; there is no {missing[0]}.")
    for name in (*names, *(["panel"] if "panel" in table.columns else [])):
        if table[name].null_count():
            raise ArgumentError("table", f"must have a {name} in every row, got null.")
    for name in wanted[len(names) :]:
        column = table[name]
        if not column.dtype.is_numeric() and column.dtype != pl.Null:
            raise ArgumentError("table", f"must have numbers in the column {name}, got {column.dtype}.")
        if column.null_count() and name in numbers:
            raise ArgumentError("table", f"must have a {name} in every row, got null.")
        if len(known := column.drop_nulls().cast(pl.Float64)):
            checks.real(name, known.to_numpy(), *(numbers.get(name) or gaps[name]))
    return table.with_columns(pl.col(*names).cast(pl.String))


def _once(table: pl.DataFrame, *within: str) -> None:
    """Raises unless every system occurs once in each panel and each value of `within`."""
    keys = ["panel", *within] if "panel" in table.columns else list(within)
    systems = table["system"].n_unique()
    counted = table.group_by(*keys, maintain_order=True) if keys else [((), table)]
    for key, rows in counted:
        if len(rows) != systems or rows["system"].n_unique() != systems:
            where = f" in {', '.join(map(str, key))}" if key else ""
            raise ArgumentError(
                "table",
                f"must have each of {systems} systems once{where}, got {len(rows)} rows of "
                f"{rows['system'].n_unique()} systems.",
            )
