"""Every reader of files: a valid input, how it is read, and what a result must be."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from safetensors.numpy import save

from family_tree.ontology import read_ontology
from family_tree.people_files import read_people
from owkg.align.data import read_alignment
from owkg.classification.table import read_triples
from owkg.conformance.front import read_results
from owkg.evaluation.queries import read_queries
from owkg.interop.states import read_state
from owkg.judge import read_judgements, read_runs
from owkg.judge.generated import read_generated
from owkg.kg import KnowledgeGraph, read_graph
from owkg.models.embeddings import read_embeddings
from owkg.pools.annotation import read_names, read_sheet
from owkg.pools.templates import read_templates
from owkg.ranks import RankDataset, convert, read_ranks
from owkg.ranks.together import read_shares
from owkg.sampling import read_facts
from owkg.train.config import read_config
from tests.kg.test_read import IDS, LABELLED, LIBKGE, OPENKE, ROTATE, ROTATE_IDS

GRAPH = KnowledgeGraph(
    ("ann", "bob", "cy"), ("knows", "likes"), {"train": np.array([[0, 0, 1], [1, 0, 2]], np.int32)}
)


class Reader(NamedTuple):
    """One reader.

    Attributes:
        files: of a valid input by name, text or bytes.
        read: the input in a folder.
        check: a result, whatever the files were.
        same: what of a result may not depend on line ends, packing and the like; None: nothing is compared.
    """

    files: dict[str, str | bytes]
    read: Callable[[Path], Any]
    check: Callable[[Any], None]
    same: Callable[[Any], Any] | None = None


def _graph(graph: KnowledgeGraph) -> None:
    assert "train" in graph.splits or "facts" in graph.splits
    for labels in (graph.entities, graph.relations):
        assert len(set(labels)) == len(labels)
        assert all(isinstance(label, str) and label for label in labels)
    for triples in graph.splits.values():
        assert triples.dtype == np.int32
        assert (triples >= 0).all()
        assert (triples[:, [0, 2]] < graph.num_entities).all()
        assert (triples[:, 1] < graph.num_relations).all()


def _facts_of(graph: KnowledgeGraph) -> dict[str, list[tuple[str, ...]]]:
    of = graph.entities, graph.relations, graph.entities
    return {
        name: [tuple(labels[i] for labels, i in zip(of, row, strict=True)) for row in triples.tolist()]
        for name, triples in graph.splits.items()
    }


def _ranks(table: Any) -> None:
    frame = table.frame if hasattr(table, "frame") else table
    low, high, count = (frame[name].to_numpy() for name in ("optimistic", "pessimistic", "candidates"))
    assert len(frame)
    assert ((low >= 1) & (low <= high) & (high <= count)).all()
    assert frame.select("head", "relation", "tail", "side").null_count().sum_horizontal().item() == 0
    assert frame["side"].is_in(["head", "tail", "relation"]).all()
    for name in ("weight", "score"):
        if name in frame.columns:
            assert frame[name].is_finite().all()


def _rows(table: Any) -> list:
    frame = table.frame if hasattr(table, "frame") else table
    return frame.sort(frame.columns).rows()


def _judged(frame: pl.DataFrame) -> None:
    assert frame.null_count().sum_horizontal().sum() == 0
    assert frame["answer"].str.len_bytes().min() > 0
    if "score" in frame.columns:
        assert not frame["score"].is_nan().any()
    key = [name for name in ("model", "query", "answer") if name in frame.columns]
    assert not frame.select(key).is_duplicated().any()


def _nothing(_: object) -> None:
    """Any result will do."""


def _npz(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _parquet(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


RANKS = """\
head,relation,tail,side,optimistic,pessimistic,candidates,weight
ann,knows,bob,tail,1,2,3,1
ann,knows,bob,head,2,2,3,0.5
bob,knows,cy,tail,3,3,3,2
cy,likes,"a, b",tail,1,1,2,1
"""
RUN = """\
ann|knows|? Q0 bob 1 0.9 one
ann|knows|? Q0 cy 2 0.5 one
?|knows|cy Q0 bob 1 -1e-3 one
ann|knows|? Q0 cy 1 3 two
"""
QRELS = "ann|knows|? 0 bob 1\nann|knows|? 0 cy 0\n?|knows|cy 0 bob 2\n?|knows|cy 0 ann -1\n"
SHEET = """\
question\tanswer\tlabel\tquestion_id\tanswer_id
Whom does ann know?\tbob\ty\tann|knows|?\tbob
Whom does ann know?\tcy\tn\tann|knows|?\tcy
Who knows cy?\tann\t?\t?|knows|cy\tann
"""
GENERATED = """\
{"head": "ann", "relation": "knows", "answers": ["bob", "cy"], "ranked": true}
{"query": "?|knows|cy", "answers": [], "model": "m"}
"""
ALIGNMENT = {
    "ent_ids_1": "0\ta\n1\tb\n2\tc\n", "ent_ids_2": "3\td\n4\te\n5\tf\n", "triples_1": "0\t0\t1\n1\t0\t2\n",
    "triples_2": "3\t1\t4\n4\t1\t5\n", "ref_ent_ids": "0\t3\n1\t4\n2\t5\n",
}  # fmt: skip
SCORED = (
    "head,relation,tail,label,score,split\na,r,b,1,0.5,test\na,r,c,0,-0.5,test\na,r,d,unknown,1e-3,test\n"
)
RULES = """\
[relations.parentOf]
inverse = "childOf"
"""
_SCORES = {
    "scores": np.array([[0.1, 0.5, 0.2], [1, 1, 0]], np.float32),
    "triples": np.array([[0, 0, 1], [1, 0, 2]]),
    "side": np.array(["tail", "head"]),
}
_EMBEDDED = {
    "entity": np.eye(3, 4, dtype=np.float32), "relation": np.ones((2, 4), np.float32),
}  # fmt: skip
_LABELS = {"entity_labels": np.array(GRAPH.entities), "relation_labels": np.array(GRAPH.relations)}
_TABLE = pl.read_csv(io.BytesIO(RANKS.encode()))


_MAPS = {"entity2id.txt": "cy\t0\nann\t1\nbob\t2\n", "relation2id.txt": "likes\t0\nknows\t1\n"}
KB2E = _MAPS | {"train.txt": "ann\tbob\tknows\nbob\tcy\tknows\n", "test.txt": "cy\tann\tlikes\n"}
HEADED = {"train.tsv": "id\tsubject\tpredicate\tobject\n1\tann\tknows\tbob\n2\tbob\tknows\tcy\n"}
TRIPLES_OF_RDF = """\
<http://e.org/ann> <http://e.org/knows> <http://e.org/bob> .
<http://e.org/bob> <http://e.org/name> "Bob"@en .
_:x <http://e.org/knows> <http://e.org/bob> .
"""
CLASSES = {"train.txt": LABELLED["train.txt"], "test.txt": "cy\tlikes\tann\t1\nann\tlikes\tann\t-1\n"}
OPENEA = {
    "rel_triples_1": "a\tr\tb\nb\tr\tc\n",
    "rel_triples_2": "d\ts\te\ne\ts\tf\n",
    "ent_links": "a\td\nb\te\nc\tf\n",
}
RULES_OF_ANYBURL = "ann knows bob\nHeads: ann\t0.9\tcy\t0.8\t\nTails: cy\t0.9\tbob\t0.5\t\n"
WIDE = "head,relation,tail,head_rank,tail_rank,candidates\nann,knows,bob,1,3,3\nbob,knows,cy,2,1,3\n"
HALF = "head;relation;tail;side;rank;candidates\nann;knows;bob;tail;1.5;3\nbob;knows;cy;head;2;3\n"
JSON_RUN = '{"ann|knows|?": {"bob": 0.9, "cy": 0.5}, "?|knows|cy": {"bob": -1e-3}}'
JSON_LISTS = (
    '[{"head": "ann", "relation": "knows", "answers": ["bob", "cy"]}, {"query": "?|knows|cy", "answers": []}]'
)
_OGB = {"y_pred_pos": np.array([0.5, 0.25]), "y_pred_neg": np.array([[0.1, 0.5, 0.7], [0.0, 0.1, 0.2]])}


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _first(name: str, read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda folder: read(folder / name)


def _finite(arrays: dict[str, np.ndarray]) -> None:
    assert all(isinstance(array, np.ndarray) for array in arrays.values())


def _dataset(folder: Path) -> Any:
    return RankDataset.of(folder)


def _people(folder: Path) -> Any:
    return read_people(folder / "people.tsv", folder / "parents.tsv")


READERS = {
    "kb2e": Reader(KB2E, read_graph, _graph, _facts_of),
    "graph csv": Reader(
        {"train.csv": LABELLED["train.txt"].replace("\t", ",")}, read_graph, _graph, _facts_of
    ),
    "header line": Reader(
        HEADED,
        lambda folder: read_graph(folder, layout="head=subject,relation=predicate,tail=object"),
        _graph,
        _facts_of,
    ),
    "ntriples": Reader({"train.nt": TRIPLES_OF_RDF}, read_graph, _graph, _facts_of),
    "classes": Reader(CLASSES, read_graph, _graph, _facts_of),
    "openea": Reader(OPENEA, read_alignment, _nothing, lambda found: found.test.tolist()),
    "ms marco": Reader(
        {"a.tsv": "q1\td2\t1\nq1\td1\t2\nq2\td3\t1\n"},
        _first("a.tsv", lambda path: read_runs([path], topics="allowed")),
        _judged,
        _rows,
    ),
    "beir": Reader(
        {"a.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td3\t0\n"},
        _first("a.tsv", lambda path: read_judgements(path, topics="allowed")),
        _judged,
        _rows,
    ),
    "json run": Reader(
        {"a.json": JSON_RUN}, _first("a.json", lambda path: read_runs([path])), _judged, _rows
    ),
    "json qrels": Reader(
        {"a.json": '{"ann|knows|?": {"bob": 1, "cy": 0}}'}, _first("a.json", read_judgements), _judged, _rows
    ),
    "anyburl": Reader(
        {"alpha-100": RULES_OF_ANYBURL},
        _first("alpha-100", lambda path: convert(path, graph=GRAPH, split="train", unanswered=True).table),
        _ranks,
        _rows,
    ),
    "generated array": Reader({"g.json": JSON_LISTS}, _first("g.json", read_generated), _nothing, _rows),
    "wide": Reader(
        {"w.csv": WIDE}, _first("w.csv", lambda path: read_ranks(path, untied=True)), _ranks, _rows
    ),
    "half ranks": Reader(
        {"h.csv": HALF}, _first("h.csv", lambda path: read_ranks(path, realistic=True)), _ranks, _rows
    ),
    "npy": Reader(
        {"r.npy": _npy(np.array([[2, 1], [3, 1]]))},
        _first("r.npy", lambda path: read_ranks(path, untied=True, candidates=5)),
        _ranks,
    ),
    "among negatives": Reader(
        {"o.npz": _npz(**_OGB)}, _first("o.npz", lambda path: convert(path).table), _ranks
    ),
    "labelled": Reader(LABELLED, read_graph, _graph, _facts_of),
    "integer": Reader({"train.txt": "0 0 1\n1 1 2\n", "test.txt": "2 1 0\n"}, read_graph, _graph, _facts_of),
    "openke": Reader(OPENKE, read_graph, _graph, _facts_of),
    "rotate": Reader(ROTATE, read_graph, _graph, _facts_of),
    "rotate ids": Reader(ROTATE_IDS, read_graph, _graph, _facts_of),
    "libkge": Reader(LIBKGE, read_graph, _graph, _facts_of),
    "libkge bare": Reader(IDS | {"train.del": "1\t1\t2\n2\t1\t0\n"}, read_graph, _graph, _facts_of),
    "facts": Reader({"f.tsv": LABELLED["train.txt"]}, _first("f.tsv", read_facts), _graph, _facts_of),
    "rank csv": Reader({"r.csv": RANKS}, _first("r.csv", read_ranks), _ranks, _rows),
    "rank tsv": Reader(
        {"r.tsv": RANKS.replace('"a, b"', "a b").replace(",", "\t")},
        _first("r.tsv", read_ranks),
        _ranks,
        _rows,
    ),
    "rank parquet": Reader({"r.parquet": _parquet(_TABLE)}, _first("r.parquet", read_ranks), _ranks),
    "rank folder": Reader(
        {"0.parquet": _parquet(_TABLE[:2]), "1.parquet": _parquet(_TABLE[2:])}, _dataset, _nothing
    ),
    "rank list": Reader(
        {"l.csv": "head,relation,tail,side,rank,candidates\nann,knows,bob,tail,1,3\nbob,knows,cy,head,2,3\n"},
        _first("l.csv", lambda path: convert(path, untied=True).table),
        _ranks,
        _rows,
    ),
    "scores": Reader(
        {"s.npz": _npz(**_SCORES)},
        _first("s.npz", lambda path: convert(path, graph=GRAPH, filter_splits=[]).table),
        _ranks,
    ),
    "run": Reader({"a.run": RUN}, _first("a.run", lambda path: read_runs([path])), _judged, _rows),
    "run as ranks": Reader(
        {"a.run": RUN, "a.qrels": QRELS},
        lambda folder: (
            convert(folder / "a.run", qrels=folder / "a.qrels", num_entities=9, unanswered=True).table
        ),
        _ranks,
        _rows,
    ),
    "topics": Reader(
        {"a.run": "1 Q0 d1 1 2 m\n1 Q0 d2 2 1 m\n"},
        _first("a.run", lambda path: read_runs([path], topics="allowed")),
        _judged,
        _rows,
    ),
    "qrels": Reader({"a.qrels": QRELS}, _first("a.qrels", read_judgements), _judged, _rows),
    "sheet": Reader({"s.tsv": SHEET}, _first("s.tsv", read_sheet), _judged, _rows),
    "generated": Reader({"g.jsonl": GENERATED}, _first("g.jsonl", read_generated), _nothing, _rows),
    "classified": Reader({"c.csv": SCORED}, _first("c.csv", read_triples), _nothing, _rows),
    "alignment": Reader(ALIGNMENT, read_alignment, _nothing, lambda found: found.test.tolist()),
    "npz": Reader({"e.npz": _npz(**_EMBEDDED, **_LABELS)}, _first("e.npz", read_embeddings), _nothing),
    "safetensors": Reader(
        {
            "e.safetensors": save(
                _EMBEDDED,
                {"entity_labels": json.dumps(GRAPH.entities), "relation_labels": json.dumps(GRAPH.relations)},
            )
        },
        _first("e.safetensors", read_embeddings),
        _nothing,
    ),
    "state": Reader({"m.safetensors": save(_EMBEDDED)}, _first("m.safetensors", read_state), _finite),
    "queries": Reader(
        {"q.tsv": "side\tentity\trelation\ntail\tann\tknows\nhead\tcy\tknows\n"},
        _first("q.tsv", lambda path: read_queries(path, GRAPH)),
        _nothing,
        _rows,
    ),
    "shares": Reader({"s.tsv": "knows\t0.5\nlikes\t0\n"}, _first("s.tsv", read_shares), _nothing, dict),
    "names": Reader({"n.tsv": "ann\tAnn\tA person\nbob\tBob\n"}, _first("n.tsv", read_names), _nothing),
    "templates": Reader(
        {"t.tsv": "knows\ttail\tWhom does {entity} know?\nknows\thead\tWho knows {entity}?\n"},
        _first("t.tsv", lambda path: read_templates(path, ["knows"])),
        _nothing,
    ),
    "config": Reader(
        {"c.toml": 'model = "transe"\nepochs = 3\n\n[options]\ndim = 8\n'},
        _first("c.toml", read_config),
        _nothing,
    ),
    "people": Reader(
        {
            "people.tsv": "person\tgender\na\tfemale\nb\tmale\nc\tmale\n",
            "parents.tsv": "parent\tchild\na\tc\nb\tc\n",
        },
        _people,
        _nothing,
    ),
    "rules": Reader({"r.toml": RULES}, _first("r.toml", read_ontology), _nothing),
    "results": Reader(
        {"r.json": '[{"library": "x", "version": "1", "results": []}]'},
        _first("r.json", read_results),
        _nothing,
    ),
}
