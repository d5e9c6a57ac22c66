"""Pool bias: the gain of each system from having been pooled."""

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ir import UNJUDGED, Judged, average_precision, bpref, judged_at
from owkg.judge.qrels import judgements_checked
from owkg.pools.pool import contributions_of, graded_lists, judged_lists

_COLUMNS = (
    *("model", "judged", "pooled", "unique", "unique_relevant"),
    *("map", "map_without", "bpref", "bpref_without"),
)


def pool_bias(
    run: pl.DataFrame, qrels: pl.DataFrame, depth: int, *, kept: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Measures of each system under the judgements of a pool, and under those of a pool without the system.

    Without a system, the answers that it alone brought into the pool count as unjudged, both in its list and
    among the answers to be retrieved, so its measures may fall or rise. Only the first `depth` answers of
    each list count.

    Args:
        run: table with columns model, query, side, entity, relation, answer, score; at least two systems.
        qrels: judgements of every query of the run.
        depth: depth of the pool.
        kept: judgements that do not come from the pool, such as those of the test set. Default None: none.

    Returns:
        One row for each system, ordered by name: model; judged, Judged@depth (`owkg.pools.judged_share`; a
            shorter list counts as if its rest were not judged); pooled, unique and unique_relevant
            (`owkg.pools.unique_contributions`); map, map_without, bpref, bpref_without, as means over the
            judged queries.

    Raises:
        ValueError: if a frame is malformed, there is only one system, or the run answers a query that has no
            judgement.

    References:
        Zobel (SIGIR 1998), section 4.
    """
    deep = checks.whole("depth", depth, 1)
    judgements = judgements_checked("qrels", qrels)
    lists = graded_lists(run, judgements, deep, kept=kept)
    systems = lists["model"].n_unique()
    if systems < 2:
        raise ArgumentError("run", f"must hold at least two systems, got {systems}.")
    own = judged_lists(lists, judgements)
    measures = {"judged": judged_at(own, deep), "map": average_precision(own), "bpref": bpref(own)}
    other = _without(own, lists["alone"].to_numpy())
    measures |= {"map_without": average_precision(other), "bpref_without": bpref(other)}
    means = {name: values.reshape(systems, -1).mean(1) for name, values in measures.items()}
    return contributions_of(lists).with_columns(**means).select(_COLUMNS)


def _without(judged: Judged, gone: np.ndarray) -> Judged:
    """The lists with the `gone` answers unjudged."""

    def lost(flag: np.ndarray) -> np.ndarray:
        return np.bincount(judged.query[gone & flag], minlength=len(judged.retrieved))

    return judged._replace(
        relevance=np.where(gone, UNJUDGED, judged.relevance),
        relevant=judged.relevant - lost(judged.relevance > 0),
        nonrelevant=judged.nonrelevant - lost(judged.relevance == 0),
    )
