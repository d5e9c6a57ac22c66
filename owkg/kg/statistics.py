"""Statistics of a graph, and checks of its splits."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg.categories import CATEGORIES, relation_categories
from owkg.kg.graph import KnowledgeGraph, fact_splits, graph_checked, joined_splits
from owkg.kg.known import known_answers
from owkg.kg.popularity import entity_popularity, relation_popularity
from owkg.kg.triples import triple_keys
from owkg.ordered import located, num_distinct


def graph_statistics(graph: KnowledgeGraph, *, threshold: float = 1.5) -> dict[str, Any]:
    """Sizes, duplicates, leakage between splits, relation categories, queries and popularity.

    Args:
        graph: knowledge graph with a train split that is not empty.
        threshold: threshold of `relation_categories`. Default 1.5.

    Returns:
        Nested dictionaries of plain numbers, ready for JSON:

        - `entities`, `relations`: numbers; `in_no_triple`: numbers of these that are in no split of facts.
        - `triples`: number by split. `duplicates`: number of lines that repeat an earlier one, by split.
        - `leakage`: by split except train, number of its triples that are in train, and for test also in
          valid.
        - `reversed_in_train`: by split except train, number of `triples` (h, r, t) with (t, any relation, h)
          in train, and their `share`.
        - `unseen_in_train`: by split except train, numbers of `entities` and `relations` without a training
          triple, and of `triples` with any of these.
        - `false_triples`: by split of false triples, number of `triples`, and number of these that are also
          in a split of facts (`also_facts`).
        - `categories`: numbers of relations and training triples by category; `no_training_triple` last.
        - `answers_per_query`: by predicted side, over the distinct facts of all splits.
        - `popularity`: `min`, `median`, `max`, `gini` over `entities` and `relations`, in train.

    Raises:
        ValueError: if `graph` is not a graph or has no training triple.
    """
    graph = graph_checked(graph)
    facts = fact_splits(graph)
    if "train" not in facts or not len(facts["train"]):
        raise ArgumentError("graph", f"must have training triples, got splits {', '.join(facts) or 'none'}.")
    train = facts["train"]
    evaluated = {name: triples for name, triples in facts.items() if not name.startswith("train")}
    everything = train if len(facts) == 1 else joined_splits(graph, list(facts))
    keys = dict(zip(graph.splits, _keys(graph), strict=True))
    return {
        "entities": graph.num_entities,
        "relations": graph.num_relations,
        "in_no_triple": {
            "entities": _count(entity_popularity(everything, graph.num_entities) == 0),
            "relations": _count(relation_popularity(everything, graph.num_relations) == 0),
        },
        "triples": {name: len(triples) for name, triples in graph.splits.items()},
        "duplicates": {
            name: len(triples) - num_distinct(keys[name]) for name, triples in graph.splits.items()
        },
        "leakage": {name: _leakage(name, keys, facts) for name in evaluated},
        "reversed_in_train": _reversed(evaluated, train),
        "unseen_in_train": {name: _unseen(triples, train, graph) for name, triples in evaluated.items()},
        "false_triples": {
            name: {"triples": len(triples), "also_facts": _also_facts(keys, name, facts)}
            for name, triples in graph.splits.items()
            if name not in facts
        },
        "categories": _categories(train, graph.num_relations, threshold),
        "answers_per_query": {side: _queries(everything, side, graph) for side in ("head", "tail")},
        "popularity": {
            "entities": _spread(entity_popularity(train, graph.num_entities)),
            "relations": _spread(relation_popularity(train, graph.num_relations)),
        },
    }


def gini(values: ArrayLike) -> float:
    """Gini coefficient: 0 if all values are equal, near 1 if one value has the whole sum.

    With x_1 <= ... <= x_n: sum_i (2 i - n - 1) x_i / (n sum_i x_i).

    Raises:
        ValueError: if a value is negative or all are 0.

    Examples:
        >>> gini([1, 1, 1]), gini([0, 0, 0, 1])
        (0.0, 0.75)
    """
    x = np.sort(checks.real("values", values, 0, np.inf).ravel())
    checks.require("values", x[-1:], x[-1:] > 0, "above 0 somewhere")
    ranks = np.arange(1, x.size + 1)
    return float(((2 * ranks - x.size - 1) * x).sum() / (x.size * x.sum()))


def _count(mask: np.ndarray) -> int:
    """Number of true entries."""
    return int(np.count_nonzero(mask))


def _keys(graph: KnowledgeGraph) -> list[np.ndarray]:
    """Keys of the triples of each split, increasing."""
    found = triple_keys(*graph.splits.values())
    found = found if isinstance(found, list) else [found]
    for keys in found:
        keys.sort()
    return found


def _leakage(name: str, keys: dict[str, np.ndarray], facts: dict[str, np.ndarray]) -> dict[str, int]:
    """Number of triples of a split that are in train, and for test also in valid."""
    earlier = ("train", "valid") if name.startswith("test") else ("train",)
    return {other: _count(located(keys[other], keys[name])[1]) for other in earlier if other in facts}


def _also_facts(keys: dict[str, np.ndarray], name: str, facts: dict[str, np.ndarray]) -> int:
    """Number of triples of a split that are in a split of facts."""
    return _count(np.logical_or.reduce([located(keys[other], keys[name])[1] for other in facts]))


def _reversed(evaluated: dict[str, np.ndarray], train: np.ndarray) -> dict[str, dict[str, Any]]:
    """Number and share of triples of each split whose reverse is in train."""
    if not evaluated:
        return {}
    below = 1 + max(int(of.max()) for of in (train, *evaluated.values()) if len(of))
    linked = np.sort(train[:, 2].astype(np.int64) * below + train[:, 0])
    found = {}
    for name, triples in evaluated.items():
        count = _count(located(linked, triples[:, 0].astype(np.int64) * below + triples[:, 2])[1])
        found[name] = {"triples": count, "share": count / len(triples) if len(triples) else None}
    return found


def _unseen(triples: np.ndarray, train: np.ndarray, graph: KnowledgeGraph) -> dict[str, int]:
    """Numbers of entities and relations of a split without a training triple, and of triples with these."""
    entity = entity_popularity(train, graph.num_entities) == 0
    relation = relation_popularity(train, graph.num_relations) == 0
    head, through, tail = triples.T
    return {
        "entities": _count(entity & (entity_popularity(triples, graph.num_entities) > 0)),
        "relations": _count(relation & (relation_popularity(triples, graph.num_relations) > 0)),
        "triples": _count(entity[head] | entity[tail] | relation[through]),
    }


def _categories(train: np.ndarray, num_relations: int, threshold: float) -> dict[str, Any]:
    """Numbers of relations and training triples by category."""
    categories = relation_categories(train, num_relations, threshold=threshold)
    popularity = relation_popularity(train, num_relations)
    found = {
        name: {"relations": _count(categories == name), "triples": int(popularity[categories == name].sum())}
        for name in (*CATEGORIES, "")
    }
    return found | {"no_training_triple": found.pop("")}


def _queries(facts: np.ndarray, side: str, graph: KnowledgeGraph) -> dict[str, Any]:
    """Number of queries, and mean and largest number of their answers."""
    answers = np.diff(known_answers(facts, side, **graph.sizes).offsets)
    return {"queries": len(answers), "mean": float(answers.mean()), "max": int(answers.max())}


def _spread(popularity: np.ndarray) -> dict[str, Any]:
    """Smallest, median and largest popularity, and Gini coefficient."""
    return {
        "min": int(popularity.min()),
        "median": float(np.median(popularity)),
        "max": int(popularity.max()),
        "gini": gini(popularity),
    }
