"""`owkg pool`: pools of answers to judge, and judgements from filled-in sheets."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.commands import Given
from owkg.cli.comparisons.pool_draw import add_systems, draw_further, show_further, show_plan, widths_of
from owkg.cli.inputs import noted_line
from owkg.cli.options import (
    Format,
    GraphOptions,
    Names,
    OutputFormat,
    Overwrite,
    TableOptions,
    named_files,
    split_list,
)
from owkg.cli.output import Table, interval, show
from owkg.errors import naming

_SHOWN = 10  # number of relations shown, those for which rules reject most facts
# Options that have no effect when sheets are read.
_OF_POOLS = (
    *("runs", "name", "depth", "kg", "layout", "duplicates", "truth", "filter_", "names", "intersect"),
    *("closed_world", "covered", "rule", "columns", "untied", "realistic", "candidates", "ids"),
    *("min_share", "budget", "templates", "sampled", "sources", "source_template"),
    *("draw", "strata", "for_", "below_depth", "plan", "metric", "width", "judged", "more", "add"),
)
_OF_SHEETS = ("pool_", "changed", "conflicts", "third", "annotations", "expert", "expert_sample")
_OF_WORDS = ("names", "templates", "sources", "source_template")
# Options that may be combined with --more, --add, or --plan of a drawn pool.
_WITH = {
    "--more": ("more", *_OF_WORDS),
    "--add": ("add", "name", "kg", "layout", "duplicates", *_OF_WORDS),
    "--plan of --pool": ("plan", "metric", "width", "judged"),
}


class Rule(StrEnum):
    FUNCTIONAL = "functional"
    TYPE = "type"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Filled-in sheets to read, and files to write from them.

    Read filled-in sheets:
        read (SHEET): Sheet that was filled in. Repeat the option for several annotators.
        pool_ (POOL): Folder of the pool that --read, --more, --add or --plan is about.
        conflicts (FILE): Write the candidates without a majority into a new sheet, for one more annotator.
            Only with --read.
        third (SHEET): Read that sheet of conflicts, filled in; its labels decide the conflicts. Only with
            --read.
        expert_sample (N): Write a sheet of N judged candidates to --expert, half of them relevant. Only with
            --read.
        expert (SHEET): Read the sheet that an expert filled in and print how far the expert agrees; or, with
            --expert-sample, the sheet to write. Only with --read.
        annotations (FILE): Write every label with its sheet, source and comment, as TSV. Only with --read.

    Rarely needed:
        changed: Accept a pool whose files are no longer as they were written. Only with --read.
    """

    read: list[Path] | None = None
    pool_: Path | None = None
    changed: Annotated[bool, typer.Option("--allow-changed")] = False
    conflicts: Path | None = None
    third: Annotated[Path | None, typer.Option("--conflicts-judged")] = None
    annotations: Path | None = None
    expert_sample: Annotated[int | None, typer.Option(min=1)] = None
    expert: Path | None = None

    @property
    def folder(self) -> Path:
        """Folder of the pool."""
        return self.folder_of("--read")

    def folder_of(self, option: str) -> Path:
        """Folder of the pool that `option` needs; ValueError if --pool is not given."""
        if self.pool_ is None:
            raise ValueError(f"`pool` must name the folder of the pool that {option} belongs to.")
        return self.pool_

    @property
    def sheets(self) -> list[Path]:
        """Sheets of all annotators, including the sheet of conflicts."""
        return [*(self.read or ()), *([] if self.third is None else [self.third])]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Random sample to judge, from which `owkg estimate` computes intervals.

    Draw what to judge:
        draw (UNIT:N): Draw N units at random and put only these into the sheet: queries:N for all metrics,
            prefixes:N for RR and Success, candidates:N for P, RBP and the share of missing answers, below:N
            for answers below the pool.
        strata (size): Draw from classes of the number of known answers, which micro metrics need for narrow
            intervals. Only with queries and prefixes.
        for_ (METRIC|A-B): Metrics that candidates:N is drawn for, or the two systems whose difference
            matters, or both as A-B:METRIC. Default: P at the depth of the pool.
        below_depth (N): Depth of the lists down to which below:N is drawn.
        more (N): Draw N further units of the pool --pool by its design and write them into a new sheet. Units
            drawn or judged before stay as they are.
        add (RUN): Add the systems of another run to the pool --pool, and write a sheet of the candidates that
            must be judged for them. Judgements made before stay. Needs the --kg of the pool. Repeat the
            option for several runs.

    Plan how much to judge:
        plan: Print the expected widths of intervals for each design and size, with judgements and hours, and
            write nothing. With --pool, plan further units of a drawn pool from those judged so far.
        metric (METRIC,...): Metrics that --plan prints, with commas. Default: those of --width; otherwise
            rr,success,p,ap,ndcg,mrr, or with --pool those that the design answers.
        width (METRIC=W,...): Target widths of the 95% intervals of systems, such as rr=0.1; --plan prints how
            many units each design needs for them.
        judged (FILE): Filled-in sheet, or judgements as qrels, for --plan with --pool. Repeat the option for
            several. Default: the sheets in the folder of the pool.
    """

    draw: str | None = None
    strata: str | None = None
    for_: Annotated[str | None, typer.Option("--for")] = None
    below_depth: Annotated[int, typer.Option(min=2)] = 100
    plan: bool = False
    metric: str | None = None
    width: str | None = None
    judged: list[Path] | None = None
    more: Annotated[int | None, typer.Option(min=1)] = None
    add: list[Path] | None = None

    @property
    def metrics(self) -> list[str]:
        """Metrics that --metric names for a plan."""
        return split_list(self.metric or "")


def pool(
    runs: list[Path] | None = None,
    *,
    given: Given,
    out: Path | None = None,
    depth: int | None = None,
    kg: Path | None = None,
    truth: str | None = None,
    filter_: str | None = None,
    budget: Annotated[int | None, typer.Option(min=1)] = None,
    intersect: bool = False,
    name: Names = None,
    how: GraphOptions,
    closed_world: bool = False,
    covered: Annotated[bool, typer.Option("--judged-queries-only")] = False,
    rule: list[Rule] | None = None,
    min_share: Annotated[int | None, typer.Option("--min-shared-entities", min=1)] = None,
    sampled: Annotated[bool, typer.Option("--sampled-queries")] = False,
    names: Path | None = None,
    templates: Path | None = None,
    sources: bool = False,
    source_template: str | None = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    overwrite: Overwrite = False,
    drawing: Drawing,
    reading: Reading,
    tables: TableOptions,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Pool the best answers of several systems so that people can judge them, as TREC does.

    Queries are "head|relation|?" or "?|relation|tail" of a graph, or without --kg topics of any name.

    The folder OUT holds pool.tsv (every candidate, the depth at which it entered, its systems, rule and
    relevance, and whether truth or a rule decided it), pool.qrels (relevance -1: not judged yet),
    runs.trec.gz (the pooled lists), sheet.tsv (for annotators: the candidates that are not judged yet) and
    metadata.json.

    With --draw, the sheet holds a random sample of the pool, in the order in which to judge it; design.json
    and design.tsv record how it was drawn. Only then can owkg estimate give intervals. --more draws further
    units by the same design, and --add adds further systems.

    All answers of --truth to the pooled queries are in pool.qrels, whether a system found them or not. With
    --closed-world only pooled answers are, because --truth then stands for annotators, who see only the pool.

    With --read, the labels of filled-in sheets become the judgements of a pool. With several annotators, owkg
    takes the label that more than half of those who judged a candidate gave; candidates without a majority
    stay unjudged and are listed. owkg also prints how far the annotators agree. --conflicts and
    --conflicts-judged let one more annotator decide, and --expert tells how far an expert agrees with a
    sample of the labels.

    Args:
        runs (RUN...): Runs of one system or several, .gz or not; or rank tables.
        depth (N): Number of answers of each list that are pooled.
        kg (DIR): Folder of the graph whose labels the runs use. Leave it out for topics.
        out (PATH): Folder to write; with --read, the file of judgements to write.
        truth (SPLIT|QRELS): Answers that are known to be relevant: a split of the graph, or qrels. Default:
            none, but test with --draw and --plan.
        filter_ (SPLIT,...): Splits whose known answers are removed from the lists, or none. Default:
            train,valid.
        budget (N): Largest number of candidates in the sheet: the shallowest depths come first, and each
            depth of a query is taken as a whole. The other candidates stay unjudged. Default: no limit.
        intersect: Leave out queries that some system does not answer. Default: stop with an error.
        seed (N): Seed of the order of sheets, of the draw, and of the candidates for an expert.

    The sheet for annotators:
        names (FILE): Readable names for the sheet: lines of label, name and optionally description, with
            tabs.
        templates (FILE): Sentences for the sheet: lines of relation, side that is asked for (head, tail or
            both), and sentence with {entity}, or {head} and {tail}, with tabs.
        sources: Add a column source to the sheet, for where an answer was found.
        source_template (URL): Fill the column source with an address such as
            https://example.org/search?q={entity}; {answer}, {head}, {tail} and {relation} work too.

    Rarely needed:
        closed_world: Treat --truth as complete: all other answers in the pool are wrong.
        covered: Pool only the queries for which --truth has judgements.
        rule (functional|type): Mark answers as not relevant without judging: functional marks further answers
            of relations that have only one, type marks answers of another kind. Both make mistakes on
            incomplete graphs, and owkg prints how many. Repeat the option for both.
        min_share (N): Number of entities that two relation slots must share in train so that an entity of one
            fits the other, for --rule type. Default: 1.
        sampled: State that the queries of the runs are a random sample of the test queries, so that their
            judgements represent the others.

    Examples:
        owkg pool a.run b.run --kg data/fb15k237 --depth 10 --truth test --plan --metric rr,p@10,ap
        owkg pool a.run b.run --kg data/fb15k237 --depth 10 --truth test --draw queries:60 --seed 7 --out pool
        owkg pool a.run b.run --kg data/fb15k237 --depth 10 --plan --width rr=0.1,ap=0.1
        owkg pool --pool pool --judged pool/sheet.tsv --plan --width rr=0.1
        owkg pool --pool pool --more 40
        owkg pool --pool pool --add c.run --kg data/fb15k237
        owkg pool transe.run complex.run.gz --depth 10 --kg data/fb15k237 --out pool --truth test
        owkg pool runs.trec --depth 100 --kg benchmark --out pool --truth qrels_full.txt --closed-world
        owkg pool --read sheet.tsv --read other.tsv --pool pool --out judged.qrels --conflicts third.tsv
        owkg pool --read sheet.tsv --read other.tsv --conflicts-judged third.tsv --pool pool --out
            judged.qrels --overwrite
    """
    words = _words(names, templates, sources, source_template)
    if _of_drawn(given, drawing, reading, words, form, systems=(kg, how, name)):
        return
    wishes = widths_of(drawing.width)
    if drawing.plan:
        given.refuse(
            ["out", "read", "budget", "draw", "strata", "for_", "sampled"], "has no effect with --plan"
        )
        given.refuse(["judged"], "has no effect without --pool")
        out = Path()
    if not runs and not reading.read:
        raise ValueError(
            "RUN is missing: name ranked lists, as owkg rank --lists writes them, or a sheet to --read."
        )
    if out is None:
        raise ValueError("`out` must name the folder or file to write.")
    if reading.read:
        from owkg.cli.comparisons.pool_read import read_sheets

        given.refuse(_OF_POOLS, "has no effect with --read")
        read_sheets(reading, out, form, seed=seed, overwrite=overwrite)
        return
    given.refuse(_OF_SHEETS, "has no effect without --read")
    if not drawing.plan:
        given.refuse(["metric", "width", "judged"], "has no effect without --plan")
    if drawing.draw is None:
        given.refuse(["strata", "for_", "below_depth"], "has no effect without --draw")
    else:
        given.refuse(["budget", "sampled"], "has no effect with --draw, which draws its own sample")
    how.require(kg)
    if depth is None:
        raise ValueError("`depth` must be given to make a pool.")
    if truth is None:
        given.refuse(["closed_world", "covered"], "needs --truth")
    if min_share is not None and "type" not in (rule or []):
        raise ValueError("`min_share` has no effect without --rule type.")
    systems = named_files(runs or [], name)
    from owkg.pools.folder import write_pool
    from owkg.pools.front import METRICS

    settings = {
        "depth": depth,
        "truth": truth,
        "closed_world": closed_world,
        "covered": covered,
        "filter": filter_,
        "rules": sorted({one.value for one in rule or []}),
        "min_share": min_share or 1,
        "budget": budget,
        "intersect": intersect,
        "sampled": sampled,
        "sample": drawing.plan or drawing.draw is not None,
        "draw": drawing.draw,
        "strata": drawing.strata,
        "for": drawing.for_,
        "below_depth": drawing.below_depth,
        "seed": seed,
    }
    said = tables.reading()
    named = {"run": "RUN"} | ({} if said.said else {"candidates": "RUN"})
    with naming(named):
        words |= {"reading": how.reading(), "tables": said}
        if drawing.plan:
            metrics = drawing.metrics or list(wishes or METRICS)
            show_plan(systems, kg, settings, words, metrics, wishes, form)
            return
        card = write_pool(systems, kg, out, settings, **words, overwrite=overwrite)
    rows = card["sizes"]
    sizes = Table("", list(rows[0]), [[f"{value:,}" for value in row.values()] for row in rows])
    told = f"wrote {out}: {len(card['systems']):,} systems, {card['to_judge']:,} candidates to judge"
    rules = ", ".join(f"{count:,} {name}" for name, count in card["rules"].items())
    if form is Format.TABLE and rules:
        show(form, {}, [sizes], [f"not relevant by rule: {rules}"])
        _show_cost(card["rule_cost"])
        show(form, {}, lines=[told])
    else:
        show(form, {"out": out, **card}, [sizes], [told])
    for text in card["notes"] if form is Format.TABLE else ():
        noted_line(text)


def _words(
    names: Path | None, templates: Path | None, sources: bool, source_template: str | None
) -> dict[str, Any]:
    """Texts of a sheet in addition to its candidates."""
    blank = "" if sources and source_template is None else source_template
    return {"names": names, "templates": templates, "source": blank}


def _of_drawn(
    given: Given,
    drawing: Drawing,
    reading: Reading,
    words: dict[str, Any],
    form: Format,
    *,
    systems: tuple[Path | None, GraphOptions, list[str] | None],
) -> bool:
    """Runs --more, --add, or --plan of a drawn pool; returns whether one of them was given.

    Args:
        given, drawing, reading, words, form: parameters of the command.
        systems: folder of the graph, options for reading it, and names of systems, for --add.
    """
    options = {"--more": drawing.more is not None, "--add": bool(drawing.add)}
    options["--plan of --pool"] = drawing.plan and reading.pool_ is not None
    for option in (option for option, there in options.items() if there):
        others = [one for one in (*_OF_POOLS, *_OF_SHEETS, "out", "read") if one not in _WITH[option]]
        others.remove("pool_")
        given.refuse(others, f"has no effect with {option}: the design of the pool stays the same")
        folder = reading.folder_of(option)
        if drawing.more is not None:
            draw_further(folder, drawing.more, words, form)
        elif drawing.add:
            kg, how, name = systems
            how.require(kg)
            add_systems(folder, named_files(drawing.add, name), kg, how.reading(), words, form)
        else:
            show_further(folder, drawing.judged, drawing.metrics, widths_of(drawing.width), form)
        return True
    return False


def _show_cost(cost: dict[str, Any]) -> None:
    """Prints how many known facts the rules would reject."""
    if not cost["rows"]:
        noted_line("the mistakes of the rules cannot be counted: no known facts can be left out.")
        return
    losing = [row for row in cost["rows"] if row["rejected"]]
    shown = [
        [
            "all" if row["relation"] is None else row["relation"],
            *(f"{row[name]:,}" for name in ("facts", "rejected")),
            interval(row["share"], row["lower"], row["upper"]),
        ]
        for row in (losing[: _SHOWN + 1] or cost["rows"][:1])
    ]
    title = f"answers known to be true ({cost['left_out']}) that the rules would reject"
    more = len(losing) - _SHOWN - 1
    lines = [f"and {more:,} more relations with rejected answers"] if more > 0 else []
    heads = ["relation", "left out", "rejected", "share [95% interval]"]
    show(Format.TABLE, {}, [Table(title, heads, shown)], lines)
