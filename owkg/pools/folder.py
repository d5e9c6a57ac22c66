"""Folder that `owkg pool` writes: candidates, judgements so far, the pooled lists, and a sheet to fill in."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from owkg.errors import ArgumentError, naming
from owkg.estimation.estimate import DrawnPool
from owkg.estimation.measures import measures
from owkg.estimation.plan import plan, units_for, wished
from owkg.estimation.population import population
from owkg.estimation.proxy import free_proxy
from owkg.files.storage import checksum, checksums, made_folder, versions, write_metadata
from owkg.ir import POOLED
from owkg.ir.trec import TOPIC
from owkg.judge.qrels import (
    judged_for,
    judgements_checked,
    merged,
    qrels_from_graph,
    read_judgements,
    write_judgements,
)
from owkg.judge.runs import aligned, read_runs, top, without_known, write_run
from owkg.judge.schema import RUN, checked
from owkg.kg import KnowledgeGraph, fact_splits, read_graph
from owkg.kg.read import Reading
from owkg.pools.annotation import read_names, write_sheet
from owkg.pools.design import MADE_BY, design_of_pool, write_design
from owkg.pools.drawn import asked_candidates, drawn_pool, reach_of, write_drawn
from owkg.pools.further import Graph, Runs, paths_of, require_runs
from owkg.pools.missing import with_categories
from owkg.pools.pool import judged_pool, pool, pool_sizes, within_budget
from owkg.pools.rule_cost import rule_cost
from owkg.pools.templates import Templates, addresses, read_templates
from owkg.pools.trivial import rule_counts, triples_of, trivial
from owkg.ranks.files import holds_ranks
from owkg.ranks.reading import PLAIN, TableReading

SHEET = "sheet.tsv"
"""File that annotators fill in."""

_OF_DRAWS = ("sample", "draw", "strata", "for", "below_depth")
_FILTER = ("train", "valid")
_TRUTH = "truth"  # name of the split that holds the facts of --truth
_PAIR = ["query", "answer"]
_SHOWN = ("side", "entity", "relation", "answer")


_NONE = KnowledgeGraph((), (TOPIC,), {})


def drawn_in_memory(
    runs: Runs,
    kg: Graph,
    settings: dict[str, Any],
    *,
    reading: Reading | None = None,
    tables: TableReading = PLAIN,
) -> tuple[DrawnPool, list[str]]:
    """Pool with a design drawn from it, without writing files, and its notes.

    Args:
        runs, kg, settings, reading, tables: as in `write_pool`.
    """
    made = _made(runs, kg, reading or Reading(), settings, tables)
    return drawn_pool(made.run, made.qrels, settings, made.categories), made.said["notes"]


class Plan(NamedTuple):
    """Expected intervals of a pool before anything is judged.

    Attributes:
        widths: result of `owkg.estimation.plan`, one row for each metric, design and size.
        wishes: result of `owkg.estimation.units_for`, one row for each wish and design; None without wishes.
        notes: warnings about the pool.
    """

    widths: pl.DataFrame
    wishes: pl.DataFrame | None
    notes: list[str]


def planned(
    runs: Runs,
    kg: Graph,
    settings: dict[str, Any],
    metrics: Sequence[str],
    widths: Mapping[str, float] | None = None,
    *,
    reading: Reading | None = None,
    tables: TableReading = PLAIN,
    ci: float = 0.95,
) -> Plan:
    """Plan for a pool, without writing files.

    Args:
        runs, kg, settings, reading, tables: as in `write_pool`.
        metrics: names of metrics; without a cut-off, the depth of the pool is used.
        widths: wished widths of intervals, by name of the metric.
        ci: confidence level of the intervals. Default 0.95.
    """
    depth = settings["depth"]
    measures(metrics, depth)  # before the runs are read
    if widths is not None:
        wished(widths, depth)
    made = _made(runs, kg, reading or Reading(), settings, tables)
    people = population(made.run, depth, made.qrels)
    proxy = free_proxy(people)
    wishes = None if widths is None else units_for(people, proxy, widths, ci=ci)
    return Plan(plan(people, proxy, metrics, ci=ci), wishes, made.said["notes"])


class _Made(NamedTuple):
    """Contents of the folder of a pool."""

    run: pl.DataFrame  # as deep as the design reaches
    pool: pl.DataFrame  # with rule, relevance and judged_by
    qrels: pl.DataFrame
    relations: Sequence[str]
    categories: dict[str, str] | None  # category of each relation of the run
    said: dict[str, Any]


def write_pool(
    runs: Runs,
    kg: Graph,
    out: Path,
    settings: dict[str, Any],
    *,
    names: Path | None,
    overwrite: bool,
    templates: Path | None = None,
    source: str | None = None,
    reading: Reading | None = None,
    tables: TableReading = PLAIN,
) -> dict[str, Any]:
    """Make the pool of some runs, write it as a folder, and return its `metadata.json`.

    Args:
        runs: paths, a mapping from names to paths or dictionaries, or a frame as `owkg.judge.read_runs`
            returns it.
        kg: the graph or its folder; None: there is no graph, and the queries are topics.
        out: folder to write. It is written completely or not at all.
        settings: depth, truth (a split, a file of qrels, a frame of judgements, or None), closed_world,
            covered, filter, rules, min_share, budget, intersect, sampled, sample (whether a design is drawn
            or planned), draw, strata, for, below_depth, seed.
        names: file of readable names for the sheet; None: none.
        overwrite: whether to replace a folder that this command wrote.
        templates: file of templates for the sheet. Default None: none.
        source: column source of the sheet, as in `owkg.pools.annotation.write_sheet`.
        reading: options for reading the folder of the graph. Default None: detected from its files.
        tables: options for reading rank tables among the runs.
    """
    if source:
        addresses(pl.DataFrame(schema=dict.fromkeys(_SHOWN, pl.String)), source)
    paths = paths_of(runs)
    with made_folder(out, made_by=MADE_BY, inputs=paths, overwrite=overwrite) as folder:
        labels, descriptions = ({}, {}) if names is None else read_names(names)
        graph_said = reading or Reading()
        made = _made(runs, kg, graph_said, settings, tables)
        table = made.pool.with_columns(pl.col("models").list.join(","))
        table.write_csv(folder / "pool.tsv", separator="\t")
        write_judgements(made.qrels, folder / "pool.qrels")
        write_run(made.run, folder / "runs.trec.gz")
        left = made.pool.filter(pl.col("relevance") == POOLED)
        drawn = None
        if settings["draw"]:
            drawn = drawn_pool(made.run, made.qrels, settings, made.categories)
            asked = asked_candidates(drawn)
        else:
            asked = within_budget(left, settings["budget"], seed=settings["seed"])
        own = {} if templates is None else read_templates(templates, made.relations)
        if len(asked):
            words = {"labels": labels, "descriptions": descriptions, "templates": own, "source": source}
            write_sheet(asked, folder / SHEET, seed=settings["seed"], in_order=drawn is not None, **words)
        if drawn is not None:
            write_drawn(folder, drawn, settings, [SHEET])
        if templates is not None:
            made.said["notes"] += _unworded(asked, own)
        inputs = [{"file": path.name, "sha256": checksum(path)} for path in paths]
        told = {name: value for name, value in settings.items() if settings["draw"] or name not in _OF_DRAWS}
        if isinstance(told["truth"], pl.DataFrame):
            told["truth"] = "judgements in memory"
        card = {"made_by": MADE_BY, "versions": versions(), "runs": inputs, "settings": told}
        made.said["notes"] += _unasked(left, asked) if drawn is None else []
        beyond = max(len(left) - len(asked), 0)
        card |= made.said | {"to_judge": len(asked), "beyond_budget": beyond}
        card["design"] = str(design := design_of_pool(card))
        for name in ("pool.qrels", SHEET):
            if (folder / name).is_file():
                write_design(folder / name, design, **_known(settings))
        card |= {"sha256": checksums(folder)}
        write_metadata(folder, card)
    return card


def _known(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that are recorded with the design of the judgements of a pool."""
    names = ("depth", "budget", "rules", "covered", "closed_world", *(("draw",) if settings["draw"] else ()))
    return {name: settings[name] for name in names}


def _made(
    runs: Runs, kg: Graph, reading: Reading, settings: dict[str, Any], tables_said: TableReading
) -> _Made:
    paths = paths_of(runs)
    if settings["sample"]:
        if settings["rules"]:
            raise ArgumentError(
                "rule",
                "must be left out if judgements are drawn: rules reject some true answers, which "
                "would bias estimates.",
            )
        require_runs(paths)
        reach_of(settings)
    if tables_said.said and not any(holds_ranks(path) for path in paths):
        raise ArgumentError(tables_said.said, "must be left out, because every file is a TREC run.")
    with naming({"paths": "`runs`"}), _warned() as notes:
        known = kg if isinstance(kg, KnowledgeGraph | None) else read_graph(kg, **reading._asdict())
        if isinstance(runs, pl.DataFrame):
            read = checked("runs", runs, RUN)
        else:
            read = read_runs(runs, topics="allowed", graph=known, reading=tables_said)
    graph = _graph(known, kg, of_topics=bool((read["relation"] == TOPIC).all()))
    if graph is _NONE and settings["rules"]:
        raise ArgumentError("rule", "must be left out for topics, which have no relations.")
    if settings["sample"] and settings["truth"] is None and "test" in fact_splits(graph):
        settings["truth"] = "test"  # answers known before the draw, from which the proxy learns
    splits = _filter_splits(graph, settings["filter"], settings["truth"])
    # For topics the pool is the union over systems, as in TREC, whichever systems answer a topic.
    apart = graph is _NONE and not settings["intersect"]
    run, dropped = (read, 0) if apart else aligned(read, intersect=settings["intersect"])
    if dropped:
        notes.append(f"{dropped:,} queries are left out because some system does not answer them.")
    tables = [path.name for path in paths if holds_ranks(path)]
    notes += [f"{name} is a rank table, so only its tested answers are pooled." for name in tables]
    if settings["covered"]:
        run = _covered(run, graph, str(settings["truth"]), notes)
    asked = run["query"].n_unique()
    run = without_known(run, graph, splits) if splits else run
    if run.is_empty():
        raise ArgumentError("filter", "must leave some answers of the runs, got none.")
    if gone := asked - run["query"].n_unique():
        notes.append(f"{gone:,} queries have no answers left after the filter and are left out.")
    run = top(run, reach_of(settings))
    systems = run["model"].unique().sort().to_list()
    if len(systems) == 1:
        notes.append("the pool has only one system: answers that only other systems list stay unjudged.")
    candidates = pool(run, settings["depth"])
    truth = _truth(graph, settings, candidates, notes)
    marked = candidates.with_columns(rule=pl.lit(None, pl.String))
    cost: dict[str, Any] = {}
    if settings["rules"]:
        marked = _marked(graph, candidates, truth, splits, settings)
        cost = _cost(graph, candidates, splits, settings)
    judged = graded(marked, truth, closed_world=settings["closed_world"])
    wrong = judged.filter((pl.col("relevance") > 0) & pl.col("rule").is_not_null())
    if len(wrong):
        notes.append(f"the rules call {len(wrong):,} relevant answers trivial; the truth decides.")
    qrels = judged.select("query", "side", "entity", "relation", "answer", "relevance")
    if truth is not None and not settings["closed_world"]:
        qrels = merged(qrels, truth)
        if more := len(qrels) - len(judged):
            notes.append(f"{more:,} answers that the truth judges are in no list; their judgements are kept.")
    counted = dict(rule_counts(marked).drop_nulls("rule").rows())
    said = {
        "systems": systems,
        "filter": list(splits),
        "sizes": pool_sizes(candidates, judged).to_dicts(),
        "rules": {name: counted[name] for name in settings["rules"]},
        "rule_cost": cost,
        "notes": notes,
    }
    categories = _categories(graph, run) if settings["draw"] else None
    return _Made(run, judged, qrels, graph.relations, categories, said)


def _categories(graph: KnowledgeGraph, run: pl.DataFrame) -> dict[str, str] | None:
    """Category of each relation of the run by the training facts; None without training facts."""
    if "train" not in fact_splits(graph):
        return None
    return dict(with_categories(run.select("relation").unique().sort("relation"), graph).rows())


@contextmanager
def _warned() -> Iterator[list[str]]:
    """Warnings raised inside the context, as a list of notes that is filled on leaving it."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield notes
    notes += [str(warning.message) for warning in caught]


def _graph(graph: KnowledgeGraph | None, kg: Graph, *, of_topics: bool) -> KnowledgeGraph:
    """The graph; for topics, a graph without facts."""
    if graph is None:
        if not of_topics:
            raise ArgumentError("kg", "must be given to make a pool of head|relation|? or ?|relation|tail.")
        return _NONE
    if of_topics:
        shown = "a graph" if isinstance(kg, KnowledgeGraph) else kg
        raise ArgumentError("kg", f"must be left out if queries are topics, got {shown}.")
    return graph


def _filter_splits(graph: KnowledgeGraph, named: str | None, truth: str | pl.DataFrame | None) -> list[str]:
    """Splits whose answers are removed from the lists."""
    facts = fact_splits(graph)
    truth = None if isinstance(truth, pl.DataFrame) else truth
    if named is None:
        return [name for name in _FILTER if name in facts and name != truth]
    if named == "none":
        return []
    if not facts:
        raise ArgumentError("filter", f"must be none without a graph, got {named!r}.")
    splits = [name.strip() for name in named.split(",")]
    for name in splits:
        if name not in facts:
            raise ArgumentError("filter", f"must be among {', '.join(facts)}, or none, got {name!r}.")
        if name == truth:
            raise ArgumentError("filter", f"must not name the split of --truth, got {name!r}.")
    return splits


def _judgements(graph: KnowledgeGraph, truth: str | pl.DataFrame) -> pl.DataFrame:
    """Judgements that `--truth` names."""
    if isinstance(truth, pl.DataFrame):
        return judgements_checked("truth", truth)
    if truth in fact_splits(graph):
        return qrels_from_graph(graph, truth)
    if Path(truth).is_file():
        return read_judgements(truth, topics="allowed")
    names = ", ".join(fact_splits(graph))
    split = f"a split ({names}) or " if names else ""
    raise ArgumentError("truth", f"must be {split}a file of qrels, got {truth!r}.")


def _covered(run: pl.DataFrame, graph: KnowledgeGraph, truth: str, notes: list[str]) -> pl.DataFrame:
    """The run restricted to queries that the truth judges."""
    kept = run.join(_judgements(graph, truth), on="query", how="semi", maintain_order="left")
    if kept.is_empty():
        raise ArgumentError("truth", f"must judge some query of the runs, got {truth!r}, which judges none.")
    if gone := run["query"].n_unique() - kept["query"].n_unique():
        notes.append(f"{gone:,} queries are left out because the truth does not judge them.")
    return kept


def _truth(
    graph: KnowledgeGraph, settings: dict[str, Any], candidates: pl.DataFrame, notes: list[str]
) -> pl.DataFrame | None:
    """Judgements of the truth for the queries of the pool."""
    if settings["truth"] is None:
        return None
    judged, other = judged_for(_judgements(graph, settings["truth"]), candidates, intersect=True)
    asked = candidates["query"].unique()
    lacking = asked.filter(~asked.is_in(judged["query"].implode())).sort()
    if len(lacking) and settings["closed_world"]:
        raise ArgumentError(
            "truth",
            "must judge every query of the pool if it replaces annotators: "
            f"{len(lacking):,} of {len(asked):,} are not in {settings['truth']}, such as {lacking[0]!r}, and "
            "all their answers would count as wrong; --judged-queries-only pools only the queries that it "
            "judges.",
        )
    if other:
        notes.append(f"{other:,} queries that the truth answers are not in the runs.")
    return judged


def _marked(
    graph: KnowledgeGraph,
    candidates: pl.DataFrame,
    truth: pl.DataFrame | None,
    splits: list[str],
    settings: dict[str, Any],
) -> pl.DataFrame:
    """The candidates with the rules that mark them.

    The rules also know the truth, as an annotator would, unless the truth replaces the annotator.
    """
    known = splits
    if truth is not None and not settings["closed_world"]:
        facts = triples_of(truth.filter(pl.col("relevance") > 0), graph)
        graph, known = graph._replace(splits=graph.splits | {_TRUTH: facts}), [*splits, _TRUTH]
    options = {"rules": settings["rules"], "min_share": settings["min_share"]}
    return trivial(candidates, graph, known=known, **options)


def _cost(
    graph: KnowledgeGraph, candidates: pl.DataFrame, splits: list[str], settings: dict[str, Any]
) -> dict[str, Any]:
    """Cost of the rules, with facts left out from the splits of --filter except train, or else from train."""
    held = [name for name in splits if name != "train" and len(graph.splits[name])]
    found = rule_cost(
        graph,
        rules=settings["rules"],
        held=held,
        asked=candidates,
        min_share=settings["min_share"],
        seed=settings["seed"],
    )
    return {"left_out": ", ".join(held) or "twentieths of train", "rows": found.to_dicts()}


def _unasked(left: pl.DataFrame, asked: pl.DataFrame) -> list[str]:
    """Note on the candidates that a budget leaves unjudged."""
    if len(asked) == len(left):
        return []
    unasked = left.join(asked, on=_PAIR, how="anti")
    first = int(unasked["depth"].min())  # pyright: ignore[reportArgumentType]
    part = asked.filter(pl.col("depth") >= first)["query"].n_unique()
    of = left.filter(depth=first)["query"].n_unique()
    whole = f"depths up to {first - 1} as a whole, " if first > 1 else ""
    return [
        f"the budget leaves {len(unasked):,} of {len(left):,} candidates unjudged: the sheet has {whole}"
        f"depth {first} of {part:,} of {of:,} queries, and nothing deeper."
    ]


def _unworded(asked: pl.DataFrame, templates: Templates) -> list[str]:
    """Note on the relations in a sheet without a template for a side that is asked for."""
    both = asked.select("relation", "side").unique()
    lacking = {relation for relation, side in both.rows() if (relation, side) not in templates}
    if not lacking:
        return []
    of = both["relation"].n_unique()
    return [f"{len(lacking):,} of {of:,} relations in the sheet have no template and keep the default words."]


def graded(marked: pl.DataFrame, truth: pl.DataFrame | None, *, closed_world: bool) -> pl.DataFrame:
    """The candidates with their relevance (by the truth, else 0 by rule, else not judged) and its source."""
    ruled = pl.col("rule").is_not_null()
    by_rule = pl.when(ruled).then(0).otherwise(POOLED).cast(pl.Int64)
    if truth is None:
        return marked.with_columns(relevance=by_rule, judged_by=pl.when(ruled).then(pl.lit("rule")))
    if closed_world:
        judged = judged_pool(marked, truth).select(*_PAIR, "relevance")
    else:
        judged = truth.filter(pl.col("relevance") != POOLED).select(*_PAIR, "relevance")
    found = marked.join(judged, on=_PAIR, how="left", maintain_order="left")
    source = pl.when(pl.col("relevance").is_not_null()).then(pl.lit(_TRUTH)).when(ruled).then(pl.lit("rule"))
    return found.with_columns(relevance=pl.coalesce("relevance", by_rule), judged_by=source)
