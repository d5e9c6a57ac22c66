"""The published data sets have the sizes that the literature gives them."""

import pytest

from owkg.kg import joined_splits, read_graph

# entities, relations, triples by split
SIZES = {
    "fb15k237": (14_541, 237, {"train": 272_115, "valid": 17_535, "test": 20_466}),
    # 40,943 over all splits; the training triples alone have 40,559.
    "wn18rr": (40_943, 11, {"train": 86_835, "valid": 3_034, "test": 3_134}),
    "nations": (14, 55, {"train": 1_592, "valid": 199, "test": 201}),
    "kinships": (104, 25, {"train": 8_544, "valid": 1_068, "test": 1_074}),
    "umls": (135, 46, {"train": 5_216, "valid": 652, "test": 661}),
    "codex-s": (
        2_034,
        42,
        {"train": 32_888, "valid": 1_827, "test": 1_828, "test_negatives": 1_828, "valid_negatives": 1_827},
    ),
}
# Of 6,004 people; the triples of 65 have only 5,994 of them, and those of 75 and 85 one less than all.
FAMILIES = {
    65: (87_463, 7_598, 2_778, 2_697),
    75: (100_880, 7_075, 3_381, 3_338),
    85: (114_229, 6_616, 4_209, 4_153),
    95: (127_700, 6_097, 5_171, 5_172),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(owkg_data, name):
    graph = read_graph(owkg_data / name)
    found = {split: len(triples) for split, triples in graph.splits.items()}
    assert (graph.num_entities, graph.num_relations, found) == SIZES[name]
    assert list(graph.entities) == sorted(graph.entities)


@pytest.mark.parametrize("density", FAMILIES)
def test_sizes_of_the_family_trees(owkg_data, density):
    graph = read_graph(owkg_data / "family_tree_published" / str(density))
    assert (graph.num_entities, graph.num_relations) == (6_004, 23)
    splits = ("train", "test_full", "test_sparse", "test_sparse_correlated")
    assert tuple(graph.splits) == splits
    assert tuple(len(graph.splits[split]) for split in splits) == FAMILIES[density]


def test_labels_of_a_file_are_those_of_its_triples(owkg_data):
    folder = owkg_data / "nations"
    graph = read_graph(folder)
    e, r = graph.entities, graph.relations
    for split, triples in graph.splits.items():
        lines = [f"{e[h]}\t{r[p]}\t{e[t]}" for h, p, t in triples.tolist()]
        assert lines == (folder / f"{split}.txt").read_text().splitlines()


def test_entities_of_the_training_triples_of_wn18rr(owkg_data):
    train = joined_splits(read_graph(owkg_data / "wn18rr"), ["train"])
    assert len(set(train[:, [0, 2]].ravel().tolist())) == 40_559
