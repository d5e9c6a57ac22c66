"""Curves of the sparse metric against the full one: by density, test set and metric."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from owkg.plots.figure import COLOURS, blank_panels, figure, panel_grid, save_figure
from simulations.open_world.curves import FULL, Curves, nearest_published
from simulations.yang2022.selection import checked_curves, metric_index, selected

_STYLES: tuple[Any, ...] = (
    "-",
    "--",
    "-.",
    ":",
    (0, (5, 1)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (1, 1)),
    (0, (8, 3)),
)
# Number of points of a panel above which a PDF stores its lines as a bitmap.
_MANY = 4000
# Largest size of a PNG, its dots per inch, and the fewest dots per inch to which it is reduced.
_MOST_BYTES, _DPI, _LEAST_DPI = 300_000, 160.0, 72.0
_BAND = "95 % of resampled test sets"
_THEORY = "theory"
_OTHERS = "other models"
_HIGHLIGHTED = 3
# Default metrics of a figure by metric, if the curves have them.
_SHOWN = ("mrr", "hits@10", "p-mrr@1/4", "probe@0")


class Look(NamedTuple):
    """Style of a configuration's line; a configuration that is not highlighted is grey and not named."""

    colour: str
    style: Any
    highlighted: bool = True


class Layer(NamedTuple):
    """Layer behind the curves of one panel.

    Attributes:
        band: lower and upper ends of the sparse metric for each checkpoint.
        theory: full and sparse values of a curve.
    """

    band: Float[np.ndarray, "2 checkpoints"] | None = None
    theory: Float[np.ndarray, "2 points"] | None = None


def highlighted(curves: Curves, metric: str) -> tuple[str, ...]:
    """Up to three labels to highlight: the best, the middle and the worst configuration at the end.

    Args:
        curves: curves of one density.
        metric: one of `curves.metrics`, on the full test.
    """
    full = curves.values[FULL][metric_index(curves, metric)].mean(axis=1, dtype=np.float64)
    last = {}
    for config in np.unique(curves.config):
        own = np.flatnonzero(curves.config == config)
        last[curves.labels[config]] = full[own[curves.step[own].argmax()]]
    order = sorted(last, key=lambda label: -last[label])
    if len(order) <= _HIGHLIGHTED:
        return tuple(label for label in curves.labels if label in last)
    return order[0], order[len(order) // 2], order[-1]


def looks(curves: Sequence[Curves], only: Collection[str] | None = None) -> dict[str, Look]:
    """Line styles by label, the same in every panel: a colour for each model, a dash for each configuration.

    Args:
        curves: curves of each density.
        only: labels to highlight; other configurations are grey. Default: all.

    Raises:
        ValueError: if one label is used for two models.
    """
    models: dict[str, str] = {}
    for of_density in curves:
        for label, model in zip(of_density.labels, of_density.models, strict=True):
            if models.setdefault(label, model) != model:
                raise ValueError(
                    f"`curves` must have one model a label, got {models[label]} and {model} for {label}."
                )
    shown = {label: model for label, model in models.items() if only is None or label in only}
    names = list(dict.fromkeys(shown.values()))
    seen = dict.fromkeys(names, 0)
    found = {}
    for label, model in models.items():
        if label not in shown:
            found[label] = Look("0.75", "-", False)
            continue
        found[label] = Look(COLOURS[names.index(model) % len(COLOURS)], _STYLES[seen[model] % len(_STYLES)])
        seen[model] += 1
    return found


def draw_curves(
    curves: Curves,
    panel: Any,
    by_label: Mapping[str, Look],
    *,
    metric: str,
    test_set: str = "sparse",
    layer: Layer | None = None,
) -> None:
    """Draws a line for each configuration, along its training, and the diagonal where both tests agree.

    Args:
        curves: curves of one density.
        panel: axes to draw on.
        by_label: styles from `looks`.
        metric: one of `curves.metrics`.
        test_set: one of `curves.values` except the full one.
        layer: layer behind the curves.
    """
    full, sparse = (values.mean(axis=1, dtype=np.float64) for values in selected(curves, metric, test_set))
    layer = layer or Layer()
    corner = float(min(full.min(), sparse.min()))
    panel.axline((corner, corner), slope=1, color="0.6", lw=0.8, label="sparse = full")
    many = len(full) > _MANY
    # Highlighted configurations come first in the legend, and are drawn on top.
    order = sorted(range(len(curves.labels)), key=lambda i: not by_label[curves.labels[i]].highlighted)
    for config in order:
        label = curves.labels[config]
        own = np.flatnonzero(curves.config == config)
        if not len(own):
            continue
        own, look = own[np.argsort(curves.step[own], kind="stable")], by_label[label]
        if layer.band is not None and look.highlighted:
            rising = own[np.argsort(full[own], kind="stable")]
            lower, upper = layer.band[:, rising]
            panel.fill_between(
                full[rising], lower, upper, color=look.colour, alpha=0.12, lw=0, rasterized=many
            )
        panel.plot(
            full[own],
            sparse[own],
            ls=look.style,
            color=look.colour,
            lw=1.4 if look.highlighted else 0.8,
            zorder=2 if look.highlighted else 1.5,
            label=label if look.highlighted else _OTHERS,
            rasterized=many,
        )
    if layer.theory is not None:
        panel.plot(*layer.theory, color="0.15", lw=1.4, ls=(0, (4, 2)), label=_THEORY)
    panel.margins(0.03)
    name = shown_name(curves, metric)
    panel.set(xlabel=f"{name}, full test", ylabel=f"{name}, {test_set} test")


def shown_name(curves: Curves, metric: str) -> str:
    """Name of a metric as the paper writes it: MRR, log-MRR, Hits@10."""
    name = curves.metrics[metric_index(curves, metric)]
    return name.replace("mrr", "MRR").replace("hits", "Hits").replace("probe", "PROBE")


def _legend(fig: Any, axes: Sequence[Any]) -> None:
    """Adds one legend for all panels, outside of them."""
    entries: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    last = [name for name in (_THEORY, "sparse = full") if name in entries]
    order = [name for name in entries if name not in last] + last
    if any(len(panel.collections) for panel in axes):
        from matplotlib.patches import Patch

        entries[_BAND] = Patch(color="0.5", alpha=0.25, lw=0)
        order.append(_BAND)
    fig.legend([entries[name] for name in order], order, loc="outside right center", fontsize=8)


class _Panel(NamedTuple):
    curves: Curves
    metric: str
    test_set: str
    title: str
    layer: Layer | None = None


def _figure(panels: Sequence[_Panel], stem: Path, *, shared: bool, unit: bool = False) -> list[Path]:
    """Draws and writes the panels, with limits of their own, shared limits, or 0 to 1 on all axes."""
    rows, columns = panel_grid(len(panels))
    only = highlighted(nearest_published(panel.curves for panel in panels), panels[0].metric)
    by_label = looks([panel.curves for panel in panels], only)
    size = (3.5 * columns + 1.9, 3.2 * rows)
    with figure(rows, columns, size, squeeze=False, sharex=shared, sharey=shared) as (fig, axes):
        for at, each in zip(axes.flat, panels, strict=False):
            draw_curves(
                each.curves, at, by_label, metric=each.metric, test_set=each.test_set, layer=each.layer
            )
            at.set_title(each.title)
        for at, each in zip(axes.flat, panels, strict=False):
            if min(float(values.min()) for values in selected(each.curves, each.metric, each.test_set)) >= 0:
                at.set_xlim(left=0)
                at.set_ylim(bottom=0)
            if unit:
                at.set(xlim=(0, 1), ylim=(0, 1), xlabel="full test", ylabel=f"{each.test_set} test")
            if shared and rows * columns == len(panels):
                at.label_outer()
        used = list(axes.flat)[: len(panels)]
        blank_panels(axes, len(panels))
        _legend(fig, used)
        return _written(fig, stem)


def _written(fig: Any, stem: Path) -> list[Path]:
    """Writes the files of a figure, with a coarser PNG if many panels would make it large."""
    paths = save_figure(fig, stem)
    dpi = _DPI
    while (size := paths[0].stat().st_size) > _MOST_BYTES and dpi > _LEAST_DPI:
        # Bytes grow more slowly than pixels, so that the exponent is a little above 1/2.
        dpi = max(_LEAST_DPI, 0.9 * dpi * (_MOST_BYTES / size) ** 0.6)
        save_figure(fig, paths[0], dpi=dpi)
    return paths


def density_figure(
    curves: Sequence[Curves],
    stem: Path,
    *,
    metric: str = "mrr",
    test_set: str = "sparse",
    layers: Sequence[Layer] | None = None,
) -> list[Path]:
    """Draws sparse against full, a panel for each density, densest first: Figure 3 of Yang et al. (2022).

    Args:
        curves: curves of each density.
        stem: path of the files without their ending.
        metric: one of the metrics of all `curves`.
        test_set: one of the test sets of all `curves`, except the full one.
        layers: layer behind the curves of each density.

    Returns:
        The written paths: .png, .svg and .pdf.

    Raises:
        ValueError: if a name is unknown, arrays of the curves do not fit together, or a layer does not fit.
        OSError: if the files cannot be written.
    """
    _checked_all(curves, [metric], [test_set])
    layers = [Layer()] * len(curves) if layers is None else layers
    if len(layers) != len(curves):
        raise ValueError(f"`layers` must be one for each of {len(curves)} `curves`, got {len(layers)}.")
    for of_density, layer in zip(curves, layers, strict=True):
        if layer.band is not None and layer.band.shape != (2, len(of_density.config)):
            raise ValueError(
                f"`layers` must have bands of the shape (2, {len(of_density.config)}), two ends for each "
                f"checkpoint, got {layer.band.shape}."
            )
    order = sorted(range(len(curves)), key=lambda i: -curves[i].density)
    panels = [_Panel(curves[i], metric, test_set, f"density {curves[i].density:g}", layers[i]) for i in order]
    return _figure(panels, stem, shared=True)


def correlation_figure(
    curves: Curves, stem: Path, *, metric: str = "mrr", test_sets: Sequence[str] = ("sparse", "correlated")
) -> list[Path]:
    """Draws test sets against the full one, side by side, at one density: Figure 5a of Yang et al. (2022).

    Args:
        curves: curves of one density.
        stem: path of the files without their ending.
        metric: one of `curves.metrics`.
        test_sets: some of `curves.values` except the full one; the title of "sparse" is independent.

    Returns, Raises: as `density_figure`.
    """
    _checked_all([curves], [metric], test_sets)
    titles = {"sparse": "independently missing facts", "correlated": "missing facts correlated with a model"}
    panels = [_Panel(curves, metric, name, titles.get(name, name)) for name in test_sets]
    return _figure(panels, stem, shared=True)


def metric_figure(
    curves: Curves, stem: Path, *, metrics: Sequence[str] | None = None, test_set: str = "sparse"
) -> list[Path]:
    """Draws sparse against full, a panel for each metric, at one density: Figure 5b of Yang et al. (2022).

    All axes go from 0 to 1 if the values do.

    Args:
        curves: curves of one density.
        stem: path of the files without their ending.
        metrics: some of `curves.metrics`. Default: MRR, Hits@10, p-MRR at 1/4 and PROBE of sharpness 0, or
            all metrics if the curves lack one of them.
        test_set: one of `curves.values` except the full one.

    Returns, Raises: as `density_figure`.
    """
    if metrics is None:
        metrics = _SHOWN if {*_SHOWN} <= {*curves.metrics} else curves.metrics
    _checked_all([curves], metrics, [test_set])
    panels = [_Panel(curves, metric, test_set, shown_name(curves, metric)) for metric in metrics]
    chosen = (selected(curves, metric, test_set) for metric in metrics)
    unit = all(values.min() >= 0 and values.max() <= 1 + 1e-6 for pair in chosen for values in pair)
    return _figure(panels, stem, shared=unit, unit=unit)


def _checked_all(curves: Sequence[Curves], metrics: Sequence[str], test_sets: Sequence[str]) -> None:
    for name, given in (("curves", curves), ("metrics", metrics), ("test_sets", test_sets)):
        if not len(given):
            raise ValueError(f"`{name}` must have at least one entry, got none.")
    for of_density in curves:
        checked_curves(of_density)
        for metric in metrics:
            for test_set in test_sets:
                selected(of_density, metric, test_set)
