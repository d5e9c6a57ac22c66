"""Ranking tasks sorted by query and list, cut into blocks of whole queries that fit the processor's cache."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.ranks.tasks import NARROW, Tasks, dense

# Number of tasks of a block: its arrays stay in the cache, and threads seldom wait for each other.
_TASKS = 2**17


class Cases(NamedTuple):
    """Distinct shapes of ranked lists; a list's chance level, best and worst value depend only on its shape.

    Attributes:
        candidates: number of candidates of each task in such a list, without the list's other answers.
        answers: number of answers in such a list.
    """

    candidates: Int[np.ndarray, "cases"]
    answers: Int[np.ndarray, "cases"]


class TieBlocks(NamedTuple):
    """Runs of answers of a list that share both ranks, in random order among the negatives of their tie.

    Attributes:
        start: index of the first answer of the run.
        answers: number of answers in the run.
        before: number of answers of the list ahead of the run.
        ahead: number of positions of the whole list ahead of the run.
        size: number of positions that the run takes, negatives included.
    """

    start: Int[np.ndarray, "runs"]
    answers: Int[np.ndarray, "runs"]
    before: Int[np.ndarray, "runs"]
    ahead: Int[np.ndarray, "runs"]
    size: Int[np.ndarray, "runs"]


class TiedLists(NamedTuple):
    """Lists of a block that have a tied task.

    Attributes:
        lists: indices of the lists.
        tasks: indices of all of their tasks.
        block: these lists as a block of their own, each of which is a query.
    """

    lists: Int[np.ndarray, "tied"]
    tasks: Int[np.ndarray, "tasks"]
    block: "Block"


@dataclass(frozen=True, eq=False)
class Block:
    """Whole queries with their tasks, sorted by list, then by optimistic and by pessimistic rank.

    Attributes:
        tasks: the sorted tasks of the block, a slice of all tasks.
        cases: shapes of the lists of all blocks.
        case: index into `cases` of each list.
        first: index of the first task of each list.
        query: query of each list, counted from 0 within the block; None: each query has one list.
        num_queries: number of queries in the block.
        listed: whether the tasks of a list share their candidates and are filtered by its other answers, so
            that their positions in the list are known. If not, each task is a list of its own.
        start: index of the block's first task among the tasks of all blocks.
    """

    tasks: Tasks
    cases: Cases
    case: Int[np.ndarray, "lists"]
    first: Int[np.ndarray, "lists"]
    query: Int[np.ndarray, "lists"] | None
    num_queries: int
    listed: bool
    start: int = 0
    _sums: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def answers(self) -> Int[np.ndarray, "lists"]:
        """Number of tasks of each list."""
        return np.diff(self.first, append=len(self.tasks.optimistic))

    @cached_property
    def candidates(self) -> Int[np.ndarray, "lists"]:
        """Length of each list, with its answers and all negatives."""
        return self.cases.candidates[self.case].astype(np.int64) + self.answers - 1

    @cached_property
    def list_of(self) -> Int[np.ndarray, "tasks"]:
        """List of each task."""
        return np.repeat(np.arange(len(self.first)), self.answers)

    @cached_property
    def place(self) -> Int[np.ndarray, "tasks"]:
        """Place of each answer among the answers of its list: 1 for the best, 2 for the next, ..."""
        return np.arange(len(self.tasks.optimistic)) - np.repeat(self.first, self.answers) + 1

    @cached_property
    def ties(self) -> TieBlocks:
        """Runs of tied answers of every list."""
        low, high = self.tasks.optimistic, self.tasks.pessimistic
        new = (np.diff(low, prepend=-1) != 0) | (np.diff(high, prepend=-1) != 0) | (self.place == 1)
        start = np.flatnonzero(new)
        answers = np.diff(start, append=len(new))
        before = self.place[start] - 1
        return TieBlocks(
            start,
            answers,
            before,
            low[start].astype(np.int64) - 1 + before,
            answers + high[start].astype(np.int64) - low[start],
        )

    @cached_property
    def tied(self) -> "TiedLists | None":
        """Lists with a tied task; None if they hold more than half of the tasks, so that nothing is saved.

        Under another tie rule, only their values differ.
        """
        low, high = self.tasks.optimistic, self.tasks.pessimistic
        chosen = np.zeros(len(self.first), bool)
        chosen[self.list_of[low < high]] = True
        if 2 * int(self.answers[chosen].sum()) > len(low):
            return None
        lists = np.flatnonzero(chosen)
        tasks = np.flatnonzero(np.repeat(chosen, self.answers))
        answers = self.answers[lists]
        own: Any = (None if column is None else column[tasks] for column in self.tasks)
        first = np.cumsum(answers) - answers
        block = Block(Tasks(*own), self.cases, self.case[lists], first, None, len(lists), self.listed)
        return TiedLists(lists, tasks, block)

    def sorted_halves(self, rule: str, halves: Int[np.ndarray, "tasks"]) -> Int[np.ndarray, "tasks"]:
        """Twice the ranks under a tie rule, ascending within each list; cached for the next metric."""
        if rule not in self._sums:
            width = int(halves.max()) + 1
            key = self.list_of * width + halves
            key.sort()
            self._sums[rule] = key - self.list_of * width
        return self._sums[rule]

    def by_list(self, values: Float[np.ndarray, "tasks"]) -> Float[np.ndarray, "lists"]:
        """Sums over the tasks of each list."""
        if len(self.first) == len(values):
            return values
        return np.bincount(self.list_of, values, len(self.first))

    def by_query(self, values: Float[np.ndarray, "lists"]) -> Float[np.ndarray, "queries"]:
        """Sums over the lists of each query."""
        return values if self.query is None else np.bincount(self.query, values, self.num_queries)

    @cached_property
    def _counts(self) -> Float[np.ndarray, "lists"]:
        return self.answers.astype(np.float64)

    def by_case(
        self, name: Hashable, weight: Float[np.ndarray, "every_task"] | None
    ) -> Float[np.ndarray, "cases"]:
        """Sum of the weights of each case; arguments and caching are the same as in `weights`."""
        key = "case", None if weight is None else name
        if key not in self._sums:
            of_lists = self.answers if weight is None else self.weights(name, weight)[1]
            self._sums[key] = np.bincount(self.case, of_lists, len(self.cases.candidates))
        return self._sums[key]

    def weights(
        self, name: Hashable, weight: Float[np.ndarray, "every_task"] | None
    ) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
        """Weight of each task of the block, and for each list the sums of its weights and of their squares.

        Args:
            name: key that tells weightings apart; the sums are cached under it.
            weight: weight of every task of all blocks; None: each task has weight 1.
        """
        if weight is None:
            return None, self._counts, self._counts
        if name not in self._sums:
            own = weight[self.start : self.start + len(self.tasks.optimistic)]
            self._sums[name] = own, self.by_list(own), self.by_list(own**2)
        return self._sums[name]


def _narrow(tasks: Tasks) -> Tasks:
    """Tasks with 32-bit ranks and candidates if these fit, which halves the memory to read."""
    if tasks.candidates.max() > NARROW:
        return tasks
    narrow = {
        name: getattr(tasks, name).astype(np.int32, copy=False)
        for name in ("optimistic", "pessimistic", "candidates")
    }
    if tasks.optimistic is tasks.pessimistic:
        narrow["pessimistic"] = narrow["optimistic"]
    return tasks._replace(**narrow)


def ordered(tasks: Tasks) -> Tasks:
    """Tasks sorted by query, list, optimistic and pessimistic rank."""
    keys = [tasks.pessimistic, tasks.optimistic, tasks.ranking, tasks.query]
    columns = [column for column in keys[1 if keys[0] is keys[1] else 0 :] if column is not None]
    untied = tasks.optimistic is tasks.pessimistic
    if tasks.query is None:
        return _narrow(tasks)
    if not _is_sorted(columns[::-1]):
        spans = [int(column.max()) + 1 for column in columns]
        if np.prod([float(span) for span in spans]) < 2.0**62:
            key = columns[-1].astype(np.int64)
            for column, span in zip(columns[-2::-1], spans[-2::-1], strict=True):
                key *= span
                key += column
            order = np.argsort(key)
            del key
        else:
            order = np.lexsort(columns)
        sorted_columns: Any = (None if column is None else column[order] for column in _narrow(tasks))
        tasks = Tasks(*sorted_columns)
        if untied:
            tasks = tasks._replace(pessimistic=tasks.optimistic)
        return tasks
    return _narrow(tasks)


def _is_sorted(columns: list[np.ndarray]) -> bool:
    """Whether the rows of the columns ascend, compared by the first column first."""
    equal = np.ones(len(columns[0]) - 1, bool)
    for column in columns:
        before, after = column[:-1], column[1:]
        if (equal & (before > after)).any():
            return False
        equal &= before == after
    return True


def whole_block(tasks: Tasks) -> Block:
    """All tasks as one block."""
    tasks = ordered(tasks)
    n = len(tasks.optimistic)
    query = None if tasks.query is None else tasks.query
    ranking = query if tasks.ranking is None else tasks.ranking
    listed = tasks.filtered is None or bool(tasks.filtered.all())
    if ranking is None:
        first = np.arange(n)
    else:
        new = np.diff(ranking, prepend=-1) != 0
        if query is not ranking and query is not None:
            new |= np.diff(query, prepend=-1) != 0
        first = np.flatnonzero(new)
        inside = tasks.candidates[1:] == tasks.candidates[:-1]
        listed = listed and bool((inside | new[1:]).all())
    if not listed:
        first = np.arange(n)
    answers = np.diff(first, append=n)
    most = int(answers.max()) + 1
    sizes = tasks.candidates[first]
    case = dense(dense(sizes).astype(np.int64) * most + answers)
    cases = Cases(np.zeros(int(case.max()) + 1, np.int64), np.zeros(int(case.max()) + 1, np.int64))
    cases.candidates[case], cases.answers[case] = sizes, answers
    several = query is not None and (not listed or tasks.ranking is not None)
    of_list = query[first].astype(np.int64) if several and query is not None else None
    num_queries = n if query is None else int(query[-1]) + 1
    return Block(tasks, cases, case, first, of_list, num_queries, listed)


def blocks(whole: Block) -> Iterator[Block]:
    """Smaller blocks of whole queries that the block is cut into, in order."""
    n = len(whole.tasks.optimistic)
    if n <= _TASKS:
        yield replace(whole, _sums={})
        return
    # The first list of each query, and the first task of that list.
    new = np.ones(len(whole.first), bool) if whole.query is None else np.diff(whole.query, prepend=-1) != 0
    lists = np.flatnonzero(new)
    begins = whole.first[lists]
    cuts = np.unique(np.searchsorted(begins, np.arange(0, n, _TASKS)))
    cuts = cuts[cuts < len(begins)]
    for low, high in zip(cuts, [*cuts[1:], len(begins)], strict=True):
        begin, end = int(begins[low]), n if high == len(begins) else int(begins[high])
        first, last = int(lists[low]), len(whole.first) if high == len(begins) else int(lists[high])
        columns: Any = (None if column is None else column[begin:end] for column in whole.tasks)
        tasks = Tasks(*columns)
        if whole.tasks.optimistic is whole.tasks.pessimistic:
            tasks = tasks._replace(pessimistic=tasks.optimistic)
        query = None if whole.query is None else whole.query[first:last] - low
        yield Block(
            tasks,
            whole.cases,
            whole.case[first:last],
            whole.first[first:last] - begin,
            query,
            int(high - low),
            whole.listed,
            begin,
        )
