"""GCN-Align's structural encoder: two graph convolutions over both graphs, trained on pairs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Int32
from scipy import sparse

from owkg import checks
from owkg.align.data import Alignment
from owkg.align.sparse import SparseMatrix, sparse_matrix, sparse_product
from owkg.errors import ArgumentError
from owkg.keys import reproducible, seeded
from owkg.kg.graph import KnowledgeGraph
from owkg.ordered import distinct

NORMALISATIONS = ("symmetric", "incoming")
# Smallest weight of a relation, as in the authors' code.
_LEAST_WEIGHT = 0.3
# Number of steps in one call, few enough to show progress.
_STEPS = 10


@dataclass(frozen=True)
class Config:
    """Hyperparameters of GCN-Align.

    Attributes:
        dim: width of the embeddings.
        steps: number of steps, each over all training pairs; 0 keeps the random embeddings.
        learning_rate: learning rate of Adam.
        margin: distance by which a pair must be nearer than a pair with another entity.
        num_negatives: number of such other pairs for each training pair and side, drawn anew at each step.
        normalisation: normalisation of the messages between entities: "symmetric", a_ij / sqrt(d_i d_j), or
            "incoming", with weights that sum to 1 at each entity.
        seed: seed of the first embeddings and the negatives.
    """

    dim: int = 200
    steps: int = 100
    learning_rate: float = 0.05
    margin: float = 3.0
    num_negatives: int = 5
    normalisation: str = "symmetric"
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("dim", 1), ("steps", 0), ("num_negatives", 1)):
            checks.whole(name, getattr(self, name), least)
        for name in ("learning_rate", "margin"):
            checks.real_number(name, getattr(self, name), 0, np.inf, closed=False)
        if self.normalisation not in NORMALISATIONS:
            text = f"must be one of {', '.join(NORMALISATIONS)}, got {self.normalisation!r}."
            raise ArgumentError("normalisation", text)
        if checks.seed("seed", self.seed) >= 2**32:
            raise ArgumentError("seed", f"must be below 2**32, got {self.seed!r}.")


def adjacency(alignment: Alignment, normalisation: str = "symmetric") -> sparse.csr_array:
    """Weights of messages between the entities of both graphs, left ones first, including self-loops.

    a_ij is the sum of the inverse functionalities (distinct tails per triple) of the relations from i to j,
    and of the functionalities (distinct heads per triple) of the relations from j to i, each at least 0.3;
    a_ii = 1.

    References:
        Wang, Lv, Lan, Zhang, EMNLP 2018, section 3.2; the smallest weight and the symmetric form are from its
        code.
    """
    rows, columns, weights = [], [], []
    first = 0
    for graph in (alignment.left, alignment.right):
        head, relation, tail = graph.splits["train"].T.astype(np.int64)
        triples = np.bincount(relation, minlength=graph.num_relations)
        by_head, by_tail = (
            np.maximum(_distinct(relation, end, graph) / np.maximum(triples, 1), _LEAST_WEIGHT)
            for end in (head, tail)
        )
        apart = head != tail
        head, relation, tail = head[apart] + first, relation[apart], tail[apart] + first
        rows += [head, tail]
        columns += [tail, head]
        weights += [by_tail[relation], by_head[relation]]
        first += graph.num_entities
    own = np.arange(first)
    entries = (
        np.concatenate([*weights, np.ones(first)]),
        tuple(map(np.concatenate, ([*rows, own], [*columns, own]))),
    )
    matrix = sparse.coo_array(entries, shape=(first, first)).tocsr()
    if normalisation == "incoming":
        return sparse.diags_array(1 / matrix.sum(axis=1)) @ matrix
    scale = sparse.diags_array(1 / np.sqrt(matrix.sum(axis=0)))
    return scale @ matrix @ scale


def _distinct(relation: np.ndarray, entity: np.ndarray, graph: KnowledgeGraph) -> np.ndarray:
    """Number of distinct entities of each relation at one end."""
    pairs = distinct(relation * graph.num_entities + entity)
    return np.bincount(pairs // graph.num_entities, minlength=graph.num_relations)


def _initial(alignment: Alignment, config: Config) -> Float[Array, "entities d"]:
    """Random embeddings of length 1 of the entities of both graphs, left ones first."""
    count = alignment.left.num_entities + alignment.right.num_entities
    key = jax.random.fold_in(seeded(config.seed), 0)
    return _unit(jax.random.truncated_normal(key, -2, 2, (count, config.dim), jnp.float32))


def _unit(table: Array) -> Array:
    """Rows scaled to length 1."""
    return table / jnp.maximum(jnp.linalg.norm(table, axis=1, keepdims=True), 1e-12)


@jax.jit
def convolved(matrix: SparseMatrix, table: Float[Array, "entities d"]) -> Float[Array, "entities d"]:
    """Two graph convolutions of the embeddings scaled to length 1, without weights, as in GCN-Align."""
    return sparse_product(matrix, jax.nn.relu(sparse_product(matrix, _unit(table))))


@reproducible
def initial_embeddings(alignment: Alignment, config: Config) -> tuple[np.ndarray, np.ndarray]:
    """Random embeddings of length 1 of the left and of the right entities, a baseline without a graph."""
    return _halves(alignment, _initial(alignment, config))


def _halves(alignment: Alignment, table: Float[Array, "entities d"]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the left and of the right entities."""
    left, right = np.split(np.asarray(table), [alignment.left.num_entities])
    return left, right


@reproducible
def train_gcn(
    alignment: Alignment, config: Config = Config(), *, on_progress: Callable[[int, int], None] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings of the left and of the right entities by GCN-Align, trained on the training pairs.

    The loss of a training pair (i, j) is the mean, over entities k of either graph, of [|e_i - e_j| + margin
    - |e_i - e_k|]_+ and [|e_i - e_j| + margin - |e_k - e_j|]_+, in L1 distances.

    Args:
        alignment: graphs and pairs, from `read_alignment`; without training pairs nothing is trained, and
            random embeddings are convolved.
        config: hyperparameters.
        on_progress: function called with (done, total) steps.

    Returns:
        float32 [left entities, dim] and [right entities, dim].

    References:
        Wang, Lv, Lan, Zhang, EMNLP 2018, equation 6. They use plain gradient descent for 2,000 steps; Adam
        needs 100.
    """
    matrix = sparse_matrix(adjacency(alignment, config.normalisation))
    table = _initial(alignment, config)
    steps = config.steps if len(alignment.train) else 0
    shift = np.array([0, alignment.left.num_entities], np.int32)
    pairs = jnp.asarray(alignment.train + shift)
    optimiser = optax.adam(config.learning_rate)
    state = optimiser.init(table)
    key = jax.random.fold_in(seeded(config.seed), 1)
    for begin in range(0, steps, _STEPS):
        count = min(_STEPS, steps - begin)
        table, state = _descended(config, count, matrix, pairs, key, begin, table, state)
        if on_progress is not None:
            table.block_until_ready()
            on_progress(begin + count, steps)
    return _halves(alignment, convolved(matrix, table))


@partial(jax.jit, static_argnames=("config", "count"), donate_argnames=("table", "state"))
def _descended(
    config: Config,
    count: int,
    matrix: SparseMatrix,
    pairs: Int32[Array, "pairs 2"],
    key: Array,
    begin: int | Int[Array, ""],
    table: Float[Array, "entities d"],
    state: optax.OptState,
) -> tuple[Array, Any]:
    """Embeddings and optimiser state after `count` steps."""
    optimiser = optax.adam(config.learning_rate)

    def step(carry: tuple[Array, Any], number: Array) -> tuple[tuple[Array, Any], None]:
        table, state = carry
        shape = (config.num_negatives, 2, len(pairs))
        others = jax.random.randint(jax.random.fold_in(key, number), shape, 0, len(table), jnp.int32)
        slope = jax.grad(_loss)(table, matrix, pairs, others, config.margin)
        change, state = optimiser.update(slope, state)
        return (jnp.asarray(optax.apply_updates(table, change)), state), None

    return jax.lax.scan(step, (table, state), begin + jnp.arange(count))[0]


def _loss(table: Array, matrix: SparseMatrix, pairs: Array, others: Array, margin: float) -> Array:
    """Mean loss of all training pairs."""
    embeddings = convolved(matrix, table)
    left, right = embeddings[pairs[:, 0]], embeddings[pairs[:, 1]]
    apart = _distance(left, right) + margin

    def with_others(total: Array, other: Array) -> tuple[Array, None]:
        missed = apart - _distance(left, embeddings[other[0]]), apart - _distance(embeddings[other[1]], right)
        return total + sum(jnp.sum(jax.nn.relu(term)) for term in missed), None

    total, _ = jax.lax.scan(with_others, jnp.zeros(()), others)
    return total / others.size


def _distance(one: Array, other: Array) -> Array:
    """L1 distances."""
    return jnp.sum(jnp.abs(one - other), axis=-1)
