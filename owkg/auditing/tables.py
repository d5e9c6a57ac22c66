"""Tables of an audit, for one metric and one average."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import polars.selectors as cs
from jaxtyping import Float64
from scipy import special

from owkg.auditing import order, result
from owkg.auditing.breakdown import breakdown_over_seeds
from owkg.auditing.gamma import sensitivity
from owkg.auditing.implied import Answers
from owkg.auditing.lists import Prepared
from owkg.auditing.numbers import Unevenness
from owkg.auditing.result import BOX, FACTS, GRID, MODELS, PAIRS, POWER
from owkg.errors import ArgumentError
from owkg.judge.scores import Scores
from owkg.judge.significance import difference_intervals, pairwise
from owkg.keys import Seed
from owkg.metrics import Metric
from owkg.rank_weights import RankWeight
from owkg.rank_weights.tables import rank_weights
from owkg.ranks import RankTable
from owkg.stats.interval import BoundedMean, intervals

# Columns of `models` that depend on the stated sparsity.
_IMPLIED = tuple(f"{of}{end}" for of in ("strength", "full") for end in ("", "_low", "_high"))

AVERAGES = ("answers", "queries")
"""Averages of a metric: over all answers (micro), or over queries of each query's mean (query-averaged)."""

# Sparsities of the grid; tables show every other one.
_SPARSITIES = np.round(np.arange(0, 0.951, 0.05), 2)
_SHOWN = slice(0, 19, 2)
# Largest sparsity that tables show.
LARGEST = float(_SPARSITIES[_SHOWN][-1])
# Correlations, and differences of correlations, that are tried.
_CORRELATIONS = np.round(np.arange(-0.6, 0.601, 0.05), 2)
# Largest sparsity and correlation that are tried.
LIMITS = float(_SPARSITIES[-1]), float(_CORRELATIONS[-1])
# Distance between points of a stated range.
_STEP = 0.05
# Numbers of queries of the power curve.
_QUERIES = np.unique(np.geomspace(30, 100_000, 36).round().astype(int))
# Tolerated probability of the wrong order for required queries.
_WRONG = 0.05


UNEVEN = (0.0, 1.5)
"""Default range of unevenness: the range on which intervals were measured."""

# Distance between points of a range of unevenness.
_UNEVEN_STEP = 0.75


def unevenness_points(low: float, high: float) -> tuple[Unevenness, ...]:
    """Kinds of unevenness within a range: rates that differ at random, or rise or fall with the answers.

    The first kind is the middle of the range, at random. As in `points_of`, a range has all points of a
    larger range that lie in it, in addition to its own ends and middle.
    """
    steps = np.arange(np.ceil(low / _UNEVEN_STEP), np.floor(high / _UNEVEN_STEP) + 1) * _UNEVEN_STEP
    values = ((low + high) / 2, low, high, *steps.tolist())
    each = (one for u in values for one in ((u, 0.0), (0.0, u), (0.0, -u)))
    return tuple(dict.fromkeys(Unevenness(*one) for one in each))


GIVEN = "given"
"""Source of what the user states."""


class Box(NamedTuple):
    """Assumptions about the missing facts: the stated range.

    Attributes:
        sparsity: (low, high); None if nothing is stated, also if judging gives a lower bound.
        correlation: (low, high) of each system; None if nothing is stated, which means 0.
        source: sources of "sparsity" and "correlation": `GIVEN`, perhaps with more, or words; None if there
            is no source.
        found: (low, high) of the sparsity if no more is missing than judging found; None if nothing is judged
            or `sparsity` is known.
        unevenness: kinds of unevenness of the missing rates, the middle of the range first.
        num_found: number of missing answers to the queries of the test that judging found.
        limit: lowest sparsity that judgements allow; 0 without judgements.
        unused: reason why drawn judgements are used only as labels, as a sentence; "" otherwise.
        contradicted: whether a drawn pool shows a sparsity above the stated range.
    """

    sparsity: tuple[float, float] | None
    correlation: dict[str, tuple[float, float]] | None
    source: dict[str, str | None]
    found: tuple[float, float] | None = None
    unevenness: tuple[Unevenness, ...] = unevenness_points(*UNEVEN)
    num_found: int = 0
    limit: float = 0.0
    unused: str = ""
    contradicted: bool = False

    def each(self, seen: order.Observed) -> list[order.Observed]:
        """Observed values under each unevenness."""
        answers = seen.answers
        return [seen._replace(answers=answers._replace(unevenness=one)) for one in self.unevenness]

    def correlations(self, system: str) -> np.ndarray:
        """Points of a system's range of correlations."""
        if self.correlation is None:
            return np.zeros(1)
        return points_of(*self.correlation[system])


def points_of(low: float, high: float) -> Float64[np.ndarray, "points"]:
    """Points of a range: the multiples of `_STEP` in it, its ends and its middle.

    A range has all points of a larger range that lie in it, in addition to its own ends and middle. So a
    larger range never gives narrower results because its points are further apart.
    """
    multiples = np.arange(np.ceil(low / _STEP), np.floor(high / _STEP) + 1) * _STEP
    return np.unique(np.round(np.append(multiples, [low, (low + high) / 2, high]), 12))


class Part(NamedTuple):
    """One metric and average of all systems, the best first.

    Attributes:
        metric: the metric.
        weight: its weight of ranks.
        average: "answers" or "queries".
        scores: scores by query; their ratio of sums is the metric.
        seen: values, covariance and answers.
        known: number of known answers.
        ends: metric if every answer is last, and if every answer is first.
    """

    metric: Metric
    weight: RankWeight
    average: str
    scores: Scores
    seen: order.Observed
    known: int
    ends: tuple[float, float]

    @property
    def named(self) -> dict[str, str]:
        """Columns that are the same in every row of a table."""
        return {"metric": self.metric.name, "average": self.average}


def metric_part(of: Scores, metric: Metric, average: str, tables: Mapping[str, RankTable]) -> Part:
    """`Part` of one metric and average.

    Args:
        of: scores by query of this metric and possibly others.
        metric: plain mean of a rank weight.
        average: one of `AVERAGES`.
        tables: rank tables of the systems.
    """
    weight_of = metric.measure
    assert isinstance(weight_of, RankWeight)
    m = of.metrics.index(metric.name)
    value, weight = of.value[m], of.weight[m]
    sizes = weight.round().astype(np.int64)
    counts, queries = np.unique(sizes, return_counts=True)
    share = queries * (1 if average == "queries" else counts)
    per = weight if average == "queries" else np.ones_like(weight)
    value, weight = value / per, weight / per
    ranked = np.argsort(-value.sum(1), kind="stable")
    seeds = tuple(one and one._replace(value=one.value[[m]] / per) for one in of.seeds)
    one = of._replace(
        systems=tuple(of.systems[i] for i in ranked),
        metrics=(metric.name,),
        larger_is_better=(True,),
        value=value[None, ranked],
        weight=weight[None],
        seeds=tuple(seeds[i] for i in ranked) if seeds else (),
    )
    # The candidates of a task exclude the other answers to its query.
    frame = next(iter(tables.values())).frame
    candidates = frame["candidates"].to_numpy()
    entities = int(np.median(candidates) + np.median(np.repeat(sizes, sizes))) - 1
    answers = Answers(counts, share / share.sum(), max(entities, int(counts.max()) + 2), queries)
    seen = order.observed(
        one.value[0], weight, answers, one.spread(0) if seeds else None, one.num_seeds if seeds else 1
    )
    last = frame.with_columns(last=pl.Series(rank_weights(weight_of, candidates)))
    if average == "queries":
        given = pl.when(pl.col("side") == "tail").then("head").otherwise("tail")
        last = last.group_by("side", given, "relation", maintain_order=True).agg(pl.mean("last"))
    ends = float(last["last"].to_numpy().mean()), float(rank_weights(weight_of, np.array([1]))[0])
    return Part(metric, weight_of, average, one, seen, int(sizes.sum()), ends)


def frames(
    part: Part, box: Box, ready: Prepared, ci: float, test: str, seed: Seed
) -> dict[str, pl.DataFrame]:
    """All tables of a metric, by name.

    Args:
        part: metric and average.
        box: stated range.
        ready: ranks and lists of the systems, with the labels of judged candidates.
        ci: level of intervals, and probability from which an order counts as sure.
        test: test of the observed difference.
        seed: seed of all random draws.
    """
    systems = part.scores.systems
    one, other = np.triu_indices(len(systems), 1)
    called = {"first": [systems[i] for i in one], "second": [systems[i] for i in other]} | part.named
    limits = _limits(part, ci)
    fulls = _Fulls(part, box)
    models = _models(part, box, fulls, ci, limits)
    grid, of_box = _grid_and_box(part, fulls, (one, other), ci, limits)
    broken, facts = _breakdowns(part, called, ready)
    tested = pairwise(part.scores, part.metric.name, test=test, key=seed)
    most = float(np.ptp(part.ends))  # largest possible difference of two systems
    low, high = np.clip(difference_intervals(part.scores, part.metric.name, level=ci), -most, most)
    apart = np.where(tested.difference > 0, tested.difference, np.nan)
    z = -special.ndtri(_WRONG)
    # More queries do not reduce the variance over seeds.
    left = apart**2 - z**2 * tested.seed_variance
    # Number of queries at which the error equals the difference; one if all queries have the same difference.
    size = np.divide(tested.deviation**2, left, out=np.full(len(left), np.inf), where=left > 0)
    size = np.maximum(size, 1e-12)
    variance = tested.deviation[:, None] ** 2 / _QUERIES + tested.seed_variance[:, None]
    pairs = pl.DataFrame(
        called
        | {
            "difference": tested.difference,
            "ci_low": low,
            "ci_high": high,
            "p_value": tested.p,
            **broken,
            **_of_order(part, box, fulls, (one, other), ci),
            "required_queries": np.where(np.isfinite(size), np.maximum(np.ceil(z**2 * size), 1), np.nan),
        }
    )
    pairs = pairs.with_columns(cs.float().fill_nan(None))
    told = _verdicts(pairs, box, part.known, ci, ready.num_found)
    pairs = pairs.with_columns(verdict=pl.Series(told, dtype=pl.String))
    contradicted = max(ready.num_found, box.num_found) > _allowed(box, part.known)
    # Probabilities from the found sparsity only serve the verdict, and a contradiction allows no conclusion.
    if box.sparsity is None or contradicted:
        pairs = pairs.drop("probability_low", "probability_high", strict=False)
    if contradicted:
        models = models.with_columns(pl.lit(None, pl.Float64).alias(name) for name in _IMPLIED)
    error = np.sqrt(np.maximum(variance, 1e-12 * np.nan_to_num(apart[:, None], nan=1.0) ** 2 / _QUERIES))
    wrong = special.ndtr(-np.nan_to_num(apart)[:, None] / error)
    grid = {"model": systems} | part.named, {"sparsity": _SPARSITIES[_SHOWN]}, grid
    over = {"sparsity": _SPARSITIES[_SHOWN], "correlation_difference": _CORRELATIONS}
    return {
        "models": models,
        "pairs": _framed(pairs, PAIRS),
        "grid": _framed(_long(*grid), GRID),
        "box": _framed(_long(called, over, {"probability": of_box}), BOX),
        "facts": facts,
        "power": _framed(_long(called, {"queries": _QUERIES}, {"wrong_order": wrong}), POWER),
    }


def _limits(part: Part, ci: float) -> Float64[np.ndarray, "systems 2"]:
    """Confidence intervals of the values."""
    weight = part.scores.weight[0]
    effective = float(weight.sum() ** 2 / (weight @ weight))
    error, freedom = part.seen.errors
    seeds = part.scores.seeded
    each = zip(part.seen.value.tolist(), error.tolist(), freedom.tolist(), seeds.tolist(), strict=True)
    means = [
        BoundedMean(value, e, *part.ends, effective, True, df if seeded else None)
        for value, e, df, seeded in each
    ]
    return intervals(means, ci)


class _Fulls:
    """Full-test metrics of all systems at their correlations and each unevenness; grids are computed once.

    Attributes:
        each: observed values under each unevenness.
        points: correlations of all systems.
        at: indices of each system's correlations, [systems, most points]; repeated if it has fewer.
        middle: index of the middle of each system's correlations.
    """

    def __init__(self, part: Part, box: Box) -> None:
        self._name, self._weight = part.metric.name, part.weight
        self.each = box.each(part.seen)
        own = [box.correlations(system) for system in part.scores.systems]
        self.points = np.unique(np.concatenate(own))
        longest = max(map(len, own))
        self.at = np.stack([np.resize(np.searchsorted(self.points, rho), longest) for rho in own])
        self.middle = np.array([np.abs(self.points - (rho[0] + rho[-1]) / 2).argmin() for rho in own])
        self._found: dict[bytes, list[order.Full]] = {}

    def of(self, sparsity: np.ndarray) -> list[order.Full]:
        """Full-test metrics under each unevenness, [systems, sparsities, points]."""
        key = sparsity.tobytes()
        if key not in self._found:
            self._found[key] = [
                order.full_metrics(self._name, self._weight, seen, sparsity, self.points)
                for seen in self.each
            ]
        return self._found[key]

    def ranges(self, sparsity: np.ndarray, ci: float, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) over all kinds of unevenness, [systems, sparsities, points]."""
        return order.full_ranges(self._name, self.each, self.of(sparsity), sparsity, ci, limits)

    def own(self, values: np.ndarray) -> np.ndarray:
        """Values at each system's own points, out of all points, [systems, sparsities, most points]."""
        return np.take_along_axis(values, self.at[:, None, :], 2)


def _models(part: Part, box: Box, fulls: _Fulls, ci: float, limits: np.ndarray) -> pl.DataFrame:
    """Values with intervals and, if a sparsity is stated, what they imply over the range.

    Points of the range under which a value is impossible are left out.

    Raises:
        ValueError: if the values of all systems are impossible under the whole range.
    """
    seen, systems = part.seen, part.scores.systems
    columns: dict[str, Any] = {"model": list(systems)} | part.named
    columns |= {"queries": len(part.scores.weight[0]), "answers": part.known, "value": seen.value}
    columns |= {"ci_low": limits[:, 0], "ci_high": limits[:, 1]}
    sparsity = _box_sparsities(box)
    if sparsity is not None:
        rows = _over_box(fulls, sparsity, ci, limits)
        if all(row["refuted"] == 1 for row in rows):
            raise ArgumentError("sparsity", _impossible(part, box))
        for key in rows[0]:
            columns[key] = [row[key] for row in rows]
    return _framed(pl.DataFrame(columns), MODELS)


def _over_box(fulls: _Fulls, sparsity: np.ndarray, ci: float, limits: np.ndarray) -> list[dict[str, float]]:
    """Strength and full-test metric of each system in the middle of the range, and their ends over it."""
    first = fulls.of(sparsity)[0]
    half = int(np.abs(sparsity - (sparsity[0] + sparsity[-1]) / 2).argmin())
    # A metric that is the same at every strength implies no strength.
    span = first.best - first.chance or np.nan
    rows = []
    for i, (low, high) in enumerate(zip(*map(fulls.own, fulls.ranges(sparsity, ci, limits)), strict=True)):
        possible = np.isfinite(low)
        row = {"full": first.full[i, half, fulls.middle[i]], "full_low": np.nan, "full_high": np.nan}
        if possible.any():
            row |= {"full_low": np.nanmin(low), "full_high": np.nanmax(high)}
        strengths = {
            key.replace("full", "strength"): np.clip((x - first.chance) / span, 0, 1)
            for key, x in row.items()
        }
        # Repeated correlations count once.
        once = np.unique(fulls.at[i], return_index=True)[1]
        refuted = {"refuted": 1 - possible[:, once].mean()}
        rows.append({key: float(x) for key, x in (row | strengths | refuted).items()})
    return rows


def _impossible(part: Part, box: Box) -> str:
    """Reason why no point of the range is possible."""
    low, high = box.sparsity or (0.0, 0.0)
    stated = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    value = ", ".join(f"{x:.3f}" for x in part.seen.value[:3])
    other = "A lower sparsity may be possible."
    why = f"no strength gives a {part.metric.name} of {value}"
    if box.correlation is not None:
        why += " under the stated correlations"
        other = "A lower sparsity, or another correlation, may be possible."
    why += f" among {part.seen.answers.num_entities:,} candidates"
    return f"of {stated} is impossible for every system: {why}. {other}"


def _of_order(
    part: Part, box: Box, fulls: _Fulls, pairs: tuple[np.ndarray, np.ndarray], ci: float
) -> dict[str, Any]:
    """Probabilities over the range, and the sparsity and correlation that break the order."""
    name, systems = part.metric.name, part.scores.systems
    own = [box.correlations(system) for system in systems]
    found: dict[str, Any] = {}
    conditional = _box_sparsities(box._replace(sparsity=box.sparsity or box.found))
    for label, sparsity in (("box", conditional), ("grid", _SPARSITIES)):
        if sparsity is None:
            continue
        parts = []
        for one, full in zip(fulls.each, fulls.of(sparsity), strict=True):
            chosen = [fulls.own(values) for values in (full.full, full.slope)]
            both = [(values[pairs[0]][..., None], values[pairs[1]][..., None, :]) for values in chosen]
            parts.append(order.probabilities(name, one, sparsity, pairs, *both))
        # [pairs, sparsities, correlations of the first and of the second, unevennesses]
        sure = np.stack(parts, -1)
        if label == "box":
            flat = sure.reshape(len(sure), -1)
            none = ~np.isfinite(flat).any(1)
            for end, fill, extreme in (("low", np.inf, np.min), ("high", -np.inf, np.max)):
                ends = extreme(np.where(np.isfinite(flat), flat, fill), axis=1)
                found[f"probability_{end}"] = np.where(none, np.nan, ends)
        else:
            # If no correlation of the range is feasible, nothing breaks.
            flat = sure.reshape(*sure.shape[:2], -1)
            least = np.where(np.isfinite(flat), flat, np.inf).min(2)
            found["breakdown_sparsity"] = order.breaking_sparsity(sparsity, least, ci)
    sparsity = _box_sparsities(box)
    sparsity = _SPARSITIES[_SPARSITIES <= LARGEST] if sparsity is None else sparsity
    wide = order.full_metrics(name, part.weight, fulls.each[0], sparsity, _CORRELATIONS)
    full = fulls.of(sparsity)[0]
    inside = np.where(full.inside, full.full, np.nan)
    gap = np.full(len(pairs[0]), np.nan)
    for i in range(len(systems)):
        rows = np.flatnonzero(pairs[0] == i)
        if not rows.size:
            continue
        mine = inside[[i]][:, :, np.searchsorted(fulls.points, own[i])]
        theirs = np.where(wide.inside, wide.full, np.nan)[pairs[1][rows]]
        gap[rows] = order.breaking_correlation(
            np.broadcast_to(mine, (len(rows), *mine.shape[1:])), theirs, own[i], _CORRELATIONS
        )
    return found | {"breakdown_correlation": gap}


def _box_sparsities(box: Box) -> np.ndarray | None:
    return None if box.sparsity is None else points_of(*box.sparsity)


def _grid_and_box(
    part: Part, fulls: _Fulls, pairs: tuple[np.ndarray, np.ndarray], ci: float, limits: np.ndarray
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Columns of the grid [systems, sparsities], and probabilities [pairs, sparsities, correlations].

    Each system has the middle of its range of correlations, and missing rates have the middle of their range
    of unevenness; intervals cover the whole range of unevenness. The second system of a pair has the
    correlation of the first plus the difference on the map.
    """
    name, sparsity = part.metric.name, _SPARSITIES[_SHOWN]
    first = fulls.of(_SPARSITIES)[0]
    columns = np.stack(
        [
            np.take_along_axis(values[:, _SHOWN], fulls.middle[:, None, None], 2)[..., 0]
            for values in (first.strength, first.full, *fulls.ranges(_SPARSITIES, ci, limits))
        ]
    )
    middle = fulls.points[fulls.middle]
    sure = np.full((len(pairs[0]), len(sparsity), len(_CORRELATIONS)), np.nan)
    for rho in np.unique(middle):
        tried = np.abs(rho + _CORRELATIONS) <= 1
        own = int(np.flatnonzero(_CORRELATIONS[tried] == 0)[0])
        seen = fulls.each[0]
        full = order.full_metrics(name, part.weight, seen, sparsity, (rho + _CORRELATIONS)[tried])
        these = middle == rho
        rows = np.flatnonzero(these[pairs[0]])
        one, other = (index[rows] for index in pairs)
        values = [(x[one][..., [own]], x[other]) for x in (full.full, full.slope)]
        sure[np.ix_(rows, np.arange(len(sparsity)), np.flatnonzero(tried))] = order.probabilities(
            name, seen, sparsity, (one, other), *values
        )
    return dict(zip(("strength", "full", "full_low", "full_high"), columns, strict=True)), sure


def _allowed(box: Box, known: int) -> float:
    """Largest number of missing answers that is allowed; infinite if no sparsity is stated."""
    stated = str(box.source["sparsity"]).startswith(GIVEN)
    most = box.sparsity[1] if box.sparsity is not None and stated else 1.0
    return known * most / (1 - most) if most < 1 else np.inf


def _verdicts(pairs: pl.DataFrame, box: Box, known: int, ci: float, judged: int = 0) -> list[str]:
    """Verdict on each pair, by docs/understand/audit.md; `judged` answers are not in the test.

    `probability_low` and `probability_high` are over the range, or if it has no upper end, over the
    sparsities that judging found.
    """
    allowed = _allowed(box, known)
    missing = allowed - judged
    independent = box.correlation is None
    holds, reversed_ = (
        (result.HOLDS_IF_INDEPENDENT, result.REVERSED_IF_INDEPENDENT)
        if independent
        else (result.HOLDS_IN_RANGE, result.REVERSED_IN_RANGE)
    )
    if box.sparsity is None:
        holds = result.HOLDS_IF_FOUND_AND_INDEPENDENT if independent else result.HOLDS_IF_FOUND
    found = []
    for row in pairs.iter_rows(named=True):
        low, high = (row.get(f"probability_{end}") for end in ("low", "high"))
        # If few queries all have the same difference, the test takes that for proof; the interval does not.
        significant = row["p_value"] <= 1 - ci and row["ci_low"] > 0
        turned = row["certified"] is not None and row["certified"] <= missing
        if judged and row["demonstrated"] == 0 and row["difference"] > 0:
            found.append(result.TURNED)
        elif significant and row["certified"] is None:
            found.append(result.HOLDS)
        elif max(judged, box.num_found) > allowed or box.contradicted:
            found.append(result.CONTRADICTED)
        elif significant and not turned:
            found.append(result.HOLDS)
        elif high is not None and high < 1 - ci and box.sparsity is not None:
            found.append(reversed_)
        elif significant and low is not None and low >= ci:
            found.append(holds)
        else:
            unstated = box.sparsity is None and box.found is None
            other = result.UNSTATED if significant and unstated else result.OPEN
            found.append(result.JUDGE_FIRST if row["demonstrated"] else other)
    return found


def _long(rows: dict[str, Any], over: dict[str, np.ndarray], values: dict[str, np.ndarray]) -> pl.DataFrame:
    """Rows for every point of a grid, from names [rows], axes, and values [rows, *grids]."""
    shape = next(iter(values.values())).shape
    columns: dict[str, Any] = {}
    for name, column in rows.items():
        columns[name] = column if isinstance(column, str) else np.repeat(column, int(np.prod(shape[1:])))
    for axis, (name, points) in enumerate(over.items(), 1):
        place = [1] * len(shape)
        place[axis] = -1
        columns[name] = np.broadcast_to(points.reshape(place), shape).ravel()
    return pl.DataFrame(columns | {name: value.ravel() for name, value in values.items()})


def _framed(frame: pl.DataFrame, schema: dict[str, Any]) -> pl.DataFrame:
    """Columns of a schema; null where the frame has no such column or no number."""
    lacking = [pl.lit(None, kind).alias(name) for name, kind in schema.items() if name not in frame.columns]
    frame = frame.with_columns(lacking).select(pl.col(name).cast(kind) for name, kind in schema.items())
    return frame.with_columns(cs.float().fill_nan(None))


def _breakdowns(
    part: Part, called: dict[str, Any], ready: Prepared
) -> tuple[dict[str, list[Any]], pl.DataFrame]:
    """Breakdown numbers of all pairs, and the facts that reverse each order."""
    found: dict[str, list[Any]] = {name: [] for name in ("certified", "demonstrated", "share", "gamma")}
    facts = []
    for first, second in zip(called["first"], called["second"], strict=True):
        several = ready.pairs(first, second, part.weight)
        pair = several[0][0]
        largest = int(max(max(p.largest.max(initial=0) + 2, p.latest.max(initial=0) + 1) for p, _ in several))
        weights = np.concatenate([[0.0], rank_weights(part.weight, np.arange(1, largest + 1))]).astype(
            np.float64
        )
        one = breakdown_over_seeds(several, weights, macro=part.average == "queries")
        certified, shown = one.certified, one.demonstrated
        found["certified"].append(certified if certified >= 0 else None)
        found["demonstrated"].append(shown if shown >= 0 else None)
        found["share"].append(certified / (certified + ready.num_answers) if certified >= 0 else None)
        gamma = sensitivity(pair, weights, macro=part.average == "queries").gamma if ready.depth else None
        found["gamma"].append(gamma if gamma is not None and np.isfinite(gamma) else None)
        if one.demonstrated > 0:
            chosen = pl.DataFrame(np.argwhere(one.facts), ["query", "candidate"], orient="row")
            listed = ready.candidates(first, second).cast({"query": pl.Int64, "candidate": pl.Int64})
            rows = listed.join(chosen, on=["query", "candidate"], how="semi", maintain_order="left")
            asked = ready.queries[rows["query"].to_numpy()]
            rows = rows.select("answer").with_columns(asked)
            names = {"first": first, "second": second} | part.named
            facts.append(_framed(rows.with_columns(pl.lit(v).alias(k) for k, v in names.items()), FACTS))
    return found, pl.concat(facts) if facts else pl.DataFrame(schema=FACTS)
