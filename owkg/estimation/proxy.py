"""The free proxy: how probable it is that an unjudged candidate is true, learnt from known answers alone.

Where a system lists known answers it lists unknown true ones as well. A logistic regression predicts from the
places of a candidate in all lists whether it is a known answer, s = P(known). If a share a of the true
answers is known, whichever they are, then P(true | unknown) = s (1 - a) / (a (1 - s)). A wrong a or a bad fit
costs width and no coverage: probabilities enter estimates as covariates and sizes of strata only.
"""

from collections.abc import Mapping

import numpy as np
import polars as pl
from jaxtyping import Float, Int
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.estimation.population import UNKNOWN, Population

Features = Float[np.ndarray, "candidates features"]
Probabilities = Float[np.ndarray, "candidates"]

_ROWS = 200_000  # that a fit takes, evenly spread
_STEPS = 25
_RIDGE = 1e-3  # of standardised features, per row
_LEAST, _MOST = 1e-4, 0.98
FOLDS = 5
_TOP = (3, 10)
SEVERAL = 50
"""Judged units from which each proxy has a slope of its own."""


def features(people: Population) -> Features:
    """What lists say of each candidate, standardised.

    The log rank in each list (one below its end where the list does not hold the candidate), the mean of
    1/rank, the best log rank, the share of lists with it among their first 3 and 10, and the log number of
    known answers to the query.
    """
    places = people.places
    held = places > 0
    log_rank = np.log(np.where(held, places, people.depth + 1))
    known = people.relevant((people.label == 1).astype(float))[people.query]
    columns = [
        *log_rank,
        np.where(held, 1 / np.maximum(places, 1), 0.0).mean(0),
        log_rank.min(0),
        *((held & (places <= top)).mean(0) for top in _TOP),
        np.log1p(known),
    ]
    table = np.stack(columns, axis=1)
    spread = table.std(0)
    return (table - table.mean(0)) / np.where(spread > 0, spread, 1.0)


def known_share_probabilities(known: Probabilities, share: float) -> Probabilities:
    """P(true | unknown) from P(known), if a share of the true answers is known: s (1 - a) / (a (1 - s))."""
    s = np.minimum(known, 1 - 1e-9)
    return np.clip(s * (1 - share) / (share * (1 - s)), _LEAST, _MOST)


def free_proxy(
    people: Population, *, known_share: float = 0.5, table: Features | None = None
) -> Probabilities:
    """The probability that each candidate is true, from known answers; known labels stay as they are.

    Halves of the queries predict each other, so that no query's known answers enter its own probabilities.

    Args:
        people: the population.
        known_share: guess of the share of true answers that is known, in (0, 1). It sets the scale of the
            probabilities only.
        table: of `features`; None: computed.

    Raises:
        ValueError: if `known_share` is out of range.
    """
    share = checks.real_number("known_share", known_share, 0, 1, closed=False)
    x = features(people) if table is None else table
    known = people.label == 1
    half = people.query % 2
    said = np.full(len(known), 0.5)
    for own in (0, 1):
        said[half == own] = _predicted(x[half != own], known[half != own].astype(float), x[half == own])
    return filled(people, known_share_probabilities(said, share))


def refitted(
    people: Population,
    labels: Int[np.ndarray, "candidates"],
    prior: Probabilities,
    rows: Int[np.ndarray, "n"],
    *,
    table: Features | None = None,
) -> tuple[list[Probabilities], Int[np.ndarray, "n"]]:
    """Probabilities that also use what annotators said, one array for each fold, without its own queries.

    Args:
        people: the population.
        labels: of the judged candidates, `UNKNOWN` elsewhere; candidates known before count as unjudged.
        prior: the free proxy, whose logit is one more feature.
        rows: the drawn queries.
        table: of `features`; None: computed.

    Returns:
        The probabilities, and the fold of each drawn query.
    """
    fold = np.arange(len(rows)) % FOLDS
    of_query = np.full(len(people.queries), -1)
    of_query[rows] = fold
    own_features = features(people) if table is None else table
    x = np.column_stack([own_features, special.logit(np.clip(prior, _LEAST, _MOST))])
    judged = (labels != UNKNOWN) & (people.label == UNKNOWN)
    own = of_query[people.query]
    found = []
    for one in range(FOLDS):
        others = judged & (own != one) & (own >= 0)
        if 0 < labels[others].sum() < others.sum():
            said = _predicted(x[others], labels[others].astype(float), x)
            found.append(filled(people, np.clip(said, _LEAST, _MOST)))
        else:
            found.append(prior)
    return found, fold


def filled(people: Population, probabilities: Probabilities) -> Probabilities:
    """The probabilities of unknown candidates, and the labels of the others."""
    return np.where(people.label == UNKNOWN, probabilities, people.label)


def proxy_of(people: Population, frame: pl.DataFrame, name: str) -> Probabilities:
    """Probabilities that somebody else gives: a language model, a rule, votes.

    Args:
        people: the population.
        frame: columns query, answer, probability, in [0, 1], for every unknown candidate. Other rows are left
            out.
        name: of the source, for messages.

    Raises:
        ValueError: naming `proxy`, if a candidate is missing, or a probability is outside [0, 1].
    """
    lacking = {"query", "answer", "probability"} - set(frame.columns)
    if lacking:
        raise ArgumentError(
            "proxy",
            f"{name}: must have the columns query, answer, probability, without {sorted(lacking)[0]}.",
        )
    number = frame["probability"].cast(pl.Float64, strict=False)
    bad = ~number.is_between(0, 1).fill_null(value=False)
    for row in bad.arg_true().head(1):
        raise ArgumentError(
            "proxy",
            f"{name}: must have probabilities in [0, 1], got {frame['probability'][row]!r} in row {row + 1}.",
        )
    given = frame.with_columns(number).select("query", "answer", "probability")
    again = given.filter(pl.struct("query", "answer").is_duplicated())
    if len(again):
        query, answer, _ = again.row(0)
        raise ArgumentError(
            "proxy", f"{name}: must give each candidate once, got {answer!r} to {query!r} twice."
        )
    pairs = pl.DataFrame({"query": people.queries["query"].gather(people.query), "answer": people.answers})
    found = pairs.join(given, on=["query", "answer"], how="left", maintain_order="left")["probability"]
    for row in (found.is_null() & pl.Series(people.label == UNKNOWN)).arg_true().head(1):
        query, answer = pairs.row(row)
        raise ArgumentError(
            "proxy",
            f"{name}: must give every unjudged candidate a probability, got none for {answer!r} to "
            f"{query!r}.",
        )
    return filled(people, found.fill_null(0.0).to_numpy())


def joined_proxies(
    people: Population, own: Probabilities, others: Mapping[str, pl.DataFrame], judged: int
) -> tuple[list[Probabilities], list[str]]:
    """The probabilities that estimates regress on, and notes.

    With fewer than 50 judged units several slopes are too many: the probabilities are averaged.

    Args:
        people: the population.
        own: the free proxy.
        others: of others by name, as `proxy_of` takes.
        judged: units that are judged.

    Raises:
        ValueError: naming `proxy`, as `proxy_of`.
    """
    found = [own, *(proxy_of(people, frame, name) for name, frame in others.items())]
    if len(found) == 1 or judged >= SEVERAL:
        return found, []
    return [np.mean(found, axis=0)], [
        f"with fewer than {SEVERAL} judged units the probabilities of the free proxy and of "
        f"{', '.join(others)} are averaged."
    ]


def _predicted(
    x: Float[np.ndarray, "rows features"],
    y: Float[np.ndarray, "rows"],
    of: Float[np.ndarray, "others features"],
) -> Float[np.ndarray, "others"]:
    """Logistic regression by Newton's method with a small ridge, on at most `_ROWS` rows."""
    if len(y) == 0 or y.min() == y.max():
        return np.full(len(of), y.mean() if len(y) else 0.5)
    step = -(-len(y) // _ROWS)
    design = np.column_stack([np.ones(len(y[::step])), x[::step]])
    target = y[::step]
    penalty = np.full(design.shape[1], _RIDGE * len(design))
    penalty[0] = 0.0
    weights = np.zeros(design.shape[1])
    weights[0] = special.logit(np.clip(target.mean(), 1e-6, 1 - 1e-6))

    def loss(w: np.ndarray) -> float:
        score = design @ w
        return float(np.logaddexp(0, score).sum() - target @ score + penalty @ w**2 / 2)

    now = loss(weights)
    for _ in range(_STEPS):
        p = special.expit(np.clip(design @ weights, -30, 30))
        slope = design.T @ (target - p) - penalty * weights
        curve = (design * np.maximum(p * (1 - p), 1e-9)[:, None]).T @ design + np.diag(penalty + 1e-9)
        move = np.linalg.solve(curve, slope)
        # Far from the optimum a whole step may overshoot.
        while (then := loss(weights + move)) > now and np.abs(move).max() > 1e-10:
            move = move / 2
        weights, now = weights + move, min(now, then)
        if np.abs(move).max() < 1e-10:
            break
    return special.expit(np.clip(np.column_stack([np.ones(len(of)), of]) @ weights, -30, 30))
