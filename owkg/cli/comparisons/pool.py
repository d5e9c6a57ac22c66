"""`owkg pool`: pools of answers to be judged, and the judgements read back from annotation sheets."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli import options
from owkg.errors import naming
from owkg.terminal.tables import line, printed

_SHOWN = 10  # relations that lose most by the rules
_BACK = "Reading sheets back"


class RuleName(StrEnum):
    FUNCTIONAL = "functional"
    TYPE = "type"


def pool(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...", help="TREC runs of one system or several, .gz or not; or rank tables."
        ),
    ] = None,
    depth: Annotated[int | None, typer.Option(help="How many answers of each list are pooled.")] = None,
    kg: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the graph whose labels the runs use; not for topics."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder to write; with --read, the file of judgements to write.")
    ] = None,
    truth: Annotated[
        str | None,
        typer.Option(metavar="SPLIT|QRELS", help="What is judged already: a split of the graph, or qrels."),
    ] = None,
    closed_world: Annotated[
        bool,
        typer.Option("--closed-world", help="--truth judges the whole pool: what it does not hold is wrong."),
    ] = False,
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter", help="Splits whose known answers leave the lists, or none; train,valid when absent."
        ),
    ] = None,
    covered: Annotated[
        bool, typer.Option("--covered", help="Pool only the queries that --truth judges.")
    ] = False,
    rule: Annotated[
        list[RuleName] | None,
        typer.Option(
            help="Take for not relevant, unseen: functional, further answers where the relation has one; "
            "type, answers of another kind. Both err on incomplete graphs, and what they cost is printed. "
            "Repeat for both."
        ),
    ] = None,
    min_share: Annotated[
        int | None,
        typer.Option(
            help="Of --rule type: entities that two slots must share in train for one's to fit the other.",
            min=1,
            show_default="1",
        ),
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(
            help="At most so many candidates in the sheet: the shallowest depths first, of each query a "
            "depth as a whole. The others stay unjudged.",
            min=1,
        ),
    ] = None,
    intersect: Annotated[
        bool, typer.Option("--intersect", help="Leave out queries that some system does not answer.")
    ] = False,
    sampled: Annotated[
        bool,
        typer.Option(
            "--sampled",
            help="State that the queries of the runs are a random sample of the test's, so that their "
            "judgements stand for the others.",
        ),
    ] = False,
    names: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Readable names for the sheet: label, name, perhaps description."),
    ] = None,
    templates: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Own words for the sheet: relation, side that is asked for (head, tail or both), sentence "
            "with {entity}, or {head} and {tail}; between tabs.",
        ),
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="A column source in the sheet, for where an answer was found.")
    ] = False,
    source_template: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Fill that column with an address such as https://example.org/search?q={entity}; also "
            "{answer}, {head}, {tail}, {relation}.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Of the order of sheets, and of the candidates for an expert.", min=0)
    ] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT, if it was written by this command.")
    ] = False,
    read: Annotated[
        list[Path] | None,
        typer.Option(
            "--read",
            metavar="SHEET",
            help="A sheet that was filled in; repeat it for several annotators.",
            rich_help_panel=_BACK,
        ),
    ] = None,
    pool_: Annotated[
        Path | None,
        typer.Option(
            "--pool", metavar="POOL", help="With --read: the folder of the pool.", rich_help_panel=_BACK
        ),
    ] = None,
    changed: Annotated[
        bool,
        typer.Option(
            "--changed",
            help="With --read: read a pool whose files are not as written.",
            rich_help_panel=_BACK,
        ),
    ] = False,
    conflicts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --read: write a sheet of the candidates without a majority, for a third annotator.",
            rich_help_panel=_BACK,
        ),
    ] = None,
    third: Annotated[
        Path | None,
        typer.Option(
            metavar="SHEET",
            help="With --read: that sheet, filled in. It decides the conflicts.",
            rich_help_panel=_BACK,
        ),
    ] = None,
    annotations: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --read: also write every label with its sheet, source and comment, as TSV.",
            rich_help_panel=_BACK,
        ),
    ] = None,
    expert_sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --read: write a sheet of N judged candidates to --expert, half of them relevant.",
            min=1,
            rich_help_panel=_BACK,
        ),
    ] = None,
    expert: Annotated[
        Path | None,
        typer.Option(
            metavar="SHEET",
            help="With --read: the sheet that an expert filled in, to say how far it agrees; or, with "
            "--expert-sample, to write.",
            rich_help_panel=_BACK,
        ),
    ] = None,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Pools the best answers of several systems for judging, as TREC does.

    Queries are "head|relation|?" or "?|relation|tail" of a graph, or without --kg topics of any name.

    The folder OUT holds pool.tsv (every candidate, the depth at which it entered, its systems, rule and
    relevance, and whether truth or rule gave it), pool.qrels (relevance -1: not judged yet), runs.trec.gz
    (the pooled lists), sheet.tsv (for annotators, what is not judged yet), metadata.json.

    The answers of --truth to the queries asked are all in pool.qrels, pooled or not. With --closed-world
    only pooled ones are: truth stands for annotators, who see nothing but the pool.

    With --read, the labels of filled-in sheets go into the judgements of a pool: of several annotators, what
    more than half of those who judged a candidate say. What has no majority stays not judged and is listed;
    how far annotators agree is printed. --conflicts and --third let one more annotator decide, and --expert
    says how far an expert agrees with a sample of the labels.
    """
    if out is None:
        raise ValueError("`out` must say where to write.")
    if read:
        from owkg.cli.comparisons.pool_read import Reading, read_sheets

        given = {"RUN": runs, "`depth`": depth, "`kg`": kg, "`truth`": truth, "`filter`": filter_}
        given |= {"`names`": names, "`intersect`": intersect, "`closed_world`": closed_world}
        given |= {"`covered`": covered, "`rule`": rule, "`budget`": budget, "`templates`": templates}
        given |= {"`sampled`": sampled}
        given |= {"`sources`": sources, "`source_template`": source_template}
        for name, value in given.items():
            if value:
                raise ValueError(f"{name} has no effect with --read.")
        if pool_ is None:
            raise ValueError("`pool` must name the folder of the pool that --read belongs to.")
        read_sheets(
            Reading(read, pool_, out, third, conflicts, annotations, expert, expert_sample, seed),
            form,
            overwrite=overwrite,
            changed=changed,
        )
        return
    only_read = {"pool": pool_, "changed": changed, "conflicts": conflicts, "third": third}
    only_read |= {"annotations": annotations, "expert": expert, "expert_sample": expert_sample}
    for name, value in only_read.items():
        if value:
            raise ValueError(f"`{name}` has no effect without --read.")
    if not runs:
        raise ValueError("RUN is missing: name at least one run, or a sheet to --read.")
    if depth is None:
        raise ValueError("`depth` must be given to make a pool.")
    for name, value in {"closed_world": closed_world, "covered": covered}.items():
        if value and truth is None:
            raise ValueError(f"`{name}` needs --truth.")
    if min_share is not None and RuleName.TYPE not in (rule or []):
        raise ValueError("`min_share` has no effect without --rule type.")
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
        "seed": seed,
    }
    words = {"names": names, "templates": templates, "source": source_template}
    if sources and source_template is None:
        words["source"] = ""
    with naming({"run": "RUN", "candidates": "RUN"}):
        card = write_pool(runs, kg, out, settings, **words, overwrite=overwrite)
    if form is options.Format.JSON:
        import json

        print(json.dumps({"out": str(out)} | card, indent=2, allow_nan=False))
        return
    _show(out, card)


def _show(out: Path, card: dict[str, Any]) -> None:
    from owkg.cli.systems import note

    rows = card["sizes"]
    printed("", list(rows[0]), ([f"{value:,}" for value in row.values()] for row in rows))
    if rules := ", ".join(f"{count:,} {name}" for name, count in card["rules"].items()):
        line(f"not relevant by rule: {rules}")
        _show_cost(card["rule_cost"])
    line(f"wrote {out}: {len(card['systems']):,} systems, {card['to_judge']:,} candidates to judge")
    for text in card["notes"]:
        note(text)


def _show_cost(cost: dict[str, Any]) -> None:
    """What the rules do to facts that are known."""
    from owkg.cli.systems import note

    if not cost["rows"]:
        note("what the rules cost cannot be told: no known facts can be left out.")
        return
    losing = [row for row in cost["rows"] if row["rejected"]]
    shown = [
        [
            "all" if row["relation"] is None else row["relation"],
            *(f"{row[name]:,}" for name in ("facts", "rejected")),
            f"{row['share']:.3f} [{row['lower']:.3f}, {row['upper']:.3f}]",
        ]
        for row in (losing[: _SHOWN + 1] or cost["rows"][:1])
    ]
    title = f"answers known to be true ({cost['left_out']}) that the rules would reject"
    printed(title, ["relation", "left out", "rejected", "share [95% interval]"], shown)
    if len(losing) > _SHOWN + 1:
        line(f"and {len(losing) - _SHOWN - 1:,} more relations that lose some")
