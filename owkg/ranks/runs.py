"""Rank tables from TREC runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int32

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import line_error
from owkg.ir.trec import Topics, read_qrels, read_run, run_of
from owkg.kg import KnowledgeGraph, is_known, known_answers, num_candidates
from owkg.kg.names import query_of
from owkg.ranks.build import default_filters, described, filter_facts
from owkg.ranks.retrieved import RetrievedAnswers, counts_in_lists
from owkg.ranks.scores import Ranks
from owkg.ranks.table import SIDES, validated


class Converted(NamedTuple):
    """Rank table, and notes for the user on how it was made, one sentence each."""

    table: pl.DataFrame
    notes: tuple[str, ...]


class _Run(NamedTuple):
    """Answers retrieved for the queries of one side, by ids."""

    tags: tuple[str, ...]
    tag: np.ndarray  # number of the tag of each row
    triples: Int32[np.ndarray, "rows 3"]
    score: np.ndarray


class _Side(NamedTuple):
    """Rows of one side; numbers of answers that were not retrieved, of unanswered and of unneeded queries."""

    table: pl.DataFrame
    not_retrieved: int
    not_asked: int
    not_relevant: int


def ranks_from_run(
    path: StrPath | Mapping[Any, Any],
    graph: KnowledgeGraph | None = None,
    *,
    qrels: StrPath | pl.DataFrame | None = None,
    split: str | None = None,
    num_entities: int | None = None,
    filter_splits: Sequence[str] | None = None,
    tolerance: float = 0.0,
    unanswered: bool = False,
) -> Converted:
    """Rank table of a TREC run, with one row for each relevant answer and each tag.

    Lines are `query Q0 answer rank score tag`. Queries are `head|relation|?` or `?|relation|tail`, or any
    topics without a graph (`read_run`): head is then the topic and tail the document. As in trec_eval, the
    scores count, not the ranks.

    The other relevant answers to a query, and answers that `filter_splits` know, are removed from its
    candidates. A relevant answer that was not retrieved ties with all candidates that were not retrieved
    either: its optimistic rank is the number of retrieved candidates plus one, its pessimistic rank is the
    number of candidates. If there are such answers, a column bounded is true for them.

    Args:
        path: path of a run, as for `owkg.ir.trec.read_run`, or a dictionary {query: {answer: score}}.
        graph: knowledge graph whose labels the run uses, and whose entities are the candidates. Default:
            none.
        qrels: judgements, at least 1 for a relevant answer: a path, or a frame with the columns query, side,
            entity, relation, answer and relevance. Give this or `split`.
        split: split of the graph whose triples are the relevant answers, on the sides that the run answers.
        num_entities: number of candidates before filtering, if there is no graph.
        filter_splits: splits of the graph that filter. Default: `default_filters` of `split` with a graph,
            none without.
        tolerance: largest absolute difference of scores, in double precision, that counts as a tie. Default
            0.
        unanswered: whether relevant answers to queries that are not in the run count as not retrieved;
            otherwise such queries are an error. Default False.

    Returns:
        Table whose column `model` is the tag and whose column `filtered` is true, with popularity and
        category if the graph has a split train; and notes.

    Raises:
        ValueError: naming file and line, if a line is malformed, a score is not a number, an answer is
            repeated under one query and tag, or a label is not in the graph; or if an argument is missing.
        OSError: if a file cannot be opened.
    """
    _require_one("`qrels` or `split` must give the relevant answers", qrels, split)
    _require_one("`kg` or `num_entities` must give the number of entities", graph, num_entities)
    if graph is None and (split is not None or filter_splits):
        raise ArgumentError("kg", f"must be given for its splits, got none and {split or filter_splits!r}.")
    width = checks.real_number("tolerance", tolerance, 0, np.inf)
    topics: Topics = "allowed" if graph is None else False
    if isinstance(path, Mapping):
        run = run_of("systems", path, topics=topics).with_columns(tag=pl.lit("run"))
        path = "`systems`"
    else:
        run = read_run(path := Path(path), topics=topics)
    judgements = "`qrels`" if qrels is None or isinstance(qrels, pl.DataFrame) else Path(qrels)
    if isinstance(qrels, pl.DataFrame):
        judged = qrels.with_columns(line=pl.lit(None, pl.UInt32))
    else:
        judged = None if qrels is None else read_qrels(Path(qrels), topics=topics)
    if graph is None:
        size = checks.whole("num_entities", num_entities, 1)
        graph = _seen(size, run, judged)
        facts = np.empty((0, 3), np.int32)
    else:
        size = graph.num_entities
        filters = default_filters(graph, split) if filter_splits is None else filter_splits
        facts = filter_facts(graph, filters)
    run = with_ids(path, run, graph)
    if judged is not None:
        judged = with_ids(judgements, judged, graph).filter(pl.col("relevance") >= 1)
    tags = run["tag"].unique().sort()
    sides = []
    for side in SIDES:
        own = run.filter(side=side)
        if judged is not None:
            relevant = _triples(judged.filter(side=side), side)
        else:
            relevant = _split(graph, split) if len(own) else np.empty((0, 3), np.int32)
        number = own.select(pl.col("tag").replace_strict(tags, np.arange(len(tags)), return_dtype=pl.Int64))
        retrieved = _Run(
            tuple(tags), number.to_series().to_numpy(), _triples(own, side), own["score"].to_numpy()
        )
        try:
            sides.append(_one_side(retrieved, relevant, side, graph, size, facts, width, unanswered))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    table = pl.concat([one.table for one in sides])
    if table.is_empty():
        raise ValueError(f"{path}: no answer to any query is relevant.")
    table = validated(table, source=str(path))
    if not table["bounded"].any():
        table = table.drop("bounded")
    notes = (
        ("not_retrieved", "relevant answers were not retrieved: they tie with all unretrieved candidates"),
        ("not_asked", "queries with relevant answers are not in the run: all their candidates tie"),
        ("not_relevant", "queries of the run have no relevant answer, and therefore no row"),
    )
    counts = [(sum(getattr(one, name) for one in sides), what) for name, what in notes]
    return Converted(table, tuple(f"{count:,} {what}" for count, what in counts if count))


def _require_one(what: str, *values: object) -> None:
    """ValueError unless exactly one value is given."""
    given = sum(value is not None for value in values)
    if given != 1:
        raise ValueError(f"{what}, got {'both' if given else 'neither'}.")


def _seen(size: int, run: pl.DataFrame, judged: pl.DataFrame | None) -> KnowledgeGraph:
    """Graph without triples, with the labels in the files; ArgumentError if there are more than `size`."""
    frames = [run] if judged is None else [run, judged]
    entities = pl.concat([frame[name] for frame in frames for name in ("entity", "answer")])
    relations = pl.concat([frame["relation"] for frame in frames])
    graph = KnowledgeGraph(tuple(entities.unique().sort()), tuple(relations.unique().sort()), {})
    if graph.num_entities > size:
        raise ArgumentError(
            "num_entities", f"must be at least {graph.num_entities}, as many as the files name, got {size}."
        )
    return graph


def with_ids(path: Path | str, frame: pl.DataFrame, graph: KnowledgeGraph) -> pl.DataFrame:
    """Frame with ids of the graph in place of labels; ValueError names the line of an unknown label."""
    kinds = {"entity": graph.entities, "relation": graph.relations, "answer": graph.entities}
    for column, labels in kinds.items():
        known = pl.Series(labels, dtype=pl.String)
        ids = frame[column].replace_strict(
            known, np.arange(len(labels), dtype=np.int32), default=None, return_dtype=pl.Int32
        )
        if ids.null_count():
            row = int(ids.is_null().arg_max() or 0)
            line, label = frame["line"][row] if "line" in frame.columns else None, frame[column][row]
            kind = "relation" if column == "relation" else "entity"
            raise line_error(path, line, f"the graph has no {kind} {label!r}.")
        frame = frame.with_columns(ids)
    return frame


def _triples(frame: pl.DataFrame, side: str) -> Int32[np.ndarray, "rows 3"]:
    """Triple of each query and answer."""
    order = ("entity", "relation", "answer") if side == "tail" else ("answer", "relation", "entity")
    return np.stack([frame[name].to_numpy() for name in order], axis=1).astype(np.int32)


def _split(graph: KnowledgeGraph, split: str | None) -> Int32[np.ndarray, "triples 3"]:
    """Triples of a split; ArgumentError if the graph lacks it."""
    if split not in graph.splits:
        raise ArgumentError("split", f"must be one of {', '.join(graph.splits)}, got {split!r}.")
    return graph.splits[split]


def _one_side(
    run: _Run,
    relevant: np.ndarray,
    side: str,
    graph: KnowledgeGraph,
    size: int,
    facts: np.ndarray,
    tolerance: float,
    unanswered: bool,
) -> _Side:
    """Rows of one side, where the graph has `size` entities and `facts` are filtered."""
    # Every system must answer every query.
    triples = np.tile(relevant, (len(run.tags), 1))
    system = np.repeat(np.arange(len(run.tags)), len(relevant))
    lists = _answers(run.tag, run.triples, side, graph)
    targets = _answers(system, triples, side, graph)
    known = known_answers(
        np.concatenate([facts, relevant]), side, num_entities=size, num_relations=graph.num_relations
    )
    counts = counts_in_lists(lists, run.score, ~is_known(known, run.triples), targets, tolerance=tolerance)
    if not unanswered and not counts.asked.all():
        row = int(np.argmin(counts.asked))
        raise ValueError(
            f"{_query(graph, triples[row], side)!r} has a relevant answer, but no list, or an empty one, "
            f"under the tag {run.tags[system[row]]!r}; `unanswered` allows this."
        )
    candidates = num_candidates(known, triples)
    ranks = Ranks(1 + counts.above, np.where(counts.retrieved, 1 + counts.level, candidates), candidates)
    table = described(
        graph,
        triples,
        np.full(len(triples), side),
        ranks,
        filtered=True,
        model=pl.Series(run.tags, dtype=pl.String).gather(system),
        popularity="train" in graph.splits,
    )
    table = table.with_columns(bounded=pl.Series(~counts.retrieved))
    missed = np.stack([system, targets.query])[:, ~counts.asked]
    return _Side(
        table,
        int((~counts.retrieved).sum()),
        np.unique(missed, axis=1).shape[1],
        len(np.setdiff1d(lists.query, targets.query)),
    )


def _answers(system: np.ndarray, triples: np.ndarray, side: str, graph: KnowledgeGraph) -> RetrievedAnswers:
    """Retrieved answers from triples of one side."""
    head, relation, tail = triples.T.astype(np.int64)
    entity, answer = (head, tail) if side == "tail" else (tail, head)
    return RetrievedAnswers(system.astype(np.int64), entity * graph.num_relations + relation, answer)


def _query(graph: KnowledgeGraph, triple: np.ndarray, side: str) -> str:
    """Text of the query of a triple."""
    head, relation, tail = graph.entities[triple[0]], graph.relations[triple[1]], graph.entities[triple[2]]
    return query_of(head if side == "tail" else tail, relation, side)
