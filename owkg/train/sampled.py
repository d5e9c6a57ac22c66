"""Loss of queries against their own candidates, in one pass over the embeddings."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

# Bytes of embeddings to gather at a time: the size of a CPU's cache; elsewhere, an amount that fits in
# memory.
_CPU_BLOCK, _BLOCK = 2**22, 2**30

# Rows of tables by name, or one array.
_Rows = PyTree[Array]
Compare = Callable[[Array, Array], Array]
# Function from (scores [q, k], weight [q]) to the sum of the weighted losses of the queries.
Total = Callable[[Array, Array], Array]


def sampled_loss(
    one: Compare,
    total: Total,
    table: Float[Array, "n d"],
    queries: Float[Array, "q e"],
    candidates: Int[Array, "q k"],
    weight: Float[Array, "q"],
) -> Float[Array, ""]:
    """Loss of queries against their own candidates, with gradients for `table` and `queries`.

        total(one(queries, table[candidates]), weight)

    The loss of a query depends on its own scores only. Blocks of queries are therefore gathered, scored and
    differentiated while they are in the cache, and the gradients of the embeddings are added to their rows:
    an array [q, k, d] never exists, neither forward nor backward. `one` compares queries with candidates,
    which are rows of `table`; `total` sums weighted losses.
    """
    return row_loss(one, total, lambda rows: rows, table, table, queries, candidates, candidates, weight)


def row_loss(
    one: Compare,
    total: Total,
    embedded: Callable[[_Rows], Array],
    tables: _Rows,
    sums: _Rows,
    queries: Float[Array, "q e"],
    candidates: Int[Array, "q k"],
    slots: Int[Array, "q k"],
    weight: Float[Array, "q"],
) -> Float[Array, ""]:
    """Loss of `sampled_loss` for candidates `embedded(rows)` of `tables`, which are not differentiated.

    The gradients of the rows of the candidates are added up at their `slots`, in arrays with the shapes of
    `sums`. These arrays are the gradient for `sums`, whose values do not matter. No array has the size of a
    table.
    """

    def passed(tables: _Rows, *arrays: Array) -> tuple[Array, tuple[_Rows, Array]]:
        return _pass(one, total, embedded, tables, sums, *arrays)

    @jax.custom_vjp
    def loss(sums: _Rows, queries: Array, constant: _Rows) -> Array:
        del sums
        tables, *at = constant
        return passed(tables, queries, *at)[0]

    def forward(sums: _Rows, queries: Array, constant: _Rows) -> tuple[Array, _Rows]:
        tables, *at = constant
        value, (d_sums, d_queries) = passed(tables, queries, *at)
        return value, (jax.tree.map(lambda d, x: d.astype(x.dtype), d_sums, sums), d_queries)

    def backward(gradients: tuple[_Rows, Array], cotangent: Array) -> tuple[_Rows, Array, None]:
        d_sums, d_queries = jax.tree.map(lambda g: (cotangent * g).astype(g.dtype), gradients)
        return d_sums, d_queries, None

    loss.defvjp(forward, backward)
    return loss(sums, queries, (jax.lax.stop_gradient(tables), candidates, slots, weight))


def _pass(
    one: Compare,
    total: Total,
    embedded: Callable[[_Rows], Array],
    tables: _Rows,
    like: _Rows,
    queries: Array,
    candidates: Array,
    slots: Array,
    weight: Array,
) -> tuple[Array, tuple[_Rows, Array]]:
    """The loss and its gradients, with the shapes of `like` and of `queries`."""
    q, k = candidates.shape
    limit = _CPU_BLOCK if jax.default_backend() == "cpu" else _BLOCK
    row = sum(x.size * x.dtype.itemsize // len(x) for x in jax.tree.leaves(tables))
    block = max(1, min(q, limit // (k * row)))
    blocks = -(-q // block)

    def folded(x: Array) -> Array:
        padding = ((0, blocks * block - q),) + ((0, 0),) * (x.ndim - 1)  # with weight 0
        return jnp.pad(x, padding).reshape(blocks, block, *x.shape[1:])

    def add(carry: tuple[Array, _Rows], part: tuple[Array, ...]) -> tuple[_Rows, Array]:
        sum_, sums = carry
        asked, at, to, heavy = part

        def scored(asked: Array, rows: _Rows) -> Array:
            return total(one(asked[:, None], embedded(rows)), heavy)

        rows = jax.tree.map(lambda x: x.at[at].get(mode="promise_in_bounds"), tables)
        value, (d_asked, d_rows) = jax.value_and_grad(scored, (0, 1))(asked, rows)
        sums = jax.tree.map(
            lambda x, d: x.at[to].add(d.astype(x.dtype), mode="promise_in_bounds"), sums, d_rows
        )
        return (sum_ + value, sums), d_asked

    # Sums are float32, also for narrower numbers.
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, jnp.float32), like)
    parts = folded(queries), folded(candidates), folded(slots), folded(weight)
    (loss, sums), d_queries = jax.lax.scan(add, (jnp.zeros((), jnp.float32), nothing), parts)
    d_queries = d_queries.reshape(-1, *d_queries.shape[2:])[:q]
    return loss, (sums, d_queries)
