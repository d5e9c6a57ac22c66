"""`owkg conformance`: libraries checked against test cases of ranks, rank metrics and IR measures."""

import warnings
from pathlib import Path
from typing import Any

from owkg.cli.inputs import check_readable
from owkg.cli.options import Format, OutputFormat, split_list
from owkg.cli.output import Table, show


def conformance(
    *,
    adapter: list[str] | None = None,
    results: list[Path] | None = None,
    failed: bool = False,
    form: OutputFormat = Format.TABLE,
) -> None:
    """Check whether libraries compute ranks, rank metrics and IR measures as defined, on small test cases.

    Most cases stand for a defect that a public issue tracker documents. Wrong numbers do not change the exit
    code.

    Args:
        adapter (NAME,...): Library to check: owkg, or an installed one: pykeen, libkge, torchkge, ogb,
            ogb-numpy, pyg, ranx, ir-measures, pytrec-eval, sentence-transformers. Several with commas, or
            repeat the option. Default: owkg, unless --results is given.
        results (FILE): Results that owkg/conformance/runner.py wrote in an environment without owkg. Repeat
            the option for several.
        failed: List every wrong number with its expected value.

    Examples:
        owkg conformance
        owkg conformance --adapter pykeen,ranx --failed
        owkg conformance --results conformance.json --format json
    """
    from owkg import conformance as room
    from owkg.errors import naming

    check_readable(results or [])
    names = [name for text in adapter or () for name in split_list(text)]
    if not names and not results:
        names = ["owkg"]
    with naming({"name": "`adapter`"}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of other libraries
        found = [room.results(room.adapter(name)) for name in dict.fromkeys(names)]
    found += [one for path in results or () for one in room.read_results(path)]
    counts = [room.summary(one) for one in found]
    wrong = [
        {"library": one["library"]} | row
        for one in found
        for row in room.verdicts(one)
        if row["verdict"] in ("fail", "error")
    ]
    heads = ["library", "version", "passed", "failed", "errors", "unsupported"]
    order = ("library", "version", "pass", "fail", "error", "unsupported")
    title = f"Conformance with {len(room.vectors())} test cases"
    tables = [Table(title, heads, [[str(one[name]) for name in order] for one in counts])]
    payload = {"vectors": len(room.vectors()), "libraries": counts}
    if failed:
        payload["failed"] = wrong
        columns = ["vector", "library", "metric", "expected", "got"]
        tables.append(Table("Wrong numbers", columns, [_cells(row) for row in wrong]))
    show(form, payload, tables)


def _cells(row: dict[str, Any]) -> list[str]:
    got = row["message"] or _number(row["got"])
    return [row["vector"], row["library"], row["metric"], _number(row["expected"]), got]


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"
