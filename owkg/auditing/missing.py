"""Sparsity of a test set from judgements: how many true answers it lacks, at least."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from owkg import checks
from owkg.checks import ArgumentError
from owkg.judge.qrels import binary, qrels_from_graph
from owkg.judge.schema import QRELS
from owkg.kg import KnowledgeGraph, fact_splits, relation_categories
from owkg.stats.interval import share_limits

_BY = ("side", "category", "relation")
_ANSWER = ("query", "answer")


def missing_share(
    qrels: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    by: str | Sequence[str] = (),
    unit: str = "answer",
    level: int = 1,
    ci: float = 0.95,
) -> pl.DataFrame:
    """The sparsity beta of a test set that judgements show: found answers by found and known ones.

    Judged are the queries with a judgement; known answers are those of the split, and found ones those judged
    relevant that no split of the graph knows. What nobody has judged may be true as well: beta is a lower
    bound. Queries are the sampling unit of its interval, which is for other queries judged in the same way.

    Args:
        qrels: of `owkg.judge.read_judgements`.
        graph: that the judgements are of.
        split: whose sparsity is asked for; judged queries that it does not answer do not count.
        by: side, category or relation, or several.
        unit: what is counted: answers to queries, as rank metrics average over; or distinct triples. A known
            triple answers two queries, for its head and its tail; a found one often but the one judged.
        level: the lowest relevance that is relevant.
        ci: level of the intervals.

    Returns:
        One row for each group: its columns, queries, known, found, sparsity_at_least, ci_low, ci_high.

    Raises:
        ValueError: if judgements name what the graph does not know, no judged query is of the split, or an
            argument is out of range.
    """
    names = checks.names("by", by)
    if set(names) - set(_BY):
        raise ArgumentError("by", f"must be of {', '.join(_BY)}, got {', '.join(names)}.")
    checks.level("ci", ci)
    facts = fact_splits(graph)
    if split not in facts:
        raise ArgumentError("split", f"must be one of {', '.join(facts)}, got {split!r}.")
    judged = binary(qrels, level=level)
    for column, labels in (
        ("entity", graph.entities),
        ("relation", graph.relations),
        ("answer", graph.entities),
    ):
        unknown = judged.filter(~pl.col(column).is_in(pl.Series(labels, dtype=pl.String).implode()))
        if len(unknown):
            raise ArgumentError(
                "qrels", f"must name what the graph knows, got {column} {unknown[column][0]!r}."
            )
    known = qrels_from_graph(graph, split)
    asked = judged.select("query").unique()
    kept = known.join(asked, on="query", how="semi").join(
        judged.filter(pl.col("relevance") == 0), on=_ANSWER, how="anti"
    )
    if not len(kept):
        raise ArgumentError("qrels", f"must judge queries that {split} answers, got none such.")
    anywhere = qrels_from_graph(graph, [name for name in facts if len(facts[name])])
    found = judged.filter(pl.col("relevance") > 0).join(anywhere, on=_ANSWER, how="anti")
    found = found.join(kept.select("query").unique(), on="query", how="semi")
    each = pl.concat(
        [kept.select(QRELS).with_columns(is_found=0), found.select(QRELS).with_columns(is_found=1)]
    )
    categories = relation_categories(facts["train"], graph.num_relations) if "category" in names else None
    if unit not in ("answer", "triple"):
        raise ArgumentError("unit", f"must be answer or triple, got {unit!r}.")
    if unit == "triple":
        ends = pl.when(pl.col("side") == "tail")
        each = each.with_columns(
            ends.then("entity").otherwise("answer").alias("head"),
            ends.then("answer").otherwise("entity").alias("tail"),
        ).unique(["head", "relation", "tail"], keep="first", maintain_order=True)
    queries = each.group_by("query", "side", "relation", maintain_order=True).agg(
        found=pl.col("is_found").sum(), known=(1 - pl.col("is_found")).sum()
    )
    if categories is not None:
        of = pl.DataFrame({"relation": list(graph.relations), "category": categories.tolist()})
        queries = queries.join(of, on="relation", how="left", maintain_order="left")
    rows = []
    for key, part in queries.group_by(names, maintain_order=True) if names else [((), queries)]:
        counts = part["found"].to_numpy(), part["known"].to_numpy()
        low, high = _limits(*counts, ci)
        share = {"sparsity_at_least": counts[0].sum() / (counts[0].sum() + counts[1].sum())}
        sizes = {"queries": part.height, "known": int(counts[1].sum()), "found": int(counts[0].sum())}
        rows.append(dict(zip(names, key, strict=True)) | sizes | share | {"ci_low": low, "ci_high": high})
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.sort(names) if names else frame


def _limits(found: np.ndarray, known: np.ndarray, ci: float) -> tuple[float, float]:
    """Mid-P limits of the share on the effective number of answers, by its error over queries."""
    total, n = float(found.sum() + known.sum()), len(found)
    share = found.sum() / total
    apart = found - share * (found + known)
    variance = (apart**2).sum() / total**2 * n / max(n - 1, 1)
    size = share * (1 - share) / variance if variance > 0 else n
    low, high = share_limits(np.array([share]), np.array([float(min(size, total))]), (1 - ci) / 2)
    return float(low[0]), float(high[0])
