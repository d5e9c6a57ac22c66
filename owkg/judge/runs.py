"""Runs: ranked answers of one or several systems to the same queries."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.ir.trec import Topics, read_run, run_of
from owkg.judge.named import names_of, only_name, renamed, sources_of
from owkg.judge.schema import ASKED, RUN, checked, once, write_fields
from owkg.kg import KnowledgeGraph, fact_splits, joined_splits
from owkg.kg.graph import graph_checked
from owkg.kg.names import TOPIC, asked_entity, known_entity, query_text
from owkg.kg.triples import ids
from owkg.ranks.build import answer_sides
from owkg.ranks.dataset import is_dataset
from owkg.ranks.files import holds_ranks, read_lacking
from owkg.ranks.reading import PLAIN, TableReading
from owkg.ranks.runs import with_ids

_LIST = ("model", "query")
Source = StrPath | Mapping[Any, Any]
"""Source of a run: a path, or a dictionary {query: {answer: score}}."""


def read_runs(
    paths: Mapping[str, Source] | Iterable[StrPath],
    *,
    depth: int | None = None,
    topics: Topics = False,
    graph: KnowledgeGraph | None = None,
    reading: TableReading = PLAIN,
) -> pl.DataFrame:
    """Runs in several files, as one frame.

    A run (`owkg.ir.trec.read_run`) may hold several systems, told apart by their tags. If files share a tag,
    their systems are named by the files, and a warning is issued. A rank table (.parquet, .csv, .tsv) counts
    as a run of its tested answers only; the score is its column score, or the negative realistic rank without
    one. It does not show which answers rank above them, so a pool of it holds test answers only. Its systems
    are named by its column model, or by the file without one; with several seeds, by model/seed.

    Args:
        paths: paths of at least one file; or sources by name: paths of one system each, or dictionaries
            {query: {answer: score}}.
        depth: number of best answers of each list to keep. Default: all.
        topics: "allowed" if queries may be topics (`owkg.ir.trec.read_run`). Default False.
        graph: knowledge graph that must have all labels, except those of topics. Default: any labels are
            accepted.
        reading: options for rank tables among the files.

    Returns:
        Columns model, query, side, entity, relation, answer, score.

    Raises:
        ValueError: naming the file, and the line if there is one, if it is malformed, a list repeats an
            answer, or two files hold the same system.
        OSError: if a file cannot be opened.
    """
    sources = sources_of("paths", paths, what="several paths, or sources by name")
    if not sources:
        raise ArgumentError("paths", "must name at least one file, got none.")
    frames = []
    for called, source in sources:
        frame = _read(source, topics, graph, reading)
        frames.append(frame if depth is None else top(frame, depth))
        names = frame["model"].unique(maintain_order=True).to_list()
        if called is not None:
            frames[-1] = renamed(frames[-1], "model", only_name(source, names, called))
    if sources[0][0] is None:
        files = [file for _, file in sources]
        own = [frame["model"].unique(maintain_order=True).to_list() for frame in frames]
        names = names_of(files, own)
        frames = [renamed(frame, "model", each) for frame, each in zip(frames, names, strict=True)]
    return pl.concat(frames)


def run_from_lists(
    model: str,
    side: str,
    entity: ArrayLike,
    relation: ArrayLike,
    answers: ArrayLike | Sequence[Sequence[object]],
    scores: ArrayLike | Sequence[Sequence[float]],
    *,
    entities: Sequence[str],
    relations: Sequence[str],
) -> pl.DataFrame:
    """Run of one system, made from the best answers to each query.

    Args:
        model: name of the system.
        side: side that is asked for, "head" or "tail": one for all queries, or one for each.
        entity: id of the known entity of each query, [queries].
        relation: id of the relation of each query, [queries].
        answers: entity ids, [queries, depth]; -1 after the last answer of a list.
        scores: scores of the answers, [queries, depth]; larger is better.
        entities: labels of entities by id.
        relations: labels of relations by id.

    Raises:
        ValueError: if a shape is wrong, an id is out of range, a score is NaN, or a query or an answer of a
            list is repeated.

    Examples:
        >>> labels = {"entities": ["a", "b", "c"], "relations": ["r"]}
        >>> run = run_from_lists("m", "tail", [0], [0], [[2, 1, -1]], [[0.9, 0.5, 0]], **labels)
        >>> run.select("query", "answer", "score").rows()
        [('a|r|?', 'c', 0.9), ('a|r|?', 'b', 0.5)]
    """
    if not isinstance(model, str) or not model:
        raise ArgumentError("model", f"must be the name of the system, got {model!r}.")
    known, of = ids("entity", entity, len(entities)), ids("relation", relation, len(relations))
    if known.ndim != 1 or of.shape != known.shape:
        raise ArgumentError(
            "entity", f"and `relation` must be one id per query, got shapes {known.shape} and {of.shape}."
        )
    # Shifted by one, because the end of a list is -1 and ids must not be negative.
    found = ids("answers", np.asarray(answers) + 1, len(entities) + 1) - 1
    score = np.asarray(scores, np.float64)
    if found.ndim != 2 or len(found) != len(known) or score.shape != found.shape:
        raise ArgumentError(
            "answers",
            f"and `scores` must be of shape [queries, depth] with {len(known)} queries, "
            f"got {found.shape} and {score.shape}.",
        )
    asked = pl.DataFrame(
        {
            "side": pl.Series(answer_sides(side, len(known)).tolist(), dtype=pl.String),
            "entity": pl.Series(list(entities), dtype=pl.String).gather(known),
            "relation": pl.Series(list(relations), dtype=pl.String).gather(of),
        }
    )
    asked = asked.with_columns(query_text())
    if len(asked) > asked["query"].n_unique():
        again = asked.filter(~pl.col("query").is_first_distinct())["query"][0]
        raise ArgumentError("entity", f"and `relation` must ask each query once, got {again!r} twice.")
    row, place = np.nonzero(found >= 0)
    frame = asked[row].with_columns(
        model=pl.lit(model),
        answer=pl.Series(list(entities), dtype=pl.String).gather(found[row, place]),
        score=pl.Series(score[row, place]),
    )
    return once("answers", checked("scores", frame, RUN), *_LIST, "answer")


def ranked(run: pl.DataFrame, *, depth: int | None = None) -> pl.DataFrame:
    """Run with a column rank, 1 for the best answer of a list; lists are sorted by model and query.

    Lists are ordered as by trec_eval: by score, highest first, and answers of equal score by name, last first
    ("b" before "a").

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        depth: largest rank to keep. Default: all.

    Raises:
        ValueError: if the run is malformed, or an answer is repeated in the part of a list that is kept.
    """
    frame = checked("run", run, RUN)
    deep = None if depth is None else checks.whole("depth", depth, 1)
    if deep is not None:
        # Fewer rows to sort; ties at the last rank are kept until then.
        best = pl.col("score").rank("min", descending=True).over(_LIST)
        frame = frame.filter(best <= deep)
    frame = frame.sort(*_LIST, "score", "answer", descending=[False, False, True, True])
    frame = frame.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(_LIST))
    if deep is not None:
        frame = frame.filter(pl.col("rank") <= deep)
    return once("run", frame, *_LIST, "answer")


def top(run: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Best `depth` answers of each list, ordered as in `ranked`.

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        depth: number of answers to keep, at least 1.

    Raises:
        ValueError: as `ranked`; if `depth` is not a whole number of at least 1.

    Examples:
        >>> labels = {"entities": ["a", "b", "c"], "relations": ["r"]}
        >>> run = run_from_lists("m", "tail", [0], [0], [[0, 1, 2]], [[1, 1, 3]], **labels)
        >>> top(run, 2)["answer"].to_list()
        ['c', 'b']
    """
    return ranked(run, depth=checks.whole("depth", depth, 1)).drop("rank")


def without_known(run: pl.DataFrame, graph: KnowledgeGraph, splits: Sequence[str]) -> pl.DataFrame:
    """Run without the answers that some splits know, as in the filtered setting.

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        graph: knowledge graph whose labels the run uses.
        splits: splits of the graph whose answers are removed from the lists.

    Raises:
        ValueError: if the run is malformed, or the graph has no such facts.
    """
    return checked("run", run, RUN).join(known_pairs(graph, splits), on=["query", "answer"], how="anti")


def known_pairs(graph: KnowledgeGraph, splits: Sequence[str]) -> pl.DataFrame:
    """Queries that some splits answer, with all answers: columns query, side, entity, relation, answer.

    Args:
        graph: knowledge graph of the facts.
        splits: names of splits of the graph.

    Raises:
        ValueError: if the graph has no facts under such a name.
    """
    facts = fact_splits(graph_checked(graph))
    for name in splits:
        if name not in facts:
            raise ArgumentError("splits", f"must be among {', '.join(facts)}, got {name!r}.")
    triples = np.unique(joined_splits(graph, list(splits)), axis=0)
    entities, relations = (pl.Series(names, dtype=pl.String) for names in (graph.entities, graph.relations))
    head, relation, tail = (
        labels.gather(triples[:, i]) for i, labels in enumerate((entities, relations, entities))
    )
    frames = [
        pl.DataFrame({"entity": known, "relation": relation, "answer": answer}).with_columns(
            side=pl.lit(side)
        )
        for side, known, answer in (("head", tail, head), ("tail", head, tail))
    ]
    return pl.concat(frames).with_columns(query_text()).select(*ASKED, "answer")


def write_run(run: pl.DataFrame, path: StrPath) -> None:
    """Writes a TREC run, lines `query Q0 answer rank score tag`, where the tag is the model.

    Fields are separated by spaces, or by tabs if a label has a space. `read_runs` reads the file back.

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        path: path of the file; a name that ends in .gz is packed.

    Raises:
        ValueError: if the run is malformed, or a label cannot be written.
    """
    lines = (
        ranked(run)
        .with_columns(query_text())
        .select("query", pl.lit("Q0").alias("q0"), "answer", "rank", "score", "model", "relation")
    )
    write_fields("run", lines, path)


def aligned(run: pl.DataFrame, *, intersect: bool = False) -> tuple[pl.DataFrame, int]:
    """Run in which all systems answer the same queries.

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        intersect: whether to keep only the queries that every system answers; otherwise a difference is an
            error. Default False.

    Returns:
        Run, and the number of queries that were left out because some system lacks them.

    Raises:
        ValueError: if the run is malformed, the systems answer different queries, or no query is answered by
            all.
    """
    frame = checked("run", run, RUN)
    if frame.is_empty():
        raise ArgumentError("run", "must have at least one row, got none.")
    models = frame["model"].n_unique()
    by_query = frame.group_by("query", maintain_order=True).agg(pl.col("model").n_unique().alias("n"))
    lacking = by_query.filter(pl.col("n") < models).select("query")
    if len(lacking) == len(by_query):
        raise ArgumentError("run", f"must have a query that all {models} systems answer, got none.")
    if lacking.is_empty():
        return frame, 0
    if not checks.flag("intersect", intersect):
        query = lacking["query"][0]
        who = set(frame["model"].unique()) - set(frame.filter(query=query)["model"])
        raise ArgumentError(
            "run",
            f"must answer the same queries in every system: {len(lacking):,} of {len(by_query):,} "
            f"are missing in some, such as {query!r} in {min(who)!r}; `intersect` leaves them out.",
        )
    return frame.join(lacking, on="query", how="anti", maintain_order="left"), len(lacking)


def _read(
    path: Path | Mapping[Any, Any], topics: Topics, graph: KnowledgeGraph | None, reading: TableReading
) -> pl.DataFrame:
    """Run in one source."""
    if isinstance(path, Mapping):
        frame = run_of("paths", path, topics=topics).with_columns(model=pl.lit("run"))
        return _of_graph("`paths`", frame, graph)
    if not isinstance(path, Path):
        raise ArgumentError(
            "paths", f"must be paths or {{query: {{answer: score}}}}, got {type(path).__name__}."
        )
    if path.suffix.lower() == ".npz":
        raise ValueError(f"{path}: must be a TREC run or a rank table, got a file of scores.")
    if not holds_ranks(path) and not is_dataset(path):
        return _of_graph(path, read_run(path, topics=topics).rename({"tag": "model"}), graph)
    table = read_lacking(path, graph, reading).frame
    model = pl.col("model") if "model" in table.columns else pl.lit(path.name.split(".")[0])
    if "seed" in table.columns and table["seed"].n_unique() > 1:
        model = pl.format("{}/{}", model, "seed")
    rank = -(pl.col("optimistic") + pl.col("pessimistic")) / 2
    frame = table.select(
        "side",
        model=model,
        entity=known_entity().cast(pl.String),
        relation=pl.col("relation").cast(pl.String),
        answer=asked_entity().cast(pl.String),
        score=pl.col("score") if "score" in table.columns else rank,
    )
    try:
        frame = _of_graph(path, frame.with_columns(query_text()), graph)
        return once("table", frame, *_LIST, "answer")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _of_graph(path: Path | str, frame: pl.DataFrame, graph: KnowledgeGraph | None) -> pl.DataFrame:
    """Columns of a run whose labels are in the graph; ValueError with the line of a label that is not."""
    if graph is not None and (frame["relation"] != TOPIC).any():
        with_ids(path, frame, graph)
    return frame.select(RUN)
