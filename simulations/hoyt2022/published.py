"""Published chance levels of Hoyt et al. (2022), read if the user has them."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from owkg.kg import fact_splits, known_answers, num_candidates, read_graph
from owkg.metrics import Ties, evaluate, metric, tasks
from simulations.script import data_file

# Keys are the published name and whether it is inverted.
NAMES = {
    ("arithmetic_mean_rank", False): "mr",
    ("arithmetic_mean_rank", True): "imr",
    ("harmonic_mean_rank", False): "hmr",
    ("harmonic_mean_rank", True): "mrr",
    ("geometric_mean_rank", False): "gmr",
    ("geometric_mean_rank", True): "igmr",
    ("hits_at_1", True): "hits@1",
    ("hits_at_10", True): "hits@10",
    ("hits_at_100", True): "hits@100",
}
"""Names of our metrics by published name."""

# The remaining metrics were drawn; for gmr, only the variance was drawn.
CLOSED = ("mr", "mrr", "hits@1", "hits@10", "hits@100")
"""Metrics whose published mean and variance are computed."""

DRAWS = 1000
"""Number of draws behind each published number that was not computed."""

_COLUMNS = {
    "metric": pl.String,
    "inverted": pl.Boolean,
    "candidate": pl.Int64,
    "expectation": pl.Float64,
    "variance": pl.Float64,
}


def published_chance() -> pl.DataFrame | None:
    """The table `$OWKG_DATA/ranking_metrics/candidates.tsv`; None if OWKG_DATA is not set.

    Returns:
        A row for each metric and number of candidates N, with the mean and the variance of the metric of N
        random ranks among N candidates: `metric`, `candidates`, `expectation`, `variance`.

    Raises:
        ValueError: if OWKG_DATA is set and the file is not there or is not such a table.
    """
    path = data_file("ranking_metrics", "candidates.tsv")
    if path is None:
        return None
    try:
        table = pl.read_csv(path, separator="\t", schema_overrides=_COLUMNS, glob=False)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path}: {error}") from error
    if missing := sorted(set(_COLUMNS) - set(table.columns)):
        raise ValueError(f"{path}: must have the column {', '.join(missing)}.")
    if table.is_empty():
        raise ValueError(f"{path}: must have at least one row, got none.")
    numbers = pl.col("expectation").is_finite() & pl.col("variance").is_finite() & (pl.col("variance") >= 0)
    known = [f"{name} {inverted}".lower() for name, inverted in NAMES]
    named = pl.concat_str("metric", pl.lit(" "), pl.col("inverted").cast(pl.String)).is_in(known)
    good = numbers & named & (pl.col("candidate") >= 1)
    bad = table.with_row_index("line", offset=2).filter(~good.fill_null(False))
    if not bad.is_empty():
        raise ValueError(f"{path}, line {bad['line'][0]}: not a chance level: {bad.drop('line').row(0)}.")
    names = [NAMES[key] for key in zip(table["metric"], table["inverted"], strict=True)]
    return table.select(
        pl.Series("metric", names), "expectation", "variance", candidates=pl.col("candidate")
    ).unique(["metric", "candidates"], keep="first", maintain_order=True)


def chance_levels(names: Any, candidates: Any) -> pl.DataFrame:
    """Mean and variance of each metric of N random ranks among N candidates.

    Args:
        names: names of metrics.
        candidates: numbers of candidates N.

    Returns:
        A row for each pair of metric and N: `metric`, `candidates`, `expectation`, `variance`.
    """
    chosen = [metric(name) for name in names]
    rows = []
    for count in candidates:
        ranks = tasks(np.ones(count, np.int64), candidates=count)
        found = evaluate(ranks, chosen, ties=[Ties.EXACT], level=None)[Ties.EXACT]
        rows += [(name, int(count), e.expectation, e.variance) for name, e in found.items()]
    columns = ["metric", "candidates", "expectation", "variance"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def task_candidates(folder: Path) -> np.ndarray:
    """Candidates of each filtered task of a data set, as PyKEEN ranked them: heads, then tails.

    PyKEEN drops the triples with an entity or a relation that train lacks, and ranks the training triples.
    """
    facts = fact_splits(read_graph(folder))
    train = facts["train"]
    entities, relations = np.unique(train[:, [0, 2]]), np.unique(train[:, 1])
    seen = {
        name: triples[np.isin(triples[:, [0, 2]], entities).all(axis=1) & np.isin(triples[:, 1], relations)]
        for name, triples in facts.items()
    }
    known = np.concatenate(list(seen.values()))
    size = max(int(triples.max(initial=0)) + 1 for triples in facts.values())
    counts = [
        num_candidates(known_answers(known, side, num_entities=size, num_relations=size), seen["test"])
        for side in ("head", "tail")
    ]
    return np.concatenate(counts) - (size - len(entities))
