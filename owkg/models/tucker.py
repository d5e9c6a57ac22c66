"""TuckER: one core tensor that all relations share."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial, layers, options
from owkg.models.kind import LABELLED, SMALL_CLASSIFIED, Kind
from owkg.models.model import Model, Params, Statistics, entity_rows, sided
from owkg.models.similarity import DOT, HIGHEST


@dataclass(frozen=True)
class TuckER:
    """Options of TuckER.

    Attributes:
        dim: reals per entity.
        relation_dim: reals per relation.
        input_dropout: dropout of the head.
        matrix_dropout: dropout of the matrix of the relation.
        output_dropout: dropout of the query.
        batch_norm: whether head and query are normalised over the batch.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 200
    relation_dim: int = 30
    input_dropout: float = 0.2
    matrix_dropout: float = 0.2
    output_dropout: float = 0.3
    batch_norm: bool = True
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim", "relation_dim")
        options.share(self, "input_dropout", "matrix_dropout", "output_dropout")
        options.flags(self, "batch_norm")
        options.only_reciprocal(self, "tucker")


def tucker_model(config: TuckER) -> Model:
    """TuckER, a Tucker decomposition.

        score(h, r, t) = W x_1 r x_2 h x_3 t = sum_kij W_kij r_k h_i t_j

    Batch normalisation and then dropout apply to h and to the query W x_1 r x_2 h; dropout also applies to
    the matrix W x_1 r of the relation. Parameters in addition to the embeddings: `core` [relation_dim, dim,
    dim], uniform on +-1; `input_*` and `output_*` of the normalisation. Initial embeddings are normal as in
    Glorot and Bengio 2010. The default dropout rates are the paper's rates for WN18RR.

    References:
        Balazevic et al. 2019, TuckER: tensor factorization for knowledge graph completion, equation 2.
    """

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        *keys, core_key = jax.random.split(key, 3)
        shapes = (num_entities, config.dim), (num_relations, config.relation_dim)
        params = {
            **initial.drawn_embeddings(keys, initial.xavier_normal, config, *shapes),
            "core": initial.uniform_within(core_key, (config.relation_dim, config.dim, config.dim), 1.0),
        }
        statistics = {}
        for name in ("input", "output") if config.batch_norm else ():
            scales, running = layers.norm_init(name, config.dim)
            params |= scales
            statistics |= running
        return params, statistics

    def normed(
        name: str, params: Params, statistics: Statistics, x: Array, key: Array | None
    ) -> tuple[Array, Statistics]:
        if not config.batch_norm:
            return x, statistics
        return layers.norm(name, params, statistics, x, training=key is not None)

    def form(
        params: Params,
        statistics: Statistics,
        entity: Float[Array, "q d"],
        relation: Float[Array, "q k"],
        key: Array | None,
    ) -> tuple[Float[Array, "q d"], Statistics]:
        input_key, matrix_key, output_key = layers.keys(key, 3)
        head, statistics = normed("input", params, statistics, entity, key)
        head = layers.dropout(input_key, config.input_dropout, head)
        matrix = jnp.einsum("qk,kij->qij", relation, params["core"], precision=HIGHEST)
        matrix = layers.dropout(matrix_key, config.matrix_dropout, matrix)
        query = jnp.einsum("qi,qij->qj", head, matrix, precision=HIGHEST)
        query, statistics = normed("output", params, statistics, query, key)
        return layers.dropout(output_key, config.output_dropout, query), statistics

    query = sided(form, None, reciprocal=config.reciprocal)
    return Model("tucker", config, init, query, entity_rows, DOT)


KIND = Kind(
    "tucker",
    TuckER,
    tucker_model,
    "W x_1 r x_2 h x_3 t",
    "Balazevic et al. 2019",
    training=LABELLED,
    presets={
        "fb15k-237": LABELLED
        | {
            "relation_dim": 200,
            "input_dropout": 0.3,
            "matrix_dropout": 0.4,
            "output_dropout": 0.5,
            "learning_rate": 5e-4,
            "epochs": 500,
        },
        "wn18rr": LABELLED
        | {
            "relation_dim": 30,
            "input_dropout": 0.2,
            "matrix_dropout": 0.2,
            "output_dropout": 0.3,
            "learning_rate": 3e-3,
            "epochs": 500,
        },
        "small": SMALL_CLASSIFIED | {"batch_size": 256, "learning_rate": 3e-3, "label_smoothing": 0.0},
    },
)
