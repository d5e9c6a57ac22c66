"""Nested sets of predictions, tested with a draw of fixed size: the largest set that has a precision."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.acceptance import State, allowed_errors, alpha_of, checked_targets, judged_in_order

SETS = 10
STARTS = (2, 5, 8)
"""Nested sets, counted from 1, that start with a third of alpha each."""
SPARE = 1.25
"""Size of the region of nested sets, relative to the predicted set."""
_PILOT_FIRST = 30  # first place of a pilot
_WEAK = 0.02  # precision (inverse variance) of the prior of the intercept


class Nested(NamedTuple):
    """Result of the test of nested sets, the first K_j candidates of an order, with a draw of fixed size.

    Attributes:
        state: accepted (a set is accepted), open (not all drawn candidates are judged), or refused (no set is
            accepted).
        precision: the wanted precision.
        level: confidence level.
        accepted: K of the largest accepted set; 0 if none is accepted.
        sizes: K_j, the size of each set.
        drawn: n_j, the number of judged members of each set.
        errors: number of wrong candidates among the judged members of each set.
        p_values: p-value of the hypothesis that each set has a lower precision.
        spent: alpha with which each set was tested; 0 if it was not tested.
        judged: number of judged candidates.
        exact: whether the whole region is judged, so that the result is certain and any K may be accepted.
        next: place of the next candidate to judge; None if all drawn candidates are judged.
    """

    state: State
    precision: float
    level: float
    accepted: int
    sizes: Int[np.ndarray, "sets"]
    drawn: Int[np.ndarray, "sets"]
    errors: Int[np.ndarray, "sets"]
    p_values: Float[np.ndarray, "sets"]
    spent: Float[np.ndarray, "sets"]
    judged: int
    exact: bool
    next: int | None

    @property
    def statement(self) -> str:
        """The state as one sentence."""
        target = f"a precision of at least {self.precision:g}"
        if self.state is State.OPEN:
            return f"Open: {self.judged:,} candidates are judged, but all drawn candidates must be."
        if self.state is State.REFUSED:
            return f"None accepted: no set has {target} {self._how} from {self.judged:,} judgements."
        return f"Accepted: the first {self.accepted:,} candidates have {target} {self._how}."

    @property
    def _how(self) -> str:
        return "for certain" if self.exact else f"with {100 * self.level:g} % confidence"


def predicted_size(probabilities: Float[np.ndarray, "candidates"], precision: float) -> int:
    """Largest K for which the first K candidates have the precision in expectation; 0 if none.

    Args:
        probabilities: probability that each candidate is right, in the order of acceptance.
        precision: the wanted precision, in (0, 1].

    Raises:
        ValueError: naming the argument that is out of range.
    """
    wanted = checks.real_number("precision", precision, 0, 1, closed="high")
    values = checks.real("probabilities", probabilities, 0, 1)
    enough = np.cumsum(values) >= wanted * np.arange(1, len(values) + 1) - 1e-9
    return int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0


def region_size(
    probabilities: Float[np.ndarray, "candidates"], precision: float, *, spare: float = SPARE
) -> int:
    """Number of first candidates to draw from: `spare` times the predicted size, at most all; 0 if none.

    Args:
        probabilities: probability that each candidate is right, in the order of acceptance.
        precision: the wanted precision, in (0, 1].
        spare: factor by which the region exceeds the predicted size, at least 1. Default 1.25.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    more = checks.real_number("spare", spare, 1, np.inf)
    size = predicted_size(probabilities, precision)
    return min(int(np.ceil(more * size - 1e-9)), len(probabilities))


def pilot_places(candidates: int, judgements: int, *, seed: int = 0) -> Int[np.ndarray, "n"]:
    """Places of candidates to judge in a pilot, spread about evenly on the log scale.

    Args:
        candidates: number of candidates, in the order of acceptance.
        judgements: number of candidates to judge, at most `candidates`. The result has fewer if places
            coincide.
        seed: seed of the places. Default 0.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    size, count = checks.whole("candidates", candidates, 1), checks.whole("judgements", judgements, 1)
    if count > size:
        raise ArgumentError("judgements", f"must be at most {size}, the number of candidates, got {count}.")
    first = min(_PILOT_FIRST, size)
    rng = np.random.default_rng(checks.seed("seed", seed))
    share = (np.arange(count) + rng.random(count)) / count
    return np.unique(np.minimum((first * (size / first) ** share).astype(np.int64), size) - 1)


def piloted(
    candidates: int, places: Int[np.ndarray, "n"], labels: Int[np.ndarray, "n"]
) -> Float[np.ndarray, "candidates"]:
    """Probability that each candidate is right, falling with the log of its place, fitted to judged ones.

    The probability is expit(a - b log place), fitted by maximum likelihood with b shrunk towards 1 (a normal
    prior of deviation 1). It serves only to choose a region. The judged candidates leave the region before
    the draw because they count as known, and the promise is about the remaining candidates. The judged
    candidates therefore need not be random, and a bad fit reduces the number of accepted candidates but not
    the validity.

    Args:
        candidates: number of candidates, in the order of acceptance.
        places: places of the judged candidates, from 0.
        labels: labels of the judged candidates, 1 (right) or 0 (wrong).

    Returns:
        The probability of each candidate, including the judged ones.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    size = checks.whole("candidates", candidates, 1)
    at, said = checks.integer("places", places, 0), checks.integer("labels", labels, 0)
    checks.require("places", at, at < size, f"below {size}, the number of candidates")
    checks.require("labels", said, said <= 1, "1 or 0")
    if at.shape != said.shape or at.ndim != 1:
        raise ArgumentError("labels", f"must have one entry for each of {at.size} places, got {said.size}.")
    every = -np.log(np.arange(1.0, size + 1))
    middle = every[at].mean()
    design = np.column_stack([np.ones(len(at)), every[at] - middle])
    prior, weak = np.array([0.0, 1.0]), np.array([_WEAK, 1.0])

    def loss(w: Float[np.ndarray, "2"]) -> float:
        score = design @ w
        return float(np.logaddexp(0, score).sum() - said @ score + (weak * (w - prior) ** 2).sum() / 2)

    from scipy import optimize  # slow to import; few need it

    found = optimize.minimize(loss, prior, method="BFGS").x
    return special.expit(found[0] + max(found[1], 0.0) * (every - middle))


def nested_sizes(region: int, sets: int = SETS) -> Int[np.ndarray, "sets"]:
    """Sizes of the nested sets: 1 / sets, 2 / sets, ... of the region, rounded up."""
    return -(-np.arange(1, sets + 1) * region // sets)


def nested_p_values(
    sizes: Int[np.ndarray, "sets"],
    drawn: Int[np.ndarray, "*draws sets"],
    errors: Int[np.ndarray, "*draws sets"],
    precision: float,
) -> Float[np.ndarray, "*draws sets"]:
    """P-values that each set has a lower precision: P(H(K_j, floor((1 - p) K_j) + 1, n_j) <= errors).

    H is hypergeometric. In a simple random sample of a region, given that n_j of the drawn candidates belong
    to a set, each subset of n_j members is equally likely to be drawn. Each p-value is therefore exact given
    its n_j. It is not exact given the numbers n_j of all sets, so the choice of the tests must not depend on
    these numbers; in `chain` it does not.

    Args:
        sizes: K_j, the size of each set.
        drawn: n_j, the number of drawn members of each set.
        errors: number of wrong candidates among the drawn members of each set.
        precision: the wanted precision.
    """
    from scipy import stats  # slow to import; few need it

    bad = np.array([allowed_errors(precision, int(size)) + 1 for size in sizes])
    # If fewer errors are certain, the sum over impossible numbers is 0.
    return np.clip(stats.hypergeom.cdf(errors, sizes, bad, drawn), 0, 1)


def chain(
    p_values: Float[np.ndarray, "*draws sets"], alpha: float, starts: tuple[int, ...] = STARTS
) -> tuple[Bool[np.ndarray, "*draws sets"], Float[np.ndarray, "*draws sets"]]:
    """Tests of nested sets, from the smallest: whether each is rejected, and the alpha of each test.

    Sets at `starts` (counted from 1) get equal parts of alpha, and a rejected set passes its alpha on to the
    next larger one. The probability of any false rejection is at most alpha under any dependence.
    """
    alphas = np.zeros(p_values.shape)
    rejected = np.zeros(p_values.shape, bool)
    have = np.zeros(p_values.shape[:-1])
    for j in range(p_values.shape[-1]):
        have = have + alpha * starts.count(j + 1) / len(starts)
        alphas[..., j] = have
        rejected[..., j] = (have > 0) & (p_values[..., j] <= have)
        have = np.where(rejected[..., j], have, 0.0)
    return rejected, alphas


def nested(
    labels: ArrayLike, order: ArrayLike, drawn: int, *, precision: float, level: float = 0.95
) -> Nested:
    """Largest nested set that has a precision, from a draw of fixed size of the region.

    The region and the size of the draw must be fixed before anything is judged. Drawing more after a look at
    the result invalidates the level; `one_set` allows it.

    Args:
        labels: labels of the candidates of the region, in the order of acceptance: 1 (right), 0 (wrong) or -1
            (not judged), [region].
        order: places of all candidates of the region in the order of the draw, [region].
        drawn: size of the draw, from 1 to the size of the region: the first places of `order`.
        precision: the wanted precision, in (0, 1].
        level: confidence level. Default 0.95.

    Raises:
        ValueError: naming `labels` if a label has another value, or a candidate is judged that was not drawn
            or before its turn; `order` if it is not an order of the region; `drawn`, `precision` or `level`
            if it is out of range.
    """
    wanted, sure = checked_targets(precision, level)
    said, places = judged_in_order(labels, order)
    if len(places) != len(np.asarray(labels)):
        raise ArgumentError(
            "order", f"must hold every candidate of the region, got {len(places)} of {np.size(labels)}."
        )
    size = checks.whole("drawn", drawn, 1)
    if size > len(places):
        raise ArgumentError("drawn", f"must be at most {len(places)}, the size of the region, got {size}.")
    if len(said) > size:
        raise ArgumentError("labels", f"must judge at most the {size} drawn candidates, got {len(said)}.")
    return tested_sets(said, places, size, wanted, sure)


def tested_sets(said: np.ndarray, places: np.ndarray, drawn: int, precision: float, level: float) -> Nested:
    """Result of `nested` for labels in the order of the draw."""
    region, judged = len(places), len(said)
    sizes = nested_sizes(region)
    counts, errors = _within(places[:judged], sizes), _within(places[:judged][said == 0], sizes)
    p_values = nested_p_values(sizes, counts, errors, precision)
    exact, complete = judged == region, judged == drawn
    rejected, spent = chain(p_values, alpha_of(level))
    accepted = int(sizes[rejected].max(initial=0)) if complete else 0
    if exact:
        accepted = largest_true(said[np.argsort(places)], precision)
    state = State.OPEN if not complete else State.ACCEPTED if accepted else State.REFUSED
    following = None if complete else int(places[judged])
    return Nested(
        state, precision, level, accepted, sizes, counts, errors, p_values, spent, judged, exact, following
    )


def _within(places: Int[np.ndarray, "n"], sizes: Int[np.ndarray, "sets"]) -> Int[np.ndarray, "sets"]:
    """Number of places in each set."""
    return np.searchsorted(np.sort(places), sizes)


def largest_true(labels: Int[np.ndarray, "candidates"], precision: float) -> int:
    """Largest K for which the first K candidates have the precision."""
    share = Fraction(str(precision))
    enough = np.cumsum(labels == 1) * share.denominator >= share.numerator * np.arange(
        1, len(labels) + 1
    ).astype(object)
    return int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0
