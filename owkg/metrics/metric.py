"""A rank-based metric is data: a name, a rank weight h(r), and which way is better."""

from collections.abc import Callable
from dataclasses import dataclass

from jax import Array


@dataclass(frozen=True)
class Metric:
    """The mean of h(rank) over the answers of a query; theory, simulation and evaluation all take it.

    Two metrics are equal, and share compiled code, when name, weight function and direction are.

    Attributes:
        name: what tables and files call it.
        weight: h, elementwise on an array of float ranks, each at least 1, written with `jax.numpy`.
        larger_is_better: False for metrics that fall as ranks improve, like the mean rank.

    Examples:
        >>> import jax.numpy as jnp
        >>> top_heavy = Metric("r^-2", lambda rank: rank**-2.0)
        >>> [float(x) for x in top_heavy.weight(jnp.array([1.0, 2.0]))]
        [1.0, 0.25]
    """

    name: str
    weight: Callable[[Array], Array]
    larger_is_better: bool = True

    def __str__(self) -> str:
        return self.name
