"""Losses against the formulas of their papers, written out in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax, softmax

from owkg.train import losses

pytestmark = pytest.mark.usefixtures("quick_compilation")

RNG = np.random.default_rng(0)
SCORES = RNG.normal(0, 3, (4, 7)).astype(np.float32)
LABELS = np.array([[1, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 1], [1] * 7])
POSITIVE, NEGATIVE = SCORES[:, 0], SCORES[:, 1:]
ALLOWED = RNG.random(NEGATIVE.shape) < 0.6
ALLOWED[3] = False


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)


def labelled():
    return jnp.asarray(SCORES), jnp.asarray((SCORES * LABELS).sum(1)), jnp.asarray(LABELS.sum(1), jnp.float32)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy(smoothing):
    target = (1 - smoothing) * LABELS / LABELS.sum(1, keepdims=True) + smoothing / 7
    found = losses.cross_entropy(*labelled(), jnp.float32(smoothing))
    close(found, -(target * log_softmax(SCORES, axis=1)).sum(1))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_bce(smoothing):
    target = (1 - smoothing) * LABELS + smoothing / 7
    expected = -(target * log_expit(SCORES) + (1 - target) * log_expit(-SCORES)).mean(1)
    close(losses.bce(*labelled(), jnp.float32(smoothing)), expected)


def mean_allowed(values):
    return [row[keep].mean() if keep.any() else 0 for row, keep in zip(values, ALLOWED, strict=True)]


def test_margin():
    expected = mean_allowed(np.maximum(0, 1.5 + NEGATIVE - POSITIVE[:, None]))
    close(losses.margin(jnp.asarray(POSITIVE), jnp.asarray(NEGATIVE), jnp.asarray(ALLOWED), 1.5), expected)


def test_logistic():
    expected = (-log_expit(POSITIVE) + mean_allowed(-log_expit(-NEGATIVE))) / 2
    close(losses.logistic(jnp.asarray(POSITIVE), jnp.asarray(NEGATIVE), jnp.asarray(ALLOWED)), expected)


def test_binary():
    terms = [
        np.append(-log_expit(one), -log_expit(-row[keep]))
        for one, row, keep in zip(POSITIVE, NEGATIVE, ALLOWED, strict=True)
    ]
    arguments = jnp.asarray(POSITIVE), jnp.asarray(NEGATIVE), jnp.asarray(ALLOWED)
    close(losses.binary(*arguments), [row.mean() for row in terms])


@pytest.mark.parametrize("temperature", [0.0, 0.5, 2.0])
def test_self_adversarial(temperature):
    def weighted(row, keep):
        return (softmax(temperature * row[keep]) * -log_expit(-row[keep])).sum() if keep.any() else 0

    negatives = [weighted(row, keep) for row, keep in zip(NEGATIVE, ALLOWED, strict=True)]
    arguments = jnp.asarray(POSITIVE), jnp.asarray(NEGATIVE), jnp.asarray(ALLOWED)
    close(losses.self_adversarial(*arguments, temperature), (-log_expit(POSITIVE) + negatives) / 2)


def test_no_gradient_flows_through_adversarial_weights():
    def total(negative):
        allowed = jnp.ones(negative.shape, bool)
        return losses.self_adversarial(jnp.asarray(POSITIVE), negative, allowed, 2.0).sum()

    weight = softmax(2.0 * NEGATIVE, axis=1)
    close(jax.grad(total)(jnp.asarray(NEGATIVE)), weight * expit(NEGATIVE) / 2)
