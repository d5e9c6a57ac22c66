"""`owkg conformance`: libraries held against vectors of ranks, rank metrics and IR measures."""

import json
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from owkg.cli.inputs import check_readable
from owkg.cli.options import Format, OutputFormat


def conformance(
    adapter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="owkg, or an installed library: pykeen, libkge, torchkge, ogb, ogb-numpy, pyg, ranx, "
            "ir-measures, pytrec-eval, sentence-transformers; several with commas.",
            show_default="owkg, without --results",
        ),
    ] = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="What owkg/conformance/runner.py wrote where owkg is not installed; repeatable.",
        ),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Also list what is wrong, beside the expected values.")
    ] = False,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Whether libraries compute ranks, rank metrics and IR measures as defined, on small documented cases.

    Most vectors stand for a defect that a public tracker documents. Wrong numbers do not change the exit
    code.
    """
    from owkg import conformance as room
    from owkg.errors import naming
    from owkg.terminal.tables import printed

    check_readable(results or [])
    names = [name.strip() for given in adapter or () for name in given.split(",")]
    if not names and not results:
        names = ["owkg"]
    with naming({"name": "`adapter`"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other libraries
        found = [room.results(room.adapter(name)) for name in dict.fromkeys(names)]
    found += [one for path in results or () for one in room.read_results(path)]
    counts = [room.summary(one) for one in found]
    wrong = [
        {"library": one["library"]} | row
        for one in found
        for row in room.verdicts(one)
        if row["verdict"] in ("fail", "error")
    ]
    if form is Format.JSON:
        more = {"failed": wrong} if failed else {}
        text = json.dumps({"vectors": len(room.vectors()), "libraries": counts} | more, indent=2)
        print(text)
        return
    heads = ["library", "version", "passed", "failed", "errors", "unsupported"]
    order = ("library", "version", "pass", "fail", "error", "unsupported")
    title = f"Conformance with {len(room.vectors())} vectors"
    printed(title, heads, [[str(one[name]) for name in order] for one in counts])
    if failed:
        columns = ["vector", "library", "metric", "expected", "got"]
        printed("Wrong, by vector", columns, [_cells(row) for row in wrong])


def _cells(row: dict[str, Any]) -> list[str]:
    got = row["message"] or _number(row["got"])
    return [row["vector"], row["library"], row["metric"], _number(row["expected"]), got]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"
