"""Pictures of `docs/reproduction`, drawn again from the committed tables without training.

The pictures are Figure 3 and Figure 5a of Yang et al. (2022), the pairs in the wrong order, and the pools of
Zhou et al. (2022) in a closed world. Figures 4 and 5b need the values of every query, which only the runs
have: `python -m simulations.yang2022 open-world --preset cpu`.

    python simulations/pictures.py --out out
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from owkg.files.storage import writable_folder
from simulations.open_world.curves import CORRELATED, FULL, SPARSE, Curves, nearest_published
from simulations.script import Out, run_script
from simulations.yang2022.contradiction_plots import share_figures
from simulations.yang2022.curve_plots import Layer, correlation_figure, density_figure
from simulations.zhou2022.study import draw_tables

TABLES = Path(__file__).parents[1] / "docs" / "reproduction"


def curves_of(table: pl.DataFrame) -> tuple[Curves, Layer]:
    """The curves of one density, and the layer drawn behind them.

    The table has means over queries. The curves have two queries, each with this mean.

    Args:
        table: rows of figure3_sparse_vs_full.csv.
    """
    names = table.select("configuration", "model").unique(maintain_order=True)
    labels = names["configuration"].to_list()
    curves = Curves(
        float(table["density"][0]),
        ("mrr",),
        tuple(labels),
        tuple(names["model"]),
        np.array([labels.index(label) for label in table["configuration"]], np.int32),
        table["step"].to_numpy(),
        {
            name: np.repeat(table[name].to_numpy()[None, :, None], 2, axis=2).astype(np.float32)
            for name in (FULL, SPARSE, CORRELATED)
        },
    )
    # The theory line is the expected value at the strength that the full test measures.
    theory = table.filter(pl.col("strength") > 0).sort(FULL)
    band = table.select("resampled_lower", "resampled_upper").to_numpy().T
    return curves, Layer(band, theory.select(FULL, "predicted").to_numpy().T)


def main(
    tables: Annotated[Path, typer.Option(help="Folder of the tables.")] = TABLES, out: Out = Path("out")
) -> None:
    """Draws the pictures of the reproduction from its tables."""
    writable_folder(out)
    points = pl.read_csv(tables / "figure3_sparse_vs_full.csv", glob=False)
    drawn = [curves_of(part) for _, part in points.group_by("density", maintain_order=True)]
    curves = [one for one, _ in drawn]
    paths = density_figure(curves, out / "figure3_sparse_vs_full", layers=[layer for _, layer in drawn])
    paths += correlation_figure(nearest_published(curves), out / "figure5_correlation")
    paths += share_figures(pl.read_csv(tables / "claims.csv", infer_schema_length=None, glob=False), out)
    for path in paths:
        print(f"wrote {path}")
    pooled = ("agreement", "systems")
    draw_tables({name: pl.read_csv(tables / f"pooling_{name}.csv", glob=False) for name in pooled}, out)


if __name__ == "__main__":
    run_script(main)
