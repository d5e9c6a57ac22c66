"""Full-test MRR implied by a sparse MRR, compared with the true one of models trained on a closed world.

The script reads the curves of `docs/reproduction/figure3_sparse_vs_full.csv` (60 checkpoints of 12 models at
4 densities) and the published worlds that these models were trained on (`family_tree_published` in
OWKG_DATA). The implied value uses only the sparsity and the numbers of answers in the sparse test, and
assumes that facts are missing independently.

    python simulations/implied_full_test.py --data data
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer

from owkg.auditing import Answers, implied
from owkg.terminal.tables import printed
from simulations.open_world.curves import SPARSE
from simulations.open_world.world import read_world

CURVES = Path(__file__).parents[1] / "docs" / "reproduction" / "figure3_sparse_vs_full.csv"
# Below this MRR, both tests measure almost nothing.
LEAST_STRENGTH = 0.1


def errors(worlds: Path, curves: Path = CURVES) -> pl.DataFrame:
    """Errors of the implied MRR and of the sparse MRR against the full MRR: a row for each density.

    Args:
        worlds: folder of the published worlds.
        curves: CSV with a row for each checkpoint and the columns density, strength, sparse and full.
    """
    table = pl.read_csv(curves, glob=False)
    rows = []
    for folder in sorted(path for path in worlds.iterdir() if path.is_dir()):
        world = read_world(folder)
        known = np.bincount(world.query[world.present[SPARSE]], minlength=world.num_queries)
        counts, queries = np.unique(known, return_counts=True)
        sparsity = 1 - known.sum() / len(world.query)
        answers = Answers(counts, queries / queries.sum(), world.graph.num_entities, queries)
        own = table.filter(pl.col("density") == world.density)
        full, sparse = own["full"].to_numpy(), own["sparse"].to_numpy()
        strong = own["strength"].to_numpy() >= LEAST_STRENGTH
        apart = (implied("mrr", sparse, answers, sparsity=sparsity).full - full)[strong]
        rows.append(
            {
                "density": world.density,
                "sparsity": sparsity,
                "checkpoints": int(strong.sum()),
                "rms_error": float(np.sqrt((apart**2).mean())),
                "error_of_95_%": float(np.quantile(np.abs(apart), 0.95)),
                "sparse_off_by": float(np.abs(sparse - full).max()),
            }
        )
    return pl.DataFrame(rows).sort("density", descending=True)


def main(
    data: Annotated[
        Path, typer.Option(help="Folder of the data sets; default OWKG_DATA.", envvar="OWKG_DATA")
    ],
) -> None:
    """Prints how far implied full-test metrics are from the true ones."""
    found = errors(data / "family_tree_published")
    cells = [[f"{x:.3f}" if isinstance(x, float) else str(x) for x in row] for row in found.iter_rows()]
    printed("Implied full-test MRR of trained models", found.columns, cells)


if __name__ == "__main__":
    typer.run(main)
