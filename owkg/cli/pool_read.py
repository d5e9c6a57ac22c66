"""What annotators filled in, read back into the judgements of a pool."""

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl

from owkg.cli.options import Format
from owkg.cli.output import number
from owkg.cli.pool import MADE_BY
from owkg.cli.pool_bias import bias_of, show_bias
from owkg.cli.systems import note
from owkg.cli.tables import line, printed
from owkg.judge.annotation import read_sheet
from owkg.judge.kappa import AnnotatorAgreement, annotator_agreement, fleiss_kappa, majority
from owkg.judge.qrels import merged, read_judgements, write_judgements
from owkg.metrics import POOLED
from owkg.provenance import checksums, read_metadata

_SHOWN = 10
_PAIR = ["question", "answer"]
_SHEET = "sheet.tsv"  # which annotators may fill in where it is


def read_back(
    sheets: Sequence[Path],
    folder: Path,
    out: Path,
    form: Format,
    *,
    overwrite: bool = False,
    changed: bool = False,
) -> None:
    """Writes the judgements of a pool with the labels of filled-in sheets, and prints what they say.

    Args:
        sheets: that were filled in, one an annotator.
        folder: of the pool.
        out: file of judgements to write.
        form: JSON or table.
        overwrite: whether a file that is there is replaced; never a sheet, nor a file of the pool.
        changed: whether a pool is read whose files are not as they were written.
    """
    place = out.resolve()
    if place in [sheet.resolve() for sheet in sheets] or place.parent == folder.resolve():
        raise ValueError(f"`out` must be a file of its own, got {out}, which is read.")
    if out.exists() and not overwrite:
        raise ValueError(f"{out}: is there already; --overwrite replaces it.")
    for i, sheet in enumerate(sheets):
        if sheet.resolve() in [earlier.resolve() for earlier in sheets[:i]]:
            raise ValueError(f"`read` must be the sheets of different annotators, got {sheet} twice.")
    card = read_metadata(folder)
    if (made_by := card.get("made_by")) != MADE_BY:
        raise ValueError(f"{folder}: must be a pool that {MADE_BY} wrote, got one made by {made_by!r}.")
    _require_as_written(folder, card, changed=changed)
    judged = read_judgements(folder / "pool.qrels")
    labels = [read_sheet(sheet, judged) for sheet in sheets]
    for (i, one), (j, other) in combinations(enumerate(labels), 2):
        if one.equals(other):
            note(f"{sheets[i]} and {sheets[j]} say the same of every candidate.")
    said = majority(labels)
    open_ = judged.filter(grade=POOLED)
    lacking = len(open_.join(said, on=_PAIR, how="anti")) - card.get("beyond_budget", 0)
    if lacking > 0:
        note(f"{lacking:,} candidates that are to be judged are in no sheet.")
    agreements = _agreements(labels)
    qrels = merged(judged, said.drop("grades"))
    bias = bias_of(folder, qrels)
    write_judgements(qrels, out)
    grade = qrels["grade"]
    counts = {
        "candidates": len(qrels),
        "relevant": int((grade > 0).sum()),
        "not_relevant": int((grade == 0).sum()),
        "not_judged": int((grade == POOLED).sum()),
    }
    lost = _lost(card, qrels)
    torn = said.filter(pl.col("grade") == POOLED, pl.col("grades").list.max() >= 0)
    if form is Format.JSON:
        shown: dict[str, Any] = {"out": str(out)} | counts | {"systems": bias, "lost_by_rule": lost}
        if len(labels) == 2:
            shown |= {"agreement": _as_json(agreements[0, 1])}
        elif agreements:
            value, candidates = fleiss_kappa(labels)
            pairs = [
                {"sheets": [str(sheets[i]) for i in pair]} | _as_json(own) for pair, own in agreements.items()
            ]
            shown |= {"fleiss_kappa": number(value), "judged_by_all": candidates, "pairs": pairs}
            shown |= {"no_majority": torn.select(*_PAIR, "grades").to_dicts()}
        print(json.dumps(shown, indent=2))
        return
    if agreements:
        _show(list(map(str, sheets)), labels, agreements, torn)
    show_bias(bias)
    if lost is not None:
        rejected = sum(card["rules"].values())
        line(f"of {rejected:,} candidates that rules reject, about {lost:,} are relevant, by what rules cost")
    line(
        f"wrote {out}: " + ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    )


def _require_as_written(folder: Path, card: dict[str, Any], *, changed: bool) -> None:
    """ValueError if a file of the pool is not as it was written; a sheet may be filled in where it is."""
    now = checksums(folder)
    other = [name for name, found in card["sha256"].items() if name != _SHEET and now.get(name) != found]
    if not other:
        return
    if not changed:
        raise ValueError(
            f"{folder}: {', '.join(other)} changed since the pool was written; --changed reads it all the "
            "same."
        )
    if not (folder / "pool.qrels").is_file():
        raise ValueError(f"{folder}: holds no pool.qrels.")
    note(f"{folder}: {', '.join(other)} changed since; what each system brought is not told.")


def _agreements(labels: list[pl.DataFrame]) -> dict[tuple[int, int], AnnotatorAgreement]:
    """Of each pair of sheets; of several, only of those that have judged a candidate both."""
    found = {}
    for i, j in combinations(range(len(labels)), 2):
        both = labels[i].join(labels[j], on=_PAIR).filter(pl.min_horizontal("grade", "grade_right") != POOLED)
        if len(both) or len(labels) == 2:
            found[i, j] = annotator_agreement(labels[i], labels[j])
    return found


def _lost(card: dict[str, Any], qrels: pl.DataFrame) -> int | None:
    """How many relevant answers the rules took, by those that they left: of each relation r s / (1 - s).

    With s the share of known answers that the rules would reject, and r the relevant ones that they left.
    """
    cost = [row for row in card.get("rule_cost", {}).get("rows", []) if row["relation"] is not None]
    if not cost:
        return None
    left = qrels.filter(pl.col("grade") > 0).group_by("relation").len().join(
        pl.DataFrame(cost).select("relation", "share"), on="relation"
    )  # fmt: skip
    rejected = sum(card["rules"].values())
    odds = left.select(pl.col("len") * pl.col("share") / (1 - pl.col("share")).clip(1e-9))
    return min(rejected, round(float(odds.to_series().sum())))


def _as_json(agreement: AnnotatorAgreement) -> dict[str, Any]:
    found: dict[str, Any] = agreement._asdict() | {"disagreements": agreement.disagreements.to_dicts()}
    for name in ("kappa", "standard_error"):
        found[name] = number(found[name])
    return found


def _show(
    sheets: list[str],
    labels: list[pl.DataFrame],
    agreements: dict[tuple[int, int], AnnotatorAgreement],
    torn: pl.DataFrame,
) -> None:
    """What has no majority, and how far the annotators agree."""
    names = ["first", "second"] if len(sheets) == 2 else sheets
    if len(torn):
        cells = [
            [question, answer, *("-" if grade is None else "?" if grade < 0 else grade for grade in grades)]
            for question, answer, grades in torn.select(*_PAIR, "grades").head(_SHOWN).iter_rows()
        ]
        printed("no majority, so not judged", ["question", "answer", *names], cells)
    if len(torn) > _SHOWN:
        line(f"and {len(torn) - _SHOWN:,} more without a majority")
    for (i, j), found in agreements.items():
        who = "both" if len(sheets) == 2 else f"{sheets[i]} and {sheets[j]}"
        kappa, error = number(found.kappa), number(found.standard_error)
        said = (
            "kappa undefined, all of one grade" if kappa is None else f"kappa {kappa:.4f} (error {error:.4f})"
        )
        line(
            f"{who} judged {found.candidates:,}, agreeing {100 * found.agreeing:.4g} %, {said}; "
            f"{found.unsure:,} unsure, {found.unshared:,} in one sheet only"
        )
    if len(labels) > 2:
        value, candidates = fleiss_kappa(labels)
        told = "undefined" if number(value) is None else f"{value:.4f}"
        line(f"all {len(labels)} judged {candidates:,}: Fleiss' kappa {told}")
