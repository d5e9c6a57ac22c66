"""Nested sets of predictions from a draw of fixed size: the largest first ones that have a precision."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.acceptance import State, allowed_errors, alpha_of, checked_targets, judged_in_order

SETS = 10
STARTS = (2, 5, 8)
"""Nested sets, counted from 1, that begin with a third of alpha each."""
SPARE = 1.25
"""How much larger the region of nested sets is than the predicted set."""
_PILOT_FIRST = 30  # place from which a pilot is spread
_WEAK = 0.02  # precision of the prior of the intercept


class Nested(NamedTuple):
    """What a draw of fixed size says of nested sets, the first K_j candidates of an order.

    Attributes:
        state: accepted (one of the sets), open (not all drawn candidates are judged), or refused (none).
        precision: wanted.
        level: of confidence.
        accepted: K of the largest accepted set; 0 if none is.
        sizes: K_j.
        drawn: n_j, judged members of each set.
        errors: wrong ones among them.
        p_values: of the hypothesis that each set has a lower precision.
        spent: alpha with which each set was tested; 0 where its turn did not come.
        judged: candidates judged.
        exact: whether the whole region is judged, so that the result is certain and any K may be accepted.
        next: place of the next candidate to judge; None if all drawn ones are.
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
        """The state as a sentence."""
        target = f"a precision of at least {self.precision:g}"
        if self.state is State.OPEN:
            return f"Open: {self.judged:,} candidates are judged, and all drawn ones must be."
        if self.state is State.REFUSED:
            return f"None accepted: no set has {target} {self._how} from {self.judged:,} judgements."
        return f"Accepted: the first {self.accepted:,} candidates have {target} {self._how}."

    @property
    def _how(self) -> str:
        return "for certain" if self.exact else f"with {100 * self.level:g} % confidence"


def predicted_size(probabilities: Float[np.ndarray, "candidates"], precision: float) -> int:
    """The largest K whose first K candidates have the precision by their predicted probabilities; 0 if none.

    Args:
        probabilities: that each candidate is right, in the order in which they would be accepted.
        precision: wanted, in (0, 1].

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
    """How many first candidates to draw from: `spare` times the predicted size, at most all; 0 if none.

    Args:
        probabilities: that each candidate is right, in the order in which they would be accepted.
        precision: wanted, in (0, 1].
        spare: at least 1.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    more = checks.real_number("spare", spare, 1, np.inf)
    size = predicted_size(probabilities, precision)
    return min(int(np.ceil(more * size - 1e-9)), len(probabilities))


def pilot_places(candidates: int, judgements: int, *, seed: int = 0) -> Int[np.ndarray, "n"]:
    """Places of candidates to judge for a pilot, about evenly on the log scale; fewer where places coincide.

    Args:
        candidates: how many there are, in the order in which they would be accepted.
        judgements: how many to judge, at most as many.
        seed: of the places.

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
    """Probabilities that candidates are right, falling with the log of their place, from some judged ones.

    expit(a - b log place), fitted by maximum likelihood with b drawn towards 1 (a normal prior of deviation
    1). It serves to choose a region. The judged candidates then count as known: they leave the region before
    the draw, and the promise is about the others. So they need not be random, and an error of the fit costs
    accepted candidates and no validity.

    Args:
        candidates: how many there are, in the order in which they would be accepted.
        places: of the judged ones, from 0.
        labels: of the judged ones, 1 (right) or 0 (wrong).

    Returns:
        probabilities, of the judged ones as well.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    size = checks.whole("candidates", candidates, 1)
    at, said = checks.integer("places", places, 0), checks.integer("labels", labels, 0)
    checks.require("places", at, at < size, f"below {size}, the number of candidates")
    checks.require("labels", said, said <= 1, "1 or 0")
    if at.shape != said.shape or at.ndim != 1:
        raise ArgumentError("labels", f"must have one entry a place, {at.size}, got {said.size}.")
    every = -np.log(np.arange(1.0, size + 1))
    middle = every[at].mean()
    design = np.column_stack([np.ones(len(at)), every[at] - middle])
    prior, weak = np.array([0.0, 1.0]), np.array([_WEAK, 1.0])

    def loss(w: Float[np.ndarray, "2"]) -> float:
        score = design @ w
        return float(np.logaddexp(0, score).sum() - said @ score + (weak * (w - prior) ** 2).sum() / 2)

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

    In a simple random sample of a region, given that n_j of the drawn candidates are members of a set, each
    n_j members are equally likely to be the drawn ones. So each p-value is exact given its n_j. It is not
    exact given the numbers of all sets: which test counts must not depend on these numbers, and in `chain` it
    does not.

    Args:
        sizes: K_j.
        drawn: n_j, drawn members of each set.
        errors: wrong ones among them.
        precision: wanted.
    """
    bad = np.array([allowed_errors(precision, int(size)) + 1 for size in sizes])
    # Where fewer errors are certain, the sum over impossible numbers is 0.
    return np.clip(stats.hypergeom.cdf(errors, sizes, bad, drawn), 0, 1)


def chain(
    p_values: Float[np.ndarray, "*draws sets"], alpha: float, starts: tuple[int, ...] = STARTS
) -> tuple[Bool[np.ndarray, "*draws sets"], Float[np.ndarray, "*draws sets"]]:
    """Tests of nested sets, from the smallest: whether each is rejected, and the alpha it was tested with.

    Sets at `starts` (counted from 1) have equal parts of alpha; a rejected set hands its alpha to the next
    larger one. The probability of any false rejection is at most alpha, whatever depends on what.
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
    """The largest nested set that has a precision, from a draw of fixed size of the region.

    The size of the draw and the region must be fixed before anything is judged. Drawing more after a look at
    the result spoils the level; `one_set` allows that.

    Args:
        labels: of the candidates of the region, in the order in which they would be accepted: 1 (right), 0
            (wrong) or -1 (not judged), [region].
        order: places of all candidates of the region in the order of the draw, [region].
        drawn: size of the draw, from 1 to the size of the region; the first ones of `order`.
        precision: wanted, in (0, 1].
        level: of confidence.

    Raises:
        ValueError: naming `labels` if a label is of another kind or a candidate is judged that was not drawn,
            or before its turn; `order` if it is not an order of the region; `drawn`, `precision`, `level` if
            out of range.
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
        raise ArgumentError("labels", f"must be of the {size} drawn candidates, got {len(said)} judged.")
    return tested_sets(said, places, size, wanted, sure)


def tested_sets(said: np.ndarray, places: np.ndarray, drawn: int, precision: float, level: float) -> Nested:
    """`nested` of labels in the order of the draw."""
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
    """How many places are in each set."""
    return np.searchsorted(np.sort(places), sizes)


def largest_true(labels: Int[np.ndarray, "candidates"], precision: float) -> int:
    """The largest K whose first K candidates have the precision."""
    share = Fraction(str(precision))
    enough = np.cumsum(labels == 1) * share.denominator >= share.numerator * np.arange(
        1, len(labels) + 1
    ).astype(object)
    return int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0
