"""A closed world judged as TREC would: pools of trained models, where every label is known.

Zhou et al. (2022) pooled the answers of six systems and had them judged by hand, so that what lies below the
pool stays unknown. In a closed world nothing does: labels that are sparse, labels of pools of any depth, and
the truth are held against each other.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Int32, Int64

from owkg import kg
from owkg.evaluation import top_answers
from owkg.judge.scores import Scores, scores
from owkg.metrics import Metric
from owkg.simulate import FullTest, thin
from owkg.train import load_run
from simulations.open_world.curves import SPARSE
from simulations.open_world.presets import Configuration
from simulations.open_world.query_values import joined
from simulations.open_world.record import RUN, Record
from simulations.open_world.world import ClosedWorld

_NEVER = np.iinfo(np.int64).max


class Pools(NamedTuple):
    """What the systems put into the pools, as they stand at the end of their training.

    Attributes:
        systems: their labels.
        full: ranks and scores of the answers on the full test.
        entered: the rank at which each system lists each answer, [systems, answers]; where it is below the
            list, a number larger than any.
        candidates: of each depth from 1 on, how many candidates are in the pool of all systems, [depths].
    """

    systems: tuple[str, ...]
    full: FullTest
    entered: Int64[np.ndarray, "systems answers"]
    candidates: Int64[np.ndarray, "depths"]

    @property
    def depth(self) -> Int64[np.ndarray, "answers"]:
        """The depth at which each answer enters the pool of all systems."""
        return self.entered.min(axis=0)


def pools(
    world: ClosedWorld,
    records: Sequence[Record],
    configurations: Sequence[Configuration],
    folder: Path,
    *,
    depth: int,
) -> Pools:
    """The pools of the models in `folder`, down to a depth: their best candidates beside the training facts.

    Args:
        world: that was learned.
        records: of `simulations.yang2022.records`.
        configurations: of the records.
        folder: of the runs.
        depth: of the lists.

    Raises:
        ValueError: if a run lacks its last checkpoint, or there are not as many configurations as records.
    """
    if len(records) != len(configurations) or not records:
        raise ValueError(
            f"`configurations` must be one for each of {len(records)} records, got {len(configurations)}."
        )
    asked = world.triples[np.searchsorted(world.query, np.arange(world.num_queries))]
    train = kg.known_answers(
        world.graph.splits["train"],
        "tail",
        num_entities=world.graph.num_entities,
        num_relations=world.graph.num_relations,
    )
    lists = []
    for one, record in zip(configurations, records, strict=True):
        place = folder / world.name / one.folder / RUN
        run = load_run(place, step=int(record.step[-1]))
        entity, relation, _ = asked.T
        found = top_answers(run.trained, entity, relation, "tail", known=train, depth=depth)
        lists.append(found.answer)
    return pools_of_lists(world, records, tuple(one.label for one in configurations), np.array(lists))


def pools_of_lists(
    world: ClosedWorld,
    records: Sequence[Record],
    systems: tuple[str, ...],
    lists: Int32[np.ndarray, "systems queries depth"],
) -> Pools:
    """The pools of given lists: entity ids, best first, of each system and query; -1 is none."""
    last = [Record(*(part[-1:] for part in record)) for record in records]
    depth = lists.shape[-1]
    listed = lists[:, world.query] == world.triples[:, 2, None]
    entered = np.where(listed.any(-1), 1 + listed.argmax(-1), _NEVER)
    # The smallest depth at which any system lists a candidate.
    queries = np.broadcast_to(np.arange(lists.shape[1])[None, :, None], lists.shape)
    key = queries.astype(np.int64) * world.graph.num_entities + lists
    at = np.broadcast_to(np.arange(1, depth + 1), lists.shape)
    real = lists >= 0
    order = np.argsort(at[real], kind="stable")
    _, first = np.unique(key[real][order], return_index=True)
    entered_at = at[real][order][first]
    candidates = np.cumsum(np.bincount(entered_at, minlength=depth + 1)[1:])
    return Pools(systems, joined(world, last), entered, candidates)


def labels(
    world: ClosedWorld, found: Pools, depth: int, *, test_set: str = SPARSE
) -> Bool[np.ndarray, "answers"]:
    """Which answers have a label: those of a test set, and those that enter the pool to a depth.

    Args:
        world: that was learned.
        found: of `pools`.
        depth: of the pool; 0: the test set alone.
        test_set: of `world.present`.

    Raises:
        ValueError: if the world has no such test set.
    """
    return _present(world, test_set) | (found.depth <= depth)


def labels_without(
    world: ClosedWorld, found: Pools, depth: int, system: int, *, test_set: str = SPARSE
) -> Bool[np.ndarray, "answers"]:
    """As `labels`, of a pool to which one system did not contribute."""
    others = np.delete(found.entered, system, axis=0).min(axis=0, initial=_NEVER)
    return _present(world, test_set) | (others <= depth)


def _present(world: ClosedWorld, test_set: str) -> Bool[np.ndarray, "answers"]:
    if test_set not in world.present:
        raise ValueError(f"`test_set` must be one of {', '.join(world.present)}, got {test_set!r}.")
    return world.present[test_set]


def scores_under(
    world: ClosedWorld, found: Pools, present: Bool[np.ndarray, "answers"], metrics: Sequence[Metric]
) -> Scores:
    """Rank tables of every system where the present answers are the labels; the others are candidates.

    Raises:
        ValueError: if nothing is present, or a metric is no mean.
    """
    low, high = thin(found.full, present)
    gone = np.bincount(world.query, ~present, world.num_queries).astype(np.int64)
    candidates = kg.num_candidates(world.known, world.triples) + gone[world.query]
    head, relation, tail = world.triples[present].astype(np.int64).T
    asked = {"head": head, "relation": relation, "tail": tail, "candidates": candidates[present]}
    tables = {
        system: pl.DataFrame(
            asked | {"optimistic": low[i], "pessimistic": high[i], "side": np.full(len(head), "tail")}
        )
        for i, system in enumerate(found.systems)
    }
    return scores(tables, metrics)[0]
