"""The named rank weights, and the names by which users know them."""

import difflib
import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import jax.numpy as jnp

from owkg import checks
from owkg.metrics.metric import Metric

MRR = Metric("mrr", lambda rank: 1 / rank)
"""Mean reciprocal rank, h(r) = 1/r."""

LOG_MRR = Metric("log-mrr", lambda rank: 1 / jnp.log2(1 + rank))
"""h(r) = log 2 / log(1 + r) (Yang et al. 2022, section 5). A mean over answers; not nDCG."""

MR = Metric("mr", lambda rank: rank, larger_is_better=False)
"""Mean rank, h(r) = r; smaller is better."""


def hits_at(k: int) -> Metric:
    """Hits@K: h(r) = 1 if r <= K else 0.

    Equal K give the same object, so that they share compiled code.

    Raises:
        ValueError: if `k` is not a whole number of at least 1.
    """
    return _hits_at(checks.scalar("k", checks.integer("k", k, 1)))


def power(p: float) -> Metric:
    """p-MRR: h(r) = r ** -p (Yang et al. 2022, section 5); p = 1 is MRR, p -> 0 looks past the top.

    Equal P give the same object, so that they share compiled code.

    Raises:
        ValueError: if `p` is not finite and above 0.
    """
    return _power(checks.scalar("p", checks.real("p", p, 0, float("inf"), closed=False)))


@cache
def _hits_at(k: int) -> Metric:
    return Metric(f"hits@{k}", lambda rank: (rank <= k).astype(rank.dtype))


@cache
def _power(p: float) -> Metric:
    simple = Fraction(p).limit_denominator(99)
    shown = f"{p:g}" if float(f"{p:g}") == p else str(simple) if float(simple) == p else repr(p)
    return Metric(f"p-mrr@{shown}", lambda rank: rank**-p)


# What a name may look like after folding case and turning "_" and " " into "-".
_PLAIN = {
    "mrr": MRR,
    "mean-reciprocal-rank": MRR,
    "inverse-harmonic-mean-rank": MRR,
    "log-mrr": LOG_MRR,
    "mr": MR,
    "mean-rank": MR,
    "arithmetic-mean-rank": MR,
    "sqrt-mrr": power(0.5),
}
_NUMBER = r"([-+]?[\d.]+(?:e[-+]?\d+)?(?:/[-+\d.]+)?|inf|nan)"
_HITS = re.compile(rf"hits?(?:@|-at-|-)?{_NUMBER}")
_POWER = re.compile(rf"p-?mrr(?:@|-at-|-){_NUMBER}")
_KNOWN = (*_PLAIN, "hits@1", "hits@3", "hits@5", "hits@10", "p-mrr@1/2", "p-mrr@1/3", "p-mrr@1/4")

FORMS = ("mrr", "hits@K", "log-mrr", "p-mrr@P", "mr")
"""The canonical names; K a whole number, P a number or a fraction such as 1/3."""


def metric(name: str) -> Metric:
    """The metric of that name; case, `_` against `-`, and the common aliases do not matter.

    Args:
        name: one of `FORMS`, or an alias: `hits_at_10`, `sqrt-mrr`, `inverse_harmonic_mean_rank`, ...

    Raises:
        ValueError: for an unknown name (the message names the near ones), or a bad K or P.

    Examples:
        >>> metric("hits_at_10").name, metric("p-mrr@1/3").name
        ('hits@10', 'p-mrr@1/3')
    """
    if not isinstance(name, str):
        raise ValueError(f"the name of a metric must be text, got {name!r}.")
    folded = re.sub(r"[\s_]+", "-", re.sub(r"\s*@\s*", "@", name.strip().lower()))
    if folded in _PLAIN:
        return _PLAIN[folded]
    if match := _HITS.fullmatch(folded):
        return _named(name, lambda k: hits_at(int(k) if k.is_integer() else k), match[1])
    if match := _POWER.fullmatch(folded):
        return _named(name, power, match[1])
    near = difflib.get_close_matches(folded, _KNOWN, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else f"known are {', '.join(FORMS)}."
    raise ValueError(f"unknown metric {name!r}: {hint}")


def _named(name: str, factory: Callable[[Any], Metric], text: str) -> Metric:
    try:
        above, _, under = text.partition("/")
        value = float(above) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"metric {name!r}: {text!r} is not a number.")
    try:
        return factory(value)
    except ValueError as error:
        raise ValueError(f"metric {name!r}: {error}") from None
