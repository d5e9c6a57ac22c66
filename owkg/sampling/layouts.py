"""Files of an open world: labelled triples, id maps, queries and qrels; layouts of OpenKE and LibKGE."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from owkg.kg import KnowledgeGraph, write_openke
from owkg.kg.names import query_text
from owkg.kg.triples import labelled, triple_frame
from owkg.sampling.queries import answers
from owkg.sampling.sample import OpenWorld

# Layouts in addition to the labelled files, each in a folder of its name.
LAYOUTS = ("openke", "libkge")
# Number of triples that replace an empty validation set, because neither loader accepts one: OpenKE reads
# outside its arrays, and LibKGE needs two lines to see a table.
_STAND_IN = 2


def splits(world: OpenWorld) -> dict[str, np.ndarray]:
    """Sets of facts by the names of their files, without empty sets."""
    names = ("train", "valid", "test_sparse", "test_full", "missing")
    return {name: facts for name in names if len(facts := getattr(world, name))}


def write_columns(table: pl.DataFrame, path: Path, *, header: bool = False) -> None:
    """Writes columns as lines, separated by tabs."""
    table.write_csv(path, include_header=header, separator="\t", quote_style="never")


def query_table(world: OpenWorld) -> pl.DataFrame:
    """Drawn queries.

    Returns:
        Columns query ("head|relation|?" or "?|relation|tail"), side (the side asked for), entity, relation,
        and full, sparse, train (numbers of answers in the full test, the sparse test and training).
    """
    queries = world.queries
    table = pl.DataFrame(
        {
            "side": pl.Series(["head", "tail"]).gather(queries.asks_tail.astype(np.int32)),
            "entity": pl.Series(world.entities).gather(queries.entity),
            "relation": pl.Series(world.relations).gather(queries.relation),
            "full": queries.full,
            "sparse": queries.sparse,
            "train": queries.train,
        }
    )
    return table.select(query_text(), pl.all())


def write_judged_files(world: OpenWorld, folder: Path) -> None:
    """Writes `queries.tsv`, and `queries_*.txt` and `qrels_*.txt` for the sparse and the full test.

    `queries_sparse.txt` and `queries_full.txt` are the test facts that answer a drawn query, each once.
    `qrels_sparse.txt` and `qrels_full.txt` are TREC judgements, lines of query, 0, answer, 1, separated by
    tabs.
    """
    table = query_table(world)
    write_columns(table, folder / "queries.tsv", header=True)
    for name in ("sparse", "full"):
        facts = getattr(world, f"test_{name}")
        query, fact = answers(facts, world.queries, len(world.relations))
        write_columns(
            labelled(facts[np.unique(fact)], world.entities, world.relations), folder / f"queries_{name}.txt"
        )
        right = np.where(world.queries.asks_tail[query], facts[fact, 2], facts[fact, 0])
        qrels = pl.DataFrame(
            {
                "query": table["query"].gather(query),
                "zero": np.zeros(len(query), np.int8),
                "answer": pl.Series(world.entities).gather(right),
                "relevance": np.ones(len(query), np.int8),
            }
        )
        write_columns(qrels, folder / f"qrels_{name}.txt")


def write_labelled_files(world: OpenWorld, folder: Path) -> None:
    """Writes `train.txt`, ..., and all ids in `entities.dict` and `relations.dict`."""
    for name, facts in splits(world).items():
        write_columns(labelled(facts, world.entities, world.relations), folder / f"{name}.txt")
    for kind in ("entities", "relations"):
        _write_ids(getattr(world, kind), folder / f"{kind}.dict")


def write_openke_files(world: OpenWorld, folder: Path) -> None:
    """Writes OpenKE's files, with the sparse test as the test set, and `type_constrain.txt`.

    The types are the heads and tails that each relation has among the known facts.
    """
    graph = KnowledgeGraph(world.entities, world.relations, _with_stand_in(world))
    write_openke(graph, folder)
    known = triple_frame(np.concatenate([world.train, world.valid, world.test_sparse]))
    relations = pl.DataFrame({"relation": np.arange(len(world.relations), dtype=np.int32)})
    lines = []
    for column in ("head", "tail"):
        ids = known.group_by("relation").agg(pl.col(column).unique().sort().cast(pl.String))
        ids = relations.join(ids, on="relation", how="left", maintain_order="left")
        fields = pl.concat_str(
            "relation", pl.col(column).list.len().fill_null(0), pl.col(column).list.join("\t"),
            separator="\t", ignore_nulls=True,
        )  # fmt: skip
        lines.append(ids.select(fields).to_series())
    table = pl.DataFrame({"head": lines[0], "tail": lines[1]})
    with (folder / "type_constrain.txt").open("wb") as file:
        file.write(b"%d\n" % len(table))
        table.write_csv(file, include_header=False, separator="\n", quote_style="never")


def write_libkge_files(world: OpenWorld, folder: Path) -> None:
    """Writes LibKGE's files, with the sparse test as the test set, and `dataset.yaml`."""
    folder.mkdir()
    lines = ["dataset:", f"  num_entities: {len(world.entities)}", f"  num_relations: {len(world.relations)}"]
    for kind, labels in (("entity", world.entities), ("relation", world.relations)):
        _write_ids(labels, folder / f"{kind}_ids.del")
        lines += [f"  files.{kind}_ids.filename: {kind}_ids.del", f"  files.{kind}_ids.type: map"]
    for name, facts in _with_stand_in(world).items():
        write_columns(triple_frame(facts), folder / f"{name}.del")
        lines += [f"  files.{name}.filename: {name}.del", f"  files.{name}.type: triples"]
        lines += [f"  files.{name}.size: {len(facts)}"]
    (folder / "dataset.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _with_stand_in(world: OpenWorld) -> dict[str, np.ndarray]:
    """Sets that other tools know; the first training facts replace an empty validation set."""
    valid = world.valid if len(world.valid) else world.train[:_STAND_IN]
    return {"train": world.train, "valid": valid, "test": world.test_sparse, "test_full": world.test_full}


def _write_ids(labels: Sequence[str], path: Path) -> None:
    """Writes lines of id and label."""
    write_columns(pl.DataFrame({"id": range(len(labels)), "label": labels}), path)
