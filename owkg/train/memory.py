"""Memory that training takes at least, asked for before it starts."""

import jax

from owkg import checks
from owkg.evaluation.memory import free_bytes
from owkg.train.config import Training
from owkg.train.layout import MeshLayout
from owkg.train.queries import Sizes
from owkg.train.state import state_shape
from owkg.train.updates import updates_of


def least_bytes(config: Training, sizes: Sizes, *, runs: int = 1) -> int:
    """Bytes of parameters and optimiser of so many runs; of gradients where whole tables are updated."""
    state = state_shape(config, sizes.num_entities, sizes.num_relations, sizes.num_facts)
    parts = [state] if updates_of(config, sizes.num_entities).how == "rows" else [state, state.params]
    return runs * sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(parts))


def require_memory(config: Training, sizes: Sizes, layout: MeshLayout | None, *, runs: int = 1) -> None:
    """A check that the devices of this process have room for `least_bytes`.

    Raises:
        ValueError: naming the model, with what is needed and what is free.
    """
    own = [jax.local_devices()[0]] if layout is None else list(layout.mesh.local_devices)
    share = least_bytes(config, sizes, runs=runs) // (1 if layout is None else layout.mesh.size)
    # Virtual devices of a processor share its memory.
    needed, free = share * (len(own) if own[0].platform == "cpu" else 1), free_bytes(own[0])
    what = f"parameters and optimiser of {sizes.num_entities:,} entities (fewer dimensions take less)"
    checks.memory("model", needed, free, what)
