"""Sparsity of a test set from judgements: how many true answers it lacks, or lacks at least."""

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
    design: str | None = None,
) -> pl.DataFrame:
    """The sparsity beta of a test set that judgements show: found answers by found and known ones.

    Known answers are those of the split minus those judged not relevant. Found ones are judged relevant, and
    no known split of the graph holds them (`owkg.kg.known_splits`: the missing facts and the full test of an
    open-world benchmark are not known). What follows depends on how the judged candidates were chosen:

    - complete (a random sample of queries, judged completely): beta, with an interval over queries;
    - sampled-pool, sampled-budget (on a random sample of queries): beta is at least that, because what
      nobody judged may be true as well. The lower limit is for other queries judged in the same way. Queries
      whose pooled answers are all still open are left out of a pool, and queries that had nothing to judge
      then count as little as those that had; within a budget, an open query counts as one without found
      answers;
    - pool, budget, sheet, unknown: beta is at least the found answers by these and all known answers of the
      split, whichever queries were judged.

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
            is then drawn more often, and counts by its drawn answers over all its answers. None: sampled
            queries count alike.
        design: of `owkg.pools.design.Design`. None: sampled-pool with `sample`, otherwise unknown.

    Returns:
        One row for each group: its columns, queries, known and found (counts), sparsity_at_least; ci_low, the
        lower limit of the interval, null where queries are not a sample; ci_high, null unless the design is
        complete.

    Raises:
        ValueError: if judgements name what the graph does not know, no judged query is of the split, or an
            argument is out of range.
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
    """The design that is named, else what a sample says; one that is half done is not complete.

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
        raise ArgumentError("sample", f"must be left out where the design is {found}: nothing was drawn.")
    return within[found]


def share_allowed(
    part: np.ndarray, whole: np.ndarray, ci: float, design: Design
) -> tuple[float | None, float | None]:
    """The limits of `ratio_limits` that the design allows, null otherwise."""
    if not design.sampled:
        return None, None
    low, high = ratio_limits(part, whole, ci)
    return low, high if design.estimates else None


def _has_audit_sheet(path: Path) -> bool:
    """Whether a folder is that of an audit, with its sheet."""
    return (path / AUDIT_SHEET).is_file()


class Judgements(NamedTuple):
    """Judgements of a file or folder.

    Attributes:
        qrels: what was judged.
        candidates: of a pool, with the column depth; else None.
        design: how candidates were chosen, by the folder, by what is written next to the file, or by its
            form; else as the user names it.
        drawn: the pool of a folder whose candidates were drawn by a design; else None.
    """

    qrels: pl.DataFrame
    candidates: pl.DataFrame | None
    design: Design
    drawn: DrawnPool | None = None


def judgements(source: StrPath, design: str | None = None) -> Judgements:
    """The judgements of a file of qrels, of a filled-in sheet, or of a pool or an audit with its sheet there.

    Args:
        source: file or folder.
        design: of `owkg.pools.design.Design`, for a file whose design is not written next to it; None:
            unknown, or sheet for a sheet.

    Raises:
        ValueError: naming file and line, or the folder, if it is malformed; naming `design`, if another one
            is known.
        OSError: if it cannot be opened.
    """
    path = checks.path("qrels", source)
    if _has_audit_sheet(path):
        path = path / AUDIT_SHEET
    if path.is_dir():
        if (path / "audit.json").is_file():
            raise ValueError(f"{path}: holds no {AUDIT_SHEET}: that audit named no facts to judge.")
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
    qrels: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str,
    level: int,
    sample: pl.DataFrame | None,
    design: Design,
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """What judgements say of the answers to the queries of a split.

    Returns:
        (answers of the split, minus those judged not relevant; answers that judging found; query and weight,
        how much each query counts). Of judged queries where these are a sample, else of all queries of the
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
    # Where candidates were pooled and none of them judged, nobody has looked.
    seen = judged.filter(pl.col("relevance") != POOLED).join(anywhere, on=_ANSWER, how="anti")
    left = judged.filter(pl.col("relevance") == POOLED).join(seen, on="query", how="anti")
    if not len(seen):
        still = ": of all that are pooled nothing is judged yet" if len(left) else " such"
        raise ArgumentError("qrels", f"must judge answers that are not known already, got none{still}.")
    if design in (Design.COMPLETE, Design.SAMPLED_POOL):
        judged = judged.filter(pl.col("relevance") != POOLED).join(left, on="query", how="anti")
    else:
        left = left.clear()  # which queries are done was chosen: the open ones count as they are
    # Queries with nothing to judge are done at once. Of the others a share is: so much do they count.
    at_work = seen.select("query").unique()
    share = len(at_work) / (len(at_work) + left["query"].n_unique())
    asked = known.join(judged.select("query").unique(), on="query", how="semi")
    if not len(asked):
        raise ArgumentError("qrels", f"must judge queries that {split} answers, got none such.")
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
