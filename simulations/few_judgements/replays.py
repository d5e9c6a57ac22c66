"""Replayed draws of one design: do intervals contain the value of the completely judged pool?"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

from owkg.estimation.candidates import contributions, few_limits, limits, of_candidates
from owkg.estimation.drawing import Asked, Drawing, Unit, draw
from owkg.estimation.measures import Measure, measures, values
from owkg.estimation.of_designs import OWN, REFIT
from owkg.estimation.prefixes import reach
from owkg.estimation.proxy import Probabilities, features, free_proxy, refitted
from owkg.estimation.regression import Sample
from owkg.estimation.targets import Limits, contrasts, of_prefix_queries, of_queries, prepared
from simulations.few_judgements.worlds import DEPTH, SYSTEMS, World, judged_of_prefixes, targets, truths_of

MACRO = ("rr", "p@10", "ap", "ndcg", "success@1", "success@10")
MICRO = ("mrr", "hits@10")
FIRST = ("rr", "success@1", "success@10")
_POOLED = 3  # depth of the pool; candidates are drawn below it
_EQUAL = 1e-12


class Replay(NamedTuple):
    """One draw.

    Attributes:
        found: for each metric by name, lower and upper limits of the targets, and the widths of a plain
            sample of queries or None.
        judgements: number of judgements that the draw takes.
    """

    found: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray | None]]
    judgements: float


class Design(NamedTuple):
    """A design to be replayed.

    Attributes:
        truths: for each metric, the values that intervals should contain.
        names: for each metric, the names of its targets.
        replay: function from a random generator to one draw.
    """

    truths: dict[str, np.ndarray]
    names: dict[str, list[str]]
    replay: Callable[[np.random.Generator], Replay]


def replayed(design: Design, replays: int, seed: int) -> pl.DataFrame:
    """A row for each metric and target: coverage of the truth, median widths, judgements."""
    random = np.random.default_rng(seed)
    draws = [design.replay(random) for _ in range(replays)]
    rows: list[dict[str, Any]] = []
    for metric, truth in design.truths.items():
        lows, highs = (np.array([one.found[metric][i] for one in draws]) for i in range(2))
        held = ((lows <= truth + _EQUAL) & (truth <= highs + _EQUAL)).mean(0)
        width = np.median(highs - lows, axis=0)
        plain = [one.found[metric][2] for one in draws]
        plain = np.array([widths for widths in plain if widths is not None])
        usual = np.median(plain, axis=0).tolist() if len(plain) else [None] * len(truth)
        judged = float(np.mean([one.judgements for one in draws]))
        rows += [
            {"metric": metric, "target": name, "truth": float(truth[i]), "coverage": float(held[i])}
            | {"width": float(width[i]), "plain": usual[i], "judgements": judged, "replays": replays}
            for i, name in enumerate(design.names[metric])
        ]
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(pl.col("plain").cast(pl.Float64))


def _whole(made: World, chosen: tuple[Measure, ...]) -> dict[str, np.ndarray]:
    return {one.name: truths_of(one, made) for one in chosen}


def of_whole_queries(
    made: World, n: int, *, micro: bool = False, proxy: Probabilities | None = None
) -> Design:
    """Design of whole queries; for micro metrics, in strata of their known answers.

    Args:
        made: the world.
        n: number of drawn queries.
        micro: whether micro metrics are estimated.
        proxy: probabilities that replace the free proxy and are not refitted; None: the free proxy, refitted.
    """
    people, truth = made
    size = len(people.queries)
    free = free_proxy(people) if proxy is None else proxy
    table = features(people)
    chosen = measures(MICRO if micro else MACRO, DEPTH)
    ready = {one.name: prepared(one, people, [free], own=n >= OWN and proxy is None) for one in chosen}
    to, truths = contrasts(SYSTEMS, pairs=True), _whole(made, chosen)
    every = {one.name: values(one, people, truth) for one in chosen}
    is_open = np.bincount(people.query[people.unknown], minlength=size)
    base = draw(people, Asked(Unit.QUERIES, n, "size" if micro else None), seed=0, proxy=free)

    def replay(random: np.random.Generator) -> Replay:
        drawing = base._replace(place=random.random(size))
        rows = np.sort(drawing.frame[drawing.order()[0]])
        sample = drawing.sample(rows)
        folds = None
        if n >= REFIT and proxy is None:
            drawn = np.isin(people.query, rows)
            labels = np.where(drawn, truth, people.label).astype(np.int8)
            folds = refitted(people, labels, free, rows, table=table)
        found = {}
        for one in chosen:
            got = of_queries(ready[one.name], people, truth, sample, folds=folds)
            own = to @ every[one.name][:, rows]
            half = special.stdtrit(n - 1, 0.975) * own.std(1, ddof=1) * np.sqrt((1 - n / size) / n)
            found[one.name] = (got.low, got.high, None if one.micro else 2 * half)
        return Replay(found, float(is_open[rows].sum()))

    return Design(truths, dict.fromkeys(truths, targets()), replay)


def of_random_prefixes(made: World, n: int) -> Design:
    """Design of list prefixes, judged to a random depth or to the first relevant answer."""
    people, truth = made
    size, proxy, reached = len(people.queries), free_proxy(people), reach(DEPTH)
    chosen = measures(FIRST, DEPTH)
    ready = {one.name: prepared(one, people, [proxy], reached=reached) for one in chosen}
    truths = _whole(made, chosen)

    def replay(random: np.random.Generator) -> Replay:
        rows = np.sort(random.choice(size, n, replace=False))
        sample = Sample(rows, np.zeros(n, np.int64), np.array([size]))
        deep = (random.random((n, 1)) < reached).sum(1)
        limits_of: dict[str, Limits] = {
            name: of_prefix_queries(own, people, truth, proxy, sample, deep, reached)
            for name, own in ready.items()
        }
        found = {name: (got.low, got.high, None) for name, got in limits_of.items()}
        return Replay(found, float(judged_of_prefixes(made, rows, deep)))

    return Design(truths, dict.fromkeys(truths, targets()), replay)


def of_single_candidates(made: World, n: int) -> Design:
    """Design of single candidates: P@10, and the missing share of the pool."""
    people, truth = made
    proxy = free_proxy(people)
    base = draw(people, Asked(Unit.CANDIDATES, n), seed=0, proxy=proxy)
    frame = base.frame
    (of,) = measures("p@10", DEPTH)
    each = contrasts(SYSTEMS, pairs=True) @ contributions(of, people, frame)
    added = np.concatenate([each, np.full((1, len(frame)), 1 / len(frame))])
    known = float((people.label == 1).sum() + people.outside.sum())
    share = _share(truth[frame].sum(), known)
    names = {of.name: targets(), "missing share": ["all"]}

    def replay(random: np.random.Generator) -> Replay:
        chosen = _chosen(base, random)
        drawn = base.drawn(chosen)
        drawn_limits = of_candidates(added, truth[frame][chosen], proxy[None, frame], drawn)
        low, high = limits(drawn_limits, 0.95)
        first, last = (np.atleast_1d(_share(max(end[-1], 0) * len(frame), known)) for end in (low, high))
        found = {of.name: (low[:-1], high[:-1], None), "missing share": (first, last, None)}
        return Replay(found, float(n))

    return Design({of.name: each @ truth[frame], "missing share": np.array([share])}, names, replay)


def of_candidates_below(made: World, n: int) -> Design:
    """Design of candidates below a pool of depth 3, to depth 10: true ones as a share of all true."""
    people, truth = made
    proxy = free_proxy(people)
    base = draw(people, Asked(Unit.BELOW, n), seed=0, proxy=proxy, below=_POOLED)
    known = float((people.label == 1).sum() + people.outside.sum())
    counts = base.sizes / np.maximum(base.counts, 1)

    def replay(random: np.random.Generator) -> Replay:
        chosen = _chosen(base, random)
        weight = counts[base.stratum[chosen]]
        ends = few_limits(truth[base.frame[chosen]], weight, 0.95)
        low, high = (np.atleast_1d(_share(min(end, len(base.frame)), known)) for end in ends)
        return Replay({"missing below": (low, high, None)}, float(n))

    share = _share(truth[base.frame].sum(), known)
    return Design({"missing below": np.array([share])}, {"missing below": ["all"]}, replay)


def _chosen(base: Drawing, random: np.random.Generator) -> np.ndarray:
    """Places in the frame of another draw by the same design."""
    place = random.random(len(base.frame))
    order = np.lexsort((place, base.stratum))
    starts = np.concatenate([[0], np.cumsum(base.sizes)[:-1]])
    within = np.arange(len(order)) - np.repeat(starts, base.sizes)
    return order[within < base.counts[base.stratum[order]]]


def _share(missing: float, known: float) -> float:
    return missing / (missing + known) if missing + known else 0.0


DESIGNS: dict[str, Callable[[World, int], Design]] = {
    "queries": of_whole_queries,
    "queries, strata": lambda made, n: of_whole_queries(made, n, micro=True),
    "prefixes": of_random_prefixes,
    "candidates": of_single_candidates,
    "below": of_candidates_below,
}


def sizes_of(
    design: str, made: World, queries: tuple[int, ...], candidates: tuple[int, ...]
) -> Iterator[int]:
    """Numbers of units that a world is large enough for."""
    of_queries_ = design in ("queries", "queries, strata", "prefixes")
    most = len(made.people.queries) if of_queries_ else len(made.people.unknown) // 3
    yield from (n for n in (queries if of_queries_ else candidates) if n < most)
