"""InteractE: a circular convolution over head and relation, arranged as chequered pictures."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from owkg.errors import ArgumentError
from owkg.models import initial, layers, options
from owkg.models.kind import BINARY, LABELLED, SMALL_CLASSIFIED, Kind
from owkg.models.model import Model, Params, Statistics, rows_with, sided
from owkg.models.similarity import DOT, HIGHEST


@dataclass(frozen=True)
class InteractE:
    """Options of InteractE.

    Attributes:
        dim: reals per entity and per relation; a multiple of height.
        height: rows of the picture of one embedding, with dim / height numbers each.
        kernel: rows and columns of a filter, an odd number.
        permutations: number of pictures, each with its own order of the numbers.
        channels: filters, the same for all pictures.
        input_dropout: dropout of the pictures.
        channel_dropout: dropout of whole channels.
        output_dropout: dropout of the query.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 200
    height: int = 10
    kernel: int = 9
    permutations: int = 1
    channels: int = 96
    input_dropout: float = 0.2
    channel_dropout: float = 0.5
    output_dropout: float = 0.5
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim", "height", "kernel", "permutations", "channels")
        options.share(self, "input_dropout", "channel_dropout", "output_dropout")
        options.only_reciprocal(self, "interacte")
        if self.dim % self.height:
            raise ArgumentError("height", f"must divide `dim`, got {self.height} for {self.dim}.")
        if self.kernel % 2 == 0:
            raise ArgumentError("kernel", f"must be odd, got {self.kernel}.")


def interacte_model(config: InteractE) -> Model:
    """InteractE, a circular convolutional network on head and relation.

        score(h, r, t) = relu(vec(relu(pictures * filters)) W) . t + b_t

    A picture has 2 height rows. The numbers of h and r alternate in it like the fields of a chequerboard,
    each in the random order given by `order` in `statistics`. All pictures are convolved circularly with the
    same filters, without biases. Batch normalisation comes before the convolution and before each relu.
    Dropout applies to the normalised pictures, to channels after the first relu, and to the query before its
    normalisation. Parameters in addition to the embeddings: `filters` [kernel, kernel, 1, channels];
    `dense_weight` and `dense_bias` to dim; `entity_bias` [num_entities]; `input_*`, `channel_*`, `output_*`
    of the normalisation. Initial embeddings and filters are normal as in Glorot and Bengio 2010, and biases
    of entities 0.

    The preset for FB15k-237 leaves out the authors' label smoothing, which owkg does not have with negatives.

    References:
        Vashishth et al. 2020, InteractE: improving convolution-based knowledge graph embeddings by increasing
        feature interactions, section 5.
    """
    width, maps = config.dim // config.height, config.permutations * config.channels
    shape = config.permutations, 2 * config.height, width

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        *keys, filter_key, dense_key, order_key = jax.random.split(key, 5)
        shapes = (num_entities, config.dim), (num_relations, config.dim)
        under = config.kernel**2  # numbers covered by a filter
        filters = (config.kernel, config.kernel, 1, config.channels)
        params = {
            **initial.drawn_embeddings(keys, initial.xavier_normal, config, *shapes),
            "entity_bias": jnp.zeros(num_entities, jnp.float32),
            "filters": initial.normal(filter_key, filters, (2 / (under * (1 + config.channels))) ** 0.5),
            **layers.affine_init(dense_key, "dense", 2 * config.dim * maps, config.dim),
        }
        statistics = {"order": chequered(order_key, *shape)}
        for name, size in (("input", config.permutations), ("channel", maps), ("output", config.dim)):
            scales, running = layers.norm_init(name, size)
            params |= scales
            statistics |= running
        return params, statistics

    def form(
        params: Params,
        statistics: Statistics,
        entity: Float[Array, "q d"],
        relation: Float[Array, "q d"],
        key: Array | None,
    ) -> tuple[Float[Array, "q d1"], Statistics]:
        training = key is not None
        input_key, channel_key, output_key = layers.keys(key, 3)
        x = jnp.concatenate([entity, relation], axis=-1)[:, statistics["order"]]
        x = jnp.moveaxis(x.reshape(len(x), *shape), 1, -1)
        x, statistics = layers.norm("input", params, statistics, x, training=training)
        x = layers.dropout(input_key, config.input_dropout, x)
        x = _convolved(jnp.moveaxis(x, -1, 1), params["filters"])
        x, statistics = layers.norm("channel", params, statistics, x, training=training)
        x = layers.dropout(channel_key, config.channel_dropout, jax.nn.relu(x), whole=(1, 2))
        x = layers.affine("dense", params, x.reshape(len(x), -1))
        x = layers.dropout(output_key, config.output_dropout, x)
        x, statistics = layers.norm("output", params, statistics, x, training=training)
        x = jax.nn.relu(x)
        return jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=-1), statistics

    return Model(
        "interacte",
        config,
        init,
        sided(form, None, reciprocal=config.reciprocal),
        rows_with("entity_bias"),
        DOT,
        entity_params=("entity", "entity_bias"),
    )


def chequered(key: Array, pictures: int, rows: int, columns: int) -> Int[Array, "numbers"]:
    """Index into [h; r] for each field of the pictures, with h and r on alternate fields of a chequerboard.

    The two colours are exchanged from one picture to the next.
    """
    half = rows * columns // 2
    keys = jax.random.split(key, 2 * pictures)
    orders = jax.vmap(lambda own: jax.random.permutation(own, half))(keys).reshape(pictures, 2, half)
    y, x = jnp.divmod(jnp.arange(2 * half), columns)
    of_relation = (y + x + jnp.arange(pictures)[:, None]) % 2
    # The n-th field of a colour holds the n-th number of the order.
    place = jnp.where(of_relation == 1, jnp.cumsum(of_relation, 1), jnp.cumsum(1 - of_relation, 1)) - 1
    picture = jnp.arange(pictures)[:, None]
    return (orders[picture, of_relation, place] + half * of_relation).ravel().astype(jnp.int32)


def _convolved(
    pictures: Float[Array, "q p rows columns"], filters: Float[Array, "k k 1 c"]
) -> Float[Array, "q rows columns pc"]:
    """Circular convolutions of every picture with every filter."""
    q, p, rows, columns = pictures.shape
    around = filters.shape[0] // 2
    wrapped = jnp.pad(pictures, ((0, 0), (0, 0), (around, around), (around, around)), mode="wrap")
    found = jax.lax.conv_general_dilated(
        wrapped.reshape(q * p, *wrapped.shape[2:], 1),
        filters,
        (1, 1),
        "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=HIGHEST,
    )
    return jnp.moveaxis(found.reshape(q, p, rows, columns, -1), 1, 3).reshape(q, rows, columns, -1)


KIND = Kind(
    "interacte",
    InteractE,
    interacte_model,
    "relu(vec(relu(chequered [h; r] * filters)) W) t + b",
    "Vashishth et al. 2020",
    training=LABELLED,
    presets={
        "fb15k-237": BINARY
        | {
            "num_negatives": 1000,
            "filtered_negatives": True,
            "batch_size": 128,
            "optimiser": "adam",
            "learning_rate": 1e-4,
            "label_smoothing": 0.0,
            "epochs": 500,
        },
        "wn18rr": LABELLED
        | {
            "batch_size": 256,
            "kernel": 11,
            "permutations": 4,
            "channel_dropout": 0.2,
            "output_dropout": 0.3,
            "epochs": 500,
        },
        "small": SMALL_CLASSIFIED
        | {
            "dim": 50,
            "height": 5,
            "kernel": 5,
            "channels": 32,
            "output_dropout": 0.3,
            "channel_dropout": 0.2,
            "batch_size": 256,
            "learning_rate": 3e-3,
            "label_smoothing": 0.0,
        },
    },
)
