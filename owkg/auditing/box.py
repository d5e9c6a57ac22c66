"""Ranges of sparsity and correlation that the user states or that judgements show."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg.auditing.drawn import DrawnJudgements, judged_rows, shown_by
from owkg.auditing.judged import strengths_of
from owkg.auditing.lists import Prepared
from owkg.auditing.numbers import Unevenness, fitted_unevenness
from owkg.auditing.result import JUDGED
from owkg.auditing.tables import GIVEN, Box
from owkg.errors import ArgumentError, naming
from owkg.estimation import DrawnPool
from owkg.ir.trec import qrels_of
from owkg.judge.named import is_dictionary
from owkg.judge.qrels import merged
from owkg.kg import KnowledgeGraph
from owkg.pools.design import Design
from owkg.pools.missing import design_of, judgements, known_and_found, require_names


class Judged(NamedTuple):
    """Judgements of an audit.

    Attributes:
        labels: judgements of all sources together; None if there are none.
        sample: judgements from which sparsity and correlations are estimated; None if there are none.
        design: design of `sample`.
        drawn: pool with a random draw and its judgements; None if there is none.
    """

    labels: pl.DataFrame | None = None
    sample: pl.DataFrame | None = None
    design: Design = Design.UNKNOWN
    drawn: DrawnJudgements | None = None


# Sparsity and correlations are estimated from the first of these groups that has judgements.
_FIRST = (
    (Design.COMPLETE,),
    (Design.DRAWN,),
    (Design.SAMPLED_POOL,),
    (Design.SAMPLED_BUDGET,),
    (Design.POOL, Design.BUDGET, Design.UNKNOWN),
    (Design.SHEET,),
)


def judgements_of(judged: Any, design: Any, sample: pl.DataFrame | None, *, sparsity_stated: bool) -> Judged:
    """Judgements of all sources, sorted by their use.

    Sheets are used only as labels if there are other judgements or a stated sparsity, because the candidates
    of a sheet may be the answers that reverse an order, which are not a random sample.
    """
    if judged is None:
        for name, value in (("sample", sample), ("design", design)):
            if value is not None:
                raise ArgumentError(name, "is of judgements, and there are none.")
        return Judged()
    judged = qrels_of("judged", judged) if is_dictionary(judged) else judged
    one = isinstance(judged, pl.DataFrame | str | PathLike)
    if not one and (not isinstance(judged, Iterable) or isinstance(judged, Mapping)):
        raise ArgumentError("judged", f"must be one or several sources of judgements, got {judged!r}.")
    sources = [judged] if one else list(judged)
    if not sources:
        raise ArgumentError("judged", "must be one or several sources of judgements, got none.")
    named = [design] * len(sources) if design is None or isinstance(design, str) else list(design)
    if len(named) == 1:
        named *= len(sources)
    if len(named) != len(sources):
        text = f"must be one for all judgements or one for each of {len(sources)}, got {len(named)}."
        raise ArgumentError("design", text)
    read: list[tuple[str, pl.DataFrame, Design]] = []
    pools: list[DrawnPool] = []
    for source, how in zip(sources, named, strict=True):
        if isinstance(source, pl.DataFrame):
            read.append(("a frame", source, design_of(how, source, sample)))
        elif isinstance(source, str | PathLike) and str(source):
            found = judgements(source, how)
            pools += [] if found.drawn is None else [found.drawn]
            drawn = None if found.design is Design.SHEET else sample
            read.append((str(source), found.qrels, design_of(found.design, found.qrels, drawn)))
        else:
            raise ArgumentError("judged", f"must be frames or paths of judgements, got {source!r}.")
    if len(pools) > 1:
        raise ArgumentError("judged", f"must hold one pool with a design, got {len(pools)}.")
    best = next(group for group in _FIRST if any(how in group for *_, how in read))
    samples = [entry for entry in read if entry[2] in best]
    if best == (Design.DRAWN,):
        return _of_drawn(read, samples, pools)
    if best == (Design.SHEET,) and sparsity_stated:
        return Judged(_merged(read), None, Design.SHEET)
    designs = {how for *_, how in samples}
    how = designs.pop() if len(designs) == 1 else Design.UNKNOWN
    whole = _merged(samples)
    return Judged(_merged(read), whole, how.of(whole))


def _of_drawn(
    read: Sequence[tuple[str, pl.DataFrame, Design]],
    samples: Sequence[tuple[str, pl.DataFrame, Design]],
    pools: Sequence[DrawnPool],
) -> Judged:
    """Judgements of a drawn pool; without its folder they count like the judgements of any pool."""
    labels, judged = _merged(read), _merged(samples)
    if not pools:
        return Judged(labels, judged, Design.DRAWN)
    if judged.is_empty():
        raise ArgumentError("judged", "must hold judgements: no sheet of the drawn pool is filled in.")
    return Judged(labels, None, Design.DRAWN, DrawnJudgements(pools[0], judged))


def _merged(read: Sequence[tuple[str, pl.DataFrame, Design]]) -> pl.DataFrame:
    """Judgements of all sources together, which must not contradict each other."""
    found = read[0][1]
    for i, (name, frame, _) in enumerate(read[1:], 1):
        before = ", ".join(dict.fromkeys(name for name, *_ in read[:i]))
        with naming({"first": before, "second": name}, "`judged`: "):
            found = merged(found, frame)
    return found


def box_of(
    ready: Prepared,
    sparsity: tuple[float, float] | None,
    correlation: tuple[float, float] | None,
    judged: Judged,
    sample: pl.DataFrame | None,
    graph: KnowledgeGraph | None,
    ci: float,
) -> tuple[Box, pl.DataFrame]:
    """Stated ranges, narrowed or replaced by the results of judging, and the table of these results."""
    own = None if correlation is None else dict.fromkeys(ready.systems, correlation)
    source = {"sparsity": GIVEN if sparsity else None, "correlation": GIVEN if own else None}
    if judged.labels is not None and graph is None:
        raise ArgumentError(
            "graph", "must be given with judgements, because it says which answers are known."
        )
    if judged.labels is not None and graph is not None:
        with naming(lambda _: "`judged`"):
            require_names(judged.labels, graph)
        if not judged.labels["query"].is_in(ready.queries["query"].implode()).any():
            raise ArgumentError("judged", "must judge queries that the systems answer, got none such.")
    if judged.drawn is not None:
        return _box_of_drawn(ready, Box(sparsity, own, source), correlation, judged.drawn, ci)
    if judged.sample is None or graph is None:
        return Box(sparsity, own, source), pl.DataFrame(schema=JUDGED)
    how = design_of(judged.design, judged.sample, sample)
    options: Any = {"ci": ci, "sample": sample, "design": how}
    groups = ((), ("side", "category"))
    with naming({"qrels": "`judged`"}):
        seen = pl.concat([strengths_of(ready, judged.sample, graph, by=by, **options) for by in groups])
    whole = seen.filter(pl.col("side").is_null())
    share, low, high = whole.select("sparsity", "sparsity_low", "sparsity_high").row(0)
    bound = None
    if how.estimates:
        sparsity, source["sparsity"] = _both(sparsity, (low, high), how)
    elif sparsity is None:
        bound = share if low is None else low, min(share, _MOST)
        source["sparsity"] = _from(how)
    if max((sparsity or (0.0,))[-1], (bound or (0.0,))[0]) >= 1:
        least = (sparsity or bound or (1.0,))[0]
        raise ArgumentError(
            "judged", f"must leave known answers, but gives a sparsity of {least:.3f} to 1. State `sparsity`."
        )
    if how.estimates and ready.depth is not None:
        limits = whole.select("model", "correlation_low", "correlation_high")
        if limits["correlation_low"].is_not_null().any():
            # A system that finds all or no answers has no correlation, so any value serves.
            rows = limits.fill_null(0.0).rows()
            both = {name: _both(correlation, (low, high), how) for name, low, high in rows}
            own = {name: limits for name, (limits, _) in both.items()}
            # The longest text, so that it is "given" only if no range is narrowed.
            source["correlation"] = max((told for _, told in both.values()), key=len)
    box = Box(sparsity, own, source, bound, limit=share if low is None else low)
    if how.estimates:
        told = _unevenness(ready, judged.sample, graph, options)
        if told is not None:
            box = box._replace(unevenness=told, source=source | {"unevenness": _from(how)})
    return box, seen


def _box_of_drawn(
    ready: Prepared, box: Box, correlation: tuple[float, float] | None, drawn: DrawnJudgements, ci: float
) -> tuple[Box, pl.DataFrame]:
    """Ranges with the results of a drawn pool: the least sparsity and, if a range is stated, correlations."""
    shown = shown_by(ready, drawn, box.sparsity, ci)
    found = shown.missing
    if found is None:
        return box._replace(unused=shown.why), pl.DataFrame(schema=JUDGED)
    source, own = dict(box.source), box.correlation
    sparsity, bound = box.sparsity, None
    if sparsity is None:
        bound = found.low, min(found.value if found.value is not None else found.low, _MOST)
        source["sparsity"] = _from(Design.DRAWN)
    else:
        sparsity, source["sparsity"] = _both(sparsity, (found.low, 1.0), Design.DRAWN)
    if shown.correlations:
        rest = correlation or (0.0, 0.0)
        both = {
            name: _both(correlation, shown.correlations[name], Design.DRAWN)
            if name in shown.correlations
            else (rest, GIVEN)
            for name in ready.systems
        }
        own = {name: limits for name, (limits, _) in both.items()}
        source["correlation"] = max((told for _, told in both.values()), key=len)
    stated = box.sparsity
    box = box._replace(sparsity=sparsity, correlation=own, source=source, found=bound, limit=found.low)
    box = box._replace(contradicted=stated is not None and found.low > stated[1])
    return box, judged_rows(ready, drawn, shown)


def _unevenness(
    ready: Prepared, qrels: pl.DataFrame, graph: KnowledgeGraph, options: dict[str, Any]
) -> tuple[Unevenness, ...] | None:
    """Unevenness of missing rates, fitted to completely judged queries; None if these are too few."""
    of = {name: options[name] for name in ("sample", "design")}
    kept, found, _ = known_and_found(qrels, graph, split=ready.split or "test", level=1, **of)
    counts = kept.group_by("query").agg(known=pl.len())
    counts = counts.join(found.group_by("query").agg(missing=pl.len()), on="query", how="left")
    counts = counts.join(ready.queries.select("query"), on="query", how="semi").fill_null(0)
    if len(counts) < _FEWEST:
        return None
    missing = counts["missing"].to_numpy().astype(np.int64)
    return fitted_unevenness(missing, missing + counts["known"].to_numpy().astype(np.int64), options["ci"])


# Least number of judged queries for a fit of the unevenness.
_FEWEST = 50


def _both(
    stated: tuple[float, float] | None, estimated: tuple[float, float], design: Design
) -> tuple[tuple[float, float], str]:
    """The overlap of a stated range and an estimate, and its source.

    If the two do not overlap, the stated range is kept.
    """
    if stated is None:
        return estimated, _from(design)
    low, high = max(stated[0], estimated[0]), min(stated[1], estimated[1])
    if low > high or (low, high) == stated:
        return stated, GIVEN
    return (low, high), f"{GIVEN}, and {_from(design)}"


# Largest found share, so that some answers are still known.
_MOST = 0.999


def _from(design: Design) -> str:
    """Source of a sparsity that is estimated, in words."""
    return f"judgements of {design.in_words}" if design is not Design.UNKNOWN else design.in_words
