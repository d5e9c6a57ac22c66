"""Two systems' rank tables and lists as the `Pair` that breakdown numbers are of."""

from typing import Any

import numpy as np
import polars as pl

from owkg.auditing.breakdown import Pair
from owkg.checks import ArgumentError
from owkg.judge.qrels import qrels_from_graph
from owkg.judge.schema import ASKED, RUN, asked_entity, checked, known_entity, query_text
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.ranks import RankTable

_ANSWER = ("query", "answer")


def pair_of(
    first: RankTable | pl.DataFrame,
    second: RankTable | pl.DataFrame,
    graph: KnowledgeGraph,
    lists: tuple[pl.DataFrame, pl.DataFrame] | None = None,
) -> tuple[Pair, pl.DataFrame, pl.DataFrame]:
    """What two systems make of the same queries, for `owkg.auditing.breakdown`.

    Args:
        first, second: rank tables of the same triples and sides, filtered by all splits of the graph that
            hold facts. A tied rank counts as the mean of its bounds, rounded down.
        graph: of the ranks: known answers leave the lists.
        lists: of each, a run (columns of `owkg.judge.read_runs`) of its best candidates to the queries; what
            it leaves out stands below what it lists. None: nothing is listed.

    Returns:
        (the pair; its queries, a row each: query, side, entity, relation; its candidates: query and
        candidate, the indices in the pair, and answer).

    Raises:
        ValueError: if the tables rank other triples, are not filtered, or have other candidates; if a list
            answers other queries only.
    """
    joined = joined_ranks(first, second)
    queries = joined.select(ASKED).unique("query", maintain_order=True).sort("query")
    at = queries.select("query").with_row_index("row")
    tasks = joined.join(at, on="query").sort("row", "answer")
    spread = tasks.group_by("query").agg(pl.col("candidates").n_unique())
    if (spread["candidates"] > 1).any():
        raise ArgumentError(
            "first", "must be filtered, so that the answers to a query have the same candidates."
        )
    largest = (
        tasks.group_by("row", maintain_order=True)
        .agg(pl.col("candidates").first() - 1)["candidates"]
        .to_numpy()
    )
    known = np.stack([_padded(tasks, name, len(queries)) for name in ("rank", "rank_right")])
    names = [name for name, triples in fact_splits(graph).items() if len(triples)]
    facts = qrels_from_graph(graph, names).select(_ANSWER)
    empty = pl.DataFrame(schema={"query": pl.String, "answer": pl.String, "place": pl.Int64})
    places = [empty, empty] if lists is None else [_places(run, at, facts, i) for i, run in enumerate(lists)]
    listed = (
        places[0]
        .join(places[1], on=_ANSWER, how="full", coalesce=True)
        .join(at, on="query")
        .sort("row", "answer")
    )
    depths = np.stack([_depths(part, at) for part in places])
    candidates = listed.with_columns(candidate=pl.int_range(pl.len()).over("row"))
    low = np.stack([_padded(candidates, name, len(queries)) for name in ("place", "place_right")])
    named = _padded(candidates.with_columns(there=pl.lit(1)), "there", len(queries)) > 0
    unlisted = (low == 0) & named
    high = np.where(unlisted, largest[:, None], low)
    low = np.where(unlisted, depths[:, :, None] + 1, low)
    beyond = np.where((depths < largest).all(0), depths + 1, 0)
    found = candidates.select(pl.col("row").alias("query"), "candidate", "answer")
    return Pair(known, low, high, beyond, largest), queries, found


def joined_ranks(first: RankTable | pl.DataFrame, second: RankTable | pl.DataFrame) -> pl.DataFrame:
    """The ranks of two systems for the same answers: rank and rank_right beside query, answer and the rest.

    Raises:
        ValueError: if the tables rank other triples, are not filtered, or have other candidates.
    """
    tables = [_tasks(name, table) for name, table in (("first", first), ("second", second))]
    joined = tables[0].join(
        tables[1].select(*_ANSWER, "rank", "candidates"), on=_ANSWER, how="full", coalesce=True
    )
    apart = joined.filter(pl.col("rank").is_null() | pl.col("rank_right").is_null())
    if len(apart):
        query, answer = apart.select(_ANSWER).row(0)
        raise ArgumentError(
            "second", f"must rank the answers that `first` ranks, not so {answer!r} to {query!r}."
        )
    if (joined["candidates"] != joined["candidates_right"]).any():
        raise ArgumentError("second", "must have the candidates of `first`: the same filters and entities.")
    return joined


def _tasks(name: str, table: Any) -> pl.DataFrame:
    frame = RankTable.of(table, source=name).frame
    if "filtered" in frame.columns and not frame["filtered"].all():
        raise ArgumentError(name, "must be filtered: raw ranks say nothing of unlabelled candidates.")
    if frame["side"].is_in(["head", "tail"]).not_().any():
        raise ArgumentError(name, "must rank heads and tails alone.")
    text = [pl.col(column).cast(pl.String) for column in ("head", "relation", "tail")]
    rank = (pl.col("optimistic") + pl.col("pessimistic")) // 2
    tasks = frame.with_columns(*text).select(
        "side", known_entity(), "relation", asked_entity(), rank.alias("rank"), "candidates"
    )
    tasks = tasks.with_columns(query_text())
    if tasks.select(pl.struct(_ANSWER).is_duplicated().any()).item():
        raise ArgumentError(name, "must be of one model and one seed: a task stands there twice.")
    return tasks


def _places(run: pl.DataFrame, at: pl.DataFrame, facts: pl.DataFrame, number: int) -> pl.DataFrame:
    """The place of each unlabelled candidate among those of its list, from 1."""
    frame = checked("lists", run, RUN).join(at, on="query", how="semi").join(facts, on=_ANSWER, how="anti")
    if not len(frame):
        raise ArgumentError(
            "lists", f"must list candidates for the ranked queries, and list {number + 1} has none."
        )
    ordered = frame.sort("query", "score", descending=[False, True], maintain_order=True)
    return ordered.select(*_ANSWER, place=pl.int_range(1, pl.len() + 1).over("query"))


def _depths(places: pl.DataFrame, at: pl.DataFrame) -> np.ndarray:
    counts = places.group_by("query").agg(pl.len())
    return (
        at.join(counts, on="query", how="left", maintain_order="left")["len"]
        .fill_null(0)
        .to_numpy()
        .astype(np.int64)
    )


def _padded(rows: pl.DataFrame, column: str, queries: int) -> np.ndarray:
    """A column of rows sorted by query, [queries, most], 0 where there are no more."""
    row = rows["row"].to_numpy()
    place = np.arange(len(row)) - np.searchsorted(row, row)
    found = np.zeros((queries, int(place.max(initial=-1)) + 1), np.int64)
    found[row, place] = rows[column].fill_null(0).to_numpy()
    return found
