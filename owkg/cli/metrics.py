"""`owkg metrics`: how good the ranks of a model are, with chance levels and confidence intervals."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.errors import renamed
from owkg.cli.inputs import check_readable, graph_in
from owkg.cli.systems import note, noted
from owkg.terminal.progress import progress


class MetricsFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    LATEX = "latex"


class Keys(StrEnum):
    OWKG = "owkg"
    PYKEEN = "pykeen"


class IntervalName(StrEnum):
    ANALYTIC = "analytic"
    PERCENTILE = "percentile"
    BCA = "bca"


_DIVISIONS = ("side", "ties", "relation", "category", "popularity")


def metrics(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE...", help="Rank tables, .parquet, .csv or .tsv; one row a model."),
    ] = None,
    kg: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the graph: popularity and relation categories."),
    ] = None,
    by: Annotated[
        str,
        typer.Option(help="Divide by side, ties, relation, category, popularity; several with commas."),
    ] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="A name that --list shows, or an alias; several with commas."),
    ] = None,
    ci: Annotated[float, typer.Option(help="Level of the confidence intervals, in (0, 1).")] = 0.95,
    interval: Annotated[
        IntervalName,
        typer.Option(help="By the central limit theorem, or a bootstrap; both over whole queries."),
    ] = IntervalName.ANALYTIC,
    replicates: Annotated[int, typer.Option(help="Of the bootstrap.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="Equal seeds give equal numbers.", min=0, max=2**32 - 1)] = 0,
    reweight: Annotated[
        str | None,
        typer.Option(
            metavar="uniform|FILE",
            help="Weigh relations equally, or by a file of relation<TAB>share, in all micro metrics.",
        ),
    ] = None,
    probe_entities: Annotated[
        int | None,
        typer.Option(help="N of PROBE's rank transformer for all tasks; each task's candidates when absent."),
    ] = None,
    form: Annotated[
        MetricsFormat, typer.Option("--format", help="For people, programs, spreadsheets, papers.")
    ] = MetricsFormat.TABLE,
    keys: Annotated[
        Keys, typer.Option(help="Of --format json: nested, or PyKEEN's side.ties.metric.")
    ] = Keys.OWKG,
    figures: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also draw the histogram of ranks and PROBE over its parameters."),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print every metric, with formula and source.")
    ] = False,
) -> None:
    """Rank metrics of one or several models: value, confidence interval, chance level.

    A confidence interval is for other queries of the same kind: whole queries are the sampling unit.
    The chance level is the mean under random ranking, with each task's own number of candidates.

    Tables show both sides together and realistic ranks, unless divided --by side,ties. JSON and CSV have
    all sides and tie rules; "exact" is the mean over a random order of ties.
    """
    from owkg.cli import metrics_output as output

    if list_:
        output.print_listing(form)
        return
    if not files:
        raise ValueError("FILE is missing: name at least one rank table, or ask for --list.")
    if keys is Keys.PYKEEN and form is not MetricsFormat.JSON:
        raise ValueError(f"`keys` pykeen is a form of --format json, got --format {form.value}.")
    try:
        sizes, found = _computed(
            files, kg, by, metric, ci, interval, replicates, seed, reweight, probe_entities, form, figures
        )
    except ValueError as error:
        raise ValueError(_reworded(str(error))) from None
    if form is MetricsFormat.JSON:
        output.print_json(found, keys is Keys.PYKEEN)
    elif form is MetricsFormat.CSV:
        print(found.write_csv(), end="")
    elif form is MetricsFormat.LATEX:
        output.print_latex(found, ci)
    else:
        output.print_tables(found, ci, sizes)


# Arguments of the library that come from an option of another name; those of no option are plain words.
_FROM = {"num_entities": "probe_entities", "shares": "reweight", "level": "ci"}
_OPTIONS = {
    "by",
    "ci",
    "figures",
    "interval",
    "keys",
    "kg",
    "metric",
    "probe_entities",
    "replicates",
    "reweight",
}


def _reworded(message: str) -> str:
    """An error of the library in the words of this command's options."""

    def named(argument: str) -> str:
        name = _FROM.get(argument, argument)
        return f"`{name}`" if name in _OPTIONS and argument != "metric" else argument

    return renamed(message, named)


def _computed(
    files: list[Path],
    kg: Path | None,
    by: str,
    metric: list[str] | None,
    ci: float,
    interval: IntervalName,
    replicates: int,
    seed: int,
    reweight: str | None,
    probe_entities: int | None,
    form: MetricsFormat,
    figures: Path | None,
) -> tuple[list[tuple[int, int]], Any]:
    """How many tasks each table has, and how many of them are tied; the report; figures are drawn."""
    from owkg import checks
    from owkg.metrics import Ties
    from owkg.ranks.together import read_shares, read_tables
    from owkg.storage import writable_folder

    checks.level("ci", ci)
    divisions = _divisions(by)
    wanted = _metrics(metric)
    if figures is not None:
        writable_folder(figures)
    check_readable(files)
    with progress("reading"), noted():
        graph = None if kg is None else graph_in(kg)
        shares = reweight if reweight in (None, "uniform") else read_shares(Path(str(reweight)))
        tables = list(zip(files, read_tables(files, graph, shares=shares), strict=True))
    everything = form in (MetricsFormat.JSON, MetricsFormat.CSV)
    shown = {"ties": tuple(Ties) if everything or "ties" in divisions else (Ties.REALISTIC,)}
    if figures is not None:
        from owkg.plots.ranks import rank_figures

        for path in rank_figures([table for _, table in tables], figures):
            print(f"wrote {path}", file=sys.stderr)
    return _found(
        tables,
        wanted,
        seed,
        by=[name for name in divisions if name not in ("side", "ties")],
        sides=("head", "tail", "both") if everything or "side" in divisions else ("both",),
        level=ci,
        interval=interval.value,
        replicates=replicates,
        num_entities=probe_entities,
        **shown,
    )


def _divisions(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _DIVISIONS:
            raise ValueError(f"`by` must be of {', '.join(_DIVISIONS)}, got {name!r}.")
    return names


def _metrics(names: list[str] | None):
    """The wanted that --metric names, each once; None when it is not given."""
    from owkg.metrics import metric

    if not names:
        return None
    try:
        found = [metric(part) for name in names for part in split_names(name)]
    except ValueError as error:
        raise ValueError(f"--metric: {error}") from None
    return list({one.name: one for one in found}.values())


def split_names(text: str) -> list[str]:
    """The names in a list with commas; a comma before a number belongs to the name before it (probe@1,0)."""
    names: list[str] = []
    for part in text.split(","):
        stripped = part.strip()
        if names and stripped and (stripped[0].isdigit() or stripped[0] == "."):
            names[-1] += "," + stripped
        else:
            names.append(part)
    return names


def _found(
    tables: list[tuple[Path, Any]], wanted: Any, seed: int, **options: Any
) -> tuple[list[tuple[int, int]], Any]:
    """Tasks and tied tasks of each table, and the reports, one under the other; the tables are used up."""
    import polars as pl

    from owkg.metrics import report, tasks_of

    frames, sizes = [], []
    with progress("Computing", "parts") as update:
        while tables:
            path, table = tables.pop(0)
            try:
                tasks, rows = tasks_of(table)
                del table  # ten million ranks take half a GiB
                rows = rows.select(pl.col("side").cast(pl.Categorical), pl.col(_GROUPS & set(rows.columns)))
                sizes.append((len(rows), int((tasks.optimistic < tasks.pessimistic).sum())))
                frames.append(report((tasks, rows), wanted, key=seed, on_progress=update, **options))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
            _note_few(path, frames[-1])
            missing = [s.name for s in wanted or () if s.name not in frames[-1]["metric"]]
            if missing:
                raise ValueError(f"--metric: {path} has no {', '.join(missing)}: {_NO_LIST}")
            if "macro-mrr" not in frames[-1]["metric"] and wanted is None:
                note(f"{path}: no macro metrics: {_NO_LIST}")
    return sizes, pl.concat(frames)


# What a report may be divided by, beside the side.
_GROUPS = {"model", "relation", "category", "popularity"}


def _note_few(path: Path, found: Any) -> None:
    """Says where intervals rest on few queries, or on one that carries much of the weight."""
    import polars as pl

    from owkg.metrics import FEW_QUERIES, HEAVY_QUERY

    few = pl.col("effective_queries") < FEW_QUERIES
    heavy = pl.col("heaviest_query") > HEAVY_QUERY
    known = found.filter(pl.col("ci_low").is_not_null())
    whole = known.filter(pl.col("by").is_null(), few | heavy)
    for (model,), rows in whole.group_by(["model"], maintain_order=True):
        worst = rows.sort("effective_queries").row(0, named=True)
        metrics = rows["metric"].unique(maintain_order=True).to_list()
        named = ", ".join(metrics[:3]) + (", ..." if len(metrics) > 3 else "")
        why = []
        if worst["effective_queries"] < FEW_QUERIES:
            why.append(
                f"{worst['queries']:,} queries count as {worst['effective_queries']:.1f} of equal weight, "
                f"fewer than {FEW_QUERIES}"
            )
        if worst["heaviest_query"] > HEAVY_QUERY:
            why.append(f"one query carries {worst['heaviest_query']:.0%} of the weight")
        whose = path if model is None else model
        note(f"{whose}: {' and '.join(why)} ({named}): the intervals may be too narrow.")
    groups = known.filter(pl.col("by").is_not_null())
    groups = groups.group_by("model", "by", "group").agg(few=(few | heavy).any())
    if groups["few"].any():
        note(
            f"{path}: {groups['few'].sum():,} of {len(groups):,} groups rest on fewer than {FEW_QUERIES} "
            f"effective queries, or on one that weighs more than {HEAVY_QUERY:.0%}: their intervals may be "
            "too narrow."
        )


_NO_LIST = (
    "the answers of a query are in no one list, for its tasks differ in their number of candidates, "
    "or its other answers are not filtered."
)
