"""What the speeds should be, and what they are: goals beside the tables of the last run."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import polars as pl

Tables = Mapping[str, pl.DataFrame]


class Goal(NamedTuple):
    """A goal for one kernel.

    Attributes:
        what: kernel.
        limit: unit of the numbers: seconds, or times something measured in the same run.
        aim: largest number wanted.
        before: the number of commit b9f65d06; None: it was not measured.
        table: table with the number.
        number: number from this table.
    """

    what: str
    limit: str
    aim: float
    before: float | None
    table: str
    number: Callable[[pl.DataFrame], float]


def _cell(start: str, column: str, *, key: str = "what") -> Callable[[pl.DataFrame], float]:
    """Cell of the first row whose name starts so."""
    return lambda table: table.filter(pl.col(key).str.starts_with(start))[column][0]


def _json_over_table(table: pl.DataFrame) -> float:
    own = table.filter(pl.col("what").str.starts_with("owkg metrics"))
    as_json = pl.col("what").str.ends_with("json")
    return own.filter(as_json)["seconds"][0] / own.filter(~as_json)["seconds"][0]


_BITS, _PRODUCTS, _DISTANCES = "times its random bits", "times its products", "times the distances"
GOALS = (
    Goal(
        "Monte Carlo, published grid",
        _BITS,
        2,
        3.9,
        "benchmark_simulation",
        _cell("published grid", "times_random_bits"),
    ),
    Goal(
        "Monte Carlo, one setting",
        _BITS,
        2,
        3.5,
        "benchmark_simulation",
        _cell("one setting, 2", "times_random_bits"),
    ),
    Goal(
        "Monte Carlo, one setting, missing by node",
        _BITS,
        2,
        None,
        "benchmark_simulation",
        _cell("one setting, missing", "times_random_bits"),
    ),
    Goal(
        "a million exact moments",
        "seconds",
        3,
        6.7,
        "benchmark_simulation",
        _cell("exact moments, 1,000,000", "seconds"),
    ),
    Goal(
        "`owkg metrics --format json`, 10^7 ranks",
        "times the table",
        1.3,
        2.8,
        "benchmark_metrics",
        _json_over_table,
    ),
    Goal(
        "bootstrap, 1,000 replicates",
        "times its random numbers",
        1.5,
        2.95,
        "benchmark_metrics",
        _cell("1,000 replicates", "times_limit"),
    ),
    Goal("stability", "times its product", 2, 3.8, "benchmark_judge", _cell("parts: owkg", "times_product")),
    *(
        Goal(
            f"resampled test sets, {name}",
            _BITS,
            3,
            before,
            "benchmark_thinning",
            _cell(name, "times_random_bits"),
        )
        for name, before in (
            ("independent", 6.6),
            ("node", 15.2),
            ("relation", 8.1),
            ("popularity", 6.2),
            ("correlated", 7.6),
            ("independent, coarse", 23.4),
        )
    ),
    Goal(
        "full evaluation, ComplEx",
        _PRODUCTS,
        1.2,
        1.29,
        "evaluation_speed",
        _cell("owkg", "times_the_products"),
    ),
    Goal(
        "full evaluation, TransE",
        _DISTANCES,
        2,
        None,
        "evaluation_models",
        _cell("transe", "times_arithmetic", key="model"),
    ),
    Goal(
        "full evaluation, RotatE",
        _DISTANCES,
        2,
        None,
        "evaluation_models",
        _cell("rotate", "times_arithmetic", key="model"),
    ),
    Goal("`owkg --help`", "seconds", 0.25, 0.20, "benchmark_startup", _cell("owkg --help", "seconds")),
    *(
        Goal(
            f"`owkg {name.partition(',')[0]}`, a small input",
            "seconds",
            0.6,
            before,
            "benchmark_startup",
            _cell(f"owkg {name}", "seconds"),
        )
        for name, before in (("kg info", 0.44), ("metrics, all", 0.95), ("compare", 0.66), ("pool", 0.87))
    ),
    Goal(
        "`owkg theory`",
        "times `import jax`",
        1.3,
        1.34,
        "benchmark_startup",
        _cell("owkg theory", "times_import_jax"),
    ),
)
"""Goals, in the order of the page."""


def goals_table(tables: Tables) -> pl.DataFrame | None:
    """A row for each goal: what, in what unit, aim, before, now, whether reached; None if a table lacks."""
    if any(one.table not in tables for one in GOALS):
        return None
    found = pl.DataFrame(
        {
            "what": [one.what for one in GOALS],
            "unit": [one.limit for one in GOALS],
            "aim": [float(one.aim) for one in GOALS],
            "before": [one.before for one in GOALS],
            "now": [float(one.number(tables[one.table])) for one in GOALS],
        }
    )
    return found.with_columns(
        reached=pl.when(pl.col("now") <= pl.col("aim")).then(pl.lit("yes")).otherwise(pl.lit("no"))
    )


def tables_in(folder: Path) -> dict[str, pl.DataFrame]:
    """Tables of a folder that goals are about."""
    names = {one.table for one in GOALS}
    paths = (folder / f"{name}.csv" for name in sorted(names))
    return {path.stem: pl.read_csv(path, infer_schema_length=None) for path in paths if path.is_file()}
