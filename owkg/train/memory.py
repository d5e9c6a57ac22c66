"""Memory that training needs at least, checked before it starts."""

from collections.abc import Callable

import jax
from jaxtyping import Array, PyTree

from owkg import checks
from owkg.evaluation.memory import free_bytes
from owkg.models import Params, Statistics
from owkg.train.config import Training
from owkg.train.layout import MeshLayout
from owkg.train.queries import Sizes
from owkg.train.state import State, state_shape
from owkg.train.updates import updates_of


def least_bytes(config: Training, sizes: Sizes, *, runs: int = 1) -> int:
    """Bytes of parameters and optimiser of `runs` runs, and of gradients if whole tables are updated.

    Models with an encoder also need `kept_bytes`.
    """
    state = _state(config, sizes)
    parts = [state] if updates_of(config, sizes.num_entities).how == "rows" else [state, state.params]
    return runs * (_bytes(parts) + kept_bytes(config, sizes))


def kept_bytes(config: Training, sizes: Sizes) -> int:
    """Bytes that an encoder keeps for its derivative, such as messages along all edges; 0 without an encoder.

    They are found by tracing the shapes of `Model.encode`, without computing anything.
    """
    encode = config.built().encode
    if encode is None:
        return 0

    def kept(params: Params, statistics: Statistics, key: Array) -> Callable[..., object]:
        return jax.vjp(lambda own: encode(own, statistics, key=key)[0], params)[1]

    state = _state(config, sizes)
    narrow = {k: jax.ShapeDtypeStruct(x.shape, config.precision) for k, x in state.params.items()}
    return _bytes(jax.eval_shape(kept, narrow, state.statistics, jax.random.key(0)))


def _state(config: Training, sizes: Sizes) -> State:
    return state_shape(config, sizes.num_entities, sizes.num_relations, sizes.num_facts)


def _bytes(arrays: PyTree) -> int:
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(arrays))


def require_memory(config: Training, sizes: Sizes, layout: MeshLayout | None, *, runs: int = 1) -> None:
    """Check that the devices of this process have room for `least_bytes`.

    Raises:
        ValueError: if memory is too small; the message names the model and gives needed and free memory.
    """
    own = [jax.local_devices()[0]] if layout is None else list(layout.mesh.local_devices)
    share = least_bytes(config, sizes, runs=runs) // (1 if layout is None else layout.mesh.size)
    # Virtual devices of a CPU share its memory.
    needed, free = share * (len(own) if own[0].platform == "cpu" else 1), free_bytes(own[0])
    what = f"parameters and optimiser of {sizes.num_entities:,} entities"
    what += f", and messages along {2 * sizes.num_facts:,} edges" if config.built().encode else ""
    what += " (fewer dimensions need less)"
    checks.memory("model", needed, free, what)
