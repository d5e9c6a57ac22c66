"""Entity-pair ranking: one ranked list of (head, tail) pairs for each relation."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.errors import ArgumentError
from owkg.judge.schema import checked
from owkg.kg import KnowledgeGraph, fact_splits, joined_splits
from owkg.kg.graph import graph_checked
from owkg.kg.triples import COLUMNS, labelled
from owkg.metrics import Ties
from owkg.metrics.blocks import whole_block
from owkg.metrics.measures import AveragePrecision
from owkg.metrics.queries import values
from owkg.ranks.tasks import tasks


class PairRanking(NamedTuple):
    """Average precision (AP) of the list of pairs of each relation, and its means.

    Attributes:
        relations: one row for each relation of the split, sorted by name: relation, triples (distinct triples
            of the split), pairs (ranked pairs after filtering), found (triples among them), ap.
        weighted: mean of ap over relations, weighted by the number of triples.
        mean: unweighted mean of ap over relations.
    """

    relations: pl.DataFrame
    weighted: float
    mean: float


def pair_ranking(
    scored: Any,
    graph: KnowledgeGraph,
    split: str = "test",
    *,
    filter_splits: Sequence[str] = ("train", "valid"),
) -> PairRanking:
    """Average precision of the pairs that a model ranks for each relation: (?, relation, ?).

    AP is the sum of the precisions at the listed triples of the split, divided by the number of triples of
    the relation in the split, so that unlisted triples count 0. Pairs of equal score are in random order: AP
    is its expectation (McSherry and Najork 2008).

    Args:
        scored: columns head, relation, tail (labels) and score (larger is better): the best pairs of each
            relation, or all pairs.
        graph: knowledge graph of the triples.
        split: split whose triples are to be retrieved. Default "test".
        filter_splits: splits whose triples are removed from the lists, unless they are in `split` too. Names
            that the graph lacks are ignored. Default train and valid.

    Raises:
        ValueError: if `scored` is malformed, has a label that the graph lacks or scores a pair twice, or if
            `split` has no triples or is not a split of facts.

    Examples:
        >>> graph = KnowledgeGraph(("a", "b"), ("r",), {"test": np.array([[0, 0, 1], [1, 0, 1]], np.int32)})
        >>> pairs = {"head": ["a", "b", "b"], "relation": ["r"] * 3, "tail": ["b", "a", "b"]}
        >>> pair_ranking(pl.DataFrame(pairs | {"score": [3.0, 2.0, 1.0]}), graph).weighted  # (1 + 2/3) / 2
        0.8333333333333333

    References:
        Wang et al., "On Evaluating Embedding Models for Knowledge Base Completion" (RepL4NLP 2019); Zhou et
        al. (SIGIR 2022), section 6.2.
    """
    graph = graph_checked(graph)
    frame = _scored(scored, graph)
    if split not in fact_splits(graph) or not len(graph.splits[split]):
        names = ", ".join(name for name in fact_splits(graph) if len(graph.splits[name]))
        raise ArgumentError("split", f"must be a split with triples ({names}), got {split!r}.")
    known = [name for name in filter_splits if name in fact_splits(graph) and name != split]
    facts = _labelled(graph, [split]).with_columns(true=True)
    lists = frame.join(facts, on=COLUMNS, how="left").with_columns(pl.col("true").fill_null(False))
    if known:
        lists = lists.join(
            _labelled(graph, known).join(facts, on=COLUMNS, how="anti"), on=COLUMNS, how="anti"
        )
    # Number of negatives above or level with a triple: its rank among all pairs minus its rank among triples.
    place = {how: pl.col("score").rank(how, descending=True) for how in ("min", "max")}
    lists = lists.with_columns(
        negatives=(~pl.col("true")).sum().over("relation"),
        **{how: rank.over("relation") - rank.over("relation", "true") for how, rank in place.items()},
    )
    found = lists.filter("true").sort("relation")
    rows = (
        facts.group_by("relation")
        .agg(triples=pl.len().cast(pl.Int64))
        .join(lists.group_by("relation").agg(pairs=pl.len().cast(pl.Int64)), on="relation", how="left")
        .join(_precision(found), on="relation", how="left")
        .sort("relation")
        .with_columns(pl.col("pairs", "found").fill_null(0))
        .with_columns(ap=pl.col("sum").fill_null(0.0) / pl.col("triples"))
        .drop("sum")
    )
    ap, triples = rows["ap"].to_numpy(), rows["triples"].to_numpy()
    return PairRanking(rows, float(np.average(ap, weights=triples)), float(ap.mean()))


def _scored(scored: Any, graph: KnowledgeGraph) -> pl.DataFrame:
    """Columns head, relation, tail, score, checked."""
    frame = checked("scored", scored, (*COLUMNS, "score"))
    for column in COLUMNS:
        labels = graph.relations if column == "relation" else graph.entities
        for label in frame[column].filter(~frame[column].is_in(pl.Series(labels, dtype=pl.String).implode())):
            raise ArgumentError("scored", f"must have labels of the graph, got the {column} {label!r}.")
    again = frame.filter(~pl.struct(COLUMNS).is_first_distinct())
    for triple in again.select(COLUMNS).head(1).iter_rows():
        raise ArgumentError("scored", f"must score each pair of a relation once, got {triple} twice.")
    return frame


def _precision(found: pl.DataFrame) -> pl.DataFrame:
    """Columns relation, found and sum, the sum of the expected precisions at the listed triples."""
    names = found["relation"].unique().sort()
    empty = pl.DataFrame(schema={"relation": pl.String, "found": pl.Int64, "sum": pl.Float64})
    if found.is_empty():
        return empty
    low, high, negatives = (found[name].cast(pl.Int64).to_numpy() for name in ("min", "max", "negatives"))
    query = found["relation"].rank("dense").to_numpy()
    lists = whole_block(tasks(low + 1, high + 1, negatives + 1, query=query))
    deepest = int((negatives + len(found)).max())
    ap = values(AveragePrecision(deepest), lists, Ties.EXACT)
    return pl.DataFrame({"relation": names, "found": lists.answers, "sum": ap * lists.answers})


def _labelled(graph: KnowledgeGraph, splits: Sequence[str]) -> pl.DataFrame:
    """Distinct triples of some splits, as labels."""
    return labelled(joined_splits(graph, list(splits)), graph.entities, graph.relations).unique()
