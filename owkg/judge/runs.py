"""Runs: the ranked answers of one system or several to the same queries."""

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
"""A run: a path, or {query: {answer: score}}."""


def read_runs(
    paths: Mapping[str, Source] | Iterable[StrPath],
    *,
    depth: int | None = None,
    topics: Topics = False,
    graph: KnowledgeGraph | None = None,
    reading: TableReading = PLAIN,
) -> pl.DataFrame:
    """The runs in several files, as one frame.

    A run (`owkg.ir.trec.read_run`) may hold several systems, told apart by their tags. Where files have a tag
    in common, their systems are called by their files, which a warning says. A rank table
    (.parquet, .csv, .tsv) is a run of its tested answers alone, its scores the column score, else the
    realistic ranks with a minus: it says nothing of the answers that stand before them, so a pool of it holds
    test answers only. Its systems are its column model, else the file's name; with several seeds, model/seed.

    Args:
        paths: of the files, at least one; or sources by name: paths of one system each, or dictionaries
            {query: {answer: score}}.
        depth: how many answers of each list are kept, the best; None: all.
        topics: "allowed" if queries may be topics (`owkg.ir.trec.read_run`).
        graph: that has all labels, except of topics; None: any labels.
        reading: what is said of the rank tables among them.

    Returns:
        Columns model, query, side, entity, relation, answer, score.

    Raises:
        ValueError: naming the file, and the line where there is one: if it is malformed, an answer stands
            twice in a list, or a system stands in two files.
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
    """The run of one system, from the best answers to each query.

    Args:
        model: the name of the system.
        side: the side that is asked for, "head" or "tail"; one for all queries, or one each.
        entity: id of what is known of each query, [queries].
        relation: id of its relation, [queries].
        answers: entity ids, [queries, depth]; -1 where a list has no more answers.
        scores: of the answers, [queries, depth]; larger is better.
        entities: labels by id.
        relations: labels by id.

    Raises:
        ValueError: if a shape is another one, an id is out of range, a score is NaN, a query or an answer
            of a list stands there twice.

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
            "entity", f"and `relation` must be one id a query, got the shapes {known.shape} and {of.shape}."
        )
    # From 0 when the end of a list is -1.
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
    """The run with a column rank, 1 for the best answer of a list; lists by model and query.

    Lists are ordered as trec_eval orders them: by score, highest first, answers of equal score by their
    names as text, last first ("b" before "a").

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        depth: the largest rank that is kept; None: all.

    Raises:
        ValueError: if the run is malformed, or an answer stands twice in what is kept of a list.
    """
    frame = checked("run", run, RUN)
    deep = None if depth is None else checks.whole("depth", depth, 1)
    if deep is not None:
        # Fewer rows to put into order; ties at the end stay for now.
        best = pl.col("score").rank("min", descending=True).over(_LIST)
        frame = frame.filter(best <= deep)
    frame = frame.sort(*_LIST, "score", "answer", descending=[False, False, True, True])
    frame = frame.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(_LIST))
    if deep is not None:
        frame = frame.filter(pl.col("rank") <= deep)
    return once("run", frame, *_LIST, "answer")


def top(run: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The best `depth` answers of each list, ordered as `ranked` has it.

    Raises:
        ValueError: as `ranked`, or if `depth` is no whole number of at least 1.

    Examples:
        >>> labels = {"entities": ["a", "b", "c"], "relations": ["r"]}
        >>> run = run_from_lists("m", "tail", [0], [0], [[0, 1, 2]], [[1, 1, 3]], **labels)
        >>> top(run, 2)["answer"].to_list()
        ['c', 'b']
    """
    return ranked(run, depth=checks.whole("depth", depth, 1)).drop("rank")


def without_known(run: pl.DataFrame, graph: KnowledgeGraph, splits: Sequence[str]) -> pl.DataFrame:
    """The run without the answers that some splits know, as the filtered setting has it.

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        graph: whose labels the run uses.
        splits: of the graph, whose facts leave the lists.

    Raises:
        ValueError: if the run is malformed or the graph has no such facts.
    """
    return checked("run", run, RUN).join(known_pairs(graph, splits), on=["query", "answer"], how="anti")


def known_pairs(graph: KnowledgeGraph, splits: Sequence[str]) -> pl.DataFrame:
    """Every query that some splits answer, with its answers: columns query to relation, and answer.

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
    """Writes a TREC run, lines `query Q0 answer rank score tag`, the tag the model; .gz packs it.

    Fields are separated by spaces, or by tabs where a label holds a space. `read_runs` reads it again.

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
    """The run, in which all systems answer the same queries.

    Args:
        run: columns model, query, side, entity, relation, answer, score.
        intersect: keep the queries that every system answers, where they differ; else that is an error.

    Returns:
        (run, number of queries that some system lacks and that were left out).

    Raises:
        ValueError: if the run is malformed, the systems do not answer the same queries, or there is no
            query that all answer.
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
    """The columns of a run, whose labels the graph has; ValueError with the line of another one."""
    if graph is not None and (frame["relation"] != TOPIC).any():
        with_ids(path, frame, graph)
    return frame.select(RUN)
