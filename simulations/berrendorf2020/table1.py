"""Table 1 of Berrendorf et al. (2020): models by mean rank and by AMRI, trained here or your own.

The mean rank grows with the number of entities, so that it cannot be compared between graphs; AMRI can. For
each graph, the table lists the six models in the order of their AMRI, with the printed values if the paper
has the graph.

    python -m simulations.berrendorf2020 table1 --quick --out out
    python -m simulations.berrendorf2020 table1 --kg data/wn18rr --ranks a.parquet --ranks b.parquet --out out
"""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

import owkg
from owkg.files.storage import writable_folder
from owkg.terminal.tables import printed
from simulations.berrendorf2020.printed import TABLE1
from simulations.rank_tables import DataSet, Graphs, Seeds, Tables, data_sets
from simulations.script import Out, Quick, save_table

SYSTEMS = {
    "DistMult": "distmult",
    "TransE": "transe",
    "ConvE": "conve",
    "TransH": "transh",
    "R-GCN": "rgcn",
    "MuRP": "murp",
}
_METRICS = ("mr", "amri")


def table_1(sets: Sequence[DataSet]) -> pl.DataFrame:
    """Mean rank and AMRI in percent, with 95 % intervals over queries, and the printed values.

    The columns are data, model, seeds, mr, mr_low, mr_high, amri, amri_low, amri_high, printed_mr and
    printed_amri. With several seeds, a value covers the ranks of all seeds, and an interval covers the first
    seed only.
    """
    rows = []
    for one in sets:
        published = next((models for (_, folder), models in TABLE1.items() if folder == one.name), {})
        for model, ranks in one.ranks.items():
            row: dict[str, str | float | None] = {"data": one.name, "model": model}
            seeds = ranks["seed"].unique() if "seed" in ranks.columns else [0]
            first = ranks.filter(seed=min(seeds)) if "seed" in ranks.columns else ranks
            values = owkg.evaluate(ranks, list(_METRICS), ci=None)
            limits = owkg.evaluate(first, list(_METRICS))
            for metric, scale in (("mr", 1.0), ("amri", 100.0)):
                (value,) = values.filter(metric=metric)["value"]
                (found,) = limits.filter(metric=metric).to_dicts()
                ends = {f"{metric}_{end}": scale * found[f"ci_{end}"] for end in ("low", "high")}
                row |= {metric: scale * value} | ends
            mr, amri = published.get(model, (None, None))
            row |= {"seeds": len(seeds), "printed_mr": _number(mr), "printed_amri": _number(amri)}
            rows.append(row)
    return pl.DataFrame(rows).sort("amri", descending=True).sort("data", maintain_order=True)


def _number(text: str | None) -> float | None:
    return None if text is None else float(text.replace(",", ""))


def main(
    kg: Graphs = None, ranks: Tables = None, seeds: Seeds = None, out: Out = Path("out"), quick: Quick = False
) -> None:
    """Table 1: mean rank and AMRI of the paper's six models, from your rank tables or trained here.

    If the command is interrupted, run it again and it resumes where it stopped.
    """
    folder = writable_folder(out / "berrendorf2020")
    table = table_1(data_sets(SYSTEMS, kg or (), ranks or (), seeds, quick, folder))
    for (name,), rows in table.group_by("data", maintain_order=True):
        cells = [
            [row["model"], _interval(row, "mr", 1), _interval(row, "amri", 1)]
            + [
                "" if row[f"printed_{metric}"] is None else f"{row[f'printed_{metric}']:,g}"
                for metric in _METRICS
            ]
            for row in rows.to_dicts()
        ]
        columns = ["model", "mean rank", "AMRI in percent", "printed mean rank", "printed AMRI"]
        count = rows["seeds"].max()
        over = "" if count == 1 else f"; values of {count} seeds, intervals over the queries of the first"
        printed(f"{name}: in the order of AMRI{over}", columns, cells)
    save_table(table, folder / "table1.csv")


def _interval(row: dict[str, float], metric: str, digits: int) -> str:
    value, low, high = (f"{row[f'{metric}{end}']:,.{digits}f}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"
