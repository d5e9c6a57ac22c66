"""Seeds of models in rank tables."""

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from owkg.checks import StrPath
from owkg.ranks.table import TRIPLE, RankTable

Runs = Mapping[Any, tuple[int, ...]]
"""Seeds of each model, increasing; the key is None if no model is named."""


def seeds_of(frame: pl.DataFrame) -> dict[Any, tuple[int, ...]]:
    """Seeds of each model that has several; empty if none has.

    Args:
        frame: frame with the columns seed and model of a rank table; either may be missing.
    """
    if "seed" not in frame.columns or frame["seed"].n_unique() < 2:
        return {}
    if "model" not in frame.columns:
        return {None: tuple(frame["seed"].unique().sort().to_list())}
    runs = frame.select("model", "seed").unique().sort("model", "seed")
    found = runs.group_by("model", maintain_order=True).agg("seed")
    return {model: tuple(seeds) for model, seeds in found.rows() if len(seeds) > 1}


def require_same_tasks(
    frame: pl.DataFrame, runs: Runs, *, labelled: Callable[[pl.Series], pl.Series] = lambda column: column
) -> None:
    """ValueError if the seeds of a model rank different tasks, or weigh them differently.

    Args:
        frame: rank table, or whole queries of one, with each task of a run once.
        runs: seeds from `seeds_of` for the whole table.
        labelled: function from a column of the task to its labels, for messages.
    """
    for model, seeds in runs.items():
        own = frame if model is None else frame.filter(pl.col("model") == model)
        task = [*TRIPLE, "side"]
        weight = pl.col("weight") if "weight" in own.columns else pl.lit(1.0)
        counted = own.group_by(task).agg(pl.len(), least=weight.min(), most=weight.max())
        lacking, other = pl.col("len") < len(seeds), pl.col("most") - pl.col("least") > 1e-9 * pl.col("most")
        if (found := counted.filter(lacking | other)).is_empty():
            continue
        few = found.filter(lacking)
        row = (found if few.is_empty() else few).sort(task).row(0, named=True)
        said = "|".join(str(labelled(pl.Series(name, [row[name]]))[0]) for name in TRIPLE)
        named = "" if model is None else f" of {model!r}"
        if few.is_empty():
            raise ValueError(
                f"the seeds{named} must have the same weights: {len(found):,} tasks have others, such as "
                f"the {row['side']} of {said}, {row['least']:g} and {row['most']:g}."
            )
        has = own.filter(pl.all_horizontal(pl.col(name) == row[name] for name in task))["seed"].to_list()
        seed = next(one for one in seeds if one not in has)
        raise ValueError(
            f"the seeds{named} must rank the same tasks: seed {seed} lacks {len(few):,}, such as the "
            f"{row['side']} of {said}, which seed {has[0]} ranks."
        )


def with_more_seeds(
    table: RankTable, more: RankTable, named: str, before: StrPath, source: StrPath
) -> RankTable:
    """Union of two rank tables of a model whose seeds are in several files.

    Args:
        table, more: rank tables with different seeds.
        named: name of the model in messages, such as "the model 'a'".
        before, source: files of the tables.

    Raises:
        ValueError: naming both files, if a table has no seeds, both have the same one, or they cannot be of
            one model.
    """
    if "seed" not in table.frame.columns or "seed" not in more.frame.columns:
        hint = "tell its runs apart with a column seed in both, or make them two models with --name"
        raise ValueError(f"{source}: {named} is in {before} too; {hint}.")
    both = set(table.frame["seed"].unique()) & set(more.frame["seed"].unique())
    if both:
        raise ValueError(f"{source}: seed {min(both)} of {named} is in {before} too.")
    filters: list[list[str]] = [one.about["filter"] for one in (table, more) if one.about.get("filter")]
    if len(filters) == 2 and set(filters[0]) != set(filters[1]):
        said = " and ".join(", ".join(one) for one in filters)
        raise ValueError(f"{source}: {named} is filtered differently in {before}: by {said}.")
    shared = [name for name in table.frame.columns if name in more.frame.columns]
    try:
        frame = pl.concat([table.frame.select(shared), more.frame.select(shared)])
    except pl.exceptions.PolarsError:
        raise ValueError(f"{source}: {named} has labels in one file and ids in {before}.") from None
    return RankTable.trusted(frame, table.about)
