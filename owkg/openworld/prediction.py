"""Models of how a predictor orders the candidates: two frozen dataclasses.

`strength` has the same meaning in both: the probability that an answer is ranked above every non-answer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special

from owkg import checks


@dataclass(frozen=True)
class Classification:
    """Model that classifies each candidate; positives precede negatives, in random order within each class.

    An answer is positive with probability `strength`; non-answers are never positive (Yang et al. 2022,
    section 4).
    """


@dataclass(frozen=True)
class Score:
    """Model that ranks candidates by score: N(mu, 1) for answers, N(0, 1) for non-answers.

    Yang et al. (2022) leave this "more realistic modelling" open: errors are graded, and a strong answer of a
    query also beats its missing answers. `shift` computes mu from `strength`.
    """


CLASSIFICATION = Classification()

PredictionModel = Classification | Score


def shift(strength: ArrayLike, num_non_answers: ArrayLike) -> np.ndarray:
    """mu for which a N(mu, 1) score beats all of n standard normal scores with probability `strength`.

    Solves E[Phi(mu + Z)^n] = strength, Z standard normal. Strength 1/(n+1) gives mu = 0. Arguments broadcast.

    Raises:
        ValueError: if a strength is 0 or 1, where no finite mu exists.
    """
    strength, n = np.broadcast_arrays(np.asarray(strength, np.float64), num_non_answers)
    expected = "in (0, 1) under the score model, also given missing and given in the test set"
    checks.require("strength", strength, (strength > 0) & (strength < 1), expected)
    nodes = np.linspace(-9.0, 9.0, 361)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()

    def gap(
        mu: Float[np.ndarray, "..."], target: Float[np.ndarray, "..."], n: Float[np.ndarray, "..."]
    ) -> Any:
        beaten = special.log_ndtr(mu[..., None] + nodes)
        return np.exp(n[..., None] * beaten) @ weights - target

    from scipy.optimize import elementwise  # slow to import; few need it

    return np.asarray(elementwise.find_root(gap, (-50.0, 50.0), args=(strength, n.astype(np.float64))).x)
