"""Sparsity of a test set from judgements: share of true answers that it lacks, or a lower bound of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.estimation import DrawnPool
from owkg.ir import POOLED
from owkg.judge.qrels import binary, qrels_from_graph, read_judgements
from owkg.judge.schema import QRELS, checked
from owkg.kg import KnowledgeGraph, fact_splits, known_splits, relation_categories
from owkg.pools.annotation import is_sheet, read_sheet
from owkg.pools.design import Design, design_beside, design_named, stated_or_known
from owkg.pools.drawn import DESIGN as DESIGN_FILE
from owkg.pools.estimating import drawn_judgements
from owkg.pools.read_back import pool_judgements
from owkg.stats.interval import share_limits

_BY = ("side", "category", "relation")
_ANSWER = ("query", "answer")
AUDIT_SHEET = "audit_sheet.tsv"
"""File in the folder of an audit: the sheet of candidates to judge first."""


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
    design: str | None = None,
) -> pl.DataFrame:
    """Sparsity beta of a test set by judgements: answers found by judging, divided by found and known ones.

    Known answers are the answers of the split without those judged not relevant. Found answers are judged
    relevant and not in a known split of the graph (`owkg.kg.known_splits`: the missing facts and the full
    test of an open-world benchmark are not known). The meaning of the result depends on how the judged
    candidates were chosen:

    - complete (a random sample of queries, judged completely): an estimate of beta, with an interval over
      queries.
    - sampled-pool, sampled-budget (on a random sample of queries): a lower bound of beta, because unjudged
      answers may be true as well. The lower limit is for other queries judged in the same way. In a pool,
      queries whose pooled answers are all unjudged are left out, and queries that had nothing to judge are
      weighted by the share of queries that remain. Within a budget, an unjudged query counts as a query
      without found answers.
    - pool, budget, sheet, unknown: a lower bound of beta, the found answers divided by these plus all known
      answers of the split, whichever queries were judged.

    Args:
        qrels: judgements, as `owkg.judge.read_judgements` returns them.
        graph: graph of the judgements.
        split: split whose sparsity is wanted. Default "test". Judged queries that it does not answer are
            ignored.
        by: columns to group by: side, category or relation, or several. Default: one group.
        unit: "answer" (default): count answers to queries, as rank metrics do; "triple": count distinct
            triples. A known triple answers two queries, for its head and its tail; a found triple often
            answers only the judged one.
        level: lowest relevance that counts as relevant. Default 1.
        ci: confidence level of the intervals. Default 0.95.
        sample: answers of the split that were drawn to have their queries judged. A query with more answers
            is then drawn more often and is weighted by its drawn answers over all its answers. Default None:
            sampled queries have equal weights.
        design: name of a `owkg.pools.design.Design`. Default None: sampled-pool with `sample`, otherwise
            unknown.

    Returns:
        One row for each group: its columns, queries, known and found (counts), sparsity_at_least; ci_low, the
            lower limit of the interval, null if the queries are not a random sample; ci_high, null unless the
            design is complete.

    Raises:
        ValueError: if judgements name labels that are not in the graph, no judged query is in the split, or
            an argument is out of range.
    """
    names = checks.some_of("by", by, _BY)
    checks.level("ci", ci)
    how = design_of(design, qrels, sample)
    kept, found, weights = known_and_found(qrels, graph, split=split, level=level, sample=sample, design=how)
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
        low, high = share_allowed(some, every, ci, how)
        share = {"sparsity_at_least": some.sum() / every.sum()}
        sizes = {"queries": part.height, "known": part["known"].sum(), "found": part["found"].sum()}
        rows.append(dict(zip(names, key, strict=True)) | sizes | share | {"ci_low": low, "ci_high": high})
    frame = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.col("ci_low", "ci_high").cast(pl.Float64)
    )
    return frame.sort(names) if names else frame


def design_of(design: str | None, qrels: pl.DataFrame, sample: pl.DataFrame | None) -> Design:
    """Design that is named, else implied by a sample, after taking unfinished judging into account.

    Raises:
        ValueError: naming `design` or `sample`, if they contradict each other.
    """
    if design is None:
        return Design.UNKNOWN if sample is None else Design.SAMPLED_POOL
    found = design_named(design)
    if sample is None or found.sampled:
        return found.of(qrels)
    within = {Design.POOL: Design.SAMPLED_POOL, Design.BUDGET: Design.SAMPLED_BUDGET}
    if found is Design.UNKNOWN:
        return Design.SAMPLED_POOL
    if found not in within:
        raise ArgumentError("sample", f"must be left out if the design is {found}: nothing was drawn.")
    return within[found]


def share_allowed(
    part: np.ndarray, whole: np.ndarray, ci: float, design: Design
) -> tuple[float | None, float | None]:
    """Limits of `ratio_limits`, with None for each limit that the design does not allow."""
    if not design.sampled:
        return None, None
    low, high = ratio_limits(part, whole, ci)
    return low, high if design.estimates else None


def _has_audit_sheet(path: Path) -> bool:
    """Whether a folder was written by an audit and holds its sheet."""
    return (path / AUDIT_SHEET).is_file()


class Judgements(NamedTuple):
    """Judgements from a file or folder.

    Attributes:
        qrels: the judgements.
        candidates: candidates of a pool, with the column depth; otherwise None.
        design: how candidates were chosen: as recorded in the folder or next to the file, by the form of the
            file, or as named by the user.
        drawn: the pool, if its candidates were drawn by a design; otherwise None.
    """

    qrels: pl.DataFrame
    candidates: pl.DataFrame | None
    design: Design
    drawn: DrawnPool | None = None


def judgements(source: StrPath, design: str | None = None) -> Judgements:
    """Judgements from a file of qrels, a filled-in sheet, or the folder of a pool or an audit with its sheet.

    Args:
        source: file or folder.
        design: name of a `owkg.pools.design.Design` if the file has no recorded design. Default None:
            unknown, or sheet for a sheet.

    Raises:
        ValueError: naming file and line, or the folder, if it is malformed; naming `design`, if another
            design is recorded.
        OSError: if it cannot be opened.
    """
    path = checks.path("qrels", source)
    if _has_audit_sheet(path):
        path = path / AUDIT_SHEET
    if path.is_dir():
        if (path / "audit.json").is_file():
            raise ValueError(f"{path}: holds no {AUDIT_SHEET}, because that audit named no facts to judge.")
        if (path / DESIGN_FILE).is_file():
            drawn, judged = drawn_judgements(path)
            return Judgements(
                judged, None, stated_or_known(design, Design.DRAWN, str(path), default=Design.DRAWN), drawn
            )
        qrels, candidates, known = pool_judgements(path)
        return Judgements(qrels, candidates, stated_or_known(design, known, str(path), default=known))
    known = design_beside(path)
    if is_sheet(path):
        how = stated_or_known(design, known, str(path), default=Design.SHEET)
        return Judgements(read_sheet(path).select(QRELS), None, how)
    how = stated_or_known(design, known, str(path), default=Design.UNKNOWN)
    return Judgements(read_judgements(path), None, how)


def found_by_depth(
    qrels: pl.DataFrame,
    candidates: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    level: int = 1,
) -> pl.DataFrame:
    """Number of relevant candidates among the judged ones at each depth of a pool, without known answers.

    If the share of relevant candidates does not fall with the depth, there are probably missing answers below
    the pool, and the number of found answers is incomplete.

    Args:
        qrels: judgements.
        candidates: candidates of the pool: query, answer and depth (the best rank in any system).
        graph: graph whose facts are known.
        split: tested split. Default "test". Facts that this split lacks count as not known.
        level: lowest relevance that counts as relevant. Default 1.

    Returns:
        One row for each depth: depth, candidates, judged, found, share (null if nothing is judged).
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
    """Check that judgements use labels of the graph.

    Raises:
        ValueError: naming `qrels` and the first unknown label.
    """
    for column, labels in (
        ("entity", graph.entities),
        ("relation", graph.relations),
        ("answer", graph.entities),
    ):
        unknown = qrels.filter(~pl.col(column).is_in(pl.Series(labels, dtype=pl.String).implode()))
        if len(unknown):
            raise ArgumentError(
                "qrels", f"must use labels of the graph, got {column} {unknown[column][0]!r}."
            )


def known_and_found(
    qrels: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str,
    level: int,
    sample: pl.DataFrame | None,
    design: Design,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Known and found answers to the queries of a split, and weights of the queries.

    Returns:
        (answers of the split, without those judged not relevant; answers found by judging; query and its
        weight). They cover the judged queries if these are a random sample, otherwise all queries of the
        split.

    Raises:
        ValueError: as `missing_share`.
    """
    facts = fact_splits(graph)
    if split not in facts:
        raise ArgumentError("split", f"must be one of {', '.join(facts)}, got {split!r}.")
    judged = binary(qrels, level=level)
    require_names(judged, graph)
    known, anywhere = (qrels_from_graph(graph, names) for names in (split, known_splits(graph, split)))
    # A query whose pooled candidates are all unjudged was not looked at.
    seen = judged.filter(pl.col("relevance") != POOLED).join(anywhere, on=_ANSWER, how="anti")
    left = judged.filter(pl.col("relevance") == POOLED).join(seen, on="query", how="anti")
    if not len(seen):
        still = ", because no pooled candidate is judged yet" if len(left) else ""
        raise ArgumentError("qrels", f"must judge answers that are not yet known, got none{still}.")
    if design in (Design.COMPLETE, Design.SAMPLED_POOL):
        judged = judged.filter(pl.col("relevance") != POOLED).join(left, on="query", how="anti")
    else:
        left = left.clear()  # the finished queries are not a random sample, so unjudged ones count too
    # Queries with nothing to judge are finished at once, so they get the share of finished queries as weight.
    at_work = seen.select("query").unique()
    share = len(at_work) / (len(at_work) + left["query"].n_unique())
    asked = known.join(judged.select("query").unique(), on="query", how="semi")
    if not len(asked):
        raise ArgumentError("qrels", f"must judge queries that {split} answers, got none.")
    asked = asked if design.sampled else known
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
            raise ArgumentError("sample", f"must hold answers of {split}, got {answer!r} to {query!r}.")
        drawn = asked.join(drawn.with_columns(drawn=1.0), on=_ANSWER, how="left")
        share = pl.col("drawn").fill_null(0).mean().alias("weight")
        drawn = drawn.group_by("query", maintain_order=True).agg(share).filter(pl.col("weight") > 0)
        weights = drawn.join(weights, on="query", maintain_order="left", suffix="_open").select(
            "query", pl.col("weight") * pl.col("weight_open")
        )
        if not len(weights):
            raise ArgumentError("sample", "must hold answers to judged queries, got none.")
        kept, found = (one.join(weights, on="query", how="semi") for one in (kept, found))
    return kept.select(QRELS), found.select(QRELS), weights


def with_categories(frame: pl.DataFrame, graph: KnowledgeGraph) -> pl.DataFrame:
    """The frame with the category of each relation, 1-1 to N-N by the training facts."""
    categories = relation_categories(fact_splits(graph)["train"], graph.num_relations)
    of = pl.DataFrame({"relation": list(graph.relations), "category": categories.tolist()})
    return frame.join(of, on="relation", how="left", maintain_order="left")


def ratio_limits(part: np.ndarray, whole: np.ndarray, ci: float) -> tuple[float, float]:
    """Mid-P limits of a share of counts, with the effective size that follows from its error over queries.

    Args:
        part, whole: counts of each query.
        ci: confidence level.
    """
    total, n = float(whole.sum()), len(whole)
    share = part.sum() / total
    apart = part - share * whole
    variance = (apart**2).sum() / total**2 * n / max(n - 1, 1)
    size = share * (1 - share) / variance if variance > 0 else n
    low, high = share_limits(np.array([share]), np.array([float(min(size, total))]), (1 - ci) / 2)
    return float(low[0]), float(high[0])
