"""The loss in one pass over the embeddings is the plain one, and so are its gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from owkg.models.similarity import DOT, minus_l1, minus_moduli
from owkg.train import losses, sampled

pytestmark = pytest.mark.usefixtures("quick_compilation")


def total(scores, weight):
    allowed = jnp.ones((len(scores), scores.shape[1] - 1), bool)
    return jnp.dot(losses.self_adversarial(scores[:, 0], scores[:, 1:], allowed, 1.0), weight)


@pytest.mark.parametrize("similarity", [DOT, minus_l1(2.0), minus_moduli(2.0)])
@pytest.mark.parametrize("block_rows", [1, 3, 100])
def test_as_plain(similarity, block_rows, monkeypatch):
    keys = jax.random.split(jax.random.key(0), 4)
    table, queries = jax.random.normal(keys[0], (9, 6)), jax.random.normal(keys[1], (10, 6))
    candidates = jax.random.randint(keys[2], (10, 5), 0, 9)
    weight = jax.random.uniform(keys[3], (10,))
    monkeypatch.setattr(sampled, "_CPU_BLOCK", block_rows * 5 * 6 * 4)

    def fused(table, queries):
        return 3 * sampled.sampled_loss(similarity.one, total, table, queries, candidates, weight)

    def plain(table, queries):
        return 3 * total(similarity.one(queries[:, None], table[candidates]), weight)

    one, other = (jax.jit(jax.value_and_grad(f, (0, 1)))(table, queries) for f in (fused, plain))
    np.testing.assert_allclose(one[0], other[0], rtol=1e-5)
    for a, b in zip(one[1], other[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
