"""Every layout is read as what it says, and every bad line is named with its file and number."""

import gzip
import os
import re

import numpy as np
import pytest

from owkg.kg import fact_splits, joined_splits, read_graph

TRAIN = "ann\tknows\tbob\nbob\tknows\tcy\n"
TEST = "cy\tlikes\tann\n"
LABELLED = {"train.txt": TRAIN, "test.txt": TEST}
TRIPLES = {"train": [("ann", "knows", "bob"), ("bob", "knows", "cy")], "test": [("cy", "likes", "ann")]}

OPENKE = {
    "entity2id.txt": "3\ncy\t0\nann\t1\nbob\t2\n",
    "relation2id.txt": "2\nlikes\t0\nknows\t1\n",
    # head, tail, relation
    "train2id.txt": "2\n1 2 1\n2 0 1\n",
    "test2id.txt": "1\n0\t1\t0\n",
}
DICTS = {"entities.dict": "0\tcy\n1\tann\n2\tbob\n", "relations.dict": "0\tlikes\n1\tknows\n"}
ROTATE = DICTS | LABELLED
ROTATE_IDS = DICTS | {"train.txt": "1\t1\t2\n2\t1\t0\n", "test.txt": "0 0  1\n"}
MANIFEST = """\
dataset:
  # written by a program
  files.entity_ids.filename: entity_ids.del
  files.entity_ids.type: map
  files.entity_strings.filename: none.del
  files.entity_strings.type: idmap
  files.relation_ids.filename: relation_ids.del
  files.relation_ids.type: map
  files.test.filename: held_out.del
  files.test.size: 1
  files.test.split_type: test
  files.test.type: triples
  files.train.filename: 'train.del'  # quoted
  files.train.size: 2
  files.train.type: triples
  name: people
  num_entities: 3
  num_relations: 2
  pickle: false
"""
IDS = {"entity_ids.del": "0\tcy\n1\tann\n2\tbob\n", "relation_ids.del": "0\tlikes\n1\tknows\n"}
LIBKGE = IDS | {"dataset.yaml": MANIFEST, "train.del": "1\t1\t2\n2\t1\t0\n", "held_out.del": "0\t0\t1\n"}
LIBKGE_BARE = IDS | {"train.del": "1\t1\t2\n2\t1\t0\n", "test.del": "0\t0\t1\n"}
NESTED = """\
dataset:
  files:
    train:
      filename: train.del
      type: triples
    test:
      filename: "held_out.del"
      type: triples
"""
FACTORY = {
    "entity_to_id.tsv.gz": "id\tlabel\n0\tcy\n1\tann\n2\tbob\n",
    "relation_to_id.tsv.gz": "id\tlabel\n0\tlikes\n1\tknows\n",
    "numeric_triples.tsv.gz": "head\trelation\ttail\n1\t1\t2\n2\t1\t0\n",
    "base.pth": b"\x80\x02 a pickle that nobody opens",
}
TESTING = FACTORY | {"numeric_triples.tsv.gz": "head\trelation\ttail\n0\t0\t1\n"}


def inside(folder, files):
    return {f"{folder}/{name}": content for name, content in files.items()}


PYKEEN = inside("training", FACTORY) | inside("testing", TESTING) | {"metadata.pth": b"\x80\x02"}
LAYOUTS = {
    "labelled": LABELLED,
    "openke": OPENKE,
    "rotate": ROTATE,
    "rotate with ids": ROTATE_IDS,
    "libkge": LIBKGE,
    "libkge without a manifest": LIBKGE_BARE,
    "libkge with a nested manifest": LIBKGE | {"dataset.yaml": NESTED},
    "pykeen": PYKEEN,
}


@pytest.fixture
def made(tmp_path):
    """Writes files, text or bytes, to a folder and gives the folder."""

    def make(files):
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return tmp_path

    return make


def labels(graph):
    """The splits of a graph with labels in place of ids."""
    e, r = graph.entities, graph.relations
    return {
        name: [(e[h], r[p], e[t]) for h, p, t in triples.tolist()] for name, triples in graph.splits.items()
    }


@pytest.fixture(params=[None, 8], ids=["whole files", "blocks of 8 bytes"])
def blocks(request, monkeypatch):
    """Files are read whole, and in blocks of some bytes."""
    if request.param:
        monkeypatch.setattr("owkg.files.lines._BLOCK", request.param)


# --- layouts


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout(made, blocks, files):
    graph = read_graph(made(files))
    assert labels(graph) == TRIPLES
    assert list(graph.splits) == ["train", "test"]
    assert (graph.num_entities, graph.num_relations) == (3, 2)
    for triples in graph.splits.values():
        assert triples.dtype == np.int32
        assert triples.flags.c_contiguous


@pytest.mark.parametrize("files", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_packed_with_other_line_ends_a_mark_and_blank_lines_at_the_end(made, blocks, files):
    def varied(name, text):
        if isinstance(text, bytes):
            return name, text
        packed = name if name == "dataset.yaml" else f"{name.removesuffix('.gz')}.gz"
        return packed, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() + b"\r\n\r\n"

    files = dict(varied(name, text) for name, text in files.items())
    assert labels(read_graph(made(files))) == TRIPLES


def test_ids_are_those_of_the_files(made):
    for layout, files in {"openke": OPENKE, "rotate": ROTATE, "pykeen": PYKEEN}.items():
        graph = read_graph(made(files), layout=layout)
        assert graph.entities == ("cy", "ann", "bob")
        assert graph.relations == ("likes", "knows")
        assert graph.splits["train"].tolist() == [[1, 1, 2], [2, 1, 0]]
        assert graph.splits["test"].tolist() == [[0, 0, 1]]


def test_ids_of_labelled_files_are_the_sorted_order_of_all_splits(made):
    graph = read_graph(made({"train.txt": "b\tr\té\n", "valid.txt": "a\tq\tZ\n"}))
    assert graph.entities == ("Z", "a", "b", "é")
    assert graph.relations == ("q", "r")
    assert graph.splits["train"].tolist() == [[2, 1, 3]]


def test_order_of_splits_and_other_files(made):
    files = dict.fromkeys(
        ("test_sparse.txt", "test.tsv", "dev.txt.gz", "missing.txt", "train.txt", "valid-easy.txt"), TRAIN
    )
    others = dict.fromkeys(("entities.txt", "README.md", "trainer.txt", "train.csv", "types.tsv"), "x")
    graph = read_graph(made(files | others))
    assert list(graph.splits) == ["train", "valid", "test", "missing", "test_sparse", "valid-easy"]


def test_negatives_are_read_and_are_no_facts(made):
    graph = read_graph(made(LABELLED | {"test_negatives.txt": "ann\tlikes\tann\n"}))
    assert graph.splits["test_negatives"].tolist() == [[0, 1, 0]]
    assert list(fact_splits(graph)) == ["train", "test"]


def test_joined_splits(made):
    graph = read_graph(made(LABELLED))
    assert len(joined_splits(graph, ["train", "test"])) == 3
    assert joined_splits(graph, []).shape == (0, 3)
    with pytest.raises(ValueError, match="`split` must be one of train, test, got 'valid'"):
        joined_splits(graph, ["valid"])


def test_labels_are_kept_to_the_letter(made, blocks):
    line = 'New York \t"in"\t#1\n\u00a0x\tNULL\tNA\nа,b\t \tx\u2028y\n'
    assert labels(read_graph(made({"train.txt": line})))["train"] == [
        ("New York ", '"in"', "#1"),
        ("\u00a0x", "NULL", "NA"),
        ("а,b", " ", "x\u2028y"),
    ]


def test_integers_are_ids(made):
    graph = read_graph(made({"train.txt": "0\t0\t3\n10 1  2\n5 1 6\n", "test_full.txt": "7 0 4\n"}))
    assert graph.entities == tuple(map(str, range(11)))  # 1, 8 and 9 are in no triple
    assert graph.relations == ("0", "1")
    assert graph.splits["train"].tolist() == [[0, 0, 3], [10, 1, 2], [5, 1, 6]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "1 1 2\n2 1 3\n",
            "0 is the id of no entity and of no relation in a triple, .* a candidate of every",
        ),
        ("1 0 2\n2 0 3\n", "0 is the id of no entity in a triple, .* a candidate of every query; `layout`"),
        ("1 1 2\n2 1 0\n", "0 is the id of no relation in a triple, .* counts as one; `layout` labelled"),
    ],
)
def test_ids_that_do_not_begin_at_0_are_noted(made, text, said):
    folder = made({"train.txt": text.replace(" ", "\t")})
    with pytest.warns(UserWarning, match=said) as notes:
        graph = read_graph(folder)
    assert len(notes) == 1
    assert (graph.entities[0], graph.relations[0]) == ("0", "0")


def test_integers_are_labels_where_not_all_columns_are_or_when_told(made):
    words = made({"train.txt": "10\tr\t2\n007\tr\t2\n"})
    assert read_graph(words).entities == ("007", "10", "2")
    numbers = made({"train.txt": "10\t5\t2\n7\t5\t2\n"})
    assert read_graph(numbers, layout="labelled").entities == ("10", "2", "7")
    # A zero in front, as in the ids of WordNet, is no number.
    assert read_graph(made({"train.txt": "007\t5\t2\n7\t5\t2\n"})).entities == ("007", "2", "7")


@pytest.mark.parametrize("line", ["-1 0 1", "01\t0\t1", "1.0 0 1", "+1 0 1"])
def test_one_line_does_not_turn_ids_into_labels(made, line):
    folder = made({"train.txt": f"{line}\n0 0 1\n1 0 2\n", "test.txt": "0\t0\t2\n"})
    words = f"train.txt, line 1: is not three ids .*, got {re.escape(repr(line))}, but most lines are"
    with pytest.raises(ValueError, match=words):
        read_graph(folder)
    if "\t" in line:
        labelled = made({"train.txt": f"{line}\n0\t0\t1\n"})
        assert read_graph(labelled, layout="labelled").entities == ("0", "01", "1", "2")


def test_a_first_line_of_labels_before_ids_is_warned_of(made):
    folder = made({"train.txt": "ann\tknows\tbob\n0\t0\t1\n1\t0\t2\n"})
    with pytest.warns(UserWarning, match="got 'ann.*', but most lines are: all of them are read as labels"):
        assert "ann" in read_graph(folder).entities


@pytest.mark.parametrize("name", ["valid.txt", "dev.tsv", "test_full.txt.gz", "entities.dict"])
@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_a_split_that_is_no_file_is_refused(made, name, what):
    folder = made({"train.txt": "a\tr\tb\n"})
    path = folder / name
    if what == "link":
        path.symlink_to("objects/gone")
        words = "must be a file, but is a link to objects/gone, which does not exist"
    elif what == "folder":
        path.mkdir()
        words = "must be a file, but is a folder"
    else:
        os.mkfifo(path)
        words = "must be a file, but is not"
    with pytest.raises(ValueError, match=rf"{name}: {words}\."):
        read_graph(folder)
    path.rmdir() if what == "folder" else path.unlink()
    (folder / "notes.txt").symlink_to("gone")  # nothing of ours
    assert list(read_graph(folder).splits) == ["train"]


@pytest.mark.parametrize("files", [LABELLED, OPENKE, ROTATE, LIBKGE, PYKEEN])
def test_progress_of_reading_comes_to_its_end(made, files):
    seen = []
    read_graph(made(files), on_progress=lambda *at: seen.append(at))
    done, total = zip(*seen, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == total[-1]


def test_labels_come_before_ids_where_dictionaries_hold_numbers(made):
    dicts = {"entities.dict": "0\t1\n1\t0\n", "relations.dict": "0\t0\n"}
    graph = read_graph(made(dicts | {"train.txt": "1\t0\t0\n"}))
    assert graph.splits["train"].tolist() == [[0, 0, 1]]


def test_labels_beside_a_whole_layout_of_other_files_are_left_out_with_a_note(made):
    for files in (LIBKGE, PYKEEN):
        folder = made(files | LABELLED)
        with pytest.warns(UserWarning, match=r"without test.txt, train.txt; `layout` reads them .labelled"):
            assert labels(read_graph(folder)) == TRIPLES
        for name in (*files, "train.txt"):
            (folder / name).unlink()
    with pytest.warns(UserWarning, match=r"is read as libkge, without test.txt\.$"):
        assert labels(read_graph(made(LIBKGE))) == TRIPLES


def test_splits_that_a_manifest_does_not_name_are_left_out_with_a_note(made):
    folder = made(LIBKGE | {"test.del": "0\t0\t1\n", "valid_more.del.gz": "0\t0\t1\n"})
    with pytest.warns(
        UserWarning, match=r"dataset.yaml: does not name test.del, valid_more.del.gz as splits"
    ):
        assert labels(read_graph(folder)) == TRIPLES


def test_a_split_of_openke_may_be_empty(made):
    graph = read_graph(made(OPENKE | {"valid2id.txt": "0\n"}))
    assert labels(graph) == TRIPLES | {"valid": []}


def test_openke_labels_may_hold_spaces(made):
    graph = read_graph(made(OPENKE | {"entity2id.txt": "3\nNew York 0\nann\t1 \nbob  2\n"}))
    assert graph.entities == ("New York", "ann", "bob")


# --- what PyKEEN saves


def test_a_lone_factory_is_the_split_train(made):
    graph = read_graph(made(FACTORY))
    assert labels(graph) == {"train": TRIPLES["train"]}
    assert graph.entities == ("cy", "ann", "bob")


def test_tables_of_factories_may_be_unpacked(made):
    assert (
        labels(read_graph(made({name.removesuffix(".gz"): text for name, text in PYKEEN.items()}))) == TRIPLES
    )


def test_splits_of_a_data_set_have_the_usual_names_and_order(made):
    graph = read_graph(made(PYKEEN | inside("validation", FACTORY) | inside("inductive_testing", FACTORY)))
    assert list(graph.splits) == ["train", "valid", "test"]
    assert graph.splits["valid"].tolist() == graph.splits["train"].tolist()


def test_factories_with_ids_of_their_own_are_joined_by_labels(made):
    own = {
        "entity_to_id.tsv.gz": "id\tlabel\n0\tann\n1\tcy\n2\tdan\n",
        "relation_to_id.tsv.gz": "id\tlabel\n0\thates\n1\tlikes\n",
        "numeric_triples.tsv.gz": "head\trelation\ttail\n1\t1\t0\n2\t0\t0\n",
    }
    graph = read_graph(made(PYKEEN | inside("testing", own)))
    assert graph.entities == ("cy", "ann", "bob", "dan")
    assert graph.relations == ("likes", "knows", "hates")
    assert labels(graph) == TRIPLES | {"test": [("cy", "likes", "ann"), ("dan", "hates", "ann")]}


def test_labels_that_pykeen_quotes(made):
    text = 'id\tlabel\n0\t"""q"""\n1\t"the ""big"" one"\n2\tNew "York" \n3\t"a\tb"\n'
    graph = read_graph(made(FACTORY | {"entity_to_id.tsv.gz": text}))
    assert graph.entities == ('"q"', 'the "big" one', 'New "York" ', "a\tb")


def test_blocks_of_any_size_give_the_same_graph(made, monkeypatch):
    """Ids that many blocks share, lines longer than a block, and both line ends."""
    rng = np.random.default_rng(5)
    parts = [np.char.add("é" * 5, rng.integers(0, n, 400).astype(str)) for n in (50, 4, 60)]
    lines = ["\t".join(row) for row in zip(*parts, strict=True)]
    ends = rng.choice(["\n", "\r\n"], 400)
    text = "".join(f"{line}{end}" for line, end in zip(lines, ends, strict=True))
    ids = "".join(f"{h} {r}\t{t}\n" for h, r, t in rng.integers(0, 9, (300, 3)))
    for files in ({"train.txt": text, "test.txt": TEST}, {"train.txt": ids, "valid.txt": "1 2 3"}):
        folder, found = made(files), []
        for size in (7, 100, 2**20):
            monkeypatch.setattr("owkg.files.lines._BLOCK", size)
            with pytest.warns(UserWarning, match="repeat an earlier triple"):
                found.append(read_graph(folder))
        for graph in found[:-1]:
            assert graph[:2] == found[-1][:2]
            assert list(graph.splits) == list(found[-1].splits)
            for name, triples in graph.splits.items():
                np.testing.assert_array_equal(triples, found[-1].splits[name])
        (folder / "test.txt").unlink(missing_ok=True)


# --- duplicates


REPEATED = {"train.txt": TRAIN + TRAIN, "test.txt": TRAIN}


def test_duplicates_are_warned_of_and_kept(made):
    folder = made(REPEATED)
    with pytest.warns(UserWarning, match=r"train\.txt: 2 of 4 lines repeat") as caught:
        graph = read_graph(folder)
    assert len(caught) == 1  # the same triple in another split is no duplicate
    assert len(graph.splits["train"]) == 4


def test_duplicates_are_kept_in_silence_or_dropped(made):
    folder = made(REPEATED)
    assert len(read_graph(folder, duplicates="keep").splits["train"]) == 4
    dropped = read_graph(folder, duplicates="drop")
    assert labels(dropped)["train"] == TRIPLES["train"]
    assert len(dropped.splits["test"]) == 2


def test_duplicates_are_refused_with_both_lines(made, blocks):
    with pytest.raises(ValueError, match=r"train\.txt, line 3: .*'ann knows bob'.* on line 1"):
        read_graph(made(REPEATED), duplicates="error")
    openke = OPENKE | {"train2id.txt": "3\n1 2 1\n2 0 1\n2 0 1\n"}
    with pytest.raises(ValueError, match=r"train2id\.txt, line 4: .*line 3"):
        read_graph(made(openke), duplicates="error", layout="openke")


# --- what is refused


BAD_FACTORIES = [
    ("numeric_triples.tsv.gz", "0\t0\t1\n", 1, "must be the header .*trelation.*, got '0"),
    ("numeric_triples.tsv.gz", "head\trelation\ttail\n", 1, "followed by lines"),
    ("numeric_triples.tsv.gz", "", 1, "empty"),
    ("numeric_triples.tsv.gz", "head\trelation\ttail\n0\t0\t1\n0\t0\n", 3, "2 columns"),
    ("numeric_triples.tsv.gz", "head\trelation\ttail\n0\t0\t1\n0\t0\tx\n", 3, "whole numbers"),
    ("numeric_triples.tsv.gz", "head\trelation\ttail\n0\t0\t-1\n", 2, "whole numbers"),
    ("numeric_triples.tsv.gz", "head\trelation\ttail\n0\t0\t3\n", 2, r"tail .* \[0, 3\), got 3"),
    ("numeric_triples.tsv.gz", "head\trelation\ttail\n0\t0\t1\n0\t2\t1\n", 3, r"relation .* got 2"),
    ("entity_to_id.tsv.gz", "0\tcy\n1\tann\n2\tbob\n", 1, "must be the header"),
    ("entity_to_id.tsv.gz", "label\tid\ncy\t0\nann\t1\nbob\t2\n", 1, "must be the header"),
    ("entity_to_id.tsv.gz", "id\tlabel\n0\tcy\n1\n2\tbob\n", 3, "an id, a tab, and a label"),
    ("entity_to_id.tsv.gz", "id\tlabel\n0\tcy\n1\t\n2\tbob\n", 3, "an id, a tab, and a label"),
    ("entity_to_id.tsv.gz", 'id\tlabel\n0\tcy\n1\t"an"n"\n2\tbob\n', 3, "an id, a tab, and a label"),
    ("entity_to_id.tsv.gz", "id\tlabel\n0\tcy\n1\tann\n1\tbob\n", 4, "id '1' .* line 3"),
    ("entity_to_id.tsv.gz", 'id\tlabel\n0\tcy\n1\tann\n2\t"cy"\n', 4, "label 'cy' .* line 2"),
    ("relation_to_id.tsv.gz", "id\tlabel\n0\tlikes\n2\tknows\n", 3, "below .*2, got 2"),
]
BAD_LINES = [
    (LABELLED | {"test.txt": "cy\tlikes\n"}, "test.txt", 1, "2 columns"),
    (LABELLED | {"train.txt": TRAIN + "a\tb\tc\td\n"}, "train.txt", 3, "4 columns"),
    (LABELLED | {"train.txt": TRAIN + "ann knows bob\n"}, "train.txt", 3, "1 column,"),
    (LABELLED | {"train.txt": "ann\t\tbob\n"}, "train.txt", 1, "none empty"),
    (LABELLED | {"train.txt": TRAIN + "\n" + TRAIN}, "train.txt", 3, "blank"),
    (LABELLED | {"train.txt": "\n" + TRAIN}, "train.txt", 1, "blank"),
    (LABELLED | {"train.txt": TRAIN + "  \t \n"}, "train.txt", 3, "blank"),
    (LABELLED | {"train.txt": TRAIN.encode() + b"\xff\tb\tc\n"}, "train.txt", 3, "0xff"),
    (LABELLED | {"train.txt": TRAIN.encode("utf-16")}, "train.txt", 1, "UTF-8"),
    (LABELLED | {"test.txt": ""}, "test.txt", 1, "empty"),
    (LABELLED | {"test.txt": "\n\n"}, "test.txt", 1, "empty"),
    (LABELLED | {"test.txt": b"\xef\xbb\xbf"}, "test.txt", 1, "empty"),
    # integers
    ({"train.txt": "0\t0\t1\n1\t0\tx\n"}, "train.txt", 2, "three ids"),
    ({"train.txt": "0\t0\t1\n1\t0\t-1\n"}, "train.txt", 2, "three ids"),
    ({"train.txt": "0\t0\t1\n1\t0\t1.0\n"}, "train.txt", 2, "three ids"),
    ({"train.txt": "0\t0\t1\n1\t0\n"}, "train.txt", 2, "2 columns"),
    # dictionaries
    (ROTATE | {"test.txt": "cy\tlikes\tdan\n"}, "test.txt", 1, "entity 'dan' is not in"),
    (ROTATE | {"test.txt": TEST + "cy\thates\tann\n"}, "test.txt", 2, "relation 'hates' is not in"),
    (ROTATE_IDS | {"test.txt": "0 0 1\n0 0 3\n"}, "test.txt", 2, r"tail .* \[0, 3\), got 3"),
    (ROTATE_IDS | {"test.txt": "0 2 1\n"}, "test.txt", 1, r"relation .* \[0, 2\), got 2"),
    (ROTATE_IDS | {"test.txt": f"{'9' * 30} 0 1\n"}, "test.txt", 1, "head .* got 9{30}"),
    (ROTATE | {"entities.dict": "0\tcy\n1\tann\n3\tbob\n"}, "entities.dict", 3, "below .*3, got 3"),
    (ROTATE | {"entities.dict": "0\tcy\n1\tann\n1\tbob\n"}, "entities.dict", 3, "id '1' .* line 2"),
    (ROTATE | {"entities.dict": "0\tcy\n1\tann\n2\tcy\n"}, "entities.dict", 3, "label 'cy' .* line 1"),
    (ROTATE | {"entities.dict": "0\tcy\nann\t1\n2\tbob\n"}, "entities.dict", 2, "an id"),
    (ROTATE | {"relations.dict": "0\tlikes\n\n1\tknows\n"}, "relations.dict", 2, "blank"),
    # OpenKE
    (OPENKE | {"train2id.txt": "1 2 1\n2 0 1\n"}, "train2id.txt", 1, "number of lines"),
    (OPENKE | {"train2id.txt": "3\n1 2 1\n2 0 1\n"}, "train2id.txt", 1, "2, got '3'"),
    (OPENKE | {"train2id.txt": "0\n"}, "train2id.txt", 1, "followed"),
    (OPENKE | {"entity2id.txt": "0\n"}, "entity2id.txt", 1, "followed"),
    (OPENKE | {"train2id.txt": "2\n1 2 1\n2 0\n"}, "train2id.txt", 3, "2 columns"),
    (OPENKE | {"train2id.txt": "2\n1 2 1\n2 0 2\n"}, "train2id.txt", 3, "relation .* got 2"),
    (OPENKE | {"train2id.txt": "2\n1 3 1\n2 0 1\n"}, "train2id.txt", 2, "tail .* got 3"),
    (OPENKE | {"entity2id.txt": "2\ncy\t0\nann\t1\nbob\t2\n"}, "entity2id.txt", 1, "3, got '2'"),
    (OPENKE | {"entity2id.txt": "3\ncy\t0\nann\t1\nbob\t3\n"}, "entity2id.txt", 4, "below"),
    (OPENKE | {"entity2id.txt": "3\ncy\t0\nann\t1\nbob\t1\n"}, "entity2id.txt", 4, "line 3"),
    (OPENKE | {"entity2id.txt": "3\ncy\t0\nann\nbob\t1\n"}, "entity2id.txt", 3, "a label and an id"),
    # LibKGE
    (LIBKGE | {"train.del": "1\t1\t2\n2\t1\t5\n"}, "train.del", 2, "tail .* got 5"),
    (LIBKGE | {"entity_ids.del": "0\tcy\n1\tann\n9\tbob\n"}, "entity_ids.del", 3, "below"),
    (
        LIBKGE | {"held_out.del": "0\t0\t1\n0\t0\t0\n"},
        "dataset.yaml",
        10,
        "states 1 lines for held_out.del, .* 2",
    ),
    (LIBKGE | {"dataset.yaml": MANIFEST + "  - x\n"}, "dataset.yaml", 20, "key: value"),
    (LIBKGE | {"dataset.yaml": MANIFEST + "  name: x\n"}, "dataset.yaml", 20, "already on line 16"),
    (LIBKGE | {"dataset.yaml": MANIFEST + "  more: [1, 2]\n"}, "dataset.yaml", 20, "plain value"),
    (LIBKGE | {"dataset.yaml": MANIFEST + "  more: &a x\n"}, "dataset.yaml", 20, "plain value"),
    (LIBKGE | {"dataset.yaml": MANIFEST + "  more: *a\n"}, "dataset.yaml", 20, "plain value"),
    (
        LIBKGE | {"dataset.yaml": MANIFEST + "  more: !!python/name:os.system x\n"},
        "dataset.yaml",
        20,
        "plain value",
    ),
    (LIBKGE | {"dataset.yaml": MANIFEST.replace("s: 3", "s: 4")}, "dataset.yaml", 17, "states 4 lines"),
    (LIBKGE | {"dataset.yaml": MANIFEST.replace("s: 3", "s: x")}, "dataset.yaml", 17, "whole number"),
    (
        LIBKGE | {"dataset.yaml": MANIFEST.replace("test.type: triples", "test.type: quintuples")},
        "dataset.yaml",
        12,
        "quintuples",
    ),
    # PyKEEN
    *(
        (files | inside(folder, {file: text}) if folder else files | {file: text}, f"{folder}{file}", *rest)
        for files, folder in ((FACTORY, ""), (PYKEEN, "training/"), (PYKEEN, "testing/"))
        for file, text, *rest in BAD_FACTORIES
    ),
    (
        LIBKGE | {"dataset.yaml": MANIFEST.replace("held_out.del", "../x.del")},
        "dataset.yaml",
        9,
        "in the same folder",
    ),
    (
        LIBKGE | {"dataset.yaml": "dataset:\n  files.train.filename: ../lk/train.del\n"},
        "dataset.yaml",
        2,
        "must name a file in the same folder, got '../lk/train.del', which is outside of it",
    ),
    (
        LIBKGE | {"dataset.yaml": "dataset:\n  files.train.filename: train.del\n"},
        "dataset.yaml",
        2,
        "names 'train.del' for the split train, whose type must be triples, got none",
    ),
]


@pytest.mark.parametrize(("files", "file", "line", "message"), BAD_LINES)
def test_a_bad_line_is_named(made, blocks, files, file, line, message):
    folder = made(files)
    with pytest.raises(ValueError, match=message) as caught:
        read_graph(folder)
    assert str(caught.value).startswith(f"{folder / file}, line {line}: ")


BAD_FOLDERS = [
    ({}, "got an empty folder"),
    ({"notes.md": "x"}, "train.txt, train.tsv or train.csv .* got notes.md"),
    ({"test.txt": TEST}, r"must hold the split train \(layout labelled\), got test.txt"),
    ({"train.txt": TRAIN, "train.tsv": TRAIN}, "one file of the split train, got train.tsv and train.txt"),
    ({"train.txt": TRAIN, "train.txt.gz": TRAIN}, "one file of the split train"),
    (LABELLED | {"dev.txt": TEST, "valid.txt": TEST}, "one file of the split valid"),
    (OPENKE | ROTATE, "several .openke: .*; rotate: .*entities.dict.*; name one with `layout`"),
    (DICTS, "split train"),
    (IDS, "split train"),
    ({k: v for k, v in OPENKE.items() if k != "entity2id.txt"}, "must hold entity2id.txt"),
    ({k: v for k, v in OPENKE.items() if k != "train2id.txt"}, r"split train \(layout openke\), got test2id"),
    (OPENKE | {"entity2id.txt.gz": OPENKE["entity2id.txt"]}, "got both"),
    ({k: v for k, v in LIBKGE.items() if k != "held_out.del"}, "must hold held_out.del"),
    (LIBKGE | {"dataset.yaml": "dataset:\n  name: x\n"}, "split train"),
    (inside("testing", TESTING), r"split train \(layout pykeen\), got testing"),
    (FACTORY | PYKEEN, "one triples factory or hold several, got numeric_triples.tsv.gz and training/"),
    (PYKEEN | OPENKE, "several .openke: .*; pykeen: training/numeric_triples.tsv.gz, testing"),
    (FACTORY | {"numeric_triples.tsv": "x"}, "one of numeric_triples.tsv and numeric_triples.tsv.gz"),
    ({"numeric_triples.tsv": "x"}, "must hold entity_to_id.tsv"),
    ({"train.txt": "0\t0\t100\n"}, "half of the entity ids up to the largest, 100, got 2"),
    ({"train.txt": f"0\t{'9' * 30}\t1\n"}, "half of the relation ids"),
]


@pytest.mark.parametrize(("files", "message"), BAD_FOLDERS)
def test_a_bad_folder_is_named(made, files, message):
    folder = made(files)
    with pytest.raises(ValueError, match=message) as caught:
        read_graph(folder)
    assert str(caught.value).startswith(f"{folder}: ")


def test_a_folder_of_several_layouts_is_read_when_one_is_named(made):
    folder = made(OPENKE | ROTATE | LIBKGE | PYKEEN)
    for layout in ("labelled", "openke", "rotate", "libkge", "pykeen"):
        assert labels(read_graph(folder, layout=layout)) == TRIPLES


@pytest.mark.parametrize("cut", [5, -9, -1])
def test_a_broken_gzip_file_is_named(made, cut):
    folder = made(LABELLED)
    (folder / "valid.txt.gz").write_bytes(gzip.compress(TRAIN.encode() * 100)[:cut])
    with pytest.raises(ValueError, match=re.escape(f"{folder / 'valid.txt.gz'}: must be a whole gzip file")):
        read_graph(folder)


def test_what_is_no_gzip_file_is_named(made):
    folder = made(LABELLED)
    (folder / "valid.txt.gz").write_text(TRAIN)
    with pytest.raises(ValueError, match="whole gzip file"):
        read_graph(folder)


def test_what_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "nowhere", str(tmp_path / "nowhere")):
        with pytest.raises(ValueError, match="no such folder"):
            read_graph(path)
    with pytest.raises(ValueError, match="this is a file; give its folder"):
        read_graph(tmp_path / "file")


@pytest.mark.parametrize("folder", [None, 3, b"graph", ["graph"]])
def test_what_is_no_path_is_refused(folder):
    with pytest.raises(ValueError, match="`folder` must be a path, got"):
        read_graph(folder)


def test_unknown_options_are_refused(made):
    folder = made(LABELLED)
    with pytest.raises(ValueError, match="`duplicates` must be one of warn, keep, drop, error, got 'x'"):
        read_graph(folder, duplicates="x")
    with pytest.raises(ValueError, match=r"`layout` must be one of labelled, .*, got 'x'"):
        read_graph(folder, layout="x")
