"""Paths of data through owkg: the number of functions and packages that five usual calls enter.

A function counts once, however often it is called. A return is a step back into a package that was left
before. The fewer of each, the sooner a reader has followed a call to its end.
"""

import argparse
import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import numpy as np

import owkg
from owkg.cli.main import main as command
from owkg.kg import KnowledgeGraph
from owkg.kg.write import write_labelled

_ROOT = str(Path(owkg.__file__).parent)
_GRAPH = "graph"


def walked(call: Callable[[], Any]) -> tuple[int, int, int]:
    """Functions of owkg that a call enters, packages, and returns to packages."""
    functions: set[Any] = set()
    packages: list[str] = []

    def entered(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(_ROOT) or code.co_name.startswith("<"):
            return
        functions.add(code)
        package = Path(code.co_filename).relative_to(_ROOT).parts[0]
        if not packages or packages[-1] != package:
            packages.append(package)

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(functions), len(set(packages)), len(packages) - len(set(packages))


def files(folder: Path) -> None:
    """Writes a graph, two rank tables, two runs and a trained run."""
    rng = np.random.default_rng(0)
    entities, relations = tuple(f"e{i}" for i in range(30)), ("r", "s")
    triples = np.unique(np.column_stack([rng.integers(0, n, 200) for n in (30, 2, 30)]), axis=0).astype(
        np.int32
    )
    splits = {"train": triples[:120], "valid": triples[120:140], "test": triples[140:]}
    graph = KnowledgeGraph(entities, relations, splits)
    write_labelled(graph, folder / _GRAPH)
    test = splits["test"]
    np.savez(
        folder / "scores.npz",
        scores=rng.normal(size=(len(test), 30)),
        triples=test,
        side=np.array(["tail"] * len(test)),
        entity_labels=np.array(entities),
        relation_labels=np.array(relations),
    )
    for name in "ab":
        scores = rng.normal(size=(len(test), 30)).astype(np.float32)
        owkg.ranks.write_ranks(owkg.rank(scores, graph, side="tail"), folder / f"{name}.parquet")
        asked = np.unique(test[:, :2], axis=0)
        lines = [
            f"{entities[h]}|{relations[r]}|? Q0 {entity} 1 {rng.normal():.6f} {name}"
            for h, r in asked
            for entity in entities
        ]
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    command(f"train {folder / _GRAPH} --model distmult --dim 4 --epochs 1 --out {folder / 'run'}".split())


def walks(folder: Path) -> dict[str, Callable[[], Any]]:
    """The calls, by what they do."""

    def run(line: str) -> Callable[[], Any]:
        return lambda: command([word.replace("@", f"{folder}/") for word in line.split()])

    def matrix() -> None:
        graph = owkg.read_graph(folder / _GRAPH)
        scores = np.load(folder / "scores.npz")["scores"].astype(np.float32)
        owkg.evaluate(owkg.rank(scores, graph, side="tail"), ["mrr", "hits@10", "amri"])

    return {
        "a score matrix to a table of metrics": matrix,
        "ranks.parquet through `owkg metrics`": run("metrics @a.parquet"),
        "runs through `owkg compare`": run(
            "compare @a.run @b.run --kg @graph --qrels test --test t --intersect"
        ),
        "`owkg audit`": run("audit @a.parquet @b.parquet --metric mrr --sparsity 0.3 --test t"),
        "a trained run through `owkg rank`": run("rank @run --out @out.parquet"),
    }


def main() -> None:
    """Prints the table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with TemporaryDirectory() as name:
        folder, hidden = Path(name), io.StringIO()
        with contextlib.redirect_stdout(hidden), contextlib.redirect_stderr(hidden):
            files(folder)
            for call in walks(folder).values():  # imports and caches are not part of the path
                call()
            found = {what: walked(call) for what, call in walks(folder).items()}
    print("| way | functions | packages | returns |\n|---|---:|---:|---:|")
    for what, (functions, packages, returns) in found.items():
        print(f"| {what} | {functions} | {packages} | {returns} |")


if __name__ == "__main__":
    main()
