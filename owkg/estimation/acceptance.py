"""Predictions that may be accepted at a precision: exact tests from few judgements drawn at random.

A set of candidates has at least precision p if at most floor((1 - p) K) of its K members are wrong. Three
designs test this; none assumes anything about which candidates are right, since the draw alone is random.

- One set, judged one by one in random order until a likelihood-ratio martingale decides (`one_set`).
- Nested sets from a draw of fixed size: the largest first K of an order that passes (`nested`).
- One set, or one chain of nested sets, for each relation (`by_relation`, `nested_by_relation`).

Sources: Ville (1939) for the martingale's limit; Waudby-Smith and Ramdas (2020), "Confidence sequences for
sampling without replacement"; Bretz, Maurer, Brannath, Posch (Statistics in Medicine 28, 2009) for the chain;
Angelopoulos, Bates, Candes, Jordan, Lei (2021), "Learn then Test", for the use of both on predictions.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy import optimize, special, stats

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.population import UNKNOWN
from owkg.stats.corrections import holm

LEAST_TESTED = 30
"""Candidates of a relation; where it has fewer, all of them are judged."""
SETS = 10
STARTS = (2, 5, 8)
"""Nested sets, counted from 1, that begin with a third of alpha each."""
SPARE = 1.25
"""How much larger the region of nested sets is than the predicted set."""
MOST = 2_000
"""Judgements that plans look at."""
# From here the sets that a martingale rejects are all sets above the smallest one (see `lower_limit`).
_LEAST_LEVEL = 0.65
_TINY = 1e-290
_PILOT_FIRST = 30  # place from which a pilot is spread
_WEAK = 0.02  # precision of the prior of the intercept


class State(StrEnum):
    """What the judgements so far say of a set."""

    ACCEPTED = "accepted"
    OPEN = "open"
    REFUSED = "refused"


# One set, judged one by one.


class OneSet(NamedTuple):
    """What is known of one set whose candidates are judged in random order.

    Attributes:
        state: accepted, open, or refused: more errors seen than the precision allows.
        precision: wanted.
        level: of confidence.
        size: K, candidates of the set.
        allowed: errors among them with which the precision holds.
        judged: so far.
        errors: among the judged ones.
        evidence: largest value of the martingale so far.
        needed: value from which the set is accepted; infinite where only certainty counts.
        lower: lower limit of the precision of the set, at any time; the share of right candidates when all
            are judged.
        decided: judgements after which the set was accepted or refused; None while it is open.
        fewest: judgements until acceptance if no further error is seen; None when decided.
        next: place of the next candidate to judge; None when decided or all are judged.
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
        """Whether the state holds for certain, because the labels leave no other possibility."""
        return self.state is State.REFUSED or self.judged - self.errors >= self.size - self.allowed

    @property
    def statement(self) -> str:
        """The state as a sentence."""
        of = f"{self.errors:,} of {self.judged:,} judged candidates are wrong"
        target = f"a precision of at least {self.precision:g} for this set of {self.size:,}"
        if self.state is State.REFUSED:
            return f"Refused: {of}, and {target} allows {self.allowed:,}."
        if self.state is State.OPEN:
            left = f"at least {self.fewest:,} more are needed"
            return f"Open: {of}; {left} to accept {target}."
        how = "for certain" if self.certain else f"with {100 * self.level:g} % confidence"
        return f"Accepted: {target} holds {how}; {of}, and the precision is at least {self.lower:.3f}."


def allowed_errors(precision: float, size: int) -> int:
    """Most errors among `size` candidates of at least this precision: floor((1 - p) K), in exact arithmetic.

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

    lik(b) = C(b, e) C(K - b, t - e) is the likelihood of e errors among t judged ones, whatever their order.
    The sum over b < bad counts the (t + 1)-subsets of K + 1 places whose (e + 1)-th member is among the first
    `bad`, so that

        evidence = (K + 1) / ((t + 1) bad) P(H(K + 1, bad, t + 1) > e) / P(H(K, bad, t) = e),

    with H hypergeometric. If the set has `bad` errors, the evidence after each judgement is a martingale that
    starts at 1 (as long as right candidates are left); if it has more, a supermartingale. By Ville's
    inequality it ever reaches 1 / alpha with a probability of at most alpha.

    Args:
        size: K, candidates of the set.
        bad: the smallest number of errors that is too many, from 1 to K.
        judged: t, from 0 to K.
        errors: e, from 0 to t.

    Returns:
        evidence, 0 where as many errors are seen, infinite where fewer are certain.
    """
    above = np.asarray(stats.hypergeom.sf(errors, np.add(size, 1), bad, np.add(judged, 1)))
    at = np.asarray(stats.hypergeom.pmf(errors, size, bad, judged))
    scale = np.add(size, 1) / (np.add(judged, 1) * np.asarray(bad, float))
    certain = np.subtract(judged, errors) > np.subtract(size, bad)
    ratio = np.where(certain, np.inf, scale * above / np.maximum(at, _TINY))
    return np.where(np.less(errors, bad), ratio, 0.0)


def one_set(
    labels: ArrayLike, order: ArrayLike, *, precision: float, level: float = 0.95, certainty: bool = False
) -> OneSet:
    """Whether one set has a precision, from its candidates judged one by one in random order.

    The result depends on the labels only. It may be looked at after each judgement, and judging may stop at
    any time for any reason; the statement that the precision holds is wrong with a probability of at most 1 -
    level.

    Args:
        labels: of candidates, 1 (right), 0 (wrong) or -1 (not judged), [candidates].
        order: places of the members of the set in the order of the draw, each once, [size]. The order must be
            random and fixed before anything is judged; the judged members are the first ones.
        precision: wanted, in (0, 1].
        level: of confidence, at least 0.65.
        certainty: accept only what is certain, such as when all are judged.

    Raises:
        ValueError: naming `labels` if a label is of another kind or a member is judged before its turn;
            `order` if it is empty or has a place twice; `precision` and `level` if out of range.

    Examples:
        >>> labels = np.full(1000, -1)
        >>> labels[:60] = 1
        >>> found = one_set(labels, np.arange(1000), precision=0.9)
        >>> found.state, found.decided, round(found.lower, 2)
        (<State.ACCEPTED: 'accepted'>, 41, 0.93)
    """
    wanted, sure = _targets(precision, level)
    said, places = _judged_in_order(labels, order)
    return _one_set(said, places, wanted, sure, np.inf if certainty else 1 / _alpha(sure))


def _one_set(
    said: Int[np.ndarray, "judged"],
    places: Int[np.ndarray, "size"],
    precision: float,
    level: float,
    needed: float,
) -> OneSet:
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
    """Numbers of judgements at which evidence is largest nearby: just before each error, and now."""
    return np.append(np.flatnonzero(said == 0), len(said))


def _errors_at(
    wrong: Int[np.ndarray, "judged"], judged: Int[np.ndarray, "turns"]
) -> Int[np.ndarray, "turns"]:
    return np.concatenate([[0], wrong])[judged]


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number from `low` to `high` from which on something holds; it holds at `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def lower_limit(
    size: int, judged: Int[np.ndarray, "turns"], errors: Int[np.ndarray, "turns"], needed: float
) -> float:
    """The lower limit of the precision of a set: the largest precision whose evidence has reached `needed`.

    The number of errors that the set really has is rejected with a probability of at most 1 / needed, so the
    limit holds for all precisions at once. Where needed >= e (a level of at least 0.65), evidence against b
    errors that reaches it is smaller than evidence against b + 1 errors, so the rejected numbers are all
    those above one of them.

    Args:
        size: K, candidates of the set.
        judged: numbers of judgements.
        errors: among the judged ones at each of them.
        needed: 1 / alpha.
    """

    def rejected(bad: int) -> bool:
        return bad > size or bool((evidence(size, bad, judged, errors) >= needed).any())

    return 1 - (_first(rejected, 1, size + 1) - 1) / size


def boundary(
    size: int, precision: float, *, level: float = 0.95, most: int = MOST
) -> Int[np.ndarray, "judged"]:
    """The most errors with which a set is accepted after 1, 2, ... judgements; -1 where none is few enough.

    Args:
        size: K, candidates of the set.
        precision: wanted, in (0, 1].
        level: of confidence.
        most: judgements to look at; at most K.

    Raises:
        ValueError: naming the argument that is out of range.

    Examples:
        >>> limits = boundary(1000, 0.9)
        >>> limits[[39, 40, 99]].tolist()
        [-1, 0, 3]
    """
    wanted, sure = _targets(precision, level)
    whole, last = checks.whole("size", size, 1), min(checks.whole("most", most, 1), size)
    bad = allowed_errors(wanted, whole) + 1
    # Evidence above 1 needs the likeliest number of errors below `bad`: e (K + 1) / t < bad + 1.
    errors = np.arange(min(bad - 1, last * (bad + 1) // (whole + 1)) + 1)
    low, high = errors.copy(), np.full(len(errors), last + 1)
    while (low < high).any():
        middle = (low + high) // 2
        enough = evidence(whole, bad, np.minimum(middle, last), errors) >= 1 / _alpha(sure)
        enough |= middle > last
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    return np.searchsorted(low, np.arange(1, last + 1), side="right") - 1


class Outlook(NamedTuple):
    """How many judgements one set will take, if it has some precision.

    Attributes:
        accepted: probability that the set is accepted within the judgements looked at.
        refused: probability that more errors are seen than allowed.
        mean: expected number of judgements, those still open counted with all that were looked at.
        median: judgements that are enough with a probability of one half; None where even all are not.
        ninth: the same with a probability of 0.9.
        stops: probability of a decision after 1, 2, ... judgements.
    """

    accepted: float
    refused: float
    mean: float
    median: int | None
    ninth: int | None
    stops: Float[np.ndarray, "judged"]


def outlook(size: int, precision: float, truth: float, *, level: float = 0.95, most: int = MOST) -> Outlook:
    """How many judgements one set will take if its precision is `truth`; exact, by dynamic programming.

    Args:
        size: K, candidates of the set.
        precision: wanted, in (0, 1].
        truth: precision that the set is thought to have, in [0, 1]; (1 - truth) K errors, rounded.
        level: of confidence.
        most: judgements to look at, such as a budget; at most K.

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


# Nested sets from a draw of fixed size.


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
    wanted, sure = _targets(precision, level)
    said, places = _judged_in_order(labels, order)
    if len(places) != len(np.asarray(labels)):
        raise ArgumentError(
            "order", f"must hold every candidate of the region, got {len(places)} of {np.size(labels)}."
        )
    size = checks.whole("drawn", drawn, 1)
    if size > len(places):
        raise ArgumentError("drawn", f"must be at most {len(places)}, the size of the region, got {size}.")
    if len(said) > size:
        raise ArgumentError("labels", f"must be of the {size} drawn candidates, got {len(said)} judged.")
    return _nested(said, places, size, wanted, sure)


def _nested(said: np.ndarray, places: np.ndarray, drawn: int, precision: float, level: float) -> Nested:
    region, judged = len(places), len(said)
    sizes = nested_sizes(region)
    counts, errors = _within(places[:judged], sizes), _within(places[:judged][said == 0], sizes)
    p_values = nested_p_values(sizes, counts, errors, precision)
    exact, complete = judged == region, judged == drawn
    rejected, spent = chain(p_values, _alpha(level))
    accepted = int(sizes[rejected].max(initial=0)) if complete else 0
    if exact:
        accepted = _largest_true(said[np.argsort(places)], precision)
    state = State.OPEN if not complete else State.ACCEPTED if accepted else State.REFUSED
    following = None if complete else int(places[judged])
    return Nested(
        state, precision, level, accepted, sizes, counts, errors, p_values, spent, judged, exact, following
    )


def _within(places: Int[np.ndarray, "n"], sizes: Int[np.ndarray, "sets"]) -> Int[np.ndarray, "sets"]:
    """How many places are in each set."""
    return np.searchsorted(np.sort(places), sizes)


def _largest_true(labels: Int[np.ndarray, "candidates"], precision: float) -> int:
    """The largest K whose first K candidates have the precision."""
    share = Fraction(str(precision))
    enough = np.cumsum(labels == 1) * share.denominator >= share.numerator * np.arange(
        1, len(labels) + 1
    ).astype(object)
    return int(np.flatnonzero(enough)[-1]) + 1 if enough.any() else 0


# By relation.


class OfRelation(NamedTuple):
    """What is known of the candidates of one relation.

    Attributes:
        relation: its number.
        found: the test of its candidates.
        state: the same as that of the test, or after correction for the number of relations.
        p_value: after that correction; None without one.
    """

    relation: int
    found: OneSet | Nested
    state: State
    p_value: float | None


def by_relation(
    labels: ArrayLike,
    order: ArrayLike,
    relations: ArrayLike,
    *,
    precision: float,
    level: float = 0.95,
    simultaneous: bool = False,
) -> tuple[OfRelation, ...]:
    """Whether the candidates of each relation have a precision, each judged one by one in random order.

    Each relation is a promise of its own: one that is accepted lacks the precision with a probability of at
    most 1 - level. With `simultaneous` the probability that any accepted one lacks it is at most 1 - level
    (Holm's method on 1 / evidence; limits by Bonferroni). Relations of fewer than 30 candidates are accepted
    only for certain.

    Args:
        labels: of all candidates, 1 (right), 0 (wrong) or -1 (not judged), [candidates].
        order: places in the order of the draw, each once, [candidates]. Within each relation the judged ones
            are the first ones.
        relations: number of the relation of each candidate, [candidates].
        precision: wanted, in (0, 1].
        level: of confidence, at least 0.65.
        simultaneous: whether all accepted relations together are promised.

    Raises:
        ValueError: naming `relations` if it has another length than `labels`; otherwise as `one_set`.
    """
    wanted, sure = _targets(precision, level)
    together = checks.flag("simultaneous", simultaneous)
    groups = _groups(labels, order, relations)
    tested = sum(len(places) >= LEAST_TESTED for _, places in groups.values())
    alpha = _alpha(sure) / (max(tested, 1) if together else 1)
    found = {
        one: _one_set(said, places, wanted, sure, 1 / alpha if len(places) >= LEAST_TESTED else np.inf)
        for one, (said, places) in groups.items()
    }
    if not together:
        return tuple(OfRelation(one, test, test.state, None) for one, test in found.items())
    return _holm(found, _alpha(sure))


def _holm(found: Mapping[int, OneSet], alpha: float) -> tuple[OfRelation, ...]:
    """States by Holm's method: 1 / the largest evidence so far is a p-value at any time."""
    raw = {
        one: min(1.0, 1 / max(test.evidence, 1e-300))
        for one, test in found.items()
        if np.isfinite(test.needed)
    }
    corrected = dict(zip(raw, holm(list(raw.values())) if raw else (), strict=True))
    result = []
    for one, test in found.items():
        p = float(corrected[one]) if one in corrected else None
        passed = test.state is State.OPEN and p is not None and p <= alpha
        result.append(OfRelation(one, test, State.ACCEPTED if passed else test.state, p))
    return tuple(result)


def nested_by_relation(
    labels: ArrayLike,
    order: ArrayLike,
    relations: ArrayLike,
    drawn: Mapping[int, int],
    *,
    precision: float,
    level: float = 0.95,
    simultaneous: bool = False,
) -> tuple[OfRelation, ...]:
    """The largest nested set of each relation that has a precision, from draws of fixed sizes.

    Args:
        labels: of the candidates of all regions, in the order in which they would be accepted: 1 (right), 0
            (wrong) or -1 (not judged), [candidates].
        order: places in the order of the draw, each once, [candidates].
        relations: number of the relation of each candidate, [candidates].
        drawn: for each relation, the size of the draw; regions of fewer than 30 candidates are judged
            completely, whatever it says.
        precision: wanted, in (0, 1].
        level: of confidence.
        simultaneous: whether all accepted sets together are promised, by Bonferroni.

    Raises:
        ValueError: naming `drawn` if a relation lacks its number or has more than its candidates; otherwise
            as `nested` and `by_relation`.
    """
    wanted, sure = _targets(precision, level)
    together = checks.flag("simultaneous", simultaneous)
    groups = _groups(labels, order, relations)
    tested = sum(len(places) >= LEAST_TESTED for _, places in groups.values())
    own = 1 - _alpha(sure) / (max(tested, 1) if together else 1)
    result = []
    for one, (said, places) in groups.items():
        if one not in drawn:
            raise ArgumentError("drawn", f"must have a number for each relation, got none for {one}.")
        count = len(places) if len(places) < LEAST_TESTED else drawn[one]
        count = checks.whole("drawn", count, 1)
        if not len(said) <= count <= len(places):
            least = f"from {len(said)} judged to {len(places)} candidates"
            raise ArgumentError("drawn", f"must be {least} for relation {one}, got {count}.")
        ranks = np.argsort(np.argsort(places))
        test = _nested(said, ranks, count, wanted, own)
        following = None if test.next is None else int(places[len(said)])
        test = test._replace(next=following, level=sure)
        result.append(OfRelation(one, test, test.state, None))
    return tuple(result)


def _groups(
    labels: ArrayLike, order: ArrayLike, relations: ArrayLike
) -> dict[int, tuple[Int[np.ndarray, "judged"], Int[np.ndarray, "size"]]]:
    """For each relation, labels of its judged candidates and places of all, in the order of the draw."""
    said, places = _labels_and_order(labels, order)
    of = checks.integer("relations", relations, 0)
    if of.shape != said.shape:
        raise ArgumentError("relations", f"must have one entry a candidate, {len(said)}, got {of.size}.")
    # A stable sort keeps the order of the draw within each relation.
    sorted_places = places[np.argsort(of[places], kind="stable")]
    names, starts = np.unique(of[sorted_places], return_index=True)
    parts = np.split(sorted_places, starts[1:])
    return {int(name): (_prefix(said[part]), part) for name, part in zip(names, parts, strict=True)}


# Arguments.


def _targets(precision: object, level: object) -> tuple[float, float]:
    wanted = checks.real_number("precision", precision, 0, 1, closed="high")
    sure = checks.level("level", level)
    if sure < _LEAST_LEVEL:
        raise ArgumentError("level", f"must be at least {_LEAST_LEVEL}, got {sure:g}.")
    return wanted, sure


def _alpha(level: float) -> float:
    """1 - level, in exact arithmetic."""
    return float(1 - Fraction(str(level)))


def _labels_and_order(
    labels: ArrayLike, order: ArrayLike
) -> tuple[Int[np.ndarray, "candidates"], Int[np.ndarray, "size"]]:
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


def _judged_in_order(
    labels: ArrayLike, order: ArrayLike
) -> tuple[Int[np.ndarray, "judged"], Int[np.ndarray, "size"]]:
    """Labels of the judged members, and the places of all, in the order of the draw."""
    said, places = _labels_and_order(labels, order)
    return _prefix(said[places]), places


def _prefix(said: Int[np.ndarray, "size"]) -> Int[np.ndarray, "judged"]:
    """The judged ones, which come first."""
    known = said != UNKNOWN
    judged = int(known.sum())
    if not known[:judged].all():
        gap, late = int(np.argmin(known)), int(np.flatnonzero(known)[-1])
        raise ArgumentError(
            "labels",
            f"must follow the order of the draw, got none in turn {gap + 1} and one in turn {late + 1}.",
        )
    return said[:judged]


# Replays.


class Replays(NamedTuple):
    """What replays of a design gave, given the truth.

    Attributes:
        violated: share of the replays in which something was accepted that lacks the precision.
        nothing: share in which nothing was accepted.
        share: mean of the accepted number over the largest number with the precision; nan where that is 0.
        judgements: mean number.
    """

    violated: float
    nothing: float
    share: float
    judgements: float


def nested_replays(
    truth: ArrayLike,
    region: int,
    drawn: int,
    *,
    precision: float,
    level: float = 0.95,
    replays: int = 2_000,
    seed: int = 0,
) -> Replays:
    """What nested sets would give if the truth were known: for plans, with imagined labels, and for checks.

    Args:
        truth: of all candidates, in the order in which they would be accepted, 1 or 0, [candidates].
        region: how many first ones to draw from.
        drawn: size of the draw.
        precision: wanted, in (0, 1].
        level: of confidence.
        replays: number of draws.
        seed: of the draws.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    wanted, sure = _targets(precision, level)
    said = checks.integer("truth", truth, 0)
    checks.require("truth", said, said <= 1, "1 or 0")
    size, count = checks.whole("region", region, 1), checks.whole("drawn", drawn, 1)
    if not count <= size <= len(said):
        raise ArgumentError("region", f"must be from {count} drawn to {len(said)} candidates, got {size}.")
    rng = np.random.default_rng(checks.seed("seed", seed))
    best = _largest_true(said, wanted)
    sizes = nested_sizes(size)
    accepted = np.concatenate(
        [
            _accepted(said[:size], sizes, count, wanted, _alpha(sure), some, rng)
            for some in _batches(replays, size)
        ]
    )
    good = np.concatenate([[0], np.cumsum(said)])
    wrong = accepted - good[accepted] > np.array([allowed_errors(wanted, int(k)) for k in accepted])
    return Replays(
        float(wrong.mean()),
        float((accepted == 0).mean()),
        float(accepted.mean() / best) if best else np.nan,
        float(count),
    )


def _accepted(
    truth: Int[np.ndarray, "region"],
    sizes: Int[np.ndarray, "sets"],
    drawn: int,
    precision: float,
    alpha: float,
    replays: int,
    rng: np.random.Generator,
) -> Int[np.ndarray, "replays"]:
    """K accepted in each of some draws."""
    places = np.argsort(rng.random((replays, len(truth))), axis=1)[:, :drawn]
    member = np.searchsorted(sizes, places, side="right")
    cell = member + np.arange(replays)[:, None] * len(sizes)
    total = replays * len(sizes)
    counts = np.bincount(cell.ravel(), minlength=total).reshape(replays, -1).cumsum(1)
    errors = np.bincount(cell.ravel(), 1 - truth[places].ravel(), total).reshape(replays, -1).cumsum(1)
    rejected, _ = chain(nested_p_values(sizes, counts, errors.astype(np.int64), precision), alpha)
    return np.where(rejected, sizes, 0).max(1)


def one_set_replays(
    truth: ArrayLike,
    *,
    precision: float,
    level: float = 0.95,
    most: int = MOST,
    replays: int = 2_000,
    seed: int = 0,
) -> Replays:
    """What judging one set one by one would give if the truth were known; a Monte Carlo twin of `outlook`.

    Args:
        truth: of the candidates of the set, 1 or 0, [size].
        precision: wanted, in (0, 1].
        level: of confidence.
        most: judgements after which an open set is left.
        replays: number of orders.
        seed: of the orders.

    Raises:
        ValueError: naming the argument that is out of range.
    """
    said = checks.integer("truth", truth, 0)
    checks.require("truth", said, said <= 1, "1 or 0")
    limits = boundary(len(said), precision, level=level, most=most)
    allowed = allowed_errors(precision, len(said))
    rng = np.random.default_rng(checks.seed("seed", seed))
    passed, turns = [], []
    for some in _batches(replays, len(said)):
        places = np.argsort(rng.random((some, len(said))), axis=1)[:, : len(limits)]
        errors = np.cumsum(1 - said[places], axis=1)
        accepts = errors <= limits
        stops = accepts | (errors > allowed)
        first = np.where(stops.any(1), stops.argmax(1), len(limits) - 1)
        passed.append(accepts[np.arange(some), first])
        turns.append(first + 1)
    taken = np.concatenate(passed)
    holds = len(said) - said.sum() <= allowed
    share = float(taken.mean()) if holds else np.nan
    return Replays(
        0.0 if holds else float(taken.mean()),
        float(1 - taken.mean()),
        share,
        float(np.concatenate(turns).mean()),
    )


def _batches(replays: object, width: int) -> list[int]:
    """Numbers of replays that fit into some 100 MB each."""
    left, each = checks.whole("replays", replays, 1), max(1, 5_000_000 // width)
    return [each] * (left // each) + ([left % each] if left % each else [])
