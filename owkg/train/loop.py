"""Loop of training: calls of the device between the steps where the state is inspected or written."""

import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from numbers import Integral
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from owkg import kg
from owkg.errors import ArgumentError, naming
from owkg.models import Trained
from owkg.train.config import Training
from owkg.train.hosts import of_first
from owkg.train.layout import MeshLayout, on_all, unpadded_on_all
from owkg.train.memory import require_memory
from owkg.train.queries import SideQueries, Sizes, queries
from owkg.train.state import State, all_finite, init_state, rates
from owkg.train.step import advance, orders_of
from owkg.train.updates import updates_of
from owkg.train.validation import Validate, validator

_T = TypeVar("_T")
Row = dict[str, float | int | None]
# Duration of a call of the device: short enough for interrupts, long enough to hide its overhead.
_CALL_S = 0.5
_FASTER = 8


class Snapshot(NamedTuple):
    """Training at some step.

    Attributes:
        step: number of steps taken.
        state: state after these steps; the next step reuses its memory.
        rows: rows of the training path, one per record.
        due: whether a checkpoint is due.
        last: whether training ends here.
    """

    step: int
    state: State
    rows: list[Row]
    due: bool
    last: bool


def snapshots(
    graph: kg.KnowledgeGraph,
    config: Training,
    *,
    layout: MeshLayout | None = None,
    start: tuple[int, State] | None = None,
    rows: Sequence[Row] = (),
    chunk_steps: int | None = None,
    watched: Collection[int] = (),
    on_progress: Callable[[int, int, str], None] | None = None,
    interrupted: Callable[[], int] = lambda: 0,
) -> Iterator[Snapshot]:
    """Snapshots of a training: at every record, validation and checkpoint, at an interrupt, and at the end.

    The starting step and the number of steps per call do not change a bit of the parameters.

    Args:
        graph: graph whose split train is learned.
        config: configuration of the training.
        layout: layout of the state, also in the snapshots, on several devices. None: one device.
        start: (step, state) to continue from; the state is donated.
        rows: rows of the training path up to the start.
        chunk_steps: steps per call of the device. None: as many as take half a second.
        watched: further numbers of steps to yield a snapshot at, in [1, steps of the training].
        on_progress: function called after each call with steps done, all steps, and a text with loss and
            speed.
        interrupted: function called after each call; training ends if it returns a number other than 0.

    Raises:
        ValueError: at once if the graph does not suit the configuration or the model does not fit in memory;
            later if loss or parameters are no longer finite, with the step.
    """
    parts, sizes = queries(graph, config)
    if start is None:
        require_memory(config, sizes, layout)
    measured = validator(graph, config) if config.valid_every else None
    tell = on_progress or (lambda *_: None)
    at = sorted(watched)
    if at and not (all(isinstance(step, Integral) for step in at) and at[0] >= 1 and at[-1] <= sizes.total):
        raise ArgumentError(
            "watched", f"must be whole numbers of steps in [1, {sizes.total}], got {at[0]!r} to {at[-1]!r}."
        )
    facts = graph.splits["train"]
    return _walked(
        config, layout, parts, sizes, facts, measured, start, list(rows), chunk_steps, at, tell, interrupted
    )


def _walked(
    config: Training,
    layout: MeshLayout | None,
    parts: tuple[SideQueries, ...],
    sizes: Sizes,
    facts: Int[np.ndarray, "facts 3"],
    measured: Validate | None,
    start: tuple[int, State] | None,
    rows: list[Row],
    chunk_steps: int | None,
    watched: Sequence[int],
    tell: Callable[[int, int, str], None],
    interrupted: Callable[[], int],
) -> Iterator[Snapshot]:
    model, numbers, run = config.built(), rates(config), advance(config, sizes, layout)
    if layout is not None:
        numbers, parts = on_all(layout, (numbers, parts))
    step, state = start or (0, init_state(config, sizes, numbers, layout, facts))
    # Inspecting all parameters takes as long as a step of rows, so it is done only before they are used or
    # written.
    updates = updates_of(config, sizes.num_entities)
    chunk, epoch = chunk_steps or 1, step // sizes.per_epoch
    orders, busy = _timed(partial(orders_of, asked=sizes.queries), numbers, epoch)
    seconds, recorded_at = (rows[-1]["seconds"] or 0, int(rows[-1]["step"] or 0)) if rows else (0, 0)
    since = step
    state = run(state, step, step, orders, parts, numbers)  # compiles
    state, empty = _timed(run, state, step, step, orders, parts, numbers)
    while not ended(config, rows, step, sizes.total):
        if epoch != step // sizes.per_epoch:
            epoch = step // sizes.per_epoch
            orders, took = _timed(partial(orders_of, asked=sizes.queries), numbers, epoch)
            busy += took
        ends = next_stop(config, sizes, step), (epoch + 1) * sizes.per_epoch, *_next(watched, step)
        stop = min(step + chunk, *ends)
        state, took = _timed(run, state, step, stop, orders, parts, numbers)
        if chunk_steps is None:
            chunk = of_first(call_steps(stop - step, took, empty))
        step, busy = stop, busy + took
        if stop in ends or updates.how == "dense":
            _require_finite(state, step)
        else:
            _require_finite_loss(state)
        speed = (step - since) * sum(sizes.batch) / busy
        loss = float(state.loss) / (step - recorded_at)
        tell(step, sizes.total, f"loss {loss:.4g}, {speed:,.0f} examples/s, {updates.how} updates")
        validates = measured is not None and due(config.valid_every, sizes, step)
        if validates or due(config.record_every, sizes, step):
            seconds += busy
            row: Row = {
                "step": step,
                "epoch": step / sizes.per_epoch,
                "loss": loss,
                "seconds": seconds,
                "examples_per_s": speed,
            }
            if measured is not None and validates:
                found = _measured(measured, unpadded_on_all(layout, state.trained(model)), step)
                row |= {f"valid_{name}": value for name, value in found.items()}
            rows.append(row)
            recorded_at, since, busy = step, step, 0.0
            state = _from_zero(state, layout)
        last = ended(config, rows, step, sizes.total)
        stopped = interrupted() != 0
        write = last or stopped or due(config.checkpoint_every, sizes, step)
        write = write or (step == recorded_at and step == best_step(config, rows))
        if write or step == recorded_at or step in watched:
            if stopped:
                _require_finite(state, step)
            yield Snapshot(step, state, rows, write, last)
        if stopped:
            return


def _from_zero(state: State, layout: MeshLayout | None) -> State:
    """`state` with the sum of losses reset to 0."""
    loss = jnp.zeros_like(state.loss) if layout is None else on_all(layout, np.float32(0))
    return state._replace(loss=loss)


def _timed(call: Callable[..., _T], *arguments: object) -> tuple[_T, float]:
    """Result of a call of the device, and the seconds until it is complete."""
    called = time.perf_counter()
    found = jax.block_until_ready(call(*arguments))
    return found, time.perf_counter() - called


def call_steps(steps: int, took: float, empty: float) -> int:
    """Number of steps for the next call of the device, which fill half a second or, if longer, an empty call.

    `took` and `empty` are the seconds of the last call, which had `steps` steps, and of a call without steps.
    """
    each = max(took - empty, 1e-9) / steps
    return max(1, int(min(max(_CALL_S, empty) / each, steps * _FASTER)))


def _measured(measured: Validate, trained: Trained, step: int) -> dict[str, float]:
    here = f"the parameters after step {step - 1} (earlier checkpoints are kept)"
    with naming({"trained": here}):
        return measured(trained)


def ended(config: Training, rows: Sequence[Row], step: int, total: int) -> bool:
    """Whether training is over: all steps are taken, or `patience` validations brought no new best."""
    values = [value for _, value in validations(config, rows)]
    waited = len(values) - 1 - values.index(max(values)) if values else 0
    return step >= total or (config.patience > 0 and waited >= config.patience)


def validations(config: Training, rows: Sequence[Row]) -> list[tuple[int, float]]:
    """(Step, value of the deciding metric) of each validation."""
    name = f"valid_{config.valid_metric}"
    return [(int(row["step"] or 0), value) for row in rows if (value := row.get(name)) is not None]


def best_step(config: Training, rows: Sequence[Row]) -> int | None:
    """Step of the first best validation; None without validations."""
    found = validations(config, rows)
    return max(found, key=lambda pair: pair[1])[0] if found else None


def next_stop(config: Training, sizes: Sizes, step: int) -> int:
    """Next step at which the state is inspected or written."""
    intervals = (config.record_every, config.valid_every, config.checkpoint_every)
    every = [epochs * sizes.per_epoch for epochs in intervals if epochs]
    return min(sizes.total, *((step // interval + 1) * interval for interval in every))


def _next(watched: Sequence[int], step: int) -> Sequence[int]:
    """First element of `watched`, increasing, after `step`; empty if there is none."""
    return watched[(first := bisect_right(watched, step)) : first + 1]


def due(epochs: int, sizes: Sizes, step: int) -> bool:
    """Whether an interval of `epochs` epochs ends at `step`; every interval ends with the training."""
    return epochs > 0 and (step % (epochs * sizes.per_epoch) == 0 or step == sizes.total)


_ADVICE = "a smaller `learning_rate` may help. Earlier checkpoints are kept."


def _require_finite_loss(state: State) -> None:
    """Raises ValueError if the loss was not finite; files written before are kept."""
    if int(state.bad) >= 0:
        raise ValueError(f"the loss is not finite at step {int(state.bad)}; {_ADVICE}")


def _require_finite(state: State, step: int) -> None:
    """Raises ValueError if the loss or the parameters are not finite; files written before are kept."""
    _require_finite_loss(state)
    if not all_finite(state.params):
        raise ValueError(f"the parameters are not finite after step {step - 1}; {_ADVICE}")
