"""Stratified samples: a share of the triples of a split that keeps the distribution of its relations."""

import numpy as np
from jaxtyping import Int32

from owkg import checks
from owkg.errors import ArgumentError
from owkg.kg import fact_splits
from owkg.kg.graph import KnowledgeGraph, graph_checked
from owkg.kg.triples import COLUMNS


def stratified_sample(
    graph: KnowledgeGraph, split: str = "test", *, share: float, seed: int, by: str = "relation"
) -> Int32[np.ndarray, "sample 3"]:
    """Random share of the triples of a split, with nearly the same share of each relation.

    `share` n of n triples are drawn, rounded. A relation with n_r triples gets `share` n_r, rounded down, and
    one more if its remainder is among the largest (largest remainder method): a difference of less than 1
    from `share` n_r.

    Args:
        graph: knowledge graph.
        split: split whose triples are drawn. Default "test".
        share: share of the triples, in (0, 1].
        seed: seed of the draw; equal seeds give equal samples.
        by: column whose distribution is kept: "relation" (default), "head" or "tail".

    Returns:
        Triples, in the order of the split.

    Raises:
        ValueError: if an argument is out of range, the split is unknown or empty, or no triple is drawn.

    Examples:
        >>> triples = np.array([[0, r, i] for r, n in enumerate((60, 30, 10)) for i in range(n)], np.int32)
        >>> from owkg.kg import KnowledgeGraph
        >>> graph = KnowledgeGraph(tuple(map(str, range(60))), ("a", "b", "c"), {"test": triples})
        >>> np.bincount(stratified_sample(graph, share=0.1, seed=0)[:, 1]).tolist()
        [6, 3, 1]

    References:
        Zhou et al. (SIGIR 2022), section 3.1: 5 % of the test triples of FB15k-237.
    """
    splits = fact_splits(graph_checked(graph))
    if split not in splits or not len(splits[split]):
        names = ", ".join(name for name, triples in splits.items() if len(triples))
        raise ArgumentError("split", f"must be a split with triples ({names}), got {split!r}.")
    if by not in COLUMNS:
        raise ArgumentError("by", f"must be one of {', '.join(COLUMNS)}, got {by!r}.")
    part = checks.real_number("share", share, 0, 1, closed="high")
    rng = np.random.default_rng(checks.seed("seed", seed))
    triples = splits[split]
    size = round(part * len(triples))
    if not size:
        raise ArgumentError("share", f"must leave a triple, got {share!r} of {len(triples):,}.")
    _, stratum, counts = np.unique(triples[:, COLUMNS.index(by)], return_inverse=True, return_counts=True)
    take = np.floor(part * counts)
    # Equal remainders are in random order, so that no relation is favoured by its id.
    behind = np.lexsort([rng.random(len(counts)), take - part * counts])
    take[behind[: size - int(take.sum())]] += 1
    order = np.lexsort([rng.random(len(triples)), stratum])
    place = np.arange(len(triples)) - np.repeat(np.cumsum(counts) - counts, counts)
    return triples[np.sort(order[place < take[stratum[order]]])]
