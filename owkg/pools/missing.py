"""Sparsity of a test set from judgements: how many true answers it lacks, at least."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.checks import ArgumentError
from owkg.ir import POOLED
from owkg.judge.qrels import binary, qrels_from_graph, read_judgements
from owkg.judge.schema import QRELS, checked
from owkg.kg import KnowledgeGraph, fact_splits, known_splits, relation_categories
from owkg.pools.annotation import is_sheet, read_sheet
from owkg.pools.read_back import pool_judgements
from owkg.stats.interval import share_limits

_BY = ("side", "category", "relation")
_ANSWER = ("query", "answer")
AUDIT_SHEET = "audit_sheet.tsv"
"""The sheet of candidates that an audit would have judged first, in its folder."""


def missing_share(
    qrels: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    by: str | Sequence[str] = (),
    unit: str = "answer",
    level: int = 1,
    ci: float = 0.95,
    sample: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """The sparsity beta of a test set that judgements show: found answers by found and known ones.

    Judged are the queries with a judgement, but for those whose pooled answers are all still open; where
    there are such, queries that had nothing to judge count as little as those that had. Known answers
    are those of the split but those judged not relevant, and found ones those judged relevant that no known
    split of the graph holds (`owkg.kg.known_splits`: the missing facts and the full test of an open-world
    benchmark are not known).
    What nobody has judged may be true as well: beta is a lower bound. Queries are the sampling unit of its
    interval, which is for other queries judged in the same way.

    Args:
        qrels: of `owkg.judge.read_judgements`.
        graph: that the judgements are of.
        split: whose sparsity is asked for; judged queries that it does not answer do not count.
        by: side, category or relation, or several.
        unit: what is counted: answers to queries, as rank metrics average over; or distinct triples. A known
            triple answers two queries, for its head and its tail; a found one often but the one judged.
        level: the lowest relevance that is relevant.
        ci: level of the intervals.
        sample: the answers of the split that were drawn to have their queries judged. A query of more answers
            is then drawn more often, and counts by its drawn answers over all its answers. None: judged
            queries stand for all, each alike.

    Returns:
        One row for each group: its columns, queries, known and found (counts), sparsity_at_least, ci_low,
        ci_high.

    Raises:
        ValueError: if judgements name what the graph does not know, no judged query is of the split, or an
            argument is out of range.
    """
    names = checks.some_of("by", by, _BY)
    checks.level("ci", ci)
    kept, found, weights = known_and_found(qrels, graph, split=split, level=level, sample=sample)
    each = pl.concat([kept.with_columns(is_found=0), found.with_columns(is_found=1)])
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
    if "category" in names:
        queries = with_categories(queries, graph)
    queries = queries.join(weights, on="query", maintain_order="left")
    rows = []
    for key, part in queries.group_by(names, maintain_order=True) if names else [((), queries)]:
        some = (part["found"] * part["weight"]).to_numpy()
        every = some + (part["known"] * part["weight"]).to_numpy()
        low, high = ratio_limits(some, every, ci)
        share = {"sparsity_at_least": some.sum() / every.sum()}
        sizes = {"queries": part.height, "known": part["known"].sum(), "found": part["found"].sum()}
        rows.append(dict(zip(names, key, strict=True)) | sizes | share | {"ci_low": low, "ci_high": high})
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.sort(names) if names else frame


def has_audit_sheet(path: Path) -> bool:
    """Whether a folder is that of an audit, with its sheet."""
    return (path / AUDIT_SHEET).is_file()


def judgements(source: Any) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """The judgements of a file of qrels, of a filled-in sheet, or of a pool or an audit with its sheet there.

    Returns:
        (qrels; of a pool, its candidates with the column depth, else None).

    Raises:
        ValueError: naming file and line, or the folder, if it is malformed.
        OSError: if it cannot be opened.
    """
    path = checks.path("qrels", source)
    if has_audit_sheet(path):
        path = path / AUDIT_SHEET
    if path.is_dir():
        if (path / "audit.json").is_file():
            raise ValueError(f"{path}: holds no {AUDIT_SHEET}: that audit named no facts to judge.")
        return pool_judgements(path)
    return read_sheet(path).select(QRELS) if is_sheet(path) else read_judgements(path), None


def found_by_depth(
    qrels: pl.DataFrame,
    candidates: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    level: int = 1,
) -> pl.DataFrame:
    """How many of the judged candidates at each depth of a pool are relevant; known answers are left out.

    Where the share does not fall with the depth, answers lie below the pool as well, and no number of missing
    answers may be called complete.

    Args:
        qrels: judgements.
        candidates: of the pool: query, answer and depth, the best rank that any system gives.
        graph: whose facts are known.
        split: that was tested; facts that it lacks are not known.
        level: the lowest relevance that is relevant.

    Returns:
        A row each depth: depth, candidates, judged, found, share (null where nothing is judged).
    """
    anywhere = qrels_from_graph(graph, known_splits(graph, split))
    labels = binary(qrels, level=level).select(*_ANSWER, "relevance")
    own = candidates.select(*_ANSWER, "depth").join(anywhere, on=_ANSWER, how="anti")
    own = own.join(labels, on=_ANSWER, how="left")
    counted = own.group_by("depth").agg(
        candidates=pl.len(), judged=(pl.col("relevance") >= 0).sum(), found=(pl.col("relevance") > 0).sum()
    )
    share = pl.when(pl.col("judged") > 0).then(pl.col("found") / pl.col("judged"))
    return counted.sort("depth").with_columns(share=share)


def require_names(qrels: pl.DataFrame, graph: KnowledgeGraph) -> None:
    """A check that judgements name what the graph knows.

    Raises:
        ValueError: naming `qrels` and the first label that it does not know.
    """
    for column, labels in (
        ("entity", graph.entities),
        ("relation", graph.relations),
        ("answer", graph.entities),
    ):
        unknown = qrels.filter(~pl.col(column).is_in(pl.Series(labels, dtype=pl.String).implode()))
        if len(unknown):
            raise ArgumentError(
                "qrels", f"must name what the graph knows, got {column} {unknown[column][0]!r}."
            )


def known_and_found(
    qrels: pl.DataFrame, graph: KnowledgeGraph, *, split: str, level: int, sample: pl.DataFrame | None = None
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """What judgements say of the answers to the queries of a split.

    Returns:
        (answers of the split to judged queries, but those judged not relevant; answers to the same queries
        that judging found; query and weight, how much each of these queries counts).

    Raises:
        ValueError: as `missing_share`.
    """
    facts = fact_splits(graph)
    if split not in facts:
        raise ArgumentError("split", f"must be one of {', '.join(facts)}, got {split!r}.")
    judged = binary(qrels, level=level)
    require_names(judged, graph)
    known, anywhere = (qrels_from_graph(graph, names) for names in (split, known_splits(graph, split)))
    # Where candidates were pooled and none of them judged, nobody has looked.
    seen = judged.filter(pl.col("relevance") != POOLED).join(anywhere, on=_ANSWER, how="anti")
    left = judged.filter(pl.col("relevance") == POOLED).join(seen, on="query", how="anti")
    judged = judged.filter(pl.col("relevance") != POOLED).join(left, on="query", how="anti")
    if not len(seen):
        still = ": of all that are pooled nothing is judged yet" if len(left) else " such"
        raise ArgumentError("qrels", f"must judge answers that are not known already, got none{still}.")
    # Queries with nothing to judge are done at once. Of the others a share is: so much do they count.
    at_work = seen.select("query").unique()
    share = len(at_work) / (len(at_work) + left["query"].n_unique())
    asked = known.join(judged.select("query").unique(), on="query", how="semi")
    if not len(asked):
        raise ArgumentError("qrels", f"must judge queries that {split} answers, got none such.")
    kept = asked.join(judged.filter(pl.col("relevance") == 0), on=_ANSWER, how="anti")
    found = judged.filter(pl.col("relevance") > 0).join(anywhere, on=_ANSWER, how="anti")
    found = found.join(asked, on="query", how="semi")
    if not len(kept) + len(found):
        raise ArgumentError("qrels", f"must leave true answers of {split}, got all judged not relevant.")
    counts = pl.when(pl.col("query").is_in(at_work["query"].implode())).then(1.0).otherwise(share)
    weights = asked.select("query").unique(maintain_order=True).with_columns(weight=counts)
    if sample is not None:
        drawn = checked("sample", sample, _ANSWER).select(_ANSWER).unique()
        drawn = drawn.with_columns(pl.col(_ANSWER).cast(pl.String))
        other = drawn.join(known, on=_ANSWER, how="anti", maintain_order="left")
        if len(other):
            query, answer = other.row(0)
            raise ArgumentError("sample", f"must be answers of {split}, got {answer!r} to {query!r}.")
        drawn = asked.join(drawn.with_columns(drawn=1.0), on=_ANSWER, how="left")
        share = pl.col("drawn").fill_null(0).mean().alias("weight")
        drawn = drawn.group_by("query", maintain_order=True).agg(share).filter(pl.col("weight") > 0)
        weights = drawn.join(weights, on="query", maintain_order="left", suffix="_open").select(
            "query", pl.col("weight") * pl.col("weight_open")
        )
        if not len(weights):
            raise ArgumentError("sample", "must hold answers to queries that are judged, got none such.")
        kept, found = (one.join(weights, on="query", how="semi") for one in (kept, found))
    return kept.select(QRELS), found.select(QRELS), weights


def with_categories(frame: pl.DataFrame, graph: KnowledgeGraph) -> pl.DataFrame:
    """The frame with the category of each relation, 1-1 to N-N by the training facts."""
    categories = relation_categories(fact_splits(graph)["train"], graph.num_relations)
    of = pl.DataFrame({"relation": list(graph.relations), "category": categories.tolist()})
    return frame.join(of, on="relation", how="left", maintain_order="left")


def ratio_limits(part: np.ndarray, whole: np.ndarray, ci: float) -> tuple[float, float]:
    """Mid-P limits of a share of counts, on its effective size by its error over queries.

    Args:
        part, whole: counts of each query.
        ci: level.
    """
    total, n = float(whole.sum()), len(whole)
    share = part.sum() / total
    apart = part - share * whole
    variance = (apart**2).sum() / total**2 * n / max(n - 1, 1)
    size = share * (1 - share) / variance if variance > 0 else n
    low, high = share_limits(np.array([share]), np.array([float(min(size, total))]), (1 - ci) / 2)
    return float(low[0]), float(high[0])
