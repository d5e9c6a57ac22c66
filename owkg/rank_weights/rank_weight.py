"""Rank-based metrics as data: a name, a rank weight h(r), and the direction of improvement."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from owkg.errors import ArgumentError
from owkg.keys import settled

if TYPE_CHECKING:
    from jax import Array


@dataclass(frozen=True)
class RankWeight:
    """Metric that is the mean of h(rank), or a function of that mean, for theory, simulation and evaluation.

    Two metrics are equal, and share compiled code, if their fields are equal.

    Attributes:
        name: name in tables and files.
        weight: h, elementwise on an array of float ranks, each at least 1, written with `jax.numpy`.
        larger_is_better: False for metrics that fall as ranks improve, such as the mean rank. Default True.
        link: g of metrics g(mean of h), such as the geometric mean rank exp(mean of log r); monotone, written
            with `jax.numpy`. None: the identity. `owkg.theory` and `owkg.simulate` raise an error for metrics
            with a link, because their expectations are not means over queries.

    Examples:
        >>> import jax.numpy as jnp
        >>> top_heavy = RankWeight("r^-2", lambda rank: rank**-2.0)
        >>> [float(x) for x in top_heavy.weight(jnp.array([1.0, 2.0]))]
        [1.0, 0.25]
    """

    name: str
    weight: Callable[["Array"], "Array"]
    larger_is_better: bool = True
    link: Callable[["Array"], "Array"] | None = None

    def __post_init__(self) -> None:
        if not callable(self.weight):
            raise ArgumentError("weight", f"must be a function of ranks, got {self.weight!r}.")
        if self.link is not None and not callable(self.link):
            raise ArgumentError("link", f"must be a function of a mean, or None, got {self.link!r}.")

    def __str__(self) -> str:
        return self.name


def probed(metric: RankWeight) -> RankWeight:
    """The argument `metric`, after its weight has been tested on an array of ranks.

    Raises:
        ValueError: if `metric` is not a `RankWeight`, or its weight does not give one real number for each
            rank.
    """
    if not isinstance(metric, RankWeight):
        raise ArgumentError("metric", f"must be a RankWeight, such as owkg.rank_weights.MRR, got {metric!r}.")
    if not _works_on_numpy(metric):
        _trace(metric)
    return metric


@lru_cache(maxsize=4096)
def _works_on_numpy(metric: RankWeight) -> bool:
    """Whether the weight accepts NumPy arrays, so that JAX is not needed.

    Raises:
        ValueError: if it accepts them, but does not give one real number for each rank.
    """
    try:
        with np.errstate(all="ignore"):
            weight: Any = metric.weight(np.arange(1.0, 8.0))  # pyright: ignore[reportArgumentType]
    except Exception:
        return False
    if np.shape(weight) != (7,) or not np.isrealobj(weight):
        raise ArgumentError(
            "weight", f"of metric {metric.name!r} must give one real number for each rank, got {weight!r}."
        )
    return True


# Module whose weights are known to be traceable: a test traces them all, so commands need not import JAX.
_CATALOGUE = "owkg.rank_weights.catalogue"


@lru_cache(maxsize=4096)
def _trace(metric: RankWeight) -> None:
    """Tests the weight on abstract ranks.

    Raises:
        ValueError: if the weight cannot be traced, or does not give one real number for each rank.
    """
    import jax
    import jax.numpy as jnp

    ranks = jax.ShapeDtypeStruct((7,), jnp.float32)
    try:
        # Through a lambda: JAX 0.10.2 crashes on a function without weak references, such as np.reciprocal.
        with settled():
            weight = jax.eval_shape(lambda ranks: metric.weight(ranks), ranks)
    except Exception as error:
        raise ArgumentError(
            "weight", f"of metric {metric.name!r} must be written with jax.numpy: {error}"
        ) from error
    if getattr(weight, "shape", None) != (7,) or not jnp.isrealobj(jnp.zeros((), weight.dtype)):
        raise ArgumentError(
            "weight", f"of metric {metric.name!r} must give one real number for each rank, got {weight}."
        )


def traceable(metric: RankWeight) -> RankWeight:
    """The argument `metric`, after a check that it is a plain mean of a rank weight that JAX can trace.

    Raises:
        ValueError: as `probed`, and if the metric has a link.
    """
    if probed(metric).link is not None:
        raise ArgumentError(
            "metric", f"must be a mean of a rank weight here, got {metric.name!r}, a function of such a mean."
        )
    if getattr(metric.weight, "__module__", None) != _CATALOGUE:
        _trace(metric)
    return metric
