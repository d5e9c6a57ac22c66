"""A closed world in memory, as a knowledge graph."""

import numpy as np

from family_tree.closure import closure
from family_tree.ontology import Ontology
from family_tree.people import People
from owkg.kg import KnowledgeGraph


def closed_graph(people: People, ontology: Ontology) -> KnowledgeGraph:
    """The closure of `people`: all its facts are the split "train", sorted.

    Args:
        people: to close; they are the entities, in their order.
        ontology: whose rules hold; its relations are those of the graph.

    Raises:
        ValueError: as `closure`.

    Examples:
        >>> from family_tree.ontology import ontology
        >>> from family_tree.trees import sample_people
        >>> graph = closed_graph(sample_people(num_trees=1, max_tree_size=30), ontology("published"))
        >>> graph.num_entities, graph.num_relations
        (30, 23)
    """
    blocks = [np.stack(facts, axis=1) for facts in closure(people, ontology)]
    return KnowledgeGraph(
        tuple(people.labels),
        ontology.relations,
        {"train": np.concatenate([np.empty((0, 3), np.int32), *blocks])},
    )
