"""Theorems 4.1 and 4.3: approximation of MRR under missing facts by a logarithm of the strength."""

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.openworld import Setting, SettingArguments, grid


class _LogParts(NamedTuple):
    """ln(l1 beta (N+2)) + gamma, and its factor (l2/l1) / (beta (N+1))."""

    logarithm: Any
    factor: Any


def _parts(setting: Setting) -> _LogParts:
    l1, l2 = setting.conditional_strengths()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        logarithm = np.log(l1 * setting.sparsity * (setting.num_answers + 2.0)) + np.euler_gamma
        return _LogParts(logarithm, l2 / l1 / (setting.sparsity * (setting.num_answers + 1.0)))


def log_approximation(**setting: Unpack[SettingArguments]) -> Any:
    """Logarithm close to MRR's lemma expectation: (l2/l1) (ln l1 + ln beta + ln(N+2) + gamma) / (beta (N+1)).

    The result is NaN if l1 = 0 or if it overflows. It may be negative and far off if
    `log_approximation_error_bound` is large.

    Raises:
        ValueError: if an argument is out of range; the message names it.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Theorem 4.1; with correlation, Theorem 4.3.
    """
    parts = _parts(grid(**setting))
    with np.errstate(over="ignore", invalid="ignore"):
        product = parts.logarithm * parts.factor
    return np.where(np.isfinite(product), product, np.nan)[()]


def log_approximation_error_bound(**setting: Unpack[SettingArguments]) -> Any:
    """Upper bound on |`log_approximation` - `lemma_expectation` of MRR|; NaN where l1 = 0.

    With p = l1 beta and n = N + 1, the lemma is factor * (H_n + ln p + R), R = sum_{j>n} (1-p)^j / j. Since
    0 <= R <= (1-p)^(n+1) / ((n+1) p), and, with x = n + 1 = N + 2, -1/(2x) - 1/(12x^2) < H_n - ln x - gamma
    < -1/(2x), the bracket of the theorem is off by less than

        max(1/2 + 1/(6x), (1-p)^x / p - 1/2) / x.

    Here 1/(12x) would suffice; 1/(6x) leaves room for the rounding of the lemma.

    Args and Raises: as `log_approximation`.

    References:
        Derived in docs/understand/theory.md, section 3. The bound of Theorem 4.1,
        `printed_error_bound`, is larger.
    """
    queries = grid(**setting)
    p = queries.conditional_strengths()[0] * queries.sparsity
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        x = queries.num_answers + 2.0
        tail = np.exp(x * np.log1p(-p)) / p - 0.5
        bound = _parts(queries).factor * np.maximum(0.5 + 1 / (6 * x), tail) / x
    return np.where(np.isfinite(bound), bound, np.nan)[()]


def printed_error_bound(*, strength: ArrayLike, sparsity: ArrayLike, num_answers: ArrayLike) -> Any:
    """Error bound of Theorem 4.1, without correlation; `log_approximation_error_bound` is smaller.

    max(1 / (2 beta (N+1)^2), e / (1 - e) ln(1 / (l beta)) / (beta (N+1))) with e = (1 - l beta)^(N+1).

    Args:
        strength: l, in (0, 1].
        sparsity: beta, in (0, 1).
        num_answers: N, at least 1.

    Raises:
        ValueError: if an argument is out of range.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Theorem 4.1.
    """
    l = checks.real("strength", strength, 0, 1)
    checks.require("strength", l, l > 0, "in (0, 1]")
    beta = checks.real("sparsity", sparsity, 0, 1, closed=False)
    n = checks.integer("num_answers", num_answers, 1) + 1.0
    checks.common_shape(strength=l, sparsity=beta, num_answers=n)
    p = l * beta
    log_e = n * np.log1p(-p)
    few = np.exp(log_e) / -np.expm1(log_e) * -np.log(p) / (beta * n)
    return np.maximum(1 / (2 * beta * n**2), few)[()]


def correlation_lowers_log_approximation(**setting: Unpack[SettingArguments]) -> Any:
    """Exact form of Corollary 4.5: whether d/drho of `log_approximation` is negative.

    The derivative has the sign of

        alpha l2 / l  -  (ln(l1 beta (N+2)) + gamma),

    so a higher correlation lowers the approximation if and only if ln(l1 beta (N+2)) + gamma exceeds
    alpha l2 / l = P(in the test set | positive). Because this probability is at most 1,
    l1 beta (N+2) > e^(1-gamma) = 1.526 suffices for every correlation. The condition concerns only the
    logarithm: `lemma_expectation` and `expectation` always fall with rho if the metric's weight falls with
    the rank. The result is False at strength 0 or 1, where the approximation does not depend on rho.

    Args and Raises: as `log_approximation`.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.5 (`printed_correlation_condition`, sufficient);
        docs/understand/theory.md, section 4.
    """
    queries = grid(**setting)
    l = queries.strength
    free = (l == 0) | (l == 1)
    in_test = (1 - queries.sparsity) * queries.conditional_strengths()[1] / np.where(free, 1, l)
    return (~free & (_parts(queries).logarithm > in_test))[()]


def printed_correlation_condition(**setting: Unpack[SettingArguments]) -> Any:
    """Condition of Corollary 4.5: ln(l1 beta (N+2)) + gamma >= alpha + sqrt(alpha beta (1-l) / l).

    It is sufficient for `correlation_lowers_log_approximation`, whose right side is
    alpha - rho sqrt(alpha beta (1-l) / l); the two are equal at rho = -1. False at strength 0 or 1.

    Args and Raises: as `log_approximation`.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), Corollary 4.5.
    """
    queries = grid(**setting)
    l, beta = queries.strength, queries.sparsity
    free = (l == 0) | (l == 1)
    most = (1 - beta) + np.sqrt((1 - beta) * beta * (1 - l) / np.where(free, 1, l))
    return (~free & (_parts(queries).logarithm >= most))[()]
