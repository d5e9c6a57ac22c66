"""The page of the accelerator, written from the measurements of `benchmarks/accelerator.py`.

The same tables are the last part of the page of all speeds.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

PUBLISHED_GPU_DAYS = 20
"""Approximate GPU days of the experiments, as stated by Yang et al. (2022)."""

_WORLDS = 4
_HEAD = """# Speed on an accelerator

Written by `make accelerator` from what it measured {when}: {device}{memory}, {cores} CPU cores, {versions}.
Seconds are from the fastest of several calls, after compilation. The limit of each part is the least time
that the same device could take in the same run, and `times` is the measured time divided by this limit.
{data}.
`accelerator.json` holds every number.
"""
_DATA = {
    "published": "The evaluated graph is FB15k-237, and the world of the preset is a published one",
    "random": "The evaluated graph is random, as large as FB15k-237, and the world of the preset is sampled",
}
_TEXTS = {
    "limits": """## What the device can do

Bytes read and written by a copy that is too large for the caches; products of square matrices; multiply-adds
in registers.
""",
    "simulation": """## Monte Carlo

The published grid of {settings:,} settings, MRR, by the number of trials in flight at a time. The limit is to
draw the same random bits and do nothing with them: {random_bits_trials_per_s:.3g} trials a second.
""",
    "evaluation": """## Full evaluation

All test triples are ranked on both sides, filtered, among {entities:,} entities. The limit is arithmetic
(ComplEx: products in float32; other models: differences in registers), or to write and read every score once,
whichever takes longer. "Known at hand" leaves out finding the known answers and making the table.
""",
    "training": """## Steps of training

A step has {queries:,} queries with {negatives:,} negatives each, self-adversarial loss and Adam, on a graph
of {entities:,} entities. The limit is to move the rows of all candidates, their gradients, and the arrays of
the optimiser, or the products with a model's own matrices, whichever takes longer. A table that fits the
cache can be moved faster than this limit.
""",
    "together": """## Trainings together

RotatE with {together} seeds in one call of the device (`train.train_many`), compared with one seed after
another.
""",
    "rows": """## Steps that touch their rows

ComplEx of 64 dimensions, Adagrad, 1,024 queries with 128 negatives each: `updates = "rows"` compared with
dense updates. The limit is to move the rows that the step names, their gradients and their sums.
""",
    "sampled": """## Sampled evaluation

DistMult of 128 dimensions, {tests:,} test triples, both sides, {entities:,} entities: full ranking, and an
unbiased sample that scores the typical candidates and a share of 0.005 of the rest. The limit is the limit of
full ranking.
""",
    "paper": """## The paper's preset

`python -m simulations.yang2022 open-world --preset paper`, one world of density 0.75: steps in calls from
look to look, a look at the full test set, and the projected time of a run of all steps and looks, with
compiling and without checkpoints. If a whole run fitted into the time of the command, the table also has its
seconds: already compiled, with checkpoints and its record.
""",
}


def page(content: dict[str, Any]) -> str:
    """The page as Markdown: a table for each kind of part, and the failed or missing parts at the end."""
    done = {name: found for name, found in content["parts"].items() if "failed" not in found}
    versions = ", ".join(f"{name} {number}" for name, number in content["versions"].items())
    memory = content["device_memory_gib"]
    head = _HEAD.format(
        device=content["device"],
        memory=f" with {memory:g} GiB for JAX" if memory else "",
        when=_when(done.values()),
        cores=content["cpu_cores"],
        versions=versions,
        data=_DATA[content["data"]],
    )
    sections = [head]
    if content["quick"]:
        sections.append("These are tiny sizes (`--quick`), to see that it works: the numbers mean nothing.\n")
    for kind, write in _TABLES.items():
        own = {_named(name, found): found for name, found in done.items() if name.split()[0] == kind}
        if own:
            words = _TEXTS[kind].format(**next(iter(own.values())))
            sections.append(f"{words}\n{write(own, done)}")
    if kept := [
        f"- {name}: {found.get('measured', 'unknown date')}, {found.get('device', content['device'])}"
        for name, found in done.items()
        if found.get("kept")
    ]:
        sections.append("## Kept from an earlier run\n\n" + "\n".join(kept) + "\n")
    lost = [f"- {name}: {found['failed']}" for name, found in content["parts"].items() if "failed" in found]
    lost += [f"- {name}: no time was left" for name in content["planned"] if name not in content["parts"]]
    if lost:
        sections.append("## Not measured\n\n" + "\n".join(lost) + "\n")
    return "\n".join(sections)


def _when(parts: Iterable[dict[str, Any]]) -> str:
    """Dates of the parts that are not kept from an earlier run."""
    dates = sorted({found["measured"] for found in parts if "measured" in found and not found.get("kept")})
    return f"on {dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") if dates else "earlier"


def _named(name: str, found: dict[str, Any]) -> str:
    """Name of a part in its table, marked if it is kept from an earlier run."""
    return name.partition(" ")[2] + (" (kept)" if found.get("kept") else "")


_MARK = "<!-- on an accelerator -->\n"


def joined(page_of_speeds: str, content: dict[str, Any]) -> str:
    """The page of all speeds with the tables of an accelerator as its last part.

    Args:
        page_of_speeds: Markdown, with or without that part.
        content: what `benchmarks/accelerator.py` measured.

    Returns:
        The page; headings of the part are one level lower than in a page of their own.
    """
    part = re.sub("^#", "##", page(content), flags=re.MULTILINE)
    part = part.replace("`accelerator.json`", "[accelerator.json](../reproduction/accelerator.json)")
    return page_of_speeds.split(_MARK)[0].rstrip("\n") + f"\n\n{_MARK}\n{part}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *([_word(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _word(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.0f}" if 1000 <= cell < 1e6 else f"{cell:.3g}"
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def _limits(own: dict[str, Any], _: Any) -> str:
    names = {
        "bytes_per_s": ("copy", 1e9, "GB/s"),
        "float32_product_flop_per_s": ("product, float32 in full", 1e12, "Tflop/s"),
        "bfloat16_product_flop_per_s": ("product, bfloat16", 1e12, "Tflop/s"),
        "multiply_adds_per_s": ("multiply-adds, float32", 1e12, "T/s"),
    }
    (found,) = own.values()
    rows = [(words, found[name] / unit, of) for name, (words, unit, of) in names.items()]
    return _table(["what", "a second", "unit"], rows)


def _simulation(own: dict[str, Any], _: Any) -> str:
    (found,) = own.values()
    columns = ["trials", "in flight", "seconds", "trials a second", "limit, s", "times"]
    rows = [
        (
            *(row["trials"], row["chunk"], row["seconds"], row["trials"] / row["seconds"]),
            *(row["limit_s"], row["times_the_limit"]),
        )
        for row in found["rows"]
    ]
    return _table(columns, rows)


def _evaluation(own: dict[str, Any], _: Any) -> str:
    columns = [
        "model",
        "ranks",
        "seconds",
        "ranks a second",
        "known at hand, s",
        "arithmetic, s",
        "memory, s",
    ]
    columns += ["times", "bare products, s"]
    wanted = ("ranks", "seconds", "ranks_per_s", "arrays_s", "arithmetic_limit_s", "memory_limit_s")
    wanted += ("times_the_limit", "products_s")
    return _table(columns, [(name, *map(found.get, wanted)) for name, found in own.items()])


def _training(own: dict[str, Any], _: Any) -> str:
    columns = [
        "model",
        "dim",
        "parameters",
        "compiling, s",
        "step, ms",
        "memory, ms",
        "products, ms",
        "times",
    ]
    return _table(columns, [(name, *_step(found, found["dim"])) for name, found in own.items()])


def _step(found: dict[str, Any], *first: Any) -> tuple[Any, ...]:
    times = (1e3 * found[name] for name in ("step_s", "memory_limit_s", "products_limit_s"))
    return *first, found["parameters"], found["compile_s"], *times, found["times_the_limit"]


def _together(own: dict[str, Any], _: Any) -> str:
    columns = ["size", "dim", "queries", "negatives", "one, ms a step", "together, ms a step", "times faster"]
    rows = [
        (
            *(name, found["dim"], found["queries"], found["negatives"]),
            *(1e3 * found["one_step_s"], 1e3 * found["together_step_s"], found["times_faster_than_in_turn"]),
        )
        for name, found in own.items()
    ]
    return _table(columns, rows)


def _rows(own: dict[str, Any], _: Any) -> str:
    columns = ["entities", "compiling, s", "rows, ms", "dense, ms", "limit, ms", "times"]
    rows = [
        (
            *(found["entities"], found["rows_compile_s"], 1e3 * found["rows_step_s"]),
            *(1e3 * found["dense_step_s"], 1e3 * found["limit_s"], found["times_the_limit"]),
        )
        for found in own.values()
    ]
    return _table(columns, rows)


def _sampled(own: dict[str, Any], _: Any) -> str:
    columns = ["share of scores", "sampled, s", "MRR", "its error", "full, s", "limit, s", "times"]
    wanted = ("scores", "sampled_s", "mrr", "sampling_error", "seconds", "limit_s", "times_the_limit")
    return _table(columns, [[found[name] for name in wanted] for found in own.values()])


def _paper(own: dict[str, Any], done: dict[str, Any]) -> str:
    columns = [
        "configuration",
        "parameters",
        "compiling, s",
        "step, ms",
        "memory, ms",
        "products, ms",
        "times",
    ]
    columns += ["look, ms", "steps", "looks", "projected, s", "run, s", "its MRR"]
    rows = []
    for name, found in own.items():
        run = done.get(f"run {name.removesuffix(' (kept)')}", {})
        rows.append(
            (
                *(name, *_step(found), 1e3 * found["look_s"], found["steps"], found["looks"]),
                *(found["projected_s"], run.get("seconds"), run.get("mrr")),
            )
        )
    seconds = sum(found["projected_s"] for found in own.values())
    days = _WORLDS * seconds / 86_400
    return (
        _table(columns, rows)
        + f"\nConfigurations projected: {len(own)}; on one world {seconds / 3600:.3g} hours, "
        f"on {_WORLDS} worlds {days:.3g} days.\n"
        f"The paper gives about {PUBLISHED_GPU_DAYS} GPU days for its experiments: "
        f"{PUBLISHED_GPU_DAYS / days:.3g} times as much.\n"
    )


_TABLES = {
    "limits": _limits,
    "simulation": _simulation,
    "evaluation": _evaluation,
    "training": _training,
    "together": _together,
    "rows": _rows,
    "sampled": _sampled,
    "paper": _paper,
}
