"""Figure of one family. This module may import both families and the figure style."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from family_tree.layout import Family, layout
from family_tree.people import People
from owkg.plots.figure import COLOURS, figure, save_figure

if TYPE_CHECKING:
    import matplotlib.axes

# Inches of one person along a row, of a row, of a letter of the title, and of the legend next to the title.
_PERSON, _ROW, _LETTER, _LEGEND = 0.44, 1.0, 0.09, 1.8
# White outline of lines, so that at a crossing the later line passes over the earlier one.
_CASING = {"color": "white", "linewidth": 5.0, "solid_capstyle": "butt"}
_LINE = {"color": "#555555", "linewidth": 0.9, "solid_capstyle": "round"}
_GENDERS = ((True, "female", "o", COLOURS[1]), (False, "male", "s", COLOURS[0]))


def draw_family(people: People, path: Path, *, title: str) -> None:
    """Draws one family: circles are women, squares are men, and lines run down to their children.

    Raises:
        ValueError: if the people are more than one family, or too many.
    """
    places = layout(people)
    names = _short(people.labels.to_list())
    width = max(_PERSON * (np.ptp(places.x) + 2), _LETTER * len(title) + _LEGEND)
    with figure(1, 1, (width, _ROW * (np.ptp(places.row) + 1) + 0.4)) as (fig, axes):
        # The widest family first, so that short lines pass over long ones.
        for family in sorted(places.families, key=lambda one: -np.ptp(places.x[list(one.children)])):
            _draw_lines(axes, family, places.x, places.row)
        for female, label, marker, colour in _GENDERS:
            who = people.female == female
            axes.scatter(places.x[who], places.row[who], s=70, c=colour, marker=marker, label=label, zorder=3)
        text = {"size": 6, "ha": "center", "va": "top", "textcoords": "offset points", "zorder": 4}
        for name, *place in zip(names, places.x, places.row, strict=True):
            axes.annotate(name, place, (0, -6), **text)
        axes.set(xlim=(places.x.min() - 1, places.x.max() + 1), ylim=(places.row.max() + 0.4, -0.3))
        axes.set_title(title, loc="left")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderaxespad=0.2, handletextpad=0.2)
        axes.axis("off")
        save_figure(fig, path)


def _draw_lines(axes: "matplotlib.axes.Axes", family: Family, x: np.ndarray, row: np.ndarray) -> None:
    children, parents = list(family.children), list(family.parents)
    ends = [*(at for at, _ in family.drops), *x[children]]
    lines: list[tuple[Any, Any]] = [([min(ends), max(ends)], [family.bar] * 2)]
    lines += [([at] * 2, [top, family.bar]) for at, top in family.drops]
    lines += [([x[child]] * 2, [family.bar, row[child]]) for child in children]
    if len(family.drops) < len(parents):
        lines.append((x[parents], row[parents]))
    for style in (_CASING, _LINE):
        for line in lines:
            axes.plot(*line, **style)


def _short(labels: list[str]) -> list[str]:
    """Labels without the part up to the last underscore, if this part is the same in all."""
    before = {label.rpartition("_")[0] for label in labels}
    return [label.rpartition("_")[2] for label in labels] if len(before) == 1 else labels
