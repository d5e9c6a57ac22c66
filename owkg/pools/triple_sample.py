"""Folder that `owkg kg sample` writes: triples of a split, their queries and judgements."""

from pathlib import Path
from typing import Any

import numpy as np

from owkg.files.storage import checksums, made_folder, versions, write_metadata
from owkg.judge.qrels import qrels_from_graph, write_judgements
from owkg.judge.schema import ASKED
from owkg.kg import KnowledgeGraph
from owkg.kg.triples import labelled
from owkg.sampling import stratified_sample
from owkg.sampling.layouts import write_columns
from owkg.stats import divergence

MADE_BY = "owkg kg sample"
"""Entry made_by in the `metadata.json` of a sample."""


def write_triple_sample(
    graph: KnowledgeGraph, out: Path, *, split: str, share: float, seed: int, overwrite: bool = False
) -> dict[str, Any]:
    """Write a stratified sample of a split as a folder, and return its `metadata.json`.

    The entry `divergence` is the divergence of the relation distribution of the split from that of the
    sample, after adding 1 to the count of each relation of the graph.

    Args:
        graph: graph of the split.
        out: folder to write. It is written completely or not at all.
        split: split from which triples are drawn.
        share: share of the triples to draw.
        seed: seed of the draw.
        overwrite: whether to replace a folder that this command wrote. Default False.

    Raises:
        ValueError: as `owkg.sampling.stratified_sample`, if a label cannot be written, or if `out` exists.
    """
    sample = stratified_sample(graph, split, share=share, seed=seed)
    own = {"sample": sample}
    qrels = qrels_from_graph(graph._replace(splits=own), "sample")
    queries = qrels.select(ASKED).unique(maintain_order=True)
    counts = [
        np.bincount(part[:, 1], minlength=graph.num_relations) for part in (graph.splits[split], sample)
    ]
    card = {
        "made_by": MADE_BY,
        "versions": versions(),
        "settings": {"split": split, "share": share, "seed": seed},
        "triples": len(graph.splits[split]),
        "drawn": len(sample),
        "relations": int((counts[0] > 0).sum()),
        "relations_drawn": int((counts[1] > 0).sum()),
        "queries": len(queries),
        "divergence": divergence(*counts),
    }
    with made_folder(out, made_by=MADE_BY, overwrite=overwrite) as folder:
        write_judgements(qrels, folder / "qrels.txt")  # raises an error for labels that cannot be written
        write_columns(queries, folder / "queries.tsv", header=True)
        write_columns(labelled(sample, graph.entities, graph.relations), folder / "triples.txt")
        write_metadata(folder, card | {"sha256": checksums(folder)})
    return card
