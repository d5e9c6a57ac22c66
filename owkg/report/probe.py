"""PROBE over its parameters: a surface over sharpness and robustness, and which model leads where."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from owkg.metrics import Tasks, Ties, evaluate, probe
from owkg.report.figure import COLOURS
from owkg.report.panels import blank_panels

SHARPNESS = tuple(2.0 ** (step / 2) for step in range(-8, 9))
"""1/16 .. 16 in half octaves."""

ROBUSTNESS = tuple(round(0.1 * step, 1) for step in range(11))
"""0 .. 1."""

_RULE = Ties.REALISTIC
_LINES = ("-", "--", "-.", ":")


def probe_surface(
    tasks: Tasks, sharpness: Sequence[float] = SHARPNESS, robustness: Sequence[float] = ROBUSTNESS
) -> Float[np.ndarray, "2 robustness sharpness"]:
    """PROBE of realistic ranks, and its mean under random ranking, at every pair of parameters.

    Args:
        tasks: with the popularity of their answers if a robustness is above 0.
        sharpness: of the rank transformer.
        robustness: of the popularity weights.

    Raises:
        ValueError: as `owkg.metrics.probe` and `evaluate`.
    """
    chosen = [[probe(a, b) for a in sharpness] for b in robustness]
    found = evaluate(tasks, [s for row in chosen for s in row], ties=[_RULE], level=None)[_RULE]
    estimates = [[found[s.name] for s in row] for row in chosen]
    return np.array([[[e[field] for e in row] for row in estimates] for field in (0, 1)])


def _sharpness_axis(panel: Any) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    panel.set_xscale("log", base=2)
    panel.xaxis.set_major_locator(FixedLocator([2.0**k for k in range(-4, 5)]))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda a, _: f"{a:g}" if a >= 1 else f"1/{1 / a:g}"))
    panel.set_xlim(SHARPNESS[0], SHARPNESS[-1])
    panel.set_xlabel("sharpness α")


def _levels(low: float, high: float, most: int) -> list[float]:
    """Round numbers strictly between `low` and `high`, at most about `most`."""
    from matplotlib.ticker import MaxNLocator

    if not high - low > 1e-9:
        return []
    return [float(x) for x in MaxNLocator(most).tick_values(low, high) if low < x < high]


def _contours(panel: Any, values: Float[np.ndarray, "robustness sharpness"], most: int, colour: str) -> None:
    """Contour lines at round numbers, with the numbers on them."""
    if levels := _levels(float(values.min()), float(values.max()), most):
        lines = panel.contour(SHARPNESS, ROBUSTNESS, values, levels, colors=colour, linewidths=0.8)
        panel.clabel(lines, fontsize=7.5, inline_spacing=4, fmt=lambda x: f"{x:.3g}")


def draw_surfaces(
    surfaces: Mapping[str, Float[np.ndarray, "robustness sharpness"]], axes: Any, fig: Any
) -> None:
    """One heat map a model, in the same colours: light is better.

    Args:
        surfaces: PROBE by the model's name, over `ROBUSTNESS` and `SHARPNESS`.
        axes: a panel for each, and perhaps more, in an array.
        fig: gets the colour bar.
    """
    low = min(float(values.min()) for values in surfaces.values())
    high = max(float(values.max()) for values in surfaces.values())
    image = None
    for panel, (name, values) in zip(axes.flat, surfaces.items(), strict=False):
        image = panel.pcolormesh(
            SHARPNESS, ROBUSTNESS, values, shading="gouraud", cmap="viridis", vmin=low, vmax=high
        )
        image.set_rasterized(True)
        _contours(panel, values, 9, "white")
        panel.grid(visible=False)
        panel.set_title(name)
        _sharpness_axis(panel)
    for panel in axes[:, 0]:
        panel.set_ylabel("robustness β")
    fig.colorbar(image, ax=axes, label="PROBE, realistic ranks", pad=0.02)
    blank_panels(axes, len(surfaces))


def _palette(count: int) -> list[Any]:
    from matplotlib import colormaps

    if count <= len(COLOURS):
        return list(COLOURS)
    return list(colormaps["turbo"](np.linspace(0, 1, count)))


def draw_order(surfaces: Mapping[str, Float[np.ndarray, "robustness sharpness"]], panel: Any) -> None:
    """The model of the highest PROBE at each pair of parameters; the paler, the smaller its lead.

    Args:
        surfaces: PROBE by the model's name, of at least two, over `ROBUSTNESS` and `SHARPNESS`.
        panel: to draw on.
    """
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch

    # Interpolated in the logarithm of the sharpness, as it is drawn, so that borders are lines.
    fine = 20
    values = np.stack([_refined(surface, fine) for surface in surfaces.values()])
    order = np.argsort(-values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    best, lead = order[0], ranked[0] - ranked[1]
    names, colours = list(surfaces), _palette(len(surfaces))
    strongest = lead.max()
    depth = 0.15 + 0.7 * np.sqrt(lead / strongest) if strongest > 0 else np.zeros_like(lead)
    rgb = np.array([to_rgb(colour) for colour in colours])[best]
    image = 1 - depth[..., None] * (1 - rgb)
    x = np.geomspace(SHARPNESS[0], SHARPNESS[-1], values.shape[2])
    y = np.linspace(ROBUSTNESS[0], ROBUSTNESS[-1], values.shape[1])
    panel.pcolormesh(x, y, image, shading="nearest", rasterized=True)
    for winner in np.unique(best)[:-1]:
        # Between neighbours in the list of winners: all borders, each at least once.
        panel.contour(x, y, best <= winner, [0.5], colors="black", linewidths=1.4)
    if levels := _levels(0.0, float(strongest), 6):
        lines = panel.contour(x, y, lead, levels, colors="0.15", linewidths=0.6)
        panel.clabel(lines, fontsize=7.5, inline_spacing=4, fmt=lambda d: f"+{d:.3g}")
    patches = [Patch(color=colours[i], label=f"{names[i]} ahead", alpha=0.8) for i in np.unique(best)]
    panel.legend(handles=patches, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3)
    panel.grid(visible=False)
    _sharpness_axis(panel)
    panel.set(ylabel="robustness β", title="Which model PROBE puts first, and by how much")


def _refined(surface: np.ndarray, times: int) -> np.ndarray:
    """The surface interpolated linearly, `times` as many intervals along both axes."""
    for axis in (0, 1):
        old = np.arange(surface.shape[axis])
        new = np.linspace(0, old[-1], times * old[-1] + 1)
        surface = np.apply_along_axis(lambda line, new=new, old=old: np.interp(new, old, line), axis, surface)
    return surface


def draw_lines(models: Mapping[str, Float[np.ndarray, "2 sharpness"]], panel: Any) -> None:
    """PROBE over sharpness, without popularity: a line a model, a thin one for random ranking.

    Args:
        models: PROBE and its mean under random ranking by the model's name, over `SHARPNESS`.
        panel: to draw on.
    """
    for i, (name, (value, chance)) in enumerate(models.items()):
        colour, style = COLOURS[i % len(COLOURS)], _LINES[i // len(COLOURS) % len(_LINES)]
        panel.plot(SHARPNESS, value, style, color=colour, label=name)
        panel.plot(SHARPNESS, chance, ":", color=colour, lw=0.9)
    panel.plot([], [], ":", color="0.3", lw=0.9, label="random ranking")
    _sharpness_axis(panel)
    panel.set(ylabel="PROBE, realistic ranks", ylim=(0, None), title="PROBE from depth (left) to top (right)")
    panel.legend(fontsize=8)
