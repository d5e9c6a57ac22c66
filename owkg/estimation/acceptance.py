"""Exact tests of whether predictions reach a precision, from few judgements drawn at random.

A set of K candidates has at least precision p if at most floor((1 - p) K) of them are wrong. Three designs
test this. None of them assumes anything about which candidates are right, because only the draw is random.

- One set, judged one by one in random order until a likelihood-ratio martingale decides (`one_set`).
- Nested sets, from a draw of fixed size: the test returns the largest K for which the first K candidates of a
  fixed order pass (`nested`).
- One set or one chain of nested sets per relation (`by_relation`, `nested_by_relation`).

Sources: Ville (1939) for the limit of the martingale; Waudby-Smith and Ramdas (2020), "Confidence sequences
for sampling without replacement"; Bretz, Maurer, Brannath, Posch (Statistics in Medicine 28, 2009) for the
chain; Angelopoulos, Bates, Candes, Jordan, Lei (2021), "Learn then Test", who apply such tests to
predictions.
"""

from collections.abc import Callable
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.population import UNKNOWN

MOST = 2_000
"""Number of judgements that plans compute by default."""
# From this level on, the numbers of errors that a martingale rejects have no gap (see `lower_limit`).
_LEAST_LEVEL = 0.65
_TINY = 1e-290


class State(StrEnum):
    """Decision about a set after the judgements made so far."""

    ACCEPTED = "accepted"
    OPEN = "open"
    REFUSED = "refused"


# One set, judged one by one.


class OneSet(NamedTuple):
    """Result of the test of one set whose candidates are judged in random order.

    Attributes:
        state: accepted, open, or refused (more errors were seen than the precision allows).
        precision: the wanted precision.
        level: confidence level.
        size: K, the number of candidates in the set.
        allowed: the largest number of errors with which the set still has the wanted precision.
        judged: number of candidates judged so far.
        errors: number of wrong candidates among the judged ones.
        evidence: largest value of the martingale so far.
        needed: value of the martingale from which the set is accepted; infinite if only certainty counts.
        lower: lower confidence limit of the precision of the set, valid at any time; the share of right
            candidates once all are judged.
        decided: number of judgements after which the set was accepted or refused; None while it is open.
        fewest: number of further judgements until acceptance if no further error is seen; None once decided.
        next: place of the next candidate to judge; None once decided or when all are judged.
    """

    state: State
    precision: float
    level: float
    size: int
    allowed: int
    judged: int
    errors: int
    evidence: float
    needed: float
    lower: float
    decided: int | None
    fewest: int | None
    next: int | None

    @property
    def certain(self) -> bool:
        """Whether the state is certain because the labels leave no other possibility."""
        return self.state is State.REFUSED or self.judged - self.errors >= self.size - self.allowed

    @property
    def statement(self) -> str:
        """The state as one sentence."""
        of = (
            f"{self.errors:,} of {self.judged:,} judged candidates are wrong"
            if self.judged
            else "no candidate is judged"
        )
        target = f"a precision of at least {self.precision:g} for this set of {self.size:,}"
        if self.state is State.REFUSED:
            return f"Refused: {of}, and {target} allows {self.allowed:,}."
        if self.state is State.OPEN:
            left = f"at least {self.fewest:,} more are needed"
            return f"Open: {of}; {left} to accept {target}."
        how = "for certain" if self.certain else f"with {100 * self.level:g} % confidence"
        return f"Accepted: {target} holds {how}; {of}, and the precision is at least {self.lower:.3f}."


def allowed_errors(precision: float, size: int) -> int:
    """Largest number of errors in a set of at least this precision: floor((1 - p) K), in exact arithmetic.

    Examples:
        >>> allowed_errors(0.9, 10), int((1 - 0.9) * 10)
        (1, 0)
    """
    return int((1 - Fraction(str(float(precision)))) * int(size))


def evidence(
    size: Int[np.ndarray, "*tests"] | int,
    bad: Int[np.ndarray, "*tests"] | int,
    judged: Int[np.ndarray, "*tests"] | int,
    errors: Int[np.ndarray, "*tests"] | int,
) -> Float[np.ndarray, "*tests"]:
    """Evidence that a set has fewer than `bad` errors: the mean over b < bad of lik(b) / lik(bad).

    lik(b) = C(b, e) C(K - b, t - e) is the likelihood of e errors among t judged candidates, whatever their
    order. The sum over b < bad counts the (t + 1)-subsets of K + 1 places whose (e + 1)-th member is among
    the first `bad`, so that

        evidence = (K + 1) / ((t + 1) bad) P(H(K + 1, bad, t + 1) > e) / P(H(K, bad, t) = e),

    where H is hypergeometric. If the set has exactly `bad` errors, the evidence after each judgement is a
    martingale that starts at 1 (as long as right candidates are left). If the set has more errors, it is a
    supermartingale. By Ville's inequality, the probability that it ever reaches 1 / alpha is at most alpha.

    Args:
        size: K, the number of candidates in the set.
        bad: the smallest number of errors that is too many, from 1 to K.
        judged: t, the number of judged candidates, from 0 to K.
        errors: e, the number of errors among them, from 0 to t.

    Returns:
        The evidence; 0 if at least `bad` errors were seen, infinite if fewer than `bad` are certain.
    """
    from scipy import stats  # slow to import; few need it

    above = np.asarray(stats.hypergeom.sf(errors, np.add(size, 1), bad, np.add(judged, 1)))
    at = np.asarray(stats.hypergeom.pmf(errors, size, bad, judged))
    scale = np.add(size, 1) / (np.add(judged, 1) * np.asarray(bad, float))
    certain = np.subtract(judged, errors) > np.subtract(size, bad)
    ratio = np.where(certain, np.inf, scale * above / np.maximum(at, _TINY))
    return np.where(np.less(errors, bad), ratio, 0.0)


def one_set(
    labels: ArrayLike, order: ArrayLike, *, precision: float, level: float = 0.95, certainty: bool = False
) -> OneSet:
    """Test of whether one set has a precision, from candidates judged one by one in random order.

    The result depends on the labels only. You may look at it after each judgement and stop judging at any
    time for any reason: a set that lacks the precision is accepted with a probability of at most 1 - level.

    Args:
        labels: label of each candidate, 1 (right), 0 (wrong) or -1 (not judged), [candidates].
        order: places of the members of the set in the order of the draw, each once, [size]. The order must be
            random and fixed before anything is judged, and the judged members must come first.
        precision: the wanted precision, in (0, 1].
        level: confidence level, at least 0.65. Default 0.95.
        certainty: whether to accept only a set whose precision is certain, for example once all are judged.
            Default False.

    Raises:
        ValueError: naming `labels` if a label has another value or a member is judged before its turn;
            `order` if it is empty or has a place twice; `precision` or `level` if it is out of range.

    Examples:
        >>> labels = np.full(1000, -1)
        >>> labels[:60] = 1
        >>> found = one_set(labels, np.arange(1000), precision=0.9)
        >>> found.state, found.decided, round(found.lower, 2)
        (<State.ACCEPTED: 'accepted'>, 41, 0.93)
    """
    wanted, sure = checked_targets(precision, level)
    said, places = judged_in_order(labels, order)
    return tested_set(said, places, wanted, sure, np.inf if certainty else 1 / alpha_of(sure))


def tested_set(
    said: Int[np.ndarray, "judged"],
    places: Int[np.ndarray, "size"],
    precision: float,
    level: float,
    needed: float,
) -> OneSet:
    """Result of `one_set` for labels in the order of the draw, with a given critical value `needed`."""
    size, judged = len(places), len(said)
    allowed = allowed_errors(precision, size)
    bad = allowed + 1
    wrong = np.cumsum(said == 0)
    errors = int(wrong[-1]) if judged else 0
    turns = _maxima(said)
    values = evidence(size, bad, turns, _errors_at(wrong, turns))
    refused, accepted = errors > allowed, bool((values >= needed).any())
    state = State.REFUSED if refused else State.ACCEPTED if accepted else State.OPEN
    decided = fewest = None
    if refused:
        decided = int(np.flatnonzero(wrong > allowed)[0]) + 1
    elif accepted:
        every = np.arange(judged + 1)
        decided = _first(
            lambda t: bool((_up_to(size, bad, said, wrong, t) >= needed).any()), 0, int(every[-1])
        )
    else:
        certain = size - bad + 1 + errors
        fewest = _first(lambda t: bool(evidence(size, bad, t, errors) >= needed), judged, certain) - judged
    undecided = state is State.OPEN and judged < size
    lower = lower_limit(size, turns, _errors_at(wrong, turns), needed)
    lower = min(lower, (size - errors) / size)
    following = int(places[judged]) if undecided else None
    return OneSet(
        state,
        precision,
        level,
        size,
        allowed,
        judged,
        errors,
        float(values.max()),
        needed,
        lower,
        decided,
        fewest,
        following,
    )


def _up_to(size: int, bad: int, said: np.ndarray, wrong: np.ndarray, judged: int) -> np.ndarray:
    turns = _maxima(said[:judged])
    return evidence(size, bad, turns, _errors_at(wrong, turns))


def _maxima(said: Int[np.ndarray, "judged"]) -> Int[np.ndarray, "turns"]:
    """Numbers of judgements at which evidence has a local maximum: just before each error, and now."""
    return np.append(np.flatnonzero(said == 0), len(said))


def _errors_at(
    wrong: Int[np.ndarray, "judged"], judged: Int[np.ndarray, "turns"]
) -> Int[np.ndarray, "turns"]:
    return np.concatenate([[0], wrong])[judged]


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from `low` to `high` for which `holds` is true; from there it must stay true."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def lower_limit(
    size: int, judged: Int[np.ndarray, "turns"], errors: Int[np.ndarray, "turns"], needed: float
) -> float:
    """Lower confidence limit of the precision of a set: the largest precision that the evidence supports.

    The probability that the true number of errors is rejected is at most 1 / needed, so the limit holds for
    all precisions at once. If needed >= e (a level of at least 0.65), evidence against b errors that reaches
    `needed` is smaller than evidence against b + 1 errors. The rejected numbers of errors are therefore all
    numbers above one of them.

    Args:
        size: K, the number of candidates in the set.
        judged: numbers of judgements at which the evidence is computed.
        errors: number of errors among the judged candidates, at each of these numbers.
        needed: value of the martingale that rejects, 1 / alpha.
    """

    def rejected(bad: int) -> bool:
        return bad > size or bool((evidence(size, bad, judged, errors) >= needed).any())

    return 1 - (_first(rejected, 1, size + 1) - 1) / size


def lower_limits(size: int, errors: Int[np.ndarray, "judged"], needed: float) -> Float[np.ndarray, "judged"]:
    """Lower confidence limit of the precision of a set after each judgement, as `lower_limit` at that time.

    Args:
        size: K, the number of candidates in the set.
        errors: number of errors after 1, 2, ... judgements.
        needed: value of the martingale that rejects, 1 / alpha.
    """
    judged = np.arange(1, len(errors) + 1)
    # The smallest rejected number of errors at each judgement; the limit keeps the best one so far.
    low, high = np.ones(len(errors), np.int64), np.full(len(errors), size + 1)
    while (low < high).any():
        middle = (low + high) // 2
        rejected = evidence(size, np.minimum(middle, size), judged, errors) >= needed
        rejected |= middle > size
        low, high = np.where(rejected, low, np.minimum(middle + 1, high)), np.where(rejected, middle, high)
    limits = np.maximum.accumulate(1 - (low - 1) / size) if len(errors) else np.empty(0)
    return np.minimum(limits, (size - errors) / size)


def boundary(
    size: int, precision: float, *, level: float = 0.95, most: int = MOST
) -> Int[np.ndarray, "judged"]:
    """Largest number of errors with which a set is accepted after 1, 2, ... judgements.

    Args:
        size: K, the number of candidates in the set.
        precision: the wanted precision, in (0, 1].
        level: confidence level. Default 0.95.
        most: number of judgements to compute, at most K. Default 2000.

    Returns:
        The largest number of errors after each judgement, [judged]; -1 if the set cannot be accepted yet.

    Raises:
        ValueError: naming the argument that is out of range.

    Examples:
        >>> limits = boundary(1000, 0.9)
        >>> limits[[39, 40, 99]].tolist()
        [-1, 0, 3]
    """
    wanted, sure = checked_targets(precision, level)
    whole, last = checks.whole("size", size, 1), min(checks.whole("most", most, 1), size)
    bad = allowed_errors(wanted, whole) + 1
    # Evidence above 1 needs the likeliest number of errors below `bad`: e (K + 1) / t < bad + 1.
    errors = np.arange(min(bad - 1, last * (bad + 1) // (whole + 1)) + 1)
    low, high = errors.copy(), np.full(len(errors), last + 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = evidence(whole, bad, np.minimum(middle, last), errors) >= 1 / alpha_of(sure)
        enough |= middle > last
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    return np.searchsorted(low, np.arange(1, last + 1), side="right") - 1


class Outlook(NamedTuple):
    """Number of judgements that one set will take, given its true precision.

    Attributes:
        accepted: probability that the set is accepted within the computed judgements.
        refused: probability that more errors are seen than allowed.
        mean: expected number of judgements; a set that is still open counts with all computed judgements.
        median: number of judgements that are enough with probability 0.5; None if even all are not.
        ninth: number of judgements that are enough with probability 0.9; None if even all are not.
        stops: probability of a decision after exactly 1, 2, ... judgements.
    """

    accepted: float
    refused: float
    mean: float
    median: int | None
    ninth: int | None
    stops: Float[np.ndarray, "judged"]


def outlook(size: int, precision: float, truth: float, *, level: float = 0.95, most: int = MOST) -> Outlook:
    """Number of judgements that one set will take if its precision is `truth`; exact, by dynamic programming.

    Args:
        size: K, the number of candidates in the set.
        precision: the wanted precision, in (0, 1].
        truth: assumed precision of the set, in [0, 1]; the set has (1 - truth) K errors, rounded.
        level: confidence level. Default 0.95.
        most: number of judgements to compute, such as your budget; at most K. Default 2000.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    limits = boundary(size, precision, level=level, most=most)
    errors = round((1 - checks.real_number("truth", truth, 0, 1)) * size)
    allowed = allowed_errors(precision, size)
    seen = np.arange(allowed + 2)
    open_ = np.zeros(len(seen))
    open_[0] = 1.0
    accepted, refused = np.zeros(len(limits)), np.zeros(len(limits))
    for t, limit in enumerate(limits):
        wrong = open_ * np.clip(errors - seen, 0, None) / (size - t)
        open_ = open_ - wrong
        open_[1:] += wrong[:-1]
        accepted[t], refused[t] = open_[: limit + 1].sum(), open_[-1]
        open_[: limit + 1] = 0.0
        open_[-1] = 0.0
        if open_.sum() < 1e-12:
            break
    stops = accepted + refused
    done = np.cumsum(stops)
    mean = float(stops @ np.arange(1, len(stops) + 1) + (1 - done[-1]) * len(stops))
    median, ninth = (_reached(done, share) for share in (0.5, 0.9))
    return Outlook(float(accepted.sum()), float(refused.sum()), mean, median, ninth, stops)


def _reached(done: Float[np.ndarray, "judged"], share: float) -> int | None:
    at = int(np.searchsorted(done, share - 1e-12))
    return at + 1 if at < len(done) else None


# Arguments.


def checked_targets(precision: object, level: object) -> tuple[float, float]:
    """The wanted precision and the confidence level, as numbers in range."""
    wanted = checks.real_number("precision", precision, 0, 1, closed="high")
    sure = checks.level("level", level)
    if sure < _LEAST_LEVEL:
        raise ArgumentError("level", f"must be at least {_LEAST_LEVEL}, got {sure:g}.")
    return wanted, sure


def alpha_of(level: float) -> float:
    """1 - level, in exact arithmetic."""
    return float(1 - Fraction(str(level)))


def labels_and_order(
    labels: ArrayLike, order: ArrayLike
) -> tuple[Int[np.ndarray, "candidates"], Int[np.ndarray, "size"]]:
    """Labels and the order of the draw, validated."""
    said, places = checks.integer("labels", labels, UNKNOWN), checks.integer("order", order, 0)
    checks.require("labels", said, said <= 1, "1, 0 or -1")
    for name, array in (("labels", said), ("order", places)):
        if array.ndim != 1:
            raise ArgumentError(name, f"must be a vector, got an array of shape {array.shape}.")
    checks.require("order", places, places < len(said), f"places below {len(said)}, the number of labels")
    if len(np.unique(places)) < len(places):
        again = int(np.flatnonzero(np.bincount(places) > 1)[0])
        raise ArgumentError("order", f"must hold each place once, got {again} twice.")
    return said, places


def judged_in_order(
    labels: ArrayLike, order: ArrayLike
) -> tuple[Int[np.ndarray, "judged"], Int[np.ndarray, "size"]]:
    """Labels of the judged members and places of all members, in the order of the draw."""
    said, places = labels_and_order(labels, order)
    return first_judged(said[places]), places


def first_judged(said: Int[np.ndarray, "size"]) -> Int[np.ndarray, "judged"]:
    """Labels of the judged members, which must come first in the order."""
    known = said != UNKNOWN
    judged = int(known.sum())
    if not known[:judged].all():
        gap, late = int(np.argmin(known)), int(np.flatnonzero(known)[-1])
        raise ArgumentError(
            "labels",
            f"must follow the order of the draw, got none at turn {gap + 1} and one at turn {late + 1}.",
        )
    return said[:judged]
