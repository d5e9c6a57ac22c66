"""The published family tree, recovered from its splits, is closed."""

import numpy as np
import pytest

from family_tree import (
    closed_graph,
    fact_counts,
    generations,
    ontology,
    published_graph,
    published_people,
    sample_people,
)
from family_tree.published import PUBLISHED_RELATIONS

DENSITIES = ("65", "75", "85", "95")


@pytest.fixture(scope="module")
def folder(owkg_data):
    return owkg_data / "family_tree_published"


@pytest.fixture(scope="module")
def closed(folder):
    return closed_graph(published_people(folder), ontology("published"))


def test_the_closure_has_as_many_people_and_facts_as_the_paper_says(folder, closed):
    assert closed.num_entities == 6004
    assert closed.num_relations == 23
    assert len(closed.splits["train"]) == 192_532
    assert sum(fact_counts(published_people(folder), ontology("published")).values()) == 192_532


@pytest.mark.parametrize("density", DENSITIES)
def test_every_published_fact_lies_in_the_closure(folder, closed, density):
    graph = published_graph(folder / density)
    assert graph.entities == closed.entities
    rename = np.array([closed.relations.index(name) for name in graph.relations])
    known = keys(closed.splits["train"])
    for split, facts in graph.splits.items():
        named = facts.copy()
        named[:, 1] = rename[facts[:, 1]]
        assert np.isin(keys(named), known).all(), split


def test_lines_of_descent_are_deeper_than_the_depth(folder):
    above = generations(published_people(folder))
    assert above.max() == 4  # the published depth is 3
    assert (above == 4).sum() == 500
    assert generations(sample_people(strict_depth=True)).max() == 3
    assert generations(sample_people()).max() == 4


def test_the_names_are_those_of_the_published_inventory():
    assert sorted(PUBLISHED_RELATIONS) == sorted(ontology("published").relations)


def keys(facts: np.ndarray) -> np.ndarray:
    """A number for each fact."""
    head, relation, tail = facts.astype(np.int64).T
    return (head * 23 + relation) * 6004 + tail


def test_another_graph_is_refused(tmp_path):
    with pytest.raises(ValueError, match="must hold densities"):
        published_people(tmp_path)
    (tmp_path / "75").mkdir()
    (tmp_path / "75" / "train.txt").write_text("0\t0\t1\n")
    with pytest.raises(ValueError, match="with 23 relations, got 1"):
        published_people(tmp_path)


FEMALE = [
    PUBLISHED_RELATIONS.index(f"{word}Of") for word in ("aunt", "girlCousin", "daughter", "mother", "wife")
]
MALE = [PUBLISHED_RELATIONS.index(f"{word}Of") for word in ("uncle", "boyCousin", "son", "father", "husband")]
NEUTRAL = sorted(set(range(23)) - set(FEMALE) - set(MALE) - {7, 9, 6, 20, 13, 16, 17, 21})
SISTER, BROTHER = PUBLISHED_RELATIONS.index("sisterOf"), PUBLISHED_RELATIONS.index("brotherOf")


@pytest.mark.filterwarnings("ignore:.*is the order of the columns")  # a file of a few lines
@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([(2, SISTER, 0), (0, BROTHER, 1)], "person 0 must not be both female and male"),
        ([(0, SISTER, 2)], "person 2 must have a known gender"),
        ([(2, SISTER, 0)], "ancestor"),  # each a parent and a child of the other
    ],
)
def test_contradictions_are_refused(tmp_path, more, message):
    women = [(0, relation, 2) for relation in [*FEMALE, *NEUTRAL, 6, 9, 21]]
    men = [(1, relation, 2) for relation in [*MALE, 16, 17, 20, 13]]
    (tmp_path / "75").mkdir()
    facts = [*women, *men, (0, SISTER, 1), *more]
    (tmp_path / "75" / "train.txt").write_text("".join(f"{h}\t{r}\t{t}\n" for h, r, t in facts))
    with pytest.raises(ValueError, match=message):
        published_people(tmp_path)
