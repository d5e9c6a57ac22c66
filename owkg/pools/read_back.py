"""Filled-in sheets of a pool: its judgements, and the agreement of the annotators."""

import warnings
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from owkg.errors import ArgumentError
from owkg.files.storage import METADATA_FILE, checksum, checksums, read_metadata
from owkg.ir import POOLED
from owkg.judge.qrels import merged, read_judgements
from owkg.judge.runs import read_runs
from owkg.pools.annotation import SOURCE, has_source, read_sheet, sheet_rows
from owkg.pools.bias import pool_bias
from owkg.pools.design import MADE_BY, Design, design_of_pool, is_sheet_name
from owkg.pools.kappa import AnnotatorAgreement, annotator_agreement, majority

_PAIR = ["query", "answer"]
_SHEET = "sheet.tsv"  # annotators may fill it in inside the folder
_READ = ("pool.qrels", "pool.tsv", "runs.trec.gz")


class ReadBack(NamedTuple):
    """Judgements of a pool after its sheets were filled in.

    Attributes:
        qrels: judgements of the pool: earlier ones, and the majority of the annotators.
        said: majority of the annotators, including the one who decided conflicts.
        sheets: judgements of each annotator.
        agreements: agreement of each pair of sheets, by their numbers; only pairs with a shared candidate.
        conflicts: candidates on which the annotators have no majority, with the relevance by each.
        no_majority: conflicts that remain after the third annotator decided.
        bias: rows of `owkg.pools.pool_bias`; empty if it cannot be computed.
        rejected: number of candidates that rules call not relevant.
        lost: estimated number of relevant answers among the rejected ones, from the cost of the rules; None
            if no rule was used.
        design: design of the pool.
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
    """Judgements of a pool with the labels of filled-in sheets. Warns if labels are missing or suspicious.

    Args:
        sheets: filled-in sheets, one for each annotator.
        folder: folder of the pool.
        third: sheet of one more annotator, who judged exactly the candidates on which the others have no
            majority; the label counts as one more vote. Default None: none.
        changed: whether to read a pool whose files were changed. Default False.

    Raises:
        ValueError: if a sheet is given twice; if the folder is not a pool or was changed; or if `third` lacks
            a conflict, holds another candidate, or there is no conflict.
    """
    given = [*sheets, *([] if third is None else [third])]
    for i, sheet in enumerate(given):
        if sheet.resolve() in [earlier.resolve() for earlier in given[:i]]:
            raise ArgumentError("read", f"must name sheets of different annotators, got {sheet} twice.")
    card = pool_card(folder)
    require_as_written(folder, card, changed=changed)
    judged = read_judgements(folder / "pool.qrels", topics="allowed")
    # Sheets of a draw are judged from the top, possibly not to their end.
    is_drawn = design_of_pool(card) is Design.DRAWN
    labels = [read_sheet(sheet, judged, blank=is_drawn) for sheet in sheets]
    for (i, one), (j, other) in combinations(enumerate(labels), 2):
        if one.equals(other):
            _warn(f"{sheets[i]} and {sheets[j]} have the same label for every candidate.")
    agreements = _agreements(labels)
    if len(labels) == 2 and not agreements:
        _warn(f"no candidate is judged in both {sheets[0]} and {sheets[1]}, so their agreement is unknown.")
    said = majority(labels)
    conflicts = torn = _torn(said)
    if third is not None:
        said = majority([*labels, _third(third, conflicts)])
        torn = _torn(said)
    open_ = judged.filter(relevance=POOLED)
    lacking = len(open_.join(said, on=_PAIR, how="anti")) - card.get("beyond_budget", 0)
    if lacking > 0 and not is_drawn:
        _warn(f"{lacking:,} candidates that must be judged are in no sheet.")
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
    """Metadata of a pool; raises ValueError if the folder is not a pool."""
    if not (folder / METADATA_FILE).is_file():
        raise ValueError(f"{folder}: must be a folder that owkg pool wrote.")
    card = read_metadata(folder)
    if (made_by := card.get("made_by")) != MADE_BY:
        raise ValueError(f"{folder}: must be a pool that {MADE_BY} wrote, got a folder by {made_by!r}.")
    return card


def pool_judgements(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame, Design]:
    """Judgements of a pool, including the sheet in its folder if it is filled in.

    Returns:
        (judgements; candidates: the rows of pool.tsv with query, answer and depth; design).

    Raises:
        ValueError: if the folder is not a pool, its sheet is only partly filled in, or pool.tsv has no depth.
    """
    card = pool_card(folder)
    table = pl.read_csv(folder / "pool.tsv", separator="\t", infer_schema=False, glob=False)
    candidates = table
    depth = candidates["depth"].cast(pl.Int64, strict=False) if "depth" in candidates.columns else None
    if depth is None or depth.is_null().any():
        raise ValueError(f"{folder / 'pool.tsv'}: must have a whole number as depth of each candidate.")
    judged = read_judgements(folder / "pool.qrels", topics="allowed")
    sheet = folder / _SHEET
    if sheet.is_file() and _changed(sheet, card):
        judged = merged(judged, read_sheet(sheet, judged))
    return judged, candidates.with_columns(depth), design_of_pool(card)


def original_sheet(folder: Path) -> Path | None:
    """Sheet in the folder of a pool; None if it was filled in there."""
    sheet = folder / _SHEET
    return None if _changed(sheet, read_metadata(folder)) else sheet


def annotations(sheets: Sequence[Path], said: pl.DataFrame) -> pl.DataFrame:
    """All annotations, one row for each row of a sheet.

    Args:
        sheets: filled-in sheets.
        said: majority of the annotators, columns query, answer, relevance.

    Returns:
        Columns query, answer, relevance (from `said`), sheet (its path), label, source and comment as
        written.
    """
    merged_ = said.select(*_PAIR, "relevance")
    tables = [sheet_rows(sheet)[0].with_columns(sheet=pl.lit(str(sheet))) for sheet in sheets]
    rows = pl.concat(tables).drop("answer").rename({"question_id": "query", "answer_id": "answer"})
    rows = rows.join(merged_, on=_PAIR, how="left", maintain_order="left")
    return rows.select(*_PAIR, "relevance", "sheet", "label", SOURCE, "comment")


def sourced(sheets: Sequence[Path]) -> tuple[int, int] | None:
    """(rows with a source, rows) of the sheets with the column source; None if no sheet has it."""
    filled = [sheet_rows(sheet)[0][SOURCE].str.strip_chars() != "" for sheet in sheets if has_source(sheet)]
    return (sum(int(own.sum()) for own in filled), sum(map(len, filled))) if filled else None


def _torn(said: pl.DataFrame) -> pl.DataFrame:
    """Candidates that some annotator judged and that have no majority."""
    return said.filter(pl.col("relevance") == POOLED, pl.col("relevances").list.max() >= 0)


def _third(sheet: Path, conflicts: pl.DataFrame) -> pl.DataFrame:
    """Labels of the annotator who decides conflicts, which must cover exactly the conflicts."""
    if conflicts.is_empty():
        raise ArgumentError("third", f"must be left out because there are no conflicts, got {sheet}.")
    labels = read_sheet(sheet, conflicts, of="the conflicts")
    lacking = conflicts.join(labels, on=_PAIR, how="anti", maintain_order="left")
    if len(lacking):
        query, answer = lacking.select(_PAIR).row(0)
        raise ValueError(
            f"{sheet}: must label every conflict, but {len(lacking):,} of {len(conflicts):,} are missing, "
            f"such as {answer!r} to {query!r}."
        )
    return labels


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=3)


def require_as_written(
    folder: Path, card: dict[str, Any], *, changed: bool, advice: str = "; --allow-changed reads it anyway"
) -> None:
    """Raise ValueError if a file of the pool was changed; sheets may be filled in inside the folder."""
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
    _warn(f"{folder}: {', '.join(other)} changed since, so the contribution of each system is unknown.")


def _agreements(labels: list[pl.DataFrame]) -> dict[tuple[int, int], AnnotatorAgreement]:
    """Agreement of each pair of sheets with a candidate that both judged."""
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
    """Estimated number of relevant answers that the rules rejected: the sum over relations of r s / (1 - s).

    Here s is the share of known answers that the rules would reject, and r the number of relevant answers
    that they left.
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
    """Rows of `owkg.pools.pool_bias` for a pool.

    The list is empty if there is only one system, nothing is relevant, or the files of the pool were changed.

    Args:
        folder: folder that `owkg pool` wrote.
        qrels: judgements of the pool, including those of annotators.
    """
    card = read_metadata(folder)
    if len(card["systems"]) < 2 or not (qrels["relevance"] > 0).any():
        return []
    if any(_changed(folder / name, card) for name in _READ):
        return []
    settings = card["settings"]
    given = read_judgements(folder / "pool.qrels", topics="allowed")
    # Earlier judgements do not depend on the pooled systems, unless by a rule or by a truth for annotators.
    table = pl.read_csv(folder / "pool.tsv", separator="\t", infer_schema=False, glob=False)
    pool = table
    kept = given.join(pool.filter(judged_by="rule"), on=["query", "answer"], how="anti")
    run = read_runs([folder / "runs.trec.gz"], topics="allowed")
    return pool_bias(
        run, qrels, settings["depth"], kept=None if settings["closed_world"] else kept
    ).to_dicts()


def _changed(path: Path, card: dict[str, Any]) -> bool:
    return not path.is_file() or checksum(path) != card["sha256"].get(path.name)
