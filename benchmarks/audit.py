"""Seconds of `owkg.audit` and of `owkg.compare` for 12 systems, and the size of the report.

All 66 pairs are audited with the usual metrics and a sparsity of 0.3 to 0.6. One audit has 20,000 queries
with ranks alone (the aim: at most 30 seconds). The other has 500 queries with lists of 100 answers, which
show examples of reversed rankings. Times are of first calls, including compilation. The HTML report is
written once.

    python benchmarks/audit.py --out out
"""

import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

# When this file is run as a script, its own name would hide the package.
sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != Path(__file__).parent]

import numpy as np
import polars as pl

import owkg
from benchmarks.timing import machine, once
from owkg.files.storage import writable_folder
from owkg.kg import KnowledgeGraph
from owkg.report import write_report
from owkg.terminal.tables import printed
from simulations.script import Out, Quick, run_script, save_table

_SYSTEMS, _ANSWERS, _DEPTH = 12, 1000, 100
_CASES = ((20_000, False), (500, True))
_QUICK_CASES = ((200, False), (50, True))


class World(NamedTuple):
    """Systems of similar strength.

    Attributes:
        tables: ranks of one answer to each query, by system.
        lists: best answers of each system.
        graph: graph of the queries.
    """

    tables: dict[str, pl.DataFrame]
    lists: dict[str, pl.DataFrame]
    graph: KnowledgeGraph


def world(queries: int, *, listed: bool) -> World:
    """Queries with one known answer among 1,000 candidates, with lists if `listed`."""
    rng = np.random.default_rng(0)
    labels = (*(f"q{i}" for i in range(queries)), *(f"a{i}" for i in range(_ANSWERS)))
    answer = rng.integers(_ANSWERS, size=queries)
    fact = np.stack([np.arange(queries), np.zeros(queries, int), queries + answer], 1).astype(np.int32)
    other = np.array([[0, 1, 0]], np.int32)  # a fact of the other relation
    graph = KnowledgeGraph(labels, ("r", "other"), {"train": fact[:1] + other, "test": fact})
    hard = rng.normal(2, 2, queries)
    tables, lists = {}, {}
    for number in range(_SYSTEMS):
        name = f"system {number}"
        far = hard + rng.normal(0, 1, queries) - 0.03 * number
        rank = np.minimum(1 + np.floor(np.exp(np.maximum(far, -1))).astype(np.int64), _ANSWERS)
        asked = {"head": labels[:queries], "relation": "r", "tail": [labels[i] for i in fact[:, 2]]}
        ranks = {"optimistic": rank, "pessimistic": rank, "candidates": len(labels), "filtered": True}
        tables[name] = pl.DataFrame(asked | {"side": "tail"} | ranks)
        if listed:
            lists[name] = _listed(rng, name, labels, answer, rank)
    return World(tables, lists, graph)


def _listed(
    rng: np.random.Generator, name: str, labels: tuple[str, ...], answer: np.ndarray, rank: np.ndarray
) -> pl.DataFrame:
    """Best answers of a system, with the known answer at its rank."""
    rows: list[tuple[Any, ...]] = []
    for query, (own, place) in enumerate(zip(answer, rank, strict=True)):
        others = rng.permutation(_ANSWERS)
        order = np.insert(others[others != own], place - 1, own)[:_DEPTH]
        head = labels[query]
        rows += [(name, f"{head}|r|?", "tail", head, "r", f"a{i}", -float(at)) for at, i in enumerate(order)]
    return pl.DataFrame(
        rows, ["model", "query", "side", "entity", "relation", "answer", "score"], orient="row"
    )


def measured(queries: int, *, listed: bool) -> dict[str, Any]:
    """Seconds of an audit, and of a comparison."""
    tables, lists, graph = world(queries, listed=listed)
    kept: list[Any] = []
    options: dict[str, Any] = {"lists": lists, "graph": graph} if listed else {}
    compared = once(lambda: owkg.compare(tables, ("mrr", "hits@1", "hits@10")))
    audited = once(lambda: kept.append(owkg.audit(tables, sparsity=(0.3, 0.6), **options)))
    with tempfile.TemporaryDirectory() as folder:
        written = once(lambda: write_report(kept[0], Path(folder) / "audit.html"))
        size = (Path(folder) / "audit.html").stat().st_size / 2**20
    return {
        "systems": _SYSTEMS,
        "queries": queries,
        "answers_listed": _DEPTH if listed else 0,
        "audit_s": audited,
        "compare_s": compared,
        "times_compare": audited / compared,
        "report_s": written,
        "report_mib": size,
    }


def main(out: Out = Path("out"), quick: Quick = False) -> None:
    """Measures, prints and saves."""
    writable_folder(out)
    print(machine())
    table = pl.DataFrame([measured(n, listed=listed) for n, listed in (_QUICK_CASES if quick else _CASES)])
    cells = [[f"{x:.3g}" if isinstance(x, float) else f"{x:,}" for x in row] for row in table.rows()]
    printed("audit", table.columns, cells)
    save_table(table, out / "benchmark_audit.csv")


if __name__ == "__main__":
    run_script(main)
