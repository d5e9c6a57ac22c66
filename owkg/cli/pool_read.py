"""Output of `owkg pool --read`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from owkg.cli.options import Format
from owkg.cli.output import number
from owkg.cli.systems import noted
from owkg.ir import POOLED
from owkg.judge.qrels import write_judgements
from owkg.pools.kappa import AnnotatorAgreement, fleiss_kappa
from owkg.pools.read_back import ReadBack, read_back
from owkg.terminal.tables import line, printed

_SHOWN = 10
_OF_SYSTEM = ("judged", "pooled", "unique_relevant", "map", "map_without", "bpref", "bpref_without")


def read_sheets(
    sheets: Sequence[Path],
    folder: Path,
    out: Path,
    form: Format,
    *,
    overwrite: bool = False,
    changed: bool = False,
) -> None:
    """Writes the judgements of a pool with the labels of filled-in sheets, and prints what they say.

    `out` is a file of its own: never a sheet, nor a file of the pool.
    """
    for sheet in sheets:
        if sheet.is_dir():
            raise ValueError(
                f"`read` must name sheets, got the folder {sheet}; --pool names that of the pool."
            )
    place = out.resolve()
    if place in [sheet.resolve() for sheet in sheets] or place.parent == folder.resolve():
        raise ValueError(f"`out` must be a file of its own, got {out}, which is read.")
    if out.exists() and not overwrite:
        raise ValueError(f"{out}: is there already; --overwrite replaces it.")
    with noted():
        found = read_back(sheets, folder, changed=changed)
    write_judgements(found.qrels, out)
    relevance = found.qrels["relevance"]
    counts = {
        "candidates": len(relevance),
        "relevant": int((relevance > 0).sum()),
        "not_relevant": int((relevance == 0).sum()),
        "not_judged": int((relevance == POOLED).sum()),
    }
    if form is Format.JSON:
        shown: dict[str, Any] = {"out": str(out)} | counts
        shown |= {"systems": found.bias, "lost_by_rule": found.lost}
        if len(sheets) == 2:
            shown |= {"agreement": _as_json(found.agreements[0, 1])}
        elif found.agreements:
            value, candidates = fleiss_kappa(found.sheets)
            pairs = [
                {"sheets": [str(sheets[i]) for i in pair]} | _as_json(own)
                for pair, own in found.agreements.items()
            ]
            shown |= {"fleiss_kappa": number(value), "judged_by_all": candidates, "pairs": pairs}
            shown |= {"no_majority": found.no_majority.select("query", "answer", "relevances").to_dicts()}
        print(json.dumps(shown, indent=2))
        return
    if found.agreements:
        _show(list(map(str, sheets)), found)
    if found.bias:
        cells = ([row["model"], *(_cell(row[name]) for name in _OF_SYSTEM)] for row in found.bias)
        title = "the pooled lists by all judgements, and without those that the system alone brought"
        printed(title, ["system", *_OF_SYSTEM], cells)
    if found.lost is not None:
        line(
            f"of {found.rejected:,} candidates that rules reject, about {found.lost:,} are relevant, "
            "by what rules cost"
        )
    line(
        f"wrote {out}: " + ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    )


def _as_json(agreement: AnnotatorAgreement) -> dict[str, Any]:
    found: dict[str, Any] = agreement._asdict() | {"disagreements": agreement.disagreements.to_dicts()}
    for name in ("kappa", "standard_error"):
        found[name] = number(found[name])
    return found


def _show(sheets: list[str], found: ReadBack) -> None:
    """What has no majority, and how far the annotators agree."""
    torn = found.no_majority
    names = ["first", "second"] if len(sheets) == 2 else sheets
    if len(torn):
        cells = [
            [
                query,
                answer,
                *(
                    "-" if relevance is None else "?" if relevance < 0 else relevance
                    for relevance in relevances
                ),
            ]
            for query, answer, relevances in torn.select("query", "answer", "relevances")
            .head(_SHOWN)
            .iter_rows()
        ]
        printed("no majority, so not judged", ["query", "answer", *names], cells)
    if len(torn) > _SHOWN:
        line(f"and {len(torn) - _SHOWN:,} more without a majority")
    for (i, j), own in found.agreements.items():
        who = "both" if len(sheets) == 2 else f"{sheets[i]} and {sheets[j]}"
        kappa, error = number(own.kappa), number(own.standard_error)
        said = (
            "kappa undefined, all of one relevance"
            if kappa is None
            else f"kappa {kappa:.4f} (error {error:.4f})"
        )
        line(
            f"{who} judged {own.candidates:,}, agreeing {100 * own.agreeing:.4g} %, {said}; "
            f"{own.unsure:,} unsure, {own.unshared:,} in one sheet only"
        )
    if len(sheets) > 2:
        value, candidates = fleiss_kappa(found.sheets)
        told = "undefined" if number(value) is None else f"{value:.4f}"
        line(f"all {len(sheets)} judged {candidates:,}: Fleiss' kappa {told}")


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
