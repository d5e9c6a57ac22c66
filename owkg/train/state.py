"""State that training changes, and the numbers that control the changes."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from owkg.keys import seeded
from owkg.models import Model, Params, Statistics, Trained
from owkg.train.config import Training
from owkg.train.layout import MeshLayout, padded
from owkg.train.queries import Sizes


class State(NamedTuple):
    """State of a training.

    Attributes:
        params, statistics: parameters and statistics of the model.
        optimiser: state of the optax optimiser.
        loss: sum of the losses of the steps since it was last set to 0.
        bad: first step whose loss was not finite, or -1.
    """

    params: Params
    statistics: Statistics
    optimiser: PyTree[Array]
    loss: Float[Array, "*runs"]
    bad: Int[Array, "*runs"]

    def trained(self, model: Model) -> Trained:
        """`model` with the arrays of this state."""
        return Trained(model, self.params, self.statistics)


class Hyperparameters(NamedTuple):
    """Numbers of `Training` that may differ between runs of one shape, each a JAX array."""

    seed: Array
    learning_rate: Array
    n3: Array
    l2: Array
    label_smoothing: Array


def rates(config: Training) -> Hyperparameters:
    """Numbers of `config` as arrays."""
    values = (getattr(config, name) for name in Hyperparameters._fields[1:])
    return Hyperparameters(jnp.uint32(config.seed), *map(jnp.float32, values))


def shape_of(config: Training) -> Training:
    """`config` reduced to the settings that compiled code depends on.

    The `Hyperparameters`, and the settings of when training records, validates and stops, get their defaults.
    Penalties of weight 0 are not computed, so the code depends on whether there are any.
    """
    still = {name: getattr(Training, name) for name in ("label_smoothing", "seed", "learning_rate")}
    looks = ("epochs", "steps", "record_every", "valid_every", "valid_metric", "patience", "checkpoint_every")
    still |= {name: getattr(Training, name) for name in looks}
    return replace(config, **still, n3=float(config.n3 > 0), l2=float(config.l2 > 0))


def init_state(
    config: Training,
    sizes: Sizes,
    numbers: Hyperparameters,
    layout: MeshLayout | None = None,
    facts: Int[np.ndarray, "facts 3"] | None = None,
) -> State:
    """State before the first step, on the devices of `layout`; `facts` are the facts of train."""
    # The compiled code depends on the number of facts.
    facts = None if config.built().graph is None else facts
    return _beginning(shape_of(config), sizes.num_entities, sizes.num_relations, layout)(numbers, facts)


def state_shape(config: Training, num_entities: int, num_relations: int, num_facts: int = 1) -> State:
    """Shapes and types of a state, as `jax.ShapeDtypeStruct`, with `num_facts` facts in train."""
    begin = _beginning(shape_of(config), num_entities, num_relations)
    return jax.eval_shape(begin, rates(config), jax.ShapeDtypeStruct((num_facts, 3), jnp.int32))


def direction(config: Training) -> optax.GradientTransformation:
    """Optimiser without its learning rate: the transformation of gradients before that factor.

    Adagrad starts from sums of 0, as in Lacroix et al. 2018. Its first gradients can be tiny, so eps is tiny
    too.
    """
    found = {
        "adagrad": partial(optax.scale_by_rss, initial_accumulator_value=0.0, eps=1e-30),
        "adam": optax.scale_by_adam,
        "adamax": optax.scale_by_adamax,
        "sgd": optax.identity,
    }[config.optimiser]()
    return (
        optax.chain(found, optax.add_decayed_weights(config.weight_decay)) if config.weight_decay else found
    )


def rate_factor(config: Training, step: Int[Array, ""], *, total: int, per_epoch: int) -> Float[Array, ""]:
    """Factor in [0, 1] of the learning rate at `step` (from 0) of `total`."""
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
    config: Training, num_entities: int, num_relations: int, layout: MeshLayout | None = None
) -> Callable[..., State]:
    def state(numbers: Hyperparameters, facts: Array | None) -> State:
        model = config.built()
        params, statistics = model.begun(keys_of(numbers)[0], num_entities, num_relations, facts)
        params = params if model.retract is None else model.retract(params)
        params = params if layout is None else padded(layout, params)
        return State(params, statistics, direction(config).init(params), jnp.float32(0), jnp.int32(-1))

    if layout is None:
        return jax.jit(state)
    facts = jax.ShapeDtypeStruct((1, 3), jnp.int32)  # the number of facts does not change the layout
    return jax.jit(state, out_shardings=layout.shardings(jax.eval_shape(state, rates(config), facts)))


@jax.jit
def all_finite(params: Params) -> Bool[Array, ""]:
    """Whether all parameters and their sums are finite."""
    return jnp.stack([jnp.isfinite(jnp.sum(x)) for x in jax.tree.leaves(params)]).all()


def keys_of(numbers: Hyperparameters) -> tuple[Array, Array, Array]:
    """Keys of the initial parameters, of the orders of epochs, and of the steps."""
    initial, order, steps = jax.random.split(seeded(numbers.seed), 3)
    return initial, order, steps
