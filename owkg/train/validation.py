"""Ranking performance of a model in training on the split valid."""

from collections.abc import Callable

import numpy as np

from owkg import evaluation, kg
from owkg.errors import ArgumentError
from owkg.models import SIDES, Trained
from owkg.rank_weights import RankWeight, rank_weight, tie_expectation
from owkg.train.config import Training

# Metrics to compute in addition to the one that decides when to stop.
_ALWAYS = ("mrr", "hits@1", "hits@3", "hits@10")


Validate = Callable[[Trained], dict[str, float]]


def validator(graph: kg.KnowledgeGraph, config: Training) -> Validate:
    """Function from a trained model to its metrics on the split valid, by name.

    Both sides are ranked. The other known answers of train and valid, but of no other split, leave the
    candidates. Ties count as their expectation.

    Raises:
        ValueError: if there is no split valid, or the metric is not one whose larger values are better.
    """
    try:
        chosen = {name: rank_weight(name) for name in dict.fromkeys((*_ALWAYS, config.valid_metric))}
    except ValueError as error:
        raise ArgumentError("valid_metric", f"must be the name of a metric: {error}") from None
    deciding = chosen[config.valid_metric]
    if not isinstance(deciding, RankWeight) or deciding.link or not deciding.larger_is_better:
        raise ArgumentError(
            "valid_metric",
            f"must be a mean over ranks whose larger values are better, got {config.valid_metric!r}.",
        )
    if not len(graph.splits.get("valid", ())):
        raise ArgumentError(
            "valid_every", f"must be 0 for a graph without a split valid, got {config.valid_every}."
        )
    triples = graph.splits["valid"]
    facts = kg.joined_splits(graph, ["train", "valid"])
    known = {side: kg.known_answers(facts, side, **graph.sizes, asked=triples) for side in SIDES}

    def measured(trained: Trained) -> dict[str, float]:
        trained = trained.encoded()
        ranks = (evaluation.rank_arrays(trained, triples, side, known=known[side]) for side in SIDES)
        first, last, *_ = (np.concatenate(column) for column in zip(*ranks, strict=True))
        return {name: float(tie_expectation(m, first, last).mean()) for name, m in chosen.items()}

    return measured
