"""Cost of rules for trivial candidates: share of known facts that they reject."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.judge.runs import known_pairs
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.kg.graph import graph_checked
from owkg.pools.trivial import TrivialRule, trivial
from owkg.stats.interval import wilson

_LEFT_OUT = "left out"
# Without other known facts, train is cut into _PARTS parts that are left out in turn, until _ENOUGH facts
# were left out.
_PARTS, _ENOUGH = 20, 20_000


def rule_cost(
    graph: KnowledgeGraph,
    *,
    rules: Sequence[TrivialRule | str] = tuple(TrivialRule),
    held: Sequence[str] = (),
    asked: pl.DataFrame | None = None,
    min_share: int = 1,
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Share of known facts that the rules would call not relevant if they were not known.

    The facts of `held` are left out and become the candidates; only train is known. Without `held`, random
    twentieths of train are left out in turn. Every fact left out is true, so each one that a rule marks is a
    lost relevant answer. If missing facts resemble the facts left out, the result is the share of all
    relevant answers that the rule removes; otherwise the share may differ.

    Intervals are Wilson's, with an effective number of independent facts. The unit is the query, because
    answers to the same query tend to be lost together.

    Args:
        graph: graph with a split train.
        rules: rules to apply. Default: all.
        held: splits of known facts other than train, such as valid. Default: none.
        asked: columns side and relation of the queries to restrict to, such as a pool. Default None: all.
        min_share: as in `owkg.pools.trivial`. Default 1.
        level: confidence level of the intervals, in (0, 1). Default 0.95.
        seed: seed of the draw from train. Default 0.

    Returns:
        Columns relation (null: all of them), facts (answers to queries that were left out), functional and
        type (number of facts that each rule marks; the first rule counts if both do), rejected, share, lower,
        upper. The first row is for all relations, followed by relations in descending order of rejected
        facts; no row if no fact was left out.

    Raises:
        ValueError: if an argument is out of range, or the graph lacks a split.

    Examples:
        >>> train = [[0, 0, 1], [2, 0, 3], [4, 0, 5]]
        >>> facts = {"train": np.array(train, np.int32), "valid": np.array([[0, 0, 3], [5, 0, 1]], np.int32)}
        >>> graph = KnowledgeGraph(tuple("abcdef"), ("r",), facts)
        >>> found = rule_cost(graph, rules=["functional"], held=["valid"])
        >>> found.select("relation", "facts", "rejected").rows()
        [(None, 4, 3), ('r', 4, 3)]

    References:
        Wilson (JASA 22, 1927); Kish (1965), "Survey sampling", section 8.2, of effective sizes.
    """
    graph = graph_checked(graph)
    facts = fact_splits(graph)
    for name in ("train", *held):
        if name not in facts:
            raise ArgumentError("held", f"must be among {', '.join(facts)}, with train, got {name!r}.")
    wanted = checks.real_number("level", level, 0, 1, closed=False)
    wanted_for = None if asked is None else asked.select("side", "relation").unique()
    frames: list[pl.DataFrame] = []
    for train, out in _parted(graph, held, checks.seed("seed", seed)):
        if not len(out) or not len(train) or sum(map(len, frames)) >= _ENOUGH:
            continue
        cut = graph._replace(splits={"train": train, _LEFT_OUT: out})
        candidates = known_pairs(cut, [_LEFT_OUT])
        if wanted_for is not None:
            candidates = candidates.join(wanted_for, on=["side", "relation"], how="semi")
        frames.append(trivial(candidates, cut, known=["train"], rules=rules, min_share=min_share))
    if not sum(map(len, frames)):
        return pl.DataFrame(schema=_SCHEMA)
    lost = pl.concat(frames).with_columns(lost=pl.col("rule").is_not_null())
    rows = [_row(None, lost, wanted)]
    rows += sorted(
        (_row(name, own, wanted) for (name,), own in lost.group_by("relation")),
        key=lambda row: (-row["rejected"], row["relation"]),
    )
    return pl.DataFrame(rows, schema=_SCHEMA)


_SCHEMA: dict[str, Any] = {
    "relation": pl.String,
    **dict.fromkeys(("facts", *(rule.value for rule in TrivialRule), "rejected"), pl.Int64),
    **dict.fromkeys(("share", "lower", "upper"), pl.Float64),
}


def _parted(graph: KnowledgeGraph, held: Sequence[str], seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of known facts and facts left out; each fact is left out once, and none that is known."""
    train = np.unique(graph.splits["train"], axis=0)
    others = [graph.splits[name] for name in held if name != "train"]
    if not any(map(len, others)):
        part = np.random.default_rng(seed).integers(_PARTS, size=len(train))
        yield from ((train[part != i], train[part == i]) for i in range(_PARTS))
        return
    known = pl.DataFrame(train, schema=_TRIPLE)
    out = pl.DataFrame(np.concatenate(others), schema=_TRIPLE).unique(maintain_order=True)
    yield train, out.join(known, on=_TRIPLE, how="anti", maintain_order="left").to_numpy()


_TRIPLE = ["head", "relation", "tail"]


def _row(relation: str | None, marked: pl.DataFrame, level: float) -> dict[str, Any]:
    by_rule = {rule.value: int((marked["rule"] == rule.value).sum()) for rule in TrivialRule}
    facts, rejected = len(marked), int(marked["lost"].sum())
    lower, upper = wilson(rejected / facts, _effective(marked), level)
    counts = {"relation": relation, "facts": facts} | by_rule | {"rejected": rejected}
    return counts | {"share": rejected / facts, "lower": lower, "upper": upper}


def _effective(marked: pl.DataFrame) -> float:
    """Number of independent facts whose share would vary as much as this one, whose unit is the query."""
    by_query = marked.group_by("query").agg(pl.len().alias("n"), pl.col("lost").sum())
    size, lost = by_query["n"].to_numpy().astype(float), by_query["lost"].to_numpy().astype(float)
    facts, queries = size.sum(), len(size)
    share = lost.sum() / facts
    if queries < 2 or share in (0, 1):
        return float(queries)
    variance = queries / (queries - 1) * ((lost - share * size) ** 2).sum() / facts**2
    return float(min(facts, share * (1 - share) / variance)) if variance > 0 else float(facts)
