"""Designs from Python: one function each for `owkg pool --plan`, `--draw` and `--more`."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import naming
from owkg.estimation.estimate import DrawnPool
from owkg.estimation.plan import after_pilot
from owkg.pools.adding import Added
from owkg.pools.adding import add_systems as add_to
from owkg.pools.drawn import draw_more, read_drawn
from owkg.pools.estimating import estimate
from owkg.pools.folder import Plan, drawn_in_memory, planned, write_pool
from owkg.pools.further import Graph, Runs
from owkg.pools.units import DEEPEST, Drawable, settings_of

METRICS = ("rr", "success", "p", "ap", "ndcg", "mrr")
"""Default metrics of a plan."""


def draw(
    runs: Runs,
    graph: Graph | pl.DataFrame,
    what: Drawable | str,
    *,
    depth: int,
    seed: int = 0,
    truth: str | pl.DataFrame | None = None,
    filter: str | None = None,  # noqa: A002
    intersect: bool = False,
    out: StrPath | None = None,
    overwrite: bool = False,
    names: StrPath | None = None,
    templates: StrPath | None = None,
) -> DrawnPool:
    """Pool of some runs with a random sample of it to judge, as `owkg pool --draw` makes it.

    Args:
        runs: paths, a mapping from names to paths or dictionaries, or a frame as `owkg.judge.read_runs`
            returns it.
        graph: the graph or its folder. For topics: judgements known before the draw (a frame or a file of
            qrels), or None.
        what: units to draw: `Queries`, `Prefixes`, `Candidates` or `Below`; or text such as "queries:60".
        depth: number of answers of each list that are pooled.
        seed: seed of the draw; equal seeds give equal draws on any machine. Default 0.
        truth: answers known before the draw: a split, a file of qrels, or a frame of judgements. Default
            None: the test split of the graph.
        filter: splits whose known answers are removed from the lists, separated by commas, or "none". Default
            None: train and valid.
        intersect: whether to leave out queries that some system does not answer. Default False.
        out: folder to write, with the sheet to fill in. Default None: the pool stays in memory.
        overwrite: whether to replace a folder that `owkg pool` wrote. Default False.
        names, templates: files of readable names and of own wording for the sheet, as `owkg pool` takes them.

    Returns:
        The pool, for `owkg.estimate`. Its method `more(40)` draws 40 further units in memory; `draw_further`
        draws them in its folder. `owkg.pools.asked_candidates` returns the candidates to judge.

    Raises:
        ValueError: naming the argument or the file that is wrong.
        OSError: if a file cannot be opened or written.

    Examples:
        >>> from owkg.pools import Queries, asked_candidates
        >>> lists = {f"topic {i}": {"x": 2, "y": 1} for i in range(5)}
        >>> drawn = draw({"a": lists, "b": lists}, None, Queries(2), depth=2, seed=7)
        >>> asked_candidates(drawn).select("query", "answer").rows()
        [('topic 1', 'x'), ('topic 1', 'y'), ('topic 3', 'x'), ('topic 3', 'y')]
        >>> asked_candidates(drawn.more(1), batch=1)["query"].unique().to_list()
        ['topic 4']
    """
    graph, truth = _graph_and_truth(graph, truth)
    settings = _settings(depth, truth, filter, intersect=intersect, seed=seed) | settings_of(what)
    with naming({"kg": "`graph`", "draw": "`what`"}):
        if out is None:
            drawn, notes = drawn_in_memory(runs, graph, settings)
        else:
            folder = checks.path("out", out)
            words = _words(names, templates)
            card = write_pool(runs, graph, folder, settings, **words, overwrite=overwrite)
            (drawn, _), notes = read_drawn(folder), card["notes"]
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return drawn


def plan(
    runs: Runs,
    graph: Graph | pl.DataFrame,
    metrics: str | Sequence[str] | None = None,
    *,
    depth: int,
    widths: Mapping[str, float] | None = None,
    truth: str | pl.DataFrame | None = None,
    filter: str | None = None,  # noqa: A002
    intersect: bool = False,
    ci: float = 0.95,
) -> Plan:
    """Expected widths of intervals by metric, design and size, as `owkg pool --plan` prints them.

    No judgement is needed.

    Args:
        runs, graph, depth, truth, filter, intersect: as in `draw`.
        metrics: names such as rr, p@10, ap, mrr. Default None: the metrics of `widths`, or the usual ones.
        widths: wished widths of the intervals of systems, by name of the metric. Default None: no wishes.
        ci: confidence level of the intervals. Default 0.95.

    Raises:
        ValueError: naming the argument or the file that is wrong.
        OSError: if a file cannot be opened.
    """
    graph, truth = _graph_and_truth(graph, truth)
    settings = _settings(depth, truth, filter, intersect=intersect, seed=0)
    names = [metrics] if isinstance(metrics, str) else list(metrics or widths or METRICS)
    with naming({"kg": "`graph`", "metric": "`metrics`", "width": "`widths`"}):
        return planned(runs, graph, settings, names, widths, ci=ci)


def plan_further(
    pool: StrPath | DrawnPool,
    judged: StrPath | pl.DataFrame | Sequence[StrPath] | None = None,
    metrics: str | Sequence[str] | None = None,
    *,
    widths: Mapping[str, float] | None = None,
    ci: float = 0.95,
) -> pl.DataFrame:
    """Total number of units of a drawn pool to judge, planned from the intervals so far.

    Args:
        pool: folder of the pool, or a pool in memory.
        judged: judgements as in `owkg.estimate`. Default None: the sheets in the folder.
        metrics: names of metrics. Default None: the metrics of `widths`, or those that the design answers.
        widths: wished widths of the intervals of systems, by name of the metric. Default None: report the
            widths for several numbers of units.
        ci: confidence level of the intervals. Default 0.95.

    Returns:
        The table of `owkg.estimation.after_pilot`.

    Raises:
        ValueError: as `owkg.estimate`, and if fewer than 20 units are judged.
        OSError: if a file cannot be opened.
    """
    drawn = pool if isinstance(pool, DrawnPool) else read_drawn(checks.path("pool", pool))[0]
    found = estimate(pool, judged, metrics or (None if widths is None else list(widths)), ci=ci)
    return after_pilot(drawn, found, widths, ci=ci)


def read_pool(pool: StrPath) -> DrawnPool:
    """Pool with its design, from the folder that `draw` or `owkg pool --draw` wrote.

    Raises:
        ValueError: if the folder is not such a pool, or was changed.
        OSError: if a file cannot be opened.
    """
    return read_drawn(checks.path("pool", pool))[0]


def draw_further(
    pool: StrPath, count: int, *, names: StrPath | None = None, templates: StrPath | None = None
) -> Path:
    """Draw further units in the folder of a pool by its design, and return the sheet of their candidates.

    Args:
        pool: folder of the pool.
        count: number of further units.
        names, templates: as in `draw`.

    Raises:
        ValueError: naming the folder, or `more` if nothing is left to draw.
        OSError: if a file cannot be opened or written.
    """
    return draw_more(checks.path("pool", pool), count, **_words(names, templates))[0]


def add_systems(pool: StrPath, runs: Runs, graph: Graph = None) -> Added:
    """Addition of further systems to a drawn pool, as `owkg pool --add` does it.

    Args:
        pool: folder of the pool.
        runs: runs of the further systems, which must answer every query of the pool.
        graph: the graph or its folder, whose known answers are removed from the lists. Default None: queries
            are topics.

    Raises:
        ValueError: naming the folder or the argument that is wrong.
        OSError: if a file cannot be opened or written.
    """
    with naming({"kg": "`graph`", "add": "`runs`"}):
        return add_to(checks.path("pool", pool), runs, graph)


def _graph_and_truth(
    graph: Graph | pl.DataFrame, truth: str | pl.DataFrame | None
) -> tuple[Graph, str | pl.DataFrame | None]:
    """The graph and the truth; for topics, `graph` holds the truth."""
    if isinstance(graph, pl.DataFrame):
        return None, graph
    if isinstance(graph, str | Path) and Path(graph).is_file():
        return None, str(graph)
    return graph, truth


def _words(names: StrPath | None, templates: StrPath | None) -> dict[str, Any]:
    """Files of names and templates for a sheet, as paths."""
    given = {"names": names, "templates": templates}
    return {name: None if one is None else checks.path(name, one) for name, one in given.items()}


def _settings(
    depth: int, truth: str | pl.DataFrame | None, splits: str | None, *, intersect: bool, seed: int
) -> dict[str, Any]:
    """Settings of a pool for which a design is drawn or planned."""
    return {
        "depth": checks.whole("depth", depth, 1),
        "truth": truth,
        "closed_world": False,
        "covered": False,
        "filter": splits,
        "rules": [],
        "min_share": 1,
        "budget": None,
        "intersect": checks.flag("intersect", intersect),
        "sampled": False,
        "sample": True,
        "draw": None,
        "strata": None,
        "for": None,
        "below_depth": DEEPEST,
        "seed": checks.seed("seed", seed),
    }
