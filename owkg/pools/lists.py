"""Ranked lists of `owkg rank` as a TREC run, for pools and IR measures."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from owkg.evaluation import top_answers
from owkg.evaluation.queries import is_asked
from owkg.evaluation.table import in_precision
from owkg.judge.lists import known_of_lists
from owkg.judge.runs import run_from_lists, write_run
from owkg.kg import KnowledgeGraph, joined_splits, known_answers
from owkg.models import Trained


def write_lists(
    path: Path,
    trained: Trained,
    graph: KnowledgeGraph,
    *,
    split: str,
    sides: Sequence[str],
    depth: int,
    name: str,
    queries: pl.DataFrame | None = None,
    precision: str = "float32",
) -> int:
    """Write the best answers to the queries of a split as a run, and return the number of queries.

    The answers known from train and valid are removed from the lists, except for answers of the split itself,
    because a pool is for new answers.

    Args:
        path: file of the run.
        trained: the trained model.
        graph: the graph of its entities and relations.
        split: split whose queries are answered.
        sides: sides of the queries.
        depth: number of answers of each list, at most the number of entities.
        name: name of the system in the run.
        queries: queries to restrict the split to. Default None: all.
        precision: precision of the scores, as in `owkg.evaluation.ranks`. Default "float32".
    """
    facts, triples = joined_splits(graph, known_of_lists(graph, split)), joined_splits(graph, [split])
    parts = []
    for side in sides:
        own = triples if queries is None else triples[is_asked(graph, triples, side, queries)]
        if not len(own):
            continue
        known = known_answers(facts, side, **graph.sizes)
        entity, relation = np.unique(own[:, [0, 1] if side == "tail" else [2, 1]], axis=0).T
        depth = min(depth, graph.num_entities)
        with in_precision(precision, trained) as scorer:
            found = top_answers(scorer, entity, relation, side, known=known, depth=depth)
        parts.append(
            run_from_lists(
                name, side, entity, relation, found.answer, np.where(found.answer < 0, 0, found.score),
                entities=graph.entities, relations=graph.relations,
            )
        )  # fmt: skip
    run = pl.concat(parts)
    write_run(run, path)
    return run["query"].n_unique()
