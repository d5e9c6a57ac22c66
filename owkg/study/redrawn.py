"""The sparse test set that a world has, among all that the same scores could have met."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
import polars as pl
from jaxtyping import Float64

from owkg.metrics import metric as metric_named
from owkg.simulate import FullTest, full_test, misordered, quantiles, redraw
from owkg.study.curves import FULL, Curves
from owkg.study.record import Record
from owkg.study.selection import metric_index
from owkg.study.world import SPARSE, World

_BAND = (0.025, 0.975)


class RedrawnTests(NamedTuple):
    """What the checkpoints of a world read on sparse test sets drawn again.

    Attributes:
        table: a row a checkpoint: density, configuration, model, step; `full`, `sparse` and others, what it
            reads on each test set, and `_error`, the standard error over questions; `redrawn` mean,
            `redrawn_deviation`, `redrawn_lower` and `redrawn_upper`, 95 % of the draws.
        band: lower and upper ends of these, [2, checkpoints].
        misordered: share of draws that contradict the order on the full test, mean over all pairs of
            checkpoints of different configurations; nan if there is none.
        pairs: how many pairs these are.
    """

    table: pl.DataFrame
    band: Float64[np.ndarray, "2 checkpoints"]
    misordered: float
    pairs: int


def joined(world: World, records: Sequence[Record]) -> FullTest:
    """All checkpoints of all records as the models of one full test."""
    parts = (np.concatenate([getattr(one, name) for one in records]) for name in Record._fields[1:])
    return full_test(world.question, *parts, fact=world.triples)


def redrawn(
    world: World,
    records: Sequence[Record],
    curves: Curves,
    *,
    metric: str = "mrr",
    draws: int = 400,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
) -> RedrawnTests:
    """Draws sparse test sets again and again, facts missing independently, as often as in the world's own.

    Args:
        world: that was asked.
        records: of its runs.
        curves: of `readings` of the same records.
        metric: one of `curves.metrics`, a plain mean.
        draws: test sets.
        seed: of what is missing.
        on_progress: told draws done, and in all.

    Raises:
        ValueError: if the metric is none of the curves.
    """
    at = metric_index(curves, metric)
    drawn = redraw(
        jax.random.key(seed),
        joined(world, records),
        metric_named(metric),
        sparsity=1 - world.present[SPARSE].mean(),
        draws=draws,
        on_progress=on_progress,
    )
    band = quantiles(drawn, _BAND)[:, :, 0]
    apart = np.triu(curves.config[:, None] != curves.config[None, :])
    share = misordered(drawn).probability[0][apart]
    share = share[np.isfinite(share)]
    columns: dict[str, object] = {
        "density": np.full(len(curves.step), curves.density),
        "configuration": np.array(curves.labels)[curves.config],
        "model": np.array(curves.models)[curves.config],
        "step": curves.step,
    }
    for name, values in sorted(curves.values.items(), key=lambda item: item[0] != FULL):
        own = values[at].astype(np.float64)
        columns[name] = own.mean(axis=1)
        columns[f"{name}_error"] = own.std(axis=1, ddof=1) / np.sqrt(own.shape[1])
    columns |= {
        "redrawn": drawn.mean[:, 0],
        "redrawn_deviation": drawn.standard_deviation[:, 0],
        "redrawn_lower": band[0],
        "redrawn_upper": band[1],
    }
    return RedrawnTests(pl.DataFrame(columns), band, float(share.mean()) if len(share) else np.nan, len(share))
