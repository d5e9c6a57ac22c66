"""`owkg estimate`: metrics of the completely judged pool, from judgements drawn by its design."""

from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.inputs import noted_line
from owkg.cli.options import Format, OutputFormat, split_list
from owkg.cli.output import Table, interval, number, show
from owkg.errors import naming


def estimate(
    runs: list[Path] | None = None,
    *,
    pool_: Annotated[Path, typer.Option("--pool")],
    judged: list[Path] | None = None,
    metric: str | None = None,
    compare: bool = True,
    proxy: list[Path] | None = None,
    errors: str | None = None,
    exact: bool = False,
    looks: str | None = None,
    other_queries: bool = False,
    ci: float = 0.95,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Metrics of systems as if the whole pool were judged, from a few judgements drawn by owkg pool --draw.

    Each value has an interval that holds the value of the completely judged pool in 95 of 100 draws. Pairs of
    systems have the interval of their difference. What the design cannot answer is refused, with the design
    that can.

    The values are of the pool: answers that no system lists to its depth count only where the test set knows
    them.

    Args:
        runs (RUN...): The pooled runs, to check that they are unchanged; by default the pool's own copy is
            used.
        pool_ (POOL): Folder that owkg pool --draw wrote.
        judged (FILE): A filled-in sheet or judgements as qrels; repeat it for several. Blank labels are not
            judged yet. Default: the sheets in the folder of the pool.
        metric: Metrics, separated by commas: rr, success@10, p@10, rbp, ap, ndcg, and mrr, hits@10,
            macro-mrr, macro-hits@10 over answers with filtered ranks. Default: those that the design answers.
        compare: Estimate the differences of all pairs of systems.
        proxy (FILE): Probabilities that candidates are true, from a language model or a rule: a table with
            the columns query, answer, probability. Repeat it for several. Good ones make intervals narrower;
            coverage does not depend on them.
        errors (RATES): How often annotators err, as fp=0.05,fn=0.1: the shares of wrong candidates judged
            relevant and of true ones judged not relevant. Labels are corrected, and intervals are wider.
        exact: Give limits that are exact for any number of queries, and wider. Default for fewer than 20
            queries.
        looks (N,...): Numbers of judged units after which you look, all planned before the first look, such
            as 50,100,200; intervals then hold at all looks together. Default: one look.
        other_queries: Mean queries like these, rather than exactly the queries of the runs; intervals are
            wider.
        ci: Level of the confidence intervals.

    Examples:
        owkg estimate --pool pool --judged sheet.tsv --metric rr,ap,p@10
        owkg estimate --pool pool --judged judged.qrels --proxy llm.tsv --format json
    """
    from owkg.pools.drawn import require_same_runs
    from owkg.pools.estimating import estimate as estimated

    if runs:
        require_same_runs(pool_, runs)
    names = split_list(metric or "")
    found = estimated(
        pool_,
        judged or None,
        names or None,
        compare=compare,
        proxies={path.name: path for path in proxy or []},
        errors=_rates(errors),
        exact=exact,
        looks=_numbers(looks),
        ci=ci,
        of_these=not other_queries,
    )
    percent = f"{100 * ci:g}%"
    metrics = [
        [
            row["metric"],
            row["model"],
            interval(row["value"], row["ci_low"], row["ci_high"]),
            row["method"],
            f"{row['r']:.2f}",
            f"{row['least']:.3f} to {row['most']:.3f}",
        ]
        for row in found.metrics.to_dicts()
    ]
    heads = ["metric", "model", f"value [{percent} interval]", "method", "r", "possible"]
    pairs = [
        [
            row["metric"],
            f"{row['first']} - {row['second']}",
            interval(row["value"], row["ci_low"], row["ci_high"]),
            "" if row["p_value"] is None else f"{row['p_value']:.2g}",
        ]
        for row in found.differences.to_dicts()
    ]
    tables = [Table(f"of {found.target}", heads, metrics, 2)] if metrics else []
    if pairs:
        tables.append(Table("differences", ["metric", "pair", f"value [{percent} interval]", "p"], pairs, 2))
    lines = [found.design]
    if (share := found.missing) is not None:
        value = "at most" if share.value is None else interval(share.value, share.low, share.high)
        lines.append(f"missing answers among the true ones: {value} ({share.scope})")
    show(form, _payload(found, _numbers(looks)), tables, lines)
    for text in found.notes if form is Format.TABLE else ():
        noted_line(text)


def _rates(text: str | None) -> Any:
    """The error rates of fp=0.05,fn=0.1."""
    if text is None:
        return None
    from owkg.estimation import ErrorRates

    pairs = [one.partition("=") for one in split_list(text)]
    try:
        given = {name.strip(): float(value) for name, _, value in pairs}
    except ValueError:
        given = {}
    if not given or set(given) - {"fp", "fn"} or len(given) < len(pairs):
        raise ValueError(f"`errors` must be rates such as fp=0.05,fn=0.1, got {text!r}.")
    with naming({"fp": "`errors`: fp", "fn": "`errors`: fn"}):
        return ErrorRates(given.get("fp", 0.0), given.get("fn", 0.0))


def _numbers(text: str | None) -> list[int] | None:
    """Whole numbers between commas."""
    if text is None:
        return None
    if not all(one.isdecimal() for one in split_list(text)):
        raise ValueError(f"`looks` must be whole numbers such as 50,100,200, got {text!r}.")
    return [int(one) for one in split_list(text)]


def _payload(found: Any, looks: list[int] | None) -> dict[str, Any]:
    share = found.missing
    missing = None
    if share is not None:
        missing = {"value": number(share.value), "low": number(share.low), "high": number(share.high)}
        missing |= {"scope": share.scope, "by_category": None}
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
        "looks": looks,
        "judged": found.judged,
        "unjudged": found.unjudged,
        "notes": found.notes,
    }
