"""What is written is read as it was."""

import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from owkg.kg import KnowledgeGraph, read_graph, write_labelled, write_openke

# Whatever is no tab, line end, or byte order mark, and, for OpenKE, ends in no space.
LETTER = st.characters(codec="utf-8", exclude_characters="\t\n\r\ufeff")
LABEL = st.text(LETTER, min_size=1, max_size=6).filter(lambda label: not label.endswith(" "))


@st.composite
def graphs(draw):
    """Graphs in which every entity and relation is in some triple."""
    entities = tuple(draw(st.lists(LABEL, min_size=1, max_size=5, unique=True)))
    relations = tuple(draw(st.lists(LABEL, min_size=1, max_size=3, unique=True)))
    entity, relation = st.integers(0, len(entities) - 1), st.integers(0, len(relations) - 1)
    triples = st.lists(st.tuples(entity, relation, entity), min_size=1, max_size=8, unique=True)
    splits = {name: np.array(draw(triples), np.int32) for name in ("train", "test", "valid_negatives")}
    several = [[e, e % len(relations), e] for e in range(len(entities))]
    several += [[0, r, 0] for r in range(len(relations))]
    return KnowledgeGraph(
        entities, relations, {**splits, "missing": np.unique(several, axis=0).astype("int32")}
    )


def labels(graph):
    e, r = graph.entities, graph.relations
    return {
        name: [(e[h], r[p], e[t]) for h, p, t in triples.tolist()] for name, triples in graph.splits.items()
    }


@given(graph=graphs())
def test_labelled_files_come_back(graph):
    with tempfile.TemporaryDirectory() as folder:
        write_labelled(graph, folder)
        back = read_graph(folder, layout="labelled")
    assert labels(back) == labels(graph)
    assert back.entities == tuple(sorted(graph.entities))
    assert back.relations == tuple(sorted(graph.relations))


@given(graph=graphs())
def test_openke_files_come_back_with_their_ids(graph):
    with tempfile.TemporaryDirectory() as folder:
        write_openke(graph, folder)
        back = read_graph(folder)
    assert back[:2] == graph[:2]
    assert back.splits.keys() == graph.splits.keys()
    for name, triples in graph.splits.items():
        np.testing.assert_array_equal(back.splits[name], triples)


GRAPH = KnowledgeGraph(
    ("b", "a"), ("r",), {"train": np.array([[0, 0, 1]], np.int32), "test": np.array([[1, 0, 1]], np.int32)}
)


def test_the_files_of_openke(tmp_path):
    write_openke(GRAPH, tmp_path / "new")
    files = {path.name: path.read_text() for path in (tmp_path / "new").iterdir()}
    assert files == {
        "entity2id.txt": "2\nb\t0\na\t1\n",
        "relation2id.txt": "1\nr\t0\n",
        "train2id.txt": "1\n0 1 0\n",
        "test2id.txt": "1\n1 1 0\n",
    }


def test_labelled_files(tmp_path):
    write_labelled(GRAPH, tmp_path)
    files = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert files == {"train.txt": "b\tr\ta\n", "test.txt": "a\tr\ta\n"}
    write_labelled(GRAPH, tmp_path)  # over its own


def test_what_is_in_no_triple_is_warned_of_where_it_gets_lost(tmp_path):
    more = GRAPH._replace(entities=("b", "a", "c", "d"))
    with pytest.warns(UserWarning, match="2 entities are in no triple"):
        write_labelled(more, tmp_path / "labelled")
    with pytest.warns(UserWarning, match="1 relations are in no triple"):
        write_labelled(GRAPH._replace(relations=("r", "s")), tmp_path / "labelled")
    write_openke(more, tmp_path / "openke")
    assert read_graph(tmp_path / "openke").entities == more.entities


@pytest.mark.parametrize("write", [write_labelled, write_openke])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entities": ("b", "a\tb")}, r"entity labels .* got 'a\\tb'"),
        ({"entities": ("b", "a\nb")}, "entity labels"),
        ({"entities": ("\ufeffb", "a")}, "entity labels"),
        ({"relations": ("",)}, "relation labels .* got ''"),
        ({"entities": ("b", "b")}, "each entity label once"),
        ({"splits": {"test": GRAPH.splits["test"]}}, "the split train, got test"),
        ({"splits": {}}, "the split train, got no splits"),
        ({"splits": GRAPH.splits | {"other": GRAPH.splits["test"]}}, "names .* got 'other'"),
        ({"splits": GRAPH.splits | {"test_a/x": GRAPH.splits["test"]}}, "names .* got 'test_a/x'"),
        ({"splits": GRAPH.splits | {"test": np.empty((0, 3), np.int32)}}, "got none in test"),
        ({"splits": GRAPH.splits | {"test": np.array([[0, 0, 2]], np.int32)}}, "tail ids .* got 2"),
    ],
)
def test_what_could_not_be_read_is_refused(tmp_path, write, change, message):
    with pytest.raises(ValueError, match=message):
        write(GRAPH._replace(**change), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_space_at_the_end_is_refused_by_openke_alone(tmp_path):
    graph = GRAPH._replace(entities=("b", "a "))
    with pytest.raises(ValueError, match="ends in a space, got 'a '"):
        write_openke(graph, tmp_path)
    write_labelled(graph, tmp_path)
    assert read_graph(tmp_path).entities == ("a ", "b")


@pytest.mark.parametrize(
    "name",
    ["valid.txt", "train.txt.gz", "test2id.txt", "entities.dict", "dataset.yaml", "numeric_triples.tsv.gz"],
)
def test_files_of_another_graph_are_not_mixed_in(tmp_path, name):
    (tmp_path / name).write_text("")
    (tmp_path / "notes.md").write_text("mine")
    with pytest.raises(ValueError, match=f"other files of a graph, got {name}"):
        write_labelled(GRAPH, tmp_path)
    assert not (tmp_path / "train.txt").exists()


def test_the_factories_of_a_data_set_are_not_mixed_in(tmp_path):
    (tmp_path / "testing").mkdir()
    (tmp_path / "testing" / "numeric_triples.tsv").write_text("")
    with pytest.raises(ValueError, match=r"other files of a graph, got testing/numeric_triples\.tsv"):
        write_openke(GRAPH, tmp_path)
