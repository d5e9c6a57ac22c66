"""Numbers printed by Hoyt et al. (2022), and the published values behind Figure 1, recomputed in `cells`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from owkg.kg import fact_splits, read_graph
from owkg.metrics import Ties, adjusted_from, evaluate, metric, tasks
from simulations.hoyt2022.desiderata import desiderata
from simulations.hoyt2022.published import task_candidates
from simulations.printed import Cell

TABLE_1 = {
    "fixed optimum": "✗✓✓",
    "asymptotic pessimum": "✗✓✓",
    "anti-monotonic": "✗✓✗",
    "size invariant": "✗✗✗",
}
"""Whether MR, MRR and H_k meet each desideratum, as printed."""

TABLE_4 = {
    "nations": ("14", "55", "1,592"),
    "kinships": ("104", "25", "8,544"),
    "fb15k237": ("14,505", "237", "272,115"),
    "wn18rr": ("40,559", "11", "86,835"),
}
"""Numbers of entities, relations and training triples."""

_PUBLISHED = {
    "amrr": ("adjusted_inverse_harmonic_mean_rank", "inverse_harmonic_mean_rank", 5, "H4"),
    "zmrr": ("z_inverse_harmonic_mean_rank", "inverse_harmonic_mean_rank", 4, "H5"),
    "amri": ("adjusted_arithmetic_mean_rank_index", "arithmetic_mean_rank", 5, ""),
    "zmr": ("z_arithmetic_mean_rank", "arithmetic_mean_rank", 4, "H3, H5"),
    "zhits@10": ("z_hits_at_10", "hits_at_10", 4, "H5"),
    "zhits@1": ("z_hits_at_1", "hits_at_1", 4, "H5"),
}
"""Published column, published column of the plain metric, digits to compare, and why they differ."""


def _alike(name: str, rank: int, candidates: int) -> float:
    """A metric of tasks that all have the same rank."""
    ranks = tasks(np.full(9, rank), candidates=candidates)
    return evaluate(ranks, [metric(name)], ties=[Ties.EXACT], level=None)[Ties.EXACT][name].value


def _text(data: Path) -> Iterator[Cell]:
    yield Cell("footnote 2, candidates", "1,001", None, "of a benchmark that is not at hand")
    yield Cell("footnote 2, entities", "80M", None, "of a benchmark that is not at hand")
    # The printed first digit is right, but the share is not below the printed number.
    yield Cell("footnote 2, share of the entities is below", "1e-5", 1001 / 80e6, "H7")
    most = 1000
    least, largest = ([_alike(name, rank, most) for name in ("amr", "ahmr", "agmr")] for rank in (1, most))
    yield Cell("section 4.1, least M / E[M] of MR, HMR, GMR", "0", min(least))
    yield Cell("section 4.1, M / E[M] of MR, HMR, GMR is below", "1", max(largest), "H8")
    yield Cell("section 4.1, least AMRI", "-1", _alike("amri", most, most))
    yield Cell("section 4.1, least AMRR and AH@k", "-E / (1 - E)", None, "a formula; H9")
    rows = pl.read_csv(data / "ranking_metrics" / "collated.tsv", separator="\t", glob=False)
    yield Cell("section 4.3, models", "4", rows["model"].n_unique())
    yield Cell("section 4.3, data sets", "4", rows["dataset"].n_unique())
    entities = [len(np.unique(_train(data, name)[:, [0, 2]])) for name in rows["dataset"].unique()]
    yield Cell("section 4.3, entities of the smallest", "14", min(entities))
    yield Cell("section 4.3, thousands of entities of the largest", "40k", max(entities) / 1000)


def _table_1() -> Iterator[Cell]:
    names = {"mr": "MR", "mrr": "MRR", "hits@10": "H_k"}
    met = {row["metric"]: row for row in desiderata(map(metric, names)).to_dicts()}
    for desideratum, marks in TABLE_1.items():
        for (name, shown), mark in zip(names.items(), marks, strict=True):
            note = "H13" if (desideratum, name) == ("fixed optimum", "mr") else ""
            yield Cell(f"Table 1, {desideratum}, {shown}", mark, float(met[name][desideratum]), note)


def _train(data: Path, name: str) -> np.ndarray:
    return fact_splits(read_graph(data / name))["train"]


def _table_4(data: Path) -> Iterator[Cell]:
    for name, printed in TABLE_4.items():
        train = _train(data, name)
        ours = (len(np.unique(train[:, [0, 2]])), len(np.unique(train[:, 1])), len(train))
        for column, text, number in zip(("entities", "relations", "triples"), printed, ours, strict=True):
            note = "H10" if column == "entities" else ""
            yield Cell(f"Table 4, {name}, {column}", text, number, note)


def _figure_1(data: Path) -> Iterator[Cell]:
    rows = pl.read_csv(data / "ranking_metrics" / "collated.tsv", separator="\t", glob=False)
    for (dataset,), of_dataset in rows.group_by("dataset", maintain_order=True):
        candidates = task_candidates(data / str(dataset))
        for row in of_dataset.iter_rows(named=True):
            for name, (column, plain, digits, note) in _PUBLISHED.items():
                ours = adjusted_from(metric(name), row[plain], candidates)
                place = f"Figure 1, {dataset}, {row['model']}, {name}"
                yield Cell(place, f"{row[column]:.{digits}f}", ours, note)


def cells(data: Path) -> Iterator[Cell]:
    """Every printed number, and the published values behind Figure 1.

    Args:
        data: folder of the published data.
    """
    yield from _text(data)
    yield from _table_1()
    yield from _table_4(data)
    yield from _figure_1(data)
