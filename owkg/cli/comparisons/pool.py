"""`owkg pool`: pools of answers to be judged, and the judgements read back from annotation sheets."""

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

_SHOWN = 10  # relations that lose most by the rules
# Options that say nothing about sheets that are read back.
_OF_POOLS = (
    *("runs", "name", "depth", "kg", "layout", "duplicates", "truth", "filter_", "names", "intersect"),
    *("closed_world", "covered", "rule", "columns", "untied", "realistic", "candidates", "ids"),
    *("min_share", "budget", "templates", "sampled", "sources", "source_template"),
    *("draw", "strata", "for_", "below_depth", "plan", "metric", "width", "judged", "more", "add"),
)
_OF_SHEETS = ("pool_", "changed", "conflicts", "third", "annotations", "expert", "expert_sample")
_OF_WORDS = ("names", "templates", "sources", "source_template")
# Options that go with --more, --add, or --plan of a pool that is drawn already; no other does.
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
    """The sheets that are read back, and what is written of them.

    Reading sheets back:
        read (SHEET): A sheet that was filled in; repeat it for several annotators.
        pool_ (POOL): With --read, --more, --add or --plan: the folder of the pool.
        changed: With --read: read a pool whose files are not as written.
        conflicts (FILE): With --read: write a sheet of the candidates without a majority, for a third
            annotator.
        third (SHEET): With --read: that sheet, filled in. It decides the conflicts.
        annotations (FILE): With --read: also write every label with its sheet, source and comment, as TSV.
        expert_sample (N): With --read: write a sheet of N judged candidates to --expert, half of them
            relevant.
        expert (SHEET): With --read: the sheet that an expert filled in, to say how far it agrees; or, with
            --expert-sample, to write.
    """

    read: list[Path] | None = None
    pool_: Path | None = None
    changed: bool = False
    conflicts: Path | None = None
    third: Path | None = None
    annotations: Path | None = None
    expert_sample: Annotated[int | None, typer.Option(min=1)] = None
    expert: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of the pool."""
        return self.folder_of("--read")

    def folder_of(self, option: str) -> Path:
        """The folder of the pool that another option needs."""
        if self.pool_ is None:
            raise ValueError(f"`pool` must name the folder of the pool that {option} belongs to.")
        return self.pool_

    @property
    def sheets(self) -> list[Path]:
        """The sheets of all who judged, the third among them."""
        return [*(self.read or ()), *([] if self.third is None else [self.third])]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """What is drawn at random for judging, so that `owkg estimate` has intervals.

    Drawing what to judge:
        draw (UNIT:N): Draw N units at random and put only these into the sheet: queries:N for all metrics,
            prefixes:N for RR and Success, candidates:N for P and RBP and the share of missing answers,
            below:N for the answers below the pool.
        strata (size): With queries and prefixes: draw from classes of the number of known answers, which
            micro metrics need for narrow intervals.
        for_ (METRIC|A-B): With candidates: the metrics they are drawn for (default: P at the depth of the
            pool), or the two systems whose difference matters, or both as A-B:METRIC.
        below_depth: With below: how deep the lists reach.
        plan: Print the widths of the intervals that each design and size gives, with judgements and hours,
            and write nothing. With --pool, plan further units of a drawn pool from its judged ones.
        metric: With --plan: metrics, separated by commas. Default: those of --width; otherwise
            rr,success,p,ap,ndcg,mrr, or with --pool those that the design answers.
        width (METRIC=W,...): With --plan: wished widths of 95% intervals of systems, such as rr=0.1; print
            how many units each design needs for them.
        judged (FILE): With --plan and --pool: a filled-in sheet or judgements as qrels; repeat it for
            several. Default: the sheets in the folder of the pool.
        more (N): Draw N further units of the pool --pool by its design and write them into a sheet of their
            own; what is drawn and judged stays.
        add (RUN): Let the systems of a further run join the pool --pool, and write a sheet of the candidates
            that must be judged for them; what is drawn and judged stays. Needs the --kg of the pool. Repeat
            it for several runs.
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
        """The metrics of a plan that are named."""
        return split_list(self.metric or "")


def pool(
    runs: list[Path] | None = None,
    *,
    given: Given,
    name: Names = None,
    depth: int | None = None,
    kg: Path | None = None,
    how: GraphOptions,
    out: Path | None = None,
    truth: str | None = None,
    closed_world: bool = False,
    filter_: str | None = None,
    covered: bool = False,
    rule: list[Rule] | None = None,
    min_share: Annotated[int | None, typer.Option(min=1)] = None,
    budget: Annotated[int | None, typer.Option(min=1)] = None,
    intersect: bool = False,
    sampled: bool = False,
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
    """Pools the best answers of several systems for judging, as TREC does.

    Queries are "head|relation|?" or "?|relation|tail" of a graph, or without --kg topics of any name.

    The folder OUT holds pool.tsv (every candidate, the depth at which it entered, its systems, rule and
    relevance, and whether truth or rule gave it), pool.qrels (relevance -1: not judged yet), runs.trec.gz
    (the pooled lists), sheet.tsv (for annotators, what is not judged yet), metadata.json.

    With --draw the sheet holds a random sample of the pool, in the order of judging; design.json and
    design.tsv say how it was drawn. Only then has owkg estimate intervals. --more draws further units of the
    same design, and --add lets further systems join.

    The answers of --truth to the queries asked are all in pool.qrels, pooled or not. With --closed-world only
    pooled ones are: truth stands for annotators, who see nothing but the pool.

    With --read, the labels of filled-in sheets go into the judgements of a pool: of several annotators, what
    more than half of those who judged a candidate say. What has no majority stays not judged and is listed;
    how far annotators agree is printed. --conflicts and --third let one more annotator decide, and --expert
    says how far an expert agrees with a sample of the labels.

    Args:
        runs (RUN...): Runs of one system or several, .gz or not; or rank tables.
        depth: How many answers of each list are pooled.
        kg (DIR): Folder of the graph whose labels the runs use; not for topics.
        out: Folder to write; with --read, the file of judgements to write.
        truth (SPLIT|QRELS): What is judged already: a split of the graph, or qrels. Default with --draw and
            --plan: test.
        closed_world: --truth judges the whole pool: what it does not hold is wrong.
        filter_: Splits whose known answers leave the lists, or none; train,valid when absent.
        covered: Pool only the queries that --truth judges.
        rule: Take for not relevant, unseen: functional, further answers where the relation has one; type,
            answers of another kind. Both err on incomplete graphs, and what they cost is printed. Repeat for
            both.
        min_share: Of --rule type: entities that two slots must share in train for one's to fit the other.
            [default: 1]
        budget: At most so many candidates in the sheet: the shallowest depths first, of each query a depth as
            a whole. The others stay unjudged.
        intersect: Leave out queries that some system does not answer.
        sampled: State that the queries of the runs are a random sample of the test's, so that their
            judgements stand for the others.
        names (FILE): Readable names for the sheet: label, name, perhaps description.
        templates (FILE): Own words for the sheet: relation, side that is asked for (head, tail or both),
            sentence with {entity}, or {head} and {tail}; between tabs.
        sources: A column source in the sheet, for where an answer was found.
        source_template (URL): Fill that column with an address such as https://example.org/search?q={entity};
            also {answer}, {head}, {tail}, {relation}.
        seed: Of the order of sheets, and of the candidates for an expert.

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
        owkg pool --read sheet.tsv --read other.tsv --third third.tsv --pool pool --out judged.qrels
            --overwrite
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
    if out is None:
        raise ValueError("`out` must say where to write.")
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
        given.refuse(["budget", "sampled"], "has no effect with --draw, which is a sample of its own")
    if not runs:
        raise ValueError("RUN is missing: name at least one run, or a sheet to --read.")
    how.require(kg)
    if depth is None:
        raise ValueError("`depth` must be given to make a pool.")
    if truth is None:
        given.refuse(["closed_world", "covered"], "needs --truth")
    if min_share is not None and "type" not in (rule or []):
        raise ValueError("`min_share` has no effect without --rule type.")
    systems = named_files(runs, name)
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
    """What a sheet says beside its candidates."""
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
    """Whether the command is about a pool that is drawn already; does what it asks for.

    Args:
        given, drawing, reading, words, form: of the command.
        systems: folder of the graph, how it is read, and names of systems, for --add.
    """
    options = {"--more": drawing.more is not None, "--add": bool(drawing.add)}
    options["--plan of --pool"] = drawing.plan and reading.pool_ is not None
    for option in (option for option, there in options.items() if there):
        others = [one for one in (*_OF_POOLS, *_OF_SHEETS, "out", "read") if one not in _WITH[option]]
        others.remove("pool_")
        given.refuse(others, f"has no effect with {option}: the design stays as it is")
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
    """What the rules do to facts that are known."""
    if not cost["rows"]:
        noted_line("what the rules cost cannot be told: no known facts can be left out.")
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
    lines = [f"and {more:,} more relations that lose some"] if more > 0 else []
    heads = ["relation", "left out", "rejected", "share [95% interval]"]
    show(Format.TABLE, {}, [Table(title, heads, shown)], lines)
