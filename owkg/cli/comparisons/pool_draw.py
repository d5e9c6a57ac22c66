"""Plans, further units and further systems of `owkg pool`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli.inputs import noted_line
from owkg.cli.options import Format, split_list
from owkg.cli.output import Table, show

if TYPE_CHECKING:
    from owkg.kg.read import Reading

_HOURS = "hours assume 45 s for a new entity and 25 s for each fact; judging only one system takes less"
_DRAW = ("metric", "draw", "width", "difference", "judgements", "hours")


def widths_of(text: str | None) -> dict[str, float] | None:
    """Target widths of rr=0.1,p@10=0.05; None if none are given."""
    if text is None:
        return None
    found: dict[str, float] = {}
    for one in split_list(text):
        name, _, value = (part.strip() for part in one.rpartition("="))
        try:
            width = float(value)
        except ValueError:
            width = 0.0
        if not name or not 0 < width < float("inf"):
            raise ValueError(f"`width` must be METRIC=W with W above 0, such as rr=0.1, got {one.strip()!r}.")
        if name in found:
            raise ValueError(f"`width` must name each metric once, got {name} again.")
        found[name] = width
    if not found:
        raise ValueError(f"`width` must be METRIC=W, such as rr=0.1, got {text!r}.")
    return found


def show_plan(
    systems: Any,
    kg: Path | None,
    settings: dict[str, Any],
    words: dict[str, Any],
    metrics: Sequence[str],
    widths: Mapping[str, float] | None,
    form: Format,
) -> None:
    """Prints the widths that each design gives, and how many units the target widths need."""
    from owkg.pools.folder import planned

    found = planned(systems, kg, settings, metrics, widths, reading=words["reading"], tables=words["tables"])
    title = "expected widths of 95% intervals, of systems and of differences (medians)"
    tables = [Table(title, list(_DRAW), [_cells(row) for row in found.widths.to_dicts()])]
    lines = [_HOURS]
    if found.wishes is not None:
        rows = found.wishes.to_dicts()
        heads = [_DRAW[0], "target", *_DRAW[1:]]
        cells = [[row["metric"], f"{row['wish']:g}", *_cells(row)[1:]] for row in rows]
        tables.append(Table("fewest units for the target width of a system", heads, cells))
        lines += [_not_enough(row) for row in rows if row["count"] is None]
    wishes = None if found.wishes is None else found.wishes.to_dicts()
    payload = {"plan": found.widths.to_dicts(), "wishes": wishes, "notes": found.notes}
    show(form, payload, tables, lines)
    for text in found.notes if form is Format.TABLE else ():
        noted_line(text)


def show_further(
    folder: Path,
    judged: Sequence[Path] | None,
    metrics: Sequence[str],
    widths: Mapping[str, float] | None,
    form: Format,
) -> None:
    """Prints how many units of a drawn pool to judge in all, planned from the units judged so far."""
    from owkg.pools.front import plan_further

    found = plan_further(folder, judged or None, metrics or None, widths=widths)
    rows = found.to_dicts()
    wish = [] if widths is None else ["target"]
    heads = ["metric", *wish, "in all", "more", *_DRAW[2:]]
    cells = []
    for row in rows:
        first, draw, *rest = _cells(row)
        wished = [] if widths is None else [f"{row['wish']:g}"]
        cells.append([first, *wished, draw, "" if row["more"] is None else f"{row['more']:,}", *rest])
    lines = [_HOURS, *(_not_enough(row) for row in rows if row["count"] is None)]
    more = max((row["more"] or 0 for row in rows), default=0) if widths is not None else 0
    command = f"owkg pool --pool {folder} --more {more}" if more else None
    if command is not None:
        lines.append(f"draw them: {command}")
    elif widths is not None and not any(row["count"] is None for row in rows):
        lines.append("no further units are needed: judge the units that are drawn")
    title = "expected widths of 95% intervals, from the units judged so far (medians)"
    show(form, {"plan": rows, "command": command}, [Table(title, heads, cells)], lines)


def _cells(row: dict[str, Any]) -> list[str]:
    """Cells of a row of a plan: metric, draw, widths, judgements and hours."""
    count = "no number" if row["count"] is None else f"{row['unit']}:{row['count']}"
    widths = ["" if row[name] is None else f"{row[name]:.3f}" for name in ("width", "width_pair")]
    rest = ["", ""] if row["count"] is None else [f"{row['judgements']:,}", f"{row['hours']:,.0f}"]
    return [row["metric"], count, *widths, *rest]


def _not_enough(row: dict[str, Any]) -> str:
    return (
        f"{row['metric']}: no number of {row['unit']} is enough for a width of {row['wish']:g}; judging all "
        f"of them gives {row['width']:.3f}"
    )


def draw_further(folder: Path, count: int, words: dict[str, Any], form: Format) -> None:
    """Draws further units of a pool and prints the path of their sheet."""
    from owkg.pools.drawn import draw_more

    sheet, candidates, drawn = draw_more(folder, count, **words)
    unit, counts = drawn.drawing.unit, drawn.drawing.counts
    told = f"wrote {sheet}: {candidates:,} candidates to judge; {counts.sum():,} {unit} are drawn now"
    show(form, {"sheet": sheet, "to_judge": candidates, "drawn": int(counts.sum())}, lines=[told])


def add_systems(
    folder: Path, systems: Any, kg: Path | None, reading: "Reading", words: dict[str, Any], form: Format
) -> None:
    """Adds systems to a drawn pool and prints the path of the sheet that they need."""
    from owkg.pools.adding import add_systems as added

    found = added(folder, systems, kg, reading=reading, words=words)
    names = ", ".join(found.systems)
    told = f"added {names} to {folder}: nothing further must be judged"
    if found.sheet is not None:
        one = len(found.systems) == 1
        told = (
            f"added {names} to {folder}; wrote {found.sheet}: {found.to_judge:,} candidates that only "
            f"{'it lists' if one else 'they list'}, to judge before the next estimate"
        )
    payload = {"systems": found.systems, "sheet": found.sheet, "to_judge": found.to_judge}
    show(form, payload, lines=[told])
