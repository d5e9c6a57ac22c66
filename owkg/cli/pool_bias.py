"""What `owkg pool --read` says of the systems whose answers are judged."""

from pathlib import Path
from typing import Any

import polars as pl

from owkg.cli.tables import printed
from owkg.judge.bias import pool_bias
from owkg.judge.qrels import read_judgements
from owkg.judge.runs import read_runs
from owkg.metrics import POOLED
from owkg.provenance import read_metadata

_SHOWN = ("judged", "pooled", "unique_relevant", "map", "map_without", "bpref", "bpref_without")


def bias_of(folder: Path, qrels: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of `owkg.judge.pool_bias`; none where there is one system, or nothing is relevant.

    Args:
        folder: that `owkg pool` wrote.
        qrels: its judgements with those of annotators.
    """
    card = read_metadata(folder)
    if len(card["systems"]) < 2 or not (qrels["grade"] > 0).any():
        return []
    settings = card["settings"]
    given = read_judgements(folder / "pool.qrels").filter(pl.col("grade") != POOLED)
    # What was judged before stays judged whoever is pooled, unless a rule did it, or truth stood for people.
    by_rule = pl.read_csv(folder / "pool.tsv", separator="\t", infer_schema=False).filter(
        pl.col("rule").is_not_null() & (pl.col("grade") == "0")
    )
    kept = given.join(by_rule, on=["question", "answer"], how="anti")
    run = read_runs([folder / "runs.trec.gz"])
    return pool_bias(
        run, qrels, settings["depth"], kept=None if settings["closed_world"] else kept
    ).to_dicts()


def show_bias(rows: list[dict[str, Any]]) -> None:
    """Prints them, numbers to four digits."""
    if rows:
        cells = ([row["model"], *(_cell(row[name]) for name in _SHOWN)] for row in rows)
        printed(
            "by all judgements, and without those that a system alone brought", ["system", *_SHOWN], cells
        )


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
