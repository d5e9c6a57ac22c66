"""ConvE: a convolution over head and relation, arranged as a picture."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.errors import ArgumentError
from owkg.models import initial, layers, options
from owkg.models.kind import LABELLED, Kind
from owkg.models.model import Model, Params, Statistics, rows_with, sided
from owkg.models.similarity import DOT, HIGHEST

_KERNEL = 3


@dataclass(frozen=True)
class ConvE:
    """Options of ConvE.

    Attributes:
        dim: reals per entity and per relation; a multiple of height.
        height: rows of the picture of one embedding, with dim / height numbers each; at least 2 rows of 3
            numbers.
        channels: filters of the convolution.
        input_dropout: dropout of the picture.
        channel_dropout: dropout of whole channels.
        output_dropout: dropout of the query.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 200
    height: int = 20
    channels: int = 32
    input_dropout: float = 0.2
    channel_dropout: float = 0.2
    output_dropout: float = 0.3
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim", "channels")
        options.whole_numbers(self, "height", low=2)
        options.share(self, "input_dropout", "channel_dropout", "output_dropout")
        options.only_reciprocal(self, "conve")
        if self.dim % self.height or self.dim // self.height < _KERNEL:
            raise ArgumentError(
                "height",
                f"must divide `dim` into rows of at least {_KERNEL}, got {self.height} for {self.dim}.",
            )


def conve_model(config: ConvE) -> Model:
    """ConvE, a convolutional network on head and relation.

        score(h, r, t) = relu(vec(relu([h; r] * filters)) W) . t + b_t

    h and r are pictures with height rows, one above the other; * is a 3 x 3 convolution without padding.
    Batch normalisation comes before the convolution and before each relu. Dropout applies to the normalised
    picture, to channels after the first relu, and to the query before its normalisation. Parameters in
    addition to the embeddings: `filters` [3, 3, 1, channels] and `filters_bias`; `dense_weight` and
    `dense_bias` to dim; `entity_bias` [num_entities]; `input_*`, `channel_*`, `output_*` of the
    normalisation. Initial embeddings are normal as in Glorot and Bengio 2010, and biases of entities 0.

    References:
        Dettmers et al. 2018, Convolutional 2D knowledge graph embeddings, equation 1 and section 4.
    """
    width, shapes = config.dim // config.height, (2 * config.height, _KERNEL, config.channels)

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        *keys, filter_key, bias_key, dense_key = jax.random.split(key, 5)
        rows = (num_entities, config.dim), (num_relations, config.dim)
        params, statistics = network_init((filter_key, bias_key, dense_key), *shapes, config.dim, width)
        drawn = initial.drawn_embeddings(keys, initial.xavier_normal, config, *rows)
        return drawn | {"entity_bias": jnp.zeros(num_entities, jnp.float32)} | params, statistics

    def form(
        params: Params,
        statistics: Statistics,
        entity: Float[Array, "q d"],
        relation: Float[Array, "q d"],
        key: Array | None,
    ) -> tuple[Float[Array, "q d1"], Statistics]:
        x = jnp.concatenate([entity, relation], axis=-1).reshape(-1, 2 * config.height, width, 1)
        rates = config.input_dropout, config.channel_dropout, config.output_dropout
        return network(params, statistics, x, key, rates, whole=(1, 2))

    return Model(
        "conve",
        config,
        init,
        sided(form, None, reciprocal=config.reciprocal),
        rows_with("entity_bias"),
        DOT,
        entity_params=("entity", "entity_bias"),
    )


def network_init(
    keys: tuple[Array, Array, Array], rows: int, kernel: int, channels: int, dim: int, width: int
) -> tuple[Params, Statistics]:
    """Parameters and statistics of `network`, from pictures of rows x width numbers to dim numbers."""
    flat = (rows - kernel + 1) * (width - kernel + 1) * channels
    reach = 1 / kernel  # 1 / sqrt(numbers under a filter)
    params = {
        "filters": initial.uniform_within(keys[0], (kernel, kernel, 1, channels), reach),
        "filters_bias": initial.uniform_within(keys[1], (channels,), reach),
        **layers.affine_init(keys[2], "dense", flat, dim),
    }
    statistics = {}
    for name, size in (("input", 1), ("channel", channels), ("output", dim)):
        scales, running = layers.norm_init(name, size)
        params |= scales
        statistics |= running
    return params, statistics


def network(
    params: Params,
    statistics: Statistics,
    x: Float[Array, "q rows width 1"],
    key: Array | None,
    rates: tuple[float, float, float],
    *,
    whole: tuple[int, ...],
) -> tuple[Float[Array, "q d1"], Statistics]:
    """Queries from pictures, with a last column of ones for the bias of the candidates.

    `rates` are the dropout rates of the picture, of the channels (shared along the axes `whole`), and of the
    query.
    """
    training = key is not None
    input_key, channel_key, output_key = layers.keys(key, 3)
    x, statistics = layers.norm("input", params, statistics, x, training=training)
    x = layers.dropout(input_key, rates[0], x)
    x = jax.lax.conv_general_dilated(
        x, params["filters"], (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), precision=HIGHEST
    )
    x = x + params["filters_bias"]
    x, statistics = layers.norm("channel", params, statistics, x, training=training)
    x = layers.dropout(channel_key, rates[1], jax.nn.relu(x), whole=whole)
    x = layers.affine("dense", params, x.reshape(len(x), -1))
    x = layers.dropout(output_key, rates[2], x)
    x, statistics = layers.norm("output", params, statistics, x, training=training)
    x = jax.nn.relu(x)
    return jnp.concatenate([x, jnp.ones_like(x[:, :1])], axis=-1), statistics


KIND = Kind(
    "conve",
    ConvE,
    conve_model,
    "relu(vec(relu([h; r] * filters)) W) t + b",
    "Dettmers et al. 2018",
    training=LABELLED,
    presets={
        "fb15k-237": LABELLED | {"learning_rate": 3e-3, "epochs": 1000},
        "wn18rr": LABELLED | {"learning_rate": 3e-3, "epochs": 1000},
        "small": {"dim": 100, "height": 10, "learning_rate": 3e-3, "epochs": 40},
    },
)
