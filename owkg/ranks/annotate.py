"""Columns that a knowledge graph adds to a rank table: popularity, category, half-link and candidates."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from jaxtyping import Int64

from owkg.errors import ArgumentError
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.kg.popularity import half_links, popularity_columns
from owkg.ranks.build import candidates_of, default_filters, filter_facts, require_facts, split_of
from owkg.ranks.table import RELATION, SIDES, TRIPLE, RankTable, validated

# Key of a query after its relation (`owkg.ranks.rank_queries`).
_KEY = r"(?:\|[^|=]+=[^|]*)+$"
# Largest share of triples by ids that may be in no split of a graph, because judging adds some.
_STRANGE = 0.5


def triple_ids(
    table: RankTable | pl.DataFrame, graph: KnowledgeGraph, *, place: Callable[[int], str] | None = None
) -> np.ndarray:
    """Triples of a rank table by the ids of a graph, int32 [rows, 3].

    Labels are looked up. Whole numbers are ids, unless the labels of the graph are whole numbers too.

    Args:
        table: rank table; it is validated.
        graph: knowledge graph with the entities and relations of the table.
        place: function from a row (from 0) to its name in messages. Default: "row" and its number from 1.

    Raises:
        ValueError: as `validated`; if `graph` is not a graph; naming the first row with an entity or a
            relation that the graph lacks; if triples are numbers and most of them are in no split.
    """
    graph, table = graph_checked(graph), validated(table)
    names = (graph.entities, graph.relations, graph.entities)
    ids, numbers = [], False
    for column, labels in zip(TRIPLE, names, strict=True):
        series = table[column]
        at = pl.DataFrame({"label": list(labels)}, schema={"label": pl.String}).with_row_index("id")
        of_numbers = bool(at["label"].str.contains(r"^\d+$").all())
        numbers |= series.dtype.is_integer() or (of_numbers and column != "relation")
        if series.dtype.is_integer() and not of_numbers:
            found = series.set((series < 0) | (series >= len(labels)), None).cast(pl.Int64)
        else:
            text = series.cast(pl.String)
            if column == "relation":
                # The relation of a query with a key ends with the key: visits|time=2014.
                bare = text.str.replace(_KEY, "")
                text = pl.select(
                    pl.when(text.is_in(at["label"].implode())).then(text).otherwise(bare)
                ).to_series()
            wanted = pl.DataFrame({"label": text})
            found = wanted.join(at, on="label", how="left", maintain_order="left")["id"].cast(pl.Int64)
        if found.null_count():
            row = int(found.is_null().arg_true()[0])
            where = f"row {row + 1}" if place is None else place(row)
            number = str(series[row]).isdigit()
            hint = "; `ids` takes numbers as ids of the graph" if number else ""
            raise ValueError(f"{where}: the graph has no {_kind(column)} {series[row]!r}{hint}.")
        ids.append(found.to_numpy())
    triples = np.stack(ids, axis=1).astype(np.int32)
    tests = any(len(of) and not name.startswith(("train", "valid")) for name, of in graph.splits.items())
    if numbers and tests:
        hint = "Use the ids of the graph, or labels."
        require_facts(graph, triples, most=_STRANGE, hint=hint)
    return triples


def ranked_split(table: RankTable | pl.DataFrame, graph: KnowledgeGraph) -> str | None:
    """Smallest split of a graph that holds every triple of a rank table; None if there is none.

    Raises:
        ValueError: as `triple_ids`.
    """
    return split_of(graph, triple_ids(table, graph))


def _kind(column: str) -> str:
    """Kind of label in a column, for messages."""
    return "relation" if column == "relation" else "entity"


def annotated(
    table: RankTable | pl.DataFrame, graph: KnowledgeGraph, *, train: str = "train"
) -> pl.DataFrame:
    """Rank table with the columns popularity, relation_popularity, category and half_link of a graph.

    Columns that the table already has are kept.

    Args:
        table: rank table; it is validated.
        graph: knowledge graph with the entities and relations of the table.
        train: split that is counted: the number of training triples that contain the answer, the number of
            these with the relation of the row, the category of the relation, and which of the half-links (h,
            r) and (r, t) occur. Default "train".

    Raises:
        ValueError: as `validated`; if the graph lacks the split, or an entity or relation of the table.
    """
    graph, table = graph_checked(graph), validated(table)
    if train not in graph.splits:
        raise ArgumentError(
            "train", f"must be a split of the graph, {', '.join(graph.splits)}, got {train!r}."
        )
    triples = triple_ids(table, graph)
    counted = popularity_columns(graph, triples, table["side"].to_numpy(), train=train)
    counted["half_link"] = half_links(graph.splits[train], triples, graph.num_relations)
    new = {name: column for name, column in counted.items() if name not in table.columns}
    return table.with_columns(**new)


def other_candidates(
    table: RankTable | pl.DataFrame, graph: KnowledgeGraph, *, filter_splits: Sequence[str] | None = None
) -> int:
    """Number of rows whose number of candidates differs from the number in the filtered graph.

    Args:
        table: rank table; it is validated.
        graph: knowledge graph with the entities and relations of the table.
        filter_splits: splits whose known answers are removed from the candidates. Default: those of train,
            valid and test that the graph has, and the triples of the table unless its column `filtered` is
            false somewhere.
    """
    table = validated(table)
    triples = triple_ids(table, graph)
    if filter_splits is None:
        facts = filter_facts(graph, default_filters(graph, None))
        if "filtered" not in table.columns or table["filtered"].all():
            facts = np.concatenate([facts, triples])
    else:
        facts = filter_facts(graph, filter_splits)
    expected = candidates_by_side(graph, facts, triples, table["side"])
    return int((expected != table["candidates"].to_numpy()).sum())


def candidates_by_side(
    graph: KnowledgeGraph, facts: np.ndarray, triples: np.ndarray, sides: pl.Series
) -> Int64[np.ndarray, "tasks"]:
    """Number of candidates of each task (a triple and a predicted side), filtered by `facts`."""
    found = np.zeros(len(triples), np.int64)
    for side in (*SIDES, RELATION):
        rows = (sides == side).to_numpy()
        if rows.any():
            found[rows] = candidates_of(graph, facts, triples[rows], side)
    return found
