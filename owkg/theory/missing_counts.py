"""Distribution of the number of missing answers, given that at least one answer is in the test set."""

from functools import reduce
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Shaped
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.openworld import Independent, MissingModel, NodeBased, PopularityBased, Setting
from owkg.openworld.missing import node_location, popularity_probabilities
from owkg.theory.grids import binomial_pmf
from owkg.theory.grids import require_feasible as require_feasible_sums

# Minimum number of Gauss-Legendre nodes over the query entity's survival probability. The integrand is a
# polynomial of degree N times a normal density, cut where the density is negligible.
_NODES = 128
_REACH = 10  # standard deviations


def require_feasible(missing: MissingModel, num_answers: Int[np.ndarray, "..."]) -> None:
    """`grids.require_feasible` for the moments of so many answers under a missing-fact model."""
    largest = int(np.max(num_answers))
    # The node-based model sums over as many nodes as there are answers.
    entries, factor = (3.0 * largest**2, 5) if isinstance(missing, NodeBased) else (64.0 * largest, 1)
    require_feasible_sums(entries, factor * float(np.sum(num_answers.astype(np.float64) ** 2)), largest)


def parameters(missing: MissingModel, setting: Setting, size: int) -> tuple:
    """Arrays of shape `[*grid, ...]` that `missing_count_pmf` needs for each setting.

    Raises:
        ValueError: if `missing` is none of the three models.
        TypeError: if sparsity is traced and the model solves for a parameter of its own.
    """
    if not isinstance(missing, MissingModel):
        raise ArgumentError("missing", f"must be one of the models of owkg.openworld, got {missing!r}.")
    if isinstance(missing, Independent):
        return (setting.sparsity,)
    if checks.is_traced(setting.sparsity):
        raise TypeError(f"`sparsity` cannot be traced under {missing}, which solves for its own parameters.")
    if isinstance(missing, NodeBased):
        location = np.asarray(node_location(setting.sparsity, missing.spread))
        return _node_mixture(location, missing.spread, setting.sparsity, max(_NODES, size))
    table = popularity_probabilities(setting.sparsity, setting.num_answers, missing.exponent, size)
    return (table,)


def _node_mixture(
    location: np.ndarray, spread: float, sparsity: np.ndarray, num_nodes: int
) -> tuple[np.ndarray, np.ndarray]:
    """P(an answer is missing | the query entity's probability), and the weight of that probability.

    The nodes are the continuous part on (0, 1) and the point masses that the cut leaves at 0 and 1.
    """
    nodes, weights = special.roots_legendre(num_nodes)
    mu = location[..., None]
    low, high = np.clip(mu - _REACH * spread, 0, 1), np.clip(mu + _REACH * spread, 0, 1)
    survival = low + (high - low) * (nodes + 1) / 2
    z = (survival - mu) / spread
    density = np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * spread) * weights * (high - low) / 2
    at_zero, at_one = special.ndtr(-mu / spread), special.ndtr((mu - 1) / spread)
    survival = np.concatenate([survival, np.zeros_like(mu), np.ones_like(mu)], axis=-1)
    # Averaged over its own entity, an answer survives with probability sqrt(alpha) given the query entity.
    missing = 1 - survival * np.sqrt(1 - sparsity)[..., None]
    return missing, np.concatenate([density, at_zero, at_one], axis=-1)


def missing_count_pmf(
    missing: MissingModel, row: tuple, num_answers: Shaped[Any, ""], log_factorial: Float[Any, "size_plus_1"]
) -> Float[Any, "counts"]:
    """P(m answers are missing | m < N) for m = 0, 1, ..., one entry fewer than the table of log j! has.

    `row` holds the `parameters` of one setting.
    """
    xp = checks.library_of(*row, num_answers, log_factorial)
    m = xp.arange(log_factorial.shape[0] - 1)
    if isinstance(missing, Independent):
        pmf = binomial_pmf(m, num_answers, row[0], log_factorial)
    elif isinstance(missing, NodeBased):
        probability, weight = row
        pmf = weight @ binomial_pmf(m, num_answers, probability[:, None], log_factorial)
    elif isinstance(missing, PopularityBased):
        pmf = _poisson_binomial(xp, row[0], num_answers)
    pmf = xp.where(m < num_answers, pmf, 0.0)
    return pmf / xp.sum(pmf)


def _poisson_binomial(
    xp: ModuleType, probability: Float[Any, "events"], num_answers: Shaped[Any, ""]
) -> Float[Any, "events"]:
    """P(m of the first `num_answers` events happen), computed by adding one event at a time."""

    def add(pmf, p):
        return (1 - p) * pmf + p * xp.concatenate([xp.zeros_like(pmf[:1]), pmf[:-1]]), None

    number = xp.arange(probability.shape[0])
    probability = xp.where(number < num_answers, probability, 0.0)
    start = xp.where(number == 0, 1.0, xp.zeros_like(probability))
    if xp is np:
        return reduce(lambda pmf, p: add(pmf, p)[0], probability, start)
    import jax

    return jax.lax.scan(add, start, probability)[0]
