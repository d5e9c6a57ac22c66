"""A closed-world knowledge graph of families: people, an ontology as data, and its closure."""
