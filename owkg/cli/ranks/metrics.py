"""`owkg metrics`: rank metrics with chance levels and confidence intervals."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from owkg.cli.commands import Given
from owkg.cli.inputs import check_figure, check_readable, check_writable, graph_of, metrics_given, noted
from owkg.cli.options import GraphOptions, Names, TableOptions, file_names_given, split_list
from owkg.cli.output import show, table_of, wrote
from owkg.cli.ranks.sampled_negatives import SampledNegatives, print_full_values
from owkg.errors import naming
from owkg.files.storage import writable_folder
from owkg.terminal.progress import progress

if TYPE_CHECKING:
    import polars as pl

    from owkg.ranks import RankDataset, RankTable
    from owkg.ranks.reading import TableReading


# Default number of bootstrap resamples.
_REPLICATES = 1000
# Options whose name differs from the argument of the library.
_FROM = {"num_entities": "`probe_entities`", "shares": "`reweight`", "level": "`ci`"}
# Options that have no effect on ranks among sampled negatives.
_OF_FULL_RANKS = (
    "kg", "layout", "duplicates", "by", "interval", "replicates", "seed", "reweight", "probe_entities",
    "keys", "figure", "figures", "mean_of_sides", "columns", "untied", "realistic", "candidates", "ids",
    "name",
)  # fmt: skip
# Options that have no effect on the mean of both sides.
_OF_TASKS = (
    "kg", "layout", "duplicates", "by", "ci", "interval", "replicates", "seed", "reweight", "probe_entities",
    "keys", "figure", "figures",
)  # fmt: skip
_DIVISIONS = ("side", "ties", "relation", "category", "popularity", "half-link", "seed")

_LETTERS = (
    "r: ranks, N: candidates, n: tasks, w: weights; M: a plain metric, E and V: its mean and variance under "
    "random ranking, B: its best value."
)


def metrics(
    files: list[Path] | None = None,
    *,
    given: Given,
    metric: list[str] | None = None,
    by: str = "",
    kg: Path | None = None,
    name: Names = None,
    how: GraphOptions,
    tables: TableOptions,
    ci: float = 0.95,
    interval: Literal["analytic", "percentile", "bca"] = "analytic",
    replicates: Annotated[int | None, typer.Option(min=2)] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1)] = 0,
    reweight: str | None = None,
    probe_entities: int | None = None,
    format_: Literal["table", "json", "csv", "latex"] = "table",
    keys: Annotated[Literal["owkg", "pykeen"], typer.Option("--json-keys")] = "owkg",
    figure: Path | None = None,
    figures: Path | None = None,
    mean_of_sides: bool = False,
    among: SampledNegatives,
    list_: bool = False,
) -> None:
    """Compute rank metrics with confidence intervals and their values under random ranking.

    A confidence interval covers other queries of the same kind: owkg treats whole queries, not single
    answers, as independent. For a model with several seeds (column seed), owkg prints the mean over seeds,
    the standard deviation over seeds, and an interval for other queries and other seeds. The chance level is
    the mean under random ranking, computed from the number of candidates of each task.

    Tables show both sides together and realistic ranks, unless you divide them with --by side,ties. JSON and
    CSV contain all sides and tie rules; "exact" is the mean over a random order of tied answers.

    Args:
        files (FILE...): Rank tables, .parquet, .csv or .tsv; one row of results for each model. A folder of
            Parquet files, or a pattern in quotation marks ('ranks/*.parquet'), is one table, which need not
            fit in memory.
        metric (METRIC,...): Metrics that --list shows, or aliases of them. Several with commas, or repeat the
            option. Default: all of them in JSON, CSV and for a single model, otherwise the usual ones.
        by (NAME,...): Divide results by side, ties, relation, category, popularity, half-link (whether (h, r)
            and (r, t) occur in train) or seed; several with commas. Default: no division.
        kg (DIR): Folder of the graph. Needed for popularity, relation categories and half-links, and for the
            number of candidates if the table has no such column.
        list_: Print every metric with its formula and source, and exit.

    Tests and intervals:
        ci (LEVEL): Level of the confidence intervals, in (0, 1).
        interval: Method of the intervals: analytic (central limit theorem), percentile or bca (bootstrap).
            Each treats whole queries as independent.
        replicates (N): Number of bootstrap resamples. Only with --interval percentile or bca. Default: 1000.
        seed (N): Seed of the bootstrap and of drawn chance levels. Equal seeds give equal numbers.

    Output:
        format_: Print a table to read, JSON, CSV, or a LaTeX table (booktabs).
        figure (FILE): Draw the values with their intervals: .png, .pdf or .svg.
        figures (DIR): Folder for figures: the histogram of ranks, and PROBE over its parameters. Default: no
            figures.

    Rarely needed:
        reweight (uniform|FILE): Weigh relations equally, or by a file of lines relation<TAB>share, in all
            micro metrics. Default: by their number of test triples.
        probe_entities (N): Number of entities in the rank transformer of PROBE, for all tasks. Default: the
            number of candidates of each task.
        keys (owkg|pykeen): Keys of --format json: nested by side, tie rule and metric (owkg), or flat as
            PyKEEN's side.ties.metric.
        mean_of_sides: Rank each triple by the mean of its head rank and its tail rank, as some papers do.

    Examples:
        owkg metrics ranks.parquet
        owkg metrics ranks.parquet --kg data/fb15k237 --by side,category --format json
        owkg metrics transe.parquet complex.parquet --metric mrr,hits@10,amri --format latex
        owkg metrics --sampled-negatives 500 --num-entities 2500604 --published mrr=0.98,hits@10=0.99
        owkg metrics ranks.parquet --metric probe@0.5,0.5,macro-map@20 --interval bca --replicates 2000
    """
    from owkg.cli.ranks import metrics_output as output

    if list_:
        why = "has no effect with --list, which prints all metrics"
        given.refuse(sorted(given - {"list_", "format_"}), why)
        if format_ == "latex":
            raise ValueError(f"`format` must be table, json or csv with --list, got {format_}.")
        from owkg.metrics.registry import LISTING

        output.print_listing(LISTING, format_, _LETTERS)
        return
    if among.sampled_negatives is not None:
        given.refuse(_OF_FULL_RANKS, "has no effect with --sampled-negatives")
        if among.published:
            given.refuse(["ci"], "has no effect with --published, because published values have no queries")
        print_full_values(files or [], metric, among, ci, format_)
        return
    given.refuse(["num_entities", "published"], "needs --sampled-negatives")
    how.require(kg)
    if not files:
        raise ValueError("FILE is missing: name at least one rank table, or use --list.")
    names = None if name is None else file_names_given(files, name)
    if mean_of_sides:
        given.refuse(_OF_TASKS, "has no effect with --mean-of-sides")
    if keys == "pykeen" and format_ != "json":
        raise ValueError(f"`keys` pykeen needs --format json, got --format {format_}.")
    if interval == "analytic":
        why = "has no effect with --interval analytic; only percentile and bca resample"
        given.refuse(["replicates"], why)
    check_figure(figure)
    check_writable([figure], [path for path in files if path.is_file()])
    reading = tables.reading()
    if mean_of_sides:
        if format_ not in ("table", "json"):
            raise ValueError(f"`format` must be table or json with --mean-of-sides, got {format_}.")
        _print_side_means(files, metric, format_, reading=reading, names=names)
        return
    everything = format_ in ("json", "csv")
    divisions = _divisions(by)
    with naming(_FROM):
        chosen = metrics_given(metric)
        found, sizes, protocol = _computed(
            files,
            kg,
            how,
            reweight,
            figures,
            reading,
            names,
            metrics=chosen,
            by=[name for name in divisions if name not in ("side", "ties")],
            sides=("head", "tail", "relation", "both") if everything or "side" in divisions else ("both",),
            ties=("optimistic", "pessimistic", "realistic", "exact")
            if everything or "ties" in divisions
            else ("realistic",),
            level=ci,
            interval=interval,
            replicates=replicates or _REPLICATES,
            num_entities=probe_entities,
            key=seed,
        )
    if figure is not None:
        from owkg.plots import save_figure, values

        save_figure(values(output.drawn(found, divisions)), figure)
        wrote(figure)
    if format_ == "json":
        show(format_, output.nested_metrics(found, pykeen=keys == "pykeen"))
    elif format_ == "latex":
        table, said = output.metrics_for_papers(found, ci)
        show(format_, {}, [table], [said])
    elif format_ == "table":
        output.print_metrics(found, ci, sizes, protocol)
    else:
        show(format_, {}, frame=found)


def _computed(
    files: list[Path],
    kg: Path | None,
    how: GraphOptions,
    reweight: str | None,
    figures: Path | None,
    reading: "TableReading",
    names: list[str] | None,
    **options: Any,
) -> "tuple[pl.DataFrame, list[tuple[int, int]], str]":
    """Report, (tasks, tied tasks) of each table, and filter of the ranks; also draws the figures."""
    from owkg import checks
    from owkg.metrics.sources import reports
    from owkg.ranks import RankTable
    from owkg.ranks.dataset import is_dataset
    from owkg.ranks.together import by_model, read_shares, read_tables

    checks.level("ci", options["level"])
    if figures is not None:
        writable_folder(figures, "figures")
    check_readable([path for path in files if not is_dataset(path)])
    all_ranks = {"reweight": reweight, "figures": figures, "interval": options["interval"] != "analytic"}
    needed_by = next((name for name, value in all_ranks.items() if value), None)
    with noted():
        with progress("reading"):
            graph = graph_of(kg, how)
            shares = reweight if reweight in (None, "uniform") else read_shares(Path(str(reweight)))
            given: dict[str, Any] = {"shares": shares, "reading": reading, "needed_by": needed_by}
            read = read_tables(files, graph, names=names, **given)
            paths, tables = by_model(files, read)
            del read
        if figures is not None:
            from owkg.plots.ranks import rank_figures

            for path in rank_figures([one for one in tables if isinstance(one, RankTable)], figures):
                wrote(path)
        with progress("Computing", "parts") as update:
            protocol = _filter(tables)  # reports() releases the tables one by one
            return *reports(paths, tables, graph=graph, on_progress=update, **options), protocol


def _filter(tables: "list[RankTable | RankDataset]") -> str:
    """Filter of the ranks in words; empty unless all tables have the same."""
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
    files: list[Path], metric: list[str] | None, form: str, *, reading: "TableReading", names: Any
) -> None:
    """Prints the output of `--mean-of-sides`, without intervals and chance levels, which are unknown here."""
    import polars as pl

    from owkg.metrics import side_means
    from owkg.ranks import RankTable
    from owkg.ranks.dataset import is_dataset
    from owkg.ranks.together import by_model, read_tables

    check_readable([path for path in files if not is_dataset(path)])
    with noted():
        read = read_tables(files, reading=reading, needed_by="mean_of_sides", names=names)
        _, tables = by_model(files, read)
    options: dict[str, Any] = {} if metric is None else {"metrics": metrics_given(metric)}
    found = pl.concat(
        [side_means(table, **options) for table in tables if isinstance(table, RankTable)], how="diagonal"
    )
    title = "Triples ranked by the mean of both sides, compared with all ranking tasks"
    show(form, {"of_triples": found}, [table_of(title, found, ".6g")])


def _divisions(text: str) -> list[str]:
    names = split_list(text)
    for name in names:
        if name not in _DIVISIONS:
            raise ValueError(f"`by` must name some of {', '.join(_DIVISIONS)}, got {name!r}.")
    return names
