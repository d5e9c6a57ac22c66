"""Metrics of checkpoints by query and test set, from ranks of the full answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from owkg.kg import num_candidates
from owkg.metrics import Metric, metric
from owkg.metrics.measures import Probe, probe_loss
from owkg.rank_weights import RankWeight, tie_expectation
from owkg.simulate import FullTest, full_test, thin
from simulations.open_world.curves import FULL, Curves
from simulations.open_world.record import Record
from simulations.open_world.world import ClosedWorld

METRICS = (
    "mrr",
    "log-mrr",
    *(f"p-mrr@{p}" for p in ("1/4", "1/3", "1/2", "2/3", "3/4")),
    *(f"hits@{k}" for k in (1, 3, 10)),
    *(f"probe@{a}" for a in (0, 0.1, 0.5, 2)),
)
"""Metrics of section 6 of Yang et al. (2022) and of its appendix, and PROBE from dull to sharp."""


def joined(world: ClosedWorld, records: Sequence[Record]) -> FullTest:
    """All checkpoints of all records as the models of one full test."""
    parts = (np.concatenate([getattr(one, name) for one in records]) for name in Record._fields[1:])
    return full_test(world.query, *parts, fact=world.triples)


def query_values(
    world: ClosedWorld,
    records: Sequence[Record],
    labels: Sequence[str],
    models: Sequence[str],
    *,
    metrics: Sequence[str] = METRICS,
) -> Curves:
    """Values of every metric for every checkpoint, on the full test and on each sparse one.

    The value of a query is the mean over its answers, each filtered by train and by the other answers of the
    same test set (Yang et al. 2022, section 6). For PROBE, N is the number of candidates of each answer.

    Args:
        world: world of the queries.
        records: records of the runs.
        labels: label of each run's configuration.
        models: model of each run's configuration.
        metrics: names of plain means, or of PROBE without weights.

    Raises:
        ValueError: if a metric is of another kind, or there is not one label and one model for each record.
    """
    chosen = [_per_answer(name) for name in metrics]
    for name, given in (("records", records), ("labels", labels), ("models", models)):
        if len(given) != len(records) or not len(given):
            raise ValueError(f"`{name}` must be one for each of {len(records)} runs, got {len(given)}.")
    sets = {FULL: np.ones(len(world.triples), bool), **world.present}
    values: dict[str, list[np.ndarray]] = {name: [] for name in sets}
    for one in records:
        full = joined(world, [one])
        for name, present in sets.items():
            values[name].append(_read(world, full, present, chosen))
    lengths = [len(one.step) for one in records]
    return Curves(
        density=world.density,
        metrics=tuple(metrics),
        labels=tuple(labels),
        models=tuple(models),
        config=np.repeat(np.arange(len(records), dtype=np.int32), lengths),
        step=np.concatenate([one.step for one in records]),
        values={name: np.concatenate(found, axis=1) for name, found in values.items()},
    )


def _per_answer(name: str) -> RankWeight | Probe:
    found = metric(name)
    if found != Metric(found.name, found.measure):
        raise ValueError(f"`metrics` must be plain means over answers, got {name!r}.")
    if not isinstance(found.measure, RankWeight | Probe):
        raise ValueError(f"`metrics` must be means over answers, got {name!r}.")
    return found.measure


def _read(
    world: ClosedWorld,
    full: FullTest,
    present: Bool[np.ndarray, "answers"],
    metrics: Sequence[RankWeight | Probe],
) -> Float32[np.ndarray, "metrics checkpoints queries"]:
    low, high = thin(full, present)
    query = world.query[present]
    first = np.searchsorted(query, np.arange(world.num_queries))
    counts = np.diff(np.append(first, len(query)))
    shared: Any = {}
    if any(isinstance(metric, Probe) for metric in metrics):
        missing = np.bincount(world.query, ~present).astype(np.int64)
        shared["candidates"] = (num_candidates(world.known, world.triples) + missing[world.query])[present]
    of_each = (_of_answers(metric, low, high, **shared) for metric in metrics)
    return np.stack([np.add.reduceat(one, first, axis=1) / counts for one in of_each]).astype(np.float32)


def _of_answers(
    metric: RankWeight | Probe,
    low: Int64[np.ndarray, "checkpoints answers"],
    high: Int64[np.ndarray, "checkpoints answers"],
    candidates: Int64[np.ndarray, "answers"] | None = None,
) -> Float64[np.ndarray, "checkpoints answers"]:
    if isinstance(metric, RankWeight):
        return tie_expectation(metric, low, high)
    assert candidates is not None
    loss = probe_loss(metric.sharpness)
    return 1 - tie_expectation(loss, low, high) / tie_expectation(loss, candidates, candidates)
