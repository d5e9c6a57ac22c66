"""Arithmetic of the Poincare ball |x|^2 < 1 / c, without clamps that hide points beyond its edge.

Entities are tangent vectors v at the origin, mapped to exp0(v) in the curvature of each query. Then 1 / (1 -
c |exp0(v)|^2) = cosh^2(sqrt(c) |v|), so that no candidate comes near the edge.

References:
    Ganea, Becigneul and Hofmann 2018, Hyperbolic neural networks, section 2; Chami et al. 2020,
    Low-dimensional hyperbolic knowledge graph embeddings, section 3.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from owkg.models.euclidean import biased_model
from owkg.models.model import Model, Options
from owkg.models.similarity import by_products

Form = Callable[[Array, list[Array], Array], Array]

_SMALL = 1e-3  # below this, functions of squares use their series
_EDGE = {"float64": 1e-5}  # of the ball, relative to its radius; 4e-3 in narrower numbers
_FARTHEST = 20.0  # value of sqrt(c) |v| above which products with cosh^2 would overflow float32


def curved_model(name: str, config: Options, parts: str, form: Form) -> Model:
    """Reciprocal model in a Poincare ball with one curvature per relation.

    Args:
        name: name of the model.
        config: options of the model.
        parts: parts of the rows of relations, as in `owkg.models.euclidean.biased_init`; the raw curvature
            comes after them.
        form: function from (rows of entities, parts of the rows of relations, curvatures) to points of the
            ball.
    """

    def moved(entity: Float[Array, "q d"], relation: Float[Array, "q r"]) -> Float[Array, "q d1"]:
        entity, relation = widened(entity), widened(relation)
        c = jax.nn.softplus(relation[:, -1:])
        points = form(entity, jnp.split(relation[:, :-1], len(parts), axis=-1), c)
        return jnp.concatenate([points, c], axis=-1)

    return biased_model(name, config, parts, moved, MINUS_HYPERBOLIC_SQUARES, ones=True)


def widened(rows: Float[Array, "q d"]) -> Float[Array, "q d"]:
    """Rows as float32 or wider, because query points near the edge lose all digits in narrower numbers."""
    return rows.astype(jnp.result_type(rows, jnp.float32))


def of_origin(v: Float[Array, "... d"], c: Float[Array, "... 1"]) -> Float[Array, "... d"]:
    """exp0(v) = tanh(sqrt(c) |v|) v / (sqrt(c) |v|), kept within the edge of the ball."""
    return within(v * tanh_ratio(c * _square(v)), c)


def added(
    x: Float[Array, "... d"], y: Float[Array, "... d"], c: Float[Array, "... 1"]
) -> Float[Array, "... d"]:
    """Moebius sums of points of the ball."""
    xy, xx, yy = jnp.sum(x * y, axis=-1, keepdims=True), _square(x), _square(y)
    over = 1 + 2 * c * xy + jnp.square(c) * xx * yy
    return ((1 + 2 * c * xy + c * yy) * x + (1 - c * xx) * y) / over


def within(x: Float[Array, "... d"], c: Float[Array, "... 1"]) -> Float[Array, "... d"]:
    """Points, moved to the edge of the ball if they are beyond it."""
    most = jnp.square(1 - _EDGE.get(x.dtype.name, 4e-3)) / c
    square = _square(x)
    beyond = square > most
    return x * jnp.where(beyond, jnp.sqrt(most / jnp.where(beyond, square, 1)), 1)


def tanh_ratio(square: Float[Array, "..."]) -> Float[Array, "..."]:
    """tanh(s) / s as a function of s^2."""
    small, near = _near(square)
    s = jnp.sqrt(jnp.where(small, 1, square))
    return jnp.where(small, 1 - near / 3 + 2 * jnp.square(near) / 15, jnp.tanh(s) / s)


def square_of_asinh(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """asinh(sqrt(z))^2, smooth at 0."""
    small, near = _near(z)
    far = jnp.square(jnp.arcsinh(jnp.sqrt(jnp.where(small, 1, z))))
    return jnp.where(small, near - jnp.square(near) / 3 + 8 * near**3 / 45, far)


def square_of_cosh(square: Float[Array, "..."]) -> Float[Array, "..."]:
    """cosh(s)^2 as a function of s^2; constant for s above 20."""
    small, near = _near(square)
    s = jnp.sqrt(jnp.where(small, 1, jnp.minimum(square, _FARTHEST**2)))
    return jnp.where(small, 1 + near + jnp.square(near) / 3, jnp.square(jnp.cosh(s)))


def _near(square: Array) -> tuple[Array, Array]:
    """Whether to use the series, and its argument; 0 elsewhere, so that derivatives do not overflow."""
    small = square < _SMALL
    return small, jnp.where(small, square, 0)


def _square(x: Array) -> Array:
    return jnp.sum(jnp.square(x), axis=-1, keepdims=True)


def _point(rows: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    x = rows[..., :-2]
    return (x,), (_square(x)[..., 0], rows[..., -2], rows[..., -1])


def _tangent(rows: Array) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    v = rows[..., :-1]
    return (v,), (_square(v)[..., 0], rows[..., -1])


def _minus_square(dots: tuple[Array, ...], own: tuple[Array, ...], others: tuple[Array, ...]) -> Array:
    """Minus the squared distance plus biases.

    d^2 = 4 / c asinh(sqrt(z))^2, z = c |x - y|^2 / ((1 - c |x|^2) (1 - c |y|^2)) and y = exp0(v).
    """
    (product,), (xx, c, bias), (vv, other) = dots, own, others
    ratio = tanh_ratio(c * vv)
    apart = jnp.maximum(xx - 2 * ratio * product + jnp.square(ratio) * vv, 0)
    room = jnp.maximum(1 - c * xx, jnp.finfo(xx.dtype).eps)
    return bias + other - 4 / c * square_of_asinh(c * apart * square_of_cosh(c * vv) / room)


MINUS_HYPERBOLIC_SQUARES = by_products(_point, _tangent, _minus_square)
"""-d(x, exp0(v))^2 + b_q + b_c; queries hold points, curvature and bias, candidates tangents and bias."""
