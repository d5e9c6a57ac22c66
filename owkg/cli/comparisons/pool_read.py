"""Output of `owkg pool --read`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from owkg.cli.comparisons.pool import Reading
from owkg.cli.inputs import noted
from owkg.cli.options import Format
from owkg.cli.output import cell, interval, number, show
from owkg.ir import POOLED
from owkg.judge.qrels import write_judgements
from owkg.pools.annotation import read_sheet, write_again, write_cells
from owkg.pools.design import write_design
from owkg.pools.expert import ExpertCheck, expert_check, expert_sample
from owkg.pools.kappa import AnnotatorAgreement, fleiss_kappa
from owkg.pools.read_back import ReadBack, annotations, original_sheet, read_back, sourced
from owkg.terminal.tables import line, printed

if TYPE_CHECKING:
    import polars as pl

_SHOWN = 10
_OF_SYSTEM = ("judged", "pooled", "unique_relevant", "map", "map_without", "bpref", "bpref_without")


def read_sheets(files: Reading, out: Path, form: Format, *, seed: int, overwrite: bool) -> None:
    """Writes the judgements of a pool with the labels of filled-in sheets, and prints a summary.

    No sheet that is read and no file of the pool is overwritten.
    """
    sheets = files.read or []
    _check_files(files, out, overwrite=overwrite)
    with noted():
        found = read_back(sheets, files.folder, third=files.third, changed=files.changed)
    expert, written = _with_expert(files, found, seed)
    write_judgements(found.qrels, out)
    write_design(out, found.design, pool=str(files.folder))
    if files.conflicts is not None and len(found.no_majority):
        written[files.conflicts] = found.no_majority
    for path, candidates in written.items():
        original = original_sheet(files.folder)
        write_again(candidates, files.sheets, path, seed=seed, original=original)
    if files.annotations is not None:
        every = annotations(files.sheets, found.said)
        write_cells(every, files.annotations, ["query", "answer", "sheet", "label", "source", "comment"])
    relevance = found.qrels["relevance"]
    counts = {
        "candidates": len(relevance),
        "relevant": int((relevance > 0).sum()),
        "not_relevant": int((relevance == 0).sum()),
        "not_judged": int((relevance == POOLED).sum()),
    }
    sources = sourced(files.sheets)
    decided = len(found.conflicts) - len(found.no_majority)
    if form is Format.JSON:
        shown: dict[str, Any] = {"out": out} | counts
        shown |= {"systems": found.bias, "lost_by_rule": found.lost}
        if len(sheets) == 2:
            own = found.agreements.get((0, 1))
            shown |= {"agreement": None if own is None else _as_json(own)}
        elif found.agreements:
            value, candidates = fleiss_kappa(found.sheets)
            pairs = [
                {"sheets": [str(sheets[i]) for i in pair]} | _as_json(own)
                for pair, own in found.agreements.items()
            ]
            shown |= {"fleiss_kappa": number(value), "judged_by_all": candidates, "pairs": pairs}
            shown |= {"no_majority": found.no_majority.select("query", "answer", "relevances")}
        if files.third is not None:
            shown |= {"conflicts": len(found.conflicts), "decided": decided}
        if sources is not None:
            shown |= {"labels": sources[1], "labels_with_source": sources[0]}
        if expert is not None:
            shown |= {"expert": _as_json(expert.agreement) | {"shares": expert.shares}}
        if written:
            shown |= {"written": {str(path): len(candidates) for path, candidates in written.items()}}
        show(form, shown)
        return
    if found.agreements:
        _show(list(map(str, files.sheets)), found)
    if files.third is not None:
        line(f"{files.third} decides {decided:,} of {len(found.conflicts):,} conflicts")
    if sources is not None:
        line(f"{sources[0]:,} of {sources[1]:,} labels have a source")
    if expert is not None:
        _show_expert(expert)
    if found.bias:
        cells = (
            [
                row["model"],
                *(f"{row[name]:,}" if isinstance(row[name], int) else cell(row[name]) for name in _OF_SYSTEM),
            ]
            for row in found.bias
        )
        title = "pooled lists by all judgements, and without answers that only this system retrieved"
        printed(title, ["system", *_OF_SYSTEM], cells)
    if found.lost is not None:
        line(
            f"rules reject {found.rejected:,} candidates; about {found.lost:,} of them are relevant, "
            "estimated from the known facts that the rules reject"
        )
    if files.conflicts is not None and files.conflicts not in written:
        line(f"no conflicts are left, so {files.conflicts} is not written")
    for path, candidates in written.items():
        line(f"wrote {path}: {len(candidates):,} candidates to judge")
    line(
        f"wrote {out}: " + ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in counts.items())
    )


def _check_files(files: Reading, out: Path, *, overwrite: bool) -> None:
    """Raises ValueError if a sheet is a folder, or a file to write is an input or exists."""
    if files.expert_sample is not None and files.expert is None:
        raise ValueError("`expert` must name the file to write the sheet of --expert-sample to.")
    to_write = {"out": out, "annotations": files.annotations, "conflicts": files.conflicts}
    read = files.sheets
    if files.expert_sample is None:
        read += [] if files.expert is None else [files.expert]
    else:
        to_write["expert"] = files.expert
    for sheet in read:
        if sheet.is_dir():
            raise ValueError(
                f"`read` must name sheets, got the folder {sheet}; pass the folder of a pool with --pool."
            )
    taken = [sheet.resolve() for sheet in read]
    for name, path in to_write.items():
        if path is None:
            continue
        place = path.resolve()
        if place in taken or place.parent == files.folder.resolve():
            raise ValueError(f"`{name}` must be a file of its own, got {path}, which is used already.")
        taken.append(place)
        if path.exists() and name in ("conflicts", "expert"):
            raise ValueError(f"{path}: is there already, and may contain labels; name another file.")
        if path.exists() and not overwrite:
            raise ValueError(f"{path}: is there already; --overwrite replaces it.")


def _with_expert(
    files: Reading, found: ReadBack, seed: int
) -> "tuple[ExpertCheck | None, dict[Path, pl.DataFrame]]":
    """(check of the labels by the expert, candidates of the expert's sheet if it is to be written)."""
    from owkg.errors import naming

    if files.expert is None:
        return None, {}
    if files.expert_sample is None:
        judged = found.said.filter(found.said["relevance"] != POOLED)
        return expert_check(found.said, read_sheet(files.expert, judged, of="the judged candidates")), {}
    with naming(lambda _: "`expert_sample`"):
        return None, {files.expert: expert_sample(found.said, files.expert_sample, seed=seed)}


def _as_json(agreement: AnnotatorAgreement) -> dict[str, Any]:
    found: dict[str, Any] = agreement._asdict() | {"disagreements": agreement.disagreements}
    for name in ("kappa", "standard_error"):
        found[name] = number(found[name])
    return found


def _show(sheets: list[str], found: ReadBack) -> None:
    """Prints candidates without a majority, and how far the annotators agree."""
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
        printed("no majority, so still unjudged", ["query", "answer", *names], cells, 2, as_given=True)
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
    """Prints how far an expert agrees with the annotators."""
    cells = [
        [
            "all" if row["relevance"] is None else f"relevance {row['relevance']}",
            f"{row['candidates']:,}",
            f"{row['equal']:,}",
            interval(row["share"], row["lower"], row["upper"]),
        ]
        for row in found.shares.iter_rows(named=True)
    ]
    printed("labels that the expert checked", ["labels", "checked", "equal", "share [95% interval]"], cells)
    line(f"expert and annotators: {_kappa(found.agreement)}; {found.agreement.unsure:,} unsure")


def _kappa(own: AnnotatorAgreement) -> str:
    kappa, error = number(own.kappa), number(own.standard_error)
    if kappa is None:
        return "kappa undefined, because all labels are the same"
    return f"kappa {kappa:.4f} (error {error:.4f})"
