"""The fewest queries that any rank weight needs to tell two models apart."""

from typing import NamedTuple, Unpack

import jax
import numpy as np
from jaxtyping import Float64
from scipy import linalg, special

from owkg import checks
from owkg.checks import ArgumentError
from owkg.openworld import INDEPENDENT, MissingModel, PairArguments, Setting
from owkg.openworld.setting import pair
from owkg.theory import missing_counts
from owkg.theory.grids import log_factorials


class Floor(NamedTuple):
    """The fewest queries over all rank weights, and the weights that attain them.

    Attributes:
        queries: over all weights h(r), constant beyond the full-test answers of a query.
        weight: that attains it, h(1), h(2), ..., 0 beyond; largest absolute value 1.
        decreasing_queries: over the weights that do not rise with the rank.
        decreasing_weight: that attains it, h(1) = 1.
    """

    queries: float
    weight: Float64[np.ndarray, "ranks"]
    decreasing_queries: float
    decreasing_weight: Float64[np.ndarray, "ranks"]


class RankMoments(NamedTuple):
    """Moments of a query's rank counts X: X(r) is the share of its test answers with rank r.

    Attributes:
        given: E[X | m missing answers], [m, ranks].
        chances: P(m), [m].
        covariance: of X, [ranks, ranks].
    """

    given: Float64[np.ndarray, "missing ranks"]
    chances: Float64[np.ndarray, "missing"]
    covariance: Float64[np.ndarray, "ranks ranks"]

    @property
    def mean(self) -> Float64[np.ndarray, "ranks"]:
        """E[X]."""
        return self.chances @ self.given


def query_floor(
    *,
    inconsistency: float,
    paired: bool = False,
    missing: MissingModel = INDEPENDENT,
    **models: Unpack[PairArguments],
) -> Floor:
    """The fewest queries for which some rank weight orders two models as surely as is asked for.

    A mean of h(rank) over the answers of a query is h'X with X the counts by rank. With d the change of E[X]
    and S the covariance of a query's difference, h needs z^2 h'Sh / (h'd)^2 queries
    (`required_queries`). Over all h the least is z^2 / (d' S^-1 d). Over decreasing h it is a quadratic
    program: h is a sum of steps with weights of at least 0.

    Args:
        inconsistency: tolerated P(the weaker model looks better), in (0, 0.5).
        paired: whether both are measured on one test set.
        missing: how facts go missing.
        models: one setting and the second model.

    Raises:
        ValueError: if an argument leaves its interval, the strengths are equal, or settings are several.

    Examples:
        >>> pair = dict(strength=0.7, other_strength=0.75, inconsistency=0.05)
        >>> found = query_floor(**pair, sparsity=0.35, num_answers=43, num_entities=14505)
        >>> round(found.queries), round(found.decreasing_queries)
        (14, 16)
    """
    from scipy import optimize  # what takes long to import, and theory needs for nothing else

    tolerated = checks.scalar(
        "inconsistency", checks.real("inconsistency", inconsistency, 0, 0.5, closed=False)
    )
    settings = pair(**models)
    if settings[0].shape:
        raise ArgumentError("strength", "and the other arguments must be one setting, not a grid.")
    if settings[0].strength == settings[1].strength:
        raise ArgumentError(
            "other_strength", f"must differ from `strength`, got {models['other_strength']!r}."
        )
    one, two = (rank_moments(setting, missing) for setting in settings)
    change = two.mean - one.mean
    spread = one.covariance + two.covariance
    if checks.flag("paired", paired):
        apart = [moments.given - moments.mean for moments in (one, two)]
        shared = (apart[0] * one.chances[:, None]).T @ apart[1]
        spread = spread - shared - shared.T
    if settings[1].strength < settings[0].strength:
        change = -change
    z = special.ndtri(tolerated) ** 2
    # Ranks that are never reached have no variance.
    reached = np.diag(spread) > 1e-18
    root = linalg.cholesky(spread[np.ix_(reached, reached)] + 1e-16 * np.eye(int(reached.sum())), lower=True)
    weight = np.zeros(len(change))
    weight[reached] = linalg.cho_solve((root, True), change[reached])
    steps = np.tril(np.ones((len(change), len(change))))  # row j: ranks 1 .. j + 1
    of_steps = linalg.cholesky(steps @ spread @ steps.T + 1e-16 * np.eye(len(change)), lower=True)
    amounts, _ = optimize.nnls(of_steps.T, linalg.solve_triangular(of_steps, steps @ change, lower=True))
    decreasing = steps.T @ amounts
    return Floor(*_needed(weight, change, spread, z), *_needed(decreasing, change, spread, z))


def _needed(weight: np.ndarray, change: np.ndarray, spread: np.ndarray, z: float) -> tuple[float, np.ndarray]:
    gain = weight @ change
    if gain <= 0:
        return np.inf, weight
    needed = float(max(np.ceil(z * (weight @ spread @ weight) / gain**2), 1.0))
    return needed, weight / np.abs(weight).max()


def rank_moments(setting: Setting, missing: MissingModel = INDEPENDENT) -> RankMoments:
    """The exact moments of rank counts of one setting, over the ranks 1, ..., number of answers + 1.

    Given m missing answers, k of them positive, a positive test answer has a uniform rank on 1 .. k + 1 and
    another one on k + 1 .. N - n + m + 1. Two of one class have P(r, s) = (1 + [r = s]) / (c (c + 1)) with
    c the number of ranks; two of different classes are independent.
    """
    answers, entities = int(setting.num_answers), int(setting.num_entities)
    l1, l2 = (float(p) for p in setting.conditional_strengths())
    ranks = np.arange(1, answers + 2)
    with jax.enable_x64(True):
        logs = jax.numpy.asarray(log_factorials(answers + 1))
        rows = missing_counts.parameters(missing, setting, answers)
        row = tuple(np.asarray(part).reshape(np.shape(part)) for part in rows)
        chances = np.asarray(
            missing_counts.missing_count_pmf(missing, row, jax.numpy.asarray(answers), logs)
        )[:answers]
    given = np.zeros((answers, len(ranks)))
    second = np.zeros((answers, len(ranks), len(ranks)))
    equal = np.eye(len(ranks))
    for m in range(answers):
        tests = answers - m
        for k, chance in enumerate(_binomial(m, l1)):
            last = entities - answers + m + 1
            up, rest = (ranks <= k + 1) * 1.0, ((ranks > k) & (ranks <= last)) * 1.0
            n = last - k
            hit, miss = up / (k + 1), rest / n
            mean = l2 * hit + (1 - l2) * miss
            two = l2**2 * (np.outer(up, up) + equal * up) / ((k + 1) * (k + 2))
            two += (1 - l2) ** 2 * (np.outer(rest, rest) + equal * rest) / (n * (n + 1))
            two += l2 * (1 - l2) * (np.outer(hit, miss) + np.outer(miss, hit))
            given[m] += chance * mean
            second[m] += chance * (np.diag(mean) / tests + (1 - 1 / tests) * two)
    mean = chances @ given
    covariance = np.einsum("m,mrs->rs", chances, second) - np.outer(mean, mean)
    return RankMoments(given, chances, covariance)


def _binomial(n: int, p: float) -> Float64[np.ndarray, "counts"]:
    """P(k), k = 0 .. n."""
    k = np.arange(n + 1)
    ways = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return np.exp(ways + special.xlogy(k, p) + special.xlog1py(n - k, -p))
