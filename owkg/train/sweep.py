"""Trainings of many configurations with the same shape, run together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl

from owkg import kg
from owkg.errors import ArgumentError
from owkg.keys import reproducible
from owkg.models import Trained
from owkg.train.config import Training, changed
from owkg.train.loop import Row, best_step, due, next_stop
from owkg.train.memory import require_memory
from owkg.train.queries import queries
from owkg.train.state import Hyperparameters, State, all_finite, init_state, rates
from owkg.train.step import advance_many, orders_of
from owkg.train.validation import validator

# Training path of a run that failed before its first record.
_COLUMNS: dict[str, list[float]] = {"step": [], "epoch": [], "loss": []}


class SweptRun(NamedTuple):
    """Result of one of many runs.

    Attributes:
        config: configuration of the run.
        trained: model at its best validation, or at the end without validations.
        step: step of its parameters.
        failed: first step whose loss was not finite, or the last step before parameters or scores were found
            not to be finite; None if everything was finite.
        path: rows of the training path, up to the failure.
    """

    config: Training
    trained: Trained
    step: int
    failed: int | None
    path: pl.DataFrame


@reproducible
def train_many(
    graph: kg.KnowledgeGraph,
    config: Training,
    *,
    on_progress: Callable[[int, int, str], None] | None = None,
    **varied: Any,
) -> list[SweptRun]:
    """Trains runs that differ only in seed and rates, together in each call of the device.

    Each run gives the same result as on its own, except for the order of floating-point sums. No run stops
    early, and a run whose loss is not finite does not stop the other runs.

    Args:
        graph: graph whose split train is learned.
        config: configuration that the runs share.
        on_progress: function called after each record with steps done, all steps, and a text with the losses.
        **varied: values of `seed`, `learning_rate`, `n3`, `l2` or `label_smoothing`, one per run.

    Raises:
        ValueError: if another name is given, the numbers of values differ, a value is out of range, or the
            runs do not fit in memory together.
    """
    configs = _configs(config, varied)
    # If one run has a penalty, all runs compute it.
    widest = replace(config, n3=max(c.n3 for c in configs), l2=max(c.l2 for c in configs))
    parts, sizes = queries(graph, config)
    require_memory(widest, sizes, None, runs=len(configs))
    measured = validator(graph, config) if config.valid_every else None
    numbers = jax.tree.map(lambda *x: jnp.stack(x), *map(rates, configs))
    run, model = advance_many(widest, sizes), config.built()
    state: State = jax.vmap(lambda one: init_state(widest, sizes, one, facts=graph.splits["train"]))(numbers)
    best: list[tuple[int, Trained] | None] = [None] * len(configs)
    paths: list[list[Row]] = [[] for _ in configs]
    failed: list[int | None] = [None] * len(configs)
    step, recorded_at = 0, 0
    while step < sizes.total and None in failed:
        epoch = step // sizes.per_epoch
        orders = jax.vmap(lambda one, at=epoch: orders_of(one, at, asked=sizes.queries))(numbers)
        stop = min(next_stop(config, sizes, step), (epoch + 1) * sizes.per_epoch)
        state, step = run(state, step, stop, orders, parts, numbers), stop
        failed = [
            one if one is not None else found
            for one, found in zip(failed, _failures(state, step), strict=True)
        ]
        validates = measured is not None and due(config.valid_every, sizes, step)
        if not (validates or due(config.record_every, sizes, step)):
            continue
        loss = np.asarray(state.loss) / (step - recorded_at)
        for i, one in enumerate(configs):
            if failed[i] is not None:
                continue
            paths[i].append({"step": step, "epoch": step / sizes.per_epoch, "loss": float(loss[i])})
            if measured is not None and validates:
                own = jax.tree.map(lambda x, i=i: x[i], state.trained(model))
                try:
                    found = measured(own)
                except ValueError:  # the parameters are finite, but the scores overflow
                    failed[i] = step - 1
                    continue
                paths[i][-1] |= {f"valid_{name}": value for name, value in found.items()}
                if best_step(one, paths[i]) == step:
                    best[i] = step, own
        recorded_at = step
        state = state._replace(loss=jnp.zeros_like(state.loss))
        good = [value for value, one in zip(loss, failed, strict=True) if one is None]
        if on_progress and good:
            on_progress(step, sizes.total, f"loss {min(good):.4g} to {max(good):.4g}")
    runs = []
    for i, (one, kept) in enumerate(zip(configs, best, strict=True)):
        at, own = kept or (step, jax.tree.map(lambda x, i=i: x[i], state.trained(model)))
        path = pl.DataFrame(paths[i] or _COLUMNS, infer_schema_length=None)
        runs.append(SweptRun(one, own, at, failed[i], path))
    return runs


def _failures(state: State, step: int) -> list[int | None]:
    """Step of each run at which its loss, or after which its parameters, were not finite; or None."""
    finite = jax.vmap(all_finite)(state.params)
    return [
        int(bad) if bad >= 0 else None if good else step - 1
        for bad, good in zip(state.bad.tolist(), finite.tolist(), strict=True)
    ]


def _configs(config: Training, varied: dict[str, Any]) -> list[Training]:
    """Configuration of each run."""
    if not varied:
        raise ArgumentError("varied", f"must name some of {', '.join(Hyperparameters._fields)}, got nothing.")
    for name, values in varied.items():
        if name not in Hyperparameters._fields:
            raise ArgumentError(
                name, f"cannot differ between runs; {', '.join(Hyperparameters._fields)} can."
            )
        if np.ndim(values) != 1 or not len(values):
            raise ArgumentError(name, f"must be a list with one value per run, got {values!r}.")
    lengths = {len(values) for values in varied.values()}
    if len(lengths) > 1:
        raise ValueError(
            f"`{next(iter(varied))}` must have as many values as the other settings, got {sorted(lengths)}."
        )
    columns = [np.asarray(values).tolist() for values in varied.values()]
    return [changed(config, **dict(zip(varied, row, strict=True))) for row in zip(*columns, strict=True)]
