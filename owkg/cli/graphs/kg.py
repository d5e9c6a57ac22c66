"""`owkg kg`: statistics and samples of a knowledge graph."""

from pathlib import Path
from typing import Any

from owkg.cli.commands import group
from owkg.cli.inputs import graph_and_notes, noted_line
from owkg.cli.options import Format, GraphOptions, OutputFormat, Overwrite, Seed
from owkg.cli.output import show
from owkg.terminal.progress import progress
from owkg.terminal.tables import line, printed


def info(folder: Path, *, how: GraphOptions, form: OutputFormat = Format.TABLE) -> None:
    """Show sizes, duplicates, leakage between splits, relation categories, queries and popularity of a graph.

    Duplicates are triples that occur in a split more than once. A triple (h, r, t) is reversed if train links
    t to h by any relation. An entity or relation is unseen if no training triple contains it. Categories and
    popularity count training triples; queries count the distinct facts of all splits. Splits of false triples
    (CoDEx) do not count as facts.

    Args:
        folder (DIR): Folder of the graph, in any usual layout.

    Examples:
        owkg kg info data/fb15k237
        owkg kg info data/fb15k237 --format json
        owkg kg info edges --layout head=subject,relation=predicate,tail=object
    """
    from owkg import kg

    graph, notes = graph_and_notes(folder, how, duplicates="keep")
    for text in notes:
        noted_line(text)
    with progress("counting"):
        statistics = kg.graph_statistics(graph)
    show(form, {"folder": str(folder), **statistics})
    if form is Format.TABLE:
        _show(folder, statistics)


def sample(
    folder: Path,
    out: Path,
    *,
    share: float,
    split: str = "test",
    seed: Seed = 0,
    how: GraphOptions,
    overwrite: Overwrite = False,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Draw a share of the triples of a split that keeps the distribution of its relations.

    Each relation contributes its share of triples, rounded up or down. OUT holds triples.txt; queries.tsv,
    the queries of these triples on both sides, for owkg rank --queries; qrels.txt, the triples as TREC
    judgements, for owkg pool --truth --judged-queries-only and owkg compare --qrels; and metadata.json.

    Args:
        folder (DIR): Folder of the graph, in any usual layout.
        out (OUT): Folder to write the sample to.
        share (SHARE): Share of the triples to draw, in (0, 1].
        split (SPLIT): Split whose triples are drawn.

    Examples:
        owkg kg sample data/fb15k237 sample --share 0.05
        owkg rank run --queries sample/queries.tsv --out ranks.parquet
        owkg pool a.run b.run --depth 10 --kg data/fb15k237 --truth sample/qrels.txt --judged-queries-only
            --out pool
    """
    from owkg.pools.triple_sample import write_triple_sample

    graph, notes = graph_and_notes(folder, how, duplicates="keep")
    card = write_triple_sample(graph, out, split=split, share=share, seed=seed, overwrite=overwrite)
    for text in notes:
        noted_line(text)
    told = (
        f"wrote {out}: {card['drawn']:,} of {card['triples']:,} triples of {split}, "
        f"{card['relations_drawn']:,} of {card['relations']:,} relations, {card['queries']:,} queries; "
        f"divergence of the relation distributions {card['divergence']:.4f}"
    )
    show(form, {"out": str(out), **card}, lines=[told])


def _show(folder: Path, statistics: dict[str, Any]) -> None:
    absent = statistics["in_no_triple"]
    sizes = [
        f"{statistics[kind]:,} {kind}" + (f" ({absent[kind]:,} in no triple)" if absent[kind] else "")
        for kind in ("entities", "relations")
    ]
    line(folder, "bold")
    line(", ".join(sizes), "dim")
    _print("split", {name: _split_row(name, statistics) for name in statistics["triples"]})
    _print("category", {key.replace("_", " "): row for key, row in statistics["categories"].items()})
    _print("predicted side", statistics["answers_per_query"])
    _print("popularity in train", statistics["popularity"])


def _split_row(name: str, statistics: dict[str, Any]) -> dict[str, Any]:
    leakage = statistics["leakage"].get(name, {})
    turned = statistics["reversed_in_train"].get(name, {})
    unseen = statistics["unseen_in_train"].get(name, {})
    return {
        "triples": statistics["triples"][name],
        "duplicates": statistics["duplicates"][name],
        "in train": leakage.get("train"),
        "in valid": leakage.get("valid"),
        "reversed in train": turned.get("triples"),
        "reversed share": turned.get("share"),
        "unseen entities": unseen.get("entities"),
        "unseen relations": unseen.get("relations"),
        "triples with them": unseen.get("triples"),
        "facts after all": statistics["false_triples"].get(name, {}).get("also_facts"),
    }


def _print(title: str, rows: dict[str, dict[str, Any]]) -> None:
    """Prints a table of `rows`, without columns that have no value."""
    names = [
        name for name in next(iter(rows.values())) if any(row[name] is not None for row in rows.values())
    ]
    cells = [[row, *(_cell(values[name]) for name in names)] for row, values in rows.items()]
    printed("", [title, *names], cells, as_given=True)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


kg_app = group(
    "kg",
    "Describe and sample knowledge graphs in any usual file layout, from labelled triples to N-Triples.",
    info,
    sample,
)
