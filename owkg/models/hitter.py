"""HittER: one transformer reads the given entity and relation, another one also the entity's neighbours."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from owkg.models import initial, layers, options
from owkg.models.kind import SMALL_CLASSIFIED, Kind
from owkg.models.model import Facts, Ids, Model, Params, Statistics, entity_rows
from owkg.models.similarity import DOT, HIGHEST

_EPSILON = 1e-12  # as in BERT
_DEVIATION = 0.02
# Rows of `marks`: beginning of a triple, beginning of a context, hidden entity, position of an entity and of
# a relation in a triple, source and neighbour in a context.
_BEGIN, _BEGIN_CONTEXT, _HIDDEN, _ENTITY, _RELATION, _SOURCE, _NEIGHBOUR = range(7)


@dataclass(frozen=True)
class HittER:
    """Options of HittER.

    Attributes:
        dim: reals per entity and per relation; a multiple of heads.
        heads: attention heads.
        hidden: width of the hidden layers.
        triple_layers: layers of the transformer that reads an entity and a relation.
        context_layers: layers of the transformer that reads the neighbours.
        neighbours: largest number of facts of the given entity to read, drawn once if it has more.
        dropout: dropout of the embeddings and of the sums in each layer.
        output_dropout: dropout of the query.
        context_dropout: share of the queries of a step that see no neighbours.
        masked: share of the queries of a step whose given entity is hidden.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 320
    heads: int = 8
    hidden: int = 1280
    triple_layers: int = 3
    context_layers: int = 6
    neighbours: int = 50
    dropout: float = 0.1
    output_dropout: float = 0.6
    context_dropout: float = 0.3
    masked: float = 0.5
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim", "heads", "hidden", "triple_layers", "context_layers", "neighbours")
        options.share(self, "dropout", "output_dropout", "context_dropout", "masked")
        options.only_reciprocal(self, "hitter")
        options.divisible(self, "dim", "heads")


def hitter_model(config: HittER) -> Model:
    """HittER, a hierarchical transformer over an entity and its neighbours.

        score(h, r, t) = c . t, where c is the first output vector of the upper transformer

    The lower transformer reads (begin, entity, relation) and outputs its first vector. The upper transformer
    reads (begin of the context, the vector of the query, the vectors of the neighbours of its entity),
    without positions. Layers are the layers of BERT: attention, then a network with one hidden layer, each
    with a residual connection and normalisation. In training, the fact of the query is not among the
    neighbours, the entity of some queries is hidden, and some queries see no neighbours. Unlike in the paper,
    hidden entities have no loss of their own, and no entity is replaced by another. All parameters start
    normal with standard deviation 0.02.

    References:
        Chen et al. 2021, HittER: hierarchical transformers for knowledge graph embeddings, sections 2 and 3.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        *keys, mark_key, lower_key, upper_key = jax.random.split(key, 5)

        def law(key: Array, shape: tuple[int, ...]) -> Array:
            return initial.normal(key, shape, _DEVIATION)

        shapes = (num_entities, config.dim), (num_relations, config.dim)
        return {
            **initial.drawn_embeddings(keys, law, config, *shapes),
            "marks": law(mark_key, (_NEIGHBOUR + 1, config.dim)),
            **_stack("lower", lower_key, config, config.triple_layers),
            **_stack("upper", upper_key, config, config.context_layers),
        }, {}

    def query(
        params: Params,
        statistics: Statistics,
        entity: Ids,
        relation: Ids,
        side: str,
        *,
        key: Array | None = None,
        answer: Ids | None = None,
    ) -> tuple[Array, Statistics]:
        if side == "head":
            relation = relation + params["relation"].shape[0] // 2
        keys = layers.keys(key, 4)
        near, along = jnp.moveaxis(statistics["neighbours"][entity], -1, 0)
        there = near >= 0
        if answer is not None:
            there &= ~((near == answer[:, None]) & (along == relation[:, None]))
        given, others = params["entity"][entity], params["entity"][near]
        if key is not None:
            of_context, of_source = jax.random.split(jax.random.fold_in(key, len(keys)))
            seen = jax.random.bernoulli(of_context, 1 - config.context_dropout, (len(entity), 1))
            hidden = jax.random.bernoulli(of_source, config.masked, (len(entity), 1))
            there, given = there & seen, jnp.where(hidden, params["marks"][_HIDDEN], given)
        entities = jnp.concatenate([given[:, None], others], axis=1)
        relations = jnp.concatenate([relation[:, None], along], axis=1)
        triples = _triples(params, config, entities, params["relation"][relations], keys[0], keys[1])
        marks = params["marks"]
        kinds = jnp.stack([marks[_SOURCE]] + [marks[_NEIGHBOUR]] * near.shape[1])
        begin = jnp.broadcast_to(marks[_BEGIN_CONTEXT], (len(entity), 1, config.dim))
        read = jnp.concatenate([jnp.ones((len(entity), 2), bool), there], axis=1)
        context = jnp.concatenate([begin, triples + kinds], axis=1)
        found = _read("upper", params, config, context, read, keys[2])
        return layers.dropout(keys[3], config.output_dropout, found), statistics

    return Model(
        "hitter",
        config,
        init,
        query,
        entity_rows,
        DOT,
        graph=lambda facts, n, relations: {"neighbours": neighbours(facts, n, relations, config.neighbours)},
        sees_answers=True,
    )


def neighbours(
    facts: Facts, num_entities: int, num_relations: int, most: int
) -> Int[Array, "entities most 2"]:
    """(Entity, relation) of at most `most` facts of each entity, drawn if it has more; -1 if it has fewer.

    A fact (h, r, t) is a neighbour (t, r) of h, and a neighbour (h, r + num_relations) of t. The same facts
    give the same draws.
    """
    head, relation, tail = jnp.asarray(facts, jnp.int32).T
    own = jnp.concatenate([head, tail])
    others = jnp.concatenate([tail, head]), jnp.concatenate([relation, relation + num_relations])
    mixed = jax.random.permutation(jax.random.key(0), len(own))
    order = mixed[jnp.argsort(own[mixed])]
    own, rows = own[order], jnp.stack(others, axis=1)[order]
    place = jnp.arange(len(own)) - jnp.searchsorted(own, own)
    return jnp.full((num_entities, most, 2), -1, jnp.int32).at[own, place].set(rows, mode="drop")


def _triples(
    params: Params,
    config: HittER,
    entities: Float[Array, "q k d"],
    relations: Float[Array, "q k d"],
    first: Array | None,
    last: Array | None,
) -> Float[Array, "q k d"]:
    """Vectors of entities with relations."""
    q, k, d = entities.shape
    marks = params["marks"]
    begin = jnp.broadcast_to(marks[_BEGIN], entities.shape)
    x = jnp.stack([begin, entities + marks[_ENTITY], relations + marks[_RELATION]], axis=2)
    x = layers.dropout(first, config.dropout, x.reshape(q * k, 3, d))
    return _read("lower", params, config, x, jnp.ones(x.shape[:2], bool), last).reshape(q, k, d)


def _stack(name: str, key: Array, config: HittER, depth: int) -> Params:
    """Parameters of `depth` layers, each array with a leading axis of layers."""
    d, wide = config.dim, config.hidden
    shapes = {"attend": (d, 3 * d), "join": (d, d), "widen": (d, wide), "narrow": (wide, d)}
    params = {}
    for own, (part, shape) in zip(jax.random.split(key, len(shapes)), shapes.items(), strict=True):
        params[f"{name}_{part}"] = initial.normal(own, (depth, *shape), _DEVIATION)
        params[f"{name}_{part}_bias"] = jnp.zeros((depth, shape[1]), jnp.float32)
    for part in ("first", "second"):
        params[f"{name}_{part}_scale"] = jnp.ones((depth, d), jnp.float32)
        params[f"{name}_{part}_shift"] = jnp.zeros((depth, d), jnp.float32)
    return params


def _read(
    name: str,
    params: Params,
    config: HittER,
    x: Float[Array, "q tokens d"],
    there: Bool[Array, "q tokens"],
    key: Array | None,
) -> Float[Array, "q d"]:
    """First vector after the layers of this name, with attention to the tokens in `there`."""
    prefix = f"{name}_"
    own = {part.removeprefix(prefix): array for part, array in params.items() if part.startswith(prefix)}
    depth = len(own["join"])
    keys = None if key is None else jax.random.split(key, 2 * depth).reshape(depth, 2)

    def layer(x: Array, of: tuple[Params, Array | None]) -> tuple[Array, None]:
        weights, key = of
        first, second = (None, None) if key is None else key
        parts = jnp.split(_affine(x, weights, "attend"), 3, axis=-1)
        q, k, v = (part.reshape(*part.shape[:2], config.heads, -1) for part in parts)
        logits = jnp.einsum("bthd,bshd->bhts", q, k, precision=HIGHEST) / q.shape[-1] ** 0.5
        logits = jnp.where(there[:, None, None], logits, jnp.finfo(x.dtype).min)
        seen = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(logits, axis=-1), v, precision=HIGHEST)
        moved = _affine(seen.reshape(x.shape), weights, "join")
        x = _normal(x + layers.dropout(first, config.dropout, moved), weights, "first")
        moved = _affine(jax.nn.gelu(_affine(x, weights, "widen"), approximate=False), weights, "narrow")
        return _normal(x + layers.dropout(second, config.dropout, moved), weights, "second"), None

    return jax.lax.scan(layer, x, (own, keys))[0][:, 0]


def _affine(x: Float[Array, "q t i"], weights: Params, name: str) -> Float[Array, "q t o"]:
    return jnp.matmul(x, weights[name], precision=HIGHEST) + weights[f"{name}_bias"]


def _normal(x: Float[Array, "q t d"], weights: Params, name: str) -> Float[Array, "q t d"]:
    """Layer normalisation (Ba et al. 2016)."""
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(jnp.square(centred).mean(-1, keepdims=True) + _EPSILON)
    return scaled * weights[f"{name}_scale"] + weights[f"{name}_shift"]


_PUBLISHED = {"optimiser": "adamax", "learning_rate": 0.01, "schedule": "linear", "weight_decay": 0.01}

KIND = Kind(
    "hitter",
    HittER,
    hitter_model,
    "transformer(transformer(h, r), neighbours of h) . t",
    "Chen et al. 2021",
    training={
        "training_loop": "1vsall",
        "loss": "cross_entropy",
        "batch_size": 512,
        "label_smoothing": 0.1,
        "optimiser": "adam",
        "learning_rate": 1e-3,
    },
    presets={
        "fb15k-237": _PUBLISHED | {"label_smoothing": 0.0, "epochs": 300, "warmup_steps": 32_000},
        "wn18rr": _PUBLISHED
        | {
            "neighbours": 12,
            "context_dropout": 0.5,
            "masked": 0.8,
            "learning_rate": 0.008,
            "epochs": 500,
            "warmup_steps": 17_000,
        },
        "small": SMALL_CLASSIFIED
        | {
            "heads": 4,
            "hidden": 128,
            "triple_layers": 1,
            "context_layers": 2,
            "neighbours": 10,
            "output_dropout": 0.1,
            "masked": 0.3,
            "learning_rate": 3e-3,
            "warmup_steps": 80,
            "schedule": "linear",
        },
    },
)
