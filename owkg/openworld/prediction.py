"""How a model orders the candidates: two models, each one frozen dataclass.

`strength` means the same in both: the probability that an answer is put ahead of every non-answer.
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
    """Each candidate is classified; positives precede negatives, the order inside a class is random.

    An answer is positive with probability `strength`; no non-answer is (Yang et al. 2022, section 4).
    """


@dataclass(frozen=True)
class Score:
    """Answers score N(mu, 1), non-answers N(0, 1), and candidates are ranked by score.

    The "more realistic modelling" that Yang et al. (2022) leave open: errors are graded, and the strong
    answers of one query are strong against the missing ones too. mu follows from `strength` by `shift`.
    """


CLASSIFICATION = Classification()

PredictionModel = Classification | Score


def shift(strength: ArrayLike, num_non_answers: ArrayLike) -> np.ndarray:
    """mu for which a N(mu, 1) score beats all of n standard normal scores with probability `strength`.

    Solves E[Phi(mu + Z)^n] = strength, Z standard normal; strength 1/(n+1) gives mu = 0. Arguments broadcast.

    Raises:
        ValueError: at strength 0 or 1, where no finite mu exists.
    """
    strength, n = np.broadcast_arrays(np.asarray(strength, np.float64), num_non_answers)
    expected = "in (0, 1) when scores rank (given missing, and given test, too)"
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
