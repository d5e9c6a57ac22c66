"""Mean of any rank metric if candidates are ranked by normal scores, computed by quadrature.

The variance under this prediction model has no comparably short form; `owkg.simulate` estimates it.
"""

from functools import cache
from typing import Any, Unpack

import numpy as np

from owkg.openworld import INDEPENDENT, MissingModel, SettingArguments, grid
from owkg.openworld.prediction import shift
from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import padded_size
from owkg.theory import missing_counts
from owkg.theory.grids import binomial_pmf, checked_prefix_sums, log_factorials, over_grid, require_feasible

# Initial steps of the trapezoidal rule over the test answer's score, doubled until the mean settles. The
# integrand is smooth and vanishes at both ends, so the rule converges geometrically once steps resolve it.
_STEPS = 288
_TOLERANCE = 1e-11
_REACH = 9.0  # standard deviations


@cache
def _kernel(missing: MissingModel, window: int, steps: int):
    import jax
    import jax.numpy as jnp
    from jax.scipy.stats import norm

    def kernel(weights, log_factorial, log_binomial, mu_missing, mu_test, num_answers, num_entities, *row):
        size = log_factorial.shape[0] - 1
        others = num_entities - num_answers
        counts = missing_counts.missing_count_pmf(missing, row, num_answers, log_factorial)

        def at(offset):
            score = mu_test + offset
            # Missing answers ahead: Binomial(m, P(missing beats score)), averaged over m.
            ahead = norm.sf(score - mu_missing)
            m = jnp.arange(size)
            given = binomial_pmf(m[None, :], m[:, None], ahead, log_factorial)
            missing_ahead = counts @ given
            # Non-answers ahead: Binomial(others, P(non-answer beats score)), where it is not negligible.
            beats = norm.sf(score)
            start = jnp.round(others * beats).astype(m.dtype) - window // 2
            start = jnp.clip(start, 0, jnp.maximum(others + 1 - window, 0))
            y = start + jnp.arange(window)
            others_ahead = binomial_pmf(y, others, beats, log_binomial)
            rank_weight = weights[y[:, None] + m[None, :]]  # h(1 + y + m)
            return others_ahead @ rank_weight @ missing_ahead

        offsets = jnp.linspace(-_REACH, _REACH, steps + 1)
        density = jnp.exp(-(offsets**2) / 2)
        return (jnp.sum(density * jax.lax.map(at, offsets)) / jnp.sum(density),)

    return kernel


def score_expectation(
    metric: RankWeight | str, *, missing: MissingModel = INDEPENDENT, **setting: Unpack[SettingArguments]
) -> Any:
    """Mean of a query's metric if answers score N(mu, 1), non-answers N(0, 1), and candidates rank by score.

    A test answer of score s is preceded by Binomial(m, Phi(mu1 - s)) missing answers and
    Binomial(N_entity - N, Phi(-s)) non-answers; h(1 + both) is averaged over s ~ N(mu2, 1) and over m.
    mu1 and mu2 are the shifts of the conditional strengths l1 and l2 (`owkg.openworld.prediction.shift`).
    Metrics that are smooth in the rank take milliseconds for each setting. A metric with a sharp edge far
    down the list, such as Hits@1000, takes up to sqrt(num_entities) / 8 times as long. The strength,
    P(an answer beats every non-answer), must be in (0, 1).

    Raises:
        ValueError: if an argument is out of range; the message names it.
    """
    queries = grid(**setting)
    others = queries.num_entities - queries.num_answers
    mu_missing, mu_test = (np.asarray(shift(p, others)) for p in queries.conditional_strengths())
    size = padded_size(np.max(queries.num_answers))
    largest = int(np.max(others))
    # Ten standard deviations of the widest binomial on either side.
    window = min(padded_size(int(10 * np.sqrt(largest)) + 64), padded_size(largest + 1))
    answers = int(np.max(queries.num_answers))
    entries = float(answers) * (answers + window)
    require_feasible(3 * entries, 3.0 * _STEPS * entries * queries.num_answers.size, answers)
    weights = np.diff(checked_prefix_sums(metric, np.max(queries.num_entities))[0])
    shared = (weights, log_factorials(size + 1), log_factorials(padded_size(largest + 1)))
    rows = (
        mu_missing,
        mu_test,
        queries.num_answers,
        queries.num_entities,
        *missing_counts.parameters(missing, queries, size),
    )

    def mean(steps: int) -> Any:
        kernel = _kernel(missing, window, steps)
        return over_grid(kernel, shared, rows, queries.shape, window * size, only_jax=True)[0]

    # The sharpest integrand, Hits@K with K in the middle of the list, has an edge 1/sqrt(others) wide.
    finest = max(_STEPS, 4 * _REACH * np.sqrt(largest))
    steps, coarse, fine = 2 * _STEPS, mean(_STEPS), mean(2 * _STEPS)
    while np.max(np.abs(fine - coarse) / np.maximum(np.abs(fine), 1e-300)) > _TOLERANCE and steps < finest:
        steps *= 2
        coarse, fine = fine, mean(steps)
    return fine
