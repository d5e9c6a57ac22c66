"""`owkg audit`: what may be concluded from ranks, when many true answers are missing."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from owkg.cli.output import cell, show, write_csv, written_together, wrote
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, printed, probability_range

if TYPE_CHECKING:
    from owkg.auditing import Audit

# Pairs that the table shows; of more, those of neighbours in the order.
_PAIRS = 15


def audit(
    files: list[Path],
    *,
    qrels: str | None = None,
    lists: list[Path] | None = None,
    name: Names = None,
    kg: GraphOfSystems = None,
    how: GraphOptions,
    metric: list[str] | None = None,
    average: str = "answers",
    sparsity: str | None = None,
    correlation: str | None = None,
    unevenness: str | None = None,
    judged: list[Path] | None = None,
    design: list[str] | None = None,
    sample: Path | None = None,
    test: TestName = "randomisation",
    ties: str | None = None,
    tables: TableOptions,
    ci: float = 0.95,
    seed: Seed = 0,
    out: Path | None = None,
    figure: Path | None = None,
    report: list[Path] | None = None,
    form: OutputFormat = Format.TABLE,
) -> None:
    """May one conclude that one system is better than another, when many true answers are missing?

    Of each pair: how many missing answers turn the order, whatever they are (certified: no fewer do;
    demonstrated: these do); how likely the order is right under the model of Yang et al. (2022), over the
    stated sparsities and correlations; which of them break it; and a verdict, which names what it assumes.
    Without --sparsity, and with judgements that show no more than a lower bound, nothing is assumed: results
    are given for sparsities from 0 to .9.

    Args:
        files (FILE...): Rank tables (.parquet, .csv, .tsv, folders of Parquet files; a column model tells
            systems apart) or TREC runs.
        qrels (QRELS): Which answers are relevant, for TREC runs: a file or a split.
        lists (RUN): Run of a system's best candidates, as owkg evaluate --lists and owkg ranks convert
            --lists write it; one of each. It belongs to the system that it names (by tag, or by file where
            tags are the same), or if no list names one, to the system in its place.
            With them, answers that turn an order are named. They need --kg. TREC runs that list every
            candidate, without --kg, are their own lists.
        metric: Such as mrr, hits@10, p-mrr@1/2; several with commas. Absent: mrr, hits@10.
        average: answers (micro), queries (query-averaged: the mean over the answers of a query, then over
            queries; not macro-mrr), or both with a comma.
        sparsity (LOW,HIGH): Share of the true answers to the queries of the test that it lacks: a number, or
            a range.
        correlation (LOW,HIGH): Correlation between missing from the test and retrieved by the system: a
            number, or its range. Default: estimated from --judged with --lists if its design allows that,
            otherwise 0 (independent), which verdicts then name.
        unevenness (LOW,HIGH): How much the missing rates of queries differ: standard deviation of the logits
            of the rates, a number or a range. 0: every answer is equally likely to be missing. Default:
            estimated from --judged if its design allows that, otherwise 0 to 1.5.
        judged (QRELS|SHEET|POOL): Judgements: qrels, the filled-in sheet that --out wrote, or the folder of a
            pool; repeatable. With --lists they are labels that breakdown numbers start from. They give the
            sparsity, at least, where --sparsity is absent; judged completely on a random sample of queries
            also its range, and with --lists the correlations (--design). A pool that owkg pool --draw made
            gives the least sparsity by its design, and with --sparsity and --lists the correlations. They
            need --kg.
        design (DESIGN): How the judged candidates were chosen: complete (a random sample of queries, all
            candidates judged), sampled-pool, sampled-budget (pooled on a random sample of queries), pool,
            budget, sheet or unknown. Default: as owkg pool and owkg audit wrote it; a sheet is a sheet, other
            files are unknown. Only complete gives more than a lower bound. One for all --judged, or one for
            each.
        sample (QRELS): The test answers that were drawn to have their queries judged. Absent: all judged
            queries count alike.
        test: Of the observed difference; paired, two-sided, over queries.
        ties: optimistic, realistic, pessimistic or exact. Absent: realistic.
        ci: Level of all intervals. From this probability on an order is sure; 1 less it is the level of
            significance.
        out (DIR): Also write all tables as CSV, and a sheet of the answers to judge first.
        figure (FILE): Also draw the leaderboard, the sparsity that breaks the order of the two best systems,
            and the map of their order: .png, .pdf, .svg.
        report (FILE): Also write a report: .html with figures, .md or .tex; repeatable.

    Examples:
        owkg audit transe.parquet complex.parquet
        owkg audit transe.parquet complex.parquet --kg data/fb15k237 --lists transe.run.gz --lists
            complex.run.gz --out audited
        owkg audit transe.parquet complex.parquet --sparsity 0.5,0.7 --report audit.html
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
    if out is not None:
        from owkg.pools.missing import AUDIT_SHEET

        writable_folder(out)
        if (sheet := out / AUDIT_SHEET).exists():
            raise ValueError(
                f"`out` must be another folder: {sheet} is of an earlier audit, and may have been filled in."
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

        write_report(found, path)
        wrote(path)
    if form is Format.JSON:
        show(form, found.payload())
    else:
        _show(found)


def _range(name: str, text: str | None) -> float | list[float] | None:
    """One number, or two."""
    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, 2):
        raise ValueError(f"`{name}` must be a number, or LOW,HIGH, got {text!r}.")
    return values if len(values) == 2 else values[0]


def _write(found: "Audit", out: Path) -> None:
    """All tables, what they rest on, and the answers that turn orders as a sheet for annotators."""
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
    for earlier in out.glob("audit_*.csv"):  # of an audit that had more tables
        if earlier.name not in named:
            earlier.unlink()


def _show(found: "Audit") -> None:
    """The verdicts, with the assumptions."""
    import polars as pl

    from owkg.auditing.result import metric_name

    assumed = found.assumptions
    stated = assumed["sparsity"] is not None
    independent = assumed["correlation"] is None
    given = ", if independent" if independent else ""
    for (metric, average), models in found.models.group_by("metric", "average", maintain_order=True):
        rows = [
            [row["model"], _interval(row["value"], row["ci_low"], row["ci_high"])]
            + [
                _interval(row[key], row[f"{key}_low"], row[f"{key}_high"])
                for key in ("strength", "full")
                if stated
            ]
            for row in models.iter_rows(named=True)
        ]
        heads = ["model", metric, *(["strength", f"full-test {metric}{given}"] if stated else [])]
        printed(f"{metric_name(metric, average)}, mean over {average}", heads, rows)
        if not stated:
            grid = found.grid.filter(metric=metric, average=average)
            some = grid.filter(grid["sparsity"].is_in([0.0, 0.2, 0.5, 0.8]))
            wide = some.pivot("sparsity", index="model", values="full", maintain_order=True)
            cells = [[row[0], *(cell(x, ".3f") for x in row[1:])] for row in wide.iter_rows()]
            title = f"full-test {metric_name(metric, average)} if the sparsity were"
            title += ", missing and retrieved independent" if independent else ""
            printed(title, ["model", *wide.columns[1:]], cells)
        pairs = found.pairs.filter(metric=metric, average=average)
        order = models["model"].to_list()
        if len(pairs) > _PAIRS:
            next_to = set(pairwise(order))
            pairs = pairs.filter(
                [pair in next_to for pair in zip(pairs["first"], pairs["second"], strict=True)]
            )
        # Where no sparsity goes with a value, none can be said to break an order.
        possible = found.grid.filter(pl.col("sparsity") > 0, pl.col("full").is_not_null(), metric=metric)
        told = set(possible.filter(average=average)["model"])
        out_of = dict(models.select("model", pl.col("refuted").fill_null(0.0)).iter_rows())
        rows = [
            _pair(row, stated, "none" if {row["first"], row["second"]} <= told else "-", out_of)
            for row in pairs.iter_rows(named=True)
        ]
        heads = ["pair", "difference", "p", "breakdown", "share"]
        heads += [f"P(better){given}"] if stated else []
        printed(
            "may the first be called better than the second?",
            [*heads, "breaks at sparsity", "at correlation", "queries needed", "verdict"],
            rows,
        )
        if len(pairs) < len(found.pairs.filter(metric=metric, average=average)):
            line("(neighbours in the order; --out and --format json have all pairs)", "dim")
    if len(found.judged):
        every = found.judged.filter(found.judged["side"].is_null())
        columns = {"sparsity": "sparsity", "test_strength": "known found"}
        columns |= {"missing_strength": "missing found", "correlation": "correlation"}
        if every["sparsity_high"].is_null().all():
            columns = {"sparsity": "sparsity, at least"}
        rows = [
            [row["model"], f"{row['known']:,}", f"{row['found']:,}"]
            + [_interval(row[key], row[f"{key}_low"], row[f"{key}_high"]) for key in columns]
            for row in every.iter_rows(named=True)
        ]
        printed("what judgements say", ["model", "known", "found", *columns.values()], rows)
    if len(found.plans):
        from owkg.report.tables import plans_table

        table = plans_table(found)
        printed("if you judge more: expected widths of intervals", table.columns, table.rows)
        depth = assumed["plan"]
        line(
            f"of the pool of depth {depth}; to carry a line out: "
            "owkg pool RUN... --kg KG --depth DEPTH --draw queries:50, then owkg estimate --pool",
            "dim",
        )
    least = assumed["sparsity_at_least"]
    sparsity = _limits(assumed["sparsity"]) if least is None else f"at least {least:.3f}, no upper end"
    line(f"sparsity: {sparsity}", "dim")
    taken = ", 0 is taken" * independent
    line(f"correlation: {_limits(assumed['correlation'])}{taken}", "dim")
    rates = f"{_limits(assumed['unevenness'])} ({assumed['unevenness_from']})"
    line(f"unevenness of missing rates: {rates}", "dim")
    for text in assumed["notes"]:
        line(text, "dim")


def _pair(row: dict[str, Any], stated: bool, absent: str, refuted: dict[str, float]) -> list[str]:
    from owkg.auditing.result import verdict_in_words

    if row["certified"] is None:
        facts = "none turn it"
    else:
        shown = row["demonstrated"]
        facts = f"{row['certified']:,} to {'?' if shown is None else f'{shown:,}'}"
        if row["difference"] == 0:
            facts = "0"
    order = "=" if row["difference"] == 0 else ">"
    p = "<0.001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}"
    cells = [f"{row['first']} {order} {row['second']}", f"{row['difference']:+.4f}", p, facts]
    cells.append(cell(row["share"], ".3f"))
    if stated:
        low, high = row["probability_low"], row["probability_high"]
        cells.append("not possible" if low is None else probability_range(low, high))
    queries = row["required_queries"]
    cells += [
        absent if row[key] is None else f"{row[key]:.3f}"
        for key in ("breakdown_sparsity", "breakdown_correlation")
    ]
    told = verdict_in_words(row["verdict"], max(refuted[row["first"]], refuted[row["second"]]))
    return [*cells, "-" if queries is None else f"{queries:,.0f}", told]


def _limits(stated: dict[str, Sequence[float]] | Sequence[float] | None) -> str:
    """An interval of the box, or those of each system."""
    if isinstance(stated, dict):
        return "; ".join(f"{name} {_limits(own)}" for name, own in stated.items())
    return "not stated" if stated is None else f"{stated[0]:.3g} to {stated[1]:.3g}"


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    shown = "-" if value is None else f"{value:.4f}"
    if low is not None and high is None:
        return f"{shown} [{low:.4f}, ...)"
    return shown if low is None or high is None else f"{shown} [{low:.4f}, {high:.4f}]"
