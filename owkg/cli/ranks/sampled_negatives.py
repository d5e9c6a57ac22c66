"""`owkg metrics --sampled-negatives`: values of full evaluation that agree with ranks among negatives."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from owkg.cli.inputs import check_readable
from owkg.cli.options import names_given, split_list
from owkg.cli.output import rows_of, show, table_of

_USUAL = ("mrr", "hits@1", "hits@10")


@dataclass(frozen=True, kw_only=True)
class SampledNegatives:
    """Ranks among uniformly drawn negatives, or published values of such ranks.

    Ranks among sampled negatives:
        sampled_negatives (K): State that each answer was ranked among K uniformly drawn negatives, and print
            which values of full evaluation agree with that. Needs --num-entities.
        num_entities (N): Number of candidates in full evaluation. Only with --sampled-negatives.
        published (METRIC=VALUE,...): Published values to use instead of FILE, as mrr=0.98,hits@10=0.99. Only
            with --sampled-negatives.
    """

    sampled_negatives: Annotated[int | None, typer.Option(min=1)] = None
    num_entities: int | None = None
    published: str | None = None


def print_full_values(
    files: list[Path], metric: list[str] | None, among: SampledNegatives, ci: float, form: str
) -> None:
    """Prints a row for each metric of each file or published result.

    Raises:
        ValueError: if files and published values are both given or neither, or do not fit the options.
    """
    import polars as pl

    from owkg.metrics import full_values, full_values_of_published
    from owkg.ranks import RankDataset, read_ranks
    from owkg.ranks.dataset import is_dataset
    from owkg.ranks.partitions import whole_table

    negatives, num_entities, published = among.sampled_negatives, among.num_entities, among.published
    assert negatives is not None
    if num_entities is None:
        raise ValueError("`num_entities` must give the number of all candidates, with --sampled-negatives.")
    if bool(files) == (published is not None):
        raise ValueError("--sampled-negatives needs either FILE or --published, not both.")
    if form not in ("table", "json", "csv"):
        raise ValueError(f"`format` must be table, json or csv with --sampled-negatives, got {form}.")
    names = names_given("metric", metric, _USUAL)
    if published is not None:
        values, rounding = _values(published)
        found = full_values_of_published(
            values, names, negatives=negatives, num_entities=num_entities, rounding=rounding
        )
    else:
        check_readable([path for path in files if not is_dataset(path)])
        parts = []
        for path in files:
            table = whole_table(RankDataset.of(path)) if is_dataset(path) else read_ranks(path)
            ranked = int(table.frame["candidates"].max() or 0)  # pyright: ignore[reportArgumentType]
            if ranked != negatives + 1:
                raise ValueError(
                    f"{path}: must rank {negatives + 1:,} candidates, K and the answer, got {ranked:,}."
                )
            own = full_values(table, names, num_entities=num_entities, ci=ci)
            parts.append(own.select(pl.lit(str(path)).alias("file"), pl.all()))
        found = pl.concat(parts)
    title = f"values among {num_entities:,} candidates, from ranks among {negatives:,} negatives"
    told = "every value from full low to full high belongs to ranks that would look the same in this sample"
    show(form, rows_of(found), [table_of(title, found)], [told], frame=found)


def _values(text: str) -> tuple[dict[str, float], dict[str, float]]:
    """Published values by metric, and half a unit of the last digit of each."""
    found, rounding = {}, {}
    for part in split_list(text):
        name, _, value = part.partition("=")
        digits = re.fullmatch(r"(?:\d*\.)?(\d*)", value.strip())
        try:
            number = float(value) if digits else None
        except ValueError:
            number = None
        if number is None or digits is None:
            raise ValueError(f"`published` must be METRIC=VALUE, such as mrr=0.98, got {part!r}.")
        if name.strip() in found:
            raise ValueError(f"`published` must have one value for each metric, got {name.strip()} twice.")
        found[name.strip()] = number
        rounding[name.strip()] = 0.5 * 10.0 ** -len(digits[1]) if "." in value else 0.5
    return found, rounding
