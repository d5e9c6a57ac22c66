"""Output of `owkg evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from owkg.cli.options import Format
from owkg.cli.output import show

_METRICS = ("mrr", "hits@10", "mr")


def filtered_by(names: Sequence[str]) -> str:
    """The splits that filtered, in words."""
    return f"filtered by {', '.join(names)}" if names else "not filtered"


def filter_note(table: Any, split: str | None, names: Sequence[str]) -> list[str]:
    """A note if splits filter, but the answers that are ranked do not leave each other's candidates."""
    if not names or table["filtered"].all():
        return []
    what = "some answers that are ranked are" if split is None else f"{split} is"
    return [
        f"{what} not among what filters ({', '.join(names)}): the other answers of a query stay candidates"
    ]


def unseen_note(unseen: dict[str, Any], split: str | None) -> list[str]:
    """A note on what the model has never seen."""
    if not unseen:
        return []
    done = {"drop": "dropped", "last": "ranked last"}[unseen["policy"]]
    return [
        f"the model has never seen {unseen['entities']:,} entities and {unseen['relations']:,} relations of "
        f"the graph: {unseen['triples']:,} triples of {split or 'the split'} with one of them are {done}; "
        f"candidates are the {unseen['candidates']:,} entities that it has seen"
    ]


def values_by_side(table: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """For each metric, its value on each side of a rank table, and on both."""
    from owkg import metrics

    tasks, rows = metrics.tasks_of(table)
    side = rows["side"].to_numpy()
    parts = {one: metrics.part_of(tasks, side == one) for one in dict.fromkeys(side.tolist())}
    if len(parts) > 1:
        parts["both"] = tasks
    realistic = metrics.Ties.REALISTIC
    chosen = [metrics.metric(name) for name in names]
    values = {
        which: metrics.evaluate(part, chosen, ties=[realistic], level=None)[realistic]
        for which, part in parts.items()
    }
    return [
        {"metric": name} | {which: value[name].value for which, value in values.items()} for name in names
    ]


def show_ranks(
    source: Path, table: Any, out: Path, about: dict[str, Any], notes: list[str], form: Format
) -> None:
    """Prints a few metrics of a rank table, by side, and how it was made."""
    results = values_by_side(table, _METRICS)
    setting: dict[str, Any] = {"split": about["split"], "ranks": table.height}
    if form is Format.JSON:
        setting |= {"filtered": bool(table["filtered"].all()), "filter": about["filter"], "out": str(out)}
    else:
        setting |= {"filtered by": ", ".join(about["filter"]) or "nothing"}
    show(
        f"{source}",
        setting,
        results,
        form,
        **{k: about[k] for k in ("queries", "unseen") if k in about},
        notes=notes,
    )
