"""A closed-world knowledge graph of families: people, an ontology as data, and its closure."""

from family_tree.people import People, people_checked
from family_tree.people_files import read_people, write_people

__all__ = ["People", "people_checked", "read_people", "write_people"]
