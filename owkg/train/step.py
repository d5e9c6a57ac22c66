"""Training steps, many per call of the device; everything random is a function of seed and step."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Int, PyTree

from owkg.models import Model, Params, Statistics
from owkg.train.config import Training
from owkg.train.drawn import drawn_of
from owkg.train.layout import MeshLayout, unpadded
from owkg.train.objective import objective
from owkg.train.queries import SideQueries, Sizes, some_queries
from owkg.train.reach import Reach
from owkg.train.rows import by_rows, named, united
from owkg.train.spread import by_devices, no_slots
from owkg.train.state import Hyperparameters, State, direction, keys_of, rate_factor, shape_of, state_shape
from owkg.train.updates import updates_of


def advance(config: Training, sizes: Sizes, layout: MeshLayout | None = None) -> Callable[..., State]:
    """Function from (state, step, stop, orders, parts, numbers) to the state before step `stop`.

    The state is donated. All steps belong to one epoch, which asks the queries in `orders`. The loop runs on
    the device and its length is not compiled in, so cutting it elsewhere does not change a bit. With a
    `layout`, the state has this layout and everything else is on all devices.
    """
    return _compiled(shape_of(config), sizes, layout, many=False)


def advance_many(config: Training, sizes: Sizes) -> Callable[..., State]:
    """Function like `advance`, for states, orders and numbers with a leading axis of runs."""
    return _compiled(shape_of(config), sizes, None, many=True)


@cache
def _compiled(
    config: Training, sizes: Sizes, layout: MeshLayout | None, *, many: bool
) -> Callable[..., State]:
    run = partial(_advance, config.built(), config, sizes, layout)
    if many:
        run = jax.vmap(run, in_axes=(0, None, None, 0, None, 0))
    if layout is None:
        return jax.jit(run, donate_argnums=0)
    like = state_shape(config, sizes.num_entities, sizes.num_relations, sizes.num_facts)
    return jax.jit(run, donate_argnums=0, out_shardings=layout.shardings(like))


@partial(jax.jit, static_argnames="asked")
def orders_of(
    numbers: Hyperparameters, epoch: Int[Array, ""], *, asked: tuple[int, ...]
) -> tuple[Int[Array, "_"], ...]:
    """Orders in which an epoch (from 0) asks the queries of each side, determined by seed and epoch.

    `asked` holds the number of queries of each side.
    """
    keys = jax.random.split(jax.random.fold_in(keys_of(numbers)[1], epoch), len(asked))
    return tuple(map(jax.random.permutation, keys, asked))


def _advance(
    model: Model,
    config: Training,
    sizes: Sizes,
    layout: MeshLayout | None,
    state: State,
    step: Array,
    stop: Array,
    orders: tuple[Array, ...],
    parts: tuple[SideQueries, ...],
    numbers: Hyperparameters,
) -> State:
    def one(carry: tuple[Array, State, Array]) -> tuple[Array, State, Array]:
        step, state, slots = carry
        rows = tuple(
            (step % sizes.per_epoch) * batch + jnp.arange(batch, dtype=jnp.int32) for batch in sizes.batch
        )
        # The last batches of an epoch may be too long; their repeated queries do not count.
        counts = tuple(row < q for row, q in zip(rows, sizes.queries, strict=True))
        batches = tuple(
            some_queries(part, order[row % len(order)], count)
            for part, order, row, count in zip(parts, orders, rows, counts, strict=True)
        )
        key = jax.random.fold_in(step_key, step)
        own = state, slots, step, batches, counts, key, numbers
        return step + 1, *_stepped(model, config, sizes, layout, *own)

    step_key = keys_of(numbers)[2]
    rows_alone = updates_of(config, sizes.num_entities).how == "rows"
    if layout is not None and rows_alone:
        slots = no_slots(layout)
    else:
        slots = jnp.zeros(len(state.params["entity"]) if rows_alone else 0, jnp.int32)
    return jax.lax.while_loop(lambda c: c[0] < stop, one, (step, state, slots))[1]


def _stepped(
    model: Model,
    config: Training,
    sizes: Sizes,
    layout: MeshLayout | None,
    state: State,
    slots: Array,
    step: Array,
    batches: tuple[SideQueries, ...],
    counts: tuple[Bool[Array, "q"], ...],
    key: Array,
    numbers: Hyperparameters,
) -> tuple[State, Array]:
    """State after a step, and `slots` for the next one.

    The step uses entity tables in one of three ways (`Reach`): whole, like all other parameters; by the rows
    that the step names; or by these rows on the devices that hold them. With whole tables on a `layout`,
    every device scores its own entities, and the padding rows are not candidates.
    """
    how = updates_of(config, sizes.num_entities).how
    names = model.entity_params
    if layout is not None and config.training_loop == "negatives":
        drawn = drawn_of(config, sizes, batches, key)
        tables = {name: state.params[name] for name in names}
        reach = by_devices(layout, tables, slots, batches, counts, drawn, dense=how == "dense")
    elif how == "rows":
        drawn = drawn_of(config, sizes, batches, key)
        reach = by_rows({name: state.params[name] for name in names}, slots, batches, counts, drawn)
    else:
        names = ()
        nothing = lambda *_: None, lambda *_: (), lambda *given: ({}, given[1], slots)
        reach = Reach(batches, counts, (), (), *nothing)
    shared = {name: x for name, x in state.params.items() if name not in names}

    def loss_of(shared: Params, *own: PyTree[Array]) -> tuple[Array, Statistics]:
        params = shared if layout is None else unpadded(layout, shared)
        asked = reach.batches, reach.counts, key, numbers, reach.gathered(*own)
        return objective(model, config, sizes, params, state.statistics, *asked)

    def move(
        at: tuple[Array, Hyperparameters], gradients: Params, params: Params, optimiser: PyTree[Array]
    ) -> tuple[Params, PyTree[Array]]:
        updates, optimiser = direction(config).update(gradients, optimiser, params)
        factor = rate_factor(config, at[0], total=sizes.total, per_epoch=sizes.per_epoch)
        rate = -at[1].learning_rate * factor
        way = jax.tree.map(lambda u: rate * u, updates)
        if model.retract is not None:
            allowed = model.retract(jax.tree.map(jnp.add, params, way))
            way = jax.tree.map(jnp.subtract, allowed, params)
        return way, optimiser

    differentiated = jax.value_and_grad(loss_of, (0, 1, 2), has_aux=True)
    (loss, statistics), (of_shared, *of_own) = differentiated(shared, reach.rows, reach.others)
    of_tables = reach.summed(*of_own)
    if config.gradient_clip:
        cut: Any = optax.clip_by_global_norm(config.gradient_clip)
        (of_shared, of_tables), _ = cut.update((of_shared, of_tables), None)
    at = step, numbers
    way, rest = move(at, of_shared, shared, named(state.optimiser, shared))
    tables, optimiser, slots = reach.moved(of_tables, named(state.optimiser, names), at, move)
    params = {name: x + way[name] for name, x in shared.items()} | tables
    bad = jnp.where((state.bad < 0) & ~jnp.isfinite(loss), step, state.bad)
    return State(params, statistics, united(rest, optimiser), state.loss + loss, bad), slots
