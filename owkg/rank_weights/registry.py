"""Registry of rank weights: name, aliases, parameters, formula and source, from which all else is derived."""

import difflib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from owkg import plugins
from owkg.errors import ArgumentError, naming
from owkg.rank_weights.catalogue import GMR, HMR, IGMR, IMR, LOG_MRR, MR, MRR, hits_at, p_mrr, power_mean
from owkg.rank_weights.rank_weight import RankWeight, traceable

# One plain mean or several, or their names.
Metrics = RankWeight | str | Iterable[RankWeight | str]


class Entry(NamedTuple):
    """Metric, or family of metrics with parameters.

    Attributes:
        name: name of the family. Letters behind @ stand for parameters, K for a whole number, [@K] for one
            that may be left out; M stands for another metric.
        example: name of a member of the family.
        formula: formula, with r ranks, N candidates, n tasks, w weights, Q queries, M plain metric, E and V
            its mean and variance under random ranking, B its best value.
        range: range of the values.
        better: "larger" or "smaller"; "-" if neither is better.
        chance: method that computes the chance level.
        source: publication or library that defines the metric.
        make: function of M, if the name has one, and the parameters, that returns the metric.
        aliases: other words for the name without its parameters; lower case, words joined by -.
        pykeen: PyKEEN's key, in which {} stands for the parameter; empty if PyKEEN has none.
        pykeen_adjusted: adjustments of the metric that PyKEEN has.
        trec: trec_eval's names, without and with a cutoff; empty if trec_eval has none.
    """

    name: str
    example: str
    formula: str
    range: str
    better: str
    chance: str
    source: str
    make: Callable[..., Any]
    aliases: tuple[str, ...] = ()
    pykeen: str = ""
    pykeen_adjusted: tuple[str, ...] = ()
    trec: tuple[str, str] = ("", "")

    def listed(self) -> dict[str, str]:
        """Fields that the list of metrics shows."""
        return {name: getattr(self, name) for name in self._fields[:7]}

    @property
    def words(self) -> tuple[str, ...]:
        """Name without its parameters, and the aliases, folded as names are; M is kept."""
        stem = re.split(r"\[?@", self.name)[0].replace("_", "-")
        return (re.sub("[A-LN-Z]", lambda letter: letter[0].lower(), stem), *self.aliases)

    @property
    def parameters(self) -> list[str]:
        """Letters of the parameters."""
        return re.findall("[A-Z]", self.name.partition("@")[2])

    def matches(self, folded: str) -> Iterator[list[str]]:
        """Texts of M and of the parameters, once for every way to parse a folded name as this metric."""
        for word in self.words:
            if match := _pattern(word, len(self.parameters), "[@" in self.name).fullmatch(folded):
                yield [text for text in match.groups() if text is not None]

    def made(self, name: str, texts: Sequence[str], *of: object) -> Any:
        """Metric for parameters given as text; errors begin with the name."""
        with naming(str, f"metric {name!r}: "):
            return self.make(
                *of, *(parameter(letter, text) for letter, text in zip(self.parameters, texts, strict=False))
            )


class Registry:
    """Entries in order, user-defined entries last; iteration first imports the modules in `OWKG_PLUGINS`.

    Args:
        *parts: entries, or registries, whose current entries are included at each iteration.
    """

    def __init__(self, *parts: "Entry | Registry") -> None:
        self._parts = list(parts)

    def __iter__(self) -> Iterator[Entry]:
        plugins.load()
        for part in tuple(self._parts):
            yield from (part,) if isinstance(part, Entry) else part

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def add(self, entry: Entry) -> None:
        """Adds an entry at the end."""
        self._parts.append(entry)

    def remove(self, entry: Entry) -> None:
        """Removes an entry; does nothing if it is not in the registry."""
        self._parts = [part for part in self._parts if part is not entry]


_NUMBER = r"([-+]?[\d.]+(?:e[-+]?\d+)?(?:/[-+\d.]+)?|inf|nan)"


@cache
def _pattern(word: str, parameters: int, may: bool) -> re.Pattern[str]:
    """Pattern for a family: `hits@10`, `hits-at-10`, `hits10`; all parameters but the first are optional."""
    start = re.escape(word).replace("M", "(.+?)")
    if not parameters:
        return re.compile(start)
    behind = f"(?:@|-at-|-)?{_NUMBER}" + f"(?:,{_NUMBER})?" * (parameters - 1)
    return re.compile(f"{start}(?:{behind})?" if may else start + behind)


def parameter(letter: str, text: str) -> float:
    """Number, or fraction, that a parameter of a name spells; an int if the letter is K and it is whole."""
    try:
        above, _, under = text.partition("/")
        value = float(above) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        value = math.nan
    if math.isnan(value):
        raise ValueError(f"{text!r} is not a number.")
    return int(value) if letter == "K" and value.is_integer() else value


# Largest number of letters of a name, because matching a longer one against all metrics would take long.
_LONGEST = 1000


def folded_name(name: object) -> str:
    """Name in lower case, with `-` for spaces and underscores."""
    if not isinstance(name, str):
        raise ValueError(f"the name of a metric must be text, got {name!r}.")
    if len(name) > _LONGEST:
        raise ValueError(f"the name of a metric must have at most {_LONGEST} letters, got {len(name):,}.")
    folded = re.sub(r"\s*([@,])\s*", r"\1", name.strip().lower())
    return re.sub(r"[\s_]+", "-", folded)


def unknown_name(name: str, entries: Iterable[Entry], otherwise: str, more: Iterable[str] = ()) -> ValueError:
    """Error for an unknown name, with similar names from the entries and from `more`."""
    known = {word for entry in entries for word in (entry.example, *_without_parameters(entry))}
    near = difflib.get_close_matches(
        folded_name(name), {folded_name(word) for word in (*known, *more)}, 3, 0.5
    )
    hint = f"did you mean {', '.join(near)}?" if near else otherwise
    return ValueError(f"unknown metric {name!r}: {hint}")


def _without_parameters(entry: Entry) -> tuple[str, ...]:
    return () if "@" in entry.name else entry.aliases


_HOYT = "Hoyt et al. 2022"
_YANG = "Yang et al. 2022"
_INDEX_AND_Z = ("index", "z")

RANK_WEIGHTS = Registry(
    Entry(
        "mrr",
        "mrr",
        "sum w/r / sum w",
        "(0, 1]",
        "larger",
        "closed",
        _HOYT,
        lambda: MRR,
        ("mean-reciprocal-rank", "inverse-harmonic-mean-rank", "ihmr"),
        "inverse_harmonic_mean_rank",
        _INDEX_AND_Z,
    ),
    Entry(
        "hits@K",
        "hits@10",
        "share of r <= K",
        "[0, 1]",
        "larger",
        "closed",
        _HOYT,
        hits_at,
        ("hit", "h"),
        "hits_at_{}",
        _INDEX_AND_Z,
    ),
    Entry(
        "mr",
        "mr",
        "sum w r / sum w",
        "[1, N]",
        "smaller",
        "closed",
        _HOYT,
        lambda: MR,
        ("mean-rank", "arithmetic-mean-rank"),
        "arithmetic_mean_rank",
        ("ratio", *_INDEX_AND_Z),
    ),
    Entry(
        "imr",
        "imr",
        "1 / mr",
        "(0, 1]",
        "larger",
        "quadrature",
        _HOYT,
        lambda: IMR,
        ("iamr", "inverse-mean-rank", "inverse-arithmetic-mean-rank"),
        "inverse_arithmetic_mean_rank",
    ),
    Entry(
        "hmr",
        "hmr",
        "1 / mrr",
        "[1, N]",
        "smaller",
        "quadrature",
        _HOYT,
        lambda: HMR,
        ("harmonic-mean-rank",),
        "harmonic_mean_rank",
    ),
    Entry(
        "gmr",
        "gmr",
        "exp(sum w ln r / sum w)",
        "[1, N]",
        "smaller",
        "closed",
        _HOYT,
        lambda: GMR,
        ("geometric-mean-rank",),
        "geometric_mean_rank",
        _INDEX_AND_Z,
    ),
    Entry(
        "igmr",
        "igmr",
        "1 / gmr",
        "(0, 1]",
        "larger",
        "closed",
        _HOYT,
        lambda: IGMR,
        ("inverse-geometric-mean-rank",),
        "inverse_geometric_mean_rank",
    ),
    Entry(
        "power-mean@P",
        "power-mean@2",
        "(sum w r^P / sum w)^(1/P)",
        "[1, N]",
        "smaller",
        "quadrature P<0, drawn P>0",
        f"{_HOYT}, Table 3",
        power_mean,
        ("power-mean-rank",),
    ),
    Entry(
        "p-mrr@P", "p-mrr@1/2", "sum w r^-P / sum w", "(0, 1]", "larger", "closed", _YANG, p_mrr, ("pmrr",)
    ),
    Entry("log-mrr", "log-mrr", "mean of 1/log2(1+r)", "(0, 1]", "larger", "closed", _YANG, lambda: LOG_MRR),
)
"""All rank weights. A new entry adds a metric to theory, simulation and evaluation."""

# Names of plain rank weights that follow from no entry.
_SYNONYMS = {"sqrt-mrr": "p-mrr@1/2"}


def rank_weight_or_none(name: str, folded: str) -> RankWeight | None:
    """Rank weight of a folded name; None if there is none."""
    folded = _SYNONYMS.get(folded, folded)
    for entry in RANK_WEIGHTS:
        for texts in entry.matches(folded):
            return entry.made(name, texts)
    return None


def rank_weight(name: str) -> RankWeight:
    """Rank weight with a given name; case does not matter, nor does `_` in place of `-`.

    Args:
        name: one of `forms()`, or an alias: `hits_at_10`, `sqrt-mrr`, `inverse_harmonic_mean_rank`, ...

    Raises:
        ValueError: if the name is unknown (the message lists similar names), or K or P is out of range.

    Examples:
        >>> rank_weight("hits_at_10").name, rank_weight("p-mrr@1/3").name
        ('hits@10', 'p-mrr@1/3')
    """
    found = rank_weight_or_none(name, folded_name(name))
    if found is None:
        raise unknown_name(name, RANK_WEIGHTS, f"known are {', '.join(forms())}.", _SYNONYMS)
    return found


def plain() -> tuple[Entry, ...]:
    """Entries that are plain means, which theory and simulation accept."""
    return tuple(entry for entry in RANK_WEIGHTS if rank_weight(entry.example).link is None)


def forms() -> tuple[str, ...]:
    """Canonical names of plain means; K is a whole number, P a number or a fraction such as 1/3."""
    return tuple(entry.name for entry in plain())


def checked_metric(metric: RankWeight | str) -> RankWeight:
    """Metric, given as an object or by name, after a check that it is a plain mean that JAX can trace.

    Raises:
        ValueError: if it is not, or the name is unknown.
    """
    if not isinstance(metric, str):
        return traceable(metric)
    try:
        found = rank_weight_or_none(metric, folded_name(metric))
    except ValueError as error:
        raise ArgumentError("metric", f"must be valid: {error}") from None
    if found is None:
        near = unknown_name(metric, plain(), f"known are {', '.join(forms())}.", _SYNONYMS)
        raise ArgumentError("metric", f"must be a plain mean of a rank weight: {near}")
    return traceable(found)


def checked_metrics(metrics: Metrics) -> tuple[RankWeight, ...]:
    """One metric or several, or their names, as a tuple of plain means.

    Raises:
        ValueError: if an element is not a plain mean or its name.
    """
    several = isinstance(metrics, Iterable) and not isinstance(metrics, str)
    given: Any = metrics
    each = tuple(given) if several else (given,)
    if not each or not all(isinstance(m, RankWeight | str) for m in each):
        raise ArgumentError("metrics", f"must be one or more metrics, or their names, got {each!r}.")
    with naming({"metric": "`metrics`"}):
        return tuple(checked_metric(metric) for metric in each)
