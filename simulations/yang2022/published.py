"""Published simulations of Yang et al. (2022), read if the user has them."""

from typing import NamedTuple

import numpy as np
import polars as pl

from owkg import openworld, theory
from owkg.rank_weights import MRR
from simulations.script import data_file

_COLUMNS = {
    "rho": pl.Float64,
    "alpha": pl.Float64,
    "strength": pl.Float64,
    "mrr_mean": pl.Float64,
    "mrr_standard_error": pl.Float64,
    "trials": pl.Int64,
    "num_answers": pl.Int64,
    "num_entities": pl.Int64,
}


def published_simulations() -> pl.DataFrame | None:
    """The table `$OWKG_DATA/open_world_simulation/published.csv`; None if OWKG_DATA is not set.

    Raises:
        ValueError: if OWKG_DATA is set and the file is not there or is not such a table.
    """
    path = data_file("open_world_simulation", "published.csv")
    if path is None:
        return None
    try:
        table = pl.read_csv(path, schema_overrides=_COLUMNS, glob=False)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path}: {error}") from error
    if missing := sorted(set(_COLUMNS) - set(table.columns)):
        raise ValueError(f"{path}: must have the column {', '.join(missing)}.")
    table = table.select(list(_COLUMNS))
    if table.is_empty():
        raise ValueError(f"{path}: must have at least one row, got none.")
    probability = pl.col("alpha").is_between(0, 1, closed="none") & pl.col("strength").is_between(0, 1)
    sizes = (pl.col("num_answers") >= 1) & (pl.col("num_entities") > pl.col("num_answers"))
    numbers = pl.col("rho").is_between(-1, 1) & pl.col("mrr_mean").is_finite()
    error = pl.col("mrr_standard_error")
    good = probability & sizes & numbers & error.is_finite() & (error > 0) & (pl.col("trials") > 1)
    bad = table.with_row_index("line", offset=2).filter(~good.fill_null(False))
    if not bad.is_empty():
        raise ValueError(f"{path}, line {bad['line'][0]}: not a simulated point: {bad.drop('line').row(0)}.")
    return table


def compared_with_published(table: pl.DataFrame) -> pl.DataFrame:
    """The published means next to the exact ones.

    The published simulator draws `uniform < l1` whatever l1 is: outside the feasible interval of the
    correlation, its conditional strengths act as if cut to [0, 1], and the same is done here. Such points are
    marked `saturated`.

    Returns:
        The rows of `table` with `expectation`, `variance`, `standardised_difference`, `standard_error_ratio`
        (published divided by exact) and `saturated` added.
    """
    l1, l2 = openworld.conditional_strengths(
        table["strength"].to_numpy(), 1 - table["alpha"].to_numpy(), table["rho"].to_numpy()
    )
    exact = theory.conditional_moments(
        MRR,
        missing_strength=np.clip(l1, 0, 1),
        test_strength=np.clip(l2, 0, 1),
        sparsity=1 - table["alpha"].to_numpy(),
        num_answers=table["num_answers"].to_numpy(),
        num_entities=table["num_entities"].to_numpy(),
    )
    error = table["mrr_standard_error"].to_numpy()
    return table.with_columns(
        expectation=pl.Series(exact.expectation),
        variance=pl.Series(exact.variance),
        standardised_difference=(table["mrr_mean"].to_numpy() - exact.expectation) / error,
        standard_error_ratio=error / np.sqrt(exact.variance / table["trials"].to_numpy()),
        saturated=pl.Series((l1 > 1 + 1e-12) | (l2 < -1e-12) | (l1 < -1e-12) | (l2 > 1 + 1e-12)),
    )


class Agreement(NamedTuple):
    """Number of points, and mean and standard deviation of their standardised differences."""

    points: int
    mean: float
    standard_deviation: float

    def __str__(self) -> str:
        return (
            f"{self.points} points, standardised differences: "
            f"mean {self.mean:+.3f}, standard deviation {self.standard_deviation:.3f}"
        )


def agreement(standardised: np.ndarray) -> Agreement:
    """Summary of standardised differences; about (0, 1) if estimates and closed forms agree."""
    return Agreement(len(standardised), float(standardised.mean()), float(standardised.std(ddof=1)))
