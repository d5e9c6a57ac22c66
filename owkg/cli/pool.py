"""`owkg pool`: pools of answers to be judged, and the judgements read back from annotation sheets."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli import options
from owkg.cli.tables import printed

MADE_BY = "owkg pool"


def pool(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN...", help="TREC runs of one system or several, .gz or not; or rank tables."
        ),
    ] = None,
    depth: Annotated[int | None, typer.Option(help="How many answers of each list are pooled.")] = None,
    kg: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder of the graph whose labels the runs use.")
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
            "--filter",
            help="Splits whose known answers leave the lists, or none; train,valid when absent.",
        ),
    ] = None,
    trivial: Annotated[
        bool, typer.Option("--trivial/--no-trivial", help="Judge by rules what cannot be relevant.")
    ] = True,
    min_share: Annotated[
        int,
        typer.Option(help="Entities that two slots must share in train for one's to fit the other.", min=1),
    ] = 1,
    intersect: Annotated[
        bool, typer.Option("--intersect", help="Leave out questions that some system does not answer.")
    ] = False,
    names: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Readable names for the sheet: label, name, perhaps description."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the order of the sheet.", min=0)] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace OUT, if it was written by this command.")
    ] = False,
    read: Annotated[
        list[Path] | None,
        typer.Option("--read", metavar="SHEET", help="A sheet that was filled in; twice for two annotators."),
    ] = None,
    pool_: Annotated[
        Path | None, typer.Option("--pool", metavar="POOL", help="With --read: the folder of the pool.")
    ] = None,
    form: options.OutputFormat = options.Format.TABLE,
) -> None:
    """Pools the best answers of several systems for judging, as TREC does.

    The folder OUT holds pool.tsv (every candidate, the depth at which it entered, its systems, rule and
    grade, and whether truth or rule gave it), pool.qrels (grade -1: not judged yet), runs.trec.gz (the pooled
    lists), sheet.tsv (for annotators, what is not judged yet), metadata.json.

    The answers of --truth to the questions asked are all in pool.qrels, pooled or not. With --closed-world
    only pooled ones are: truth stands for annotators, who see nothing but the pool.

    With --read, the labels of filled-in sheets go into the judgements of a pool. What two annotators label
    differently stays not judged; how far they agree is printed.
    """
    if out is None:
        raise ValueError("`out` must say where to write.")
    if read:
        from owkg.cli.pool_read import read_back

        given = {"RUN": runs, "`depth`": depth, "`kg`": kg, "`truth`": truth, "`filter`": filter_}
        given |= {"`names`": names, "`intersect`": intersect, "`closed_world`": closed_world}
        for name, value in given.items():
            if value:
                raise ValueError(f"{name} says nothing with --read.")
        if pool_ is None:
            raise ValueError("`pool` must name the folder of the pool that --read belongs to.")
        read_back(read, pool_, out, form, overwrite=overwrite)
        return
    if pool_ is not None:
        raise ValueError("`pool` says nothing without --read.")
    if not runs:
        raise ValueError("RUN is missing: name at least one run, or a sheet to --read.")
    for name, value in {"depth": depth, "kg": kg}.items():
        if value is None:
            raise ValueError(f"`{name}` must be given to make a pool.")
    if closed_world and truth is None:
        raise ValueError("`closed_world` needs --truth.")
    from owkg.cli.pool_folder import write_pool

    settings = {
        "depth": depth,
        "truth": truth,
        "closed_world": closed_world,
        "filter": filter_,
        "trivial": trivial,
        "min_share": min_share,
        "intersect": intersect,
        "seed": seed,
    }
    try:
        card = write_pool(runs, kg, out, settings, names=names, overwrite=overwrite)
    except ValueError as error:
        raise ValueError(re.sub("`(run|candidates)`", "RUN", str(error))) from None
    if form is options.Format.JSON:
        import json

        print(json.dumps({"out": str(out)} | card, indent=2, allow_nan=False))
        return
    _show(out, card)


def _show(out: Path, card: dict[str, Any]) -> None:
    from rich.console import Console

    from owkg.cli.systems import note

    rows = card["sizes"]
    printed("", list(rows[0]), ([f"{value:,}" for value in row.values()] for row in rows))
    console = Console(highlight=False, soft_wrap=True, markup=False)
    rules = ", ".join(f"{count:,} {name}" for name, count in card["rules"].items())
    if rules:
        console.print(f"not relevant by rule: {rules}")
    console.print(f"wrote {out}: {len(card['systems']):,} systems, {card['to_judge']:,} candidates to judge")
    for text in card["notes"]:
        note(text)
