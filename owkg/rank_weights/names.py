"""The names by which users know rank weights, those of PyKEEN among them."""

import difflib
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

from owkg.checks import ArgumentError
from owkg.rank_weights.catalogue import (
    GMR,
    HMR,
    IGMR,
    IMR,
    LOG_MRR,
    MR,
    MRR,
    hits_at,
    p_mrr,
    power_mean,
)
from owkg.rank_weights.rank_weight import RankWeight, traceable

# What a name may look like after folding case and turning "_" and " " into "-".
_RANK_WEIGHTS = {
    "mrr": MRR,
    "mean-reciprocal-rank": MRR,
    "inverse-harmonic-mean-rank": MRR,
    "ihmr": MRR,
    "log-mrr": LOG_MRR,
    "mr": MR,
    "mean-rank": MR,
    "arithmetic-mean-rank": MR,
    "sqrt-mrr": p_mrr(0.5),
    "imr": IMR,
    "iamr": IMR,
    "inverse-mean-rank": IMR,
    "inverse-arithmetic-mean-rank": IMR,
    "hmr": HMR,
    "harmonic-mean-rank": HMR,
    "gmr": GMR,
    "geometric-mean-rank": GMR,
    "igmr": IGMR,
    "inverse-geometric-mean-rank": IGMR,
}
NUMBER = r"([-+]?[\d.]+(?:e[-+]?\d+)?(?:/[-+\d.]+)?|inf|nan)"
_HITS = re.compile(rf"h(?:its?)?(?:@|-at-|-)?{NUMBER}")
_POWER = re.compile(rf"p-?mrr(?:@|-at-|-){NUMBER}")
_POWER_MEAN = re.compile(rf"power-mean(?:-rank)?(?:@|-at-|-){NUMBER}")
FORMS = ("mrr", "hits@K", "log-mrr", "p-mrr@P", "mr")
"""The canonical names of plain means; K a whole number, P a number or a fraction such as 1/3."""

KNOWN = (
    *_RANK_WEIGHTS,
    *("hits@1", "hits@3", "hits@5", "hits@10"),
    *("p-mrr@1/2", "p-mrr@1/3", "p-mrr@1/4", "power-mean@2"),
)


def folded_name(name: Any) -> str:
    """A name in lower case, with `-` for spaces and underscores."""
    if not isinstance(name, str):
        raise ValueError(f"the name of a metric must be text, got {name!r}.")
    folded = re.sub(r"\s*([@,])\s*", r"\1", name.strip().lower())
    return re.sub(r"[\s_]+", "-", folded)


def number(name: str, text: str, *, finite: bool) -> float:
    """The number, or fraction, that a parameter of a name spells."""
    try:
        above, _, under = text.partition("/")
        value = float(above) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if math.isnan(value) or (finite and math.isinf(value)):
        raise ValueError(f"metric {name!r}: {text!r} is not a number.")
    return value


def made(name: str, factory: Callable[..., Any], *texts: str | None, finite: bool = True) -> Any:
    """What `factory` makes of the parameters of a name; errors begin with the name."""
    values = [number(name, text, finite=finite) for text in texts if text is not None]
    try:
        return factory(*values)
    except ValueError as error:
        raise ValueError(f"metric {name!r}: {error}") from None


def whole(k: float) -> Any:
    """A whole number as int, any other as it is, for K to be refused by its check."""
    return int(k) if math.isfinite(k) and k.is_integer() else k


def unknown_name(name: str, folded: str, known: tuple[str, ...], otherwise: str) -> ValueError:
    """The error of a name that is not known, with the near ones of `known`."""
    near = difflib.get_close_matches(folded, known, n=3, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else otherwise
    return ValueError(f"unknown metric {name!r}: {hint}")


def rank_weight_or_none(name: str, folded: str) -> RankWeight | None:
    """The rank weight of a folded name; None where it is none."""
    if folded in _RANK_WEIGHTS:
        return _RANK_WEIGHTS[folded]
    for pattern, factory in (
        (_HITS, lambda k: hits_at(whole(k))),
        (_POWER, p_mrr),
        (_POWER_MEAN, power_mean),
    ):
        if match := pattern.fullmatch(folded):
            return made(name, factory, match[1])
    return None


def rank_weight(name: str) -> RankWeight:
    """The rank weight of that name; case, `_` against `-`, and the common aliases do not matter.

    Args:
        name: one of `FORMS`, or an alias: `hits_at_10`, `sqrt-mrr`, `inverse_harmonic_mean_rank`, ...

    Raises:
        ValueError: for an unknown name (the message names the near ones), or a bad K or P.

    Examples:
        >>> rank_weight("hits_at_10").name, rank_weight("p-mrr@1/3").name
        ('hits@10', 'p-mrr@1/3')
    """
    folded = folded_name(name)
    found = rank_weight_or_none(name, folded)
    if found is None:
        raise unknown_name(name, folded, KNOWN, f"known are {', '.join(FORMS)}.")
    return found


def checked(metric: Any) -> RankWeight:
    """A metric, given as it is or by name, that is a plain mean of a rank weight that JAX can trace.

    Raises:
        ValueError: if it is none, or the name is not known.
    """
    return traceable(rank_weight(metric) if isinstance(metric, str) else metric)


def checked_metrics(metrics: Any) -> tuple[RankWeight, ...]:
    """One metric or several, or their names, each a plain mean, as a tuple; ValueError for anything else."""
    several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    metrics = tuple(metrics) if several else (metrics,)
    if not metrics or not all(isinstance(m, RankWeight | str) for m in metrics):
        raise ArgumentError("metrics", f"must be one or more metrics, got {metrics!r}.")
    return tuple(checked(metric) for metric in metrics)
