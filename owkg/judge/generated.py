"""Answers that a language model writes: lists in part, without order, or outside the vocabulary."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy import special

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.lines import line_error, read_lines
from owkg.ir.dictionaries import JSONError, parsed
from owkg.ir.trec import require_text
from owkg.judge.runs import known_pairs
from owkg.kg import KnowledgeGraph, fact_splits
from owkg.kg.graph import graph_checked
from owkg.kg.names import QUERY_TEXT, parts_of, query_of
from owkg.metrics.front import MetricNames, metrics_named
from owkg.rank_weights import tie_expectation
from owkg.rank_weights.tables import rank_weights
from owkg.ranks import RankTable, validated
from owkg.ranks.build import default_filters

_LIST = ["model", "query"]
_KEYS = ("query", "head", "relation", "tail", "answers", "ranked", "model")


class Generated(NamedTuple):
    """Ranks of the answers of a split under generated lists.

    Attributes:
        table: rank table with bounds. The rank lies between the optimistic and the pessimistic rank, however
            the list would continue, and whichever wrong candidates, if any, the answers outside the
            vocabulary mean. If such an answer is the right one in another spelling, pass it in `aliases`.
        listed: whether the answer of each row is in the list, [rows].
        report: counts of lists, answers, duplicates, unknown answers (outside the vocabulary), unranked
            lists, unused lists (their queries are not in the split) and unanswered queries; and ceiling, the
            share of answers that are listed, which is the best Hits@K of any reranking of the lists.
    """

    table: RankTable
    listed: np.ndarray
    report: dict[str, Any]


def read_generated(path: str | PathLike[str]) -> pl.DataFrame:
    """Generated lists from JSON lines, or from one JSON array.

    Each line, or entry of the array, is an object with `answers`, a list of texts, best first, and the query:
    `head` and `relation`, `relation` and `tail`, or `query` (`head|relation|?`, `?|relation|tail`). Optional:
    `ranked` (default true: the answers are in order) and `model`.

    Args:
        path: path of the file.

    Returns:
        One row for each answer: model, query, side, entity, relation, ranked, place (from 1), text. A list
        without answers is one row with place 0.

    Raises:
        ValueError: naming file and line.
        OSError: if the file cannot be opened.
    """
    place = checks.path("path", path)
    require_text(place, "lists as JSON")
    lines = read_lines(place).to_list()
    if next((text for text in lines if text.strip()), "").lstrip().startswith("["):
        held = parsed(place, "\n".join(lines))
        rows = [row for i, one in enumerate(held, 1) for row in _rows(f"{place}, entry {i}", one)]
    else:
        rows = [row for i, text in enumerate(lines, 1) if text.strip() for row in _line_rows(place, i, text)]
    if not rows:
        raise ValueError(f"{place}: holds no list.")
    columns = [*_LIST, "side", "entity", "relation", "ranked", "place", "text"]
    frame = pl.DataFrame(rows, columns, orient="row", infer_schema_length=None).cast({"text": pl.String})
    lists = frame.filter(pl.col("place") < 2).select(_LIST)
    if lists.is_duplicated().any():
        model, query = lists.filter(lists.is_duplicated()).row(0)
        raise ValueError(f"{place}: has two lists for {query!r}, of the model {model!r}.")
    return frame


def _line_rows(path: Path, number: int, text: str) -> list[tuple[Any, ...]]:
    """Rows of one line."""
    try:
        return _rows(f"{path}, line {number}", parsed(path, text, line=number))
    except JSONError as error:
        if text.strip() in ("{", "["):
            text = "must be one whole JSON object, or the file must be one array."
            raise line_error(path, number, text) from None
        raise error from None


def _rows(where: str, held: object) -> list[tuple[Any, ...]]:
    """Rows of one list."""
    if not isinstance(held, dict):
        raise _error(where, f"must be an object, got {type(held).__name__}.")
    if other := held.keys() - _KEYS:
        raise _error(where, f"must only have the keys {', '.join(_KEYS)}, got {min(other)!r}.")
    answers = held.get("answers")
    if not isinstance(answers, list) or not all(isinstance(one, str) for one in answers):
        raise _error(where, "must have answers, a list of texts.")
    if "query" in held:
        head, relation, tail = _parts(where, held["query"])
    else:
        head, relation, tail = (held.get(name) for name in ("head", "relation", "tail"))
    asked = [one for one, known in (("tail", head), ("head", tail)) if isinstance(known, str) and known]
    if len(asked) != 1 or not isinstance(relation, str) or not relation:
        raise _error(where, "must give the query as head and relation, as relation and tail, or as query.")
    ranked, model = held.get("ranked", True), held.get("model", "generated")
    if not isinstance(ranked, bool) or not isinstance(model, str) or not model:
        raise _error(where, "ranked must be true or false, and model must be text.")
    entity = head if asked[0] == "tail" else tail
    query = query_of(str(entity), relation, asked[0])
    same = (model, query, asked[0], entity, relation, ranked)
    return [(*same, i + 1, one) for i, one in enumerate(answers)] or [(*same, 0, None)]


def _error(where: str, message: str) -> ValueError:
    """ValueError that names file and line, or entry."""
    return ValueError(f"{where}: {message}")


def _parts(where: str, query: object) -> tuple[str | None, str, str | None]:
    """Head, relation and tail of a query text; the missing one is None."""
    parts = parts_of(query) if isinstance(query, str) else None
    if parts is not None:
        side, entity, relation = parts
        return (entity, relation, None) if side == "tail" else (None, relation, entity)
    raise _error(where, f"a query must be {QUERY_TEXT}, got {query!r}.")


def ranks_of_lists(
    lists: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    filter: Sequence[str] | None = None,  # noqa: A002
    aliases: Mapping[str, str] | None = None,
) -> Generated:
    """Filtered ranks of the answers of a split under generated lists, as lower and upper bounds.

    Answers that a list repeats count once, and known answers are removed from it. Answers outside the
    vocabulary may or may not mean a candidate. The rank of a listed answer is given by the wrong answers
    before it; in a list without order, it is any rank up to the number of wrong answers plus one. An answer
    that is not listed ranks below all listed answers, down to the last candidate. For a query without a list,
    every rank is possible. Both bounds can be attained by all answers at once: unlisted answers come next, or
    last.

    Args:
        lists: frame of `read_generated`.
        graph: knowledge graph with the vocabulary, the known answers and the answers of the split.
        split: split to rank, on the sides that the lists ask for. Default "test".
        filter: splits whose answers are removed from lists and candidates. Default: all splits of the graph.
        aliases: labels of the graph by other names. Default: none.

    Raises:
        ValueError: if no list answers a query of the split, or an alias names no entity.
    """
    graph = graph_checked(graph)
    if split not in (splits := fact_splits(graph)):
        raise ArgumentError("split", f"must be among {', '.join(splits)}, got {split!r}.")
    filters = checks.names("filter", filter) if filter is not None else default_filters(graph, split)
    filters = list(dict.fromkeys([*filters, split]))
    facts = known_pairs(graph, filters)
    truth = known_pairs(graph, [split]).filter(pl.col("side").is_in(lists["side"].unique().implode()))
    resolved = _resolved(lists, graph, aliases)
    asked = lists.select(_LIST).unique(maintain_order=True)
    unused = asked.join(truth, on="query", how="anti")
    if len(unused) == len(asked):
        query = asked["query"][0]
        raise ArgumentError("lists", f"must answer queries of {split}, got only others, such as {query!r}.")
    counts = facts.group_by("query").len("known")
    known = facts.select("query", "answer").with_columns(is_known=True)
    marked = resolved.join(known, on=["query", "answer"], how="left", maintain_order="left")
    marked = marked.with_columns(
        wrong=(pl.col("is_known").is_null() & pl.col("answer").is_not_null()).cast(pl.Int64),
        unknown=pl.col("answer").is_null().cast(pl.Int64),
    ).sort(*_LIST, "place")
    before = [
        (pl.col(name).cum_sum().over(_LIST) - pl.col(name)).alias(f"{name}_before")
        for name in ("wrong", "unknown")
    ]
    marked = marked.with_columns(before)
    whole = marked.group_by(_LIST).agg(pl.col("wrong", "unknown").sum(), ranked=pl.col("ranked").first())
    whole = lists.group_by(_LIST).agg(ranked=pl.col("ranked").first()).join(
        whole.drop("ranked"), on=_LIST, how="left"
    ).with_columns(pl.col("wrong", "unknown").fill_null(0))  # fmt: skip
    models = lists.select("model").unique(maintain_order=True)
    tasks = models.join(truth, how="cross").join(counts, on="query", maintain_order="left")
    tasks = tasks.join(whole, on=_LIST, how="left", maintain_order="left")
    places = marked.filter(pl.col("answer").is_not_null()).select(
        *_LIST, "answer", "wrong_before", "unknown_before", listed=pl.lit(True)
    )
    tasks = tasks.join(places, on=[*_LIST, "answer"], how="left", maintain_order="left")
    last = graph.num_entities - pl.col("known") + 1
    listed, has_list = pl.col("listed").fill_null(False), pl.col("ranked").is_not_null()
    in_order = listed & pl.col("ranked").fill_null(False)
    every = pl.col("wrong") + pl.col("unknown")
    best = pl.when(in_order).then(1 + pl.col("wrong_before")).when(listed | ~has_list).then(1)
    worst = pl.when(in_order).then(1 + pl.col("wrong_before") + pl.col("unknown_before"))
    tasks = tasks.with_columns(
        optimistic=pl.min_horizontal(best.otherwise(1 + pl.col("wrong")), last),
        pessimistic=pl.min_horizontal(worst.when(listed).then(1 + every).otherwise(last), last),
        candidates=last,
        filtered=pl.lit(True),
        head=pl.when(pl.col("side") == "tail").then("entity").otherwise("answer"),
        tail=pl.when(pl.col("side") == "tail").then("answer").otherwise("entity"),
    )
    columns = [
        "head",
        "relation",
        "tail",
        "side",
        "optimistic",
        "pessimistic",
        "candidates",
        "filtered",
        "model",
    ]
    found = tasks["listed"].fill_null(False).to_numpy()
    report = {
        "lists": len(asked),
        "answers": int((lists["place"] > 0).sum()),
        "duplicates": int((lists["place"] > 0).sum()) - len(resolved),
        "unknown": int(resolved["answer"].null_count()),
        "unranked_lists": int((~whole["ranked"]).sum()),
        "unused_lists": len(unused),
        "unanswered": int(tasks.filter(pl.col("ranked").is_null()).select("model", "query").n_unique())
        if tasks["ranked"].null_count()
        else 0,
        "ceiling": float(found.mean()),
    }
    open_ = pl.col("optimistic") < pl.col("pessimistic")
    bounded = [open_.alias("bounded")] if tasks.select(open_.any()).item() else []
    table = RankTable.trusted(
        validated(tasks.select(*columns, *bounded)), {"split": split, "filter": filters, "lists": "partial"}
    )
    return Generated(table, found, report)


def _resolved(lists: pl.DataFrame, graph: KnowledgeGraph, aliases: Mapping[str, str] | None) -> pl.DataFrame:
    """Lists with the label of each answer, null outside the vocabulary; repeated answers are kept once."""
    labels = set(graph.entities)
    if bad := [label for label in (aliases or {}).values() if label not in labels]:
        raise ArgumentError("aliases", f"must name entities of the graph, got {bad[0]!r}.")
    for alias, label in (aliases or {}).items():
        if alias in labels and alias != label:
            raise ArgumentError("aliases", f"must not rename an entity, got {alias!r} for {label!r}.")
    named = {**(aliases or {}), **{label: label for label in graph.entities}}
    own = lists.filter(pl.col("place") > 0)
    # Spaces around an answer are dropped unless a label has them.
    texts = own["text"].unique()
    spaced = texts.filter(~texts.is_in(list(named)))
    own = own.with_columns(pl.col("text").replace(spaced, spaced.str.strip_chars()))
    texts = own["text"].unique()
    of = pl.DataFrame(
        {"text": texts, "answer": [named.get(text) for text in texts]}, schema_overrides={"answer": pl.String}
    )
    own = own.join(of, on="text", how="left", maintain_order="left")
    key = pl.coalesce("answer", pl.format("?{}", "text")).alias("key")
    return own.with_columns(key).unique([*_LIST, "key"], keep="first", maintain_order=True).drop("key")


def partial_metrics(found: Generated, metrics: MetricNames = ("mrr", "hits@1", "hits@10")) -> pl.DataFrame:
    """Metrics of partial lists: attainable bounds, and values under four conventions for unlisted answers.

    Args:
        found: ranks from `ranks_of_lists`.
        metrics: names of plain means of rank weights that fall with the rank. Default MRR, Hits@1 and
            Hits@10.

    Returns:
        One row for each model and metric: model, metric, low and high (the worst and the best possible
        value), and the value if unlisted answers come next ("next"), at a uniformly random rank among the
        rest ("uniform"), last ("last"), or count 0 ("none"). These four use the mean over the possible ranks
        of listed answers. For a query without a list, "next" means rank 1.

    Raises:
        ValueError: if a metric is not such a mean.
    """
    chosen = metrics_named(metrics) or []
    for one in chosen:
        if not one.falls_with_rank:
            raise ArgumentError(
                "metrics", f"must be plain means of weights that fall with the rank, got {one.name}."
            )
    frame, rows = found.table.frame.with_columns(is_listed=found.listed), []
    for (model,), part in frame.group_by("model", maintain_order=True):
        ends = [part[name].to_numpy().astype(np.int64) for name in ("optimistic", "pessimistic")]
        listed = part["is_listed"].to_numpy()
        for one in chosen:
            weight: Any = one.measure
            best, worst = (rank_weights(weight, end) for end in ends)
            mean = tie_expectation(weight, *ends)
            row: dict[str, Any] = {
                "model": model,
                "metric": one.name,
                "low": worst.mean(),
                "high": best.mean(),
            }
            for name, other in (("next", best), ("uniform", mean), ("last", worst), ("none", 0.0)):
                row[name] = float(np.where(listed, mean, other).mean())
            rows.append(row)
    return pl.DataFrame(rows)


class Filtered(NamedTuple):
    """Test of whether lists were filtered by the known answers before they were ranked.

    Attributes:
        queries: number of queries with an answer of the split and another known answer.
        known_alone: number of queries whose list has the drawn known answer and not the drawn tested one.
        tested_alone: number of queries whose list has the drawn tested answer and not the drawn known one.
        p_value: one-sided p-value of the hypothesis that known answers are listed at least as often as tested
            ones.
    """

    queries: int
    known_alone: int
    tested_alone: int
    p_value: float


def filtered_before(
    lists: pl.DataFrame,
    graph: KnowledgeGraph,
    *,
    split: str = "test",
    aliases: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Filtered:
    """Sign test for lists from which known answers were removed before they were ranked.

    Such a list profits from the known answers, because every other right answer has been removed ahead of the
    tested one. A model that has seen the training answers lists them at least as often as the tested answers.
    The test therefore draws one tested and one other known answer for each query, and applies a sign test to
    the queries whose list has exactly one of the two. Its level holds for such models; lists of a single
    answer, or of a model that was told the known answers, look as if they had been filtered.

    Args:
        lists: frame of `read_generated`, with one model.
        graph: knowledge graph whose other splits hold the known answers.
        split: split that is tested. Default "test".
        aliases: labels of the graph by other names. Default: none.
        seed: seed of the draws. Default 0.

    Raises:
        ValueError: if the graph has no other split, or the lists have several models.
    """
    if len(models := lists["model"].unique()) > 1:
        raise ArgumentError("lists", f"must have one model, got {', '.join(models.sort()[:3])}.")
    others = [name for name in default_filters(graph_checked(graph), split) if name != split]
    if not others:
        raise ArgumentError("graph", f"must have splits other than {split}, which hold the known answers.")
    resolved = _resolved(lists, graph, aliases).drop_nulls("answer").select(*_LIST, "answer", listed=True)
    drawn = []
    for name, splits in (("tested", [split]), ("known", others)):
        pairs = (
            known_pairs(graph, splits).select("query", "answer").sample(fraction=1, shuffle=True, seed=seed)
        )
        drawn.append(pairs.unique("query", keep="first", maintain_order=True).rename({"answer": name}))
    both = (
        lists.select(_LIST).unique(maintain_order=True).join(drawn[0], on="query").join(drawn[1], on="query")
    )
    for name in ("tested", "known"):
        own = resolved.rename({"answer": name, "listed": f"{name}_listed"})
        both = both.join(own, on=[*_LIST, name], how="left").with_columns(
            pl.col(f"{name}_listed").fill_null(False)
        )
    known = int((both["known_listed"] & ~both["tested_listed"]).sum())
    tested = int((~both["known_listed"] & both["tested_listed"]).sum())
    p = float(special.bdtr(known, known + tested, 0.5)) if known + tested else 1.0
    return Filtered(len(both), known, tested, p)
