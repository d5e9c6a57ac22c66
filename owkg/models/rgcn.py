"""R-GCN: entities aggregate their neighbours with one matrix per relation, before DistMult."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.errors import ArgumentError
from owkg.models import graph, initial, layers, options
from owkg.models.kind import BINARY, CLASSIFIED, SMALL_CLASSIFIED, Kind
from owkg.models.model import Model, Params, Statistics, entity_rows, sided, stateless
from owkg.models.similarity import DOT, HIGHEST


@dataclass(frozen=True)
class RGCN:
    """Options of R-GCN.

    Attributes:
        dim: reals per entity and per relation.
        layers: number of message-passing layers.
        bases: number of basis matrices; the matrix of each relation is a weighted sum of them.
        blocks: diagonal blocks of the matrix of a relation, instead of bases; must divide dim. 0: use bases.
        edge_dropout: share of the facts whose messages are left out of a step.
        self_dropout: share of the entities whose own row is left out of a layer.
        reciprocal: whether heads are predicted through inverse relations.
    """

    dim: int = 200
    layers: int = 1
    bases: int = 2
    blocks: int = 0
    edge_dropout: float = 0.4
    self_dropout: float = 0.2
    reciprocal: bool = False

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim", "layers", "bases")
        options.whole_numbers(self, "blocks", low=0)
        options.share(self, "edge_dropout", "self_dropout")
        options.flags(self, "reciprocal")
        if self.blocks and self.dim % self.blocks:
            raise ArgumentError("blocks", f"must divide `dim` {self.dim}, got {self.blocks}.")


def rgcn_model(config: RGCN) -> Model:
    """R-GCN, DistMult on entities encoded by message passing.

        score(h, r, t) = sum_k h_k r_k t_k of encoded h and t
        x <- act(sum over messages (s, r) of W_r x_s / (messages in that direction) + W_0 x)

    The first x is relu(e + b) for embeddings e. Messages go in both directions: a fact gives its head one by
    r, and its tail one by the inverse of r, which has its own matrix. act is relu, and the identity in the
    last layer. In training, a share of the facts gives no messages, and only the remaining messages are
    counted. Parameters in addition to the embeddings: `bias` [dim]; for layer i `self{i}` [dim, dim] and
    `relation_bases{i}` [2 num_relations, bases] with `bases{i}` [bases, dim, dim], or `relation_blocks{i}` [2
    num_relations, dim, dim / blocks], with one row of a block per number of x_s. Relations start normal, b at
    0, and all other parameters as in Glorot and Bengio 2010.

    References:
        Schlichtkrull et al. 2018, Modeling relational data with graph convolutional networks, equations 2, 3,
        4 and 6; the first and the last layer as in the code of the authors.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        entity_key, relation_key, *keys = jax.random.split(key, 2 + config.layers)
        rows = num_relations * (2 if config.reciprocal else 1)
        params = {
            "entity": initial.xavier_normal(entity_key, (num_entities, config.dim)),
            "relation": initial.normal(relation_key, (rows, config.dim), 1.0),
            "bias": jnp.zeros(config.dim, jnp.float32),
        }
        square = (config.dim, config.dim)
        for i, own in enumerate(keys):
            self_key, first, second = jax.random.split(own, 3)
            params[f"self{i}"] = initial.xavier_normal(self_key, square)
            if config.blocks:
                size = config.dim // config.blocks
                shape = (2 * num_relations, config.dim, size)
                params[f"relation_blocks{i}"] = initial.normal(first, shape, size**-0.5)
            else:
                shape = (2 * num_relations, config.bases)
                params[f"relation_bases{i}"] = initial.normal(first, shape, config.bases**-0.5)
                deviation = config.dim**-0.5
                params[f"bases{i}"] = initial.normal(second, (config.bases, *square), deviation)
        return params, {}

    def encode(
        params: Params, statistics: Statistics, *, key: Array | None = None
    ) -> tuple[Params, Statistics]:
        x = jax.nn.relu(params["entity"] + params["bias"])
        edge_key, *keys = layers.keys(key, 1 + config.layers)
        weight = graph.kept(edge_key, config.edge_dropout, statistics)
        counted = graph.received(statistics, weight, len(x)).ravel()
        weight /= jnp.maximum(counted, 1)[statistics["edge_receiver"]]
        for i, own in enumerate(keys):
            loop = layers.dropout(own, config.self_dropout, _times(x, params[f"self{i}"]), whole=(1,))
            x = loop + _neighbours(config, params, statistics, weight, x, i)
            x = jax.nn.relu(x) if i < config.layers - 1 else x
        return params | {"entity": x.astype(params["entity"].dtype)}, statistics

    form, how = stateless(jnp.multiply), "blocks" if config.blocks else "bases"
    return Model(
        "rgcn",
        config,
        init,
        sided(form, form, reciprocal=config.reciprocal),
        entity_rows,
        DOT,
        encode=encode,
        graph=graph.edges,
        relation_params=("relation", *(f"relation_{how}{i}" for i in range(config.layers))),
    )


def _neighbours(
    config: RGCN,
    params: Params,
    statistics: Statistics,
    weight: Float[Array, "edges"],
    x: Float[Array, "n d"],
    layer: int,
) -> Float[Array, "n d"]:
    """Sum over the neighbours in layer `layer`; with bases, the sum is multiplied instead of each message."""
    relation, sent = statistics["edge_relation"], x[statistics["edge_sender"]] * weight[:, None]
    if not config.blocks:
        shares, bases = params[f"relation_bases{layer}"], params[f"bases{layer}"]
        sums = (
            graph.received(statistics, sent * shares[relation, b, None], len(x)).sum(0)
            for b in range(config.bases)
        )
        return sum((_times(own, basis) for own, basis in zip(sums, bases, strict=True)), jnp.zeros_like(x))
    rows = params[f"relation_blocks{layer}"]
    size = config.dim // config.blocks
    columns = sent.reshape(-1, config.blocks, size, 1)
    moved = sum(
        columns[:, :, k] * rows.reshape(len(rows), config.blocks, size, size)[relation, :, k]
        for k in range(size)
    )
    return graph.received(statistics, jnp.reshape(moved, sent.shape), len(x)).sum(0)


def _times(x: Float[Array, "n d"], matrix: Float[Array, "d e"]) -> Float[Array, "n e"]:
    return jnp.matmul(x, matrix, precision=HIGHEST)


KIND = Kind(
    "rgcn",
    RGCN,
    rgcn_model,
    "sum h r t of x <- act(sum W_r x_s / count + W_0 x)",
    "Schlichtkrull et al. 2018",
    training=CLASSIFIED | {"learning_rate": 0.01},
    presets={
        "fb15k-237": BINARY
        | {
            "dim": 500,
            "layers": 2,
            "blocks": 100,
            "edge_dropout": 0.5,
            "num_negatives": 10,
            "l2": 0.01,
            "batch_size": 30_000,
            "optimiser": "adam",
            "learning_rate": 0.01,
            "gradient_clip": 1.0,
            "epochs": 1000,
            "valid_every": 100,
            "patience": 1,
        },
        "small": SMALL_CLASSIFIED,
    },
)
