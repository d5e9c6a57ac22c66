"""What annotators filled in, read back into the judgements of a pool."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from owkg.cli.options import Format
from owkg.cli.output import number
from owkg.cli.pool import MADE_BY
from owkg.cli.pool_bias import bias_of, show_bias
from owkg.cli.systems import note
from owkg.cli.tables import printed
from owkg.judge.annotation import read_sheet
from owkg.judge.kappa import AnnotatorAgreement, annotator_agreement
from owkg.judge.qrels import merged, read_judgements, write_judgements
from owkg.metrics import POOLED
from owkg.provenance import read_metadata

_SHOWN = 10


def read_back(
    sheets: Sequence[Path], folder: Path, out: Path, form: Format, *, overwrite: bool = False
) -> None:
    """Writes the judgements of a pool with the labels of one sheet or two, and prints what they say.

    Args:
        sheets: that were filled in.
        folder: of the pool.
        out: file of judgements to write.
        form: JSON or table.
        overwrite: whether a file that is there is replaced; never a sheet, nor a file of the pool.
    """
    place = out.resolve()
    if place in [sheet.resolve() for sheet in sheets] or place.parent == folder.resolve():
        raise ValueError(f"`out` must be a file of its own, got {out}, which is read.")
    if out.exists() and not overwrite:
        raise ValueError(f"{out}: is there already; --overwrite replaces it.")
    if len(sheets) > 2:
        raise ValueError(f"`read` must be one sheet or two, got {len(sheets)}.")
    if len({sheet.resolve() for sheet in sheets}) < len(sheets):
        raise ValueError(f"`read` must be the sheets of two annotators, got {sheets[0]} twice.")
    if (made_by := read_metadata(folder).get("made_by")) != MADE_BY:
        raise ValueError(f"{folder}: must be a pool that {MADE_BY} wrote, got one made by {made_by!r}.")
    judged = read_judgements(folder / "pool.qrels")
    labels = [read_sheet(sheet, judged) for sheet in sheets]
    if len(labels) == 2 and labels[0].equals(labels[1]):
        note(f"{sheets[0]} and {sheets[1]} say the same of every candidate.")
    if lacking := len(
        judged.filter(grade=POOLED).join(pl.concat(labels), on=["question", "answer"], how="anti")
    ):
        note(f"{lacking:,} candidates that are to be judged are in no sheet.")
    agreement = annotator_agreement(*labels) if len(labels) == 2 else None
    qrels = merged(judged, labels[0] if agreement is None else _agreed(*labels))
    bias = bias_of(folder, qrels)
    write_judgements(qrels, out)
    grade = qrels["grade"]
    counts = {
        "candidates": len(qrels),
        "relevant": int((grade > 0).sum()),
        "not_relevant": int((grade == 0).sum()),
        "not_judged": int((grade == POOLED).sum()),
    }
    if form is Format.JSON:
        shown = {"out": str(out)} | counts | {"systems": bias}
        print(json.dumps(shown | ({} if agreement is None else _as_json(agreement)), indent=2))
        return
    if agreement is not None:
        _show(agreement)
    show_bias(bias)
    print(
        f"wrote {out}: " + ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    )


def _agreed(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The labels of both; what they label differently is not judged."""
    both = pl.concat([first, second])
    judged = pl.col("grade").filter(pl.col("grade") != POOLED)
    torn = judged.n_unique() != 1
    keys = [name for name in both.columns if name != "grade"]
    return both.group_by(keys, maintain_order=True).agg(
        grade=pl.when(torn).then(pl.lit(POOLED, pl.Int64)).otherwise(judged.first())
    )


def _as_json(agreement: AnnotatorAgreement) -> dict[str, Any]:
    found: dict[str, Any] = agreement._asdict() | {"disagreements": agreement.disagreements.to_dicts()}
    for name in ("kappa", "standard_error"):
        found[name] = number(found[name])
    return {"agreement": found}


def _show(agreement: AnnotatorAgreement) -> None:
    rows = agreement.disagreements.select("question", "answer", "first", "second").rows()
    if rows:
        printed("", ["question", "answer", "first", "second"], rows[:_SHOWN])
    if len(rows) > _SHOWN:
        print(f"and {len(rows) - _SHOWN:,} more that the annotators judge differently")
    kappa, error = number(agreement.kappa), number(agreement.standard_error)
    said = "kappa undefined, all of one grade" if kappa is None else f"kappa {kappa:.4f} (error {error:.4f})"
    print(
        f"both judged {agreement.candidates:,}, agreeing {100 * agreement.agreeing:.4g} %, {said}; "
        f"{agreement.unsure:,} unsure, {agreement.unshared:,} in one sheet only"
    )
