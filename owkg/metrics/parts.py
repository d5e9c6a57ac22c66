"""The sums over each question that every averaged metric, its chance level and its interval are made of."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from owkg.metrics import questions
from owkg.metrics.chance import rank_moments
from owkg.metrics.measures import MACRO, Measure, Probe, Weighting, probe_loss
from owkg.metrics.metric import Metric
from owkg.metrics.tasks import Tasks
from owkg.metrics.ties import Ties, half_rank_weights, weights_of_ranks


class Parts(NamedTuple):
    """Sums over the tasks of each question, of weights w and of the weights h of ranks.

    Of one question, or of all where nothing but the totals is asked.

    Attributes:
        weight: sum of w.
        value: sum of w h.
        chance: sum of w E[h], ranks uniform on 1 .. N.
        variance: sum of w^2 V[h], likewise.
        best: sum of w h(1).
        worst: sum of w h(N).
    """

    weight: Float[np.ndarray, "*questions"]
    value: Float[np.ndarray, "*questions"]
    chance: Float[np.ndarray, "*questions"]
    variance: Float[np.ndarray, "*questions"]
    best: Float[np.ndarray, "*questions"]
    worst: Float[np.ndarray, "*questions"]


def task_weight(tasks: Tasks, weighting: Weighting) -> Float[np.ndarray, "tasks"] | None:
    """The weight of each task; None: all 1.

    Raises:
        ValueError: if the weighting asks for a popularity that is not known.
    """
    weight = tasks.weight
    for name, counts, exponent in (
        ("popularity", tasks.popularity, -weighting.popularity),
        ("relation_popularity", tasks.relation_popularity, -weighting.relation_popularity),
        ("negatives", tasks.candidates - 2, weighting.negatives),
    ):
        if exponent == 0:
            continue
        if counts is None:
            raise ValueError(
                f"a metric that weighs by {name.replace('_', ' ')} needs the column {name} in the rank "
                "table, or the graph that it is counted in (`kg`)."
            )
        factor = (counts + 1.0) ** exponent
        weight = factor if weight is None else weight * factor
    return weight


def _sum(values: np.ndarray, tasks: Tasks, by_question: bool) -> np.ndarray:
    """Sums of the tasks' values over each question, or over all."""
    if not by_question:
        return values.sum(keepdims=True)
    if tasks.question is None:
        return values
    return np.bincount(tasks.question, values, tasks.num_questions)


def _weighted(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return values if weight is None else values * weight


def parts_by_ties(
    measure: Measure,
    weighting: Weighting,
    tasks: Tasks,
    rules: tuple[Ties, ...],
    *,
    by_question: bool,
    num_entities: int | None = None,
) -> dict[Ties, Parts] | None:
    """The sums of a measure under each tie rule; only `value` differs between them.

    Args:
        measure: an averaged one: not a median, not a dispersion.
        weighting: of the tasks.
        tasks: at least one.
        rules: of ties.
        by_question: False: only the totals, arrays of one entry.
        num_entities: N of PROBE's rank transformer, for all tasks; their candidates when None.

    Returns:
        None where the measure is macro and the questions have no one list (`questions.lists`).
    """
    if isinstance(measure, MACRO):
        return _macro_parts(measure, tasks, rules, by_question)
    weight = task_weight(tasks, weighting)
    metric = probe_loss(measure.sharpness) if isinstance(measure, Probe) else measure
    assert isinstance(metric, Metric)
    offset, scale = 0.0, None
    if isinstance(measure, Probe):
        offset, scale = 1.0, _probe_scale(metric, tasks, num_entities)

    def total(values: np.ndarray) -> np.ndarray:
        """The sum of w (offset + scale * values)."""
        scaled = values if scale is None else offset + scale * values
        return _sum(_weighted(scaled, weight), tasks, by_question)

    largest = int(tasks.candidates.max())
    moments = rank_moments(metric, largest)
    ones = np.ones(len(tasks.optimistic))
    variance = moments[1][tasks.candidates]
    for factor in (scale, weight):
        if factor is not None:
            variance *= factor**2
    fixed = {
        "weight": _sum(_weighted(ones, weight), tasks, by_question),
        "chance": total(moments[0][tasks.candidates]),
        "variance": _sum(variance, tasks, by_question),
        "best": total(half_rank_weights(metric, 1)[2] * ones),
        "worst": total(half_rank_weights(metric, largest)[2 * tasks.candidates.astype(np.int64)]),
    }
    untied = tasks.optimistic is tasks.pessimistic or not (tasks.optimistic < tasks.pessimistic).any()
    result: dict[Ties, Parts] = {}
    for rule in rules:
        if untied and result:
            result[rule] = next(iter(result.values()))
        else:
            result[rule] = Parts(value=total(weights_of_ranks(metric, tasks, rule)), **fixed)
    return result


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
    at_last = half_rank_weights(loss, int(sizes.max()))[2 * sizes.astype(np.int64)]
    return np.where(sizes > 1, -1 / np.where(sizes > 1, at_last, 1.0), 0.0)


def _macro_parts(
    measure: questions.Macro, tasks: Tasks, rules: tuple[Ties, ...], by_question: bool
) -> dict[Ties, Parts] | None:
    lists = questions.lists(tasks)
    if lists is None:
        return None

    def total(values: np.ndarray) -> np.ndarray:
        return values if by_question else values.sum(keepdims=True)

    mean, variance = questions.chance(measure, lists)
    fixed = {
        "weight": total(lists.weight),
        "chance": total(lists.weight * mean),
        "variance": total(lists.weight**2 * variance),
        "best": total(lists.weight * questions.best_value(measure, lists)),
        "worst": total(lists.weight * questions.worst_value(measure, lists)),
    }
    return {
        rule: Parts(value=total(lists.weight * questions.values(measure, lists, rule)), **fixed)
        for rule in rules
    }
