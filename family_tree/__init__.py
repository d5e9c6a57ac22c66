"""Closed-world knowledge graph of families: people, an ontology as data, and its closure."""

from family_tree.close import close
from family_tree.closure import Facts, closed_graph, closure, fact_counts
from family_tree.families import couples, family, family_numbers, generations
from family_tree.generate import generate
from family_tree.ontology import Ontology, ontology
from family_tree.people import People, people_checked
from family_tree.people_files import read_people, write_people
from family_tree.published import published_graph, published_people
from family_tree.trees import people_blocks, sample_people
from family_tree.verify import verify

__all__ = [
    "Facts",
    "Ontology",
    "People",
    "close",
    "closed_graph",
    "closure",
    "couples",
    "fact_counts",
    "family",
    "family_numbers",
    "generate",
    "generations",
    "ontology",
    "people_blocks",
    "people_checked",
    "published_graph",
    "published_people",
    "read_people",
    "sample_people",
    "verify",
    "write_people",
]
