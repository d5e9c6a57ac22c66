"""Metrics of the completely judged pool: values under given labels, and the labels that each metric needs.

Each metric is a function of the labels of a list. P, RBP, Success and RR are multilinear in the labels. Their
value under probabilities is therefore the exact expectation under independent labels, and their value under
corrected labels is unbiased. For AP, nDCG and filtered ranks, probabilities give an approximation that serves
only as a covariate.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from owkg.errors import ArgumentError
from owkg.estimation.population import Population
from owkg.ir import names as ir_names
from owkg.metrics.registry import metric as rank_metric

Rels = Float[np.ndarray, "... depth"]
Values = Float[np.ndarray, "..."]


class Needs(StrEnum):
    """Labels that a metric needs; they decide the cheapest design that answers it.

    - CANDIDATES: single candidates, because the metric is linear in the labels.
    - PREFIX: each list down to its first relevant answer.
    - QUERY: all candidates of a query.
    """

    CANDIDATES = "candidates"
    PREFIX = "prefixes"
    QUERY = "queries"


class Measure(NamedTuple):
    """A metric of the completely judged pool.

    Attributes:
        name: canonical name, such as RR@10.
        needs: labels that the metric needs.
        depth: deepest rank that counts; None: the depth of the pool.
        value: function from the labels of lists and the number of relevant answers of their queries to the
            values of the lists. For a micro metric, the value of a list is the sum over its answers.
        micro: whether the metric is a ratio of sums over queries, which weights every answer equally.
        weights: function from the depth to the weights of the ranks, if the metric is linear in the labels;
            otherwise None.
        first: function from the depth to the value of each rank of the first relevant answer, if the metric
            depends on this rank only; otherwise None.
        rises: whether changing a label from 0 to 1 never lowers the value.
    """

    name: str
    needs: Needs
    depth: int | None
    value: Callable[[Rels, Values], Values]
    micro: bool = False
    weights: Callable[[int], Float[np.ndarray, "depth"]] | None = None
    first: Callable[[int], Float[np.ndarray, "depth"]] | None = None
    rises: bool = True

    def exact(self, rels: Rels) -> bool:
        """Whether the value under probabilities is an expectation."""
        return self.needs is not Needs.QUERY


def _ranks(depth: int) -> Float[np.ndarray, "depth"]:
    return np.arange(1.0, depth + 1)


def _cut(weights: Callable[[np.ndarray], np.ndarray], k: int | None) -> Callable[[int], np.ndarray]:
    return lambda depth: np.where(_ranks(depth) <= (k or depth), weights(_ranks(depth)), 0.0)


def _linear(name: str, k: int | None, weights: Callable[[np.ndarray], np.ndarray]) -> Measure:
    of = _cut(weights, k)
    return Measure(name, Needs.CANDIDATES, k, lambda rels, _: rels @ of(rels.shape[-1]), weights=of)


def none_before(rels: Rels) -> Rels:
    """Probability that no answer above each rank is relevant: the product of 1 - label over these answers."""
    ahead = np.cumprod(1 - rels[..., :-1], axis=-1)
    return np.concatenate([np.ones((*rels.shape[:-1], 1)), ahead], axis=-1)


def _first(name: str, k: int | None, weights: Callable[[np.ndarray], np.ndarray]) -> Measure:
    of = _cut(weights, k)

    def value(rels: Rels, _: Values) -> Values:
        return (rels * none_before(rels)) @ of(rels.shape[-1])

    return Measure(name, Needs.PREFIX, k, value, first=of)


def _before(rels: Rels) -> Rels:
    """Number of relevant answers above each rank."""
    return np.cumsum(rels, axis=-1) - rels


def _whole(
    name: str,
    k: int | None,
    gains: Callable[[Rels], Rels],
    ideal: Callable[[Values], Values],
    micro: bool = False,
) -> Measure:
    def value(rels: Rels, relevant: Values) -> Values:
        return gains(rels).sum(-1) / ideal(np.maximum(relevant, 1.0))

    return Measure(name, Needs.QUERY, k, value, micro=micro, rises=False)


def _precisions(rels: Rels, k: int | None) -> Rels:
    rank = _ranks(rels.shape[-1])
    return np.where(rank <= (k or len(rank)), rels * (1 + _before(rels)) / rank, 0.0)


def _discounted(rels: Rels, k: int | None) -> Rels:
    rank = _ranks(rels.shape[-1])
    return np.where(rank <= (k or len(rank)), rels / np.log2(1 + rank), 0.0)


def _ideal_gain(relevant: Values, k: int | None) -> Values:
    """DCG of a perfect list, interpolated linearly between whole numbers of relevant answers."""
    most = int(np.ceil(relevant.max(initial=1.0))) + 1
    gains = np.where(_ranks(most) <= (k or most), 1 / np.log2(1 + _ranks(most)), 0.0)
    return np.interp(relevant, np.arange(most + 1), np.concatenate([[0.0], np.cumsum(gains)]))


def _reciprocal(rels: Rels) -> Rels:
    """1 / filtered rank of each relevant answer: its rank minus the number of relevant answers above."""
    return rels / np.maximum(_ranks(rels.shape[-1]) - _before(rels), 1.0)


def _filtered_hits(rels: Rels, k: int) -> Rels:
    return np.where(_ranks(rels.shape[-1]) - _before(rels) <= k, rels, 0.0)


def _same(relevant: Values) -> Values:
    return relevant


def _one(relevant: Values) -> Values:
    return np.ones_like(relevant)


def _rank_measure(name: str) -> Measure | None:
    """MRR or Hits@K over answers, micro or macro; None for another name."""
    try:
        canonical = rank_metric(name).name
    except ValueError:
        return None
    stem = canonical.removeprefix("macro-")
    ideal, micro = (_same, False) if stem != canonical else (_one, True)
    if stem == "mrr":
        return _whole(canonical, None, _reciprocal, ideal, micro=micro)
    if stem.startswith("hits@"):
        k = int(stem.removeprefix("hits@"))
        return _whole(canonical, k, lambda rels: _filtered_hits(rels, k), ideal, micro=micro)
    return None


_LISTS = "rr@k, success@k, p@k, rbp(p=0.8), ap@k, ndcg@k, mrr, hits@k, macro-mrr, macro-hits@k"


def measure(name: str, depth: int) -> Measure:
    """Metric with a given name, for pools of a given depth.

    Args:
        name: rr@10, success@10, p@10, rbp(p=0.8), ap@10 or ndcg@10 (without a cut-off, the depth of the pool
            is used); or mrr, hits@10, macro-mrr or macro-hits@10, whose filtered ranks are counted within the
            lists.
        depth: depth of the pool.

    Raises:
        ValueError: naming `metric`, if the name is unknown or the metric needs a deeper pool.

    Examples:
        >>> [measure(name, 10).name for name in ("map", "recip_rank", "P_5", "Hits@10", "macro-mrr")]
        ['AP@10', 'RR@10', 'P@5', 'hits@10', 'macro-mrr']
    """
    if not isinstance(name, str):
        raise ArgumentError("metric", f"must be the name of a metric, got {name!r}.")
    found = ir_names.measure(name) or ir_names.measure(f"{name}@{depth}")
    if found is None:
        of_ranks = _rank_measure(name.strip())
        if of_ranks is None:
            raise ArgumentError("metric", f"must be one of {_LISTS}, got {name!r}.")
        return _deep_enough(of_ranks, depth, name)
    stem, _, letters = found.name.partition("@")
    k = int(letters) if letters else depth
    label = f"{stem}@{k}"
    if stem.startswith("RBP"):
        share = float(stem.partition("=")[2].rstrip(")"))
        return _linear(stem, None, lambda rank: (1 - share) * share ** (rank - 1))
    made = {
        "P": lambda: _linear(label, k, lambda rank: np.full_like(rank, 1 / k)),
        "RR": lambda: _first(label, k, lambda rank: 1 / rank),
        "Success": lambda: _first(label, k, np.ones_like),
        "AP": lambda: _whole(label, k, lambda rels: _precisions(rels, k), _same),
        "nDCG": lambda: _whole(
            label, k, lambda rels: _discounted(rels, k), lambda relevant: _ideal_gain(relevant, k)
        ),
    }
    if stem not in made:
        raise ArgumentError("metric", f"must be one of {_LISTS}, got {name!r}.")
    return _deep_enough(made[stem](), depth, name)


def _deep_enough(found: Measure, depth: int, name: str) -> Measure:
    if (found.depth or depth) > depth:
        raise ArgumentError(
            "metric",
            f"must be answered by a pool of depth {depth}, got {name}, which needs depth {found.depth}. Pool "
            f"deeper, or ask for a cut-off of at most {depth}.",
        )
    return found


def measures(names: str | Iterable[str], depth: int) -> tuple[Measure, ...]:
    """Metrics with given names, each once.

    Raises:
        ValueError: naming `metric`, as `measure`, or if no name is given.
    """
    several = [names] if isinstance(names, str) else list(names)
    found = {one.name: one for one in (measure(name, depth) for name in several)}
    if not found:
        raise ArgumentError("metric", "must name at least one metric, got none.")
    return tuple(found.values())


def values(
    of: Measure,
    people: Population,
    labels: Float[np.ndarray, "candidates"],
    rows: Int[np.ndarray, "n"] | None = None,
    relevant: Float[np.ndarray, "queries"] | None = None,
) -> Float[np.ndarray, "systems n"]:
    """Values of a metric for each list under given labels.

    Args:
        of: the metric.
        people: the population.
        labels: 1, 0, probabilities, or corrected labels.
        rows: rows of the queries. Default None: all queries.
        relevant: number of relevant answers of each query. Default None: counted from the labels.
    """
    slot = people.slot if rows is None else people.slot[:, rows]
    rels = np.append(np.asarray(labels, np.float64), 0.0)[slot]
    total = people.relevant(labels) if relevant is None else relevant
    return of.value(rels, total if rows is None else total[rows])


def bounds(of: Measure, people: Population) -> tuple[Float[np.ndarray, "systems queries"], ...]:
    """Smallest and largest value of each list that the unknown labels allow.

    If no relevant answer can lower the metric, the bounds are its values without and with all unknown
    candidates. Otherwise the bounds of a query with unknown candidates are 0 and 1 (for a micro metric, the
    upper bound is the number of listed answers that may be relevant).
    """
    none, every = (people.label == 1).astype(float), (people.label != 0).astype(float)
    low = values(of, people, none)
    if of.rises:
        return low, values(of, people, every)
    is_open = np.bincount(people.query[people.unknown], minlength=len(people.queries)) > 0
    most = np.append(every, 0.0)[people.slot].sum(-1) if of.micro else np.ones_like(low)
    least = np.zeros_like(low)
    return np.where(is_open, least, low), np.where(is_open, most, low)
