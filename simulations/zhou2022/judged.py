"""Rankings of trained models by qrels and metric against the truth, by pooling depth."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from owkg import checks
from owkg.judge.agreement import Agreement, agreement
from owkg.judge.scores import Scores
from owkg.keys import checked_key
from owkg.metrics import Metric
from simulations.open_world.curves import SPARSE
from simulations.open_world.world import ClosedWorld
from simulations.zhou2022.pools import Pools, labels, labels_without, scores_under


class Judged(NamedTuple):
    """A world judged from pools. All tables have the columns density and test_set.

    Attributes:
        agreement: agreement with the truth of the labels of each depth, a row for each depth, metric and
            coefficient: columns depth, metric, coefficient, value, corrected, lower, upper.
        differences: how much nearer the test set is to the truth by one metric than by another: columns
            metric, minus, coefficient, value, lower, upper.
        labels: cost and yield of each depth: columns depth, candidates (pooled candidates without a label so
            far), labels, share (of the full answers).
        systems: metric of each system, a row for each depth (null: the truth), metric and system: columns
            depth, metric, system, value, rank.
        left_out: pool bias, each system under labels to whose pool it did not contribute: columns depth,
            metric, system, unique (answers that it alone pooled), value, rank, value_without, rank_without.
    """

    agreement: pl.DataFrame
    differences: pl.DataFrame
    labels: pl.DataFrame
    systems: pl.DataFrame
    left_out: pl.DataFrame


def judged(
    key: Any,
    world: ClosedWorld,
    found: Pools,
    metrics: Sequence[Metric],
    *,
    test_set: str = SPARSE,
    replicates: int = 1000,
    level: float = 0.95,
    on_progress: Callable[[int, int], None] | None = None,
) -> Judged:
    """Rankings of the systems by the labels of a test set, of pools of every depth, and of the truth.

    Depth 0 uses the labels of the test set; depth d adds the answers that a system lists among its d best
    candidates outside the training facts. Systems are always compared on the same queries, and intervals are
    for other queries (see `owkg.judge.agreement`). The same queries are drawn for every depth and metric.

    Args:
        key: key of `jax.random.key`; consumed.
        world: world that was learned.
        found: pools from `pools`, with at least two systems.
        metrics: means over answers or queries.
        test_set: one of `world.present`: facts missing at random, or by the predictions of a model.
        replicates: number of bootstrap resamples of the queries.
        level: confidence level.
        on_progress: called with qrels done and qrels in all.

    Raises:
        ValueError: if there is only one system, a metric is not a mean, or the world has no such test set.
    """
    key = checked_key(key)
    checks.integer("replicates", replicates, 2)
    depths = range(len(found.candidates) + 1)
    tell = on_progress or (lambda *_: None)
    truth = scores_under(world, found, np.ones(len(world.triples), bool), metrics)
    by_depth: list[Scores] = []
    agreed: list[Agreement] = []
    for depth in depths:
        by_depth.append(scores_under(world, found, labels(world, found, depth, test_set=test_set), metrics))
        agreed.append(agreement(key, truth, by_depth[-1], replicates=replicates, level=level))
        tell(depth + 1, len(depths) + 1)
    left_out = _left_out(world, found, metrics, by_depth[-1], test_set, depth=len(found.candidates))
    tell(len(depths) + 1, len(depths) + 1)
    of = pl.lit(world.density).alias("density"), pl.lit(test_set).alias("test_set")
    tables = (
        pl.concat([_agreement_rows(d, one) for d, one in zip(depths, agreed, strict=True)]),
        _differences(agreed[0], level),
        _label_rows(world, found, test_set),
        pl.concat([_system_rows(None, truth), *(_system_rows(d, s) for d, s in enumerate(by_depth))]),
        left_out,
    )
    return Judged(*(table.select(*of, *table.columns) for table in tables))


def _agreement_rows(depth: int, found: Agreement) -> pl.DataFrame:
    rows = []
    for m, metric in enumerate(found.metrics):
        for c, coefficient in enumerate(found.coefficients):
            at = m, c
            numbers = {
                "value": found.value[at],
                "corrected": found.corrected[at],
                "lower": found.low[at],
                "upper": found.high[at],
            }
            rows.append({"depth": depth, "metric": metric, "coefficient": coefficient} | numbers)
    return pl.DataFrame(rows)


def _differences(found: Agreement, level: float) -> pl.DataFrame:
    """Differences between each two metrics, on the same resamples."""
    ends = (1 - level) / 2, (1 + level) / 2
    rows = []
    for m, metric in enumerate(found.metrics):
        for o, other in enumerate(found.metrics):
            if m == o:
                continue
            apart = found.resamples[:, m] - found.resamples[:, o]
            value = found.value[m] - found.value[o]
            # Shifted to the value, like the intervals of the rankings.
            low, high = np.quantile(apart, ends, axis=0) + value - np.median(apart, axis=0)
            for c, coefficient in enumerate(found.coefficients):
                rows.append(
                    {
                        "metric": metric,
                        "minus": other,
                        "coefficient": coefficient,
                        "value": value[c],
                        "lower": low[c],
                        "upper": high[c],
                    }
                )
    schema = {"metric": pl.String, "minus": pl.String, "coefficient": pl.String}
    return pl.DataFrame(rows, schema=schema | dict.fromkeys(("value", "lower", "upper"), pl.Float64))


def _label_rows(world: ClosedWorld, found: Pools, test_set: str) -> pl.DataFrame:
    depths = range(len(found.candidates) + 1)
    count = [int(labels(world, found, depth, test_set=test_set).sum()) for depth in depths]
    known = [int((world.present[test_set] & (found.depth <= depth)).sum()) for depth in depths]
    return pl.DataFrame(
        {
            "depth": np.arange(len(count)),
            "candidates": np.append(0, found.candidates) - known,
            "labels": count,
            "share": np.array(count) / len(world.triples),
        }
    )


def _system_rows(depth: int | None, found: Scores) -> pl.DataFrame:
    rows = [
        {"depth": depth, "metric": metric, "system": system, "value": value, "rank": rank}
        for metric, values, ranks in zip(found.metrics, found.mean, found.places, strict=True)
        for system, value, rank in zip(found.systems, values, ranks, strict=True)
    ]
    return pl.DataFrame(rows, schema_overrides={"depth": pl.Int64})


def _left_out(
    world: ClosedWorld, found: Pools, metrics: Sequence[Metric], pooled: Scores, test_set: str, *, depth: int
) -> pl.DataFrame:
    all_labels = labels(world, found, depth, test_set=test_set)
    rows = []
    for at, system in enumerate(found.systems):
        present = labels_without(world, found, depth, at, test_set=test_set)
        without = scores_under(world, found, present, metrics)
        for m, metric in enumerate(pooled.metrics):
            rows.append(
                {
                    "depth": depth,
                    "metric": metric,
                    "system": system,
                    "unique": int((all_labels & ~present).sum()),
                    "value": pooled.mean[m, at],
                    "rank": pooled.places[m, at],
                    "value_without": without.mean[m, at],
                    "rank_without": without.places[m, at],
                }
            )
    return pl.DataFrame(rows)
