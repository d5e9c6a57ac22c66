"""A closed world in memory, as a knowledge graph."""

from typing import Any

import numpy as np

from family_tree.closure import closure
from family_tree.ontology import ontology_of
from owkg.kg import KnowledgeGraph


def closed_graph(people: Any, ontology: Any) -> KnowledgeGraph:
    """The closure of `people`: all its facts are the split "train", sorted.

    Args:
        people: to close; they are the entities, in their order.
        ontology: whose rules hold, or its name or file; its relations are those of the graph.

    Raises:
        ValueError: as `closure`.

    Examples:
        >>> from family_tree.trees import sample_people
        >>> graph = closed_graph(sample_people(num_trees=1, max_tree_size=30), "published")
        >>> graph.num_entities, graph.num_relations
        (30, 23)
    """
    rules = ontology_of("ontology", ontology)
    blocks = [np.stack(facts, axis=1) for facts in closure(people, rules)]
    return KnowledgeGraph(
        tuple(people.labels),
        rules.relations,
        {"train": np.concatenate([np.empty((0, 3), np.int32), *blocks])},
    )
