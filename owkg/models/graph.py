"""Message passing over the train facts in both directions: edges sorted by receiver, and sums of messages."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import layers
from owkg.models.model import Facts, Statistics


def edges(facts: Facts, num_entities: int, num_relations: int) -> Statistics:
    """Each fact as two edges, integers [2 facts]: edges to heads, then edges to tails, sorted by receiver.

    `edge_receiver` is a head, or a tail + num_entities. `edge_relation` is r, or its inverse r +
    num_relations. `edge_sender` is the entity at the other end, and `edge_fact` the number of the fact.
    """
    facts, halves = jnp.asarray(facts), []
    for half, (receiver, sender) in enumerate(((0, 2), (2, 0))):
        order = jnp.argsort(facts[:, receiver])
        own = facts[order]
        to, relation = own[:, receiver] + half * num_entities, own[:, 1] + half * num_relations
        halves.append((to, relation, own[:, sender], order))
    names = ("receiver", "relation", "sender", "fact")
    columns = map(jnp.concatenate, zip(*halves, strict=True))
    return {f"edge_{name}": x.astype(jnp.int32) for name, x in zip(names, columns, strict=True)}


def received(
    statistics: Statistics, messages: Float[Array, "edges *width"] | Array, num_entities: int
) -> Array:
    """Sums of the messages that each entity receives as head, and as tail, [2, num_entities, *width]."""
    to = statistics["edge_receiver"]
    sums = jax.ops.segment_sum(messages, to, 2 * num_entities, indices_are_sorted=True)
    return sums.reshape(2, num_entities, *messages.shape[1:])


def kept(key: Array | None, rate: float, statistics: Statistics) -> Float[Array, "edges"]:
    """1 for each edge, except 0 for both edges of a share `rate` of the facts; without a key always 1."""
    fact = statistics["edge_fact"]
    ones = jnp.ones(len(fact) // 2, jnp.float32)
    return (1 - rate) * layers.dropout(key, rate, ones)[fact] if key is not None else ones[fact]
