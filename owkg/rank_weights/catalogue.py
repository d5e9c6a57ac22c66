"""Named rank weights: each metric is a mean of h(rank), or a function of such a mean."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from owkg import checks
from owkg.errors import ArgumentError
from owkg.rank_weights.rank_weight import RankWeight

# Below this power rounding dominates: at 1e-4 float32 weights are off by a standard error, at 1e-8 variances
# are 0.
_LEAST_POWER = 0.001


def _rank(rank):
    return rank


def _reciprocal(rank):
    return 1 / rank


def _log(values):
    # NumPy's log for NumPy arrays, JAX's log for JAX arrays, so that nothing is compiled unless it is traced.
    return values.__array_namespace__().log(values)


@dataclass(frozen=True)
class Power:
    """Link mean ** exponent, or weight rank ** exponent; a class because chance levels read the exponent."""

    exponent: float

    def __call__(self, mean):
        """Power of the mean."""
        return mean**self.exponent

    def slope(self, mean):
        """Derivative of the power."""
        return self.exponent * mean ** (self.exponent - 1)


@dataclass(frozen=True)
class Exponential:
    """Link exp(rate * mean)."""

    rate: float

    def __call__(self, mean):
        """Linked value."""
        return mean.__array_namespace__().exp(self.rate * mean)

    def slope(self, mean):
        """Derivative of the link."""
        return self.rate * math.exp(self.rate * mean)


@dataclass(frozen=True)
class AtMost:
    """Weight [r <= k]; a class so that sums over many ranks can find the step."""

    k: int

    def __call__(self, rank):
        """1 if rank <= k, otherwise 0."""
        return (rank <= float(self.k)).astype(rank.dtype)


MRR = RankWeight("mrr", _reciprocal)
"""Mean reciprocal rank, h(r) = 1/r."""

LOG_MRR = RankWeight("log-mrr", lambda rank: math.log(2) / _log(1 + rank))
"""Log-MRR, h(r) = log 2 / log(1 + r) (Yang et al. 2022, section 5); a mean over answers, not nDCG."""

MR = RankWeight("mr", _rank, larger_is_better=False)
"""Mean rank, h(r) = r; smaller is better."""

IMR = RankWeight("imr", _rank, link=Power(-1.0))
"""Inverse mean rank, 1 / mean of r (Hoyt et al. 2022, Table 2)."""

HMR = RankWeight("hmr", _reciprocal, larger_is_better=False, link=Power(-1.0))
"""Harmonic mean rank, 1 / mean of 1/r (Hoyt et al. 2022, Table 2); smaller is better."""

GMR = RankWeight("gmr", _log, larger_is_better=False, link=Exponential(1.0))
"""Geometric mean rank, exp(mean of log r) (Hoyt et al. 2022, Table 2); smaller is better."""

IGMR = RankWeight("igmr", _log, link=Exponential(-1.0))
"""Inverse geometric mean rank, exp(-mean of log r) (Hoyt et al. 2022, Table 2)."""


def hits_at(k: float) -> RankWeight:
    """Hits@K: h(r) = 1 if r <= K, otherwise 0.

    Equal K give the same object, so that they share compiled code.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.
    """
    return _hits_at(checks.whole("k", k, 1))


def p_mrr(p: float) -> RankWeight:
    """p-MRR: h(r) = r ** -p (Yang et al. 2022, section 5); p = 1 is MRR, a smaller p looks further down.

    Equal P give the same object, so that they share compiled code. As P -> 0, p-MRR distinguishes models as
    the mean of log r does, but only in its last digits; below 0.001 too few digits are left.

    Raises:
        ValueError: if `p` is not finite and at least 0.001.
    """
    p = checks.real_number("p", p, 0, float("inf"), closed=False)
    if p < _LEAST_POWER:
        raise ArgumentError(
            "p",
            f"must be at least {_LEAST_POWER}, got {p!r}, because rounding dominates below; log-mrr and gmr "
            "look as far down the list.",
        )
    return _power(p)


def power_mean(p: float) -> RankWeight:
    """Power mean M_p of the ranks, (mean of r^p)^(1/p) (Hoyt et al. 2022, Table 3); smaller is better.

    M_1 is the mean rank, M_-1 the harmonic mean rank, and p = 0 the geometric mean rank. (M_inf and M_-inf
    are the metrics `max_rank` and `min_rank`, which are not means of a rank weight.) Equal P give the same
    object.

    Raises:
        ValueError: if `p` is not finite.
    """
    p = checks.real_number("p", p, -float("inf"), float("inf"))
    return GMR if p == 0 else _power_mean(p)


@cache
def _hits_at(k: int) -> RankWeight:
    return RankWeight(f"hits@{k}", AtMost(k))


def parameter_text(number: float) -> str:
    """Text of a parameter in the name of a metric: short, and parsed to the same number."""
    if float(f"{number:g}") == number:  # also infinity, which is not a fraction
        return f"{number:g}"
    simple = Fraction(number).limit_denominator(99)
    return str(simple) if float(simple) == number else repr(number)


@cache
def _power(p: float) -> RankWeight:
    return RankWeight(f"p-mrr@{parameter_text(p)}", Power(-p))


@cache
def _power_mean(p: float) -> RankWeight:
    return RankWeight(f"power-mean@{parameter_text(p)}", Power(p), larger_is_better=False, link=Power(1 / p))
