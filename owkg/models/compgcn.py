"""CompGCN: entities aggregate compositions of their neighbours and relations, then another model scores."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.errors import ArgumentError
from owkg.models import conve, graph, initial, layers, options
from owkg.models.kind import LABELLED, Kind
from owkg.models.model import Facts, Form, Model, Params, Statistics, entity_rows, rows_with, sided, stateless
from owkg.models.similarity import DOT, HIGHEST, minus_l1


class _Composition(NamedTuple):
    """Composition end(join(begin(x), begin(r)), dim); messages are summed before `end`."""

    begin: Callable[[Array], Array]
    join: Callable[[Array, Array], Array]
    end: Callable[[Array, int], Array]


def _plain(join: Callable[[Array, Array], Array]) -> _Composition:
    return _Composition(lambda x: x, join, lambda x, _: x)


_COMPOSITIONS = {
    "corr": _Composition(
        lambda x: jnp.fft.rfft(x.astype(jnp.result_type(x, jnp.float32))),
        lambda x, r: jnp.conj(x) * r,
        lambda x, dim: jnp.fft.irfft(x, dim),
    ),
    "sub": _plain(jnp.subtract),
    "mult": _plain(jnp.multiply),
}
_DECODERS = ("conve", "distmult", "transe")
_WAYS = ("in", "out", "loop")


@dataclass(frozen=True)
class CompGCN:
    """Options of CompGCN.

    Attributes:
        dim: reals per entity and per relation.
        encoded_dim: reals per entity and per relation after encoding.
        layers: number of message-passing layers.
        composition: composition of a neighbour and a relation, "corr", "sub" or "mult".
        decoder: model of the score, "conve", "distmult" or "transe".
        height: with conve, rows of the picture of one encoded embedding; must divide encoded_dim.
        channels: with conve, filters of the convolution; the paper uses 200, with the decoder conve.
        kernel: with conve, rows and columns of a filter.
        margin: with transe, gamma, the constant from which the distance is subtracted.
        graph_dropout: dropout of the sums of messages.
        encoded_dropout: dropout of encoded entities.
        channel_dropout: with conve, dropout of its channels.
        output_dropout: with conve, dropout of its query.
        reciprocal: whether inverse relations have their own embeddings; otherwise their embeddings are the
            negatives of the relations', as with transe in the paper.
    """

    dim: int = 100
    encoded_dim: int = 200
    layers: int = 1
    composition: str = "corr"
    decoder: str = "distmult"
    height: int = 10
    channels: int = 32
    kernel: int = 7
    margin: float = 40.0
    graph_dropout: float = 0.1
    encoded_dropout: float = 0.3
    channel_dropout: float = 0.3
    output_dropout: float = 0.3
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim", "encoded_dim", "layers", "height", "channels", "kernel")
        options.one_of(self, "composition", *_COMPOSITIONS)
        options.one_of(self, "decoder", *_DECODERS)
        options.nonnegative(self, "margin")
        options.share(self, "graph_dropout", "encoded_dropout", "channel_dropout", "output_dropout")
        options.flags(self, "reciprocal")
        if self.decoder != "conve":
            return
        options.only_reciprocal(self, "the decoder conve")
        if self.encoded_dim % self.height or min(self.picture) < self.kernel:
            raise ArgumentError(
                "height",
                f"must divide `encoded_dim` {self.encoded_dim} into a picture of at least `kernel` "
                f"{self.kernel} rows and columns, got {self.height}.",
            )

    @property
    def picture(self) -> tuple[int, int]:
        """Rows and columns of the picture of a query."""
        return 2 * self.height, self.encoded_dim // self.height


def compgcn_model(config: CompGCN) -> Model:
    """CompGCN, the score of ConvE, DistMult or TransE on encoded entities and relations.

        x <- tanh(norm((W_in sum phi(x_t, r) + W_out sum phi(x_h, r') + W_loop phi(x, l)) / 3)), r <- W_rel r

    The sums are over the facts (x, r, t) and (h, r, x), with r' the inverse of r. The weight of a fact is the
    product, over its two entities, of 1 / sqrt of their facts in that direction. phi(x, r) is the circular
    correlation of x and r, x - r, or x r. ConvE sees the numbers of h and r alternately in one picture, with
    dropout of single numbers; ConvE and DistMult add a bias of the answer. Parameters in addition to the
    embeddings: for layer i `loop{i}` [1, dim], `in{i}`, `out{i}`, `loop_to{i}`, `rel{i}`, [dim, encoded_dim]
    in the first layer, and `layer{i}_*` of the normalisation; `entity_bias`; the parameters of ConvE. All
    parameters start normal as in Glorot and Bengio 2010. A bias before batch normalisation has no effect and
    is left out.

    References:
        Vashishth et al. 2020, Composition-based multi-relational graph convolutional networks, equations 2 to
        5; weights and pictures as in the code of the authors.
    """
    phi, decoder = _COMPOSITIONS[config.composition], config.decoder
    rows, width = config.picture if decoder == "conve" else (0, 0)
    wide = config.encoded_dim

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        *keys, layers_key, first, second, third = jax.random.split(key, 6)
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        params = initial.drawn_embeddings(keys, initial.xavier_normal, config, *shapes)
        statistics = {}
        for i, own in enumerate(jax.random.split(layers_key, config.layers)):
            size = wide if i else config.dim
            loop_key, *matrix_keys = jax.random.split(own, 5)
            params[f"loop{i}"] = initial.xavier_normal(loop_key, (1, size))
            for name, one in zip(("in", "out", "loop_to", "rel"), matrix_keys, strict=True):
                params[f"{name}{i}"] = initial.xavier_normal(one, (size, wide))
            scales, running = layers.norm_init(f"layer{i}", wide)
            params |= scales
            statistics |= running
        if decoder != "transe":
            params["entity_bias"] = jnp.zeros(num_entities, jnp.float32)
        if decoder == "conve":
            own, running = conve.network_init(
                (first, second, third), rows, config.kernel, config.channels, wide, width
            )
            params |= own
            statistics |= running
        return params, statistics

    def encode(
        params: Params, statistics: Statistics, *, key: Array | None = None
    ) -> tuple[Params, Statistics]:
        x, r = params["entity"], params["relation"]
        r = r if config.reciprocal else jnp.concatenate([r, -r])
        sender, relation = statistics["edge_sender"], statistics["edge_relation"]
        weight = statistics["edge_weight"][:, None]
        for i, own in enumerate(layers.keys(key, config.layers)):
            *way_keys, last_key = layers.keys(own, 3)
            dim, begun, relations = x.shape[1], phi.begin(x), phi.begin(r)
            sums = graph.received(statistics, phi.join(begun[sender], relations[relation]) * weight, len(x))
            parts = [phi.end(sum_, dim) for sum_ in sums]
            loop = phi.end(phi.join(begun, phi.begin(params[f"loop{i}"])), dim)
            x = _times(loop, params[f"loop_to{i}"])
            for way_key, part, name in zip(way_keys, parts, ("in", "out"), strict=True):
                x += layers.dropout(way_key, config.graph_dropout, _times(part, params[f"{name}{i}"]))
            x, statistics = layers.norm(f"layer{i}", params, statistics, x / 3, training=key is not None)
            x, r = layers.dropout(last_key, config.encoded_dropout, jnp.tanh(x)), _times(r, params[f"rel{i}"])
        r = r if config.reciprocal else r[: len(r) // 2]
        encoded = {"entity": x, "relation": r}
        return params | {k: v.astype(params[k].dtype) for k, v in encoded.items()}, statistics

    def with_ones(entity: Array, relation: Array) -> Array:
        product = entity * relation
        return jnp.concatenate([product, jnp.ones_like(product[:, :1])], axis=-1)

    def pictured(
        params: Params,
        statistics: Statistics,
        entity: Float[Array, "q d"],
        relation: Float[Array, "q d"],
        key: Array | None,
    ) -> tuple[Float[Array, "q d1"], Statistics]:
        x = jnp.stack([entity, relation], axis=-1).reshape(-1, rows, width, 1)
        rates = 0.0, config.channel_dropout, config.output_dropout
        return conve.network(params, statistics, x, key, rates, whole=())

    forms: dict[str, tuple[Form, Form | None]] = {
        "conve": (pictured, None),
        "distmult": (stateless(with_ones), stateless(with_ones)),
        "transe": (stateless(jnp.add), stateless(jnp.subtract)),
    }
    distance = decoder == "transe"
    return Model(
        "compgcn",
        config,
        init,
        sided(*forms[decoder], reciprocal=config.reciprocal),
        entity_rows if distance else rows_with("entity_bias"),
        minus_l1(config.margin) if distance else DOT,
        encode=encode,
        graph=_weighted,
        entity_params=("entity",) if distance else ("entity", "entity_bias"),
    )


def _weighted(facts: Facts, num_entities: int, num_relations: int) -> Statistics:
    """Edges with `edge_weight`, 1 / sqrt of the facts in that direction of the receiver and of the sender."""
    found = graph.edges(facts, num_entities, num_relations)
    count = graph.received(found, jnp.ones(2 * len(facts), jnp.float32), num_entities)
    root = jnp.where(count > 0, jax.lax.rsqrt(jnp.maximum(count, 1)), 0).ravel()
    sender = found["edge_sender"].reshape(2, -1) + jnp.array([[0], [num_entities]])
    return found | {"edge_weight": root[found["edge_receiver"]] * root[sender.ravel()]}


def _times(x: Float[Array, "n d"], matrix: Float[Array, "d e"]) -> Float[Array, "n e"]:
    return jnp.matmul(x, matrix, precision=HIGHEST)


_PUBLISHED = LABELLED | {"decoder": "conve", "channels": 200, "epochs": 500}

KIND = Kind(
    "compgcn",
    CompGCN,
    compgcn_model,
    "conve, distmult or transe of x <- tanh(norm(sum W phi(x_s, r) / 3))",
    "Vashishth et al. 2020",
    training=LABELLED | {"loss": "cross_entropy", "label_smoothing": 0.0, "learning_rate": 0.005},
    presets={"fb15k-237": _PUBLISHED, "wn18rr": _PUBLISHED, "small": {"epochs": 60}},
)
