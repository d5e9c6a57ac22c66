"""Every number that Zhou et al. (2022) print, compared with ours."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from scipy import stats

from owkg.kg import read_graph
from simulations.printed import Cell
from simulations.zhou2022 import tables
from simulations.zhou2022.published import PRINTED_POOL, SC, WN, O, S, Study, read_study

_TABLE3 = {
    ("head", "1-1"): "1.0 1.0 1.0 1.0",
    ("head", "1-N"): "0.0256 0.0748 0.3731 0.4665",
    ("head", "N-1"): "0.1026 0.0996 0.1782 0.2857",
    ("head", "N-N"): "-0.3333 -0.0645 -0.4698 -0.1177",
    ("tail", "1-1"): "1.0 1.0 1.0 1.0",
    ("tail", "1-N"): "-0.1026 0.1353 0.1988 -0.1420",
    ("tail", "N-1"): "0.5641 0.7114 0.6123 0.7371",
    ("tail", "N-N"): "-0.1282 0.0260 -0.2746 0.3007",
}
_TABLE4 = {
    ("Complete", SC): "0.2308 -0.2308 -0.0519 -0.4358 0.2598",
    ("Sparse", S): "0.2308 -0.2051 0.0256 -0.2051 0.3377",
}
_METRICS = {
    "MR": "micro_mr",
    "MRR": "micro_mrr",
    "Hits@1": "micro_hits@1",
    "Hits@3": "micro_hits@3",
    "Hits@10": "micro_hits@10",
}
_CATEGORIES: dict[str, str] = dict(zip(("1-1", "1-N", "N-1", "N-N"), tables.CATEGORIES, strict=True))
_LETTERS = {"A": ("hitter", "1", "8"), "D": ("rescal", "4", "13"), "L": ("rotate", "12", "4")}
"""Systems in section 4.2, identified by their places, with their places by FB-Test-O and by FB-Test-S-C."""

_TOP = {"L": ("12.5%", "6.7%"), "A": ("11.8%", "5.5%"), "D": ("11.5%", "5.6%")}
_NOT_PUBLISHED = {
    "section 3.1, annotators": ("5", "of the work of the annotators, the final labels alone are published"),
    "section 3.1, annotators of a triple": ("2", "the labels of each annotator are not published"),
    "section 3.2, relabelled triples": ("200", "the labels of the expert are not published"),
    "section 3.2, consistent with the expert": ("92%", "the labels of the expert are not published"),
    "section 3.2, relation classes in Figure 2": ("50", "where classes were merged is not printed"),
    "section 4.1, trainings of a model": ("10", "a setting; only the best is published"),
    "section 4.1, largest difference in micro MRR from other papers": ("0.002", "which ones is not printed"),
    "section 5.1, smallest test subset": ("1%", "a setting"),
    "section 5.1, largest test subset": ("95%", "a setting"),
    "section 5.1, draws of each size": ("50", "a setting"),
    "Figure 7a, tau at 80%, micro MRR and Hits@10": ("0.8", "the ranks of each answer are not published"),
    "Figure 7a, tau at 80%, macro metrics": ("above 0.95", "the ranks of each answer are not published"),
}


def cells(data: Path) -> Iterator[Cell]:
    """Printed numbers of all tables, and of the text in its order; systems are ranked by micro MRR."""
    study = read_study(data)
    yield from _tables(study)
    yield from _data(study, data)
    yield from _rankings(study)
    for place, (printed, why) in _NOT_PUBLISHED.items():
        yield Cell(place, printed, None, why)


def _tables(study: Study) -> Iterator[Cell]:
    pool = study.pool["positive"]
    rows = {
        O: ("20,466 20,466 0", len(study.triples[O]), 0, 0),
        S: ("1,023 1,023 0", len(study.triples[S]), 0, 0),
        SC: ("22,492 2,738 19,754", len(study.triples[S]), int(pool.sum()), int((~pool).sum())),
    }
    for name, (printed, sampled, positive, negative) in rows.items():
        counts = sampled + positive + negative, sampled + positive, negative
        for column, text, ours in zip(
            ("triples", "positives", "negatives"), printed.split(), counts, strict=True
        ):
            yield Cell(f"Table 1, {name}, {column}", text, ours)
    taus = {(row["side"], row["category"]): row for row in tables.cell_table(study).iter_rows(named=True)}
    for (side, category), printed in _TABLE3.items():
        row = taus[side, _CATEGORIES[category]]
        for metric, text in zip(list(_METRICS)[1:], printed.split(), strict=True):
            yield Cell(f"Table 3, {side} {category}, {metric}", text, row[_METRICS[metric]])
    reweighted = tables.reweighted_table(study)
    for (name, shares), printed in _TABLE4.items():
        for metric, text in zip(_METRICS, printed.split(), strict=True):
            tau = reweighted.filter(shares=shares, metric=_METRICS[metric])[f"tau to {S}"].item()
            yield Cell(f"Table 4, {name}, {metric}", text, tau)
    largest = reweighted.filter(shares=S)[f"tau to {S}"].to_numpy().max()
    yield Cell(
        "section 4.2, bound of Table 4, Sparse", "0.4", None, f"a bound; the largest tau is {largest:.4f}"
    )


def _data(study: Study, data: Path) -> Iterator[Cell]:
    pool, triples = study.pool, study.triples
    counts = dict(tables.pool_table(study).select("what", "ours").rows())
    pooled = counts["pooled triples"]
    yield Cell("section 1, triples pooled", "22,492", pooled, "Z5")
    yield Cell("section 3.1, triples of FB-Test-O", "20,466", len(triples[O]))
    yield Cell("section 3.1, share sampled", "5%", 100 * len(triples[S]) / len(triples[O]))
    yield Cell("section 3.1, pool depth", "10", pool["depth"].to_numpy().max())
    yield Cell("section 3.1, systems pooled", "6", tables.most_pooled(study, 1))
    for what in ("entities", "relations", "pooled triples"):
        yield Cell(f"section 3.1, pool, {what}", f"{PRINTED_POOL[what]:,}", counts[what])
    yield Cell("section 3.1, judged by hand", "12,599", counts["judged by hand"], "Z4")
    yield Cell("section 3.2, relations of FB-Test-O", "224", triples[O]["relation"].n_unique())
    graph = read_graph(data / "fb15k237")
    every = np.array(graph.relations)[np.concatenate(list(graph.splits.values()))[:, 1]]
    of = {name: triples[name]["relation"] for name in (O, S, SC)} | {"all": pl.Series(every)}
    for one, other, printed in ((O, S, "0.0889"), ("all", O, "0.2789"), (O, SC, "0.2386")):
        yield Cell(
            f"section 3.2, KL({one} || {other})",
            printed,
            tables.divergence(of[one], of[other], graph.relations),
        )


def _rankings(study: Study) -> Iterator[Cell]:
    table = tables.ranking_table(study)
    tau = {(row["metric"], row["first"], row["second"]): row["tau"] for row in table.iter_rows(named=True)}
    yield Cell(f"Figure 3, tau of {O} and {S}", "0.7949", tau["micro_mrr", O, S])
    yield Cell(f"Figure 3, tau of {S} and {SC}", "-0.2308", tau["micro_mrr", S, SC])
    shallow = tables.depth_table(study).filter(metric="micro_mrr", against=0, depth=2)["tau"].item()
    yield Cell("Figure 4, tau at pool depth 2", "0.359", shallow)
    found = int(study.pool.filter(pl.col("depth") <= 2)["positive"].sum())
    yield Cell("section 4.2, positives at pool depth 2", "287", found)
    systems = sorted(set(study.evaluation["system"]))
    yield Cell("section 4.1, systems", "13", len(systems))
    strength = tables.strengths(study.evaluation, ["micro_mrr"])
    relevant = dict(study.evaluation.filter(test_set=S).select("system", "P_10").rows())
    for letter, (system, *printed) in _LETTERS.items():
        for test_set, text in zip((O, SC), printed, strict=True):
            place = stats.rankdata(-strength[test_set][0], "min")[systems.index(system)]
            yield Cell(f"Figure 3, place of {letter} by {test_set}", text, float(place))
        known = f"the lists are not published; P@10 of {system} on {S} is {100 * relevant[system]:.2f} %"
        for what, text in zip(("positives", "newly annotated"), _TOP[letter], strict=True):
            yield Cell(f"section 4.2, top 10 of {letter}, {what}", text, None, known)
    for metric, printed in (("mrr", "0.41"), ("hits@10", "0.14")):
        gap = tau[f"macro_{metric}", S, SC] - tau[f"micro_{metric}", S, SC]
        yield Cell(f"Figure 5, macro less micro {metric} at pool depth 10", printed, gap)
    # "About 200" has one significant digit.
    for test_set, printed in ((WN, "around 3000"), (O, "about 2e2"), (SC, "about 2e2")):
        mean = study.evaluation.filter(test_set=test_set)["micro_mr"].to_numpy().mean()
        yield Cell(f"section 5.2, mean rank on {test_set}", printed, mean, "Z9")
