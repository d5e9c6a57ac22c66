"""Sentences about intervals that may be too narrow, because few queries carry most of the weight."""

import polars as pl

from owkg.stats.interval import FEW_QUERIES, HEAVY_QUERY, HEAVY_SHARE

IS_FEW = pl.col("effective_queries") < FEW_QUERIES
"""Whether a number rests on few effective queries."""
IS_HEAVY = pl.col("heaviest_query") > HEAVY_QUERY
"""Whether one query carries much of the weight of a number."""


def heavy_queries(found: pl.DataFrame, path: object = None) -> list[str]:
    """A sentence on the models whose heaviest queries carry much of the variance and score differently.

    Args:
        found: one row for each model and metric, with columns model, metric and heavy_share.
        path: name of a model without a name.
    """
    uneven = found.filter(pl.col("heavy_share") > HEAVY_SHARE)
    if not len(uneven):
        return []
    names = uneven["model"].fill_null(str(path)).unique(maintain_order=True).to_list()
    return [
        f"{_some(names)}: the ten queries with the most weight, or fewer, carry up to "
        f"{uneven['heavy_share'].max():.0%} of the variance of {_some_metrics(uneven)} and score differently "
        "from others; the intervals may be too narrow, because other samples may hold queries that weigh "
        "still more."
    ]


def few_queries(found: pl.DataFrame, path: object = None) -> list[str]:
    """A sentence on each model whose intervals rest on few queries, or on one heavy query.

    Args:
        found: one row for each model and metric, with columns model, metric, queries, effective_queries and
            heaviest_query.
        path: as for `heavy_queries`.
    """
    sentences = []
    for (model,), rows in found.filter(IS_FEW | IS_HEAVY).group_by("model", maintain_order=True):
        worst = rows.sort("effective_queries").row(0, named=True)
        why = []
        if worst["effective_queries"] < FEW_QUERIES:
            why.append(
                f"{worst['queries']:,} queries count as {worst['effective_queries']:.1f} of equal weight, "
                f"fewer than {FEW_QUERIES}"
            )
        if worst["heaviest_query"] > HEAVY_QUERY:
            why.append(f"one query carries {worst['heaviest_query']:.0%} of the weight")
        name = path if model is None else model
        sentences.append(
            f"{name}: {' and '.join(why)} ({_some_metrics(rows)}): the intervals may be too narrow."
        )
    return sentences


def _some_metrics(rows: pl.DataFrame) -> str:
    return _some(rows["metric"].unique(maintain_order=True).to_list())


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
