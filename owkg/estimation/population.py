"""Population of a judging task: all queries, the pooled lists, and the known labels of their answers."""

from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ir import POOLED
from owkg.judge.qrels import judgements_checked
from owkg.judge.runs import ranked
from owkg.judge.schema import ASKED

UNKNOWN = -1
"""Label of an unjudged candidate."""

_PAIR = ["query", "answer"]


class Population(NamedTuple):
    """All queries with the pooled lists of all systems, and the answers known before judging.

    Attributes:
        models: names of the systems, ascending.
        queries: table with columns query, side, entity, relation; one row for each query, ordered by its
            text.
        answers: answer of each candidate; candidates are ordered by query and answer.
        query: row of `queries` for each candidate.
        slot: candidate at each rank of each list, [systems, queries, depth]; the number of candidates beyond
            the end of a list.
        label: label of each candidate: 1 (known to be true), 0 (known to be wrong) or `UNKNOWN`.
        outside: number of known answers of each query that no list holds within the depth.
    """

    models: tuple[str, ...]
    queries: pl.DataFrame
    answers: pl.Series
    query: Int[np.ndarray, "candidates"]
    slot: Int[np.ndarray, "systems queries depth"]
    label: Int[np.ndarray, "candidates"]
    outside: Int[np.ndarray, "queries"]

    @property
    def depth(self) -> int:
        """Number of answers of each list that are pooled."""
        return self.slot.shape[2]

    @property
    def unknown(self) -> Int[np.ndarray, "unknown"]:
        """The unjudged candidates, ascending."""
        return np.flatnonzero(self.label == UNKNOWN)

    @property
    def places(self) -> Int[np.ndarray, "systems candidates"]:
        """Rank of each candidate in the list of each system, 0 if the list does not hold it."""
        found = np.zeros((len(self.models), len(self.answers) + 1), np.int32)
        rows = np.arange(len(self.models))[:, None]
        flat = self.slot.reshape(len(self.models), -1)
        found[rows, flat] = np.tile(np.arange(1, self.depth + 1, dtype=np.int32), self.slot.shape[1])
        return found[:, :-1]

    def relevant(self, labels: Float[np.ndarray, "*draws candidates"]) -> Float[np.ndarray, "*draws queries"]:
        """Number of relevant answers of each query under given labels, including those outside the pool."""
        size = len(self.queries)
        if labels.ndim == 1:
            return self.outside + np.bincount(self.query, labels, size)
        return np.stack([self.relevant(one) for one in labels])

    def part(self, rows: Int[np.ndarray, "n"]) -> "Population":
        """The population restricted to some queries, in ascending order of their rows."""
        kept = np.unique(rows)
        at = np.full(len(self.queries), -1, np.int64)
        at[kept] = np.arange(len(kept))
        chosen = np.flatnonzero(at[self.query] >= 0)
        renamed = np.full(len(self.answers) + 1, len(chosen), np.int32)
        renamed[chosen] = np.arange(len(chosen))
        return Population(
            self.models,
            self.queries[kept],
            self.answers.gather(chosen),
            at[self.query[chosen]],
            renamed[self.slot[:, kept]],
            self.label[chosen],
            self.outside[kept],
        )

    def asked(self) -> pl.DataFrame:
        """Table of all candidates, columns query, side, entity, relation, answer."""
        return self.queries[self.query].with_columns(self.answers.alias("answer"))

    def pairs(self, candidates: Int[np.ndarray, "n"]) -> pl.DataFrame:
        """Table of some candidates in the given order, columns query, side, entity, relation, answer."""
        asked = self.queries[self.query[candidates]]
        return asked.with_columns(self.answers.gather(candidates).alias("answer"))

    def labelled(self, qrels: pl.DataFrame) -> Int[np.ndarray, "candidates"]:
        """Relevance of each candidate in some judgements, `UNKNOWN` if they do not judge it."""
        said = qrels.filter(pl.col("relevance") != POOLED).select(
            *_PAIR, (pl.col("relevance") > 0).cast(pl.Int8)
        )
        pairs = pl.DataFrame({"query": self.queries["query"].gather(self.query), "answer": self.answers})
        found = pairs.join(said, on=_PAIR, how="left", maintain_order="left")
        return found["relevance"].fill_null(UNKNOWN).to_numpy()


def population(
    run: pl.DataFrame, depth: int, known: pl.DataFrame | None = None, *, more: pl.DataFrame | None = None
) -> Population:
    """Population of some runs, pooled to a depth.

    Args:
        run: table with columns model, query, side, entity, relation, answer, score, without the known answers
            of train and valid.
        depth: number of answers of each list that are pooled, at least 1.
        known: judgements made before the draw, such as the answers of the test split. Judgements of queries
            that the runs do not answer are ignored. Default None: nothing is known.
        more: candidates that no list holds, columns query, side, entity, relation, answer. Default None:
            none.

    Raises:
        ValueError: if a frame is malformed, or the run is empty.

    Examples:
        >>> from owkg.judge.runs import run_from_lists
        >>> labels = {"entities": ["a", "b", "c"], "relations": ["r"]}
        >>> one = run_from_lists("one", "tail", [0], [0], [[1, 2]], [[2, 1]], **labels)
        >>> two = run_from_lists("two", "tail", [0], [0], [[2, 0]], [[2, 1]], **labels)
        >>> people = population(pl.concat([one, two]), 2)
        >>> people.answers.to_list(), people.slot.tolist()
        (['a', 'b', 'c'], [[[1, 2]], [[2, 0]]])
    """
    deep = checks.whole("depth", depth, 1)
    lists = ranked(run, depth=deep)
    if lists.is_empty():
        raise ArgumentError("run", "must have at least one row, got none.")
    asked = [lists.select(ASKED), *([] if more is None else [more.select(ASKED)])]
    queries = pl.concat(asked).unique("query").sort("query")
    names = lists["model"].unique().sort()
    pairs = [lists.select(_PAIR), *([] if more is None else [more.select(_PAIR)])]
    candidates = pl.concat(pairs).unique().sort(_PAIR).with_row_index("candidate")
    rows = queries.select("query").with_row_index("row")
    lists = lists.join(candidates, on=_PAIR, how="left", maintain_order="left")
    lists = lists.join(rows, on="query", how="left", maintain_order="left")
    system = lists["model"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    slot = np.full((len(names), len(queries), deep), len(candidates), np.int32)
    slot[system, lists["row"].to_numpy(), lists["rank"].to_numpy() - 1] = lists["candidate"].to_numpy()
    query = (
        candidates.join(rows, on="query", how="left", maintain_order="left")["row"]
        .to_numpy()
        .astype(np.int64)
    )
    label = np.full(len(candidates), UNKNOWN, np.int8)
    outside = np.zeros(len(queries), np.int64)
    found = Population(tuple(names), queries, candidates["answer"], query, slot, label, outside)
    if known is None:
        return found
    said = judgements_checked("known", known).join(rows, on="query", how="inner")
    far = said.filter(pl.col("relevance") > 0).join(candidates, on=_PAIR, how="anti")
    outside = np.bincount(far["row"].to_numpy(), minlength=len(queries))
    return found._replace(label=found.labelled(said), outside=outside)
