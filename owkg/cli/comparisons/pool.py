"""`owkg pool`: pools of answers to be judged, and the judgements read back from annotation sheets."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.commands import Given
from owkg.cli.inputs import noted_line
from owkg.cli.options import Format, GraphOptions, Names, OutputFormat, Overwrite, TableOptions, named_files
from owkg.cli.output import Table, interval, show
from owkg.errors import naming

_SHOWN = 10  # relations that lose most by the rules
_METRICS = "rr,success,p,ap,ndcg,mrr"  # of a plan
# Options that say nothing about sheets that are read back.
_OF_POOLS = (
    *("runs", "name", "depth", "kg", "layout", "duplicates", "truth", "filter_", "names", "intersect"),
    *("closed_world", "covered", "rule", "columns", "untied", "realistic", "candidates", "ids"),
    *("min_share", "budget", "templates", "sampled", "sources", "source_template"),
    *("draw", "strata", "for_", "below_depth", "plan", "metric", "more"),
)
# Options that a further sheet of a draw does not take.
_OF_FIRST = tuple(
    name for name in _OF_POOLS if name not in ("names", "templates", "sources", "source_template", "more")
)
_OF_SHEETS = ("pool_", "changed", "conflicts", "third", "annotations", "expert", "expert_sample")


class Rule(StrEnum):
    FUNCTIONAL = "functional"
    TYPE = "type"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The sheets that are read back, and what is written of them.

    Reading sheets back:
        read (SHEET): A sheet that was filled in; repeat it for several annotators.
        pool_ (POOL): With --read or --more: the folder of the pool.
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
            and write nothing.
        metric: With --plan: metrics, separated by commas.
        more (N): Draw N further units of the pool --pool by its design and write them into a sheet of their
            own; what is drawn and judged stays.
    """

    draw: str | None = None
    strata: str | None = None
    for_: Annotated[str | None, typer.Option("--for")] = None
    below_depth: Annotated[int, typer.Option(min=2)] = 100
    plan: bool = False
    metric: str = _METRICS
    more: Annotated[int | None, typer.Option(min=1)] = None


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
    same design.

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
        owkg pool --pool pool --more 40
        owkg pool transe.run complex.run.gz --depth 10 --kg data/fb15k237 --out pool --truth test
        owkg pool runs.trec --depth 100 --kg benchmark --out pool --truth qrels_full.txt --closed-world
        owkg pool --read sheet.tsv --read other.tsv --pool pool --out judged.qrels --conflicts third.tsv
        owkg pool --read sheet.tsv --read other.tsv --third third.tsv --pool pool --out judged.qrels
            --overwrite
    """
    if drawing.more is not None:
        given.refuse(_OF_FIRST, "has no effect with --more: the design stays as it is")
        given.refuse([*(name for name in _OF_SHEETS if name != "pool_"), "out"], "has no effect with --more")
        _draw_more(
            reading.folder_of("--more"),
            drawing.more,
            _words(names, templates, sources, source_template),
            form,
        )
        return
    if drawing.plan:
        given.refuse(
            ["out", "read", "budget", "draw", "strata", "for_", "sampled"], "has no effect with --plan"
        )
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
        given.refuse(["metric"], "has no effect without --plan")
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
    words = _words(names, templates, sources, source_template)
    said = tables.reading()
    named = {"run": "RUN"} | ({} if said.said else {"candidates": "RUN"})
    with naming(named):
        words |= {"reading": how.reading(), "tables": said}
        if drawing.plan:
            _show_plan(systems, kg, settings, words, drawing.metric, form)
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


def _draw_more(folder: Path, count: int, words: dict[str, Any], form: Format) -> None:
    from owkg.pools.drawn import draw_more

    sheet, candidates, drawn = draw_more(folder, count, **words)
    unit, counts = drawn.drawing.unit, drawn.drawing.counts
    told = f"wrote {sheet}: {candidates:,} candidates to judge; {counts.sum():,} {unit} are drawn now"
    show(form, {"sheet": sheet, "to_judge": candidates, "drawn": int(counts.sum())}, lines=[told])


def _show_plan(
    systems: Any, kg: Path | None, settings: dict[str, Any], words: dict[str, Any], metric: str, form: Format
) -> None:
    from owkg.pools.folder import planned

    frame, notes = planned(systems, kg, settings, metric, reading=words["reading"], tables=words["tables"])
    rows = [
        [
            row["metric"],
            f"{row['unit']}:{row['count']}",
            *("" if row[name] is None else f"{row[name]:.3f}" for name in ("width", "width_pair")),
            f"{row['judgements']:,}",
            f"{row['hours']:,.0f}",
        ]
        for row in frame.to_dicts()
    ]
    heads = ["metric", "draw", "width", "width of a difference", "judgements", "hours"]
    title = "expected widths of 95% intervals, medians over systems and over pairs"
    line = "hours: 45 s for a new entity and 25 s for each fact; judging one system's lists alone takes less"
    show(form, {"plan": frame.to_dicts(), "notes": notes}, [Table(title, heads, rows)], [line])
    for text in notes if form is Format.TABLE else ():
        noted_line(text)


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
