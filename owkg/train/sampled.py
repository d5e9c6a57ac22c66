"""The loss of queries against candidates of their own, in one pass over the embeddings."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

# Embeddings gathered at a time: what stays in a CPU's cache; elsewhere, what fits into memory.
_CPU_BLOCK, _BLOCK = 2**22, 2**30

Compare = Callable[[Array, Array], Array]
# (scores [q, k], weight [q]) to the sum of the weighted losses of the queries.
Total = Callable[[Array, Array], Array]


def sampled_loss(
    one: Compare,
    total: Total,
    table: Float[Array, "n d"],
    queries: Float[Array, "q e"],
    candidates: Int[Array, "q k"],
    weight: Float[Array, "q"],
) -> Float[Array, ""]:
    """total(one(queries, table[candidates]), weight), with gradients for `table` and `queries`.

    The loss of a query depends on its own scores only. So blocks of queries are gathered, scored and
    differentiated while they are in the cache, and the gradients of the embeddings are added to the rows they
    came from: [q, k, d] never exists, neither forward nor backward. `one` compares queries with candidates,
    which are rows of `table`; `total` sums weighted losses.
    """

    @jax.custom_vjp
    def loss(*arrays: Array) -> Array:
        return _pass(one, total, *arrays)[0]

    def backward(gradients: tuple[Array, Array], cotangent: Array) -> tuple[Array | None, ...]:
        return *((cotangent * g).astype(g.dtype) for g in gradients), None, None

    loss.defvjp(lambda *arrays: _pass(one, total, *arrays), backward)
    return loss(table, queries, candidates, weight)


def _pass(
    one: Compare, total: Total, table: Array, queries: Array, candidates: Array, weight: Array
) -> tuple[Array, tuple[Array, Array]]:
    """The loss, and its gradients for `table` and `queries`."""
    q, k = candidates.shape
    limit = _CPU_BLOCK if jax.default_backend() == "cpu" else _BLOCK
    block = max(1, min(q, limit // (k * table.shape[1] * table.dtype.itemsize)))
    blocks = -(-q // block)

    def folded(x: Array) -> Array:
        padding = ((0, blocks * block - q),) + ((0, 0),) * (x.ndim - 1)  # of weight 0
        return jnp.pad(x, padding).reshape(blocks, block, *x.shape[1:])

    def add(carry: tuple[Array, Array], part: tuple[Array, Array, Array]) -> tuple[Any, Array]:
        sum_, d_table = carry
        asked, at, heavy = part

        def scored(asked: Array, rows: Array) -> Array:
            return total(one(asked[:, None], rows), heavy)

        rows = table.at[at].get(mode="promise_in_bounds")
        value, (d_asked, d_rows) = jax.value_and_grad(scored, (0, 1))(asked, rows)
        d_table = d_table.at[at].add(d_rows.astype(d_table.dtype), mode="promise_in_bounds")
        return (sum_ + value, d_table), d_asked

    # Sums run in float32, also of narrower numbers.
    zero = jnp.zeros((), jnp.float32), jnp.zeros(table.shape, jnp.float32)
    parts = folded(queries), folded(candidates), folded(weight)
    (loss, d_table), d_queries = jax.lax.scan(add, zero, parts)
    d_queries = d_queries.reshape(-1, *d_queries.shape[2:])[:q]
    return loss, (d_table.astype(table.dtype), d_queries)
