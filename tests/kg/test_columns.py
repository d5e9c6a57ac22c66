"""Folders whose columns, maps or classes are those of other tools: what each is read as, and what is said."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import owkg.kg.ntriples
from owkg.kg import fact_splits, read_graph
from owkg.kg.columns import Layout, layout_named

FACTS = {"train": [("ann", "knows", "bob"), ("bob", "knows", "cy")], "test": [("cy", "likes", "ann")]}
MAPS = {"entity2id.txt": "cy\t0\nann\t1\nbob 2\n", "relation2id.txt": "likes\t0\nknows\t1\n"}
COUNTED = {"entity2id.txt": "3\ncy\t0\nann\t1\nbob\t2\n", "relation2id.txt": "2\nlikes\t0\nknows\t1\n"}


def text(order, *, mark="\t", header="", splits=FACTS, ending="txt", more=()):
    """Files of the facts with their columns in an order, and further ones."""
    place = {"head": 0, "relation": 1, "tail": 2}
    return {
        f"{name}.{ending}": header
        + "".join(mark.join([*more, *(fact[place[column]] for column in order)]) + "\n" for fact in facts)
        for name, facts in splits.items()
    }


USUAL, OTHER = ("head", "relation", "tail"), ("head", "tail", "relation")


@pytest.fixture
def made(tmp_path):
    """Writes files to a folder and gives the folder."""

    def make(files):
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(content.encode())
        return tmp_path

    return make


@pytest.fixture(params=[None, 8], ids=["whole files", "blocks of 8 bytes"])
def blocks(request, monkeypatch):
    """Files are read whole, and in blocks of some bytes."""
    if request.param:
        monkeypatch.setattr("owkg.files.lines._BLOCK", request.param)


def labels(graph):
    """The splits of a graph with labels in place of ids."""
    e, r = graph.entities, graph.relations
    return {
        name: [(e[h], r[p], e[t]) for h, p, t in triples.tolist()] for name, triples in graph.splits.items()
    }


# --- maps beside labels (KB2E, ConvKB, KBAT)


@pytest.mark.parametrize("maps", [MAPS, COUNTED], ids=["without counts", "with counts"])
@pytest.mark.parametrize("order", [USUAL, OTHER])
@pytest.mark.parametrize("mark", ["\t", " "])
def test_maps_give_the_ids_and_say_which_column_holds_the_relations(made, blocks, maps, order, mark):
    graph = read_graph(made(maps | text(order, mark=mark)))
    assert labels(graph) == FACTS
    assert graph.entities == ("cy", "ann", "bob")
    assert graph.relations == ("likes", "knows")


def test_maps_that_fit_both_orders_are_refused(made):
    files = {"entity2id.txt": "a 0\nb 1\n", "relation2id.txt": "a 0\nb 1\n", "train.txt": "a\tb\ta\n"}
    folder = made(files)
    with pytest.raises(
        ValueError, match="second and the third fit equally; name the order, such as `layout`"
    ):
        read_graph(folder)
    assert labels(read_graph(folder, layout="head,tail,relation"))["train"] == [("a", "a", "b")]


@pytest.mark.parametrize(
    ("file", "line", "what"),
    [("train.txt", "ann\tknows\tdan\n", "entity 'dan' is not in entity2id.txt"),
     ("test.txt", "ann\thates\tbob\n", "relation 'hates' is not in relation2id.txt")],
)  # fmt: skip
def test_a_label_that_a_map_lacks_is_named_with_its_line(made, file, line, what):
    files = MAPS | text(USUAL)
    folder = made(files | {file: files[file] + line})
    number = files[file].count("\n") + 1
    with pytest.raises(
        ValueError,
        match=f"{file}, line {number}: the {what}; `layout` labelled .or head,tail,relation, .*needs no such",
    ):
        read_graph(folder)
    assert read_graph(folder, layout="labelled").num_entities >= 3


# --- two layouts, one of them complete


@pytest.mark.parametrize(
    ("rest", "left"),
    [
        ({"entity2id.txt": COUNTED["entity2id.txt"]}, "entity2id.txt"),
        ({"relation2id.txt": MAPS["relation2id.txt"]}, "relation2id.txt"),
        ({"entities.dict": "0\tann\n"}, "entities.dict"),
        (
            {"entity_ids.del": "0\tann\n", "relation_ids.del": "0\tknows\n"},
            "entity_ids.del, relation_ids.del",
        ),
        ({"test.nt": "<a:a> <a:r> <a:b> .\n"}, "test.nt"),
    ],
)
def test_the_complete_one_of_two_layouts_is_read_and_the_rest_is_named(made, rest, left):
    folder = made(text(USUAL) | rest)
    with pytest.warns(UserWarning, match=f"is read as labelled, without {left}, because the other files"):
        assert labels(read_graph(folder)) == FACTS


def test_half_of_the_maps_beside_another_order_is_noted(made):
    folder = made(text(OTHER) | {"entity2id.txt": MAPS["entity2id.txt"]})
    said = r"without entity2id.txt, .* of KB2E, give `layout` head,tail,relation"
    with (
        pytest.warns(UserWarning, match=said),
        pytest.warns(UserWarning, match="is the order of the columns"),
    ):
        read_graph(folder)
    assert labels(read_graph(folder, layout="head,tail,relation")) == FACTS
    folder = made(MAPS | text(OTHER) | {"relation2id.txt": "knows 0\n"})
    with pytest.raises(
        ValueError, match=r"'likes' is not in relation2id\.txt; `layout` head,tail,relation needs"
    ):
        read_graph(folder)


def test_two_complete_layouts_are_refused(made):
    dicts = {"entities.dict": "0\tann\n1\tbob\n2\tcy\n", "relations.dict": "0\tknows\n1\tlikes\n"}
    folder = made(text(USUAL) | dicts | MAPS)
    with pytest.raises(ValueError, match=r"got files of several .rotate: .*kb2e: .*name one with `layout`"):
        read_graph(folder)
    for layout in ("kb2e", "rotate", "labelled"):
        assert labels(read_graph(folder, layout=layout)) == FACTS


# --- orders of columns and header lines


@pytest.mark.parametrize("ending", ["txt", "tsv", "csv", "sif"])
@pytest.mark.parametrize("order", [OTHER, ("relation", "head", "tail"), ("tail", "head", "relation")])
def test_an_order_of_columns(made, blocks, order, ending):
    folder = made(text(order, ending=ending, mark="," if ending == "csv" else "\t"))
    assert labels(read_graph(folder, layout=",".join(order))) == FACTS


@pytest.mark.parametrize(
    ("header", "order", "layout"),
    [
        ("subject\tpredicate\tobject\n", USUAL, "head=subject,relation=predicate,tail=object"),
        ("source\tmetaedge\ttarget\n", USUAL, "head=source, relation=metaedge, tail=target"),
        ("#h\tt\tr\n", OTHER, "tail=t,head=h,relation=r"),
    ],
)
def test_the_columns_of_a_header_line(made, blocks, header, order, layout):
    folder = made(text(order, header=header))
    with pytest.raises(
        ValueError, match=r"train\.txt, line 1: must be a triple, got what looks like a header"
    ):
        read_graph(folder)
    assert labels(read_graph(folder, layout=layout)) == FACTS


@pytest.mark.parametrize("mark", ["\t", ",", ";"])
def test_other_columns_are_left_out_and_named(made, blocks, mark):
    ending = "tsv" if mark == "\t" else "csv"
    header = mark.join(["", "subject", "predicate", "object"]) + "\n"
    folder = made(text(USUAL, header=header, mark=mark, ending=ending, more=["7"]))
    words = "name its columns (`layout` head=subject,relation=predicate,tail=object)"
    with pytest.raises(ValueError, match=re.escape(words)):
        read_graph(folder)
    with pytest.warns(UserWarning, match="the columns '' are left out"):
        assert labels(read_graph(folder, layout="head=subject,relation=predicate,tail=object")) == FACTS


def test_a_header_line_with_classes_is_said_to_have_them(made):
    folder = made(text(USUAL, header="head\trelation\ttail\tlabel\n"))
    words = "(`layout` head=head,relation=relation,tail=tail,label=label)"
    with pytest.raises(ValueError, match=re.escape(words)):
        read_graph(folder)


def test_an_order_does_not_take_a_header_line_for_a_fact(made):
    folder = made(text(OTHER, header="head\ttail\trelation\n"))
    with pytest.raises(ValueError, match="looks like a header line"):
        read_graph(folder, layout="head,tail,relation")


@pytest.mark.parametrize("mark", [",", ";"])
def test_fields_of_tables_may_be_quoted(made, blocks, mark):
    line = mark.join(['"Doe; J., ""Jo"""', "knows", "ann"])
    folder = made({"train.csv": f"{line}\n{mark.join('xyz')}\n"})
    assert labels(read_graph(folder))["train"][0] == ('Doe; J., "Jo"', "knows", "ann")


def test_tables_of_ids_are_ids(made):
    graph = read_graph(made({"train.csv": "0,0,2\n1,0,10\n3,0,4\n5,0,6\n7,0,8\n", "test.csv": "9,0,0\n"}))
    assert graph.entities == tuple(map(str, range(11)))
    assert graph.splits["train"][1].tolist() == [1, 0, 10]


def test_tables_beside_other_files_of_a_graph_are_none_of_its_splits(made):
    assert (
        labels(read_graph(made(text(USUAL) | {"test_ranks.csv": "rank\n1\n", "valid.csv": "x\n"}))) == FACTS
    )


@pytest.mark.parametrize(
    ("files", "layout", "words"),
    [
        ({"train.csv": "a,r,b\nb,r\n"}, None, "train.csv, line 2: .*separated by commas, got 2 columns"),
        ({"train.csv": "a,r,b\nb,,c\n"}, None, "train.csv, line 2: .*none empty"),
        ({"train.csv": 'a,r,b\nb,"",c\n'}, None, "train.csv, line 2: .*none empty"),
        ({"train.csv": 'a,r,b\n"b,r,c\n'}, None, "train.csv, line 2: must be"),
        ({"train.txt": "a\tb\tr\na\tb\n"}, "head,tail,relation", "train.txt, line 2: .* got 2 columns"),
        ({"train.txt": "s\tp\n"}, "head=s,relation=p,tail=o", "train.txt, line 1: .*with the column 'o'"),
        ({"train.txt": "s\tp\to\n"}, "head=s,relation=p,tail=o", "train.txt, line 1: must be followed"),
        ({"train.txt": "s\ts\tp\to\n"}, "head=s,relation=p,tail=o", "line 1: .*'s', .* has it 2 times"),
        ({"train.txt": "s\tp\to\na\tr\tb\na\tr\n"}, "head=s,relation=p,tail=o", "line 3: .*got 2 columns"),
    ],
)  # fmt: skip
def test_bad_lines_of_named_columns(made, blocks, files, layout, words):
    with pytest.raises(ValueError, match=words):
        read_graph(made(files), layout=layout)


def test_a_layout_is_a_name_an_order_or_columns():
    assert layout_named("tail, head,relation").order == ("tail", "head", "relation")
    assert layout_named(None) == Layout()
    for wrong in (
        "head,tail",
        "a,b,c",
        "head=a,relation=b",
        "head=a,relation=a,tail=c",
        "x",
        "",
        3,
        ["labelled"],
    ):
        with pytest.raises(ValueError, match=r"`layout` must be one of labelled, .* an order of columns"):
            layout_named(wrong)


# --- classes


@pytest.mark.parametrize(
    ("true", "false"), [("1", "-1"), ("1", "0"), ("+1", "-1"), ("True", "FALSE"), ("yes", "no")]
)
def test_a_fourth_column_divides_true_from_false(made, blocks, true, false):
    lines = (
        f"ann\tlikes\tcy\t{true}\nann\tlikes\tbob\t{false}\nbob\tlikes\tcy\t{true}\nzoe\tlikes\tcy\t{false}\n"
    )
    folder = made({"train.txt": text(USUAL)["train.txt"], "dev.txt": lines, "test.txt": lines})
    with pytest.warns(
        UserWarning, match="marks 2 triples as true and 2 as false; the false ones become the split"
    ):
        graph = read_graph(folder)
    assert list(graph.splits) == ["train", "valid", "test", "test_negatives", "valid_negatives"]
    for name in ("valid", "test"):
        assert labels(graph)[name] == [("ann", "likes", "cy"), ("bob", "likes", "cy")]
        assert labels(graph)[f"{name}_negatives"] == [("ann", "likes", "bob"), ("zoe", "likes", "cy")]
    assert list(fact_splits(graph)) == ["train", "valid", "test"]


@pytest.mark.parametrize("layout", ["kb2e", "head,tail,relation", "head=h,tail=t,relation=r,label=y"])
def test_classes_in_other_layouts(made, layout):
    header = "h\tt\tr\ty\n" if "label" in layout else ""
    train = "ann\tbob\tknows\tyes\n" if header else "ann\tbob\tknows\n"
    lines = "cy\tann\tlikes\t1\ncy\tbob\tlikes\t0\n"
    folder = made(MAPS | {"train.txt": header + train, "test.txt": header + lines})
    with pytest.warns(UserWarning, match="become the split"):
        graph = read_graph(folder, layout=layout)
    assert labels(graph)["test"] == [("cy", "likes", "ann")]
    assert labels(graph)["test_negatives"] == [("cy", "likes", "bob")]


def test_a_fourth_column_beside_ids_is_asked_about(made, blocks):
    folder = made({"train.txt": "0\t0\t1\t1\n1\t0\t2\t1\n2\t1\t0\t1\n", "test.txt": "2\t0\t0\t1\n"})
    with pytest.raises(ValueError, match=r"train\.txt, line 1: is three whole numbers .*`layout` labelled"):
        read_graph(folder)
    (folder / "train.txt").write_text("0\t0\t1\n1\t0\t2\n2\t1\t0\n")
    with pytest.raises(ValueError, match=r"test\.txt, line 1: .* got '2\\t0\\t0\\t1'"):
        read_graph(folder)
    with pytest.warns(UserWarning, match="marks 1 triples as true and 0 as false"):
        assert labels(read_graph(folder, layout="labelled"))["test"] == [("2", "0", "0")]


@pytest.mark.parametrize("order", ["head,relation,tail,time", "head,tail,relation,weight"])
def test_a_column_that_an_order_names_is_left_out(made, blocks, order):
    lines = (
        "ann\tlikes\tcy\t1\nbob\tlikes\tcy\t0\n".replace("likes\tcy", "cy\tlikes")
        if "tail,r" in order
        else ("ann\tlikes\tcy\t1\nbob\tlikes\tcy\t0\n")
    )
    folder = made({"train.txt": lines})
    with pytest.warns(UserWarning, match=f"the columns '{order.split(',')[-1]}' are left out"):
        graph = read_graph(folder, layout=order)
    assert labels(graph) == {"train": [("ann", "likes", "cy"), ("bob", "likes", "cy")]}
    usual = ",".join(order.split(",")[:3])
    with pytest.warns(UserWarning, match=f"time or a weight, `layout` {usual},time leaves it out"):
        assert list(read_graph(folder, layout=usual).splits) == ["train", "train_negatives"]


def test_an_order_may_name_the_classes(made):
    folder = made({"train.txt": "1\tann\tlikes\tcy\n0\tbob\tlikes\tcy\n"})
    with pytest.warns(UserWarning, match=r"become the split train_negatives\.$"):
        graph = read_graph(folder, layout="label,head,relation,tail")
    assert labels(graph)["train_negatives"] == [("bob", "likes", "cy")]


def test_a_triple_that_is_true_and_false_is_noted_with_its_lines(made, blocks):
    lines = "bob\tlikes\tcy\t1\nann\tlikes\tcy\t-1\nann\tlikes\tbob\t1\nann\tlikes\tcy\t1\n"
    said = r"test\.txt, line 4: the triple is true here, and false on line 2: 1 triples of the file are both"
    with pytest.warns(UserWarning, match="become the split"), pytest.warns(UserWarning, match=said):
        read_graph(made(text(USUAL) | {"test.txt": lines}))


def test_lines_of_classes_are_named(made, blocks):
    first = "ann\tlikes\tcy\t1\nbob\tlikes\tcy\t-1\n"
    with pytest.raises(ValueError, match=r"test\.txt, line 3: the class .* must be 1 or -1 .*, got '0\.7'"):
        read_graph(made(text(USUAL) | {"test.txt": first + "ann\tlikes\tbob\t0.7\n"}))
    again = first + "cy\tlikes\tcy\t1\nbob\tlikes\tcy\t-1\n"
    refused = pytest.raises(ValueError, match=r"line 4: .* is already on line 2")
    with pytest.warns(UserWarning, match="as true"), refused:
        read_graph(made(text(USUAL) | {"test.txt": again}), duplicates="error")
    with pytest.raises(ValueError, match=r"test\.txt, line 3: .*got 3 columns"):
        read_graph(made(text(USUAL) | {"test.txt": first + "ann\tlikes\tbob\n"}))


def test_false_triples_in_two_files_are_refused(made):
    files = text(USUAL) | {"test.txt": "ann\tlikes\tcy\t-1\n", "test_negatives.txt": "ann\tlikes\tbob\n"}
    refused = pytest.raises(ValueError, match=r"the split test_negatives, and test.txt does")
    with pytest.warns(UserWarning, match="as true"), refused:
        read_graph(made(files))


# --- N-Triples

NT = {
    "train.nt": "<http://x/ann> <http://x/knows> <http://x/bob> .\n# a comment\n\n"
    "<http://x/bob> <http://x/knows> <http://x/cy> .\n",
    "test.nt": "<http://x/cy>\t<http://x/likes>  <http://x/ann>. # so\n",
}


def test_iris_are_labels_without_brackets(made, blocks):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = read_graph(made(NT))
    assert labels(graph) == {
        name: [tuple(f"http://x/{one}" for one in fact) for fact in facts] for name, facts in FACTS.items()
    }


def test_literals_and_blank_nodes_are_entities_as_they_are_written(made):
    more = '_:n <a:p> "5"^^<a:int> .\n_:n <a:p> "\\u00e9 \\"q\\"\\tx"@en .\n'
    folder = made(NT | {"test.nt": more})
    with pytest.warns(UserWarning, match=r"literals .2. and blank nodes .1. are entities"):
        graph = read_graph(folder)
    assert labels(graph)["test"] == [("_:n", "a:p", '"5"^^<a:int>'), ("_:n", "a:p", '"é \\"q\\"\\tx"@en')]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ann knows bob .\n", "must be a triple of N-Triples"),
        ("<a:a> <a:p> <a:b>\n", "must be a triple of N-Triples"),
        ("<a:a> <a:p> <a b> .\n", "must be a triple of N-Triples"),
        ("<http://x/ann> <http://x/knows> <http://x/bob> .\n", "is already on line 1"),
    ],
)
def test_lines_of_n_triples_are_named(made, blocks, line, words):
    folder = made(NT | {"train.nt": NT["train.nt"] + line})
    with pytest.raises(ValueError, match=rf"train\.nt, line 5: .*{words}"):
        read_graph(folder, duplicates="error")


def test_n_triples_without_their_parser(made, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyoxigraph", None)
    with pytest.raises(ValueError, match=re.escape("N-Triples need pyoxigraph: `pip install 'owkg[rdf]'`.")):
        read_graph(made(NT))


def test_the_line_of_each_triple():
    block = owkg.kg.ntriples.LineBlock(5, b"\n<a:a> <a:p> <a:b> .\n # no\n<a:a> <a:p> <a:c> .")
    frame = owkg.kg.ntriples.triple_columns("x.nt", block)
    np.testing.assert_array_equal(frame["line"], [6, 8])


def test_both_n_triples_and_labels_are_refused(made):
    with pytest.raises(ValueError, match=r"got files of several .ntriples: .*labelled: train.txt"):
        read_graph(made(NT | text(USUAL)))


# --- the page of the formats

PAGE = (Path(__file__).parents[2] / "docs/reference/files/graphs.md").read_text(encoding="utf-8")
_BLOCKS = r"^```text\n((?:[^`\n]*\n)+)```\n\n```console\n(?:\$ pip.*\n)?(\$ owkg kg info .*)\n"
SHOWN = re.findall(_BLOCKS, PAGE, re.MULTILINE)


@pytest.mark.parametrize(("files", "command"), SHOWN, ids=[command.split()[4] for _, command in SHOWN])
@pytest.mark.filterwarnings("ignore:.*(left out|triples as true|are entities)")
def test_the_folders_of_the_page_are_read_as_it_says(made, files, command):
    held, name = {}, ""
    for line in files.splitlines():
        place, _, content = line.partition(" ")
        name = place or name
        held[name] = held.get(name, "") + content.strip().replace("→", "\t") + "\n"
    folder, _, layout = command.removeprefix("$ owkg kg info ").partition(" --layout ")
    graph = read_graph(made(held) / folder, layout=layout or None)
    assert len(graph.splits["train"]) == 2
    assert len(graph.splits["test"]) == 1


def test_triples_beside_a_whole_openke_folder_are_left_out_with_a_note(tmp_path):
    maps = {"entity2id.txt": "2\na\t0\nb\t1\n", "relation2id.txt": "1\nr\t0\n"}
    for name, text in (maps | {"train2id.txt": "1\n0 1 0\n", "train.txt": "b\tr\ta\n"}).items():
        (tmp_path / name).write_text(text)
    with pytest.warns(UserWarning, match=r"is read as openke, without train.txt; `layout` reads"):
        assert read_graph(tmp_path).splits["train"].tolist() == [[0, 0, 1]]
    assert read_graph(tmp_path, layout="labelled").splits["train"].tolist() == [[1, 0, 0]]
