"""Acceptance of the predictions of a run into a graph at a stated precision, from few judgements."""

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError, naming
from owkg.estimation.acceptance import OneSet, State, one_set, outlook
from owkg.estimation.nested_sets import Nested, nested, pilot_places
from owkg.estimation.permanent import permanent_numbers
from owkg.estimation.population import UNKNOWN
from owkg.estimation.relation_sets import LEAST_TESTED, by_relation, nested_by_relation
from owkg.ir import POOLED
from owkg.judge.qrels import judgements_checked, merged
from owkg.judge.runs import ranked, read_runs, without_known
from owkg.kg import KnowledgeGraph, fact_splits, read_graph
from owkg.kg.names import TOPIC
from owkg.pools.annotation import judged_in, write_sheet
from owkg.pools.regions import placed_region, pool_labels

if TYPE_CHECKING:
    import matplotlib.figure

TRIPLE = ("head", "relation", "tail")
SIZE = 1000
"""Default number of predictions in a set that is judged one by one."""
DEPTH = 10
"""Default number of answers of each list that count as predictions."""


class Accepted(NamedTuple):
    """Result of the test of whether predictions of a run have a precision.

    Attributes:
        state: accepted, open or refused. With a test by relation: accepted if some relation is accepted, open
            if none is accepted but some are open.
        precision: the wanted precision.
        level: confidence level.
        method: martingale (one set, judged one by one) or hypergeometric (nested sets from a fixed draw).
        candidates: the predictions of the set, best first: head, relation, tail, score, place, side, query,
            answer, turn (place in the order of judging, from 1), and label (1, 0 or null).
        accepted: the accepted rows of `candidates`, without those judged wrong.
        judged: number of candidates judged so far.
        errors: number of wrong candidates among the judged ones.
        lower: lower confidence limit of the precision of the whole set; None for nested sets.
        statements: sentences that say what is promised and what is not.
        by: table with one row for each relation: relation, candidates, judged, errors, state, lower (null for
            nested sets), accepted; None without a test by relation.
        following: the candidates to judge next, in the order of the draw.
    """

    state: State
    precision: float
    level: float
    method: str
    candidates: pl.DataFrame
    accepted: pl.DataFrame
    judged: int
    errors: int
    lower: float | None
    statements: list[str]
    by: pl.DataFrame | None
    following: pl.DataFrame

    def plot(self) -> "matplotlib.figure.Figure":
        """Figure of the test: its course by number of judgements, its nested sets, or its relations.

        The parts are described in `owkg.plots.acceptance_figure`.
        """
        from owkg.plots.acceptance import acceptance_figure

        return acceptance_figure(self)


def predictions(
    run: pl.DataFrame, graph: KnowledgeGraph, size: int | None = None, *, depth: int = DEPTH
) -> pl.DataFrame:
    """Best predictions of a system that the graph does not know, best first.

    A triple that answers both a head query and a tail query is one prediction, with its better score. Scores
    are compared across queries, unchanged.

    Args:
        run: the run of one system.
        graph: the graph whose facts, of all splits, are known.
        size: number of predictions. Default None: all.
        depth: number of answers of each list that count as predictions. Default 10.

    Raises:
        ValueError: naming `run` or `size`, if the run holds several systems or too few predictions.
    """
    count = None if size is None else checks.whole("size", size, 1)
    if (run["relation"] == TOPIC).any():
        raise ArgumentError("run", "must answer queries of a graph, got topics.")
    names = run["model"].unique().sort().to_list()
    if len(names) != 1:
        raise ArgumentError("run", f"must hold one system, got {', '.join(names)}: `system` selects one.")
    lists = ranked(without_known(run, graph, list(fact_splits(graph))), depth=depth)
    is_tail = pl.col("side") == "tail"
    rows = lists.with_columns(
        head=pl.when(is_tail).then("entity").otherwise("answer"),
        tail=pl.when(is_tail).then("answer").otherwise("entity"),
    ).sort("score", *TRIPLE, "side", descending=[True, False, False, False, False])
    rows = rows.unique(TRIPLE, keep="first", maintain_order=True)
    if count is not None and len(rows) < count:
        raise ArgumentError(
            "size", f"must be at most the {len(rows):,} predictions to depth {depth}, got {count:,}."
        )
    rows = rows if count is None else rows.head(count)
    return rows.select(
        *TRIPLE,
        "score",
        place=pl.int_range(1, len(rows) + 1),
        side="side",
        query="query",
        entity="entity",
        answer="answer",
    )


def accept(
    run: StrPath | pl.DataFrame,
    graph: StrPath | KnowledgeGraph,
    judged: StrPath | pl.DataFrame | Sequence[StrPath] | None = None,
    *,
    precision: float,
    size: int | None = None,
    depth: int = DEPTH,
    system: str | None = None,
    by: str | None = None,
    drawn: int | None = None,
    pilot: StrPath | pl.DataFrame | Sequence[StrPath] | None = None,
    pool: StrPath | None = None,
    seed: int = 0,
    ci: float = 0.95,
) -> Accepted:
    """Test of whether the best predictions of a system have a precision, by judgements in random order.

    The promise is about this set: at a level of 0.95, a set that lacks the precision is accepted in at most 5
    of 100 draws. Nothing is assumed about which predictions are right.

    Args:
        run: file of a run, or a frame as `owkg.judge.read_runs` returns it.
        graph: the graph whose facts are known, or its folder.
        judged: judgements so far: filled-in sheets, files of qrels, or a frame as
            `owkg.judge.read_judgements` returns it. Default None: none yet.
        precision: the wanted precision, in (0, 1].
        size: number of predictions in the set. Default 1,000. With `drawn`, size of the region from which
            nested sets are chosen; by default the best predictions that are expected to have the precision,
            plus a quarter.
        depth: number of answers of each list that count as predictions. Default 10.
        system: name of the system in the run. Default None: its only system.
        by: "relation" for a separate promise for each relation. Default None: one promise for the set.
        drawn: size of a fixed draw, from which the largest of ten nested sets is accepted. With `by`, size of
            the draw for each relation (relations with fewer than 30 predictions are judged completely).
            Default None: one set is judged one by one, and you may look at the result after each judgement.
        pilot: judgements that place the region, such as a filled-in sheet of `pilot_predictions`. Only with
            `drawn`. Predictions that the pilot judges leave the region. Default None: the known answers of
            the test split place it.
        pool: folder of a drawn pool, whose filled-in sheets also serve as a pilot. Only with `drawn`.
        seed: seed of the order of the draw. Default 0.
        ci: confidence level. Default 0.95.

    Returns:
        The accepted set: its predictions, and whether they have the precision.

    Raises:
        ValueError: if an argument is out of range, or a prediction is judged before its turn.
        OSError: if a file cannot be opened.
    """
    if by not in (None, "relation"):
        raise ArgumentError("by", f"must be relation or left out, got {by!r}.")
    if drawn is None and (pilot is not None or pool is not None):
        raise ArgumentError("pilot" if pool is None else "pool", "must be left out without `drawn`.")
    facts, lists = _read(run, graph, system)
    found, placed = _candidates(lists, facts, precision, size, depth, drawn, by, pilot, pool)
    labels = _labels(
        found, judged if judged is None or isinstance(judged, pl.DataFrame) else judged_in(judged)
    )
    order = np.argsort(permanent_numbers(seed, *(found[name] for name in TRIPLE)), kind="stable")
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(1, len(order) + 1)
    found = found.with_columns(turn=turn, label=pl.Series(labels).cast(pl.Int64).replace(UNKNOWN, None))
    left = order[labels[order] == UNKNOWN]
    following = found[left]
    with naming({"labels": "`judged`"}):
        if by and drawn is not None:
            result = _of_nested_relations(found, labels, order, drawn, precision, ci)
        elif by:
            result = _of_relations(found, labels, order, following, precision, ci)
        elif drawn is not None:
            test = nested(labels, order, drawn, precision=precision, level=ci)
            result = _of_nested(found, labels, test, following, drawn)
        else:
            test = one_set(labels, order, precision=precision, level=ci)
            result = _of_set(found, labels, test, following)
    return result if placed is None else result._replace(statements=[placed, *result.statements])


def pilot_predictions(
    run: StrPath | pl.DataFrame,
    graph: StrPath | KnowledgeGraph,
    rows: int,
    *,
    depth: int = DEPTH,
    system: str | None = None,
    seed: int = 0,
) -> pl.DataFrame:
    """Predictions to judge as a pilot for `accept`, spread over the ranking from its top.

    Args:
        run, graph, depth, system: as in `accept`.
        rows: number of predictions. The result has fewer if places coincide or there are fewer predictions.
        seed: seed of the places. Default 0.

    Raises:
        ValueError: naming the argument that is out of range.
        OSError: if a file cannot be opened.
    """
    facts, lists = _read(run, graph, system)
    found = predictions(lists, facts, depth=depth)
    count = min(checks.whole("rows", rows, 1), len(found))
    return found[pilot_places(len(found), count, seed=seed)]


def _read(
    run: StrPath | pl.DataFrame, graph: StrPath | KnowledgeGraph, system: str | None
) -> tuple[KnowledgeGraph, pl.DataFrame]:
    """The graph, and the run of one system."""
    facts = graph if isinstance(graph, KnowledgeGraph) else read_graph(graph)
    lists = run if isinstance(run, pl.DataFrame) else read_runs([run], graph=facts)
    if system is not None:
        names = lists["model"].unique().sort().to_list()
        if system not in names:
            raise ArgumentError("system", f"must be one of {', '.join(names)}, got {system!r}.")
        lists = lists.filter(pl.col("model") == system)
    return facts, lists


def _candidates(
    lists: pl.DataFrame,
    facts: KnowledgeGraph,
    precision: float,
    size: int | None,
    depth: int,
    drawn: int | None,
    by: str | None,
    pilot: StrPath | pl.DataFrame | Sequence[StrPath] | None,
    pool: StrPath | None,
) -> tuple[pl.DataFrame, str | None]:
    """Predictions that may be accepted, and a sentence that says how their region was placed."""
    is_piloted = pilot is not None or pool is not None
    if size is not None and is_piloted:
        raise ArgumentError("size", "must be left out with a pilot, which places the region.")
    if drawn is None or size is not None:
        return predictions(lists, facts, SIZE if size is None else size, depth=depth), None
    checks.real_number("precision", precision, 0, 1, closed="high")
    found = predictions(lists, facts, depth=depth)
    labels = None
    if is_piloted:
        said = [] if pilot is None else [pilot if isinstance(pilot, pl.DataFrame) else judged_in(pilot)]
        with naming({"judged": "`pool`"}):
            said += [] if pool is None else [pool_labels(pool)]
        with naming({"first": "`pilot`", "judged": "`pilot`"}):
            labels = _labels(found, reduce(merged, said), within=False)
    region = placed_region(
        found, labels, lists, facts, precision=precision, depth=depth, by_relation=by is not None
    )
    return found[region.rows], region.placed


def _counts(labels: Int[np.ndarray, "candidates"]) -> tuple[int, int]:
    return int((labels != UNKNOWN).sum()), int((labels == 0).sum())


def _of_set(found: pl.DataFrame, labels: np.ndarray, test: OneSet, following: pl.DataFrame) -> Accepted:
    judged, errors = _counts(labels)
    chosen = found.filter(pl.col("label").is_null() | (pl.col("label") == 1))
    kept = chosen if test.state is State.ACCEPTED else found.clear()
    said = [test.statement, "This promises nothing about single relations or smaller sets."]
    if not judged and test.precision < 1:
        guess = (1 + test.precision) / 2
        about = outlook(test.size, test.precision, guess, level=test.level).mean
        said.append(
            f"If its precision is {guess:g}, accepting it is expected to take about {about:,.0f} judgements."
        )
    return Accepted(
        test.state, test.precision, test.level, "martingale", found, kept, judged, errors, test.lower,
        said, None, following if test.state is State.OPEN else following.clear(),
    )  # fmt: skip


def _of_nested(
    found: pl.DataFrame, labels: np.ndarray, test: Nested, following: pl.DataFrame, drawn: int
) -> Accepted:
    judged, errors = _counts(labels)
    kept = found.head(test.accepted).filter(pl.col("label").is_null() | (pl.col("label") == 1))
    if judged < drawn:
        said = f"Open: {judged:,} of {drawn:,} drawn predictions are judged; the test needs all of them."
    elif test.accepted:
        said = (
            f"Accepted: the best {test.accepted:,} predictions have a precision of at least "
            f"{test.precision:g} with "
            f"{100 * test.level:g} % confidence."
        )
    else:
        said = f"Refused: the judgements show a precision of {test.precision:g} for no nested set."
    return Accepted(
        test.state, test.precision, test.level, "hypergeometric", found,
        kept if judged >= drawn else found.clear(),
        judged, errors, None, [said], None, following.head(max(drawn - judged, 0)),
    )  # fmt: skip


def _of_relations(
    found: pl.DataFrame,
    labels: np.ndarray,
    order: np.ndarray,
    following: pl.DataFrame,
    precision: float,
    level: float,
) -> Accepted:
    names = found["relation"].unique().sort()
    number = found["relation"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    tests = by_relation(labels, order, number, precision=precision, level=level)
    rows = [
        {
            "relation": names[one.relation],
            "candidates": one.found.size,
            "judged": one.found.judged,
            "errors": one.found.errors,
            "state": str(one.state),
            "lower": one.found.lower,
            "accepted": 0,
        }
        for one in tests
        if isinstance(one.found, OneSet)
    ]
    states = {row["relation"]: row["state"] for row in rows}
    good = [name for name, state in states.items() if state == State.ACCEPTED]
    kept = found.filter(pl.col("relation").is_in(good), pl.col("label").is_null() | (pl.col("label") == 1))
    is_open = [name for name, state in states.items() if state == State.OPEN]
    return _by_relations(
        found, labels, rows, kept, following.filter(pl.col("relation").is_in(is_open)),
        precision, level, "martingale",
    )  # fmt: skip


def _of_nested_relations(
    found: pl.DataFrame, labels: np.ndarray, order: np.ndarray, drawn: int, precision: float, level: float
) -> Accepted:
    """Test of nested sets for each relation, from draws of `drawn` predictions each."""
    names = found["relation"].unique().sort()
    number = found["relation"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    sizes, judged = np.bincount(number), np.bincount(number[labels != UNKNOWN], minlength=len(names))
    counts = np.where(sizes < LEAST_TESTED, sizes, np.minimum(checks.whole("drawn", drawn, 1), sizes))
    for one in np.flatnonzero(judged > counts)[:1].tolist():
        raise ArgumentError(
            "drawn", f"must be at least the {judged[one]} judged predictions of {names[one]}, got {drawn}."
        )
    tests = nested_by_relation(
        labels, order, number, dict(enumerate(counts.tolist())), precision=precision, level=level
    )
    rows = [
        {
            "relation": names[one.relation],
            "candidates": int(sizes[one.relation]),
            "judged": one.found.judged,
            "errors": int(one.found.errors[-1]),
            "state": str(one.state),
            "lower": None,
            "accepted": 0,
        }
        for one in tests
        if isinstance(one.found, Nested)
    ]
    limits = np.zeros(len(names), np.int64)
    limits[[one.relation for one in tests]] = [
        one.found.accepted for one in tests if isinstance(one.found, Nested)
    ]
    is_kept = (_turns(number) < limits[number]) & (labels != 0)
    turn = np.empty(len(found), np.int64)
    turn[order] = _turns(number[order])
    wanted = order[((turn < counts[number]) & (labels == UNKNOWN))[order]]
    return _by_relations(
        found, labels, rows, found.filter(is_kept), found[wanted], precision, level, "hypergeometric"
    )


def _turns(number: Int[np.ndarray, "n"]) -> Int[np.ndarray, "n"]:
    """For each entry, the number of earlier entries with the same value."""
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(number))[:-1]])
    found = np.empty(len(number), np.int64)
    found[order] = np.arange(len(number)) - starts[number[order]]
    return found


def _by_relations(
    found: pl.DataFrame,
    labels: np.ndarray,
    rows: list[dict[str, Any]],
    kept: pl.DataFrame,
    following: pl.DataFrame,
    precision: float,
    level: float,
    method: str,
) -> Accepted:
    counts = dict(kept.group_by("relation").len().rows())
    rows = [row | {"accepted": counts.get(row["relation"], 0)} for row in rows]
    table = pl.DataFrame(rows, schema_overrides={"lower": pl.Float64})
    table = table.sort("candidates", "relation", descending=[True, False])
    states = [row["state"] for row in rows]
    good = states.count(State.ACCEPTED)
    state = State.ACCEPTED if good else State.OPEN if State.OPEN in states else State.REFUSED
    judged, errors = _counts(labels)
    what = "are accepted" if method == "martingale" else "have an accepted set"
    said = [
        f"{good:,} of {len(states):,} relations {what} at a precision of at least {precision:g}, each with "
        f"{100 * level:g} % confidence.",
        "Each relation is a separate promise: some of many accepted relations may lack the precision.",
    ]
    return Accepted(
        state, precision, level, method, found, kept, judged, errors, None, said, table, following
    )


def _labels(
    found: pl.DataFrame, judged: pl.DataFrame | None, *, within: bool = True
) -> Int[np.ndarray, "candidates"]:
    """Label of each prediction, whichever of its two queries was judged.

    With `within`, a judgement of another triple raises an error.
    """
    if judged is None:
        return np.full(len(found), UNKNOWN)
    is_tail = pl.col("side") == "tail"
    said = judgements_checked("judged", judged).filter(pl.col("relevance") != POOLED)
    said = said.with_columns(
        head=pl.when(is_tail).then("entity").otherwise("answer"),
        tail=pl.when(is_tail).then("answer").otherwise("entity"),
        right=(pl.col("relevance") > 0).cast(pl.Int64),
    )
    torn = said.filter(pl.col("right").n_unique().over(TRIPLE) > 1)
    if len(torn):
        row = torn.row(0, named=True)
        raise ArgumentError(
            "judged",
            f"must not contradict itself: {row['answer']!r} to {row['query']!r} is judged both ways.",
        )
    other = said.join(found, on=TRIPLE, how="anti", maintain_order="left")
    if within and len(other):
        row = other.row(0, named=True)
        raise ArgumentError(
            "judged",
            f"must be of the {len(found):,} predictions: {row['answer']!r} to {row['query']!r} is not one; "
            "another size, depth, run or pilot has others.",
        )
    said = said.select(*TRIPLE, "right").unique()
    labels = found.join(said, on=TRIPLE, how="left", maintain_order="left")["right"]
    return labels.fill_null(UNKNOWN).to_numpy()


def write_next(found: Accepted, path: StrPath, rows: int) -> int:
    """Write a sheet of the predictions to judge next, in the order of the draw, and return their number."""
    asked = found.following.head(rows)
    if len(asked):
        write_sheet(asked, path, seed=0, in_order=True)
    return len(asked)


def accepted_table(found: Accepted, source: str) -> pl.DataFrame:
    """Table of the accepted triples with their source."""
    return found.accepted.select(
        *TRIPLE,
        "score",
        "place",
        judged=pl.col("label").is_not_null(),
        run=pl.lit(source),
        precision=pl.lit(found.precision),
        level=pl.lit(found.level),
    )
