"""`owkg metrics`: rank metrics with chance levels and confidence intervals."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from owkg.cli.inputs import check_readable, graph_in
from owkg.cli.options import refuse_given
from owkg.cli.systems import noted
from owkg.errors import naming
from owkg.terminal.progress import progress

if TYPE_CHECKING:
    from owkg.ranks import RankDataset, RankTable


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


_SAMPLED = "Ranks among sampled negatives"
# Of the bootstrap, where nobody says.
_REPLICATES = 1000
# Arguments of the library that come from an option of another name.
_FROM = {"num_entities": "`probe_entities`", "shares": "`reweight`", "level": "`ci`"}
# Options that have no meaning for ranks among sampled negatives.
_OF_FULL_RANKS = (
    "kg", "by", "interval", "replicates", "seed", "reweight", "probe_entities", "keys", "figures",
    "mean_of_sides", "untied",
)  # fmt: skip
_DIVISIONS = ("side", "ties", "relation", "category", "popularity", "half-link", "seed")


def metrics(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE...",
            help="Rank tables, .parquet, .csv or .tsv; one row a model. A folder of Parquet files, or a "
            "pattern in quotation marks ('ranks/*.parquet'), is one table, which need not fit in memory.",
        ),
    ] = None,
    kg: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of the graph: popularity, relation categories, half-links; candidates of a table "
            "without that column.",
        ),
    ] = None,
    untied: Annotated[
        bool, typer.Option("--untied", help="Take a column rank, in a file of ranks alone, as free of ties.")
    ] = False,
    by: Annotated[
        str,
        typer.Option(
            help="Divide by side, ties, relation, category, popularity, half-link (whether (h, r) and (r, t) "
            "are in train), seed; several with commas."
        ),
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
    replicates: Annotated[
        int | None, typer.Option(help=f"Of the bootstrap. [default: {_REPLICATES}]", min=2)
    ] = None,
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
    mean_of_sides: Annotated[
        bool,
        typer.Option(
            "--mean-of-sides", help="Of triples, each ranked by the mean of its head and tail rank."
        ),
    ] = False,
    sampled_negatives: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Ranks are among K uniform negatives: print which values of full evaluation agree. "
            "With --num-entities.",
            min=1,
            rich_help_panel=_SAMPLED,
        ),
    ] = None,
    num_entities: Annotated[
        int | None,
        typer.Option(
            help="Candidates of full evaluation, with --sampled-negatives.", rich_help_panel=_SAMPLED
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            metavar="METRIC=VALUE,...",
            help="Instead of FILE, with --sampled-negatives: published values, as mrr=0.98,hits@10=0.99.",
            rich_help_panel=_SAMPLED,
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", help="Print every metric, with formula and source.")
    ] = False,
) -> None:
    """Rank metrics of one or several models: value, confidence interval, chance level.

    A confidence interval is for other queries of the same kind: whole queries are the sampling unit.
    A model with several seeds (column seed) has the mean over them, its standard deviation over seeds, and an
    interval for other queries and other seeds.
    The chance level is the mean under random ranking, with each task's own number of candidates.

    Tables show both sides together and realistic ranks, unless divided --by side,ties. JSON and CSV have
    all sides and tie rules; "exact" is the mean over a random order of ties.
    """
    from owkg.cli.ranks import metrics_output as output

    if list_:
        output.print_listing(form)
        return
    if sampled_negatives is None and (num_entities is not None or published is not None):
        raise ValueError("`num_entities` and --published need --sampled-negatives.")
    if sampled_negatives is not None:
        refuse_given(context, _OF_FULL_RANKS, "with --sampled-negatives")
        refuse_given(context, ["ci"] if published else [], "with --published, which has no queries")
        from owkg.cli.ranks.sampled_negatives import print_full_values

        print_full_values(files or [], metric, sampled_negatives, num_entities, published, ci, form.value)
        return
    if not files:
        raise ValueError("FILE is missing: name at least one rank table, or ask for --list.")
    if keys is Keys.PYKEEN and form is not MetricsFormat.JSON:
        raise ValueError(f"`keys` pykeen is a form of --format json, got --format {form.value}.")
    if replicates is not None and interval is IntervalName.ANALYTIC:
        raise ValueError("`replicates` has no effect with --interval analytic; percentile and bca resample.")
    if mean_of_sides:
        others = bool(by or reweight or figures or probe_entities)
        _print_side_means(files, metric, form, others=others, untied=untied)
        return
    everything = form in (MetricsFormat.JSON, MetricsFormat.CSV)
    divisions = _divisions(by)
    with naming(_FROM):
        chosen = _metrics(metric)
        found, sizes, protocol = _computed(
            files,
            kg,
            reweight,
            figures,
            untied,
            metrics=chosen,
            by=[name for name in divisions if name not in ("side", "ties")],
            sides=("head", "tail", "relation", "both") if everything or "side" in divisions else ("both",),
            ties=("optimistic", "pessimistic", "realistic", "exact")
            if everything or "ties" in divisions
            else ("realistic",),
            level=ci,
            interval=interval.value,
            replicates=replicates or _REPLICATES,
            num_entities=probe_entities,
            key=seed,
        )
    if form is MetricsFormat.JSON:
        output.print_json(found, keys is Keys.PYKEEN)
    elif form is MetricsFormat.CSV:
        print(found.write_csv(), end="")
    elif form is MetricsFormat.LATEX:
        output.print_latex(found, ci)
    else:
        output.print_tables(found, ci, sizes, protocol)


def _computed(
    files: list[Path],
    kg: Path | None,
    reweight: str | None,
    figures: Path | None,
    untied: bool,
    **options: Any,
) -> tuple[Any, list[tuple[int, int]], str]:
    """The report, tasks and tied tasks of each table, and what filtered them; figures are drawn."""
    from owkg import checks
    from owkg.files.storage import writable_folder
    from owkg.metrics.sources import reports
    from owkg.ranks import RankTable
    from owkg.ranks.dataset import is_dataset
    from owkg.ranks.together import by_model, read_shares, read_tables

    checks.level("ci", options["level"])
    if figures is not None:
        writable_folder(figures)
    check_readable([path for path in files if not is_dataset(path)])
    all_ranks = {"reweight": reweight, "figures": figures, "interval": options["interval"] != "analytic"}
    needed_by = next((name for name, value in all_ranks.items() if value), None)
    with noted():
        with progress("reading"):
            graph = None if kg is None else graph_in(kg)
            shares = reweight if reweight in (None, "uniform") else read_shares(Path(str(reweight)))
            read = read_tables(files, graph, shares=shares, untied=untied, needed_by=needed_by)
            paths, tables = by_model(files, read)
            del read
        if figures is not None:
            from owkg.plots.ranks import rank_figures

            for path in rank_figures([one for one in tables if isinstance(one, RankTable)], figures):
                print(f"wrote {path}", file=sys.stderr)
        with progress("Computing", "parts") as update:
            protocol = _filter(tables)  # the tables are given up one by one
            return *reports(paths, tables, graph=graph, on_progress=update, **options), protocol


def _filter(tables: "list[RankTable | RankDataset]") -> str:
    """What filtered the ranks, as far as all the tables say the same."""
    from owkg.ranks import RankDataset

    said = set()
    for table in tables:
        if isinstance(table, RankDataset):
            return ""
        known = table.frame["filtered"] if "filtered" in table.frame.columns else None
        word = "" if known is None else "filtered" if known.all() else "" if known.any() else "raw"
        names = table.about.get("filter") or ()
        said.add(f"filtered by {', '.join(names)}" if names else word)
    return said.pop() if len(said) == 1 else ""


def _print_side_means(
    files: list[Path], names: list[str] | None, form: MetricsFormat, *, others: bool, untied: bool
) -> None:
    """What `--mean-of-sides` prints: no intervals and no chance levels, which nobody knows of such ranks."""
    import polars as pl

    from owkg.cli.output import rows_of
    from owkg.metrics import side_means
    from owkg.ranks import RankTable
    from owkg.ranks.dataset import is_dataset
    from owkg.ranks.together import by_model, read_tables
    from owkg.terminal.tables import printed

    if others or form not in (MetricsFormat.TABLE, MetricsFormat.JSON):
        raise ValueError("--mean-of-sides stands alone: with FILE, --metric and --format table or json.")
    check_readable([path for path in files if not is_dataset(path)])
    with noted():
        _, tables = by_model(files, read_tables(files, untied=untied, needed_by="mean_of_sides"))
    chosen = {} if names is None else {"metrics": _metrics(names)}
    found = pl.concat(
        [side_means(table, **chosen) for table in tables if isinstance(table, RankTable)], how="diagonal"
    )
    if form is MetricsFormat.JSON:
        print(json.dumps({"of_triples": rows_of(found)}, indent=2))
        return
    cells = [[f"{x:.6g}" if isinstance(x, float) else str(x) for x in row] for row in found.iter_rows()]
    printed("Triples, ranked by the mean of both sides; and all ranking tasks", found.columns, cells)


def _divisions(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in _DIVISIONS:
            raise ValueError(f"`by` must be of {', '.join(_DIVISIONS)}, got {name!r}.")
    return names


def _metrics(names: list[str] | None) -> Any:
    from owkg.metrics.front import metrics_named

    return metrics_named([part for name in names for part in split_names(name)]) if names else None


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
