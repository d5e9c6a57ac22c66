"""Desiderata of Hoyt et al. (2022), Table 1, and the fixed pessimum of PROBE, checked on every rank metric.

The paper states them for the transformation f of a rank. But an index or z metric has a different f for each
number of candidates N, and a median is not a mean of f. So here each desideratum is checked on the metric M
of a few ranks among N candidates:

- fixed optimum: M of ranks 1 is the same for all N;
- asymptotic pessimum: M of ranks N converges as N grows;
- anti-monotonic: M rises whenever any one rank improves by one;
- size invariant: the mean of M over random ranks is the same for all N;
- fixed pessimum (PROBE, Property 2): M of ranks N is the same for all N.

    python -m simulations.hoyt2022 desiderata
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from owkg.metrics import Adjustment, Metric, Ties, adjusted, evaluate, metric, tasks
from owkg.metrics.registry import OF_RANK_WEIGHTS, PLAIN

DESIDERATA = ("fixed optimum", "asymptotic pessimum", "anti-monotonic", "size invariant", "fixed pessimum")

# Each number is above the cutoffs of the registry's examples.
SIZES = (24, 30, 1000)
# Base-2 logarithms k of N; the differences between these N show whether values converge.
_STEPS = ((15, 16), (19, 20))
# Two answers to one query, and one answer to another query.
_QUERIES = np.array([0, 0, 1])


def registered() -> dict[str, Metric]:
    """Example of every registry entry that says which ranks are better, and its adjusted forms.

    Metrics whose chance levels are drawn have no exact desiderata, so they are here in their plain form
    alone.
    """
    found = {}
    for entry in (*PLAIN, *OF_RANK_WEIGHTS):
        if entry.better == "-":
            continue
        plain = metric(entry.example)
        found[plain.name] = plain
        for how in Adjustment if "drawn" not in entry.chance else ():
            if how is not Adjustment.RATIO or not plain.larger_is_better:
                one = adjusted(plain, how)
                found[one.name] = one
    return found


def values(metrics: Iterable[Metric], ranks: Any, candidates: int) -> np.ndarray:
    """Each metric of up to three ranks among `candidates` candidates, [metrics]."""
    rank, wanted = np.asarray(ranks), list(metrics)
    same = np.ones(len(rank), np.int64)
    of = tasks(
        rank, candidates=candidates, query=_QUERIES[: len(rank)], popularity=same, relation_popularity=same
    )
    # Metrics whose chance levels are drawn are here in their plain form alone, which does not depend on them.
    found = evaluate(of, wanted, ties=[Ties.EXACT], level=None, draws=2)[Ties.EXACT]
    return np.array([found[one.name].value for one in wanted])


def better_by_one(candidates: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Pairs of three ranks, and the same ranks with one of them better by one."""
    for ranks in product((2, candidates), repeat=len(_QUERIES)):
        for i in range(len(ranks)):
            yield ranks, (*ranks[:i], ranks[i] - 1, *ranks[i + 1 :])


def _same(readings: Any) -> np.ndarray:
    table = np.array(readings)
    return np.ptp(table, axis=0) <= 1e-9 * np.maximum(np.abs(table).max(axis=0), 1e-3)


def _converges(read: Callable[[int], np.ndarray]) -> np.ndarray:
    """Whether the values at N = 2^k converge: k times their difference must fall.

    For 1 / k, as slow as any metric here, it falls like 1 / k; for k, or ln N, it rises.
    """
    early, late = (k * np.abs(read(2**k) - read(2**j)) for j, k in _STEPS)
    return late <= np.maximum(early, 1e-9)


def desiderata(metrics: Iterable[Metric]) -> pl.DataFrame:
    """Table of the desiderata that metrics meet: a row for each metric, a column for each desideratum."""
    wanted = list(metrics)
    # The normal cdf rises everywhere, but not in floating point.
    bare = [replace(m, adjustment=Adjustment.Z) if m.adjustment is Adjustment.CDF else m for m in wanted]
    ones = np.ones(len(_QUERIES), np.int64)
    best = [values(bare, ones, n) for n in SIZES]
    worst = [values(bare, n * ones, n) for n in SIZES]
    pairs = list(better_by_one(SIZES[1]))
    read = {ranks: values(bare, ranks, SIZES[1]) for pair in pairs for ranks in pair}
    rises = [read[better] > read[ranks] for ranks, better in pairs]
    chance = [np.mean([values(wanted, [r], n) for r in range(1, n + 1)], axis=0) for n in SIZES[:2]]
    converges = _converges(lambda n: values(wanted, n * ones, n))
    met = (_same(best), converges, np.all(rises, axis=0), _same(chance), _same(worst))
    names = pl.Series("metric", [one.name for one in wanted], dtype=pl.String)
    return pl.DataFrame([names, *(pl.Series(name, x) for name, x in zip(DESIDERATA, met, strict=True))])


def markdown(table: pl.DataFrame) -> str:
    """The table of `desiderata` as Markdown, with one row for all metrics that have the same marks."""
    rows = table.group_by(DESIDERATA, maintain_order=True).agg(pl.col("metric"))
    lines = [f"| {' | '.join(['metrics', *DESIDERATA])} |", "|---" * (1 + len(DESIDERATA)) + "|"]
    for row in rows.iter_rows(named=True):
        names = ", ".join(f"`{name}`" for name in row["metric"])
        marks = ("✓" if row[name] else "✗" for name in DESIDERATA)
        lines.append(f"| {' | '.join([names, *marks])} |")
    return "\n".join(lines)


def main() -> None:
    """Prints which rank metrics meet which desiderata of Table 1, as Markdown."""
    print(markdown(desiderata(registered().values())))
