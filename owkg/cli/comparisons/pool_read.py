"""Output of `owkg pool --read`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from owkg.cli.options import Format
from owkg.cli.output import number
from owkg.cli.systems import noted
from owkg.ir import POOLED
from owkg.judge.qrels import write_judgements
from owkg.pools.annotation import read_sheet, write_again, write_cells
from owkg.pools.design import write_design
from owkg.pools.expert import ExpertCheck, expert_check, expert_sample
from owkg.pools.kappa import AnnotatorAgreement, fleiss_kappa
from owkg.pools.read_back import ReadBack, annotations, original_sheet, read_back, sourced
from owkg.terminal.tables import line, printed

_SHOWN = 10
_OF_SYSTEM = ("judged", "pooled", "unique_relevant", "map", "map_without", "bpref", "bpref_without")


class Reading(NamedTuple):
    """The files of `owkg pool --read`.

    Attributes:
        sheets: that were filled in, one an annotator.
        folder: of the pool.
        out: of judgements, to write.
        third: sheet of the one who decides conflicts.
        conflicts: sheet of conflicts, to write.
        annotations: table of all labels, to write.
        expert: sheet of an expert, to read; to write where there is a `sample`.
        sample: candidates for the expert.
        seed: of what is written.
    """

    sheets: Sequence[Path]
    folder: Path
    out: Path
    third: Path | None = None
    conflicts: Path | None = None
    annotations: Path | None = None
    expert: Path | None = None
    sample: int | None = None
    seed: int = 0

    @property
    def all_sheets(self) -> list[Path]:
        """The sheets of all who judged, the third among them."""
        return [*self.sheets, *([] if self.third is None else [self.third])]


def read_sheets(files: Reading, form: Format, *, overwrite: bool = False, changed: bool = False) -> None:
    """Writes the judgements of a pool with the labels of filled-in sheets, and prints what they say.

    What is written is a file of its own: never a sheet that is read, nor a file of the pool.
    """
    sheets, out = files.sheets, files.out
    _check_files(files, overwrite=overwrite)
    with noted():
        found = read_back(sheets, files.folder, third=files.third, changed=changed)
    expert, written = _with_expert(files, found)
    write_judgements(found.qrels, out)
    write_design(out, found.design, pool=str(files.folder))
    if files.conflicts is not None and len(found.no_majority):
        written[files.conflicts] = found.no_majority
    for path, candidates in written.items():
        original = original_sheet(files.folder)
        write_again(candidates, files.all_sheets, path, seed=files.seed, original=original)
    if files.annotations is not None:
        every = annotations(files.all_sheets, found.said)
        write_cells(every, files.annotations, ["query", "answer", "sheet", "label", "source", "comment"])
    relevance = found.qrels["relevance"]
    counts = {
        "candidates": len(relevance),
        "relevant": int((relevance > 0).sum()),
        "not_relevant": int((relevance == 0).sum()),
        "not_judged": int((relevance == POOLED).sum()),
    }
    sources = sourced(files.all_sheets)
    decided = len(found.conflicts) - len(found.no_majority)
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
        if files.third is not None:
            shown |= {"conflicts": len(found.conflicts), "decided": decided}
        if sources is not None:
            shown |= {"labels": sources[1], "labels_with_source": sources[0]}
        if expert is not None:
            shown |= {"expert": _as_json(expert.agreement) | {"shares": expert.shares.to_dicts()}}
        if written:
            shown |= {"written": {str(path): len(candidates) for path, candidates in written.items()}}
        print(json.dumps(shown, indent=2))
        return
    if found.agreements:
        _show(list(map(str, files.all_sheets)), found)
    if files.third is not None:
        line(f"{files.third} decides {decided:,} of {len(found.conflicts):,} conflicts")
    if sources is not None:
        line(f"{sources[0]:,} of {sources[1]:,} labels have a source")
    if expert is not None:
        _show_expert(expert)
    if found.bias:
        cells = ([row["model"], *(_cell(row[name]) for name in _OF_SYSTEM)] for row in found.bias)
        title = "the pooled lists by all judgements, and without those that the system alone brought"
        printed(title, ["system", *_OF_SYSTEM], cells)
    if found.lost is not None:
        line(
            f"of {found.rejected:,} candidates that rules reject, about {found.lost:,} are relevant, "
            "by what rules cost"
        )
    if files.conflicts is not None and files.conflicts not in written:
        line(f"no conflicts are left, so {files.conflicts} is not written")
    for path, candidates in written.items():
        line(f"wrote {path}: {len(candidates):,} candidates to judge")
    line(
        f"wrote {out}: " + ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    )


def _check_files(files: Reading, *, overwrite: bool) -> None:
    """ValueError if a sheet is a folder, or a file to write is read or there; sheets are never replaced."""
    if files.sample is not None and files.expert is None:
        raise ValueError("`expert` must say where to write the sheet of --expert-sample.")
    to_write = {"out": files.out, "annotations": files.annotations, "conflicts": files.conflicts}
    read = files.all_sheets
    if files.sample is None:
        read += [] if files.expert is None else [files.expert]
    else:
        to_write["expert"] = files.expert
    for sheet in read:
        if sheet.is_dir():
            raise ValueError(
                f"`read` must name sheets, got the folder {sheet}; --pool names that of the pool."
            )
    taken = [sheet.resolve() for sheet in read]
    for name, path in to_write.items():
        if path is None:
            continue
        place = path.resolve()
        if place in taken or place.parent == files.folder.resolve():
            raise ValueError(f"`{name}` must be a file of its own, got {path}, which is read or written.")
        taken.append(place)
        if path.exists() and name in ("conflicts", "expert"):
            raise ValueError(f"{path}: is there already, and a sheet may hold labels; name another file.")
        if path.exists() and not overwrite:
            raise ValueError(f"{path}: is there already; --overwrite replaces it.")


def _with_expert(files: Reading, found: ReadBack) -> tuple[ExpertCheck | None, dict[Path, Any]]:
    """(what the expert's sheet says, the candidates of that sheet where it is to be written)."""
    from owkg.errors import naming

    if files.expert is None:
        return None, {}
    if files.sample is None:
        judged = found.said.filter(found.said["relevance"] != POOLED)
        return expert_check(found.said, read_sheet(files.expert, judged, of="the judged candidates")), {}
    with naming(lambda _: "`expert_sample`"):
        return None, {files.expert: expert_sample(found.said, files.sample, seed=files.seed)}


def _as_json(agreement: AnnotatorAgreement) -> dict[str, Any]:
    found: dict[str, Any] = agreement._asdict() | {"disagreements": agreement.disagreements.to_dicts()}
    for name in ("kappa", "standard_error"):
        found[name] = number(found[name])
    return found


def _show(sheets: list[str], found: ReadBack) -> None:
    """What has no majority, and how far the annotators agree."""
    torn = found.no_majority
    annotators = len(found.sheets)
    names = ["first", "second", "third"][: len(sheets)] if annotators == 2 else sheets
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
        who = "both" if annotators == 2 else f"{sheets[i]} and {sheets[j]}"
        line(
            f"{who} judged {own.candidates:,}, agreeing {100 * own.agreeing:.4g} %, {_kappa(own)}; "
            f"{own.unsure:,} unsure, {own.unshared:,} in one sheet only"
        )
    if annotators > 2:
        value, candidates = fleiss_kappa(found.sheets)
        told = "undefined" if number(value) is None else f"{value:.4f}"
        line(f"all {annotators} judged {candidates:,}: Fleiss' kappa {told}")


def _show_expert(found: ExpertCheck) -> None:
    """How far an expert says what the annotators said."""
    cells = [
        [
            "all" if row["relevance"] is None else f"relevance {row['relevance']}",
            f"{row['candidates']:,}",
            f"{row['equal']:,}",
            f"{row['share']:.3f} [{row['lower']:.3f}, {row['upper']:.3f}]",
        ]
        for row in found.shares.iter_rows(named=True)
    ]
    printed("labels that the expert checked", ["labels", "checked", "equal", "share [95% interval]"], cells)
    line(f"expert and annotators: {_kappa(found.agreement)}; {found.agreement.unsure:,} unsure")


def _kappa(own: AnnotatorAgreement) -> str:
    kappa, error = number(own.kappa), number(own.standard_error)
    if kappa is None:
        return "kappa undefined, all of one relevance"
    return f"kappa {kappa:.4f} (error {error:.4f})"


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
