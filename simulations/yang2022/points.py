"""Points of the published figures, with every closed form and a Monte Carlo estimate of each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from owkg import simulate, theory
from owkg.keys import seeded
from owkg.rank_weights import MRR


@dataclass(frozen=True)
class PublishedGrid:
    """Settings that Yang et al. (2022) simulate."""

    correlations: tuple[float, ...] = (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2)
    alphas: tuple[float, ...] = (0.8, 0.65, 0.5, 0.35)
    strengths: tuple[float, ...] = tuple(round(0.3 + 0.01 * i, 2) for i in range(71))
    num_answers: int = 43
    num_entities: int = 14505

    def points(self, *correlations: float) -> dict[str, np.ndarray]:
        """`rho`, `alpha` and `strength` of all points at the given correlations (default: all), flat."""
        axes = (correlations or self.correlations, self.alphas, self.strengths)
        flat = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
        return dict(zip(("rho", "alpha", "strength"), flat, strict=True))


def checked_points(
    grid: PublishedGrid,
    points: dict[str, np.ndarray],
    trials: int,
    seed: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """One row for each point: closed forms of MRR, Monte Carlo, and their standardised difference.

    Args:
        grid: grid that states the sizes of the queries.
        points: `rho`, `alpha` and `strength`, flat and feasible.
        trials: number of queries for each point.
        seed: equal seeds give equal rows.
        on_progress: as in `simulate.estimate`.
    """
    setting: dict[str, Any] = {
        "strength": points["strength"],
        "sparsity": 1 - points["alpha"],
        "correlation": points["rho"],
        "num_answers": grid.num_answers,
        "num_entities": grid.num_entities,
    }
    exact = theory.moments(MRR, **setting)
    drawn = simulate.estimate(seeded(seed), MRR, trials=trials, on_progress=on_progress, **setting)
    mean, error = drawn.mean[:, 0], drawn.standard_error[:, 0]
    return pl.DataFrame(
        points
        | {
            "expectation": exact.expectation,
            "variance": exact.variance,
            "lemma_expectation": theory.lemma_expectation(MRR, **setting),
            "log_approximation": theory.log_approximation(**setting),
            "log_approximation_error_bound": theory.log_approximation_error_bound(**setting),
            "correlation_derivative": theory.lemma_correlation_derivative(MRR, **setting),
            "monte_carlo_mean": mean,
            "monte_carlo_standard_error": error,
            "monte_carlo_variance": drawn.variance[:, 0],
            "trials": np.full(mean.shape, trials),
            "standardised_difference": (mean - exact.expectation) / error,
        }
    )
