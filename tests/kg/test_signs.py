"""Header lines and other orders of columns are named; no graph that is read rightly is suspected."""

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest

from owkg.kg import read_graph
from owkg.kg.signs import header_columns
from owkg.sampling import read_facts

HEADERS = [
    "head\trelation\ttail",
    "subject\tpredicate\tobject",
    "Source\tmetaedge\tTarget",
    ":START_ID\t:TYPE\t:END_ID",
    "h\tr\tt",
    "head_id\trelation_id\ttail_id",
    "from\trel\tto",
    '"entity1"\t"relation"\t"entity2"',
]


def _rows(seed=0, entities=20, relations=4, count=200, entity="p{:02d}", relation="is_{}"):
    """Lines of head, relation, tail."""
    rng = np.random.default_rng(seed)
    ends, through = rng.integers(entities, size=(count, 2)), rng.integers(relations, size=count)
    return [
        (entity.format(h), relation.format(r), entity.format(t))
        for (h, t), r in zip(ends.tolist(), through.tolist(), strict=True)
    ]


def _written(folder: Path, rows, *, order=(0, 1, 2), header="", splits=("train", "valid", "test")):
    lines = ["\t".join(row[i] for i in order) for row in dict.fromkeys(rows)]
    for i, split in enumerate(splits):
        own = ([header] if header else []) + lines[i :: len(splits)]
        (folder / f"{split}.txt").write_text("\n".join(own) + "\n")
    return folder


def _said(folder: Path, **options) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_graph(folder, **options)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("ids", [False, True])
def test_a_header_line_is_an_error_that_names_file_and_line(tmp_path, header, ids):
    rows = _rows(entity="{}" if ids else "p{}", relation="{}" if ids else "r{}")
    folder = _written(tmp_path, rows, header=header)
    with (
        warnings.catch_warnings(action="ignore"),
        pytest.raises(
            ValueError, match=r"train\.txt, line 1: must be a triple, got what looks like a header"
        ),
    ):
        read_graph(folder)
    assert not any("header" in text for text in _said(folder, layout="labelled"))


def test_a_header_of_another_order_says_so(tmp_path):
    folder = _written(tmp_path, _rows(), header="head\ttail\trelation", splits=("train",))
    with pytest.raises(ValueError, match=r"its columns .`layout` head=head,relation=relation,tail=tail."):
        read_graph(folder)


def test_a_first_line_of_every_split_that_nothing_else_names_is_noted(tmp_path):
    (text,) = _said(_written(tmp_path, _rows(), header="person\tlink\tfriend"))
    assert "'person link friend' is the first line of every split" in text


@pytest.mark.parametrize("line", ["p01\tis_0\tp02", "source\tis_0\ttarget", "source\ttype\tp01"])
def test_a_first_line_whose_labels_occur_again_is_a_triple(tmp_path, line):
    assert _said(_written(tmp_path, _rows(), header=line), duplicates="keep") == []


def test_words_of_a_header_that_are_labels_elsewhere_are_labels(tmp_path):
    rows = [("source", "type", "target"), ("p01", "type", "p02"), ("target", "is_0", "source")]
    assert _said(_written(tmp_path, rows, splits=("train",))) == []


def test_facts_of_a_closed_world_have_no_header(tmp_path):
    path = tmp_path / "facts.tsv"
    lines = ["\t".join(row) for row in dict.fromkeys(_rows())]
    path.write_text("\n".join(["head\trelation\ttail", *lines]) + "\n")
    with pytest.raises(
        ValueError, match=r"facts\.tsv, line 1: must be a triple, got what looks like a header"
    ):
        read_facts(path)
    path.write_text("\n".join(lines) + "\n")
    assert read_facts(path).num_entities == 20
    path.write_text("\n".join("\t".join((h, t, r)) for h, r, t in dict.fromkeys(_rows())) + "\n")
    with pytest.warns(UserWarning, match=r"facts\.tsv: 20 of 20 relations are entities too"):
        read_facts(path)


@pytest.mark.parametrize(("name", "mark"), [("train.csv", ";"), ("train.txt", "\t")])
@pytest.mark.parametrize("header", ["hrt", "spo", ["head", "rel", "tail"]])
def test_a_header_of_which_one_word_is_a_label_is_an_error(tmp_path, name, mark, header):
    path = tmp_path / name
    path.write_text("\n".join(mark.join(row) for row in (header, ("a", header[1], "b"))))
    with pytest.raises(
        ValueError, match=r"line 1: must be a triple.* `layout` labelled takes it as a triple"
    ):
        read_graph(tmp_path)
    assert len(read_graph(tmp_path, layout="labelled").splits["train"]) == 2
    path.write_text("\n".join(mark.join(row) for row in (header, (header[0], header[1], "b"))))
    assert _said(tmp_path) == []


def test_what_no_header_is():
    assert header_columns(["head", "tail", "p01"]) == []
    assert header_columns(["head", "relation", "head"]) == []


@pytest.mark.parametrize(
    ("order", "named"), [((0, 2, 1), "head, tail, relation"), ((1, 0, 2), "relation, head, tail")]
)
@pytest.mark.parametrize("entities", [20, 300])
@pytest.mark.parametrize("relations", [3, 15])
@pytest.mark.parametrize("ids", [False, True])
def test_another_order_of_columns_is_named(tmp_path, order, named, entities, relations, ids):
    if ids and entities < 2 * relations:
        relations = 9  # ids of so many relations are not told from entities
    form = "{}" if ids else "n{}"
    rows = _rows(0, entities, relations, 3000, form, form if ids else "is_{}")
    assert _said(_written(tmp_path, rows)) == []
    (text,) = _said(_written(tmp_path, rows, order=order), duplicates="keep")
    assert f"relations are entities too, and there are {relations} " in text
    assert f"is the order of the columns {named}?" in text


@pytest.mark.parametrize("entities", [6, 200])
def test_few_tails_and_many_relations_are_named(tmp_path, entities):
    rows = [(f"p{h}", f"is_{h % 2}", f"p{h + 1}" if entities < 10 else f"item {h}") for h in range(entities)]
    assert _said(_written(tmp_path, rows, splits=("train", "test"))) == []
    (text,) = _said(_written(tmp_path, rows[: entities - 1], order=(0, 2, 1), splits=("train", "test")))
    assert "is the order of the columns head, tail, relation?" in text


def test_a_small_graph_whose_relations_are_entities_too_is_not_suspected(tmp_path):
    rows = [("is", "is", "kind"), ("has", "is", "kind"), ("a", "has", "b"), ("b", "is", "kind")]
    assert _said(_written(tmp_path, rows, splits=("train",))) == []


def test_relations_that_are_described_as_entities_are_no_other_order(tmp_path):
    about = [(f"is_{r}", "domain", f"class {r % 2}") for r in range(12)]
    assert _said(_written(tmp_path, _rows(relations=12) + about)) == []


@pytest.mark.parametrize(
    "name",
    ["nations", "kinships", "umls", "wn18rr", "fb15k237", "codex-s",
     *(f"family_tree_published/{density}" for density in (65, 75, 85, 95))],
)  # fmt: skip
def test_no_false_alarm_and_the_other_order_is_named(owkg_data, tmp_path, name):
    assert _said(owkg_data / name, duplicates="keep") == []
    for path in (owkg_data / name).glob("t*.txt*"):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        rows = (line.split("\t") for line in text.decode().splitlines())
        lines = "\n".join(f"{h}\t{t}\t{r}" for h, r, t in rows)
        (tmp_path / path.name.removesuffix(".gz")).write_text(lines)
    (text,) = _said(tmp_path, duplicates="keep")
    assert "is the order of the columns head, tail, relation?" in text


@pytest.mark.parametrize("graph", ["1", "2"])
def test_no_false_alarm_on_dbp15k(owkg_data, tmp_path, graph):
    triples = (owkg_data / "dbp15k" / "zh_en" / f"triples_{graph}.gz").read_bytes()
    (tmp_path / "train.txt.gz").write_bytes(triples)
    assert _said(tmp_path, duplicates="keep", layout="labelled") == []
