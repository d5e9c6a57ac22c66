"""What `owkg pool --read` says of the systems whose answers are judged."""

from pathlib import Path
from typing import Any

import polars as pl

from owkg.cli.tables import printed
from owkg.judge.bias import pool_bias
from owkg.judge.qrels import read_judgements
from owkg.judge.runs import read_runs
from owkg.provenance import checksum, read_metadata

_READ = ("pool.qrels", "pool.tsv", "runs.trec.gz")
_SHOWN = ("judged", "pooled", "unique_relevant", "map", "map_without", "bpref", "bpref_without")


def bias_of(folder: Path, qrels: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of `owkg.judge.pool_bias`.

    None where there is one system, where nothing is relevant, or where the files of the pool are no longer
    those that were written.

    Args:
        folder: that `owkg pool` wrote.
        qrels: its judgements with those of annotators.
    """
    card = read_metadata(folder)
    if len(card["systems"]) < 2 or not (qrels["grade"] > 0).any():
        return []
    if any(_changed(folder / name, card) for name in _READ):
        return []
    settings = card["settings"]
    given = read_judgements(folder / "pool.qrels")
    # What was judged before stays judged whoever is pooled, unless a rule did it, or truth stood for people.
    pool = pl.read_csv(folder / "pool.tsv", separator="\t", infer_schema=False, glob=False)
    kept = given.join(pool.filter(judged_by="rule"), on=["question", "answer"], how="anti")
    run = read_runs([folder / "runs.trec.gz"])
    return pool_bias(
        run, qrels, settings["depth"], kept=None if settings["closed_world"] else kept
    ).to_dicts()


def show_bias(rows: list[dict[str, Any]]) -> None:
    """Prints them, numbers to four digits."""
    if rows:
        cells = ([row["model"], *(_cell(row[name]) for name in _SHOWN)] for row in rows)
        title = "the pooled lists by all judgements, and without those that the system alone brought"
        printed(title, ["system", *_SHOWN], cells)


def _changed(path: Path, card: dict[str, Any]) -> bool:
    return not path.is_file() or checksum(path) != card["sha256"].get(path.name)


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
