"""`owkg audit`: which comparisons of systems hold although many true answers are missing."""

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from owkg.cli.inputs import check_figure, check_readable, check_writable, graph_of, noted
from owkg.cli.options import (
    Format,
    GraphOfSystems,
    GraphOptions,
    Names,
    OutputFormat,
    Seed,
    TableOptions,
    TestName,
    named_files,
    names_given,
    split_list,
)
from owkg.cli.output import show, write_csv, written_together, wrote
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress
from owkg.terminal.tables import heading, line, p_value, printed, probability_range

if TYPE_CHECKING:
    from owkg.auditing import Audit

# Largest number of pairs in the table; if there are more, only neighbours in the ranking are shown.
_PAIRS = 15
# Sparsities in the table, if none is stated.
_SPARSITIES = (0.1, 0.2, 0.4)
# Draws of the randomisation test.
_DRAWS = 10_000


def audit(
    files: list[Path],
    *,
    metric: list[str] | None = None,
    sparsity: str | None = None,
    correlation: str | None = None,
    kg: GraphOfSystems = None,
    lists: list[Path] | None = None,
    qrels: str | None = None,
    name: Names = None,
    average: str = "answers",
    ties: str | None = None,
    unevenness: str | None = None,
    how: GraphOptions,
    judged: list[Path] | None = None,
    design: list[str] | None = None,
    sample: Annotated[Path | None, typer.Option("--judged-sample")] = None,
    test: TestName = "randomisation",
    tables: TableOptions,
    ci: float = 0.95,
    seed: Seed = 0,
    out: Path | None = None,
    figure: Path | None = None,
    report: list[Path] | None = None,
    title: str = "",
    form: OutputFormat = Format.TABLE,
) -> None:
    """Audit whether one system may be called better than another although many true answers are missing.

    For each pair of systems, owkg reports how many missing answers are needed to reverse the ranking
    (fewer cannot do it, whichever they are; with --lists, owkg also finds an example that does). It reports
    how likely the order is right under the model of Yang et al. (2022) for the sparsities and correlations
    that you state, which of them break the order, and a verdict that names its assumptions. Without
    --sparsity and without judgements that give an upper bound, owkg assumes no sparsity. It then prints what
    some sparsities would imply, and below which sparsity each order is sure.

    Args:
        files (FILE...): Rank tables (.parquet, .csv, .tsv, folders of Parquet files; a column model tells
            systems apart) or TREC runs.
        metric (METRIC,...): Metrics such as mrr, hits@10, p-mrr@1/2. Several with commas, or repeat the
            option. Default: mrr, hits@10.
        sparsity (LOW,HIGH): Share of the true answers to the test queries that the test set lacks: one number
            or a range. Default: estimated from --judged if its design allows that, otherwise not assumed.
        correlation (LOW,HIGH): Correlation between missing from the test and retrieved by the model: one
            number or a range. Default: estimated from --judged with --lists if the design allows that,
            otherwise 0 (independent), which the verdicts then name.
        lists (RUN): Run of the best candidates of one system, as owkg rank --lists and owkg ranks convert
            --lists write it. Repeat the option for each system. A list belongs to the system that it names
            (by tag, or by file if tags are the same), or if no list names one, to the system at its position.
            With lists and --kg, owkg names answers that would reverse the ranking. TREC runs that list every
            candidate, without --kg, are their own lists.
        qrels (QRELS): Judgements that say which answers are relevant, for TREC runs: a file or a split.
        average (NAME,...): Average over answers (micro), over queries (query-averaged: the mean over the
            answers of a query, then over queries; not macro-mrr), or both with a comma.
        unevenness (LOW,HIGH): How much the missing rates of queries differ, as the standard deviation of the
            logits of the rates: one number or a range. 0: every answer is equally likely to be missing.
            Default: estimated from --judged if its design allows that, otherwise 0 to 1.5.
        ties (RULE): How tied answers are ranked: optimistic, realistic, pessimistic or exact. Default:
            realistic.

    Judgements:
        judged (QRELS|SHEET|POOL): Judgements of further answers: qrels, the filled-in sheet that --out wrote,
            or the folder of a pool. Repeat the option for several. They give a lower bound of the sparsity;
            judged completely on a random sample of queries also its range, and with --lists the correlations.
            Needs --kg.
        design (DESIGN): How the judged candidates were chosen: complete (a random sample of queries, all
            candidates judged), sampled-pool, sampled-budget (pooled on a random sample of queries), pool,
            budget, sheet or unknown. One for all --judged, or one for each. Default: as owkg pool or owkg
            audit recorded it; otherwise sheet for a sheet, unknown for other files. Only complete gives more
            than a lower bound.
        sample (QRELS): Test answers that were drawn at random so that their queries are judged. Default: all
            judged queries have the same weight.

    Tests and intervals:
        test: Paired two-sided test of the observed difference, over queries.
        ci (LEVEL): Level of all intervals, in (0, 1). An order whose probability reaches this level is called
            sure; tests use the level 1 - LEVEL.

    Output:
        out (DIR): Folder for all tables as CSV and for a sheet of the answers to judge first, in addition to
            the printed tables.
        figure (FILE): Draw the leaderboard, the sparsity that breaks the order of the two best systems, and
            the map of their order: .png, .pdf or .svg.
        report (FILE): Write a report: .html with figures, .md or .tex. Repeat the option for several.
        title (TEXT): Title above the heading of an HTML report, such as the data set. Default: none.

    Examples:
        owkg audit transe.parquet complex.parquet
        owkg audit transe.parquet complex.parquet --kg data/fb15k237 --lists transe.run.gz --lists
            complex.run.gz --out audited
        owkg audit transe.parquet complex.parquet --sparsity 0.2,0.4 --report audit.html
        owkg audit a.run b.run --qrels test.qrels --format json
    """
    from owkg.auditing import audit as audited

    check_readable([*(lists or ()), sample, *(file for file in judged or () if not file.is_dir())])
    systems = named_files(files, name)
    check_figure(figure)
    given = [*map(Path, [qrels] if qrels else []), *(judged or ()), sample]
    check_writable([figure], [*files, *(lists or ()), *given])
    if report:
        from owkg.report import ENDINGS, require_html

        for path in report:
            if path.suffix not in ENDINGS:
                raise ValueError(f"`report` must end in {', '.join(ENDINGS)}, got {path.name!r}.")
        check_writable(report, [*files, *(lists or ()), *given])
        if any(path.suffix == ".html" for path in report):
            require_html()
    if title and not any(path.suffix == ".html" for path in report or ()):
        raise ValueError("`title` needs a --report that ends in .html: other reports have no title.")
    if out is not None:
        from owkg.pools.missing import AUDIT_SHEET

        writable_folder(out)
        if (sheet := out / AUDIT_SHEET).exists():
            raise ValueError(
                f"`out` must be another folder: {sheet} is from an earlier audit and may have been filled in."
            )
        check_writable(out.glob("audit*"), [*files, *(lists or ()), *given])
    names = names_given("metric", metric, ())
    with noted(), progress("Auditing", "metrics") as update:
        found = audited(
            systems,
            **({"metrics": names} if names else {}),
            qrels=qrels,
            graph=graph_of(kg, how),
            lists=lists or None,
            average=split_list(average),
            sparsity=_range("sparsity", sparsity),
            correlation=_range("correlation", correlation),
            unevenness=_range("unevenness", unevenness),
            judged=judged or None,
            design=design or None,
            sample=sample,
            test=test,
            ties=ties,
            ci=ci,
            seed=seed,
            **tables.said(),
            on_progress=update,
        )
    if out is not None:
        _write(found, out)
    if figure is not None:
        from owkg.plots import audit_figure, save_figure

        save_figure(audit_figure(found), figure)
        wrote(figure)
    for path in report or ():
        from owkg.report import write_report

        write_report(found, path, title=title)
        wrote(path)
    if form is Format.JSON:
        show(form, found.payload())
    else:
        _show(found)


def _range(name: str, text: str | None) -> float | list[float] | None:
    """One number, or a list of two."""
    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, 2):
        raise ValueError(f"`{name}` must be a number or LOW,HIGH such as 0.2,0.4, got {text!r}.")
    return values if len(values) == 2 else values[0]


def _write(found: "Audit", out: Path) -> None:
    """Writes all tables, the assumptions, and a sheet with the answers that would reverse rankings."""
    from owkg.pools import write_sheet
    from owkg.pools.design import Design, write_design
    from owkg.pools.missing import AUDIT_SHEET

    named = {f"audit_{name}.csv": table for name, table in found.items() if len(table)}
    with written_together(out) as aside:
        for name, table in named.items():
            write_csv(table, aside / name)
        if len(facts := found.facts.unique(["query", "answer"], maintain_order=True)):
            write_sheet(facts, aside / AUDIT_SHEET, seed=0)
            write_design(aside / AUDIT_SHEET, Design.SHEET, made_by="owkg audit")
        (aside / "audit.json").write_text(json.dumps(found.payload(), indent=2, allow_nan=False) + "\n")
    for earlier in out.glob("audit_*.csv"):  # left by an audit that had more tables
        if earlier.name not in named:
            earlier.unlink()


def _show(found: "Audit") -> None:
    """Prints the values, the pairs with their verdicts, and the assumptions."""
    import polars as pl

    from owkg.auditing.result import metric_name
    from owkg.report import answer, words

    ready = words.prepared(found)
    assumed = found.assumptions
    stated = assumed["sparsity"] is not None
    given = ", if independent" if assumed["correlation"] is None else ""
    keys = ready.models.select("place", "metric", "average").unique(maintain_order=True)
    for place, metric, average in keys.iter_rows():
        models = ready.models.filter(place=place)
        rows = [
            [row["model"], _interval(row["value"], row["ci_low"], row["ci_high"])]
            + [words.range_text(row["full"], row["full_low"], row["full_high"])] * stated
            for row in models.iter_rows(named=True)
        ]
        name = metric_name(metric, average)
        heads = ["model", f"known answers: {metric}", *[f"full test: {metric}{given}"] * stated]
        printed(f"{name}, mean over {average}", heads, rows)
        if not stated:
            grid = ready.grid.filter(pl.col("sparsity").is_in(_SPARSITIES), place=place)
            by_model = grid.partition_by("model", as_dict=True, maintain_order=True)
            cells = [
                [model, *("-" if low is None else f"{low:.3f} to {high:.3f}" for low, high in ends.rows())]
                for (model,), own in by_model.items()
                for ends in [own.select("full_low", "full_high")]
            ]
            title = f"full-test {name} that each sparsity would imply"
            title += ", if missing and retrieved are independent" * bool(given)
            printed(title, ["model", *(f"sparsity {x:g}" for x in _SPARSITIES)], cells)
        _show_pairs(ready, place, name, given)
    if len(found.judged):
        every = found.judged.filter(found.judged["side"].is_null())
        columns = {"sparsity": "sparsity", "test_strength": "known retrieved"}
        columns |= {"missing_strength": "missing retrieved", "correlation": "correlation"}
        if every["sparsity_high"].is_null().all():
            columns = {"sparsity": "sparsity, at least"}
        rows = [
            [row["model"], f"{row['known']:,}", f"{row['found']:,}"]
            + [_interval(row[key], row[f"{key}_low"], row[f"{key}_high"]) for key in columns]
            for row in every.iter_rows(named=True)
        ]
        printed("estimates from the judgements", ["model", "known", "found", *columns.values()], rows)
    if len(found.plans):
        from owkg.report.tables import plans_table

        table = plans_table(found)
        printed("expected widths of intervals if you judge more", table.columns, table.rows)
        depth = assumed["plan"]
        line(
            f"for a pool of depth {depth}; to carry out a row: "
            "owkg pool RUN... --kg KG --depth DEPTH --draw queries:50, then owkg estimate --pool",
            "dim",
        )
        line("")
    place, *name = keys.row(0)
    heading("next steps" if len(keys) == 1 else f"next steps by {metric_name(*name)}")
    for text in answer.steps(ready, place):
        line(f"  - {text.replace('`', '')}")
    line("")
    heading("these verdicts assume")
    for name, text in words.assumed(assumed):
        line(f"  {name.lower()}: {text}", "dim")
    for text in assumed["notes"]:
        line(f"  {text}", "dim")


def _show_pairs(ready: "Audit", place: int, name: str, given: str) -> None:
    """Prints the pairs by one metric of a prepared audit, then their verdicts with the reasons."""
    from owkg.report import answer, words

    pairs = every = ready.pairs.filter(place=place)
    if len(pairs) > _PAIRS:
        next_to = set(pairwise(ready.models.filter(place=place)["model"]))
        pairs = pairs.filter([pair in next_to for pair in zip(pairs["first"], pairs["second"], strict=True)])
    stated, level = ready.assumptions["sparsity"] is not None, ready.assumptions["level"]
    draws = _DRAWS if ready.assumptions["test"] == "randomisation" else None
    called = [
        f"{row['first']} {'=' if row['difference'] == 0 else '>'} {row['second']}" for row in pairs.to_dicts()
    ]
    rows = [
        [pair, f"{row['difference']:+.4f}", p_value(row["p_value"], draws)]
        + [_probabilities(row)] * stated
        + [_point(row["breakdown_sparsity"]), words.reversing(row)]
        for pair, row in zip(called, pairs.to_dicts(), strict=True)
    ]
    heads = ["pair", "difference", "p", *[f"P(better){given.replace(' ', chr(10), 1)}"] * stated]
    heads += ["sure below\nsparsity", "missing\nto reverse"]
    printed(f"is the first model better than the second? ({name})", heads, rows)
    heading("verdicts")
    for pair, row in zip(called, pairs.to_dicts(), strict=True):
        line(f"  {pair}: {words.verdict(row)}. {answer.reason(row, level, independent=bool(given))}")
    if len(pairs) < len(every):
        line("(only neighbours in the ranking; --out and --format json contain all pairs)", "dim")
    line("")


def _probabilities(row: dict[str, Any]) -> str:
    low, high = row["probability_low"], row["probability_high"]
    return "impossible" if low is None else probability_range(low, high)


def _point(value: float | None) -> str:
    return "all possible" if value is None else f"{value:.3f}"


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "impossible"
    if low is None:
        return f"{value:.4f}"
    return f"{value:.4f} [{low:.4f}, {'...)' if high is None else f'{high:.4f}]'}"
