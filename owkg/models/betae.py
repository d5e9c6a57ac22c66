"""BetaE: entities and queries are vectors of Beta distributions."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
from jax.scipy.special import betaln, digamma, polygamma
from jaxtyping import Array, Float

from owkg.models import initial, layers, options
from owkg.models.kind import SAMPLED, SMALL_SAMPLED, Kind
from owkg.models.model import Ids, Model, Params, Statistics, entity_rows, sided
from owkg.models.similarity import DOT

# Smallest and largest parameter of a Beta distribution.
_LEAST, _LARGEST = 0.05, 1e9


@dataclass(frozen=True)
class BetaE:
    """Options of BetaE.

    Attributes:
        dim: Beta distributions per entity, as 2 dim reals, alphas first; a relation has dim reals.
        margin: gamma, the constant from which the divergence is subtracted; above 0.
        hidden: units of a hidden layer of the projection.
        hidden_layers: number of hidden layers.
        reciprocal: must be True, because heads are predicted through inverse relations.
    """

    dim: int = 400
    margin: float = 60.0
    hidden: int = 1600
    hidden_layers: int = 2
    reciprocal: bool = True

    def __post_init__(self) -> None:
        options.whole_numbers(self, "dim", "hidden", "hidden_layers")
        options.positive(self, "margin")
        options.only_reciprocal(self, "betae")


def betae_model(config: BetaE) -> Model:
    """BetaE, a divergence between Beta distributions.

        score(h, r, t) = margin - sum_k KL(Beta_k(t) || Beta_k(q)), with q the projection of h by r

    The parameters of the distributions are clip(embedding + 1, 0.05, 1e9), both for entities and for the
    output of the projection, an MLP of (parameters of h, r) with relu after each hidden layer. Parameters in
    addition to the embeddings: `hidden0_weight`, `hidden0_bias`, ..., `last_weight`, `last_bias`. Initial
    embeddings are uniform on +-(margin + 2) / dim.

    If u is the uniform distribution Beta(1, 1), p = Beta(a, b) the entity and q = Beta(c, d) the query, then

        KL(p || q) = KL(p || u) + KL(u || q) - (c - 1) (E_p ln x + 1) - (d - 1) (E_p ln(1 - x) + 1)

    This is a dot product of features of p and features of q. Its terms vanish with the embeddings, so that
    float32 keeps them. E_p ln x = psi(a) - psi(a + b), with the digamma function psi.

    References:
        Ren and Leskovec 2020, Beta embeddings for multi-hop logical reasoning in knowledge graphs,
        equations 3 and 6.
    """
    names = [f"hidden{i}" for i in range(config.hidden_layers)]

    def init(key: Array, num_entities: int, num_relations: int) -> tuple[Params, Statistics]:
        entity_key, relation_key, *layer_keys = jax.random.split(key, 3 + config.hidden_layers)
        law = partial(initial.uniform_within, half_width=initial.margin_range(config.margin, config.dim))
        sizes = [3 * config.dim, *[config.hidden] * config.hidden_layers, 2 * config.dim]
        shapes = (num_entities, 2 * config.dim), (num_relations, config.dim)
        params = initial.drawn_embeddings((entity_key, relation_key), law, config, *shapes)
        for layer_key, name, *shape in zip(layer_keys, [*names, "last"], sizes[:-1], sizes[1:], strict=True):
            params |= layers.affine_init(layer_key, name, *shape)
        return params, {}

    def form(
        params: Params,
        statistics: Statistics,
        entity: Float[Array, "q d2"],
        relation: Float[Array, "q d"],
        key: Array | None,
    ) -> tuple[Float[Array, "q d2_2"], Statistics]:
        x = jnp.concatenate([beta_parameters(entity), relation], axis=-1)
        for name in names:
            x = jax.nn.relu(layers.affine(name, params, x))
        return query_features(beta_parameters(layers.affine("last", params, x)), config.margin), statistics

    def candidates(params: Params, entity: Ids | None = None) -> Array:
        return entity_features(beta_parameters(entity_rows(params, entity)))

    return Model("betae", config, init, sided(form, None, reciprocal=config.reciprocal), candidates, DOT)


def beta_parameters(embedding: Float[Array, "*rows d2"]) -> Float[Array, "*rows d2"]:
    """Parameters of Beta distributions, alphas and then betas: clip(embedding + 1, 0.05, 1e9)."""
    return jnp.clip(embedding + 1, _LEAST, _LARGEST)


def query_features(parameters: Float[Array, "*rows d2"], margin: float) -> Float[Array, "*rows d2_2"]:
    """Features of queries: c - 1, then d - 1, then margin - KL(u || q), then 1."""
    log_beta = betaln(*jnp.split(parameters, 2, axis=-1))
    shifted = parameters - 1
    divergence = log_beta.sum(axis=-1, keepdims=True) + shifted.sum(axis=-1, keepdims=True)
    return jnp.concatenate([shifted, margin - divergence, jnp.ones_like(divergence)], axis=-1)


@jax.custom_jvp
def entity_features(parameters: Float[Array, "*rows d2"]) -> Float[Array, "*rows d2_2"]:
    """Features of entities: E ln x + 1, then E ln(1 - x) + 1, then 1, then the entropies' sum -KL(p || u)."""
    alpha, beta = jnp.split(parameters, 2, axis=-1)
    both = digamma(alpha + beta)
    log, log_rest = digamma(alpha) - both, digamma(beta) - both
    entropies = betaln(alpha, beta) - (alpha - 1) * log - (beta - 1) * log_rest
    entropy = entropies.sum(axis=-1, keepdims=True)
    return jnp.concatenate([log + 1, log_rest + 1, jnp.ones_like(entropy), entropy], axis=-1)


@entity_features.defjvp
def _entity_features_derivative(
    primals: tuple[Float[Array, "*rows d2"]], tangents: tuple[Float[Array, "*rows d2"]]
) -> tuple[Float[Array, "*rows d2_2"], Float[Array, "*rows d2_2"]]:
    """Derivative with three trigammas per distribution, because all digammas cancel in the entropy."""
    alpha, beta = jnp.split(primals[0], 2, axis=-1)
    d_alpha, d_beta = jnp.split(tangents[0], 2, axis=-1)
    d_both = polygamma(1, alpha + beta) * (d_alpha + d_beta)
    d_log = polygamma(1, alpha) * d_alpha - d_both
    d_log_rest = polygamma(1, beta) * d_beta - d_both
    d_entropy = -((alpha - 1) * d_log + (beta - 1) * d_log_rest).sum(axis=-1, keepdims=True)
    features = entity_features(primals[0])
    return features, jnp.concatenate([d_log, d_log_rest, jnp.zeros_like(d_entropy), d_entropy], axis=-1)


KIND = Kind(
    "betae",
    BetaE,
    betae_model,
    "margin - KL(t || MLP(h, r)), Beta",
    "Ren and Leskovec 2020",
    columns=2,
    training=SAMPLED,
    presets={"small": SMALL_SAMPLED | {"hidden": 256, "margin": 24.0}},
)
