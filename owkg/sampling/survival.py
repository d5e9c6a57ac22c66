"""Probabilities that the facts of a closed world are known, under each missing-fact model.

The mean over the facts is exactly the density, whatever was drawn for entities or relations. (The published
generator uses the location mu = sqrt(d) for `NodeBased`; the cut to [0, 1] and the draws of the entities then
move the mean away from d.)
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float64, Int32
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import entity_popularity
from owkg.openworld import Independent, NodeBased, PopularityBased, RelationBased

FactModel = Independent | NodeBased | RelationBased | PopularityBased


def survival(
    facts: Int32[np.ndarray, "facts 3"],
    density: float,
    missing: FactModel,
    rng: np.random.Generator,
    *,
    num_entities: int,
    num_relations: int,
) -> Float64[np.ndarray, "facts"]:
    """Probability that each fact is in the open-world graph; the mean is `density`.

    - `Independent`: the density itself.
    - `NodeBased`: the product of the probabilities of head and tail, each N(mu, spread) cut to [0, 1].
    - `RelationBased`: the probability of the relation, N(mu, spread) cut to [0, 1].
    - `PopularityBased`: odds proportional to (popularity of head * popularity of tail) ** exponent, where
      popularity is the number of facts of an entity.

    The function solves for mu, or for the scale of the odds. With equal draws, a higher density gives every
    fact a higher probability. `rng` draws a standard normal number for each entity or relation, if the model
    needs them.

    Args:
        facts: facts, int [facts, 3].
        density: mean of the probabilities, in (0, 1].
        missing: missing-fact model.
        rng: random generator.
        num_entities, num_relations: sizes of the graph.

    Raises:
        ValueError: if `density` is outside (0, 1], or there are no facts.

    Examples:
        >>> facts = np.array([[0, 0, 1], [1, 0, 2], [2, 1, 0]], np.int32)
        >>> rng = np.random.default_rng(0)
        >>> found = survival(facts, 0.75, NodeBased(0.2), rng, num_entities=3, num_relations=2)
        >>> float(found.mean().round(12))
        0.75
    """
    density = checks.real_number("density", density, 0, 1)
    if density == 0:
        raise ArgumentError("density", f"must be in (0, 1], got {density}.")
    if not len(facts):
        raise ArgumentError("facts", "must hold at least one fact, got none.")
    if isinstance(missing, Independent) or density == 1:
        return np.full(len(facts), density, np.float64)
    head, relation, tail = facts.T
    if isinstance(missing, PopularityBased):
        slope = missing.exponent * np.log(np.maximum(entity_popularity(facts, num_entities), 1))
        slope = slope[head] + slope[tail]
        reach = 750  # expit is 0 or 1 beyond it
        return _solved(lambda a: special.expit(a + slope), -reach - slope.max(), reach - slope.min(), density)
    normal = missing.spread * rng.standard_normal(
        num_entities if isinstance(missing, NodeBased) else num_relations
    )

    def of_facts(mu: float) -> np.ndarray:
        cut = np.clip(mu + normal, 0, 1)
        return cut[head] * cut[tail] if isinstance(missing, NodeBased) else cut[relation]

    return _solved(of_facts, -normal.max(), 1 - normal.min(), density)


def _solved(of_facts: Callable[[float], np.ndarray], low: float, high: float, density: float) -> np.ndarray:
    """Probabilities with mean `density`, by a parameter that raises them from 0 at `low` to 1 at `high`."""
    from scipy import optimize  # slow to import; few need it

    found = optimize.root_scalar(
        lambda x: of_facts(x).mean() - density, method="toms748", bracket=(low, high), xtol=1e-15, rtol=1e-15
    )
    return of_facts(found.root)
