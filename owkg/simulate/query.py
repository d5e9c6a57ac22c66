"""One random query: its missing facts, the ranks of each model, and the metrics of those ranks."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from owkg.openworld import Classification, MissingModel, PredictionModel
from owkg.rank_weights import RankWeight
from owkg.simulate.classification import classification_ranks
from owkg.simulate.missing import draw_missing
from owkg.simulate.numerics import pairwise_sum
from owkg.simulate.scores import score_ranks


def query_metrics(
    key: Key[Array, ""],
    metrics: tuple[RankWeight, ...],
    missing: MissingModel,
    prediction: PredictionModel,
    size: int,
    missing_ability: Float[Array, "models"],
    test_ability: Float[Array, "models"],
    parameter: Float[Array, "..."],
    num_answers: Int[Array, ""],
    num_entities: Int[Array, ""],
) -> Float[Array, "models metrics"]:
    """The metrics of several models on one random query; the models share its missing facts.

    Args:
        key: consumed.
        metrics, missing, prediction, size: static; `size` is at least N.
        missing_ability, test_ability: of each model, on missing and on test answers: probabilities of
            a positive under `Classification`, mean scores under `Score`.
        parameter: of the missing-fact model, for this setting.
        num_answers: N.
        num_entities: candidates before filtering.
    """
    missing_key, model_key = jax.random.split(key)
    is_missing = draw_missing(missing_key, missing, parameter, num_answers, size)
    tests = jnp.sum(~is_missing, dtype=jnp.int32)
    counted = jnp.arange(size, dtype=jnp.int32) < tests
    draw_ranks = classification_ranks if isinstance(prediction, Classification) else score_ranks

    def one_model(key: Key[Array, ""], on_missing: Array, on_test: Array) -> Array:
        ranks = draw_ranks(key, is_missing, on_missing, on_test, num_answers, num_entities)
        ranks = jnp.where(counted, ranks, 1).astype(jnp.float32)
        weights = jnp.stack([metric.weight(ranks).astype(jnp.float32) for metric in metrics], axis=-1)
        return pairwise_sum(jnp.where(counted[:, None], weights, 0)) / tests

    keys = jax.random.split(model_key, missing_ability.shape[0])
    return jax.vmap(one_model)(keys, missing_ability, test_ability)
