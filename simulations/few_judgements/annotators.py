"""Coverage under annotator errors, with an expert on a part, and at several looks, naive and corrected."""

import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from owkg.estimation.annotators import ErrorRates, corrected, rate_variance
from owkg.estimation.looks import look_levels
from owkg.estimation.measures import measures
from owkg.estimation.population import UNKNOWN
from owkg.estimation.proxy import free_proxy
from owkg.estimation.regression import Sample
from owkg.estimation.targets import Prepared, means, of_queries, prepared
from owkg.estimation.two_phase import expert_limits
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress
from owkg.terminal.tables import printed
from simulations.few_judgements.worlds import DEPTH, SYSTEMS, World, truths_of, world
from simulations.script import Out, Quick, Seed, save_table

_METRICS = ("p@10", "success@1", "rr", "success@10")
_OF_EXPERTS = ("p@10", "rr", "ap", "ndcg")
_QUERIES, _EXPERT, _GOLD = 100, 50, 200
_RATES = ((0.02, 0.1), (0.1, 0.1))
_LOOKS = ((50, 100, 150, 200), tuple(range(30, 201, 10)))
_EQUAL = 1e-12


class _Counted:
    """Shares of intervals that contain the truth, and their widths."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], list[float]] = {}
        self.width: dict[tuple[str, str], list[float]] = {}

    def add(self, how: str, metric: str, low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> None:
        """Adds the intervals of the systems in one draw."""
        hold = (low <= truth + _EQUAL) & (truth <= high + _EQUAL)
        self.held.setdefault((how, metric), []).append(float(hold[:SYSTEMS].mean()))
        self.width.setdefault((how, metric), []).append(float(np.median((high - low)[:SYSTEMS])))

    def rows(self, **said: str) -> list[dict[str, str | float]]:
        """A row for each method and metric."""
        return [
            said | {"how": how, "metric": metric, "coverage": float(np.mean(held))}
            | {"width": float(np.median(self.width[how, metric]))}
            for (how, metric), held in self.held.items()
        ]  # fmt: skip


def with_errors(made: World, fp: float, fn: float, replays: int, seed: int) -> list[dict[str, str | float]]:
    """100 queries judged with errors: uncorrected, corrected by known rates, or by 200 gold items."""
    people, truth = made
    proxy, size = free_proxy(people), len(people.queries)
    chosen = measures(_METRICS, DEPTH)
    ready = {one.name: prepared(one, people, [proxy], own=True) for one in chosen}
    truths = {one.name: truths_of(one, made) for one in chosen}
    counted, random = _Counted(), np.random.default_rng(seed)
    rates = ErrorRates(fp, fn)
    for _ in range(replays):
        rows = np.sort(random.choice(size, _QUERIES, replace=False))
        sample = Sample(rows, np.zeros(_QUERIES, np.int64), np.array([size]))
        wrong = np.where(truth > 0, random.random(len(truth)) < fn, random.random(len(truth)) < fp)
        drawn = np.isin(people.query, rows) & (people.label == UNKNOWN)
        said = np.where(drawn, np.where(wrong, 1 - truth, truth), people.label).astype(np.int8)
        seen = [random.binomial(_GOLD, p) / _GOLD for p in (fp, fn)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about rates that make intervals wide
            gold = ErrorRates(seen[0], seen[1], _GOLD, _GOLD)
        for one in chosen:
            own, true = ready[one.name], truths[one.name]
            plain = of_queries(own, people, said, sample)
            counted.add("as judged", one.name, plain.low, plain.high, true)
            for how, of in (("known rates", rates), ("200 gold items", gold)):
                if one.name == "Success@10" and of.fp > 0.05:
                    continue  # at such rates the correction raises an error
                noise = _noise(own, made, said, sample, of)
                got = of_queries(own, people, corrected(people, said, of), sample, noise=noise)
                counted.add(how, one.name, got.low, got.high, true)
    return counted.rows(errors=f"{fp:g}, {fn:g}")


def _noise(own: Prepared, made: World, said: np.ndarray, sample: Sample, of: ErrorRates) -> np.ndarray:
    return rate_variance(lambda labels: means(own, made.people, labels, sample).mean, made.people, said, of)


def with_an_expert(made: World, error: float, replays: int, seed: int) -> list[dict[str, str | float]]:
    """200 queries judged with errors, the first 50 of them also by an expert without errors."""
    people, truth = made
    proxy, size, n = free_proxy(people), len(people.queries), 2 * _QUERIES
    chosen = measures(_OF_EXPERTS, DEPTH)
    ready = {one.name: prepared(one, people, [proxy], own=True) for one in chosen}
    truths = {one.name: truths_of(one, made) for one in chosen}
    counted, random = _Counted(), np.random.default_rng(seed)
    for _ in range(replays):
        rows = random.choice(size, n, replace=False)
        sample = Sample(rows, np.zeros(n, np.int64), np.array([size]))
        first = Sample(np.sort(rows[:_EXPERT]), np.zeros(_EXPERT, np.int64), np.array([size]))
        wrong = random.random(len(truth)) < error
        cheap = np.where(people.label == UNKNOWN, np.where(wrong, 1 - truth, truth), people.label).astype(
            np.int8
        )
        right = truth.astype(np.int8)
        for one in chosen:
            own, true = ready[one.name], truths[one.name]
            got = expert_limits(own, people, cheap, right, sample, _EXPERT)
            counted.add("200, an expert on 50", one.name, got.low, got.high, true)
            alone = of_queries(own, people, right, first)
            counted.add("the expert's 50 alone", one.name, alone.low, alone.high, true)
            plain = of_queries(own, people, cheap, Sample(np.sort(rows), sample.stratum, sample.sizes))
            counted.add("200 as judged", one.name, plain.low, plain.high, true)
    return counted.rows(errors=f"{error:g}, {error:g}")


def with_looks(made: World, looks: tuple[int, ...], replays: int, seed: int) -> dict[str, str | float]:
    """Share of draws in which an interval of RR@10 misses the truth at some look."""
    people, truth = made
    size, proxy = len(people.queries), free_proxy(people)
    (of,) = measures("rr", DEPTH)
    own, true = prepared(of, people, [proxy], own=True), truths_of(of, made)
    levels = look_levels(list(looks), size)
    random = np.random.default_rng(seed)
    ever = {"naive": 0.0, "planned": 0.0}
    last = []
    for _ in range(replays):
        order = random.choice(size, looks[-1], replace=False)
        missed = {name: np.zeros(len(true), bool) for name in ever}
        for n, level in zip(looks, levels.tolist(), strict=True):
            sample = Sample(np.sort(order[:n]), np.zeros(n, np.int64), np.array([size]))
            for name, used in (("naive", 0.95), ("planned", level)):
                got = of_queries(own, people, truth, sample, level=used)
                missed[name] |= (got.low > true + _EQUAL) | (true > got.high + _EQUAL)
                if n == looks[-1]:
                    last.append((name, float(np.median(got.high - got.low))))
        for name in ever:
            ever[name] += float(missed[name].mean()) / replays
    width = {name: float(np.median([w for own_name, w in last if own_name == name])) for name in ever}
    return {"looks": f"{looks[0]}, {looks[1]}, ..., {looks[-1]} ({len(looks)})", **ever} | {
        "wider at the end": width["planned"] / width["naive"]
    }


def annotators(
    *,
    replays: Annotated[
        int, typer.Option(min=1, help="Number of draws of each setting; 40 with --quick.")
    ] = 1000,
    quick: Quick = False,
    seed: Seed = 0,
    out: Out = Path("out"),
) -> None:
    """Coverage when annotators err, when an expert judges a part again, and at several looks."""
    writable_folder(out)
    made = world("clustered", "edge", queries=300 if quick else 2000, seed=seed)
    replays = min(replays, 40) if quick else replays
    rows, experts, looks = [], [], []
    steps = len(_RATES) + 2 + len(_LOOKS)
    with progress("annotators", "settings") as told:
        for fp, fn in _RATES:
            rows += with_errors(made, fp, fn, replays, seed)
            told(len(rows) and 1 + _RATES.index((fp, fn)), steps)
        for i, error in enumerate((0.05, 0.1)):
            experts += with_an_expert(made, error, replays, seed)
            told(len(_RATES) + 1 + i, steps)
        for i, one in enumerate(_LOOKS[: 1 if quick else None]):
            looks.append(with_looks(made, one, replays, seed))
            told(len(_RATES) + 3 + i, steps)
    for name, found in (("errors", rows), ("experts", experts), ("looks", looks)):
        save_table(pl.DataFrame(found), out / f"few_judgements_{name}.csv")
    titles = {"errors of annotators (fp, fn), 100 queries": rows, "an expert on a part": experts}
    for title, found in titles.items():
        cells = [
            [*(str(row[name]) for name in ("errors", "how", "metric")), *_numbers(row, "coverage", "width")]
            for row in found
        ]
        printed(title, ["errors", "labels", "metric", "coverage", "width"], cells)
    heads = ["looks", "naive", "planned", "wider at the end"]
    cells = [[str(row["looks"]), *_numbers(row, *heads[1:])] for row in looks]
    printed("share of draws that miss the truth at some look", heads, cells)


def _numbers(row: dict[str, str | float], *names: str) -> list[str]:
    return [f"{row[name]:.3f}" for name in names]
