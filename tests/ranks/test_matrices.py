"""Score matrices in .npz files to ranks."""

import io
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

from owkg.kg import KnowledgeGraph, read_graph
from owkg.ranks import rank_table, ranks_from_matrix

ENTITIES = ("a", "b", "c", "d")
RELATIONS = ("r", "s")
TRIPLES = np.array([[0, 0, 1], [2, 1, 3], [0, 0, 2]])
SCORES = np.random.default_rng(0).integers(0, 3, (3, 4)).astype(np.float32)
GRAPH = KnowledgeGraph(
    ENTITIES,
    RELATIONS,
    {
        name: np.roll(TRIPLES, i, axis=0)[:2].astype(np.int32)
        for i, name in enumerate(("train", "valid", "test"))
    },
)
GOOD = {"scores": SCORES, "triples": TRIPLES, "side": np.array(["head", "tail", "tail"])}


@pytest.fixture
def saved(tmp_path):
    def save(**arrays):
        np.savez(tmp_path / "scores.npz", **arrays)
        return tmp_path / "scores.npz"

    return save


def test_sides_may_mix_and_rows_keep_their_order(saved):
    table = ranks_from_matrix(saved(**GOOD), GRAPH, model="m")
    for i, side in enumerate(GOOD["side"]):
        expected = rank_table(GRAPH, SCORES[i : i + 1], TRIPLES[i : i + 1], str(side), model="m")
        assert table[i].select(expected.columns).equals(expected)
    assert table.height == 3
    assert table["filtered"].to_list() == [True] * 3


def test_labels_are_matched_in_any_order(saved):
    order, swap = np.array([2, 0, 3, 1]), np.array([1, 0])
    place = np.argsort(order)
    moved = {
        "scores": SCORES[:, order],
        "triples": np.stack([place[TRIPLES[:, 0]], swap[TRIPLES[:, 1]], place[TRIPLES[:, 2]]], axis=1),
        "entity_labels": np.array(ENTITIES)[order],
        "relation_labels": np.array(RELATIONS)[swap],
    }
    expected = ranks_from_matrix(saved(**GOOD), GRAPH)
    assert ranks_from_matrix(saved(**GOOD | moved), GRAPH).equals(expected)


@pytest.mark.parametrize(
    ("known", "lacking"),
    [({}, "entity_labels and relation_labels"), ({"entity_labels": np.array(ENTITIES)}, "relation_labels")],
)
def test_ids_of_another_order_are_an_error(saved, known, lacking):
    """Of the three triples the graph knows one, by the ids of another order."""
    foreign = GOOD | known | {"triples": np.array([[0, 0, 1], [3, 1, 2], [0, 1, 2]])}
    words = (
        "2 of 3 triples are in no split of the graph, such as 3 1 2, which is 'd' 's' 'c' by the ids of the "
        f"graph. Without {lacking}, ids must be those"
    )
    with pytest.raises(ValueError, match=re.escape(words)):
        ranks_from_matrix(saved(**foreign), GRAPH)
    labels = {"entity_labels": np.array(ENTITIES), "relation_labels": np.array(RELATIONS)}
    # By their labels, these are new facts, which the filter does not know.
    assert not ranks_from_matrix(saved(**foreign | labels), GRAPH)["filtered"].any()


def test_relations_that_the_file_does_not_know_do_no_harm(saved):
    scores, triples = SCORES[::2], TRIPLES[::2]  # of relation r
    arrays = {"scores": scores, "triples": triples, "side": "tail", "relation_labels": np.array(["r"])}
    assert ranks_from_matrix(saved(**arrays), GRAPH).equals(rank_table(GRAPH, scores, triples, "tail"))


def test_raw_ranks_need_no_graph(saved):
    table = ranks_from_matrix(saved(**GOOD), filter_splits=[])
    assert table["head"].to_list() == TRIPLES[:, 0].tolist()
    assert table["candidates"].to_list() == [4] * 3
    assert table["filtered"].to_list() == [False] * 3
    labels = {"entity_labels": np.array(ENTITIES), "relation_labels": np.array(RELATIONS)}
    named = ranks_from_matrix(saved(**GOOD | labels), filter_splits=[], model="m")
    assert named["tail"].to_list() == ["b", "d", "c"]
    assert named["model"].to_list() == ["m"] * 3
    assert named["optimistic"].equals(table["optimistic"])


def test_the_score_of_each_answer(saved):
    own = [SCORES[0, 0], SCORES[1, 3], SCORES[2, 2]]
    assert ranks_from_matrix(saved(**GOOD), GRAPH, score=True)["score"].to_list() == own
    raw = ranks_from_matrix(saved(**GOOD), filter_splits=[], score=True)
    assert raw["score"].to_list() == own
    assert raw.drop("score").equals(ranks_from_matrix(saved(**GOOD), filter_splits=[]))
    for splits in ([], ["train"]):
        with pytest.raises(ValueError, match="`tolerance` must be 0 with it, got 1"):
            ranks_from_matrix(saved(**GOOD), GRAPH, filter_splits=splits, score=True, tolerance=1)
    with pytest.raises(ValueError, match="`tolerance` must be 0 with it, got 1"):
        ranks_from_matrix(saved(**GOOD), filter_splits=[], score=True, tolerance=1)


def test_tolerance_is_passed_on(saved):
    table = ranks_from_matrix(saved(**GOOD), GRAPH, tolerance=5)
    assert table["pessimistic"].equals(table["candidates"].rename("pessimistic"))


def test_filtering_needs_a_graph(saved):
    with pytest.raises(ValueError, match=r"`kg` must be given for the splits that filter, train"):
        ranks_from_matrix(saved(**GOOD))


NAN = np.where(np.arange(12).reshape(3, 4) == 6, np.nan, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": None}, ": not a .npz file of scores: no array scores; arrays found: triples, side"),
        (
            {"scores": NAN},
            ": scores must not be NaN, got NaN for query 1 (the tail of 'c', 's', 'd'), entity 2",
        ),
        ({"scores": SCORES.astype(np.longdouble)}, ": scores must be floating-point numbers of 16, 32 or 64"),
        ({"scores": SCORES.astype(int)}, ": scores must be floating-point numbers"),
        ({"scores": SCORES[:, :3]}, ": scores have 3 columns, one per entity, but the graph has 4 entities"),
        ({"scores": SCORES[0]}, ": scores must be of shape [n, entities], got shape (4,)"),
        ({"scores": SCORES[:0], "triples": TRIPLES[:0]}, ": scores must be of shape [n, entities]"),
        ({"scores": SCORES[:2]}, ": triples must be 2, one per row of scores, got 3"),
        ({"triples": TRIPLES[:, :2]}, ": triples must be of shape [triples, 3], got (3, 2)"),
        (
            {"triples": TRIPLES + np.array([0, 0, 2])},
            ": triples must hold tail ids in [0, 4), got 5 in row 1",
        ),
        ({"triples": TRIPLES + 0.5}, ": triples must be whole numbers"),
        (
            {"side": np.array(["head", "tail", "both"])},
            ': side must be "head" or "tail", got \'both\' at index (2,)',
        ),
        (
            {"side": np.array(["head", "tail"])},
            ": side must be one string, or one for each of 3 triples, got <U4",
        ),
        ({"side": np.array(1)}, ": side must be one string, or one for each of 3 triples, got int64"),
        (
            {"side": np.array(["head"] * 3, object)},
            ": not a .npz file of scores: Object arrays cannot be loaded",
        ),
        (
            {"entity_labels": np.array(["a", "b", "c", "z"])},
            ": entity_labels hold 'z', but the graph has no such entity",
        ),
        ({"entity_labels": np.array(["a", "b", "c", "c"])}, ": entity_labels must be unique, got 'c' twice"),
        (
            {"entity_labels": np.array(["a", "b"])},
            ": entity_labels must be 4, one per column of scores, got 2",
        ),
        ({"entity_labels": np.arange(4)}, ": entity_labels must be strings, got int64 of shape (4,)"),
        (
            {"relation_labels": np.array(["r", "z"])},
            ": relation_labels hold 'z', but the graph has no such relation",
        ),
    ],
)
def test_a_bad_file_is_named(saved, change, message):
    arrays = {name: array for name, array in (GOOD | change).items() if array is not None}
    path = saved(**arrays)
    with pytest.raises(ValueError) as error:  # noqa: PT011 - compared below
        ranks_from_matrix(path, GRAPH)
    assert str(error.value).startswith(f"{path}{message}")


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ({}, "the tail of 2, 1, 3"),
        ({"entity_labels": np.array(ENTITIES)}, "the tail of 'c', 1, 'd'"),
        ({"entity_labels": np.array(ENTITIES), "relation_labels": np.array(RELATIONS)}, "of 'c', 's', 'd'"),
    ],
)
def test_nan_without_a_graph_is_named_as_the_file_can(saved, labels, named):
    with pytest.raises(ValueError, match=rf"for query 1 \(.*{named}\), entity 2"):
        ranks_from_matrix(saved(**GOOD | labels | {"scores": NAN}), filter_splits=[])


def forged(path, shape, *, dtype="<f8", data=b"\0" * 80, version=(1, 0)):
    """Writes a file whose scores have a header of `shape` and `data`."""
    header = io.BytesIO()
    write = {(1, 0): np.lib.format.write_array_header_1_0, (2, 0): np.lib.format.write_array_header_2_0}
    write[version](header, {"descr": dtype, "fortran_order": False, "shape": shape})
    np.savez(path, triples=TRIPLES, side="tail")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("scores.npy", header.getvalue() + data)
    return path


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("shape", [(3, 4), (2**40, 4), (2**62, 2**62), (3, 3)])
def test_a_header_that_does_not_fit_its_bytes_is_refused_before_memory_is_taken(tmp_path, shape, version):
    path = forged(tmp_path / "scores.npz", shape, version=version)
    bytes_ = 8 * shape[0] * shape[1]
    message = (
        f"not a .npz file of scores: scores holds 80 bytes, but {bytes_} by its header, float64 of shape"
    )
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
            ranks_from_matrix(path, filter_splits=[])
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_members_that_are_no_arrays_or_hold_objects_are_refused(tmp_path):
    path = forged(tmp_path / "scores.npz", (2**40, 4), dtype="|O")
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        ranks_from_matrix(path, filter_splits=[])
    np.savez(path, triples=TRIPLES, side="tail")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("scores.npy", b"text")
    with pytest.raises(
        ValueError, match=r"scores\.npz: not a \.npz file of scores: scores is not an array\."
    ):
        ranks_from_matrix(path, filter_splits=[])


def test_what_is_no_npz_file(tmp_path, saved):
    path = tmp_path / "scores.npz"
    for content in (b"", b"PK\x03\x04 and so on", b"\x80\x04N.", b"text"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"scores\.npz: not a \.npz file of scores"):
            ranks_from_matrix(path, GRAPH)
    with path.open("wb") as file:
        np.save(file, SCORES)
    with pytest.raises(ValueError, match="one array instead of several"):
        ranks_from_matrix(path, GRAPH)
    content = saved(**GOOD).read_bytes()
    at = zipfile.ZipFile(path).infolist()[0].header_offset + 200
    path.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    with pytest.raises(ValueError, match=r"scores\.npz: not a \.npz file of scores: Bad CRC"):
        ranks_from_matrix(path, GRAPH)
    with pytest.raises(OSError, match="No such file"):
        ranks_from_matrix(tmp_path / "none.npz", GRAPH)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_published_ranks_of_a_checkpoint(owkg_data, saved, dtype):
    graph = read_graph(owkg_data / "nations")
    with np.load(owkg_data / "checkpoints" / "nations_transe.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    entities, relations = (list(arrays[f"{kind}_labels"]) for kind in ("entity", "relation"))
    triples = np.array(
        [
            [
                entities.index(graph.entities[h]),
                relations.index(graph.relations[r]),
                entities.index(graph.entities[t]),
            ]
            for h, r, t in graph.splits["test"]
        ]
    )
    head, relation, tail = triples.T
    points = arrays["entity"].astype(dtype)
    towards = points[head] + arrays["relation"].astype(dtype)[relation]
    back = points[tail] + arrays["relation_inverse"].astype(dtype)[relation]
    scores = [-np.abs(to[:, None] - points[None]).sum(-1) for to in (back, towards)]
    path = saved(
        scores=np.concatenate(scores),
        triples=np.concatenate([triples] * 2),
        side=np.repeat(["head", "tail"], len(triples)),
        entity_labels=arrays["entity_labels"],
        relation_labels=arrays["relation_labels"],
    )
    table = ranks_from_matrix(path, graph)
    assert table.height == 402
    realistic = (table["optimistic"] + table["pessimistic"]) / 2
    assert realistic.mean() == pytest.approx(3.5323383084577116, rel=1e-12)
    assert (1 / table["optimistic"]).mean() == pytest.approx(0.40267795361078945, rel=1e-12)
