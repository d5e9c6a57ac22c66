"""The drawn queries as files: what is asked, and which answers are right in either test set."""

from pathlib import Path

import numpy as np
import polars as pl

from owkg.sampling.layouts import labelled, write_table
from owkg.sampling.queries import answers
from owkg.sampling.sample import OpenWorld


def query_table(world: OpenWorld) -> pl.DataFrame:
    """The drawn queries.

    Returns:
        Columns query ("head|relation|?" or "?|relation|tail"), side (that is asked for), entity,
        relation, full, sparse, train (how many answers are in the full test, the sparse test, training).
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
    for_tail = pl.format("{}|{}|?", "entity", "relation")
    for_head = pl.format("?|{}|{}", "relation", "entity")
    query = pl.when(pl.col("side") == "tail").then(for_tail).otherwise(for_head)
    return table.select(query.alias("query"), pl.all())


def write_judged_files(world: OpenWorld, folder: Path) -> None:
    """Writes `queries.tsv`; `queries_sparse.txt`, `queries_full.txt`; `qrels_sparse.txt`, `qrels_full.txt`.

    `queries_*` are the test facts that answer a drawn query, each once; `qrels_*` are judgements as in
    TREC, lines of query, 0, answer, 1, separated by tabs.
    """
    table = query_table(world)
    write_table(table, folder / "queries.tsv", header=True)
    entities = pl.Series(world.entities)
    for name in ("sparse", "full"):
        facts = getattr(world, f"test_{name}")
        query, fact = answers(facts, world.queries, len(world.relations))
        write_table(labelled(world, facts[np.unique(fact)]), folder / f"queries_{name}.txt")
        right = np.where(world.queries.asks_tail[query], facts[fact, 2], facts[fact, 0])
        qrels = pl.DataFrame(
            {
                "query": table["query"].gather(query),
                "zero": np.zeros(len(query), np.int8),
                "answer": entities.gather(right),
                "relevance": np.ones(len(query), np.int8),
            }
        )
        write_table(qrels, folder / f"qrels_{name}.txt")
