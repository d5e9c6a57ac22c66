"""The sums over tasks that every averaged metric, its chance level and its interval are made of."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from owkg.metrics import questions
from owkg.metrics.chance import rank_moments
from owkg.metrics.measures import MACRO, Measure, Probe, Weighting, probe_loss
from owkg.metrics.median import mass
from owkg.metrics.metric import Metric
from owkg.metrics.tasks import Tasks
from owkg.metrics.ties import Ties, half_rank_weights, weights_of_ranks


class Parts(NamedTuple):
    """Sums over the tasks of each question, of weights w and of the weights h of ranks.

    Of one question each, or one entry for all where nothing but the totals is asked.

    Attributes:
        weight: sum of w.
        value: sum of w h.
        chance: sum of w E[h], ranks uniform on 1 .. N.
        variance: sum of w^2 V[h], likewise.
        best: sum of w h(1).
        worst: sum of w h(N), over all questions.
    """

    weight: Float[np.ndarray, "questions"]
    value: Float[np.ndarray, "questions"]
    chance: Float[np.ndarray, "questions"]
    variance: Float[np.ndarray, "questions"]
    best: Float[np.ndarray, "questions"]
    worst: float


def task_weight(tasks: Tasks, weighting: Weighting) -> Float[np.ndarray, "tasks"] | None:
    """The weight of each task; None: all 1.

    Raises:
        ValueError: if the weighting asks for a popularity that is not known.
    """
    weight = tasks.weight
    for name, counts, exponent in (
        ("popularity", tasks.popularity, -weighting.popularity),
        ("relation_popularity", tasks.relation_popularity, -weighting.relation_popularity),
        ("negatives", tasks.candidates, weighting.negatives),
    ):
        if exponent == 0:
            continue
        if counts is None:
            raise ValueError(
                f"a metric that weighs by {name.replace('_', ' ')} needs the column {name} in the rank "
                "table, or the graph that it is counted in (`kg`)."
            )
        base = counts + (-1.0 if name == "negatives" else 1.0)
        if abs(exponent) * np.log(max(base.max(), 2.0)) > 200:
            # Only ratios count; with the largest at 1 no power overflows, nor do all of them vanish.
            base = base / (base.min() if exponent < 0 else base.max())
        factor = base**exponent
        weight = factor if weight is None else weight * factor
    largest = 1.0 if weight is None else weight.max()
    if weight is None or largest == 0 or 1e-100 < largest < 1e100:
        return weight
    return weight / largest


def _times(values: np.ndarray, *factors: np.ndarray | None) -> np.ndarray:
    """`values`, a new array, times each factor that there is."""
    for factor in factors:
        if factor is not None:
            values *= factor
    return values


class _Read(NamedTuple):
    """How tables over ranks and over numbers of candidates are summed over the tasks.

    Attributes:
        of_ranks: sum of w h(rank) under a tie rule.
        of_candidates: sum of w f(N), f a table; with True: of w^2 f(N).
        weight: sum of w.
    """

    of_ranks: Callable[[Metric, Ties], np.ndarray]
    of_candidates: Callable[[np.ndarray, bool], np.ndarray]
    weight: np.ndarray


def _by_question(tasks: Tasks, weight: np.ndarray | None, scale: np.ndarray | None) -> _Read:
    """Sums over each question: every task is looked up in the table."""

    def total(values: np.ndarray) -> np.ndarray:
        if tasks.question is None:
            return values
        return np.bincount(tasks.question, values, tasks.num_questions)

    def of_candidates(table: np.ndarray, squared: bool) -> np.ndarray:
        twice = (scale, weight) if squared else ()
        return total(_times(table[tasks.candidates], scale, weight, *twice))

    ones = np.ones(len(tasks.optimistic)) if weight is None else weight
    return _Read(
        lambda metric, rule: total(_times(weights_of_ranks(metric, tasks, rule), scale, weight)),
        of_candidates,
        total(ones),
    )


def _in_all(
    tasks: Tasks, weight: np.ndarray | None, scale: np.ndarray | None, tallies: dict[Any, np.ndarray]
) -> _Read:
    """Sums over all tasks: how much weight lies on each rank is counted once, for every metric."""
    size = int(tasks.candidates.max()) + 1
    factor = weight if scale is None else _times(scale.copy(), weight)

    def tally(name: Any, count: Callable[[], np.ndarray]) -> np.ndarray:
        if name not in tallies:
            tallies[name] = count()
        return tallies[name]

    def of_ranks(metric: Metric, rule: Ties) -> np.ndarray:
        on_ranks = tally(rule, lambda: mass(tasks, rule, factor))
        halves = half_rank_weights(metric, size - 1)
        return (on_ranks * halves[: len(on_ranks)]).sum(keepdims=True)

    def of_candidates(table: np.ndarray, squared: bool) -> np.ndarray:
        power = None if factor is None else factor**2 if squared else factor
        counted = tally(squared, lambda: np.bincount(tasks.candidates, power, size).astype(np.float64))
        return (counted * table[:size]).sum(keepdims=True)

    return _Read(
        of_ranks,
        of_candidates,
        np.array([float(len(tasks.optimistic)) if weight is None else weight.sum()]),
    )


def parts_by_ties(
    measure: Measure,
    weighting: Weighting,
    tasks: Tasks,
    rules: tuple[Ties, ...],
    *,
    by_question: bool,
    num_entities: int | None = None,
    tallies: dict[Any, np.ndarray] | None = None,
) -> dict[Ties, Parts] | None:
    """The sums of a measure under each tie rule; only `value` differs between them.

    Args:
        measure: an averaged one: not a median, not a dispersion.
        weighting: of the tasks.
        tasks: at least one.
        rules: of ties.
        by_question: False: only the totals, arrays of one entry.
        num_entities: N of PROBE's rank transformer, for all tasks; their candidates when None.
        tallies: kept between calls with the same tasks and weighting, so that ranks are counted once.

    Returns:
        None where the measure is macro and the questions have no one list (`questions.answers_of`).
    """
    if isinstance(measure, MACRO):
        return _macro_parts(measure, tasks, rules, by_question)
    weight = task_weight(tasks, weighting)
    metric = probe_loss(measure.sharpness) if isinstance(measure, Probe) else measure
    if not isinstance(metric, Metric):
        raise ValueError(f"`measure` must be an averaged one, got {measure!r}.")
    scale = _probe_scale(metric, tasks, num_entities) if isinstance(measure, Probe) else None
    in_all = _in_all(tasks, weight, scale, {} if tallies is None or scale is not None else tallies)
    read = _by_question(tasks, weight, scale) if by_question else in_all
    largest = int(tasks.candidates.max())
    mean, variance = rank_moments(metric, largest)
    halves = half_rank_weights(metric, largest)
    # PROBE is 1 - g(r) / g(N): one for each weight, less what the scaled losses sum to.
    offset = read.weight if isinstance(measure, Probe) else 0.0
    first = 1.0 if isinstance(measure, Probe) else float(halves[2])
    last = in_all.of_candidates(halves[::2], False)
    shared = {
        "weight": read.weight,
        "chance": offset + read.of_candidates(mean, False),
        "variance": read.of_candidates(variance, True),
        "best": read.weight if first == 1 else first * read.weight,
        "worst": float(last[0] + np.sum(offset)),
    }
    if not tasks.tied:
        same = Parts(value=offset + read.of_ranks(metric, rules[0]), **shared)
        return dict.fromkeys(rules, same)
    return {rule: Parts(value=offset + read.of_ranks(metric, rule), **shared) for rule in rules}


def _probe_scale(loss: Metric, tasks: Tasks, num_entities: int | None) -> np.ndarray:
    """-1 / g(N): PROBE's score of rank r is 1 - g(r) / g(N); with one candidate it is 1."""
    if num_entities is not None:
        if num_entities < tasks.candidates.max():
            raise ValueError(
                f"`num_entities` must be at least the candidates of every task, "
                f"{int(tasks.candidates.max())}, got {num_entities}."
            )
        sizes = np.full(len(tasks.candidates), num_entities)
    else:
        sizes = tasks.candidates
    last = np.ascontiguousarray(half_rank_weights(loss, int(sizes.max()))[::2])
    scale = np.zeros_like(last)
    scale[2:] = -1 / last[2:]
    return scale[sizes]


def _macro_parts(
    measure: questions.Macro, tasks: Tasks, rules: tuple[Ties, ...], by_question: bool
) -> dict[Ties, Parts] | None:
    lists = questions.answers_of(tasks)
    if lists is None:
        return None
    measure = questions.shortened(measure, lists)

    def total(values: np.ndarray) -> np.ndarray:
        if not by_question:
            return values.sum(keepdims=True)
        return np.bincount(lists.question, values, tasks.num_questions)

    mean, variance = questions.chance(measure, lists)
    shared = {
        "weight": total(lists.weight),
        "chance": total(lists.weight * mean),
        "variance": total(lists.weight**2 * variance),
        "best": total(lists.weight * questions.best_value(measure, lists)),
        "worst": float(np.dot(lists.weight, questions.worst_value(measure, lists))),
    }
    values = {rule: questions.values(measure, lists, rule) for rule in (rules if tasks.tied else rules[:1])}
    found = {rule: Parts(value=total(lists.weight * value), **shared) for rule, value in values.items()}
    return {rule: found.get(rule, found[rules[0]]) for rule in rules}


class Moments(NamedTuple):
    """Sums over questions of the parts, and of their products: all that a standard error takes.

    The parts are in the order of `Parts`: weight, value, chance, variance, best.

    Attributes:
        totals: sum of each part.
        gram: sum of the product of each two, less the product of their sums over the number of questions.
        worst: as in `Parts`.
        questions: how many; 1 where only totals are known.
    """

    totals: Float[np.ndarray, "5"]
    gram: Float[np.ndarray, "5 5"]
    worst: float
    questions: int


def moments_of(by_ties: dict[Ties, Parts]) -> dict[Ties, Moments]:
    """The moments of the parts under each tie rule; what the rules share is summed once."""
    any_parts = next(iter(by_ties.values()))
    count = len(any_parts.weight)
    shared = np.stack([any_parts.weight, any_parts.chance, any_parts.variance, any_parts.best])
    of_shared = shared @ shared.T
    found: dict[int, Moments] = {}
    for parts in by_ties.values():
        if id(parts) in found:
            continue
        order = [1, 0, 2, 3, 4]  # value, weight, ... -> weight, value, ...
        cross = shared @ parts.value
        gram = np.block([[parts.value @ parts.value, cross], [cross[:, None], of_shared]])[
            np.ix_(order, order)
        ]
        totals = np.array([part.sum() for part in (parts.value, *shared)])[order]
        centred = gram - np.outer(totals, totals) / count
        found[id(parts)] = Moments(totals, centred, parts.worst, count)
    return {rule: found[id(parts)] for rule, parts in by_ties.items()}
