"""One open-world query, or a grid of them: what both witnesses, theory and simulation, agree to talk about.

A query has `num_answers` (N) true answers outside the training set. Each is missing from the test set with
probability `sparsity` (beta). The model classifies each answer as positive with probability `strength`
(ell); `correlation` (rho) ties "missing" to "positive". There are `num_entities` candidates in all.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from owkg import checks

# Rounding in the bounds themselves: a correlation this close to a bound counts as on it.
_ROUNDING = 1e-12


class Setting(NamedTuple):
    """A grid of open-world queries; every field an array of the one shape `[*grid]`."""

    strength: Any
    sparsity: Any
    correlation: Any
    num_answers: Any
    num_entities: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid; `()` for a single query."""
        return np.shape(self.num_answers)

    def conditional_strengths(self) -> tuple[Any, Any]:
        """(l1, l2) of this setting; see `conditional_strengths`."""
        return conditional_strengths(self.strength, self.sparsity, self.correlation)


def conditional_strengths(strength: Any, sparsity: Any, correlation: Any) -> tuple[Any, Any]:
    """P(positive | missing) and P(positive | in the test set).

    l1 = l + rho sqrt(l (1-l) alpha/beta),   l2 = l - rho sqrt(l (1-l) beta/alpha),   alpha = 1 - beta.

    Args:
        strength: l, P(positive).
        sparsity: beta, P(missing), in (0, 1).
        correlation: rho of the two indicators. Values outside `feasible_correlation` give numbers
            outside [0, 1]; the public functions refuse them before they come here.

    Returns:
        (l1, l2), broadcast; NumPy arrays for concrete arguments, traced arrays for traced ones.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), section 4.3.
    """
    xp = jnp if checks.is_traced(strength, sparsity, correlation) else np
    # Where there is no correlation the square root, whose slope is infinite at 0 and 1, must not be met.
    correlated = xp.not_equal(correlation, 0)
    spread_squared = xp.where(correlated, strength * (1 - strength), 1)
    spread = xp.where(correlated, xp.sqrt(spread_squared), 0)
    odds = (1 - sparsity) / sparsity
    return (
        strength + correlation * spread * xp.sqrt(odds),
        strength - correlation * spread / xp.sqrt(odds),
    )


def feasible_correlation(strength: Any, sparsity: Any) -> tuple[Any, Any]:
    """The correlations for which both conditional strengths are probabilities.

    With a = l/(1-l) and b = beta/alpha:  -min(sqrt(a b), 1/sqrt(a b)) <= rho <= min(sqrt(a/b), sqrt(b/a)).
    A strength of 0 or 1 leaves nothing to correlate: every rho in [-1, 1] gives l1 = l2 = l.

    Args:
        strength: l in [0, 1].
        sparsity: beta in (0, 1).

    Returns:
        (lowest, highest) rho, broadcast.

    Raises:
        ValueError: if an argument leaves its interval.

    Examples:
        >>> low, high = feasible_correlation(0.5, 0.5)
        >>> float(low), float(high)
        (-1.0, 1.0)
    """
    strength = checks.real("strength", strength, 0, 1)
    sparsity = checks.real("sparsity", sparsity, 0, 1, closed=False)
    strength, sparsity = np.broadcast_arrays(strength, sparsity)
    degenerate = (strength == 0) | (strength == 1)
    inner = np.where(degenerate, 0.5, strength)
    root_a = np.sqrt(inner / (1 - inner))
    root_b = np.sqrt(sparsity / (1 - sparsity))
    low = -np.minimum(root_a * root_b, 1 / (root_a * root_b))
    high = np.minimum(root_a / root_b, root_b / root_a)
    return np.where(degenerate, -1.0, low)[()], np.where(degenerate, 1.0, high)[()]


def _check_correlation(strength: np.ndarray, sparsity: np.ndarray, correlation: np.ndarray) -> None:
    low, high = feasible_correlation(strength, sparsity)
    infeasible = (correlation < low - _ROUNDING) | (correlation > high + _ROUNDING)
    if infeasible.any():
        index = tuple(np.argwhere(infeasible)[0])
        pick = [float(np.broadcast_to(x, infeasible.shape)[index]) for x in (low, high, correlation)]
        at = [float(np.broadcast_to(x, infeasible.shape)[index]) for x in (strength, sparsity)]
        raise ValueError(
            f"`correlation` must be in the feasible interval [{pick[0]:.6g}, {pick[1]:.6g}] of "
            f"strength {at[0]:g} and sparsity {at[1]:g}, got {pick[2]!r}."
        )


def grid(
    *, strength: Any, sparsity: Any, num_answers: Any, num_entities: Any, correlation: Any = 0.0
) -> Setting:
    """Checks and broadcasts the five numbers of a query to one `Setting`.

    Args:
        strength: l in [0, 1].
        sparsity: beta in (0, 1).
        num_answers: N, whole, at least 1.
        num_entities: candidates before filtering, whole, above `num_answers`.
        correlation: rho, inside `feasible_correlation(strength, sparsity)`.

    Returns:
        A `Setting` whose fields share the broadcast shape.

    Raises:
        ValueError: if an argument leaves its interval, the correlation is not feasible, or the shapes
            do not broadcast. Traced arguments (under `jax.grad` and the like) are not checked.
    """
    given = {
        "strength": strength,
        "sparsity": sparsity,
        "correlation": correlation,
        "num_answers": num_answers,
        "num_entities": num_entities,
    }
    checked = {
        "strength": lambda v: checks.real("strength", v, 0, 1),
        "sparsity": lambda v: checks.real("sparsity", v, 0, 1, closed=False),
        "correlation": lambda v: checks.real("correlation", v, -1, 1),
        "num_answers": lambda v: checks.integer("num_answers", v, 1),
        "num_entities": lambda v: checks.integer("num_entities", v, 2),
    }
    traced = checks.is_traced(*given.values())
    values = {k: v if checks.is_traced(v) else checked[k](v) for k, v in given.items()}
    try:
        shape = np.broadcast_shapes(*(np.shape(v) for v in values.values()))
    except ValueError as error:
        shapes = ", ".join(f"{k} {np.shape(v)}" for k, v in values.items())
        raise ValueError(f"the settings do not broadcast to one grid: {shapes}.") from error
    if not checks.is_traced(num_answers, num_entities):
        answers, entities = np.broadcast_arrays(values["num_answers"], values["num_entities"])
        if (entities <= answers).any():
            index = tuple(np.argwhere(entities <= answers)[0])
            raise ValueError(
                f"`num_entities` must exceed `num_answers` ({int(answers[index])}), "
                f"got {int(entities[index])}."
            )
    if not checks.is_traced(strength, sparsity, correlation):
        _check_correlation(values["strength"], values["sparsity"], values["correlation"])
    broadcast_to = jnp.broadcast_to if traced else np.broadcast_to
    return Setting(**{k: broadcast_to(v, shape) for k, v in values.items()})
