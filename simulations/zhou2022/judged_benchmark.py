"""The published study of judged link prediction, recomputed from its files (Zhou et al., SIGIR 2022).

The files have the results of 13 systems on FB-Test-O (the test set of FB15k-237), FB-Test-S (a sample of it)
and FB-Test-S-C (the sample, completed by pooling and judging). The script recomputes: what was pooled from
six of the systems (section 3); Kendall's tau between test sets (Figure 3), by side and relation category
(Table 3), with the relations of another test set (Table 4), and by pool depth (Figures 4 and 5); micro MRR
over relations (Figure 6); and ASL curves of the p-values, also on WN18RR (Figure 8). It also reports the
places that pooled systems gain, and checks whether the files agree with one another. `python -m
simulations.printed --paper zhou2022` has every printed number.

Published macro metrics are of the best answer to each query, except for HAKE: its macro metrics are below the
value of its best answers (recip_rank), and differ between two files of the same labels. Rankings by macro
metrics are printed as published; rankings by recip_rank, printed next to them, do not have this fault.

    python -m simulations.zhou2022 published --data data --out out
"""

import json
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from owkg.cli.options import Format
from owkg.files.storage import writable_folder, written_aside
from owkg.plots.judging import asl_figure, depth_figure, qrels_figure, ranking_figure
from owkg.stats.rank_correlation import kendall_tau
from owkg.terminal.tables import printed
from simulations.script import Out
from simulations.zhou2022 import tables
from simulations.zhou2022.published import PRINTED_TAU, SC, WN, O, S, Study, read_study

NAME = "judged_benchmark"
MICRO = ("micro_hits@1", "micro_hits@3", "micro_hits@10", "micro_mrr", "micro_mr")
MACRO = ("macro_hits@1", "macro_hits@3", "macro_hits@10", "macro_mrr", "macro_mr")
LISTS = ("recip_rank", "map_cut_20", "ndcg_cut_20", "bpref", "infAP")
SHOWN = (*MICRO, *MACRO, *LISTS)
# Metrics of the figures of depths and of p-values.
OF_DEPTH = {"micro": MICRO, "macro": ("macro_hits@1", "macro_hits@10", "macro_mrr", *LISTS[1:3])}
OF_TESTS = ("micro_hits@1", "micro_hits@10", "micro_mrr", "macro_hits@10", "macro_mrr", *LISTS[1:3])


def run(study: Study) -> dict[str, pl.DataFrame]:
    """All tables, by the last part of their file's name."""
    return {
        "pool": tables.pool_table(study),
        "rankings": tables.ranking_table(study),
        "cells": tables.cell_table(study),
        "reweighted": tables.reweighted_table(study),
        "pooled": tables.pooled_table(study),
        "spread": tables.spread_table(study),
        "depth": tables.depth_table(study),
        "significance": tables.significance_table(study),
        "checks": tables.check_table(study),
    }


def readable(found: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Printed tables, by title."""
    of_shown = pl.col("metric").is_in(SHOWN)
    order = pl.col("metric").replace_strict({m: i for i, m in enumerate(SHOWN)}, return_dtype=pl.Int64)
    shown = {
        name: table.filter(of_shown).sort(order, maintain_order=True)
        for name, table in found.items()
        if "metric" in table.columns
    }
    rankings = shown["rankings"].with_columns(between=pl.col("first") + " to " + pl.col("second"))
    depth = shown["depth"]
    by_depth = {
        f"tau by pool depth, to depth {against} (Figures 4 and 5)": depth.filter(
            pl.col("against") == against
        ).pivot("depth", index="metric", values="tau")
        for against in depth["against"].unique(maintain_order=True)
    }
    return {
        "pool (section 3)": found["pool"],
        "tau between test sets (Figure 3)": rankings.select(
            "metric", "between", "tau", "tau-ap", "spearman", "paper"
        ),
        f"tau of {S} and {SC} by asked side and category (Table 3)": found["cells"],
        f"tau of {SC} under the relations of another test set (Table 4)": shown["reweighted"],
        f"places gained from {S} to {SC} by the six pooled systems and by the others": shown["pooled"],
        **by_depth,
        "micro MRR of HittER over the relations (Figure 6)": found["spread"],
        f"published p-values, pairs significant at {tables.ALPHA:g} (Figure 8)": shown["significance"],
        "do the published files agree": found["checks"],
    }


def print_tables(titled: dict[str, pl.DataFrame]) -> None:
    """Prints each table under its title."""
    for title, rows in titled.items():
        printed(title, rows.columns, ([_cell(value) for value in row] for row in rows.rows()))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if value == 0 or abs(value) >= 1e-4 else f"{value:.1e}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def overview(study: Study) -> str:
    """Our tau and the printed tau of the rankings by micro MRR, in one line."""
    by_set = tables.strengths(study.evaluation, ["micro_mrr"])
    by_set |= {
        f"depth {depth}": values
        for depth, values in tables.strengths(study.depths, ["micro_mrr"], "depth").items()
    }
    parts = (
        f"{first} to {second} {float(kendall_tau(by_set[first], by_set[second])[0]):.4f} (paper {printed:g})"
        for (first, second), printed in PRINTED_TAU.items()
    )
    return f"tau of the rankings by micro MRR: {', '.join(parts)}"


def draw(study: Study, found: dict[str, pl.DataFrame], out: Path) -> list[Path]:
    """Draws all figures: tau by depth, ASL curves, ranks by qrels, and values on two test sets."""
    depth = found["depth"].with_columns(panel=pl.format("against depth {}", "against"))
    paths = []
    for family, metrics in OF_DEPTH.items():
        rows = depth.filter(pl.col("metric").is_in(metrics))
        paths += depth_figure(rows, out / f"{NAME}_depth_{family}")
    p = study.p_values.unpivot(
        OF_TESTS, index="test_set", variable_name="metric", value_name="p_value"
    ).rename({"test_set": "panel"})
    paths += asl_figure(p, out / f"{NAME}_asl")
    both = ["micro_mrr", "macro_mrr"]
    sets = study.evaluation.filter(pl.col("test_set") != WN).select("test_set", "system", *both)
    middle = study.depths.filter(pl.col("depth") == 2).select(
        pl.lit("depth 2").alias("test_set"), "system", *both
    )
    order = pl.DataFrame({"test_set": [O, S, "depth 2", SC]})
    ordered = order.join(pl.concat([sets, middle]), on="test_set", maintain_order="left_right")
    ranked = ordered.unpivot(both, index=["test_set", "system"], variable_name="panel")
    paths += ranking_figure(ranked.rename({"test_set": "qrels"}), out / f"{NAME}_ranks")
    long = sets.unpivot(both, index=["test_set", "system"], variable_name="panel")
    wide = long.pivot("test_set", index=["panel", "system"], values="value")
    wide = wide.rename({S: "first", SC: "second"})
    return paths + qrels_figure(wide, out / f"{NAME}_readings", xlabel=S, ylabel=SC)


def main(
    data: Annotated[
        Path | None, typer.Option(envvar="OWKG_DATA", help="Folder with kgc_sparsity, fb15k237 and wn18rr.")
    ] = None,
    out: Out = Path("out"),
    form: Annotated[Format, typer.Option("--format", help="Format of the printed tables.")] = Format.TABLE,
) -> None:
    """Recomputes the published study of judged link prediction from its files."""
    if data is None:
        raise ValueError("`data` must name the folder with kgc_sparsity, fb15k237 and wn18rr.")
    writable_folder(out)
    study = read_study(data)
    found = run(study)
    paths = [out / f"{NAME}_{name}.csv" for name in found]
    for path, table in zip(paths, found.values(), strict=True):
        with written_aside(path) as aside:
            table.write_csv(aside)
    paths += draw(study, found, out)
    if form is Format.JSON:
        rows = {name: table.to_dicts() for name, table in found.items()}
        print(json.dumps(rows | {"files": list(map(str, paths))}, indent=2))
        return
    print_tables(readable(found))
    print(overview(study))
    print("All printed numbers: python -m simulations.printed --paper zhou2022")
    for path in paths:
        print(f"wrote {path}")
