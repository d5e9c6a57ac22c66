"""Steps of training, many in one call of the device; everything random is a function of seed and step."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from owkg.keys import seeded
from owkg.models import Model, Params, Statistics, Trained
from owkg.train.config import Training
from owkg.train.drawn import drawn_of
from owkg.train.layout import Layout, by_query, padded, unpadded
from owkg.train.objective import objective
from owkg.train.queries import Queries, Sizes, taken
from owkg.train.rows import (
    Gathered,
    added,
    by_side,
    gather,
    joined,
    moved,
    named,
    of_candidates,
    placed,
    rows_of,
)
from owkg.train.spread import (
    Sent,
    Spread,
    gradients_of_tables,
    moved_rows,
    no_slots,
    rows_by_query,
    rows_everywhere,
)
from owkg.train.updates import updates_of


class State(NamedTuple):
    """All that training changes.

    Attributes:
        params, statistics: of the model.
        optimiser: of optax.
        loss: sum over the steps since it was last set to 0.
        bad: the first step whose loss was not finite, or -1.
    """

    params: Params
    statistics: Statistics
    optimiser: Any
    loss: Float[Array, "*runs"]
    bad: Int[Array, "*runs"]

    def trained(self, model: Model) -> Trained:
        """`model` with the arrays of this state."""
        return Trained(model, self.params, self.statistics)


class Hyperparameters(NamedTuple):
    """The numbers that runs of one shape may differ in, as in `Training`; each an array of JAX."""

    seed: Array
    learning_rate: Array
    n3: Array
    l2: Array
    label_smoothing: Array


def rates(config: Training) -> Hyperparameters:
    """The numbers of `config` as arrays."""
    values = (getattr(config, name) for name in Hyperparameters._fields[1:])
    return Hyperparameters(jnp.uint32(config.seed), *map(jnp.float32, values))


def shape_of(config: Training) -> Training:
    """`config` but for its `Hyperparameters` and for when it stops to look: what compiled code depends on.

    Penalties of weight 0 are not computed, so it matters whether there are any.
    """
    still = {name: getattr(Training, name) for name in ("label_smoothing", "seed", "learning_rate")}
    looks = ("epochs", "steps", "record_every", "valid_every", "valid_metric", "patience", "checkpoint_every")
    still |= {name: getattr(Training, name) for name in looks}
    return replace(config, **still, n3=float(config.n3 > 0), l2=float(config.l2 > 0))


def init_state(
    config: Training, sizes: Sizes, numbers: Hyperparameters, layout: Layout | None = None
) -> State:
    """The state before the first step, laid out on the devices of `layout`."""
    return _beginning(shape_of(config), sizes.num_entities, sizes.num_relations, layout)(numbers)


def state_shape(config: Training, num_entities: int, num_relations: int) -> State:
    """Shapes and types of a state, as `jax.ShapeDtypeStruct`."""
    return jax.eval_shape(_beginning(shape_of(config), num_entities, num_relations), rates(config))


def direction(config: Training) -> optax.GradientTransformation:
    """What gradients become before they are multiplied by the learning rate.

    Adagrad starts from sums of 0, as in Lacroix et al. 2018; its first gradients can be tiny, and so is eps.
    """
    if config.optimiser == "adagrad":
        return optax.scale_by_rss(initial_accumulator_value=0.0, eps=1e-30)
    return optax.scale_by_adam() if config.optimiser == "adam" else optax.identity()


def rate_factor(config: Training, step: Int[Array, ""], *, total: int, per_epoch: int) -> Float[Array, ""]:
    """The share of the learning rate that holds at `step` (from 0) of `total`, in [0, 1]."""
    done = step / total
    warm = jnp.minimum(1.0, (step + 1) / max(1, config.warmup_steps))
    return (
        warm
        * {
            "constant": jnp.ones(()),
            "linear": 1 - done,
            "cosine": (1 + jnp.cos(jnp.pi * done)) / 2,
            "drop": jnp.where(done < 0.5, 1.0, 0.1),
            "exponential": jnp.float32(config.decay) ** (step // per_epoch),
        }[config.schedule]
    )


@cache
def _beginning(
    config: Training, num_entities: int, num_relations: int, layout: Layout | None = None
) -> Callable[[Hyperparameters], State]:
    def state(numbers: Hyperparameters) -> State:
        params, statistics = config.built().init(_keys(numbers)[0], num_entities, num_relations)
        params = params if layout is None else padded(layout, params)
        return State(params, statistics, direction(config).init(params), jnp.float32(0), jnp.int32(-1))

    if layout is None:
        return jax.jit(state)
    return jax.jit(state, out_shardings=layout.shardings(jax.eval_shape(state, rates(config))))


def advance(config: Training, sizes: Sizes, layout: Layout | None = None) -> Callable[..., State]:
    """(state, step, stop, orders, parts, numbers) to the state before step `stop`; `state` is donated.

    The steps are of one epoch, asked in its `orders`. The loop is on the device and its length is no part of
    what is compiled, so that where it is cut changes no bit. With a `layout`, the state is laid out by it,
    and everything else is on all devices.
    """
    return _compiled(shape_of(config), sizes, layout, many=False)


def advance_many(config: Training, sizes: Sizes) -> Callable[..., State]:
    """As `advance`, of states, orders and numbers with a leading axis of runs."""
    return _compiled(shape_of(config), sizes, None, many=True)


@cache
def _compiled(config: Training, sizes: Sizes, layout: Layout | None, *, many: bool) -> Callable[..., State]:
    run = partial(_advance, config.built(), config, sizes, layout)
    if many:
        run = jax.vmap(run, in_axes=(0, None, None, 0, None, 0))
    if layout is None:
        return jax.jit(run, donate_argnums=0)
    like = state_shape(config, sizes.num_entities, sizes.num_relations)
    return jax.jit(run, donate_argnums=0, out_shardings=layout.shardings(like))


@partial(jax.jit, static_argnames="asked")
def ordered(
    numbers: Hyperparameters, epoch: Int[Array, ""], *, asked: tuple[int, ...]
) -> tuple[Int[Array, "_"], ...]:
    """The orders in which an epoch (from 0) asks the queries of each side, by (seed, epoch).

    `asked`: number of queries of each side.
    """
    keys = jax.random.split(jax.random.fold_in(_keys(numbers)[1], epoch), len(asked))
    return tuple(map(jax.random.permutation, keys, asked))


@jax.jit
def all_finite(params: Params) -> Bool[Array, ""]:
    """Whether all parameters are finite, and their sums."""
    return jnp.stack([jnp.isfinite(jnp.sum(x)) for x in jax.tree.leaves(params)]).all()


def _keys(numbers: Hyperparameters) -> tuple[Array, Array, Array]:
    """Of the initial parameters, of the orders of epochs, of the steps."""
    initial, order, steps = jax.random.split(seeded(numbers.seed), 3)
    return initial, order, steps


def _advance(
    model: Model,
    config: Training,
    sizes: Sizes,
    layout: Layout | None,
    state: State,
    step: Array,
    stop: Array,
    orders: tuple[Array, ...],
    parts: tuple[Queries, ...],
    numbers: Hyperparameters,
) -> State:
    step_key = _keys(numbers)[2]
    by_rows = updates_of(config, sizes.num_entities).how == "rows"

    def one(carry: tuple[Array, State, Array]) -> tuple[Array, State, Array]:
        step, state, slots = carry
        rows = tuple(
            (step % sizes.per_epoch) * batch + jnp.arange(batch, dtype=jnp.int32) for batch in sizes.batch
        )
        # The last batches of an epoch may be too long: their repeated queries do not count.
        counts = tuple(row < q for row, q in zip(rows, sizes.queries, strict=True))
        batches = tuple(
            taken(part, order[row % len(order)], count)
            for part, order, row, count in zip(parts, orders, rows, counts, strict=True)
        )
        key = jax.random.fold_in(step_key, step)
        of_step = (model, config, sizes, state, step, batches, counts, key, numbers)
        if layout is not None and config.training_loop == "negatives":
            return step + 1, *_spread_step(*of_step, slots, layout)
        if by_rows:
            return step + 1, *_row_step(*of_step, slots)
        return step + 1, _dense_step(*of_step, layout), slots

    if layout is not None and by_rows:
        slots = no_slots(layout)
    else:
        slots = jnp.zeros(len(state.params["entity"]) if by_rows else 0, jnp.int32)
    return jax.lax.while_loop(lambda c: c[0] < stop, one, (step, state, slots))[1]


def _dense_step(
    model: Model,
    config: Training,
    sizes: Sizes,
    state: State,
    step: Array,
    batches: tuple[Queries, ...],
    counts: tuple[Array, ...],
    key: Array,
    numbers: Hyperparameters,
    layout: Layout | None = None,
) -> State:
    """The state after a step that updates whole tables.

    With a `layout`, every device scores its own entities; the rows behind the last are no candidates.
    """

    def loss_of(params: Params) -> tuple[Array, Statistics]:
        params = params if layout is None else unpadded(layout, params)
        return objective(model, config, sizes, params, state.statistics, batches, counts, key, numbers)

    (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(state.params)
    way, optimiser = _way(config, sizes, step, numbers, gradients, state.params, state.optimiser)
    params = jax.tree.map(jnp.add, state.params, way)
    return _after(state, step, loss, params, statistics, optimiser)


def _row_step(
    model: Model,
    config: Training,
    sizes: Sizes,
    state: State,
    step: Array,
    batches: tuple[Queries, ...],
    counts: tuple[Array, ...],
    key: Array,
    numbers: Hyperparameters,
    slots: Array,
) -> tuple[State, Array]:
    """As `_dense_step`, touching only the rows of the entities of the step; `slots` as in `rows.rows_of`."""
    names = model.entity_params
    drawn = drawn_of(config, sizes, batches, key)
    places = [placed(batch, of_side) for batch, of_side in zip(batches, drawn, strict=True)]
    entity = jnp.concatenate([side.entity for side in places])
    rows, slots = rows_of(entity, slots)
    tables = {name: state.params[name] for name in names}
    shared = {name: x for name, x in state.params.items() if name not in names}
    whole = Gathered(
        rows=tuple(gather(tables, side.entity[: side.held]) for side in places),
        drawn=tuple(side.drawn for side in places),
        tables=tables,
        sums={name: jnp.zeros((len(entity), *x.shape[1:]), x.dtype) for name, x in tables.items()},
        candidates=of_candidates(entity, places),
        slots=of_candidates(rows.slot, places),
    )

    def loss_of(shared: Params, own: tuple[Params, ...], sums: Params) -> tuple[Array, Statistics]:
        gathered, local = whole._replace(rows=own, sums=sums), tuple(side.batch for side in places)
        return objective(
            model, config, sizes, shared, state.statistics, local, counts, key, numbers, gathered
        )

    differentiated = jax.value_and_grad(loss_of, (0, 1, 2), has_aux=True)
    (loss, statistics), (of_shared, of_own, sums) = differentiated(shared, whole.rows, whole.sums)
    for slot, side, gradients in zip(by_side(rows.slot, places), places, of_own, strict=True):
        sums = added(sums, slot[: side.held], gradients)

    def move(gradients: Params, params: Params, optimiser: Any) -> tuple[Params, Any]:
        return _way(config, sizes, step, numbers, gradients, params, optimiser)

    way, rest = move(of_shared, shared, named(state.optimiser, shared))
    params, optimiser = moved(tables, named(state.optimiser, names), rows, sums, move)
    params |= {name: x + way[name] for name, x in shared.items()}
    return _after(state, step, loss, params, statistics, joined(rest, optimiser)), slots


def _spread_step(
    model: Model,
    config: Training,
    sizes: Sizes,
    state: State,
    step: Array,
    batches: tuple[Queries, ...],
    counts: tuple[Array, ...],
    key: Array,
    numbers: Hyperparameters,
    slots: Array,
    layout: Layout,
) -> tuple[State, Array]:
    """As `_row_step` or `_dense_step` against negatives, on devices that share queries and entities."""
    names = model.entity_params
    drawn = drawn_of(config, sizes, batches, key)
    places = [placed(batch, of_side) for batch, of_side in zip(batches, drawn, strict=True)]
    tables = {name: state.params[name] for name in names}
    shared = {name: x for name, x in state.params.items() if name not in names}
    held = [side.entity[: side.held] for side in places]
    compared = [] if config.shared_negatives else [
        jnp.concatenate([batch.answer[:, None], of_side.entity], axis=1)
        for batch, of_side in zip(batches, drawn, strict=True)
    ]  # fmt: skip
    local = tuple(_divided(layout, side.batch) for side in places)
    counts = by_query(layout, counts)

    def loss_of(
        shared: Params, rows: tuple[Params, ...], candidates: tuple[Params, ...]
    ) -> tuple[Array, Statistics]:
        gathered = Spread(rows, tuple(side.drawn for side in places), candidates)
        return objective(
            model, config, sizes, shared, state.statistics, local, counts, key, numbers, gathered
        )

    rows = tuple(rows_everywhere(layout, tables, entity) for entity in held)
    candidates = tuple(rows_by_query(layout, tables, entity) for entity in compared)
    differentiated = jax.value_and_grad(loss_of, (0, 1, 2), has_aux=True)
    (loss, statistics), (of_shared, of_rows, of_candidates) = differentiated(shared, rows, candidates)
    sent = Sent(tuple(zip(compared, of_candidates, strict=True)), tuple(zip(held, of_rows, strict=True)))

    def move(own: Any, gradients: Params, params: Params, optimiser: Any) -> tuple[Params, Any]:
        step, numbers = own
        return _way(config, sizes, step, numbers, gradients, params, optimiser)

    way, rest = move((step, numbers), of_shared, shared, named(state.optimiser, shared))
    params = {name: x + way[name] for name, x in shared.items()}
    of_tables = named(state.optimiser, names)
    if updates_of(config, sizes.num_entities).how == "rows":
        tables, optimiser, slots = moved_rows(layout, tables, of_tables, slots, sent, (step, numbers), move)
    else:
        gradients = gradients_of_tables(layout, tables, sent)
        way, optimiser = move((step, numbers), gradients, tables, of_tables)
        tables = {name: x + way[name] for name, x in tables.items()}
    return _after(state, step, loss, params | tables, statistics, joined(rest, optimiser)), slots


def _divided(layout: Layout, batch: Queries) -> Queries:
    """The queries, shared out among the devices; the known answers stay on all."""
    own = {name: getattr(batch, name) for name in batch._fields if name != "answers"}
    return batch._replace(**by_query(layout, own))


def _way(
    config: Training,
    sizes: Sizes,
    step: Array,
    numbers: Hyperparameters,
    gradients: Params,
    params: Params,
    optimiser: Any,
) -> tuple[Params, Any]:
    """The way that the parameters move in a step, and the optimiser's state after it."""
    updates, optimiser = direction(config).update(gradients, optimiser, params)
    factor = rate_factor(config, step, total=sizes.total, per_epoch=sizes.per_epoch)
    rate = -numbers.learning_rate * factor
    return jax.tree.map(lambda u: rate * u, updates), optimiser


def _after(
    state: State, step: Array, loss: Array, params: Params, statistics: Statistics, optimiser: Any
) -> State:
    bad = jnp.where((state.bad < 0) & ~jnp.isfinite(loss), step, state.bad)
    return State(params, statistics, optimiser, state.loss + loss, bad)
