"""Figures of PROBE over its parameters: a surface over sharpness and robustness, and the leading model."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from owkg.metrics import Tasks, Ties, evaluate, probe
from owkg.plots.figure import COLOURS, blank_panels

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

SHARPNESS = tuple(2.0 ** (step / 2) for step in range(-8, 9))
"""Sharpness of the figures: 1/16 .. 16 in half octaves."""

ROBUSTNESS = tuple(round(0.1 * step, 1) for step in range(11))
"""Robustness of the figures: 0 .. 1."""

_RULE = Ties.REALISTIC

# Colours from a light end to a middle tone, on which dark lines and numbers are legible.
_SHADES = ("#F6FBFE", "#CFE7F5", "#8CC9EC", "#3E9FD3")
_LINES = ("-", "--", "-.")

# Drawn points for each computed point of a surface, along both axes.
_REFINED = 12

# Contour lines with fewer points have no room for their number.
_SHORT = 40


def probe_surface(
    tasks: Tasks, sharpness: Sequence[float] = SHARPNESS, robustness: Sequence[float] = ROBUSTNESS
) -> Float[np.ndarray, "2 robustness sharpness"]:
    """PROBE of realistic ranks, and its mean under random ranking, at every pair of parameters.

    The tasks need the popularity of their answers if a robustness is above 0.

    Raises:
        ValueError: as `owkg.metrics.probe` and `owkg.metrics.evaluate`.
    """
    chosen = [[probe(a, b) for a in sharpness] for b in robustness]
    found = evaluate(tasks, [s for row in chosen for s in row], ties=[_RULE], level=None)[_RULE]
    estimates = [[found[s.name] for s in row] for row in chosen]
    return np.array([[[e[field] for e in row] for row in estimates] for field in (0, 1)])


def _parameter_axes(panel: "matplotlib.axes.Axes") -> None:
    _sharpness_axis(panel)
    panel.set_ylim(ROBUSTNESS[0], ROBUSTNESS[-1])


def _sharpness_axis(panel: "matplotlib.axes.Axes") -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator([2.0**k for k in range(-4, 5)]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda a, _: f"{a:g}" if a >= 1 else f"1/{1 / a:g}"))
    panel.set_xlim(SHARPNESS[0], SHARPNESS[-1])
    panel.set_xlabel("sharpness a")


def _levels(low: float, high: float, most: int) -> list[float]:
    """Round numbers between `low` and `high`, at most about `most`, none at the edges."""
    from matplotlib.ticker import MaxNLocator

    margin = 0.01 * (high - low)
    if not margin > 1e-9:
        return []
    ticks = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(x) for x in ticks if low + margin < x < high - margin]


def _refined(values: Float[np.ndarray, "robustness sharpness"]) -> Float[np.ndarray, "y x"]:
    """Surface at `_drawn_axes`, by cubic splines in robustness and the logarithm of sharpness."""
    from scipy.interpolate import RectBivariateSpline

    x, y = _drawn_axes()
    spline = RectBivariateSpline(ROBUSTNESS, np.log2(SHARPNESS), values)
    return spline(y, np.log2(x))


def _drawn_axes() -> tuple[Float[np.ndarray, "x"], Float[np.ndarray, "y"]]:
    x = np.geomspace(SHARPNESS[0], SHARPNESS[-1], _REFINED * (len(SHARPNESS) - 1) + 1)
    return x, np.linspace(ROBUSTNESS[0], ROBUSTNESS[-1], _REFINED * (len(ROBUSTNESS) - 1) + 1)


def _contours(
    panel: "matplotlib.axes.Axes", values: Float[np.ndarray, "y x"], most: int, form: Callable[[float], str]
) -> None:
    """Draws contour lines at round numbers, with the numbers on them."""
    if levels := _levels(float(values.min()), float(values.max()), most):
        lines = panel.contour(*_drawn_axes(), values, levels, colors="0.15", linewidths=0.7)
        # Each number is in the middle of the longest line of its level, away from the edges.
        longest = [max(segments, key=len, default=()) for segments in lines.allsegs]
        places = [line[len(line) // 2] for line in longest if len(line) > _SHORT]
        panel.clabel(lines, fontsize=8, inline_spacing=2, fmt=form, manual=places)


def draw_surfaces(
    surfaces: Mapping[str, Float[np.ndarray, "robustness sharpness"]],
    axes: np.ndarray,
    fig: "matplotlib.figure.Figure",
) -> None:
    """Draws a heat map for each model over `ROBUSTNESS` and `SHARPNESS`, with one colour bar for all."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("probe", _SHADES)
    highest = max(float(values.max()) for values in surfaces.values())
    fine = {name: _refined(values) for name, values in surfaces.items()}
    image: Any = None
    for panel, (name, values) in zip(axes.flat, fine.items(), strict=False):
        image = panel.pcolormesh(
            *_drawn_axes(), values, shading="nearest", cmap=shades, vmin=0, vmax=highest, rasterized=True
        )
        panel.grid(visible=False)
        panel.set_title(name)
        _parameter_axes(panel)
    for panel in axes[:, 0]:
        panel.set_ylabel("robustness b")
    fig.colorbar(image, ax=axes, label="PROBE, realistic ranks", pad=0.02, aspect=30)
    blank_panels(axes, len(surfaces))
    fig.draw_without_rendering()  # numbers follow the contours only after the panels have their sizes
    for panel, values in zip(axes.flat, fine.values(), strict=False):
        _contours(panel, values, 9, lambda x: f"{x:.3g}")


def _palette(count: int) -> list[Any]:
    from matplotlib import colormaps

    if count <= len(COLOURS):
        return list(COLOURS)
    return list(colormaps["turbo"](np.linspace(0, 1, count)))


def draw_order(
    surfaces: Mapping[str, Float[np.ndarray, "robustness sharpness"]], panel: "matplotlib.axes.Axes"
) -> None:
    """Draws the model with the highest PROBE at each pair of parameters; paler colours show a smaller lead.

    `surfaces` holds at least two models, over `ROBUSTNESS` and `SHARPNESS`.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    values = np.stack([_refined(surface) for surface in surfaces.values()])
    best = values.argmax(axis=0)
    second, first = np.sort(values, axis=0)[-2:]
    lead = first - second
    largest = lead.max()
    depth = 0.12 + 0.6 * np.sqrt(lead / largest) if largest > 0 else np.zeros_like(lead)
    names, colours = list(surfaces), _palette(len(surfaces))
    rgb = np.array([to_rgb(colour) for colour in colours])[best]
    x, y = _drawn_axes()
    panel.pcolormesh(x, y, 1 - depth[..., None] * (1 - rgb), shading="nearest", rasterized=True)
    leaders = np.unique(best)
    for i in leaders if len(leaders) > 1 else ():
        over_others = values[i] - np.delete(values, i, axis=0).max(axis=0)
        panel.contour(x, y, over_others, [0.0], colors="black", linewidths=1.6)
    ahead = "ahead" if len(leaders) > 1 else "ahead everywhere"
    patches = [Patch(color=colours[i], label=f"{names[i]} {ahead}", alpha=0.72) for i in leaders]
    panel.legend(handles=patches, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3)
    panel.grid(visible=False)
    _parameter_axes(panel)
    panel.set(ylabel="robustness b", title="Which model PROBE puts first, and its lead over the next")
    figure: Any = panel.figure
    figure.draw_without_rendering()
    _contours(panel, lead, 6, lambda x: f"+{x:.3g}")


def draw_lines(models: Mapping[str, Float[np.ndarray, "2 sharpness"]], panel: "matplotlib.axes.Axes") -> None:
    """Draws PROBE over `SHARPNESS` without popularity, a line for each model and one for random ranking."""
    for i, (name, (value, chance)) in enumerate(models.items()):
        colour, style = COLOURS[i % len(COLOURS)], _LINES[i // len(COLOURS) % len(_LINES)]
        panel.plot(SHARPNESS, value, style, color=colour, label=name)
        panel.plot(SHARPNESS, chance, ":", color=colour, lw=0.9)
    panel.plot([], [], ":", color="0.3", lw=0.9, label="by chance")
    _sharpness_axis(panel)
    panel.set(
        ylabel="PROBE, realistic ranks",
        ylim=(0, None),
        title="Low sharpness looks down the list, high at its top",
    )
    panel.legend(fontsize=8)
