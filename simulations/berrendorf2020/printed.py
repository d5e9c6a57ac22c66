"""Every number that Berrendorf et al. (2020) print, compared with ours."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

import owkg
from owkg import align
from owkg.kg import KnowledgeGraph, known_answers, num_candidates, read_graph
from owkg.metrics import Estimate, Ties, adjusted_from, evaluate, metric, tasks
from simulations.berrendorf2020.alignment import correlations
from simulations.printed import Cell

TABLE1 = {
    ("WN18RR", "wn18rr"): {
        "DistMult": ("7,000", "65.8"),
        "ConvE": ("4,412", "78.4"),
        "TransE": ("2,289", "88.8"),
        "TransH": ("2,126", "89.6"),
        "R-GCN": ("6,254", "69.4"),
        "MuRP": ("2,448", "88.0"),
    },
    ("FB15k-237", "fb15k237"): {
        "DistMult": ("500", "93.0"),
        "ConvE": ("241", "96.6"),
        "TransE": ("317", "95.6"),
        "TransH": ("219", "97.0"),
        "R-GCN": ("540", "92.5"),
        "MuRP": ("167", "97.7"),
    },
}
"""MR and AMRI in percent, by data set with its folder, and by model."""

_ENTITIES = {"WN18RR": "~45k", "FB15k-237": "~15k"}
_ALIGNMENT = {
    "Spearman correlation of norm and degree": "-0.041",
    "its p-value": "9.22e-17",
    "Spearman correlation without message passing": "0.001",
    "its p-value without message passing": "0.834",
    "AMRI in percent without message passing": "-0.0025",
    "its standard deviation": "0.8068",
}
"""Printed values of section 5: random draws, under settings that are not printed."""


def candidates(graph: KnowledgeGraph, *, filtered: bool = True) -> np.ndarray:
    """Number of candidates of each test triple on both sides, filtered by all splits, [2 triples]."""
    facts, test = np.concatenate(list(graph.splits.values())), graph.splits["test"]
    if not filtered:
        return np.full(2 * len(test), graph.num_entities)
    sides = (known_answers(facts, side, **graph.sizes) for side in ("head", "tail"))
    return np.concatenate([num_candidates(known, test) for known in sides])


def cells(data: Path) -> Iterator[Cell]:
    """Printed numbers of the text and of Table 1, whose AMRI follow from their MR."""
    # The graph of Figure 1: entities a, b, c, d and relations r, s.
    toy = known_answers([[1, 0, 0], [0, 1, 1], [0, 1, 2], [0, 1, 3]], "tail", num_entities=4, num_relations=2)
    yield Cell("Figure 1, largest rank", "2", int(num_candidates(toy, [[0, 1, 1]])[0]))
    yield Cell("section 2.3, MR by chance of 20 candidates", "10", _read(1, 1, 20, "mr").expectation)
    yield Cell("section 2.3, a large number of candidates", "1,000,000", None, "an example")
    equal = _read(1, 3, 3, "mr", Ties.REALISTIC).value
    yield Cell("section 3.1, realistic rank of 3 equal scores, |S|/2", "1.5", equal, "B3")
    for end, rank in (("-1", 9), ("1", 1)):
        ours = _read(rank, rank, 9, "amri").value
        yield Cell(f"section 3.2, AMRI of rank {rank} of 9", end, ours)
    for (dataset, folder), models in TABLE1.items():
        graph = read_graph(data / folder)
        own = candidates(graph)
        yield Cell(
            f"section 5, thousands of entities, {dataset}", _ENTITIES[dataset], graph.num_entities / 1e3, "B5"
        )
        for model, (mean, printed) in models.items():
            yield Cell(f"Table 1, {dataset}, {model}, MR", mean, None, "the ranks are not published")
            index = adjusted_from(metric("amri"), float(mean.replace(",", "")), own)
            yield Cell(f"Table 1, {dataset}, {model}, AMRI in percent", printed, 100 * index)
    yield Cell("Figure 3, random splits", "5", None, "a setting")
    for (place, printed), ours in zip(_ALIGNMENT.items(), _alignment(data), strict=True):
        yield Cell(f"section 5, {place}", printed, None, f"a random draw; here {ours:.3g}")


def _alignment(data: Path) -> list[float]:
    """Values for the rows of `_ALIGNMENT`, computed with GCN-Align's own weights of messages."""
    pairs = align.read_alignment(data / "dbp15k" / "zh_en")
    tests = {name: both for name, *both in correlations(pairs, align.Config().dim, 0).iter_rows()}
    indices = []
    for seed in range(5):
        own = align.split_pairs(pairs, 0.3, seed)
        raw = align.rank_embeddings(own, *align.initial_embeddings(own, align.Config(seed=seed)))
        indices.append(100 * owkg.evaluate(raw, "amri", ci=None)["value"].item())
    after, before = (
        tests[f"length and degree, {x}"] for x in ("two convolutions, symmetric", "without messages")
    )
    return [*after, *before, float(np.mean(indices)), float(np.std(indices, ddof=1))]


def _read(best: int, worst: int, number: int, name: str, ties: Ties = Ties.EXACT) -> Estimate:
    """Estimate of a metric from one task."""
    ranked = tasks([best], [worst], candidates=number)
    return evaluate(ranked, [metric(name)], ties=[ties], level=None)[ties][name]
