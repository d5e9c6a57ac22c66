"""Measures of lists of TREC runs under TREC qrels with any topics, by query and on average."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.ir import Judged, judge
from owkg.ir.dictionaries import dictionary
from owkg.ir.names import EXAMPLES, Measure, measures_named
from owkg.ir.trec import read_qrels, read_run
from owkg.judge.named import HINT, names_of, only_name, sources_of
from owkg.judge.scores import Scores
from owkg.judge.systems import note
from owkg.ranks import RankTable
from owkg.stats.interval import BoundedMean, intervals

Run = pl.DataFrame | Mapping[Any, Any] | str | PathLike[str]
"""Run: a frame with query, answer and score, a dictionary {query: {answer: score}}, or a path."""

DEFAULT = ("AP", "nDCG@10", "P@10", "Recall@100", "RR")
"""Default measures."""

_RUN, _QRELS = ("query", "answer", "score"), ("query", "answer", "relevance")


def topic_scores(
    systems: Mapping[str, Run] | Iterable[str | PathLike[str]],
    qrels: Run,
    measures: Sequence[Measure],
    *,
    intersect: bool = False,
    level: int = 1,
    known: pl.DataFrame | None = None,
) -> Scores:
    """Measures of every system and query.

    Every query with a judgement counts, and is 0 if a system has no list for it (trec_eval's option -c).
    Lists of queries without judgements do not count.

    Args:
        systems: runs by name; or paths, whose systems are named by their tags, or by the files if these share
            a tag.
        qrels: judgements: a frame with query, answer and relevance, a path, or a dictionary {query: {answer:
            relevance}}.
        measures: measures from `owkg.ir.names.measure`.
        intersect: whether only queries that every system answers count, as in trec_eval without -c. Default
            False.
        level: lowest relevance that counts as relevant. Default 1.
        known: known answers, if the judgements are a split, with columns query, side and answer: unjudged
            known answers are removed from the lists, and sides that no run answers do not count. Default:
            none.

    Returns:
        Scores in which each query has weight 1; query texts are entities of the side tail, with an empty
        relation.

    Raises:
        ValueError: naming the argument, or the file and line, if something is malformed, a system is given
            twice, or no query is judged.
    """
    checks.whole("level", level, 1)
    runs = _runs(systems)
    judgements = _frame("qrels", qrels, _QRELS)
    if known is not None:
        others = known.join(judgements, on=["query", "answer"], how="anti")
        runs = {name: run.join(others, on=["query", "answer"], how="anti") for name, run in runs.items()}
        listed = pl.concat(run.select("query") for run in runs.values()).unique()
        sides = known.select("query", "side").unique().join(listed, on="query")["side"].unique()
        own = known.filter(pl.col("side").is_in(sides.implode())).select("query").unique()
        judgements = judgements.join(own, on="query", how="semi", maintain_order="left")
        if not len(judgements):
            raise ArgumentError("qrels", "must judge queries that the systems answer, got none.")
    asked = judgements.select("query").unique()
    kept = asked
    values = []
    for name, run in runs.items():
        own = run.join(asked, on="query", how="semi", maintain_order="left")
        answered = own.select("query").unique()
        if not len(answered):
            raise ArgumentError("qrels", f"must judge queries that {name} answers, got none.")
        if other := run["query"].n_unique() - len(answered):
            note(f"{name}: {other:,} of {run['query'].n_unique():,} lists have queries without judgements.")
        if intersect:
            kept = kept.join(answered, on="query", how="semi")
        elif lacking := len(asked) - len(answered):
            note(f"{name}: has no list for {lacking:,} of {len(asked):,} judged queries, which count 0.")
        runs[name] = own
    if not len(kept):
        raise ArgumentError("systems", "must have a query that all of them answer, got none.")
    judgements = judgements.join(kept, on="query", how="semi", maintain_order="left")
    if not (judgements["relevance"] >= level).any():
        note("no answer is judged relevant: every measure is 0.")
    queries = pl.Series([], dtype=pl.String)
    for run in runs.values():
        lists = judge(run.join(kept, on="query", how="semi"), judgements, relevance_level=level)
        queries = lists.queries
        values.append([_of_queries(one, lists) for one in measures])
    value = np.array(values, np.float64).transpose(1, 0, 2)
    return Scores(
        systems=tuple(runs),
        metrics=tuple(one.name for one in measures),
        larger_is_better=(True,) * len(measures),
        queries=pl.DataFrame(
            {"side": ["tail"] * len(queries), "entity": queries, "relation": [""] * len(queries)}
        ),
        value=value,
        weight=np.ones((len(measures), len(queries))),
    )


def _of_queries(measure: Measure, lists: Judged) -> np.ndarray:
    """Values of a measure; ArgumentError unless there is a finite number for each query."""
    value = np.asarray(measure.of(lists))
    if value.shape != (len(lists.queries),) or value.dtype.kind not in "biuf" or not np.isfinite(value).all():
        must = f"must give a finite number for each of {len(lists.queries)} queries"
        raise ArgumentError("metrics", f"{must}, which {measure.name} does not.")
    return value


def by_query(scores: Scores) -> pl.DataFrame:
    """One row for each system, query and measure: system, query, measure, value."""
    systems, queries = scores.systems, scores.queries["entity"]
    return pl.concat(
        pl.DataFrame({"system": [name] * len(queries), "query": queries}).with_columns(
            measure=pl.lit(measure), value=pl.Series(scores.value[m, s])
        )
        for s, name in enumerate(systems)
        for m, measure in enumerate(scores.metrics)
    )


def topic_values(scores: Scores, level: float) -> pl.DataFrame:
    """One row for each measure and system: mean over queries, with interval and rank (1 is best)."""
    rows, count = [], scores.value.shape[2]
    for m, metric in enumerate(scores.metrics):
        each = scores.value[m]
        # The error of a single query is unknown: its interval comes from the bounds.
        error = each.std(1, ddof=1) / np.sqrt(count) if count > 1 else np.full(len(each), 0.5)
        means = [
            BoundedMean(float(v), float(e), 0.0, 1.0, count, True)
            for v, e in zip(each.mean(1), error, strict=True)
        ]
        limits = intervals(means, level)
        for s, system in enumerate(scores.systems):
            low, high = limits[s].tolist()
            row = {"metric": metric, "system": system, "value": means[s].value, "lower": low, "upper": high}
            rows.append(row | {"rank": int(scores.places[m, s])})
    return pl.DataFrame(rows)


def evaluate_runs(
    systems: Mapping[str, Run] | Iterable[str | PathLike[str]] | str | PathLike[str],
    qrels: Run,
    metrics: str | Sequence[str] = DEFAULT,
    *,
    intersect: bool = False,
    level: int = 1,
    ci: float = 0.95,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Measures of TREC runs, as trec_eval computes them.

    Args:
        systems: runs by name, paths, or one path. A run is a frame, a path, or a dictionary {query: {answer:
            score}} as in pytrec_eval and ranx.
        qrels: judgements: a frame, a path, or a dictionary {query: {answer: relevance}}.
        metrics: measures such as AP, nDCG@10, P@10, Recall@100, RR, Rprec, Bpref, infAP, RBP(p=0.8),
            Judged@10, or trec_eval's names. Default `DEFAULT`.
        intersect: whether only queries that every system answers count; otherwise every judged query does.
            Default False.
        level: lowest relevance that counts as relevant. Default 1.
        ci: level of the intervals over queries. Default 0.95.

    Returns:
        Frame with metric, system, value, lower, upper, rank; and frame with system, query, measure, value.

    Raises:
        ValueError: naming the argument, or the file and line.

    Examples:
        >>> run = pl.DataFrame({"query": ["301"] * 2, "answer": ["d1", "d2"], "score": [2.0, 1.0]})
        >>> qrels = pl.DataFrame({"query": ["301"], "answer": ["d2"], "relevance": [1]})
        >>> evaluate_runs({"bm25": run}, qrels, "RR")[0]["value"].item()
        0.5
    """
    checks.level("ci", ci)
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    # MRR of lists is the mean of RR; elsewhere it is the metric of ranks.
    chosen = measures_named(["RR" + name[3:] if name.lower()[:3] == "mrr" else name for name in names])
    if chosen is None:
        raise ArgumentError("metrics", f"must be among {', '.join(EXAMPLES)}, got {metrics!r}.")
    several = [systems] if isinstance(systems, str | PathLike) else systems
    found = topic_scores(several, qrels, chosen, intersect=intersect, level=level)
    return topic_values(found, ci), by_query(found)


def _runs(systems: object) -> dict[str, pl.DataFrame]:
    """Run of each system."""
    sources = sources_of("systems", systems, what="runs by name, or files")
    if not sources:
        raise ArgumentError("systems", "must name at least one file, got none.")
    if sources[0][0] is not None:
        return {str(name): _frame("systems", run, _RUN, called=name) for name, run in sources}
    paths = [path for _, path in sources]
    parts = [
        read_run(_run_file(path), topics=True).partition_by("tag", as_dict=True, maintain_order=True)
        for path in paths
    ]
    own = [[str(name) for (name,) in part] for part in parts]
    found: dict[str, pl.DataFrame] = {}
    for part, names in zip(parts, names_of(paths, own), strict=True):
        for (tag,), run in part.items():
            if (name := names[str(tag)]) in found:
                raise ArgumentError("systems", f"must have different names, got {name!r} twice; {HINT}.")
            found[name] = run.select(_RUN)
    return found


def _run_file(path: object) -> Path:
    """Path of a run; ArgumentError if it is a rank table."""
    if not isinstance(path, Path):
        raise ArgumentError("systems", f"must be runs by name, or files, got a {type(path).__name__}.")
    if path.suffix.lower() == ".parquet":
        raise _no_run("systems")
    return path


def _no_run(name: str) -> ArgumentError:
    """ArgumentError for a rank table given as a run."""
    return ArgumentError(
        name,
        "must be TREC runs with measures of lists, got a rank table; rank tables have rank "
        "metrics such as mrr, macro-map@20 or macro-ndcg@20.",
    )


def _frame(name: str, given: object, columns: tuple[str, ...], *, called: str | None = None) -> pl.DataFrame:
    """Columns of a frame, a dictionary or a file."""
    file = Path(given) if isinstance(given, str | PathLike) else None
    if isinstance(given, RankTable) or (file is not None and file.suffix.lower() == ".parquet"):
        raise _no_run(name)
    frame: object = given
    if isinstance(given, Mapping):
        frame = dictionary(name, given, columns[-1])
    elif file is not None:
        frame = (read_run if name == "systems" else read_qrels)(file, topics=True)
        if called is not None:
            only_name(file, frame["tag"].unique(maintain_order=True).to_list(), called)
    if not isinstance(frame, pl.DataFrame) or any(column not in frame.columns for column in columns):
        got = ", ".join(frame.columns) if isinstance(frame, pl.DataFrame) else type(frame).__name__
        raise ArgumentError(name, f"must have the columns {', '.join(columns)}, got {got}.")
    return frame.select(columns).with_columns(pl.col("query", "answer").cast(pl.String))
