"""Pools: the best answers of all systems, to be judged."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ir import POOLED, UNJUDGED, Judged, judged_at
from owkg.judge.qrels import judgements_checked
from owkg.judge.runs import ranked
from owkg.judge.schema import ASKED, QRELS, checked, once

POOL = (*ASKED, "answer")
"""Columns that identify the candidate in a row of a pool."""

_PAIR = ["query", "answer"]


def pool(run: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Union of the best `depth` answers of all systems to each query.

    Args:
        run: table with columns model, query, side, entity, relation, answer, score.
        depth: depth of the pool, at least 1.

    Returns:
        Columns query, side, entity, relation, answer; depth, the smallest rank of the answer in any system,
        which is the depth of the shallowest pool that holds it; systems, the number of systems that list it
        within `depth`; models, their names. Ordered by query, depth, answer.

    Raises:
        ValueError: if the run is malformed or empty, or `depth` is not a whole number of at least 1.

    Examples:
        >>> from owkg.judge.runs import run_from_lists
        >>> labels = {"entities": ["a", "b", "c"], "relations": ["r"]}
        >>> one = run_from_lists("one", "tail", [0], [0], [[1, 2]], [[2, 1]], **labels)
        >>> two = run_from_lists("two", "tail", [0], [0], [[2, 0]], [[2, 1]], **labels)
        >>> pool(pl.concat([one, two]), 2).select("answer", "depth", "models").rows()
        [('b', 1, ['one']), ('c', 1, ['one', 'two']), ('a', 2, ['two'])]

    References:
        Zhou et al. (SIGIR 2022), section 3; Spärck Jones and van Rijsbergen (1975).
    """
    lists = _to_depth(run, depth)
    return (
        lists.group_by(POOL)
        .agg(depth=pl.col("rank").min(), systems=pl.len().cast(pl.Int64), models=pl.col("model").sort())
        .sort("query", "depth", "answer")
    )


def within_budget(candidates: pl.DataFrame, budget: int | None, *, seed: int = 0) -> pl.DataFrame:
    """Candidates that fit a budget of judgements, the shallowest depths first.

    At each depth, the candidates of a query come together, and the queries have a random order that is the
    same at every depth. The selection ends at the first query whose candidates do not fit, so that queries
    with few candidates are not preferred.

    Args:
        candidates: result of `pool`, or some of its rows.
        budget: largest number of candidates, at least 1; None: all.
        seed: seed of the order. Default 0. The order depends on the seed and the queries, not on the order of
            the rows.

    Returns:
        The selected rows, in their order.

    Raises:
        ValueError: if the candidates are malformed, or an argument is out of range.

    Examples:
        >>> asked = {"side": "tail", "entity": "a", "relation": "r", "query": "a|r|?"}
        >>> rows = [asked | {"answer": a, "depth": depth} for a, depth in (("b", 1), ("c", 2), ("d", 2))]
        >>> [len(within_budget(pl.DataFrame(rows), most)) for most in (1, 2, 3)]
        [1, 1, 3]
    """
    frame = candidates_checked(candidates)
    number = checks.seed("seed", seed)
    if budget is None:
        return candidates
    most = checks.whole("budget", budget, 1)
    queries = frame["query"].unique().sort()
    order = np.random.default_rng(number).permutation(len(queries))
    layers = (
        candidates.group_by("depth", "query")
        .agg(pl.len())
        .join(pl.DataFrame({"query": queries, "_order": order}), on="query")
        .sort("depth", "_order")
        .filter(pl.col("len").cum_sum() <= most)
    )
    return candidates.join(layers, on=["depth", "query"], how="semi", maintain_order="left")


def pool_sizes(candidates: pl.DataFrame, qrels: pl.DataFrame | None = None) -> pl.DataFrame:
    """Sizes of the pools of all depths up to the depth of `candidates`.

    Args:
        candidates: result of `pool`.
        qrels: judgements of some candidates. Default None: none.

    Returns:
        One row for each depth: depth, candidates, queries; with `qrels` also judged and relevant (relevance
            above 0) among the candidates. All numbers are cumulative.

    Raises:
        ValueError: if a frame is malformed or empty.
    """
    frame = _pooled(candidates)
    depths = pl.DataFrame({"depth": np.arange(1, int(frame["depth"].max()) + 1)})  # pyright: ignore[reportArgumentType]
    counts = [pl.len().alias("candidates"), pl.col("new").sum().alias("queries")]
    frame = frame.sort("depth").with_columns(new=pl.col("query").is_first_distinct())
    if qrels is not None:
        relevances = judgements_checked("qrels", qrels).select(*_PAIR, "relevance")
        frame = frame.join(relevances, on=_PAIR, how="left")
        counts += [
            (pl.col("relevance") >= 0).sum().alias("judged"),
            (pl.col("relevance") > 0).sum().alias("relevant"),
        ]
    at_depth = frame.group_by("depth").agg(counts)
    return (
        depths.join(at_depth, on="depth", how="left", maintain_order="left")
        .with_columns(pl.exclude("depth").fill_null(0).cast(pl.Int64).cum_sum())
        .select("depth", *at_depth.columns[1:])
    )


def judged_pool(candidates: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Judgements of the pool by an annotator who knows all answers: 1 for an answer of `truth`, else 0.

    Args:
        candidates: result of `pool`.
        truth: judgements in which exactly the relevant answers have a relevance above 0.

    Raises:
        ValueError: if a frame is malformed.
    """
    frame = candidates_checked(candidates)
    relevant = judgements_checked("truth", truth).filter(pl.col("relevance") > 0).select(*_PAIR, "relevance")
    found = frame.join(relevant, on=_PAIR, how="left", maintain_order="left")
    return found.with_columns(relevance=pl.col("relevance").is_not_null().cast(pl.Int64)).select(QRELS)


def unique_contributions(
    run: pl.DataFrame, qrels: pl.DataFrame, depth: int, *, kept: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Answers that each system alone brings into the pool.

    Args:
        run: table with columns model, query, side, entity, relation, answer, score.
        qrels: judgements.
        depth: depth of the pool.
        kept: judgements that do not come from the pool; their answers count as unique to no system. Default
            None: none.

    Returns:
        One row for each system, ordered by name: model, pooled (number of its answers in the pool), unique
            (answers that no other system and not `kept` brings), unique_relevant (unique answers with a
            relevance above 0).

    Raises:
        ValueError: if a frame is malformed.
    """
    return contributions_of(graded_lists(run, qrels, depth, kept=kept))


def contributions_of(lists: pl.DataFrame) -> pl.DataFrame:
    """Result of `unique_contributions` for lists from `graded_lists`."""
    relevant = pl.col("relevance").fill_null(POOLED) > 0
    return (
        lists.group_by("model")
        .agg(
            pooled=pl.len().cast(pl.Int64),
            unique=pl.col("alone").sum().cast(pl.Int64),
            unique_relevant=(pl.col("alone") & relevant).sum().cast(pl.Int64),
        )
        .sort("model")
    )


def graded_lists(
    run: pl.DataFrame, qrels: pl.DataFrame, depth: int, *, kept: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Lists to `depth` with their relevances, and whether only one system lists each answer.

    Args: as in `unique_contributions`.

    Returns:
        The rows and columns of `owkg.judge.runs.ranked`, in its order, and relevance, null if `qrels` lacks
        the answer; alone, whether no other system lists the answer within `depth` and `kept` lacks it.

    Raises:
        ValueError: if a frame is malformed.
    """
    lists = _to_depth(run, depth)
    relevances = judgements_checked("qrels", qrels).select(*_PAIR, "relevance")
    lists = lists.join(relevances, on=_PAIR, how="left", maintain_order="left")
    alone = pl.len().over(_PAIR) == 1
    if kept is None:
        return lists.with_columns(alone=alone)
    stay = judgements_checked("kept", kept).filter(pl.col("relevance") != POOLED).select(*_PAIR, stays=True)
    lists = lists.join(stay, on=_PAIR, how="left", maintain_order="left")
    return lists.with_columns(alone=alone & pl.col("stays").is_null()).drop("stays")


def leave_one_out(
    run: pl.DataFrame, qrels: pl.DataFrame, depth: int, *, kept: pl.DataFrame | None = None
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Judgements for each system as they would be if it had not been pooled.

    The unique contributions of the system, relevant or not, become unjudged. If a measure of the system falls
    as a result, the pool is biased against systems that were not in it. A query that would lose all its
    judgements keeps them as pooled and not judged, so that all results cover the same queries.

    Args:
        run: table with columns model, query, side, entity, relation, answer, score.
        qrels: judgements of the pool, and possibly others.
        depth: depth of the pool.
        kept: judgements that do not come from the pool, such as those of the test set; they stay. Default
            None: none.

    Yields:
        (model, judgements), ordered by the name of the model.

    Raises:
        ValueError: if a frame is malformed.

    References:
        Zobel (SIGIR 1998), section 4.
    """
    judgements = judgements_checked("qrels", qrels)
    lists = graded_lists(run, judgements, depth, kept=kept)
    models = lists["model"].unique().sort().to_list()
    whose = judgements.join(
        lists.filter("alone").select(*_PAIR, "model"), on=_PAIR, how="left", maintain_order="left"
    )
    return _without_each(whose.with_columns(number=pl.col("query").rank("dense")), models)


def _without_each(whose: pl.DataFrame, models: list[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Judgements without each model; `whose` has the model that alone lists an answer."""
    for model in models:
        gone = pl.col("model").eq_missing(model)
        relevance = pl.when(gone).then(pl.lit(POOLED, pl.Int64)).otherwise("relevance")
        left = whose.filter(~gone | gone.all().over("number")).with_columns(relevance=relevance)
        yield model, left.select(QRELS)


def judged_share(run: pl.DataFrame, qrels: pl.DataFrame, k: int) -> pl.DataFrame:
    """Judged@k of each system: share of its first k answers that are judged, averaged over all queries.

    Args:
        run: table with columns model, query, side, entity, relation, answer, score.
        qrels: judgements of every query of the run. A judged query that a system does not answer counts 0.
        k: cut-off, at least 1.

    Returns:
        One row for each system, ordered by name: model, judged.

    Raises:
        ValueError: if a frame is malformed, or the run answers a query that has no judgement.
    """
    deep = checks.whole("k", k, 1)
    judgements = judgements_checked("qrels", qrels)
    lists = graded_lists(run, judgements, deep)
    models = lists["model"].unique().sort()
    share = judged_at(judged_lists(lists, judgements), deep).reshape(len(models), -1).mean(1)
    return pl.DataFrame({"model": models, "judged": share})


def judged_lists(lists: pl.DataFrame, judgements: pl.DataFrame) -> Judged:
    """Lists of all systems as one Judged, with every judged query of the first system by name, then the next.

    Ideal lists are left out, because only nDCG needs them.

    Args:
        lists: result of `graded_lists`.
        judgements: validated judgements of these lists.

    Raises:
        ValueError: if there is no judgement, or the lists answer a query that has none.
    """
    if judgements.is_empty():
        raise ArgumentError("qrels", "must have at least one row, got none.")
    names = judgements["query"].unique().sort()
    places = pl.DataFrame({"query": names, "place": np.arange(len(names))})
    lists = lists.join(places, on="query", how="left", maintain_order="left")
    if len(unjudged := lists.filter(pl.col("place").is_null())):
        raise ArgumentError("run", f"must answer queries that `qrels` judges, got {unjudged['query'][0]!r}.")
    system = lists["model"].rank("dense").to_numpy().astype(np.int64) - 1
    query = system * len(names) + lists["place"].to_numpy()
    systems = int(system.max()) + 1
    known = judgements.join(places, on="query", how="left")
    relevance, place = known["relevance"].to_numpy(), known["place"].to_numpy()
    nothing = np.zeros(0, np.int64)
    return Judged(
        queries=pl.Series(np.arange(systems * len(names))),
        query=query,
        rank=lists["rank"].to_numpy(),
        relevance=lists["relevance"].fill_null(UNJUDGED).to_numpy(),
        retrieved=np.bincount(query, minlength=systems * len(names)),
        relevant=np.tile(np.bincount(place[relevance > 0], minlength=len(names)), systems),
        nonrelevant=np.tile(np.bincount(place[relevance == 0], minlength=len(names)), systems),
        ideal_query=nothing,
        ideal_rank=nothing,
        ideal_relevance=nothing,
        relevance_level=1,
    )


def candidates_checked(candidates: pl.DataFrame) -> pl.DataFrame:
    """Columns `POOL` with each answer of a query once; raises ValueError naming `candidates` otherwise."""
    return once("candidates", checked("candidates", candidates, POOL), *_PAIR)


def _to_depth(run: pl.DataFrame, depth: int) -> pl.DataFrame:
    lists = ranked(run, depth=checks.whole("depth", depth, 1))
    if lists.is_empty():
        raise ArgumentError("run", "must have at least one row, got none.")
    return lists


def _pooled(candidates: pl.DataFrame) -> pl.DataFrame:
    """Columns of a pool with depth, with at least one row."""
    frame = candidates_checked(candidates)
    if "depth" not in candidates.columns or frame.is_empty():
        raise ArgumentError("candidates", "must be a pool with the column depth and at least one row.")
    depth = checks.integer("depth", candidates["depth"].to_numpy(), 1)
    return frame.with_columns(depth=pl.Series(depth))
