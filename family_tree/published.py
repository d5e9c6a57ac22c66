"""Published family tree, recovered from its splits: its people and the names of its relations.

The splits of Yang et al. (2022) number their 6,004 people and 23 relations, and each density holds only part
of the facts. Together they give every parent and every gender, and the closure of these is the whole graph.
"""

import numpy as np
import polars as pl

from family_tree.people import People, people_checked
from owkg import checks
from owkg.checks import StrPath
from owkg.kg import KnowledgeGraph, fact_splits, read_graph

# Names by id. Implications between relations fix the names, except for swapping women and men in all of them.
PUBLISHED_RELATIONS = (
    "parentOf",
    "auntOf",
    "girlCousinOf",
    "cousinOf",
    "daughterOf",
    "childOf",
    "granddaughterOf",
    "sisterOf",
    "grandchildOf",
    "nieceOf",
    "siblingOf",
    "motherOf",
    "wifeOf",
    "brotherOf",
    "boyCousinOf",
    "sonOf",
    "grandsonOf",
    "nephewOf",
    "fatherOf",
    "husbandOf",
    "grandfatherOf",
    "grandmotherOf",
    "uncleOf",
)
# Relations that give parent and child, or child and parent; and relations that give the gender of the head.
_DOWN, _UP = ("parentOf", "motherOf", "fatherOf"), ("childOf", "daughterOf", "sonOf")
_FEMALE = ("mother", "daughter", "sister", "girl", "granddaughter", "grandmother", "aunt", "niece", "wife")
_MALE = ("father", "son", "brother", "boy", "grandson", "grandfather", "uncle", "nephew", "husband")


def published_graph(folder: StrPath) -> KnowledgeGraph:
    """Splits of one density with names: people as four digits, relations as in `PUBLISHED_RELATIONS`.

    Args:
        folder: folder of the density, with `train.txt.gz`, `test_full.txt` and `test_sparse.txt`.

    Raises:
        ValueError: as `read_graph`, or if the folder has another number of relations.
    """
    graph = read_graph(folder)
    if graph.num_relations != len(PUBLISHED_RELATIONS):
        expected = (
            f"must be a density of the published family tree, with {len(PUBLISHED_RELATIONS)} relations"
        )
        raise ValueError(f"{folder}: {expected}, got {graph.num_relations}.")
    return graph._replace(
        entities=tuple(f"{entity:04d}" for entity in range(graph.num_entities)), relations=PUBLISHED_RELATIONS
    )


def published_people(folder: StrPath) -> People:
    """People of the published family tree.

    Args:
        folder: folder of all densities, `65`, `75`, `85` and `95`, as `published_graph` reads them.

    Returns:
        6,004 people with 8,516 pairs of parent and child. Labels are ids in four digits.

    Raises:
        ValueError: if `folder` is not a path, holds no density, or its facts do not give every gender or
            contradict each other.

    References:
        Yang, Lin, Zhang (NeurIPS 2022), section 6.
    """
    place = checks.path("folder", folder)
    folders = sorted(path for path in place.glob("[0-9]*") if path.is_dir())
    if not folders:
        raise ValueError(f"{folder}: must hold densities of the published family tree, such as 75.")
    graphs = [published_graph(path) for path in folders]
    size = max(graph.num_entities for graph in graphs)
    facts = np.unique(np.concatenate([t for g in graphs for t in fact_splits(g).values()]), axis=0)
    head, relation, _ = facts.T
    down = np.isin(relation, [PUBLISHED_RELATIONS.index(name) for name in _DOWN])
    up = np.isin(relation, [PUBLISHED_RELATIONS.index(name) for name in _UP])
    parents = np.concatenate([facts[down][:, [0, 2]], facts[up][:, [2, 0]]])
    female, male = (
        np.isin(np.arange(size), head[np.isin(relation, _gendered(words))]) for words in (_FEMALE, _MALE)
    )
    if (female == male).any():
        bad = int(np.flatnonzero(female == male)[0])
        known = "must not be both female and male" if female[bad] else "must have a known gender"
        raise ValueError(f"{folder}: person {bad} {known}.")
    labels = pl.Series([f"{person:04d}" for person in range(size)])
    return people_checked(People(labels, female, np.unique(parents, axis=0).astype(np.int32)))


def _gendered(words: tuple[str, ...]) -> list[int]:
    """Ids of the relations whose names begin with one of `words`."""
    return [i for i, name in enumerate(PUBLISHED_RELATIONS) if name.startswith(words)]
