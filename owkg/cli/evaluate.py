"""`owkg evaluate`: the ranks of a trained model, or of embeddings trained elsewhere."""

import warnings
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from owkg.cli.options import Format, OutputFormat, named_values, naming_options
from owkg.cli.output import show
from owkg.cli.progress import progress

_METRICS = ("mrr", "hits@10", "mr")


def evaluate(
    out: Annotated[Path, typer.Option(help="Rank table to write: .parquet, .csv, .tsv, .csv.gz or .tsv.gz.")],
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="Folder that owkg train wrote.")] = None,
    embeddings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of RUN: .npz or .safetensors of embeddings and labels."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="That --embeddings are of; owkg models lists them.")
    ] = None,
    norm: Annotated[int | None, typer.Option(help="Of the distance of transe, 1 or 2.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Another option of --model, such as margin=9; repeatable."),
    ] = None,
    kg: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the graph; that of the training when absent."),
    ] = None,
    step: Annotated[
        str | None,
        typer.Option(
            help="Checkpoint of RUN: best on the validation set, last, or a step.", show_default="best"
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Whose triples are ranked.")] = "test",
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            help="Splits whose known answers leave the candidates, or none.",
            show_default="train,valid,test, as far as the graph has them",
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="As --filter none: no answer leaves the candidates.")
    ] = False,
    sides: Annotated[str, typer.Option(help="That are asked for: head, tail, or both.")] = "head,tail",
    tolerance: Annotated[float, typer.Option(help="Scores that differ by at most this are ties.")] = 0.0,
    name: Annotated[str | None, typer.Option(help="For the column model; absent: no such column.")] = None,
    popularity: Annotated[
        bool, typer.Option("--popularity", help="Add popularity and relation category, counted in train.")
    ] = False,
    score: Annotated[
        bool, typer.Option("--score", help="Add the score of each answer: what other labels need.")
    ] = False,
    lists: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the best answers to each question as a TREC run."),
    ] = None,
    depth: Annotated[int, typer.Option(min=1, help="How many of them, of --lists.")] = 100,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Ranks the answer of every triple of a split among all entities, on both sides, filtered.

    Entities are shared out among all devices that JAX sees; the number of devices changes no rank.
    """
    from owkg.evaluate import ranks
    from owkg.ranks import write_ranks
    from owkg.ranks.files import path_checked

    out = path_checked(out)
    if raw and filter_ is not None:
        raise ValueError(f"`filter` says nothing with --raw, got {filter_!r}.")
    filters = [] if raw else _filters(filter_)
    given: dict[str, Any] = {} if norm is None else {"norm": norm}
    given |= named_values(option or [], taken=given)
    source, scorer, notes = _scorer(run, embeddings, model, given, kg, step)
    for path in filter(None, (out, lists)):
        _check_writable(path)
    with progress("Ranking", "ranks") as update:
        try:
            table = ranks(
                *scorer,
                split=split,
                sides=_names(sides),
                tolerance=tolerance,
                name=name,
                popularity=popularity,
                score=score,
                on_progress=update,
                filter_splits=filters,
            )
        except ValueError as error:
            raise ValueError(str(error).replace("`params`", f"{source}: its parameters")) from None
    write_ranks(table, out)
    written = [f"wrote {out}: {table.height:,} ranks"]
    if lists is not None:
        from owkg.cli.evaluate_lists import write_lists

        asked = write_lists(
            lists,
            *scorer,
            split=split,
            sides=_names(sides),
            depth=depth,
            name=name or source.name.partition(".")[0],
        )
        written.append(f"wrote {lists}: the best {depth} answers to {asked:,} questions")
    _show(source, table, out, split, notes, form)
    if form is Format.TABLE:
        for text in (*written, *(f"note: {note}" for note in notes)):
            print(text)


class _Scorer(NamedTuple):
    """What ranks: a model and the graph that its rows are of."""

    model: Any
    params: Any
    statistics: Any
    graph: Any


def _scorer(
    run: Path | None,
    embeddings: Path | None,
    model: str | None,
    options: dict[str, Any],
    kg: Path | None,
    step: str | None,
) -> tuple[Path, _Scorer, list[str]]:
    """(where it comes from, what ranks, notes on the graph)."""
    if run is not None and embeddings is None:
        if model is not None or options:
            raise ValueError("`model` and its options are those that RUN was trained with; leave them out.")
        return run, *_of_run(run, kg, "best" if step is None else step)
    if embeddings is None or run is not None:
        raise ValueError("name either RUN, a folder of owkg train, or --embeddings.")
    if step is not None:
        raise ValueError(f"`step` says nothing with --embeddings, got {step!r}.")
    if model is None or kg is None:
        raise ValueError("`embeddings` needs --model, and --kg for the graph.")
    from owkg.models import import_embeddings

    graph, notes = _graph(kg)
    with naming_options(("model", "norm", "embeddings", "kg")):
        scorer = import_embeddings(embeddings, graph, model, **options)
    return embeddings, _Scorer(*scorer, graph), notes


def _of_run(run: Path, kg: Path | None, step: str) -> tuple[_Scorer, list[str]]:
    """What a folder of `owkg train` ranks by, rows in the order of the graph's ids."""
    from owkg.train import load_run

    loaded = load_run(run, step=int(step) if step.isdecimal() else step)
    folder = loaded.graph_folder if kg is None else kg
    if folder is None:
        raise ValueError(f"{run}: says nothing of the folder of its graph; name it by `kg`.")
    graph, notes = _graph(folder)
    for what in ("entities", "relations"):
        rows, labels = getattr(loaded, what), getattr(graph, what)
        if rows != labels:
            at = next((i for i, (a, b) in enumerate(zip(rows, labels, strict=False)) if a != b), None)
            found = f"{len(labels)}" if at is None else f"{labels[at]!r} where {rows[at]!r} is"
            raise ValueError(f"{folder}: must have the {len(rows)} {what} of {run} in order, got {found}.")
    notes += _other_facts(run, graph)
    return _Scorer(loaded.model, loaded.params, loaded.statistics, graph), notes


def _other_facts(run: Path, graph: Any) -> list[str]:
    """A note if a run was not trained on the facts of a graph."""
    from owkg.provenance import read_metadata
    from owkg.train import facts_checksums

    then, now = read_metadata(run).get("facts_sha256"), facts_checksums(graph)
    if then == now:
        return []
    if not isinstance(then, dict):
        return [f"{run} does not say what facts it was trained on"]
    other = [name for name in then | now if then.get(name) != now.get(name)]
    return [f"the facts of {' and '.join(other)} are not those that {run} was trained with"]


def _graph(folder: Path) -> tuple[Any, list[str]]:
    """The graph, and the warnings about it."""
    from owkg.kg import read_graph

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        graph = read_graph(folder)
    return graph, [str(warning.message) for warning in caught]


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _filters(text: str | None) -> list[str] | None:
    """The splits that `--filter` names; None: those that there are."""
    if text is None:
        return None
    names = _names(text)
    if not names:
        raise ValueError(f"`filter` must name splits, or be none, got {text!r}.")
    return [] if names == ["none"] else names


def _check_writable(out: Path) -> None:
    """Stops where a file cannot be written, before the work and not after it."""
    from owkg.files import writable_folder

    if out.is_dir():
        raise IsADirectoryError(f"{out}: cannot be written: it is a folder.")
    try:
        writable_folder(out.parent)
    except OSError as error:
        raise OSError(f"{out}: cannot be written: {error.strerror}.") from None


def _show(source: Path, table: Any, out: Path, split: str, notes: list[str], form: Format) -> None:
    from owkg import metrics

    tasks, rows = metrics.tasks_of(table)
    side = rows["side"].to_numpy()
    results = []
    names = {name: metrics.summary(name) for name in _METRICS}
    parts = {one: metrics.part_of(tasks, side == one) for one in dict.fromkeys(side.tolist())}
    if len(parts) > 1:
        parts["both"] = tasks
    for name, summary in names.items():
        values = {
            which: metrics.evaluate(part, [summary], ties=[metrics.Ties.REALISTIC], level=None)
            for which, part in parts.items()
        }
        found = {which: value[metrics.Ties.REALISTIC][name].value for which, value in values.items()}
        results.append({"metric": name} | found)
    filtered = bool(table["filtered"].all())
    setting = {"split": split, "ranks": table.height, "filtered": str(filtered).lower()}
    if form is Format.JSON:
        setting |= {"out": str(out)}
    show(f"{source}", setting, results, form, notes=notes)
