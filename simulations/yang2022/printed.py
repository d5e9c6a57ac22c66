"""Printed numbers of Yang et al. (2022), recomputed in `cells`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from family_tree import closed_graph, ontology, published_people
from owkg import theory
from owkg.metrics import evaluate, metric, tasks
from owkg.openworld import test_share
from owkg.rank_weights import MRR
from owkg.ranks import ranks_from_scores
from simulations.open_world.presets import PRESETS
from simulations.open_world.world import read_world
from simulations.printed import Cell

ANSWERS: dict[str, tuple[str, ...]] = {
    "test": ("swimming", "sailing"),
    "missing": ("water polo", "boxing", "dressage", "show jumping", "canoe sprint", "cycling"),
}
REPORTED = np.array([5, 5, 1, 2, 3, 4, 7, 9])
"""Answers of Table 1, test answers first, and their ranks filtered by the two test answers."""
CORRECTED = ("1", "1", "1", "1", "1", "1", "3", "4")

_OUTPUT = "of a model and a list that are not published"
_SETTING = "a setting, not a result"
_FIGURE = "appears only in a figure"


def corrected_ranks(reported: np.ndarray, num_test: int) -> np.ndarray:
    """Ranks of a query's answers filtered by all of them, from ranks filtered by the test answers.

    Args:
        reported: ranks of the test answers, then of the missing answers that were retrieved, all different.
        num_test: number of test answers.
    """
    last = int(reported.max())
    # There is one candidate at each rank; candidates that are not missing answers have ids above the answers.
    others = np.setdiff1d(np.arange(1, last + 1), reported[num_test:])
    # A test answer is just above the candidate that has its rank.
    test = np.arange(len(reported)) < num_test
    scores = np.concatenate([-reported + 0.5 * test, -others.astype(float)])
    target = np.arange(len(reported))
    rows = np.broadcast_to(scores, (len(reported), len(scores)))

    def filtered(count: int) -> np.ndarray:
        known = np.broadcast_to(np.arange(len(scores)) < count, rows.shape)
        return ranks_from_scores(rows, target, known=known).optimistic

    if (filtered(num_test) != reported).any():
        raise ValueError(f"`reported` must be ranks of one list, got {reported}.")
    return filtered(len(reported))


def _mrr(ranks: np.ndarray) -> float:
    found = evaluate(tasks(ranks, candidates=int(ranks.max())), [metric("mrr")], ties=["exact"], level=None)
    return 100 * next(iter(found.values()))["mrr"].value


def _table_1() -> Iterator[Cell]:
    corrected = corrected_ranks(REPORTED, len(ANSWERS["test"]))
    for answer, rank, printed, ours in zip(
        (*ANSWERS["test"], *ANSWERS["missing"]), REPORTED, CORRECTED, corrected, strict=True
    ):
        yield Cell(f"Table 1, {answer}, without correction", str(rank), None, _OUTPUT)
        yield Cell(f"Table 1, {answer}, with correction", printed, float(ours))
    both = REPORTED[: len(ANSWERS["test"])]
    yield Cell("section 1, MRR of the two test answers", "20%", _mrr(both))
    yield Cell("section 1, MRR of the corrected answers", "82%", _mrr(corrected), "Y11")
    yield Cell("section 1, predictions looked at", "30", None, _OUTPUT)


def _section_4(data: Path) -> Iterator[Cell]:
    yield Cell("section 4.1, answer rate", "10%", None, "of queries of no named graph")
    yield Cell("Theorem 4.1, gamma", "0.577", np.euler_gamma)
    for name, printed in (("sparsity", "0.2"), ("strength", "0.3")):
        yield Cell(f"section 4.1, least {name} where the curves overlap", printed, None, _SETTING)
    yield Cell("Theorem 4.2, least number of queries", "50", None, _SETTING)
    names = ["num_answers", "num_entities"]
    size = pl.read_csv(data / "open_world_simulation" / "published.csv", columns=names, glob=False).unique()
    answers, entities = (int(size[name].item()) for name in names)
    setting = {"sparsity": 0.35, "strength": 0.7, "num_answers": answers}
    for name, printed in (("beta", "0.35"), ("strength", "0.7"), ("p", "5%")):
        yield Cell(f"example of Corollary 4.4, {name}", printed, None, _SETTING)
    yield Cell("example of Corollary 4.4, N", "43", answers)
    exact = theory.moments(MRR, num_entities=entities, **setting).variance
    yield Cell("example of Corollary 4.4, V", "7.4e-3", float(exact), "Y1")
    for name, printed, difference in (
        ("c", "2.85", 1.0),
        ("queries, difference .05", "1140", 0.05),
        ("queries, difference .01", "28500", 0.01),
    ):
        ours = theory.log_required_queries(
            difference=difference, variance=7.4e-3, inconsistency=0.05, **setting
        )
        yield Cell(f"example of Corollary 4.4, {name}", printed, float(ours), "Y1")


def _section_6(data: Path) -> Iterator[Cell]:
    folder = data / "family_tree_published"
    closed = closed_graph(published_people(folder), ontology("published"))
    yield Cell("section 6, entities", "6,004", closed.num_entities)
    yield Cell("section 6, relations", "23", closed.num_relations)
    yield Cell("section 6, facts", "192,532", len(closed.splits["train"]))
    for name, printed in (("clusters", "two"), ("A40 GPUs", "four"), ("3090 GPUs", "six")):
        yield Cell(f"section 6, {name}", printed, None, "hardware")
    configurations = PRESETS["paper"]
    yield Cell("section 6.1, models", "18", len(configurations))
    yield Cell("section 6.1, kinds of models", "4", len({one.model for one in configurations}))
    for name, printed in (("first curve", "4"), ("second curve", "7"), ("density", "0.75")):
        yield Cell(f"Figure 4, {name}", printed, None, _FIGURE)
    yield Cell("section 6.2, label of the ComplEx", "16", None, "labels are listed in an appendix")
    share = read_world(folder / "75").present["sparse"].mean()
    densities = np.linspace(0.01, 1, 100)
    nearest = densities[np.abs(test_share(densities, 0.7) - share).argmin()]
    yield Cell("section 6.2 and Figure 5, density", "75%", 100 * float(nearest))


def cells(data: Path) -> Iterator[Cell]:
    """Every printed number.

    Args:
        data: folder of the published data.
    """
    yield from _table_1()
    yield from _section_4(data)
    for rank, printed in ((1, "1"), (2, "0.5"), (100, "1e-2"), (101, "0.99e-2")):
        yield Cell(f"section 5, 1/r at {rank}", printed, _mrr(np.array([rank])) / 100)
    yield from _section_6(data)
