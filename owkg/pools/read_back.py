"""Annotation sheets of a pool read back: its judgements, and how far annotators agree."""

import warnings
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from owkg.errors import ArgumentError
from owkg.files.storage import checksum, checksums, read_metadata
from owkg.ir import POOLED
from owkg.judge.qrels import merged, read_judgements
from owkg.judge.runs import read_runs
from owkg.pools.annotation import SOURCE, has_source, read_sheet, sheet_rows
from owkg.pools.bias import pool_bias
from owkg.pools.design import MADE_BY, Design, design_of_pool, is_sheet_name
from owkg.pools.kappa import AnnotatorAgreement, annotator_agreement, majority

_PAIR = ["query", "answer"]
_SHEET = "sheet.tsv"  # which annotators may fill in where it is
_READ = ("pool.qrels", "pool.tsv", "runs.trec.gz")


class ReadBack(NamedTuple):
    """What filled-in sheets say of a pool.

    Attributes:
        qrels: judgements of the pool: those before, and what most annotators say.
        said: what most annotators say, with that of the one who decided conflicts.
        sheets: what each annotator says.
        agreements: of each pair of sheets, by their numbers; of several, only where they share a candidate.
        conflicts: candidates on which the annotators have no majority, with what each says.
        no_majority: those that stay so once conflicts were decided.
        bias: rows of `owkg.pools.pool_bias`; none where they cannot be told.
        rejected: candidates that rules call not relevant.
        lost: how many of those are relevant, by what the rules cost; None where no rule was used.
        design: of the pool.
    """

    qrels: pl.DataFrame
    said: pl.DataFrame
    sheets: list[pl.DataFrame]
    agreements: dict[tuple[int, int], AnnotatorAgreement]
    conflicts: pl.DataFrame
    no_majority: pl.DataFrame
    bias: list[dict[str, Any]]
    rejected: int
    lost: int | None
    design: Design


def read_back(
    sheets: Sequence[Path], folder: Path, *, third: Path | None = None, changed: bool = False
) -> ReadBack:
    """The judgements of a pool with the labels of filled-in sheets; warns of what is missing or odd.

    Args:
        sheets: that were filled in, one an annotator.
        folder: of the pool.
        third: the sheet of one more annotator, who judged all candidates on which the others have no
            majority, and no other; their label counts as one more.
        changed: whether a pool is read whose files are not as they were written.

    Raises:
        ValueError: if a sheet stands there twice, or the folder is no pool, or not as it was written; or if
            `third` lacks a conflict, holds another candidate, or there is no conflict.
    """
    given = [*sheets, *([] if third is None else [third])]
    for i, sheet in enumerate(given):
        if sheet.resolve() in [earlier.resolve() for earlier in given[:i]]:
            raise ArgumentError("read", f"must be the sheets of different annotators, got {sheet} twice.")
    card = pool_card(folder)
    require_as_written(folder, card, changed=changed)
    judged = read_judgements(folder / "pool.qrels", topics="allowed")
    # Drawn sheets are judged from the top, and perhaps not to their end.
    is_drawn = design_of_pool(card) is Design.DRAWN
    labels = [read_sheet(sheet, judged, blank=is_drawn) for sheet in sheets]
    for (i, one), (j, other) in combinations(enumerate(labels), 2):
        if one.equals(other):
            _warn(f"{sheets[i]} and {sheets[j]} say the same of every candidate.")
    agreements = _agreements(labels)
    if len(labels) == 2 and not agreements:
        _warn(f"no candidate is judged in both {sheets[0]} and {sheets[1]}: their agreement is not known.")
    said = majority(labels)
    conflicts = torn = _torn(said)
    if third is not None:
        said = majority([*labels, _third(third, conflicts)])
        torn = _torn(said)
    open_ = judged.filter(relevance=POOLED)
    lacking = len(open_.join(said, on=_PAIR, how="anti")) - card.get("beyond_budget", 0)
    if lacking > 0 and not is_drawn:
        _warn(f"{lacking:,} candidates that are to be judged are in no sheet.")
    qrels = merged(judged, said.drop("relevances"))
    return ReadBack(
        qrels,
        said,
        labels,
        agreements,
        conflicts,
        torn,
        bias_of(folder, qrels),
        sum(card["rules"].values()),
        _lost(card, qrels),
        design_of_pool(card),
    )


def pool_card(folder: Path) -> dict[str, Any]:
    """What a pool says of itself; ValueError if the folder is none."""
    card = read_metadata(folder)
    if (made_by := card.get("made_by")) != MADE_BY:
        raise ValueError(f"{folder}: must be a pool that {MADE_BY} wrote, got one made by {made_by!r}.")
    return card


def pool_judgements(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame, Design]:
    """What is judged in a pool, with the sheet that stands in its folder, where that is filled in.

    Returns:
        (judgements; candidates: the rows of pool.tsv with query, answer and depth; design).

    Raises:
        ValueError: if the folder is no pool, its sheet is filled in by half, or pool.tsv has no depth.
    """
    card = pool_card(folder)
    table = pl.read_csv(folder / "pool.tsv", separator="\t", infer_schema=False, glob=False)
    candidates = table
    depth = candidates["depth"].cast(pl.Int64, strict=False) if "depth" in candidates.columns else None
    if depth is None or depth.is_null().any():
        raise ValueError(f"{folder / 'pool.tsv'}: must say the depth of each candidate.")
    judged = read_judgements(folder / "pool.qrels", topics="allowed")
    sheet = folder / _SHEET
    if sheet.is_file() and _changed(sheet, card):
        judged = merged(judged, read_sheet(sheet, judged))
    return judged, candidates.with_columns(depth), design_of_pool(card)


def original_sheet(folder: Path) -> Path | None:
    """The sheet in the folder of a pool, if nobody has filled it in there."""
    sheet = folder / _SHEET
    return None if _changed(sheet, read_metadata(folder)) else sheet


def annotations(sheets: Sequence[Path], said: pl.DataFrame) -> pl.DataFrame:
    """What every annotator wrote, a row for each row of a sheet.

    Args:
        sheets: that were filled in.
        said: what most annotators say, columns query, answer, relevance.

    Returns:
        Columns query, answer, relevance (of `said`), sheet (its path), label, source and comment as written.
    """
    merged_ = said.select(*_PAIR, "relevance")
    tables = [sheet_rows(sheet)[0].with_columns(sheet=pl.lit(str(sheet))) for sheet in sheets]
    rows = pl.concat(tables).drop("answer").rename({"question_id": "query", "answer_id": "answer"})
    rows = rows.join(merged_, on=_PAIR, how="left", maintain_order="left")
    return rows.select(*_PAIR, "relevance", "sheet", "label", SOURCE, "comment")


def sourced(sheets: Sequence[Path]) -> tuple[int, int] | None:
    """(rows with a source, rows) of the sheets with that column; None where none has it."""
    filled = [sheet_rows(sheet)[0][SOURCE].str.strip_chars() != "" for sheet in sheets if has_source(sheet)]
    return (sum(int(own.sum()) for own in filled), sum(map(len, filled))) if filled else None


def _torn(said: pl.DataFrame) -> pl.DataFrame:
    """The candidates that some annotator judged, and that have no majority."""
    return said.filter(pl.col("relevance") == POOLED, pl.col("relevances").list.max() >= 0)


def _third(sheet: Path, conflicts: pl.DataFrame) -> pl.DataFrame:
    """The labels of one who decides conflicts: of these and no others."""
    if conflicts.is_empty():
        raise ArgumentError("third", f"must decide conflicts, and there are none, got {sheet}.")
    labels = read_sheet(sheet, conflicts, of="the conflicts")
    lacking = conflicts.join(labels, on=_PAIR, how="anti", maintain_order="left")
    if len(lacking):
        query, answer = lacking.select(_PAIR).row(0)
        raise ValueError(
            f"{sheet}: must label every conflict, and {len(lacking):,} of {len(conflicts):,} are missing, "
            f"such as {answer!r} to {query!r}."
        )
    return labels


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def require_as_written(
    folder: Path,
    card: dict[str, Any],
    *,
    changed: bool,
    advice: str = "; --allow-changed reads it all the same",
) -> None:
    """ValueError if a file of the pool is not as it was written; a sheet may be filled in where it is."""
    now = checksums(folder)
    other = [
        name for name, found in card["sha256"].items() if not is_sheet_name(name) and now.get(name) != found
    ]
    if not other:
        return
    if not changed:
        raise ValueError(f"{folder}: {', '.join(other)} changed since the pool was written{advice}.")
    if not (folder / "pool.qrels").is_file():
        raise ValueError(f"{folder}: holds no pool.qrels.")
    _warn(f"{folder}: {', '.join(other)} changed since; what each system brought is not told.")


def _agreements(labels: list[pl.DataFrame]) -> dict[tuple[int, int], AnnotatorAgreement]:
    """Of each pair of sheets that have judged a candidate both."""
    found = {}
    for i, j in combinations(range(len(labels)), 2):
        both = (
            labels[i]
            .join(labels[j], on=_PAIR)
            .filter(pl.min_horizontal("relevance", "relevance_right") != POOLED)
        )
        if len(both):
            found[i, j] = annotator_agreement(labels[i], labels[j])
    return found


def _lost(card: dict[str, Any], qrels: pl.DataFrame) -> int | None:
    """How many relevant answers the rules took, by those that they left: of each relation r s / (1 - s).

    With s the share of known answers that the rules would reject, and r the relevant ones that they left.
    """
    cost = [row for row in card.get("rule_cost", {}).get("rows", []) if row["relation"] is not None]
    if not cost:
        return None
    left = qrels.filter(pl.col("relevance") > 0).group_by("relation").len().join(
        pl.DataFrame(cost).select("relation", "share"), on="relation"
    )  # fmt: skip
    rejected = sum(card["rules"].values())
    odds = left.select(pl.col("len") * pl.col("share") / (1 - pl.col("share")).clip(1e-9))
    return min(rejected, round(float(odds.to_series().sum())))


def bias_of(folder: Path, qrels: pl.DataFrame) -> list[dict[str, Any]]:
    """The rows of `owkg.pools.pool_bias`.

    None where there is one system, where nothing is relevant, or where the files of the pool are no longer
    those that were written.

    Args:
        folder: that `owkg pool` wrote.
        qrels: its judgements with those of annotators.
    """
    card = read_metadata(folder)
    if len(card["systems"]) < 2 or not (qrels["relevance"] > 0).any():
        return []
    if any(_changed(folder / name, card) for name in _READ):
        return []
    settings = card["settings"]
    given = read_judgements(folder / "pool.qrels", topics="allowed")
    # What was judged before stays judged whoever is pooled, unless a rule did it, or truth stood for people.
    table = pl.read_csv(folder / "pool.tsv", separator="\t", infer_schema=False, glob=False)
    pool = table
    kept = given.join(pool.filter(judged_by="rule"), on=["query", "answer"], how="anti")
    run = read_runs([folder / "runs.trec.gz"], topics="allowed")
    return pool_bias(
        run, qrels, settings["depth"], kept=None if settings["closed_world"] else kept
    ).to_dicts()


def _changed(path: Path, card: dict[str, Any]) -> bool:
    return not path.is_file() or checksum(path) != card["sha256"].get(path.name)
