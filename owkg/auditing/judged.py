"""Strengths and correlations of systems from judgements: how often each system finds missing answers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import special

from owkg import checks
from owkg.auditing.lists import Prepared
from owkg.auditing.result import JUDGED
from owkg.errors import ArgumentError
from owkg.kg import KnowledgeGraph
from owkg.pools.design import Design
from owkg.pools.missing import design_of, known_and_found, ratio_limits, share_allowed, with_categories
from owkg.ranks import RankTable

_BY = ("side", "category")


def judged_strengths(
    tables: Mapping[str, RankTable | pl.DataFrame],
    lists: Mapping[str, pl.DataFrame],
    qrels: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    by: str | Sequence[str] = (),
    split: str | None = None,
    level: int = 1,
    ci: float = 0.95,
    sample: pl.DataFrame | None = None,
    design: str | None = None,
) -> pl.DataFrame:
    """Strength on missing and on known answers, and the correlation, of each system from judgements.

    A system finds an answer if all candidates above it are true: known or judged relevant. l1 is P(found |
    missing), estimated from the answers that judging found; l2 is P(found | in the test), estimated from the
    test answers to the same queries. The correlation of being missing and being found is (Yang et al. 2022,
    Section 4.3) rho = (l1 - l2) sqrt(beta (1 - beta) / (l (1 - l))) with l = beta l1 + (1 - beta) l2.

    Only a random sample of queries that is judged completely allows these estimates. Candidates chosen by the
    ranks of systems, as in pools and sheets, are high in the lists: l1 is then too large for a pooled system,
    and too small for any other system. So strengths and correlations are null for all other designs.

    Args:
        tables: rank tables of the systems by name, as for `owkg.audit`.
        lists: run of each system with its best candidates, by name.
        qrels: judgements, as returned by `owkg.judge.read_judgements`.
        graph: graph of the judgements.
        by: "side", "category" or both. By default all queries are in one group.
        split: split of the ranks. Default: the smallest one that holds them, or else "test".
        level: lowest relevance that counts as relevant. Default 1.
        ci: level of the intervals, which are over queries. Default 0.95.
        sample: as in `missing_share`.
        design: as in `missing_share`.

    Returns:
        One row for each system and group: model, side and category (null unless asked for), queries, known,
        found, design, sparsity (a lower bound unless the design is complete), missing_strength, test_strength
        and correlation, each of the last four with _low and _high. A value is null if judging found no
        answer, if a system finds all answers or none, if the design does not allow it, and, except for the
        sparsity, if there are no lists.

    Raises:
        ValueError: as in `missing_share` and `Prepared`.
    """
    how = design_of(design, qrels, sample)
    options: Any = {"by": by, "split": split, "level": level, "ci": ci, "sample": sample, "design": how}
    return strengths_of(Prepared(tables, graph, lists), qrels, graph, **options)


def strengths_of(
    ready: Prepared,
    qrels: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    by: str | Sequence[str] = (),
    split: str | None = None,
    level: int = 1,
    ci: float = 0.95,
    sample: pl.DataFrame | None = None,
    design: Design,
) -> pl.DataFrame:
    """`judged_strengths` of systems that are already read."""
    names = checks.some_of("by", by, _BY)
    checks.level("ci", ci)
    split = split or ready.split or "test"
    kept, found, weights = known_and_found(
        qrels, graph, split=split, level=level, sample=sample, design=design
    )
    known, found = (one.join(ready.queries.select("query"), on="query", how="semi") for one in (kept, found))
    if not len(known) + len(found):
        raise ArgumentError("qrels", "must judge queries that the systems answer, got none such.")
    of = with_categories(pl.concat([known, found]).select("query", "side", "relation").unique("query"), graph)
    of = of.join(weights, on="query")
    rows = []
    for system in ready.systems:
        each = _by_query(ready, system, known, found).join(of, on="query").sort("query")
        for key, part in each.group_by(names, maintain_order=True) if names else [((), each)]:
            same = {"model": system, "design": str(design)} | dict(zip(names, key, strict=True))
            rows.append(same | _summary(part, ci, design, listed=ready.depth is not None))
    frame = pl.DataFrame(rows, infer_schema_length=None)
    frame = frame.select(
        frame[name] if name in frame.columns else pl.lit(None).alias(name) for name in JUDGED
    )
    return frame.cast(pl.Schema(JUDGED)).sort("model", *names, maintain_order=True)


def _by_query(ready: Prepared, system: str, known: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """For each query: known and found answers, and how many of each the system finds."""
    ranks, places = ready.of(system)
    places = found.select("query", "answer").join(places, on=["query", "answer"], how="left")
    places = places.sort("query", "place", nulls_last=True)
    # Found answers lead the list as long as the n-th of them has place n.
    ahead = pl.int_range(1, pl.len() + 1).over("query") == pl.col("place")
    missing = places.group_by("query").agg(
        pl.len().alias("found"), ahead.fill_null(False).sum().alias("first")
    )
    joined = known.select("query", "answer").join(ranks, on=["query", "answer"])
    joined = joined.join(missing, on="query", how="full", coalesce=True)
    return joined.group_by("query").agg(
        known=pl.col("rank").is_not_null().sum(),
        known_first=(pl.col("rank") <= pl.col("first").fill_null(0) + 1).sum(),
        found=pl.col("found").first().fill_null(0),
        found_first=pl.col("first").first().fill_null(0),
    )


def _summary(part: pl.DataFrame, ci: float, design: Design, *, listed: bool) -> dict[str, float | int | None]:
    row: dict[str, float | int | None] = {"queries": len(part)}
    row |= {name: int(part[name].sum()) for name in ("known", "found")}
    known, one, found, other = (
        (part[name] * part["weight"]).to_numpy() for name in ("known", "known_first", "found", "found_first")
    )
    if (total := (known + found).sum()) > 0:
        low, high = share_allowed(found, known + found, ci, design)
        row |= {"sparsity": float(found.sum() / total), "sparsity_low": low, "sparsity_high": high}
    # Without lists, the places of the answers that judging found are not known.
    if not (listed and design.estimates):
        return row
    for name, some, all_ in (("missing_strength", other, found), ("test_strength", one, known)):
        if all_.sum():
            low, high = ratio_limits(some, all_, ci)
            row |= {name: float(some.sum() / all_.sum()), f"{name}_low": low, f"{name}_high": high}
    return row | _correlation(known, one, found, other, ci)


def _correlation(
    known: np.ndarray, known_first: np.ndarray, found: np.ndarray, found_first: np.ndarray, ci: float
) -> dict[str, float]:
    """Correlation of being missing and being found, if any: delta method over queries, Fisher's scale."""
    total = float((known + found).sum())
    if not found.sum() or not known.sum() or not 0 < (known_first + found_first).sum() < total:
        return {}
    beta, l1, l2 = found.sum() / total, found_first.sum() / found.sum(), known_first.sum() / known.sum()
    strength = beta * l1 + (1 - beta) * l2
    scale = np.sqrt(beta * (1 - beta) / (strength * (1 - strength)))
    gap = l1 - l2
    by_strength = -scale * (1 - 2 * strength) / (2 * strength * (1 - strength))
    by_beta = scale * (1 - 2 * beta) / (2 * beta * (1 - beta))
    # Contributions of each query to l1, l2 and beta.
    parts = np.stack(
        [
            (found_first - l1 * found) / found.sum(),
            (known_first - l2 * known) / known.sum(),
            (found - beta * (known + found)) / total,
        ]
    )
    slopes = np.array(
        [
            scale + gap * by_strength * beta,
            -scale + gap * by_strength * (1 - beta),
            gap * (by_beta + by_strength * gap),
        ]
    )
    n = len(known)
    error = np.sqrt(((slopes @ parts) ** 2).sum() * n / max(n - 1, 1))
    rho = float(np.clip(gap * scale, -1, 1))
    inside = np.clip(rho, -1 + 1e-9, 1 - 1e-9)
    half = special.stdtrit(max(n - 1, 1), (1 + ci) / 2) * error / (1 - inside**2)
    low, high = np.tanh(np.arctanh(inside) + np.array([-half, half]))
    return {"correlation": rho, "correlation_low": float(low), "correlation_high": float(high)}
