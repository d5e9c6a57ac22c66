"""Knowledge graphs: triples, labels and splits, known answers, relation categories, popularity."""

from owkg.kg.categories import CATEGORIES, relation_categories
from owkg.kg.graph import KnowledgeGraph, fact_splits, joined_splits, known_splits
from owkg.kg.known import KnownAnswers, answer_ranges, is_known, known_answers, num_candidates
from owkg.kg.popularity import entity_popularity, entity_relation_popularity, relation_popularity
from owkg.kg.read import read_graph
from owkg.kg.seen import seen_part
from owkg.kg.statistics import gini, graph_statistics
from owkg.kg.write import write_labelled, write_openke

__all__ = [
    "CATEGORIES",
    "KnowledgeGraph",
    "KnownAnswers",
    "answer_ranges",
    "entity_popularity",
    "entity_relation_popularity",
    "fact_splits",
    "gini",
    "graph_statistics",
    "is_known",
    "joined_splits",
    "known_answers",
    "known_splits",
    "num_candidates",
    "read_graph",
    "relation_categories",
    "relation_popularity",
    "seen_part",
    "write_labelled",
    "write_openke",
]
