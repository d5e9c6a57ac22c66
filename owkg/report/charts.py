"""Charts of the page as Vega-Lite, made with Altair. They hold no numbers: the page supplies these by name.

Colours are variables of the page's style sheet, so that charts follow when the page turns dark.
"""

from types import ModuleType
from typing import Any

FIRST, SECOND, OTHER = "var(--first)", "var(--second)", "var(--other)"
"""Colours of the better model of the chosen pair, of its second model, and of all other models."""

_INK, _FAINT, _RULE, _PAPER = "var(--ink)", "var(--faint)", "var(--rule)", "var(--paper)"
_MAP = ["#D55E00", "#F2F2F2", "#0072B2"]
_FONT = "system-ui, sans-serif"


def charts(models: int) -> dict[str, dict[str, Any]]:
    """Charts as Vega-Lite, by the name of their figure.

    Args:
        models: number of models, which determines the height of a chart.

    Raises:
        ValueError: if Altair is not installed.
    """
    try:
        import altair as alt
    except ImportError:
        raise ValueError("an HTML report needs Altair: `pip install 'owkg[report]'`.") from None
    found = {"models": _models(alt, models), "grid": _grid(alt), "box": _box(alt), "power": _power(alt)}
    return {name: _styled(alt, chart) for name, chart in found.items()}


def _models(alt: ModuleType, count: int) -> Any:
    """Values and implied full-test metrics of the models, with intervals."""
    kinds = ["known answers", "complete test, implied"]
    base = alt.Chart(alt.NamedData("rows")).encode(
        y=alt.Y("model:N", sort=None, title=None),
        yOffset=alt.YOffset("kind:N", sort=None),
        color=alt.Color("kind:N", scale=alt.Scale(domain=kinds, range=[FIRST, SECOND]), legend=None),
        tooltip=[
            alt.Tooltip("model:N"),
            alt.Tooltip("kind:N"),
            *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("value", "low", "high")),
        ],
    )
    rules = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    shape = alt.Shape("kind:N", scale=alt.Scale(domain=kinds, range=["circle", "diamond"]), legend=None)
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=_x(alt, "value", "value"), shape=shape)
    return (rules + points).properties(width="container", height=32 * max(count, 1))


def _grid(alt: ModuleType) -> Any:
    """Implied full-test metric by sparsity: bands for the chosen pair, lines for all models."""
    stated = alt.Chart(alt.NamedData("stated")).mark_rect(color=_FAINT, opacity=0.15)
    stated = stated.encode(x="x:Q", x2="x2:Q")
    rows = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("sparsity:Q", title="sparsity: share of the true answers that is missing"),
        color=alt.Color("role:N", scale=_roles(alt), legend=None),
        detail="model:N",
    )
    bands = rows.mark_area().encode(
        y=alt.Y("low:Q", title="complete test, implied", scale=alt.Scale(zero=False)),
        y2="high:Q",
        opacity=alt.condition("datum.role == 'other'", alt.value(0), alt.value(0.2)),
    )
    tooltip = [
        alt.Tooltip("model:N"),
        *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("sparsity", "full", "low", "high")),
    ]
    dashes = alt.Scale(domain=["first", "second", "other"], range=[[1, 0], [7, 3], [1, 0]])
    lines = rows.mark_line(point=alt.OverlayMarkDef(size=25, filled=True)).encode(
        y="full:Q",
        strokeDash=alt.StrokeDash("role:N", scale=dashes, legend=None),
        opacity=alt.condition("datum.role == 'other'", alt.value(0.6), alt.value(1)),
        tooltip=tooltip,
    )
    seen = alt.Chart(alt.NamedData("seen")).mark_rule(strokeDash=[2, 4], strokeWidth=1.5)
    seen = seen.encode(y="value:Q", color=alt.Color("role:N", scale=_roles(alt), legend=None))
    breaks = alt.Chart(alt.NamedData("breaks")).encode(x="sparsity:Q")
    rule = breaks.mark_rule(color=_INK, strokeWidth=1.5)
    # The label is on the side of the line with enough room.
    left, right = (
        alt.Chart(alt.NamedData(name))
        .mark_text(align=align, dx=dx, color=_INK, fontSize=12)
        .encode(x="sparsity:Q", y=alt.value(8), text="label:N")
        for name, align, dx in (("left", "right", -5), ("right", "left", 5))
    )
    return (stated + bands + lines + seen + rule + left + right).properties(width="container", height=300)


def _box(alt: ModuleType) -> Any:
    """Which model of the chosen pair is better, by sparsity and difference of correlations.

    The area outside of the stated range is hatched; a cross marks the point that the page describes.
    """
    legend = alt.Legend(
        title="probability that the first is better",
        orient="top",
        direction="horizontal",
        gradientLength=220,
        format=".0%",
        values=[0, 0.25, 0.5, 0.75, 1],
    )
    cells = alt.Chart(alt.NamedData("rows")).encode(
        x=alt.X("x:Q", title="sparsity", scale=alt.Scale(nice=False, zero=False)),
        x2="x2:Q",
        y=alt.Y("y:Q", title="correlation, second minus first", scale=alt.Scale(nice=False, zero=False)),
        y2="y2:Q",
    )
    colour = alt.Color("p:Q", scale=alt.Scale(domain=[0, 0.5, 1], range=_MAP), legend=legend)
    rows = cells.mark_rect(strokeWidth=0, aria=False).encode(color=colour)
    # Above the hatching, so that every cell has a cursor and a tooltip.
    told = cells.mark_rect(opacity=0, cursor="crosshair").encode(
        tooltip=[
            alt.Tooltip("sparsity:Q"),
            alt.Tooltip("correlation:Q", title="correlation, second minus first"),
            alt.Tooltip("p:Q", format=".3f", title="P(first better)"),
        ]
    )

    def over(name: str) -> Any:
        return alt.Chart(alt.NamedData(name)).encode(x="x:Q", x2="x2:Q", y="y:Q", y2="y2:Q")

    hatched = over("outside").mark_rect(fill="url(#hatch)", aria=False)  # the page defines it
    stated = over("stated")
    # Visible on any colour of the map, and where the map is blank.
    halo = stated.mark_rect(filled=False, stroke="#FFFFFF", strokeWidth=5, aria=False)
    line = stated.mark_rect(filled=False, stroke="#000000", strokeWidth=2, aria=False)
    cross = alt.Chart(alt.NamedData("cross"))
    rules = [
        cross.mark_rule(color=ink, strokeWidth=width, aria=False).encode(**{axis: f"{name}:Q"})
        for ink, width in (("#FFFFFF", 3), ("#000000", 1))
        for axis, name in (("x", "sparsity"), ("y", "correlation"))
    ]
    return alt.layer(rows, hatched, halo, line, *rules, told).properties(width="container", height=320)


def _power(alt: ModuleType) -> Any:
    """Probability that so many queries show the wrong order of the chosen pair."""
    axis = alt.Axis(tickCount=6, format="~s")
    rows = alt.Chart(alt.NamedData("rows")).mark_line(
        color=FIRST, strokeWidth=2.5, point=alt.OverlayMarkDef(color=FIRST)
    )
    rows = rows.encode(
        x=alt.X("queries:Q", title="queries", scale=alt.Scale(type="log"), axis=axis),
        y=alt.Y("wrong:Q", title="probability of the wrong order", axis=alt.Axis(format="%")),
        tooltip=[alt.Tooltip("queries:Q", format=","), alt.Tooltip("wrong:Q", format=".4f")],
    )
    marks = alt.Chart(alt.NamedData("marks")).encode(x="queries:Q")
    rules = marks.mark_rule(strokeDash=[5, 4], color=_FAINT)
    # One below the other, so that two close labels stay readable.
    words = [
        alt.Chart(alt.NamedData(name + side))
        .mark_text(align=align, dx=dx, color=_INK, fontSize=12)
        .encode(x="queries:Q", y=alt.value(y), text="label:N")
        for name, y in (("required", 10), ("asked", 26))
        for side, align, dx in (("Left", "right", -4), ("Right", "left", 4))
    ]
    return alt.layer(rows, rules, *words).properties(width="container", height=260)


def _x(alt: ModuleType, name: str, title: str) -> Any:
    return alt.X(f"{name}:Q", title=title, scale=alt.Scale(zero=False))


def _roles(alt: ModuleType) -> Any:
    return alt.Scale(domain=["first", "second", "other"], range=[FIRST, SECOND, OTHER])


def _styled(alt: ModuleType, chart: Any) -> dict[str, Any]:
    words = {"labelColor": _INK, "titleColor": _INK, "labelFontSize": 12, "titleFontSize": 12}
    words |= {"titleFontWeight": 500, "titleLimit": 0}
    axis = words | {"domainColor": _FAINT, "tickColor": _FAINT, "gridColor": _RULE, "labelSeparation": 6}
    look = chart.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    look = look.configure(background="transparent", font=_FONT)
    look = look.configure_axis(**axis).configure_view(stroke=None)
    return look.configure_legend(**words, orient="top").to_dict()
