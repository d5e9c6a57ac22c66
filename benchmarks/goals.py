"""Goals of the speeds, with the numbers of an earlier commit and of the last run.

The earlier numbers are in docs/reproduction/goals.json. This command writes them, from the tables that the
benchmarks wrote at an earlier commit on the same machine:

    python benchmarks/goals.py --out folder --commit abc1234
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import polars as pl
import typer

from benchmarks.timing import machine
from owkg.files.storage import written_aside
from simulations.script import run_script

EARLIER = Path(__file__).parents[1] / "docs" / "reproduction" / "goals.json"
"""Numbers at an earlier commit."""


class Goal(NamedTuple):
    """A goal for one kernel.

    Attributes:
        what: kernel.
        unit: unit of the numbers: seconds, or times something measured in the same run.
        aim: largest number wanted.
        table: table with the number.
        column: column of the table with the number.
        row: beginning of the name of its row.
        over: beginning of the name of a row by whose number it is divided, or "".
    """

    what: str
    unit: str
    aim: float
    table: str
    column: str
    row: str
    over: str = ""

    def number(self, table: pl.DataFrame) -> float | None:
        """The number of a table; None if the table does not have it."""
        names = table[:, 0]
        found = [
            table.filter(names.str.contains(f"^(?:{row})"))[self.column].to_list()[:1]
            for row in (self.row, self.over)
            if row and self.column in table.columns
        ]
        if not found or not all(found):
            return None
        return float(found[0][0] / found[1][0] if self.over else found[0][0])

    def seconds(self, table: pl.DataFrame) -> float | None:
        """Seconds of the same row."""
        return self._replace(column="seconds", over="").number(table)


_BITS, _DISTANCES, _JAX = "times its random bits", "times the distances", "times `import jax`"
_SIMULATION, _THINNING = (
    ("benchmark_simulation", "times_random_bits"),
    ("benchmark_thinning", "times_random_bits"),
)
_MODELS, _START = ("evaluation_models", "times_arithmetic"), ("benchmark_startup", "seconds")
_METRICS = "benchmark_metrics"
GOALS = (
    Goal("Monte Carlo, published grid", _BITS, 2, *_SIMULATION, "published grid"),
    Goal("Monte Carlo, one setting", _BITS, 2, *_SIMULATION, "one setting, 2"),
    Goal("Monte Carlo, one setting, missing by node", _BITS, 2, *_SIMULATION, "one setting, missing"),
    Goal(
        "a million exact moments", "seconds", 3, "benchmark_simulation", "seconds", "exact moments, 1,000,000"
    ),
    Goal(
        "`owkg metrics --format json`, 10^7 ranks",
        *("times the table", 1.3, _METRICS, "seconds"),
        *("owkg metrics, .*json$", "owkg metrics, .*ranks$"),
    ),
    Goal("bootstrap", "times its random numbers", 1.5, _METRICS, "times_limit", "1,000 replicates"),
    Goal("stability", "times its product", 2, "benchmark_judge", "times_product", "parts: owkg"),
    *(
        Goal(f"resampled test sets, {name}", _BITS, 3, *_THINNING, f"{name}$")
        for name in (
            *("independent", "node", "relation", "popularity", "correlated with a model"),
            "independent, coarse scores",
        )
    ),
    Goal("evaluation, ComplEx", "times its products", 1.2, "evaluation_speed", "times_the_products", "owkg"),
    Goal("evaluation, TransE", _DISTANCES, 2, *_MODELS, "transe"),
    Goal("evaluation, RotatE", _DISTANCES, 2, *_MODELS, "rotate"),
    *(
        Goal(f"`{name}`", "seconds", aim, *_START, name)
        for name, aim in (
            *(("owkg --help", 0.25), ("owkg metrics --help", 0.25), ("owkg kg info", 0.6)),
            *(("owkg metrics, all of them", 0.6), ("owkg compare", 0.6), ("owkg pool", 0.6)),
        )
    ),
    *(
        Goal(f"`{name}`", _JAX, 1.3, "benchmark_startup", "times_import_jax", name)
        for name in ("owkg theory", "owkg power", "owkg simulate")
    ),
)
"""Goals, in the order of the page."""


def numbers_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Number and seconds of each goal in the tables of a folder, by what; without goals that they lack."""
    paths = {one.table: folder / f"{one.table}.csv" for one in GOALS}
    tables = {
        name: pl.read_csv(path, infer_schema_length=None) for name, path in paths.items() if path.is_file()
    }
    return {
        one.what: {"number": number, "seconds": one.seconds(tables[one.table])}
        for one in GOALS
        if one.table in tables and (number := one.number(tables[one.table])) is not None
    }


def import_jax_s(folder: Path) -> float:
    """Seconds of `import jax` in the tables of a folder, by which machines can be compared."""
    return pl.read_csv(folder / "benchmark_startup.csv").filter(what="import jax")["seconds"].item()


def goals_table(folder: Path, earlier: Mapping[str, Mapping[str, float]]) -> pl.DataFrame | None:
    """A row for each goal: unit, aim, before, now, whether it is reached, seconds; None if a number lacks."""
    now = numbers_of(folder)
    if len(now) < len(GOALS):
        return None
    rows = [
        {
            "what": one.what,
            "unit": one.unit,
            "aim": float(one.aim),
            "before": earlier.get(one.what, {}).get("number"),
            "now": (number := now[one.what]["number"]),
            "reached": "yes" if number <= one.aim else "no",
            "before_s": earlier.get(one.what, {}).get("seconds"),
            "now_s": now[one.what]["seconds"],
        }
        for one in GOALS
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def main(
    out: Annotated[Path, typer.Option(help="Folder with the tables of the benchmarks.")],
    commit: Annotated[str, typer.Option(help="Commit at which they were measured.")],
) -> None:
    """Replaces docs/reproduction/goals.json by the numbers in the tables of a folder."""
    numbers = numbers_of(out)
    if not numbers:
        raise ValueError(f"{out}: has no table of a goal.")
    record = {
        "commit": commit,
        "measured": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": machine(),
        "import_jax_s": import_jax_s(out),
        "numbers": numbers,
    }
    with written_aside(EARLIER) as aside:
        aside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {EARLIER}")


if __name__ == "__main__":
    run_script(main)
