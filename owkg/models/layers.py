"""Network layers of models: dropout, batch normalisation and affine maps."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models import initial
from owkg.models.model import Params, Statistics
from owkg.models.similarity import HIGHEST

# As in PyTorch, with which these models were published.
_EPSILON = 1e-5
_MOMENTUM = 0.1


def dropout(
    key: Array | None, rate: float, x: Float[Array, "..."], *, whole: tuple[int, ...] = ()
) -> Float[Array, "..."]:
    """`x` with a share `rate` of its numbers set to 0 and the rest scaled to keep the mean; no key: `x`.

    Along the axes `whole`, numbers are dropped together.
    """
    if key is None or rate == 0:
        return x
    shape = tuple(1 if axis in whole else size for axis, size in enumerate(x.shape))
    return jnp.where(jax.random.bernoulli(key, 1 - rate, shape), x / (1 - rate), 0)


def norm_init(name: str, size: int) -> tuple[Params, Statistics]:
    """Parameters and statistics of `norm` for `size` channels."""
    ones, zeros = jnp.ones(size, jnp.float32), jnp.zeros(size, jnp.float32)
    return (
        {f"{name}_scale": ones, f"{name}_shift": zeros},
        {f"{name}_mean": zeros, f"{name}_variance": ones},
    )


def norm(
    name: str, params: Params, statistics: Statistics, x: Float[Array, "q ... channels"], *, training: bool
) -> tuple[Float[Array, "q ... channels"], Statistics]:
    """Batch normalisation of the last axis, and the running statistics moved by a tenth towards the batch's.

        (x - mean) / sqrt(variance + 1e-5) * scale + shift

    In training, mean and variance come from the batch, otherwise from the running statistics. The running
    variance moves towards the unbiased variance of the batch.

    References:
        Ioffe and Szegedy 2015, Batch normalization.
    """
    mean, variance = statistics[f"{name}_mean"], statistics[f"{name}_variance"]
    if training:
        axes = tuple(range(x.ndim - 1))
        count = x.size // x.shape[-1]
        wide = x.astype(mean.dtype)
        running, mean, variance = (mean, variance), wide.mean(axes), wide.var(axes)
        target = mean, variance * count / max(count - 1, 1)
        moved = [(1 - _MOMENTUM) * old + _MOMENTUM * new for old, new in zip(running, target, strict=True)]
        names = f"{name}_mean", f"{name}_variance"
        statistics = statistics | {k: jax.lax.stop_gradient(v) for k, v in zip(names, moved, strict=True)}
    scale = params[f"{name}_scale"] * jax.lax.rsqrt(variance + _EPSILON)
    return ((x - mean) * scale + params[f"{name}_shift"]).astype(x.dtype), statistics


def affine_init(key: Array, name: str, size_in: int, size_out: int) -> Params:
    """Weights [in, out], uniform as in Glorot and Bengio 2010, and biases uniform on +-1 / sqrt(size_in)."""
    weight_key, bias_key = jax.random.split(key)
    return {
        f"{name}_weight": initial.xavier_uniform(weight_key, (size_in, size_out)),
        f"{name}_bias": initial.uniform_within(bias_key, (size_out,), size_in**-0.5),
    }


def affine(name: str, params: Params, x: Float[Array, "q size_in"]) -> Float[Array, "q size_out"]:
    """Affine map x W + b."""
    product = jnp.matmul(x, params[f"{name}_weight"], precision=HIGHEST)
    return product + params[f"{name}_bias"]


def keys(key: Array | None, count: int) -> list[Array | None]:
    """`count` keys, or `count` times None."""
    return [None] * count if key is None else list(jax.random.split(key, count))
