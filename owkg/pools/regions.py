"""Region in which nested sets of predictions are tested, placed by the free prediction or by a pilot."""

from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Float, Int

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.estimation.nested_sets import piloted, region_size
from owkg.estimation.population import UNKNOWN, population
from owkg.estimation.proxy import features, free_proxy
from owkg.judge.qrels import qrels_from_graph
from owkg.judge.runs import ranked, without_known
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.pools.annotation import judged_in
from owkg.pools.drawn import read_drawn
from owkg.pools.estimating import filled_sheets

LEAST_PILOT = 10
"""Fewest predictions that a pilot must judge."""
_TEST, _PAIR = "test", ["query", "answer"]
_DEEPER = 10  # largest depth of lists relative to predictions, since known answers may be above them


class Region(NamedTuple):
    """Predictions that may be accepted.

    Attributes:
        rows: rows of the region in the ranking of all predictions, ascending.
        placed: sentence that says how the region was placed; None if its size was given.
    """

    rows: Int[np.ndarray, "region"]
    placed: str | None


def placed_region(
    found: pl.DataFrame,
    pilot: Int[np.ndarray, "predictions"] | None,
    run: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    precision: float,
    depth: int,
    by_relation: bool,
) -> Region:
    """First predictions that are expected to have a precision, plus a quarter; overall or for each relation.

    Args:
        found: all predictions, best first.
        pilot: label of each prediction in a pilot, 1, 0 or `UNKNOWN`; None: the free prediction places the
            region.
        run: run of the system, used by the free prediction.
        graph: graph of the known answers.
        precision: the wanted precision.
        depth: number of answers of each list that count as predictions.
        by_relation: whether each relation has its own region.

    Raises:
        ValueError: naming `size`, if no predictions are expected to have the precision or the graph has no
            test split; `pilot`, if it judges too few predictions.
    """
    if pilot is None:
        chance, is_left = free_prediction(found, run, graph, depth), np.ones(len(found), bool)
        source = "the free prediction"
    else:
        chance, is_left = _by_pilot(pilot), pilot == UNKNOWN
        source = f"a pilot of {int((~is_left).sum()):,} judged predictions, which are left out"
    rows = _first(found, chance, is_left, precision, by_relation=by_relation)
    if not len(rows):
        other, who = ("a" if pilot is None else "another"), ("of any relation " if by_relation else "")
        raise ArgumentError(
            "size",
            f"must be given, or {other} pilot: by {source.partition(',')[0]} no first predictions {who}have "
            f"a precision of {precision:g}.",
        )
    return Region(rows, f"The region of {len(rows):,} predictions is placed by {source}.")


def free_prediction(
    found: pl.DataFrame, run: pl.DataFrame, graph: KnowledgeGraph, depth: int
) -> Float[np.ndarray, "predictions"]:
    """Probability that each prediction is right, learnt from the known answers of the test split.

    This is the free proxy with two more features, from the place of a prediction by its score over all
    queries.

    Raises:
        ValueError: naming `size`, if the graph has no test split.
    """
    splits = list(fact_splits(graph))
    if _TEST not in splits:
        raise ArgumentError(
            "size", "must be given, because the graph has no test split to predict the precision from."
        )
    lists = ranked(without_known(run, graph, [name for name in splits if name != _TEST]))
    asked = found.select(_PAIR)
    reach = int(asked.join(lists, on=_PAIR, how="left")["rank"].to_numpy().max())
    people = population(lists.drop("rank"), min(reach, _DEEPER * depth), qrels_from_graph(graph, _TEST))
    rows = people.pairs(np.arange(len(people.answers))).select(_PAIR)
    score = rows.join(lists, on=_PAIR, how="left", maintain_order="left")["score"]
    proxy = free_proxy(people, table=np.column_stack([features(people), _of_score(score.to_numpy())]))
    rows = rows.with_columns(chance=pl.Series(proxy))
    known = asked.join(rows, on=_PAIR, how="left", maintain_order="left")["chance"]
    return known.fill_null(float(proxy.min())).to_numpy()


def _of_score(score: Float[np.ndarray, "candidates"]) -> Float[np.ndarray, "candidates 2"]:
    """Place of each candidate by its score over all queries, and the log of the place, standardised."""
    place = np.empty(len(score))
    place[np.argsort(-score, kind="stable")] = np.arange(1, len(score) + 1)
    table = np.column_stack([place, np.log(place)])
    spread = table.std(0)
    return (table - table.mean(0)) / np.where(spread > 0, spread, 1.0)


def pool_labels(pool: StrPath) -> pl.DataFrame:
    """Judgements in the folder of a drawn pool, for use as a pilot.

    Raises:
        ValueError: naming the folder, if it has no design, or `judged`, if no sheet is filled in.
        OSError: if a file cannot be opened.
    """
    folder = checks.path("pool", pool)
    drawn, sheets = read_drawn(folder)
    return judged_in(filled_sheets(folder, sheets), drawn.people.asked())


def _by_pilot(labels: Int[np.ndarray, "predictions"]) -> Float[np.ndarray, "predictions"]:
    places = np.flatnonzero(labels != UNKNOWN)
    if len(places) < LEAST_PILOT:
        raise ArgumentError(
            "pilot",
            f"must judge at least {LEAST_PILOT} of the {len(labels):,} predictions, got {len(places)}.",
        )
    return piloted(len(labels), places, labels[places].astype(np.int64))


def _first(
    found: pl.DataFrame,
    chance: Float[np.ndarray, "predictions"],
    is_left: Bool[np.ndarray, "predictions"],
    precision: float,
    *,
    by_relation: bool,
) -> Int[np.ndarray, "region"]:
    """First rows, overall or for each relation, that are expected to have the precision."""
    rows = np.flatnonzero(is_left)
    parts = [rows]
    if by_relation:
        names = found["relation"].gather(rows)
        parts = [rows[(names == name).to_numpy()] for name in names.unique().sort()]
    return np.sort(np.concatenate([own[: region_size(chance[own], precision)] for own in parts]))
