"""A closed world judged as in TREC: pools of trained models, where every label is known.

Zhou et al. (2022) pooled the answers of six systems and had them judged by hand, so that the labels below the
pool stay unknown. In a closed world every label is known, so that sparse labels, labels from pools of any
depth, and the truth can be compared.
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
    """Contributions of the fully trained systems to the pools.

    Attributes:
        systems: labels of the systems.
        full: ranks and scores of the answers on the full test.
        entered: rank at which each system lists each answer, [systems, answers]; a number larger than any
            rank if the answer is below the list.
        candidates: number of candidates in the pool of all systems, at each depth from 1 on, [depths].
    """

    systems: tuple[str, ...]
    full: FullTest
    entered: Int64[np.ndarray, "systems answers"]
    candidates: Int64[np.ndarray, "depths"]

    @property
    def depth(self) -> Int64[np.ndarray, "answers"]:
        """Depth at which each answer enters the pool of all systems."""
        return self.entered.min(axis=0)


def pools(
    world: ClosedWorld,
    records: Sequence[Record],
    configurations: Sequence[Configuration],
    folder: Path,
    *,
    depth: int,
) -> Pools:
    """Pools of the models in `folder`, down to a depth: their best candidates outside the training facts.

    Args:
        world: world that was learned.
        records: records from `simulations.yang2022.records`.
        configurations: configurations of the records.
        folder: folder of the runs.
        depth: length of the lists.

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
    """Pools of given lists: entity ids, best first, of each system and query; -1 is no candidate."""
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
    """Mask of the labelled answers: those in a test set, and those that enter the pool to a depth.

    Args:
        world: world that was learned.
        found: pools from `pools`.
        depth: depth of the pool; 0: the test set alone.
        test_set: one of `world.present`.

    Raises:
        ValueError: if the world has no such test set.
    """
    return _present(world, test_set) | (found.depth <= depth)


def labels_without(
    world: ClosedWorld, found: Pools, depth: int, system: int, *, test_set: str = SPARSE
) -> Bool[np.ndarray, "answers"]:
    """The mask of `labels` for a pool to which one system did not contribute."""
    others = np.delete(found.entered, system, axis=0).min(axis=0, initial=_NEVER)
    return _present(world, test_set) | (others <= depth)


def _present(world: ClosedWorld, test_set: str) -> Bool[np.ndarray, "answers"]:
    if test_set not in world.present:
        raise ValueError(f"`test_set` must be one of {', '.join(world.present)}, got {test_set!r}.")
    return world.present[test_set]


def scores_under(
    world: ClosedWorld, found: Pools, present: Bool[np.ndarray, "answers"], metrics: Sequence[Metric]
) -> Scores:
    """Rank tables of every system if only the present answers are labels; the rest are candidates.

    Raises:
        ValueError: if nothing is present, or a metric is not a mean.
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
