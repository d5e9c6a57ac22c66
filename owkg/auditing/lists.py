"""Systems' rank tables and lists as the `Pair`s that breakdown numbers are of."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import Int

from owkg.auditing.breakdown import Pair
from owkg.checks import ArgumentError
from owkg.judge.qrels import qrels_from_graph
from owkg.judge.schema import ASKED, RUN, asked_entity, checked, known_entity, query_text
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.ranks import RankTable

_ANSWER = ("query", "answer")


class Prepared:
    """Ranks and lists of systems, read once; `pair` makes what any two of them make of the queries.

    Attributes:
        queries: a row each: query, side, entity, relation.
        systems: their names.
        num_answers: known answers of all queries together.
        depth: candidates of the longest list; None without lists.
    """

    def __init__(
        self,
        tables: Mapping[str, RankTable | pl.DataFrame],
        graph: KnowledgeGraph | None = None,
        lists: Mapping[str, pl.DataFrame] | None = None,
    ) -> None:
        """Reads the ranks and lists.

        Args:
            tables: rank tables of the same triples and sides, filtered by all splits of the graph that hold
                facts. A tied rank counts as the mean of its bounds, rounded down.
            graph: of the ranks: known answers leave the lists.
            lists: of each, a run (columns of `owkg.judge.read_runs`) of its best candidates to the queries;
                what it leaves out stands below what it lists. None: nothing is listed.

        Raises:
            ValueError: if the tables rank other triples, are not filtered, or have other candidates; if a
                list answers other queries only; if there are lists and no graph.
        """
        one, *others = tables
        tasks = _tasks(one, tables[one]).rename({"rank": "rank_0"})
        for i, name in enumerate(others, 1):
            tasks = _beside(tasks, _tasks(name, tables[name]).rename({"rank": f"rank_{i}"}), one, name)
        spread = tasks.group_by("query").agg(pl.col("candidates").n_unique())
        if (spread["candidates"] > 1).any():
            raise ArgumentError(
                one, "must be filtered, so that the answers to a query have the same candidates."
            )
        self.queries = tasks.select(ASKED).unique("query", maintain_order=True).sort("query")
        at = self.queries.select("query").with_row_index("row")
        tasks = tasks.join(at, on="query").sort("row", "answer")
        self.num_answers = len(tasks)
        row = tasks["row"].to_numpy().astype(np.int64)
        self.systems = tuple(tables)
        self._of = {name: i for i, name in enumerate(tables)}
        self._tasks = tasks
        queries = len(self.queries)
        ranks = (tasks[f"rank_{i}"].to_numpy() for i in range(len(tables)))
        self._known = [_padded(row, own, queries) for own in ranks]
        first = tasks.group_by("row", maintain_order=True).agg(pl.col("candidates").first() - 1)
        self._largest = first["candidates"].to_numpy().astype(np.int64)
        self.depth: int | None = None
        if lists is None:
            return
        if graph is None:
            raise ArgumentError("graph", "must be given with lists: known answers leave them.")
        names = [name for name, triples in fact_splits(graph).items() if len(triples)]
        facts = qrels_from_graph(graph, names).select(_ANSWER)
        listed = pl.DataFrame(schema={"query": pl.String, "answer": pl.String})
        depths = []
        for i, name in enumerate(tables):
            places = _places(name, lists[name], at, facts).rename({"place": f"place_{i}"})
            depths.append(_depths(places, at))
            listed = listed.join(places, on=_ANSWER, how="full", coalesce=True)
        self.depth = int(max(own.max() for own in depths))
        listed = listed.join(at, on="query").sort("row", "answer")
        self._listed = listed.select("row", "answer")
        self._place = [
            listed[f"place_{i}"].fill_null(0).to_numpy().astype(np.int64) for i in range(len(tables))
        ]
        self._depth = depths

    def pair(self, first: str, second: str) -> Pair:
        """What two systems make of the queries, for `owkg.auditing.breakdown`."""
        i, j = self._of[first], self._of[second]
        queries = len(self._largest)
        known = np.stack([self._known[x] for x in (i, j)])
        if self.depth is None:
            none = np.zeros((2, queries, 0), np.int64)
            return Pair(known, none, none, np.ones((2, queries), np.int64), self._largest)
        some = self._some(i, j)
        row = self._listed["row"].to_numpy().astype(np.int64)[some]
        low = np.stack([_padded(row, self._place[x][some], queries) for x in (i, j)])
        named = _padded(row, np.ones(len(row), np.int64), queries) > 0
        depths = np.stack([self._depth[i], self._depth[j]])
        unlisted = (low == 0) & named
        high = np.where(unlisted, self._largest[:, None], low)
        low = np.where(unlisted, depths[:, :, None] + 1, low)
        beyond = np.where((depths < self._largest).all(0), depths + 1, 0)
        return Pair(known, low, high, beyond, self._largest)

    def candidates(self, first: str, second: str) -> pl.DataFrame:
        """The candidates of the pair: query and candidate, its indices there, and answer."""
        if self.depth is None:
            return pl.DataFrame(schema={"query": pl.UInt32, "candidate": pl.Int64, "answer": pl.String})
        some = self._listed.filter(self._some(self._of[first], self._of[second]))
        place = pl.int_range(pl.len()).over("row").alias("candidate")
        return some.select(pl.col("row").alias("query"), place, "answer")

    def of(self, system: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """What a system makes of the queries.

        Returns:
            (query, answer and rank of the known answers; query, answer and place of the unlabelled
            candidates that it lists, from 1).
        """
        i = self._of[system]
        ranks = self._tasks.select(*_ANSWER, rank=f"rank_{i}")
        if self.depth is None:
            return ranks, pl.DataFrame(schema={"query": pl.String, "answer": pl.String, "place": pl.Int64})
        listed = self._listed.with_columns(place=pl.Series(self._place[i]))
        query = self.queries["query"].gather(listed["row"])
        listed = listed.select(query.alias("query"), "answer", "place").filter(pl.col("place") > 0)
        return ranks, listed

    def ranks(self, first: str, second: str) -> tuple[np.ndarray, np.ndarray, int]:
        """(query of each known answer, from 0; its ranks by both systems, [2, answers]; most candidates)."""
        both = (self._tasks[f"rank_{self._of[name]}"].to_numpy() for name in (first, second))
        query = self._tasks["row"].to_numpy().astype(np.int64)
        return query, np.stack([own.astype(np.int64) for own in both]), int(self._largest.max()) + 1

    def _some(self, i: int, j: int) -> np.ndarray:
        """Which candidates one of two systems lists."""
        return (self._place[i] > 0) | (self._place[j] > 0)


def pair_of(
    first: RankTable | pl.DataFrame,
    second: RankTable | pl.DataFrame,
    graph: KnowledgeGraph | None = None,
    lists: tuple[pl.DataFrame, pl.DataFrame] | None = None,
) -> tuple[Pair, pl.DataFrame, pl.DataFrame]:
    """What two systems make of the same queries: `Prepared` of two.

    Returns:
        (the pair; its queries, a row each: query, side, entity, relation; its candidates: query and
        candidate, the indices in the pair, and answer).

    Raises:
        ValueError: as `Prepared`.
    """
    names: tuple[str, str] = ("first", "second")
    runs: dict[str, pl.DataFrame] | None = None
    if lists is not None:
        runs = dict(zip(names, lists, strict=True))
    ready = Prepared(dict(zip(names, (first, second), strict=True)), graph, runs)
    return ready.pair(*names), ready.queries, ready.candidates(*names)


def joined_ranks(first: RankTable | pl.DataFrame, second: RankTable | pl.DataFrame) -> pl.DataFrame:
    """The ranks of two systems for the same answers: rank and rank_right beside query, answer and the rest.

    Raises:
        ValueError: if the tables rank other triples, are not filtered, or have other candidates.
    """
    other = _tasks("second", second).rename({"rank": "rank_right"})
    return _beside(_tasks("first", first), other, "first", "second")


def _beside(tasks: pl.DataFrame, other: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
    """The tasks with the ranks of another system, which ranks the same."""
    rank = other.columns[-2]  # before the candidates
    joined = tasks.join(
        other.select(*_ANSWER, rank, candidates_right="candidates"), on=_ANSWER, how="full", coalesce=True
    )
    apart = joined.filter(pl.col("candidates").is_null() | pl.col("candidates_right").is_null())
    if len(apart):
        query, answer = apart.select(_ANSWER).row(0)
        raise ArgumentError(
            second, f"must rank the answers that `{first}` ranks, not so {answer!r} to {query!r}."
        )
    if (joined["candidates"] != joined["candidates_right"]).any():
        raise ArgumentError(second, f"must have the candidates of `{first}`: the same filters and entities.")
    return joined.drop("candidates_right")


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
    tasks = tasks.with_columns(query_text()).select(*ASKED, "answer", "rank", "candidates")
    if tasks.select(pl.struct(_ANSWER).is_duplicated().any()).item():
        raise ArgumentError(name, "must be of one model and one seed: a task stands there twice.")
    return tasks


def _places(name: str, run: pl.DataFrame, at: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """The place of each unlabelled candidate among those of its list, from 1."""
    frame = checked("lists", run, RUN).join(at, on="query", how="semi").join(facts, on=_ANSWER, how="anti")
    if not len(frame):
        raise ArgumentError(
            "lists", f"must list candidates for the ranked queries, and that of {name} has none."
        )
    ordered = frame.sort("query", "score", descending=[False, True], maintain_order=True)
    return ordered.select(*_ANSWER, place=pl.int_range(1, pl.len() + 1).over("query"))


def _depths(places: pl.DataFrame, at: pl.DataFrame) -> np.ndarray:
    counts = places.group_by("query").agg(pl.len())
    sizes = at.join(counts, on="query", how="left", maintain_order="left")["len"]
    return sizes.fill_null(0).to_numpy().astype(np.int64)


def _padded(
    row: Int[np.ndarray, "n"], values: Int[np.ndarray, "n"], queries: int
) -> Int[np.ndarray, "queries most"]:
    """Values of rows in increasing order, 0 where a query has no more."""
    place = np.arange(len(row)) - np.searchsorted(row, row)
    found = np.zeros((queries, int(place.max(initial=-1)) + 1), np.int64)
    found[row, place] = values
    return found
