"""Open-world query, or a grid of queries: the setting that theory and simulation share.

A query has `num_answers` (N) true answers outside the training set. Each is missing from the test set with
probability `sparsity` (beta). The model classifies each answer as positive with probability `strength` (l).
`correlation` (rho) is the correlation between "missing" and "positive". There are `num_entities` candidates
in all.
"""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, NotRequired, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError

# Rounding error of the bounds, as a share of the interval. A value this close counts as on the bound.
_ROUNDING = 1e-12


class World(TypedDict):
    """Keyword arguments that describe a query independently of any model; numbers or arrays that broadcast.

    Attributes:
        sparsity: beta, P(an answer is missing), in (0, 1).
        num_answers: N, number of full-test answers, at least 1.
        num_entities: candidates before filtering, above `num_answers`.
    """

    sparsity: ArrayLike
    num_answers: ArrayLike
    num_entities: ArrayLike


class SettingArguments(World):
    """Keyword arguments that describe a query and one model, checked by `grid`; includes `World`.

    Attributes:
        strength: l, P(an answer is classified positive), in [0, 1].
        correlation: rho between "missing" and "positive", inside `feasible_correlation`. Default 0.
    """

    strength: ArrayLike
    correlation: NotRequired[ArrayLike]


class PairArguments(SettingArguments):
    """Keyword arguments that describe a query and two models, checked by `pair`; includes `SettingArguments`.

    Attributes:
        other_strength: l of the second model, in [0, 1].
        other_correlation: rho of the second model. Default: rho of the first model.
    """

    other_strength: ArrayLike
    other_correlation: NotRequired[ArrayLike | None]


class Setting(NamedTuple):
    """Grid of open-world queries; every field is an array of the same shape `[*grid]`."""

    strength: Any
    sparsity: Any
    correlation: Any
    num_answers: Any
    num_entities: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid; `()` for a single query."""
        return np.shape(self.num_answers)

    def arguments(self) -> SettingArguments:
        """Keyword arguments that make this setting."""
        return SettingArguments(**self._asdict())

    def conditional_strengths(self) -> tuple[Any, Any]:
        """(l1, l2) of this checked setting, without rounding errors at the ends of the feasible interval."""
        both = conditional_strengths(self.strength, self.sparsity, self.correlation)
        return both if checks.is_traced(*both) else tuple(np.clip(p, 0, 1) for p in both)


def conditional_strengths(
    strength: ArrayLike, sparsity: ArrayLike, correlation: ArrayLike
) -> tuple[Any, Any]:
    """P(positive | missing) and P(positive | in the test set).

    l1 = l + rho sqrt(l (1-l) alpha/beta),   l2 = l - rho sqrt(l (1-l) beta/alpha),   alpha = 1 - beta.

    Args:
        strength: l, P(positive).
        sparsity: beta, P(missing), in (0, 1).
        correlation: rho between the two indicators. Values outside `feasible_correlation` give results
            outside [0, 1]; the public functions raise an error for them before this call.

    Returns:
        (l1, l2), broadcast; NumPy arrays for concrete arguments, traced arrays for traced arguments.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), section 4.3.
    """
    xp = checks.library_of(strength, sparsity, correlation)
    given: Any = (strength, sparsity, correlation)
    l, beta, rho = map(np.asarray, given) if xp is np else given
    # The square root has an infinite slope at strength 0 and 1, where correlation has no meaning.
    degenerate = (l == 0) | (l == 1)
    spread = xp.where(degenerate, 0, xp.sqrt(xp.where(degenerate, 1, l * (1 - l))))
    odds = (1 - beta) / beta
    return l + rho * spread * xp.sqrt(odds), l - rho * spread / xp.sqrt(odds)


def feasible_correlation(strength: ArrayLike, sparsity: ArrayLike) -> tuple[Any, Any]:
    """(lowest, highest) correlation for which both conditional strengths are probabilities, broadcast.

    With a = l/(1-l) and b = beta/alpha:  -min(sqrt(a b), 1/sqrt(a b)) <= rho <= min(sqrt(a/b), sqrt(b/a)).
    At strength 0 or 1 correlation has no meaning: every rho in [-1, 1] gives l1 = l2 = l.

    Raises:
        ValueError: if the strength is outside [0, 1] or the sparsity outside (0, 1).

    Examples:
        >>> low, high = feasible_correlation(0.5, 0.5)
        >>> float(low), float(high)
        (-1.0, 1.0)
    """
    strength = checks.real("strength", strength, 0, 1)
    sparsity = checks.real("sparsity", sparsity, 0, 1, closed=False)
    shape = checks.common_shape(strength=strength, sparsity=sparsity)
    strength, sparsity = np.broadcast_to(strength, shape), np.broadcast_to(sparsity, shape)
    degenerate = (strength == 0) | (strength == 1)
    inner = np.where(degenerate, 0.5, strength)
    root_a = np.sqrt(inner / (1 - inner))
    root_b = np.sqrt(sparsity / (1 - sparsity))
    with np.errstate(over="ignore", divide="ignore"):  # for subnormal numbers; the minimum is right
        low = -np.minimum(root_a * root_b, 1 / (root_a * root_b))
        high = np.minimum(root_a / root_b, root_b / root_a)
    return np.where(degenerate, -1.0, low)[()], np.where(degenerate, 1.0, high)[()]


def _check_correlation(values: dict[str, np.ndarray], name: str) -> None:
    keys = ("strength", "sparsity", "correlation")
    strength, sparsity, correlation = np.broadcast_arrays(*(values[key] for key in keys))
    low, high = feasible_correlation(strength, sparsity)
    slack = _ROUNDING * (high - low)
    infeasible = (correlation < low - slack) | (correlation > high + slack)
    if infeasible.any():
        at = tuple(np.argwhere(infeasible)[0])
        raise ArgumentError(
            name,
            f"must be in the feasible interval "
            f"[{np.asarray(low)[at]:.6g}, {np.asarray(high)[at]:.6g}] of strength {strength[at]:g} and "
            f"sparsity {sparsity[at]:g}, got {float(correlation[at])!r}.",
        )


def broadcast(array: ArrayLike, shape: tuple[int, ...]) -> Any:
    """`array` in the given shape; a NumPy view unless it is traced."""
    return checks.library_of(array).broadcast_to(array, shape)


def grid(
    *,
    strength: ArrayLike,
    sparsity: ArrayLike,
    num_answers: ArrayLike,
    num_entities: ArrayLike,
    correlation: ArrayLike = 0.0,
    names: Mapping[str, str] = MappingProxyType({}),
) -> Setting:
    """Setting of the five numbers of a query (see `SettingArguments`), checked and broadcast to one shape.

    `names` maps arguments to the names that error messages use for them.

    Raises:
        ValueError: if an argument is out of range, the correlation is not feasible, or the shapes do not
            broadcast. Traced arguments (under `jax.grad` and similar) are not checked.
    """
    given = {
        "strength": (strength, partial(checks.real, low=0, high=1)),
        "sparsity": (sparsity, partial(checks.real, low=0, high=1, closed=False)),
        "correlation": (correlation, partial(checks.real, low=-np.inf, high=np.inf)),
        "num_answers": (num_answers, partial(checks.integer, low=1)),
        "num_entities": (num_entities, partial(checks.integer, low=2)),
    }
    values: dict[str, Any] = {
        k: v if checks.is_traced(v) else checked(names.get(k, k), v) for k, (v, checked) in given.items()
    }
    if not checks.is_traced(sparsity):
        # Dividing by a number below the smallest normal one overflows.
        values["sparsity"] = np.maximum(values["sparsity"], np.finfo(np.float64).tiny)
    shape = checks.common_shape(**{names.get(k, k): v for k, v in values.items()})
    if not checks.is_traced(num_answers, num_entities):
        answers, entities = np.broadcast_arrays(values["num_answers"], values["num_entities"])
        if (entities <= answers).any():
            at = tuple(np.argwhere(entities <= answers)[0])
            raise ArgumentError(
                "num_entities", f"must exceed `num_answers` ({int(answers[at])}), got {int(entities[at])}."
            )
    if not checks.is_traced(strength, sparsity, correlation):
        _check_correlation(values, names.get("correlation", "correlation"))
    return Setting(**{k: broadcast(v, shape) for k, v in values.items()})


def pair(
    *,
    strength: ArrayLike,
    other_strength: ArrayLike,
    correlation: ArrayLike = 0.0,
    other_correlation: ArrayLike | None = None,
    **world: Unpack[World],
) -> tuple[Setting, Setting]:
    """Settings of two models in the same world, with one shape, from `PairArguments`.

    Raises:
        ValueError: as `grid`; messages name the second model's arguments `other_strength` and
            `other_correlation`.
    """
    one = grid(strength=strength, correlation=correlation, **world)
    names = {"strength": "other_strength"}
    if other_correlation is None:
        other_correlation = correlation
    else:
        names["correlation"] = "other_correlation"
    two = grid(strength=other_strength, correlation=other_correlation, names=names, **world)
    shape = checks.common_shape(strength=one.strength, other_strength=two.strength)
    one, two = (Setting(*(broadcast(field, shape) for field in setting)) for setting in (one, two))
    return one, two
