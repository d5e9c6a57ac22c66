"""The free proxy: probability that an unjudged candidate is true, learnt from known answers only.

Systems that rank known answers high also rank unknown true answers high. From the places of a candidate in
all lists, a logistic regression predicts whether it is a known answer, s = P(known). If a share a of the true
answers is known, independently of the candidate, then P(true | unknown) = s (1 - a) / (a (1 - s)). A wrong a
or a bad fit makes intervals wider but does not harm their coverage, because probabilities enter estimates
only as covariates and for the sizes of strata.
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

_ROWS = 200_000  # most rows of a fit, evenly spread
_STEPS = 25
_RIDGE = 1e-3  # ridge of standardised features, per row
_LEAST, _MOST = 1e-4, 0.98
FOLDS = 5
_TOP = (3, 10)
SEVERAL = 50
"""Fewest judged units for which each proxy has its own slope."""


def features(people: Population) -> Features:
    """Features of each candidate from its places in the lists, standardised.

    The features are the log rank in each list (one below its end if the list does not hold the candidate),
    the mean of 1/rank, the best log rank, the share of lists with the candidate among their first 3 and first
    10 answers, and the log of 1 plus the number of known answers to the query.
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
    """P(true | unknown) from P(known), if a share a of the true answers is known: s (1 - a) / (a (1 - s))."""
    s = np.minimum(known, 1 - 1e-9)
    return np.clip(s * (1 - share) / (share * (1 - s)), _LEAST, _MOST)


def free_proxy(
    people: Population, *, known_share: float = 0.5, table: Features | None = None
) -> Probabilities:
    """Probability that each candidate is true, learnt from known answers; known labels stay 0 and 1.

    Each half of the queries predicts the other half, so that the known answers of a query do not enter its
    own probabilities.

    Args:
        people: the population.
        known_share: guess of the share of true answers that are known, in (0, 1). Default 0.5. It affects
            only the scale of the probabilities.
        table: result of `features`. Default None: computed here.

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
    """Probabilities refitted to the labels of annotators, one array per fold, without queries of the fold.

    Args:
        people: the population.
        labels: labels of the judged candidates, `UNKNOWN` elsewhere; candidates known before count as
            unjudged.
        prior: the free proxy, whose logit is one more feature.
        rows: rows of the drawn queries.
        table: result of `features`. Default None: computed here.

    Returns:
        The probabilities of each fold, and the fold of each drawn query.
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
    """The probabilities of unknown candidates, with the known labels in place of the other probabilities."""
    return np.where(people.label == UNKNOWN, probabilities, people.label)


def proxy_of(people: Population, frame: pl.DataFrame, name: str) -> Probabilities:
    """Probabilities from another source, such as a language model, a rule, or votes.

    Args:
        people: the population.
        frame: table with columns query, answer, probability (in [0, 1]), with every unknown candidate. Other
            rows are ignored.
        name: name of the source, for error messages.

    Raises:
        ValueError: naming `proxy`, if a candidate is missing or given twice, or a probability is outside [0,
            1].
    """
    lacking = {"query", "answer", "probability"} - set(frame.columns)
    if lacking:
        raise ArgumentError(
            "proxy",
            f"{name}: must have the columns query, answer, probability, but has no {sorted(lacking)[0]}.",
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
            f"{name}: must have a probability for every unjudged candidate, got none for {answer!r} to "
            f"{query!r}.",
        )
    return filled(people, found.fill_null(0.0).to_numpy())


def joined_proxies(
    people: Population, own: Probabilities, others: Mapping[str, pl.DataFrame], judged: int
) -> tuple[list[Probabilities], list[str]]:
    """Probabilities on which estimates regress, and notes.

    With fewer than 50 judged units, the probabilities of all sources are averaged, because a slope for each
    source would need more units.

    Args:
        people: the population.
        own: the free proxy.
        others: tables of further probabilities by name, as `proxy_of` takes.
        judged: number of judged units.

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
        # Far from the optimum, a full step may overshoot.
        while (then := loss(weights + move)) > now and np.abs(move).max() > 1e-10:
            move = move / 2
        weights, now = weights + move, min(now, then)
        if np.abs(move).max() < 1e-10:
            break
    return special.expit(np.clip(np.column_stack([np.ones(len(of)), of]) @ weights, -30, 30))
