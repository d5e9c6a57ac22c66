"""Figures of an audit: its leaderboard, the values that sparsities imply, and the map of a pair of models."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.plots.figure import COLOURS, figure, label_ends

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

    from owkg.auditing import Audit

PARTS = ("ladder", "sparsity", "map")
"""Parts that `audit_figure` draws: the leaderboard, the implied metric over sparsity, the map of a pair."""

_SEEN, _IMPLIED, _OTHER = COLOURS[0], COLOURS[1], "0.6"
_MAP = ("#D55E00", "#F2F2F2", "#0072B2")
# Differences of correlations that the map shows.
_CORRELATION = 0.2
_WIDTHS = {"ladder": 5.2, "sparsity": 4.0, "map": 4.0}  # inches
# First words of a verdict, and the style of the link between two neighbours.
_LINKS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("holds if", {"ls": (0, (3, 2)), "color": "0.25"}),
    ("reversed if", {"ls": (0, (3, 2)), "color": "#B00020"}),
    ("holds", {"ls": "-", "color": "0.25"}),
    ("reversed", {"ls": "-", "color": "#B00020"}),
    ("turned", {"ls": "-", "color": "#B00020"}),
    ("open", {"ls": (0, (3, 2)), "color": "0.45"}),
)


def audit_figure(
    found: "Audit",
    *,
    parts: str | Sequence[str] = PARTS,
    metric: str | None = None,
    average: str | None = None,
    pair: tuple[str, str] | None = None,
) -> "matplotlib.figure.Figure":
    """Figures of an audit for one metric, side by side.

    - `ladder`: the models, best first, with their intervals; diamonds are the complete-test values that the
      stated sparsity implies. The link between two neighbours shows their verdict. It is solid if the order
      holds whatever is missing or under the stated range, and red if it is reversed. It is dashed if the
      order is open, or if the verdict rests on an assumption that was not stated.
    - `sparsity`: the complete-test value that each sparsity implies, with bands for the pair. A dotted line
      marks where the order of the pair breaks, and the stated range is grey.
    - `map`: the probability that the first of the pair is better on the complete test, by sparsity and
      difference of correlations. A frame surrounds the stated range.

    Args:
        found: result of `owkg.audit`.
        parts: parts to draw, of `PARTS`. Default: all.
        metric: metric of the audit. Default: the first.
        average: "answers" or "queries", one that the audit has. Default: the first.
        pair: names of two models. Default: the two best.

    Returns:
        The figure. Write it with `owkg.plots.save_figure`.

    Raises:
        ValueError: if a part, metric, average or model is not in the audit.
    """
    chosen = checks.some_of("parts", parts, PARTS, least=1)
    metric = _one_of("metric", metric, found.models["metric"])
    models = found.models.filter(metric=metric)
    average = _one_of("average", average, models["average"])
    where = {"metric": metric, "average": average}
    models = models.filter(average=average)
    names = models["model"].to_list()
    first, second = pair or (names + names)[:2]
    for name in (first, second):
        if name not in names:
            raise ArgumentError("pair", f"must be two of {', '.join(names)}, got {name!r}.")
    if first == second:
        raise ArgumentError("pair", f"must be two different models, got {first!r} twice.")
    pairs = {(row["first"], row["second"]): row for row in found.pairs.filter(**where).iter_rows(named=True)}
    if (first, second) not in pairs:
        first, second = second, first
    draw: dict[str, Callable[[Any], None]] = {
        "ladder": lambda panel: _ladder(models, pairs, metric, panel),
        "sparsity": lambda panel: _sparsity(
            found.grid.filter(**where), pairs[first, second], _range(found, "sparsity"), metric, panel
        ),
        "map": lambda panel: _map(
            found.box.filter(first=first, second=second, **where), found, (first, second), panel
        ),
    }
    widths = [_WIDTHS[part] for part in chosen]
    size = (sum(widths), max(3.3, 1.2 + 0.62 * len(names) * ("ladder" in chosen)))
    with figure(1, len(chosen), size, squeeze=False, width_ratios=widths) as (fig, axes):
        for part, panel in zip(chosen, axes.flat, strict=True):
            draw[part](panel)
        return fig


def _one_of(name: str, value: str | None, known: pl.Series) -> str:
    values = known.unique(maintain_order=True).to_list()
    if value is not None and value not in values:
        raise ArgumentError(name, f"must be one of {', '.join(values)}, got {value!r}.")
    return values[0] if value is None else value


def _range(found: "Audit", name: str) -> tuple[float, float] | None:
    stated = found.assumptions[name]
    return None if stated is None or isinstance(stated, Mapping) else tuple(stated)


def _ladder(
    models: pl.DataFrame,
    pairs: Mapping[tuple[str, str], Mapping[str, Any]],
    metric: str,
    panel: "matplotlib.axes.Axes",
) -> None:
    names = models["model"].to_list()
    for name, shape, colour, shift, label in (
        ("value", "o", _SEEN, -0.11, "known answers"),
        ("full", "D", _IMPLIED, 0.11, "complete test, implied"),
    ):
        rows = models.with_row_index("at").drop_nulls(name)
        if rows.is_empty():
            continue
        at = rows["at"].cast(pl.Float64) + shift
        low, high = ("ci_low", "ci_high") if name == "value" else (f"{name}_low", f"{name}_high")
        whole = rows.with_columns(at=at).drop_nulls([low, high])
        panel.hlines(whole["at"], whole[low], whole[high], color=colour, lw=1.6)
        panel.plot(rows[name], at, shape, color=colour, ms=5, label=label)
    across: Any = panel.get_yaxis_transform()
    for at, (above, below) in enumerate(pairwise(names)):
        row = pairs.get((above, below)) or pairs[below, above]
        verdict = row["verdict"]
        look = next((look for start, look in _LINKS if verdict.startswith(start)), _LINKS[-1][1])
        panel.plot([1.03, 1.03], [at + 0.16, at + 0.84], transform=across, clip_on=False, lw=1.8, **look)
        panel.text(1.06, at + 0.5, _wrapped(verdict), transform=across, va="center", fontsize=7.5)
    panel.set_yticks(range(len(names)), names)
    panel.set(xlabel=metric, ylim=(len(names) - 0.5, -0.5))
    panel.set_xlim(left=min(0.0, panel.get_xlim()[0]))
    panel.set_title("Does each order hold?", loc="left")
    panel.grid(axis="y", visible=False)
    panel.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)


def _wrapped(text: str) -> str:
    from textwrap import fill

    return fill(text, 24)


def _sparsity(
    grid: pl.DataFrame,
    pair: Mapping[str, Any],
    stated: tuple[float, float] | None,
    metric: str,
    panel: "matplotlib.axes.Axes",
) -> None:
    if stated is not None:
        panel.axvspan(*stated, color="0.88", lw=0, zorder=0)
    looks = {pair["first"]: (_SEEN, "-"), pair["second"]: (_IMPLIED, (0, (6, 2)))}
    last = []
    for (name,), every in grid.group_by("model", maintain_order=True):
        rows = every.drop_nulls("full")
        if rows.is_empty():
            continue
        colour, style = looks.get(str(name), (_OTHER, "-"))
        if name in looks:
            banded = rows.drop_nulls(["full_low", "full_high"])
            panel.fill_between(
                banded["sparsity"], banded["full_low"], banded["full_high"], color=colour, alpha=0.15, lw=0
            )
        panel.plot(rows["sparsity"], rows["full"], color=colour, ls=style, lw=1.5)
        last.append((rows["full"][-1], rows["sparsity"][-1], str(name), colour))
    broken = pair["breakdown_sparsity"]
    if broken is not None:
        panel.axvline(broken, color="0.2", ls=":", lw=1)
        across: Any = panel.get_xaxis_transform()
        panel.text(
            broken,
            0.98,
            f"sure below {broken:.2f} ",
            transform=across,
            fontsize=7.5,
            rotation=90,
            ha="right",
            va="top",
        )
    panel.set(xlabel="sparsity: share of the answers that is missing", ylabel=f"{metric}, complete test")
    panel.set_title("Which value does each sparsity imply?", loc="left")
    label_ends(panel, last)


def _map(box: pl.DataFrame, found: "Audit", pair: tuple[str, str], panel: "matplotlib.axes.Axes") -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    shown = box.filter(pl.col("correlation_difference").abs() <= _CORRELATION + 1e-9)
    wide = shown.pivot("sparsity", index="correlation_difference", values="probability", sort_columns=False)
    x = np.array([float(name) for name in wide.columns[1:]])
    y = wide["correlation_difference"].to_numpy()
    values = wide.drop("correlation_difference").cast(pl.Float64).fill_null(np.nan).to_numpy()
    # The panel stays white where no combination is feasible.
    shades = LinearSegmentedColormap.from_list("audit", _MAP)
    image = panel.pcolormesh(
        x, y, np.ma.masked_invalid(values), cmap=shades, vmin=0, vmax=1, shading="nearest", rasterized=True
    )
    panel.grid(visible=False)
    sparsity, correlation = _range(found, "sparsity"), _range(found, "correlation")
    if sparsity is not None:
        spread = 0.0 if correlation is None else correlation[1] - correlation[0]
        for colour, width in (("white", 3.5), ("black", 1.5)):
            corner, size = (sparsity[0], -spread), (sparsity[1] - sparsity[0], 2 * spread)
            panel.add_patch(Rectangle(corner, *size, fill=False, ec=colour, lw=width, zorder=3))
    first, second = pair
    panel.set(xlabel="sparsity", ylabel=f"correlation: {second} minus {first}")
    panel.set_title(f"Is {first} better than {second}?", loc="left")
    bar = panel.figure.colorbar(image, ax=panel, label="probability", pad=0.02, aspect=25)
    bar.set_ticks([0, 0.5, 1])
