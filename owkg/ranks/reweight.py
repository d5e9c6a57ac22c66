"""Micro metrics under another distribution of relations (Zhou et al. 2022, eq. 1 and Table 4)."""

from collections.abc import Mapping
from numbers import Real

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.ranks.table import RankTable, validated


def reweighted(table: RankTable | pl.DataFrame, shares: Mapping[str, float] | None = None) -> pl.DataFrame:
    """Rank table with weights under which each relation counts with its share.

    A micro metric of the result is the sum over relations of the share times the mean of the relation. With
    equal shares it is the mean over relations (macro by relation). Shares hold on each side separately.

    Args:
        table: rank table; it is validated. Its weights, if any, hold within a relation.
        shares: share of each relation of the table by label (by id as text), at least 0, in any unit.
            Default: equal shares.

    Raises:
        ValueError: if a relation has no share, a share is negative or not a number, or all shares are 0.

    Examples:
        >>> import polars as pl
        >>> row = {"head": "a", "tail": "b", "side": "tail", "optimistic": 1, "pessimistic": 1}
        >>> rows = [row | {"relation": name, "candidates": 9} for name in ("r", "r", "s")]
        >>> reweighted(pl.DataFrame(rows))["weight"].to_list()
        [0.5, 0.5, 1.0]
    """
    table = validated(table)
    relation = table["relation"].cast(pl.String)
    present = relation.unique(maintain_order=True).to_list()
    if shares is None:
        shares = dict.fromkeys(present, 1.0)
    if not isinstance(shares, Mapping):
        raise ArgumentError("shares", f"must map relations to numbers, got {shares!r}.")
    if missing := [name for name in present if name not in shares]:
        raise ArgumentError(
            "shares", f"must have a share for every relation of the table, got none for {missing[0]!r}."
        )
    for name in present:
        if not (isinstance(shares[name], Real) and np.isfinite(shares[name]) and shares[name] >= 0):
            raise ArgumentError("shares", f"must be finite, at least 0, got {shares[name]!r} for {name!r}.")
    if not any(shares[name] for name in present):
        raise ArgumentError("shares", "must be above 0 for some relation of the table, got zeros only.")
    weight = pl.col("weight") if "weight" in table.columns else pl.lit(1.0)
    share = relation.replace_strict(present, [float(shares[n]) for n in present], return_dtype=pl.Float64)
    keys = ["side", "relation", *(name for name in ("model", "seed") if name in table.columns)]
    table = table.with_columns(weight=weight).with_columns(
        weight=share * pl.col("weight") / pl.col("weight").sum().over(keys)
    )
    if table["weight"].is_nan().any():
        raise ArgumentError("table", "must have a weight above 0 in every relation and side.")
    return table
