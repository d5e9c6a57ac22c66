"""Output of `owkg rank`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli.embeddings.scorers import Source, scorer_of
from owkg.cli.options import Format
from owkg.cli.output import Table, show, show_metrics, write_frame
from owkg.errors import naming
from owkg.terminal.progress import progress

if TYPE_CHECKING:
    import polars as pl

    from owkg.kg import KnowledgeGraph
    from owkg.kg.read import Reading

_METRICS = ("mrr", "hits@10", "mr")
# Number of entities below which intervals of sampled evaluation are too short.
_FEW = 1000


def filtered_by(names: Sequence[str]) -> str:
    """Splits that filtered the ranks, in words."""
    return f"filtered by {', '.join(names)}" if names else "not filtered"


def filter_note(table: "pl.DataFrame", split: str | None, names: Sequence[str]) -> list[str]:
    """Note if the ranked answers are not known in the filter, so that they stay each other's candidates."""
    if not names or "filtered" not in table.columns or table["filtered"].all():
        return []
    what = "some ranked answers are" if split is None else f"{split} is"
    return [f"{what} not in the filter ({', '.join(names)}): the other answers to a query stay candidates"]


def unseen_note(unseen: dict[str, Any], split: str | None) -> list[str]:
    """Note on entities and relations that the model has never seen."""
    if not unseen:
        return []
    done = {"drop": "dropped", "last": "ranked last"}[unseen["policy"]]
    return [
        f"the model has never seen {unseen['entities']:,} entities and {unseen['relations']:,} relations of "
        f"the graph: {unseen['triples']:,} triples of {split or 'the split'} that contain one are {done}; "
        f"candidates are the {unseen['candidates']:,} entities that the model has seen"
    ]


def values_by_side(table: "pl.DataFrame", names: Sequence[str]) -> list[dict[str, Any]]:
    """Value of each metric by side of a rank table; with several seeds, also the deviation over seeds."""
    from owkg import metrics

    found = metrics.report(
        metrics.tasks_of(table), [metrics.metric(name) for name in names], ties=["realistic"], level=None
    )
    sides = table["side"].unique(maintain_order=True).to_list()
    sides += ["both"] if len(sides) > 1 else []
    results = []
    for name in names:
        by_side = {row["side"]: row for row in found.filter(metric=name).iter_rows(named=True)}
        result: dict[str, Any] = {"metric": name} | {side: by_side[side]["value"] for side in sides}
        if "seeds" in found.columns:
            result["over_seeds"] = by_side[sides[-1]]["deviation_over_seeds"]
        results.append(result)
    return results


def show_ranks(
    source: Path,
    table: "pl.DataFrame",
    out: Path,
    about: dict[str, Any],
    form: Format,
    lines: Sequence[str],
    notes: Sequence[str],
) -> None:
    """Prints a few metrics of a rank table by side, and how the table was made."""
    results = values_by_side(table, _METRICS)
    setting: dict[str, Any] = {"split": about["split"], "ranks": table.height}
    setting |= {key: about[key] for key in ("precision",) if key in about}
    if form is Format.JSON:
        setting |= {"filtered": bool(table["filtered"].all()), "filter": about["filter"], "out": str(out)}
    else:
        setting |= {"filtered by": ", ".join(about["filter"]) or "nothing"}
    more = {key: about[key] for key in ("queries", "unseen") if key in about}
    show_metrics(str(source), setting, results, form, lines, notes=notes, **more)


def show_estimates(
    source: Source,
    read: "Callable[[Path, Reading], KnowledgeGraph]",
    metrics: list[str],
    options: dict[str, Any],
    out: Path | None,
    form: Format,
) -> None:
    """Prints unbiased estimates of metrics of a scorer, and writes them if `out` is given."""
    from owkg.evaluation import sampled

    if out is not None and out.suffix.lower() != ".csv":
        raise ValueError(f"`out` must end in .csv with --sample, got {out}.")
    scorer, notes = scorer_of(source, "error", read)
    names = {"share": "`sample`", "more": "`typical`", "trained": f"{source.path}: its parameters"}
    with progress("Sampling", "thousandths") as update, naming(names):
        found = sampled(scorer.trained, scorer.graph, metrics, on_progress=update, **options)
    if out is not None:
        write_frame(found.values, out)
    none = found.values.filter(found.values["sampling_error"] == 0)
    if len(none) and found.typical_share < 1:
        named = ", ".join(f"{side} {metric}" for side, metric in none.select("side", "metric").rows())
        notes.append(f"a sampling error of 0 means that the sample found nothing, not precision: {named}")
    if found.typical_share + found.sampled_share > 1:
        notes.append("more scores than full evaluation needs: leave out --sample, or choose a smaller share")
    if scorer.graph.num_entities < _FEW:
        notes.append(
            f"with only {scorer.graph.num_entities:,} entities these intervals are too short; full "
            "evaluation is fast and has no sampling error"
        )
    cells = [
        [
            row["side"],
            row["metric"],
            f"{row['value']:.4f}",
            f"[{row['ci_low']:.4f}, {row['ci_high']:.4f}]",
            "-" if row["full_low"] is None else f"[{row['full_low']:.4f}, {row['full_high']:.4f}]",
            f"{row['sampling_error']:.4f}",
        ]
        for row in found.values.iter_rows(named=True)
    ]
    heads = ["side", "metric", "estimate", "95% interval", "full evaluation", "error"]
    title = f"{source.path}: unbiased estimates, {options['ties']} ranks, {options['split']}"
    told = (
        f"scores computed: {found.typical_share + found.sampled_share:.1%} of all ({found.typical_share:.1%} "
        f"for typical candidates, {found.sampled_share:.2%} for other candidates)"
    )
    shares = {"typical_share": found.typical_share, "sampled_share": found.sampled_share}
    show(form, {"results": found.values, **shares}, [Table(title, heads, cells)], [told], notes=notes)
