"""How a sub-command prints: JSON for programs, a table for people."""

import json
import math
from collections.abc import Sequence
from typing import Any

from owkg.cli.options import Format


def number(value: Any) -> float | None:
    """A plain float, or None where there is no finite number (JSON has no NaN)."""
    value = float(value)
    return value if math.isfinite(value) else None


def whole(value: Any) -> int | None:
    """A plain int, or None where there is no finite number."""
    value = number(value)
    return None if value is None else int(value)


def show(
    title: str, setting: dict[str, Any], results: Sequence[dict[str, Any]], form: Format, **beside: Any
) -> None:
    """Prints one result as a JSON object, several as a list under `results`; or one table of all.

    Args:
        title: of the table.
        setting: what all results share; repeated in each JSON object, said once above the table.
        results: one dictionary a metric, all with the same keys, `metric` first.
        form: JSON or table.
        **beside: what else a JSON object says, once.
    """
    if form is Format.JSON:
        rows = [{"metric": result["metric"]} | setting | result for result in results]
        print(json.dumps((rows[0] if len(rows) == 1 else {"results": rows}) | beside, indent=2))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    table.add_column("")
    for result in results:
        table.add_column(str(result["metric"]), justify="right")
    for key in [key for key in results[0] if key != "metric"]:
        table.add_row(key.replace("_", " "), *(_readable(result[key]) for result in results))
    console = Console(highlight=False)
    console.print(f"[bold]{title}[/bold]")
    shown = (f"{key.replace('_', ' ')} {_readable(value)}" for key, value in setting.items())
    console.print(", ".join(shown), style="dim")
    # Wider than the window rather than with digits cut off.
    wide = Console(width=10_000)
    Console(width=max(console.width, wide.measure(table).maximum)).print(table)


def _readable(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
