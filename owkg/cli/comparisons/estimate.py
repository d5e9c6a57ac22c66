"""`owkg estimate`: metrics of the completely judged pool, from judgements of a random sample of it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.inputs import check_figure, check_writable, noted, noted_line
from owkg.cli.options import Format, GraphOptions, OutputFormat, split_list
from owkg.cli.output import Table, interval, number, show, wrote
from owkg.errors import naming
from owkg.terminal.tables import p_value


class Gaps(StrEnum):
    REFUSE = "refuse"
    BOUNDS = "bounds"


def estimate(
    runs: list[Path] | None = None,
    *,
    pool_: Annotated[Path, typer.Option("--pool")],
    judged: list[Path] | None = None,
    metric: str | None = None,
    compare: bool = True,
    proxy: list[Path] | None = None,
    errors: str | None = None,
    expert: list[Path] | None = None,
    exact: bool = False,
    gaps: Gaps = Gaps.REFUSE,
    looks: str | None = None,
    other_queries: bool = False,
    ci: float = 0.95,
    kg: Path | None = None,
    how: GraphOptions,
    figure: Path | None = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Estimate metrics as if the whole pool were judged, from a few judgements drawn by owkg pool --draw.

    Each value has an interval that contains the value of the completely judged pool in 95 of 100 draws, and
    each pair of systems has an interval of the difference. If the design cannot answer a metric, owkg stops
    with an error that names a design that can.

    The values are about the pool: an answer that no system lists within its depth counts only if the test set
    contains it.

    Args:
        runs (RUN...): The pooled runs, to check that they are unchanged. Default: the pool's own copy is
            used. Other runs get bounds only, from the judged and the open candidates, and only if whole
            queries are drawn.
        pool_ (POOL): Folder that owkg pool --draw wrote.
        judged (FILE): Filled-in sheet, or judgements as qrels. Repeat the option for several. Blank labels
            are not judged yet. Default: the sheets in the folder of the pool.
        metric (METRIC,...): Metrics, with commas: rr, success@10, p@10, rbp, ap, ndcg; and mrr, hits@10,
            macro-mrr, macro-hits@10 over answers with filtered ranks. Default: those that the design answers.
        compare: Estimate the differences of all pairs of systems.
        gaps (refuse|bounds): Treatment of drawn units that were skipped: stop with an error (refuse), or
            print limits that hold whatever the open labels are (bounds).
        kg (DIR): Folder of the graph, so that known answers are removed from runs that were not pooled.

    Mistakes of annotators:
        errors (RATES|FILE): How often annotators make mistakes, as fp=0.05,fn=0.1: the shares of wrong
            candidates judged relevant and of true ones judged not relevant; or a table of gold items to count
            them on, with the columns query, answer, label, truth; or both, as gold.tsv,fp=0.05, if all gold
            items are true. Labels are corrected, and intervals become wider. Default: labels are taken as
            correct.
        expert (FILE): Judgements by an expert of the first queries of the draw, at least 20, as a sheet or
            qrels. Repeat the option for several. Values then refer to the expert's labels, whatever mistakes
            the annotators make, for all metrics of drawn queries.

    Tests and intervals:
        ci (LEVEL): Level of the confidence intervals, in (0, 1).
        proxy (FILE): Probabilities that candidates are true, from a language model or a rule: a table with
            the columns query, answer, probability. Repeat the option for several. Good probabilities make
            intervals narrower; coverage does not depend on them.
        exact: Print limits that are exact for any number of queries, and wider. Default: only for fewer than
            20 queries.
        looks (N,...): Numbers of judged units after which you look at the results, planned before the first
            look, such as 50,100,200. Intervals then hold at all looks together. The pool records looks and
            plan. Default: as planned before, otherwise one look, and one more after a pilot.
        other_queries: Estimate for queries like these instead of exactly the queries of the runs; intervals
            become wider.

    Output:
        figure (FILE): Draw the values and the differences with their intervals: .png, .pdf or .svg.

    Examples:
        owkg estimate --pool pool --judged sheet.tsv --metric rr,ap,p@10
        owkg estimate --pool pool --judged judged.qrels --proxy llm.tsv --format json
        owkg estimate --pool pool --judged crowd.tsv --expert expert.tsv --metric ap,ndcg
    """
    from owkg.pools.estimating import estimate as estimated
    from owkg.pools.further import unpooled_runs

    check_figure(figure)
    check_writable([figure], [*(runs or ()), *(judged or ()), *(proxy or ()), *(expert or ())])
    others = unpooled_runs(pool_, runs or [])
    if kg is not None and not others:
        raise ValueError("`kg` has no effect without runs that were not pooled.")
    how.require(kg)
    names = split_list(metric or "")
    with noted():
        rates = _rates(errors)
    with naming({"others": "RUN"}), noted():
        found = estimated(
            pool_,
            judged or None,
            names or None,
            compare=compare,
            proxies=_named(proxy or []),
            errors=rates,
            expert=expert or None,
            exact=exact,
            gaps=gaps.value,
            looks=_numbers(looks),
            others=others or None,
            kg=kg,
            reading=how.reading() if others else None,
            ci=ci,
            of_these=not other_queries,
        )
    if figure is not None:
        _figure(found, figure)
    percent = f"{100 * ci:g}%"
    metrics = [
        [
            row["metric"],
            row["model"],
            _interval(row["value"], row["ci_low"], row["ci_high"]),
            row["method"],
            "" if row["r"] is None else f"{row['r']:.2f}",
        ]
        for row in found.metrics.to_dicts()
    ]
    heads = ["metric", "model", f"value [{percent} interval]", "method", "r"]
    pairs = [
        [
            row["metric"],
            f"{row['first']} - {row['second']}",
            _interval(row["value"], row["ci_low"], row["ci_high"]),
            "" if row["p_value"] is None else p_value(row["p_value"]),
        ]
        for row in found.differences.to_dicts()
    ]
    tables = [Table(f"estimates for {found.target}", heads, metrics, 2)] if metrics else []
    if pairs:
        tables.append(Table("differences", ["metric", "pair", f"value [{percent} interval]", "p"], pairs, 2))
    lines = [found.design]
    if (share := found.missing) is not None:
        value = _interval(share.value, share.low, share.high)
        lines.append(f"share of true answers that are missing: {value} ({share.scope})")
        tables += _categories(share.by_category, percent)
    show(form, _payload(found), tables, lines)
    for text in found.notes if form is Format.TABLE else ():
        noted_line(text)


def _figure(found: Any, path: Path) -> None:
    """Draws the estimates, or prints a note if the design gives none."""
    if found.metrics.is_empty() and not found.differences["ci_low"].count():
        noted_line(f"{path} is not drawn, because this design estimates no metric.")
        return
    from owkg.plots import save_figure

    save_figure(found.plot(), path)
    wrote(path)


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    """Value with its interval; only the interval if there is no value, and nothing without an interval."""
    if low is None or high is None:
        return ""
    return f"[{low:.4f}, {high:.4f}]" if value is None else interval(value, low, high)


def _categories(frame: Any, percent: str) -> list[Table]:
    """Table of missing answers by relation category, if enough answers of a category are judged."""
    if frame is None or not frame["low"].count() or len(frame) == 1:
        return []
    rows = [
        [
            row["category"],
            _interval(row["value"], row["low"], row["high"]),
            f"{row['known']:,}",
            f"{row['judged']:,}",
        ]
        for row in frame.to_dicts()
    ]
    heads = ["category", f"share [{percent} interval]", "known", "judged"]
    return [Table("missing answers by relation category", heads, rows)]


def _named(paths: list[Path]) -> dict[str, Path]:
    """Files of --proxy by name."""
    names = [path.name for path in paths]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"`proxy` must name files with different names, got {twice[0]} twice.")
    return dict(zip(names, paths, strict=True))


def _rates(text: str | None) -> Any:
    """Error rates that --errors gives as fp=0.05,fn=0.1, as a file of gold items, or as both."""
    if text is None:
        return None
    from owkg.estimation import ErrorRates
    from owkg.pools.gold import gold_rates

    words = split_list(text)
    files = [one for one in words if "=" not in one]
    pairs = [one.partition("=") for one in words if "=" in one]
    try:
        given = {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        given = {"": 0.0}
    wrong = set(given) - {"fp", "fn"} or len(given) < len(pairs) or len(files) > 1
    if wrong or not (given or files):
        raise ValueError(
            f"`errors` must be rates such as fp=0.05,fn=0.1, or a file of gold items, got {text!r}."
        )
    with naming({"fp": "`errors`: fp", "fn": "`errors`: fn"}):
        if files:
            return gold_rates(Path(files[0]), **given)
        return ErrorRates(given.get("fp", 0.0), given.get("fn", 0.0))


def _numbers(text: str | None) -> list[int] | None:
    """Whole numbers in a list with commas."""
    if text is None:
        return None
    if not all(one.isdecimal() for one in split_list(text)):
        raise ValueError(f"`looks` must be whole numbers such as 50,100,200, got {text!r}.")
    return [int(one) for one in split_list(text)]


def _payload(found: Any) -> dict[str, Any]:
    share = found.missing
    missing = None
    if share is not None:
        value = None if share.value is None else number(share.value)
        missing = {"value": value, "low": number(share.low), "high": number(share.high)}
        by = None if share.by_category is None else share.by_category.to_dicts()
        missing |= {"scope": share.scope, "by_category": by}
    metrics = [
        {name: value for name, value in row.items() if name not in ("least", "most")}
        | {"bounds": [row["least"], row["most"]]}
        for row in found.metrics.to_dicts()
    ]
    return {
        "target": found.target,
        "design": found.design,
        "metrics": metrics,
        "differences": found.differences.to_dicts(),
        "missing_share": missing,
        "looks": {"planned": found.looks.planned, "made": found.looks.made},
        "judged": found.judged,
        "unjudged": found.unjudged,
        "notes": found.notes,
    }
