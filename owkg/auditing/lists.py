"""Rank tables and lists of systems as `Pair`s, the input of breakdown numbers."""

import copy
import math
from collections.abc import Mapping

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int

from owkg.auditing.breakdown import Pair
from owkg.errors import ArgumentError
from owkg.judge.qrels import binary, qrels_from_graph
from owkg.judge.schema import ASKED, RUN, checked
from owkg.judge.scores import runs_of
from owkg.kg import KnowledgeGraph, known_splits
from owkg.kg.names import asked_entity, known_entity, query_text
from owkg.metrics.ties import Ties, half_rank_weights
from owkg.rank_weights import RankWeight, tie_expectation
from owkg.ranks import RankTable
from owkg.ranks.annotate import ranked_split

_ANSWER = ("query", "answer")
# Tolerated share of known answers whose place in a list is not their rank, because scores are rounded.
_ASTRAY = 0.01


class Prepared:
    """Ranks and lists of systems, read once; `pair` gives the ranks of any two systems.

    Attributes:
        queries: one row for each query: query, side, entity, relation.
        systems: names of the systems.
        num_answers: number of known answers of all queries together.
        num_found, num_rejected: numbers of candidates that `labelled` made answers, and that it ruled out.
        num_disputed: number of known answers that were judged not relevant; they stay answers.
        depth: length of the longest list; None without lists.
        split: smallest split of the graph that holds the ranked triples; None without such a split or a
            graph.
    """

    def __init__(
        self,
        tables: Mapping[str, RankTable | pl.DataFrame],
        graph: KnowledgeGraph | None = None,
        lists: Mapping[str, pl.DataFrame] | None = None,
        ties: str = Ties.REALISTIC,
        *,
        all_ranked: bool = False,
    ) -> None:
        """Reads the ranks and lists.

        Args:
            tables: rank tables by system, of the same triples, filtered by all known splits of the graph
                (`owkg.kg.known_splits`). If a table has several seeds (column seed), every seed is read.
            graph: graph of the ranks; its known answers are removed from the lists.
            lists: run of each system (columns of `owkg.judge.read_runs`) with its best candidates for the
                queries. Candidates that a list leaves out are below its last candidate, or tied with it if
                the list ends in a tie. Default: no lists.
            ties: tie rule. Optimistic and pessimistic resolve ties; any other rule keeps them.
            all_ranked: whether the tables rank every known answer in the lists, so that no graph is needed to
                identify known answers.

        Raises:
            ValueError: if the tables rank other triples, are not filtered, or have other candidates; if a
                list has none of the queries, or disagrees with the ranks; if there are lists but no graph, or
                lists and a system with several seeds.
        """
        runs, owners = runs_of(tables)
        several = [name for name, seed in owners if seed is not None]
        if several and lists is not None:
            raise ArgumentError(
                "lists",
                "must be left out if systems have several seeds, because a list belongs to one run: "
                f"{several[0]!r} has {several.count(several[0])} seeds.",
            )
        one, *others = runs
        self._ties = Ties(ties)
        tasks = _numbered(_tasks(one, runs[one]), 0)
        for i, name in enumerate(others, 1):
            tasks = _beside(tasks, _numbered(_tasks(name, runs[name]), i), one, name)
        spread = tasks.group_by("query").agg(pl.col("candidates").n_unique())
        if (spread["candidates"] > 1).any():
            raise ArgumentError(
                one, "must be filtered, so that the answers to a query have the same candidates."
            )
        self.queries = tasks.select(ASKED).unique("query", maintain_order=True).sort("query")
        at = self.queries.select("query").with_row_index("row")
        tasks = tasks.join(at, on="query").sort("row", "answer")
        self.num_answers = len(tasks)
        self.split = None if graph is None else ranked_split(next(iter(tables.values())), graph)
        row = tasks["row"].to_numpy().astype(np.int64)
        self.systems = tuple(tables)
        self._runs = {
            name: [i for i, (owner, _) in enumerate(owners) if owner == name] for name in self.systems
        }
        self._of = {name: own[0] for name, own in self._runs.items()}
        self._tasks = tasks
        queries = len(self.queries)
        ends = {Ties.OPTIMISTIC: ("low", "low"), Ties.PESSIMISTIC: ("high", "high")}
        self._known, self._latest = (
            [_padded(row, tasks[f"{end}_{i}"].to_numpy(), queries) for i in range(len(runs))]
            for end in ends.get(self._ties, ("low", "high"))
        )
        # Upper bounds of the optimistic ranks: ranks of answers that judging found are only known within
        # bounds.
        self._settled = self._known
        first = tasks.group_by("row", maintain_order=True).agg(pl.col("candidates").first() - 1)
        self._largest = first["candidates"].to_numpy().astype(np.int64)
        self.depth: int | None = None
        self.num_found = self.num_rejected = self.num_disputed = 0
        if lists is None:
            return
        if graph is None and not all_ranked:
            raise ArgumentError(
                "graph", "must be given with lists, because known answers are removed from them."
            )
        facts = tasks.select(_ANSWER)
        if graph is not None:
            known = qrels_from_graph(graph, known_splits(graph, self.split))
            facts = pl.concat([known.select(_ANSWER), facts])
        self._facts = facts
        listed = pl.DataFrame(schema={"query": pl.String, "answer": pl.String})
        depths, below, ends = [], [], []
        for i, name in enumerate(tables):
            run = checked("lists", lists[name], RUN).join(at, on="query", how="semi")
            places = _places(name, run.join(facts, on=_ANSWER, how="anti"), at, self._largest)
            _agrees(name, run, places, tasks.select(*_ANSWER, low=f"low_{i}", high=f"high_{i}"))
            depths.append(_by_row(places, at, pl.len()))
            # The last candidate of a list may be tied with candidates that the list leaves out.
            last = pl.col("low").max()
            ends.append(np.maximum(_by_row(places, at, last), 1))
            end = pl.len() + 1 if self._ties is Ties.PESSIMISTIC else last
            below.append(np.maximum(_by_row(places, at, end), 1))
            own = ("place", "low", "late", "high")
            places = places.select(*_ANSWER, *own).rename({column: f"{column}_{i}" for column in own})
            listed = listed.join(places, on=_ANSWER, how="full", coalesce=True)
        self.depth = int(max(own.max() for own in depths))
        listed = listed.join(at, on="query").sort("row", "answer")
        self._listed = listed.select("row", "answer")
        bounds = {Ties.OPTIMISTIC: ("low", "low"), Ties.PESSIMISTIC: ("late", "high")}
        self._place, self._first, self._last, self._low, self._high = (
            [listed[f"{name}_{i}"].fill_null(0).to_numpy().astype(np.int64) for i in range(len(tables))]
            for name in ("place", "low", "high", *bounds.get(self._ties, ("low", "high")))
        )
        self._depth, self._below, self._ends = depths, below, ends

    def answers(self) -> pl.DataFrame:
        """Known answers to the queries, as judgements."""
        return self._tasks.select(*ASKED, "answer", relevance=pl.lit(1, pl.Int64))

    def found(self, qrels: pl.DataFrame, graph: KnowledgeGraph) -> int:
        """Number of answers to the queries that are judged relevant and not known; no lists are needed.

        Args:
            qrels: judgements, as returned by `owkg.judge.read_judgements`.
            graph: graph whose facts are known.
        """
        known = qrels_from_graph(graph, known_splits(graph, self.split))
        found = binary(qrels).filter(pl.col("relevance") > 0).join(self.queries, on="query", how="semi")
        for facts in (known, self._tasks):
            found = found.join(facts, on=_ANSWER, how="anti")
        return len(found)

    def labelled(self, qrels: pl.DataFrame) -> "Prepared":
        """A copy in which relevant judged candidates are answers and all other judged ones are ruled out.

        If a list leaves out a relevant candidate, or has it in a tie, its place is only known within bounds.
        The ranks of answers and the places of candidates that may be below it are then known within bounds as
        well. The bounds hold for any place. `of` and `ranks` still return the ranks of the test.

        Args:
            qrels: judgements, as returned by `owkg.judge.read_judgements`. Candidates without a judgement
                stay candidates.

        Raises:
            ValueError: if there are no lists.
        """
        if self.depth is None:
            raise ArgumentError(
                "lists", "must be given with labels, because they have the places of candidates."
            )
        at = self.queries.select("query").with_row_index("row")
        labels = binary(qrels).join(at, on="query")
        judged = labels.join(self._facts, on=_ANSWER, how="anti")
        judged = judged.select(*_ANSWER, "row", "relevance")
        here = self._listed.with_row_index("at").join(at, on="row").select(*_ANSWER, "at")
        judged = judged.join(here, on=_ANSWER, how="left").sort("row", "answer")
        found = judged.filter(pl.col("relevance") > 0)
        row = found["row"].to_numpy().astype(np.int64)
        listed = found["at"].fill_null(-1).to_numpy()
        gone = judged.filter(pl.col("relevance") >= 0)["at"].drop_nulls().to_numpy()
        stays = np.ones(len(self._listed), bool)
        stays[gone] = False
        new = copy.copy(self)
        new.num_disputed = len(labels.filter(relevance=0).join(self._tasks, on=_ANSWER, how="semi"))
        new.num_found = len(found)
        new.num_rejected = len(gone) - int((listed >= 0).sum())
        new.num_answers = self.num_answers + len(found)
        new._largest = self._largest - np.bincount(row, minlength=len(self._largest))
        new._listed = self._listed.filter(stays)
        new._place = [place[stays] for place in self._place]
        names = ("_known", "_settled", "_latest", "_low", "_high", "_below", "_depth")
        of_systems = [self._without(i, row, listed, stays, new) for i in range(len(self.systems))]
        for name, values in zip(names, zip(*of_systems, strict=True), strict=True):
            setattr(new, name, list(values))
        return new

    def _without(
        self,
        i: int,
        row: Int[np.ndarray, "found"],
        listed: Int[np.ndarray, "found"],
        stays: Bool[np.ndarray, "listed"],
        new: "Prepared",
    ) -> tuple[np.ndarray, ...]:
        """Ranks, places and lists of a system without the found answers, in the order of `labelled`.

        Args:
            i: index of the system.
            row, listed: query of each found answer, and its index among listed candidates; -1 if not listed.
            stays: whether a listed candidate remains a candidate.
            new: copy whose candidates are already counted.
        """
        named = listed >= 0
        named[named] = self._place[i][listed[named]] > 0
        outside = (self._ends[i], self._largest, self._below[i], self._largest)
        spans = [other[row] for other in outside]
        for span, of in zip(spans, (self._first, self._last, self._low, self._high), strict=True):
            span[named] = of[i][listed[named]]
        first, last, low, high = spans
        # Found answers that may be at a place or above it, and found answers that surely are.
        may, sure = _Found(row, first), _Found(row, last)
        # A tied answer counts as above, unless ties are resolved in favour.
        strict = 1 if self._ties is Ties.OPTIMISTIC else 0
        own = np.maximum(low - may.above(row, low - 1) + (first <= low - 1), 1)
        most = high - sure.above(row, high - strict) + (last <= high - strict)
        most = np.clip(most, own, new._largest[row] + 1)
        answers = []
        at, there = np.nonzero(self._known[i])
        order = np.argsort(np.concatenate([at, row]), kind="stable")
        latest = self._latest[i][at, there]
        latest = latest - sure.above(at, latest - 1)
        for of, above, more in (
            (self._known, may, own),
            (self._settled, sure, most),
            (self._latest, sure, most),
        ):
            rank = of[i][at, there]
            # Upper bounds of the optimistic rank may exceed a bound of the pessimistic rank, which holds as
            # well.
            rank = np.clip(rank - above.above(at, rank - 1), 1, latest)
            ranks = np.concatenate([rank, more])
            answers.append(_padded(np.concatenate([at, row])[order], ranks[order], len(new._largest)))
        at = new._listed["row"].to_numpy().astype(np.int64)
        low, high = self._low[i][stays], self._high[i][stays]
        is_listed = low > 0
        least = np.maximum(low - may.above(at, low - 1), 1)
        most = np.clip(high - sure.above(at, high - strict), least, new._largest[at])
        every, below = np.arange(len(new._largest)), self._below[i]
        return (
            *answers,
            np.where(is_listed, least, 0),
            np.where(is_listed, most, 0),
            np.maximum(below - may.above(every, below - 1), 1),
            self._depth[i] - np.bincount(row[named], minlength=len(every)),
        )

    def seeds(self, system: str) -> int:
        """Number of seeds of a system."""
        return len(self._runs[system])

    def pairs(
        self, first: str, second: str, weight: RankWeight
    ) -> list[tuple[Pair, Float[np.ndarray, "queries answers"]]]:
        """`pair` and `values` of the first system, for pairs of seeds that hold every seed equally often."""
        one, other = self._runs[first], self._runs[second]
        count = math.lcm(len(one), len(other))
        both = [(one[n % len(one)], other[n % len(other)]) for n in range(count)]
        return [(self._pair(i, j), self._values(i, weight)) for i, j in both]

    def pair(self, first: str, second: str) -> Pair:
        """Ranks of two systems under their first seeds, for `owkg.auditing.breakdown`."""
        return self._pair(self._of[first], self._of[second])

    def _pair(self, i: int, j: int) -> Pair:
        both = i, j
        queries = len(self._largest)
        known, latest = (np.stack([ranks[x] for x in both]) for ranks in (self._known, self._latest))
        if self.depth is None:
            none = np.zeros((2, queries, 0), np.int64)
            return Pair(known, none, none, np.ones((2, queries), np.int64), self._largest, latest)
        some = self._some(i, j)
        row = self._listed["row"].to_numpy().astype(np.int64)[some]
        bounds = [of[x][some] for of in (self._low, self._high) for x in both]
        filled = _padded(row, np.stack([*bounds, np.ones(len(row), np.int64)]), queries)
        low, high, named = filled[:2], filled[2:4], filled[4] > 0
        depths, below = (np.stack([of[x] for x in both]) for of in (self._depth, self._below))
        unlisted = (low == 0) & named
        high = np.where(unlisted, self._largest[:, None], high)
        low = np.where(unlisted, below[:, :, None], low)
        beyond = np.where((depths < self._largest).all(0), below, 0)
        return Pair(known, low, high, beyond, self._largest, latest)

    def values(self, system: str, weight: RankWeight) -> Float[np.ndarray, "queries answers"]:
        """Weights of a system's ranks of the known answers by the tie rule, padded as in `pair`.

        For answers that judging found, and for answers that may be below them, these are lower bounds.
        """
        return self._values(self._of[system], weight)

    def _values(self, i: int, weight: RankWeight) -> Float[np.ndarray, "queries answers"]:
        low, high = (of[i] for of in (self._settled, self._latest))
        there = low > 0
        found = np.zeros(low.shape)
        if self._ties is Ties.EXACT:
            found[there] = tie_expectation(weight, low[there], high[there])
        else:
            found[there] = half_rank_weights(weight, int(high.max()))[(low + high)[there]]
        return found

    def candidates(self, first: str, second: str) -> pl.DataFrame:
        """Candidates of a pair: query and candidate (indices in the pair), and answer."""
        if self.depth is None:
            return pl.DataFrame(schema={"query": pl.UInt32, "candidate": pl.Int64, "answer": pl.String})
        some = self._listed.filter(self._some(self._of[first], self._of[second]))
        place = pl.int_range(pl.len()).over("row").alias("candidate")
        return some.select(pl.col("row").alias("query"), place, "answer")

    def of(self, system: str) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Ranks of the known answers and places of the listed candidates of a system.

        Returns:
            (query, answer and rank of the known answers; query, answer and place, from 1, of the unlabelled
            candidates that the system lists).
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
        """Ranks of the known answers by two systems.

        Returns:
            (query of each answer, from 0; ranks by the tie rule, [2, answers], where the exact rule has the
            middle of tied ranks; largest number of candidates).
        """
        ends = {Ties.OPTIMISTIC: ("low", "low"), Ties.PESSIMISTIC: ("high", "high")}
        ends = ends.get(self._ties, ("low", "high"))
        both = (
            [self._tasks[f"{end}_{self._of[name]}"].to_numpy() for end in ends] for name in (first, second)
        )
        query = self._tasks["row"].to_numpy().astype(np.int64)
        ranks = np.stack([(low + high) / 2 for low, high in both])
        return query, ranks, int(self._largest.max()) + 1

    def _some(self, i: int, j: int) -> np.ndarray:
        """Mask of the candidates that at least one of two systems lists."""
        return (self._place[i] > 0) | (self._place[j] > 0)


class _Found:
    """Places of found answers, to count the found answers above a place of their query."""

    def __init__(self, row: Int[np.ndarray, "found"], place: Int[np.ndarray, "found"]) -> None:
        self.width = int(place.max(initial=0)) + 2
        self.keys = np.sort(row * self.width + place)

    def above(self, row: Int[np.ndarray, "n"], place: Int[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
        """Number of found answers of the row at the place or above it."""
        start = row * self.width
        reach = start + np.clip(place, 0, self.width - 1)
        return np.searchsorted(self.keys, reach, side="right") - np.searchsorted(self.keys, start)


def pair_of(
    first: RankTable | pl.DataFrame,
    second: RankTable | pl.DataFrame,
    graph: KnowledgeGraph | None = None,
    lists: tuple[pl.DataFrame, pl.DataFrame] | None = None,
) -> tuple[Pair, pl.DataFrame, pl.DataFrame]:
    """Ranks of two systems on the same queries: `Prepared` for two systems.

    Returns:
        (pair; its queries, one row each: query, side, entity, relation; its candidates: query and candidate,
        the indices in the pair, and answer).

    Raises:
        ValueError: as in `Prepared`.
    """
    names: tuple[str, str] = ("first", "second")
    runs: dict[str, pl.DataFrame] | None = None
    if lists is not None:
        runs = dict(zip(names, lists, strict=True))
    ready = Prepared(dict(zip(names, (first, second), strict=True)), graph, runs)
    for name in names:
        if ready.seeds(name) > 1:
            raise ArgumentError(name, f"must be of one model and one seed, got {ready.seeds(name)} seeds.")
    return ready.pair(*names), ready.queries, ready.candidates(*names)


def joined_ranks(first: RankTable | pl.DataFrame, second: RankTable | pl.DataFrame) -> pl.DataFrame:
    """Ranks of two systems for the same answers, as columns rank and rank_right.

    A tied rank is the middle of its bounds.

    Raises:
        ValueError: if the tables rank other triples, are not filtered, or have other candidates.
    """
    one, other = (
        _tasks(name, table).with_columns(rank=pl.mean_horizontal("low", "high"))
        for name, table in (("first", first), ("second", second))
    )
    other = other.drop("low", "high").rename({"rank": "rank_right"})
    return _beside(one, other, "first", "second")


def _beside(tasks: pl.DataFrame, other: pl.DataFrame, first: str, second: str) -> pl.DataFrame:
    """The tasks with the ranks of another system, which must rank the same tasks."""
    other = other.drop(ASKED[1:]).rename({"candidates": "candidates_right"})
    joined = tasks.join(other, on=_ANSWER, how="full", coalesce=True)
    apart = joined.filter(pl.col("candidates").is_null() | pl.col("candidates_right").is_null())
    if len(apart):
        query, answer = apart.select(_ANSWER).row(0)
        raise ArgumentError(
            second, f"must rank the answers that {first!r} ranks, which fails for {answer!r} to {query!r}."
        )
    if (joined["candidates"] != joined["candidates_right"]).any():
        raise ArgumentError(second, f"must have the candidates of {first!r}: the same filters and entities.")
    return joined.drop("candidates_right")


def _numbered(tasks: pl.DataFrame, i: int) -> pl.DataFrame:
    return tasks.rename({name: f"{name}_{i}" for name in ("rank", "low", "high")})


def _tasks(name: str, table: RankTable | pl.DataFrame) -> pl.DataFrame:
    frame = RankTable.of(table, source=name).frame
    if "filtered" in frame.columns and not frame["filtered"].all():
        raise ArgumentError(
            name, "must be filtered, because raw ranks say nothing about unlabelled candidates."
        )
    if frame["side"].is_in(["head", "tail"]).not_().any():
        raise ArgumentError(name, "must rank only heads and tails.")
    text = [pl.col(column).cast(pl.String) for column in ("head", "relation", "tail")]
    rank = (pl.col("optimistic") + pl.col("pessimistic")) // 2
    bounds = {"low": pl.col("optimistic"), "high": pl.col("pessimistic")}
    tasks = frame.with_columns(*text).select(
        "side", known_entity(), "relation", asked_entity(), "candidates", rank=rank, **bounds
    )
    tasks = tasks.with_columns(query_text()).select(
        *ASKED, "answer", "candidates", pl.col("rank", "low", "high").cast(pl.Int64)
    )
    twice = tasks.select(pl.struct(_ANSWER).is_duplicated()).to_series()
    if twice.any():
        raise ArgumentError(name, _why_twice(frame, tasks.filter(twice)))
    return tasks


def _why_twice(frame: pl.DataFrame, twice: pl.DataFrame) -> str:
    """Reason why a table has tasks twice: several models or seeds, or repeated rows."""
    several = [name for name in ("model", "seed") if name in frame.columns and frame[name].n_unique() > 1]
    if several:
        return f"must be of one {' and one '.join(several)}, got {frame[several[0]].n_unique()}."
    answer = twice.row(0, named=True)
    count = twice.select(pl.struct(_ANSWER).n_unique()).item()
    return (
        f"must have each task once: the answer {answer['answer']!r} to {answer['query']!r} is there "
        f"twice{f', and {count - 1:,} others' if count > 1 else ''}."
    )


def _places(
    name: str, run: pl.DataFrame, at: pl.DataFrame, largest: Int[np.ndarray, "queries"]
) -> pl.DataFrame:
    """Score and place of each unlabelled candidate of a list, and bounds of the place from ties.

    Returns:
        Columns query, answer, score, place; low and listed: first and last place of the candidates with the
        same score; high: last place that it can have, because candidates that a list leaves out may be tied
        with its end; late: first place that it can have if all other candidates of its score are above it or
        become answers.
    """
    if not len(run):
        raise ArgumentError(
            "lists", f"must list candidates for the ranked queries, but the list of {name!r} has none."
        )
    run = run.select(*_ANSWER, "score").sort("query", "score", descending=[False, True], maintain_order=True)
    size, tied = pl.len().over("query"), pl.len().over("query", "score")
    run = run.with_columns(place=pl.int_range(1, pl.len() + 1).over("query"), size=size, tied=tied)
    run = run.with_columns(listed=pl.col("place").max().over("query", "score"))
    run = run.join(at.with_columns(largest=largest), on="query", how="left", maintain_order="left")
    cut = (pl.col("listed") == pl.col("size")) & (pl.col("size") < pl.col("largest"))
    first = pl.col("listed") - pl.col("tied").cast(pl.Int64) + 1
    return run.select(
        *_ANSWER,
        "score",
        "place",
        "listed",
        low=first,
        late=pl.when(cut).then(first).otherwise("listed"),
        high=pl.when(cut).then("largest").otherwise("listed"),
    )


def _agrees(name: str, run: pl.DataFrame, places: pl.DataFrame, tasks: pl.DataFrame) -> None:
    """Raises ValueError unless the ranks and a list agree on the places of the known answers.

    Args:
        name: name of the system.
        run: its list, including known answers.
        places: places of the unlabelled candidates of the list.
        tasks: query, answer, low and high (optimistic and pessimistic rank) of each known answer.

    Raises:
        ValueError: if they disagree on more than a hundredth of the known answers.
    """
    sizes = places.group_by("query").agg(size=pl.len())
    known = tasks.join(sizes, on="query").join(run.select(*_ANSWER, "score"), on=_ANSWER, how="left")
    last = run.group_by("query").agg(last=pl.col("score").min())
    known = known.join(last, on="query")
    of_score = places.group_by("query", "score").agg(pl.len().alias("here"))
    both = pl.concat([of_score, known.select("query", "score", here=pl.lit(0, pl.UInt32)).drop_nulls()])
    both = both.group_by("query", "score").agg(pl.col("here").sum())
    both = both.sort("query", "score", descending=[False, True])
    both = both.with_columns(listed=pl.col("here").cum_sum().over("query"))
    known = known.join(both, on=["query", "score"], how="left", maintain_order="left")
    lacks = pl.col("score").is_null()
    inside = (pl.col("listed") - pl.col("here") < pl.col("low")) & (
        (pl.col("high") <= pl.col("listed") + 1) | (pl.col("score") == pl.col("last"))
    )
    wrong = known.filter(pl.when(lacks).then(pl.col("high") <= pl.col("size")).otherwise(~inside))
    if len(wrong) <= _ASTRAY * len(known):
        return
    query, answer, low, score = wrong.select(*_ANSWER, "low", "score").row(0)
    what = "does not list it" if score is None else "lists it elsewhere"
    raise ArgumentError(
        "lists",
        f"must list the known answers where the ranks have them: {name!r} ranks {answer!r} to {query!r} "
        f"{low:,}, but its list {what} ({len(wrong):,} of {len(known):,} known answers).",
    )


def _by_row(places: pl.DataFrame, at: pl.DataFrame, of: pl.Expr) -> Int[np.ndarray, "queries"]:
    """An aggregate of the list of each query; 0 for a query without a list."""
    found = places.group_by("query").agg(of.alias("of"))
    found = at.join(found, on="query", how="left", maintain_order="left")["of"]
    return found.fill_null(0).to_numpy().astype(np.int64)


def _padded(
    row: Int[np.ndarray, "n"], values: Int[np.ndarray, "*kinds n"], queries: int
) -> Int[np.ndarray, "*kinds queries most"]:
    """Values by query, padded with 0; `row` is increasing."""
    counts = np.bincount(row, minlength=queries)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    found = np.zeros((*values.shape[:-1], queries, int(counts.max(initial=0))), np.int64)
    found[..., row, place] = values
    return found
