"""`owkg compare`: systems side by side, which of them differ, and what other labels make of their order."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.progress import progress
from owkg.cli.script import Seed
from owkg.cli.systems import (
    Files,
    Graph,
    Intersect,
    LabelSet,
    Metrics,
    Ties,
    label_sets,
    summaries,
    tie_rule,
)

_DIVISIONS = ("side", "relation", "category")


class TestName(StrEnum):
    RANDOMISATION = "randomisation"
    T = "t"
    WILCOXON = "wilcoxon"


class CompareFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"


class Correction(StrEnum):
    HOLM = "holm"
    BH = "bh"
    NONE = "none"


def compare(
    files: Files,
    qrels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QRELS",
            help="TREC judgements, or a split of --kg: which answers count. Repeat it to hold others "
            "against the first.",
        ),
    ] = None,
    kg: Graph = None,
    metric: Metrics = None,
    by: Annotated[
        str, typer.Option(help="Also rank the systems by side, relation, category; several with commas.")
    ] = "",
    test: Annotated[
        TestName, typer.Option(help="Paired, two-sided, over questions.")
    ] = TestName.RANDOMISATION,
    correction: Annotated[
        Correction, typer.Option(help="Of the p-values of all pairs by one metric.")
    ] = Correction.HOLM,
    ci: Annotated[float, typer.Option(help="Level of all intervals; 1 - level is that of tests.")] = 0.95,
    draws: Annotated[int, typer.Option(min=1, help="Of the randomisation test.")] = 10_000,
    replicates: Annotated[int, typer.Option(min=2, help="Of the bootstrap of tau.")] = 1000,
    ties: Ties = None,
    intersect: Intersect = False,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write tables as CSV, and figures.")
    ] = None,
    form: Annotated[
        CompareFormat, typer.Option("--format", help="For people, programs, spreadsheets, papers.")
    ] = CompareFormat.TABLE,
) -> None:
    """Which systems differ and by how much, what they read, and how far labels agree on their order.

    A replication interval of tau says where it falls when as many questions are drawn again; where the tau
    of endless questions is, says the confidence interval beside it. Whole questions are the sampling unit
    throughout. Of rank tables, judgements may leave out answers that are ranked: nothing is scored again.
    """
    from owkg import checks
    from owkg.cli import compare_output as output
    from owkg.files import writable_folder

    checks.level("ci", ci)
    divisions = [name.strip() for name in by.split(",") if name.strip()]
    for name in divisions:
        if name not in _DIVISIONS:
            raise ValueError(f"`by` must be of {', '.join(_DIVISIONS)}, got {name!r}.")
    chosen = summaries(metric)
    if out is not None:
        writable_folder(out)
    sets = label_sets(files, qrels, kg, intersect=intersect)
    if len(sets[0].tables) < 2:
        raise ValueError("FILE must name two systems at least: a single one has nothing to be compared with.")
    rule = tie_rule(ties, sets)
    found = _compared(sets, chosen, divisions, test, correction, ci, draws, replicates, rule, seed)
    if out is not None:
        output.write(found, out)
    if form is CompareFormat.JSON:
        rows = {name: output.rows_of(table) for name, table in found.items()}
        print(json.dumps(rows, indent=2, allow_nan=False))
    elif form is CompareFormat.CSV:
        print(output.tidy(found).write_csv(), end="")
    elif form is CompareFormat.LATEX:
        output.print_latex(found, ci, test.value)
    else:
        output.show(found, ci, correction.value, test.value)


def _compared(
    sets: list[LabelSet],
    chosen: list[Any],
    divisions: list[str],
    test: TestName,
    correction: Correction,
    ci: float,
    draws: int,
    replicates: int,
    ties: str,
    seed: int,
) -> dict[str, Any]:
    """Tables values, pairs, metrics, agreement and parts."""
    import jax
    import polars as pl

    from owkg.judge.agreement import agreement
    from owkg.judge.scores import scores
    from owkg.keys import reproducible, seeded

    test_key, order_key = reproducible(jax.random.split)(seeded(seed))
    values, pairs, read = [], [], []
    with progress("comparing", "metrics") as update:
        for i, one in enumerate(sets):
            of_set, _ = scores(one.tables, chosen, ties=ties)
            read.append(of_set)
            values.append(_values(one, of_set, chosen, ci, ties))
            for m, name in enumerate(of_set.metrics):
                pairs.append(_pairs(one.name, of_set, name, test, correction, ci, draws, test_key))
                update(i * len(chosen) + m + 1, len(sets) * len(chosen))
    found = {"values": pl.concat(values), "pairs": pl.concat(pairs)}
    found["metrics"] = _by_metric(found["pairs"], round(1 - ci, 12))
    rows = []
    for one, other in zip(sets[1:], read[1:], strict=True):
        agreed = agreement(order_key, read[0], other, replicates=replicates, level=ci)
        rows += _agreement_rows(sets[0].name, one.name, agreed)
    found["agreement"] = pl.DataFrame(rows, schema=_AGREEMENT)
    found["parts"] = _parts(sets, chosen, divisions, ties)
    return found


_AGREEMENT: dict[str, Any] = {
    **dict.fromkeys(("labels", "with", "metric", "coefficient"), str),
    **dict.fromkeys(("value", "lower", "upper", "confidence_lower", "confidence_upper"), float),
    "questions": int,
}


def _values(one: LabelSet, read: Any, chosen: list[Any], ci: float, ties: str) -> Any:
    """What each system reads, with its interval and its place: 1 for the best."""
    import polars as pl

    from owkg.metrics import Ties, evaluate, tasks_of

    rows = []
    for s, system in enumerate(read.systems):
        estimates = evaluate(tasks_of(one.tables[system])[0], chosen, ties=ties, level=ci)
        for m, name in enumerate(read.metrics):
            found = estimates[Ties(ties)][name]
            rows.append(
                {
                    "labels": one.name,
                    "metric": name,
                    "system": system,
                    "value": found.value,
                    "lower": found.ci_low,
                    "upper": found.ci_high,
                    "rank": int(read.places[m, s]),
                }
            )
    return pl.DataFrame(rows)


def _pairs(
    labels: str,
    read: Any,
    metric: str,
    test: TestName,
    correction: Correction,
    ci: float,
    draws: int,
    key: Any,
) -> Any:
    """The differences of all pairs, with interval and p-value."""
    import numpy as np
    import polars as pl

    from owkg.judge.corrections import benjamini_hochberg, holm
    from owkg.judge.power import detectable_difference
    from owkg.judge.significance import difference_intervals, pairwise

    found = pairwise(read, metric, test=test.value, key=key, draws=draws)
    corrected = {Correction.HOLM: holm, Correction.BH: benjamini_hochberg}.get(correction, lambda p: p)(
        found.p
    )
    lower, upper = difference_intervals(read, metric, level=ci)
    systems = found.systems
    varies = found.deviation > 0
    detectable = np.full(len(varies), np.nan)
    if varies.any():
        detectable[varies] = detectable_difference(found.deviation[varies], found.questions)
    return pl.DataFrame(
        {
            "labels": [labels] * len(found.p),
            "metric": [metric] * len(found.p),
            "first": [systems[i] for i in found.first],
            "second": [systems[i] for i in found.second],
            "difference": found.difference,
            "lower": lower,
            "upper": upper,
            "p_value": found.p,
            "p_corrected": corrected,
            "detectable": detectable,
        }
    ).with_columns(pl.col("detectable").fill_nan(None))


def _by_metric(pairs: Any, alpha: float) -> Any:
    """How well each metric tells the systems apart."""
    import polars as pl

    return pairs.group_by("labels", "metric", maintain_order=True).agg(
        pairs=pl.len(),
        significant=(pl.col("p_corrected") < alpha).sum(),
        area=pl.col("p_value").mean(),
        detectable=pl.col("detectable").median(),
    )


def _agreement_rows(first: str, second: str, found: Any) -> list[dict[str, Any]]:
    return [
        {
            "labels": second,
            "with": first,
            "metric": metric,
            "coefficient": coefficient,
            "value": found.value[m, c],
            "lower": found.low[m, c],
            "upper": found.high[m, c],
            "confidence_lower": found.tau_low[m] if coefficient == "tau" else None,
            "confidence_upper": found.tau_high[m] if coefficient == "tau" else None,
            "questions": found.shared,
        }
        for m, metric in enumerate(found.metrics)
        for c, coefficient in enumerate(found.coefficients)
    ]


def _parts(sets: list[LabelSet], chosen: list[Any], divisions: list[str], ties: str) -> Any:
    """Per part of the questions: how many, and tau of the order on it with that on all."""
    import polars as pl
    import polars.selectors as cs

    from owkg.judge.rankings import kendall_tau
    from owkg.judge.scores import scores

    schema = dict.fromkeys(divisions, pl.String) | {"labels": pl.String, "metric": pl.String}
    schema |= {"questions": pl.Int64, "tau_with_all": pl.Float64, "tau_with_first_labels": pl.Float64}
    nothing = [float("nan")] * len(chosen)
    if not divisions:
        return pl.DataFrame(schema=schema)
    for one in sets:
        if lacking := [d for d in divisions for t in one.tables.values() if d not in t.columns]:
            raise ValueError(f"`by` {lacking[0]} needs the graph: give --kg.")
    whole = scores(sets[0].tables, chosen, ties=ties)[0]
    rows = []
    keys = [t.select(divisions).unique() for one in sets for t in one.tables.values()]
    for part in pl.concat(keys).unique().sort(divisions).iter_rows(named=True):
        first = None
        for one in sets:
            tables = {name: table.filter(**part) for name, table in one.tables.items()}
            if any(table.is_empty() for table in tables.values()):
                continue
            own = scores(tables, chosen, ties=ties)[0]
            first = own if one is sets[0] else first
            with_all = kendall_tau(whole.strength, own.strength)
            with_first = nothing if first is None else kendall_tau(first.strength, own.strength)
            for m, metric in enumerate(own.metrics):
                numbers = {"tau_with_all": with_all[m], "tau_with_first_labels": with_first[m]}
                counted = {"labels": one.name, "metric": metric, "questions": len(own.questions)}
                rows.append({k: str(v) for k, v in part.items()} | counted | numbers)
    return pl.DataFrame(rows, schema=schema).with_columns(cs.float().fill_nan(None))
