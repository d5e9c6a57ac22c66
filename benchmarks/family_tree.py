"""Speed and memory of the closed world, over four decades of people, compared with clingo and with the disk.

Each size runs in its own process: sampling people, closing them, and all of `owkg family-tree generate`,
which writes people, parents and sorted facts. The limit of this command is the time to write as many bytes
and to take their checksum. `owkg sample` draws one benchmark from these facts: labelled files, OpenKE and
LibKGE. clingo closes the same people by the same rules, written in its own language, up to the sizes that it
can handle.

    python benchmarks/family_tree.py --out out
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

# When this file is run as a script, its own name would hide the package.
sys.path[:] = [entry for entry in sys.path if Path(entry).absolute() != Path(__file__).parent]

import polars as pl
import typer

from benchmarks.timing import machine, once, peak_gib
from family_tree import closure, ontology, people_blocks
from family_tree.generate import generate
from owkg import sampling
from owkg.files.storage import writable_folder
from simulations.script import Out, Quick, run_script, save_table

_TREE = 300
_TREES = (3, 33, 333, 3334)
# Above this size, clingo would take minutes and many GiB.
_CLINGO_TREES = 333


def measured(trees: int) -> dict[str, Any]:
    """Seconds and GiB of one size."""
    rules = ontology("published")
    blocks: list = []
    sampled = once(lambda: blocks.extend(people_blocks(num_trees=trees, max_tree_size=_TREE)))
    closed = once(lambda: [len(facts.head) for people in blocks for facts in closure(people, rules)])
    row = {"people": sum(len(people.labels) for people in blocks), "sample_s": sampled, "close_s": closed}
    del blocks[:]
    with tempfile.TemporaryDirectory() as folder:
        written: dict = {}
        whole = once(lambda: written.update(generate(Path(folder) / "tree", num_trees=trees)))
        bytes_ = (Path(folder) / "tree" / "facts.tsv").stat().st_size
        limit = once(lambda: _copied(bytes_, Path(folder) / "copy"))
    return row | {
        "facts": written["facts"],
        "generate_s": whole,
        "million_facts_per_s": written["facts"] / whole / 1e6,
        "write_limit_s": limit,
        "times_the_limit": whole / limit,
        "peak_gib": peak_gib(),
    }


def sampled(trees: int) -> dict[str, Any]:
    """Seconds and GiB of one benchmark, drawn from the facts of one size and written in all layouts."""
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "tree" / "facts.tsv"
        generate(facts.parent, num_trees=trees)

        def draw() -> None:
            world = sampling.sample(
                sampling.read_facts(facts),
                density=0.75,
                train_rate=0.7,
                min_answers=10,
                num_queries=None,
                seed=0,
            )
            sampling.write_worlds([world], Path(folder) / "benchmark", source=facts)

        seconds = once(draw)
        written = sum(
            path.stat().st_size for path in (Path(folder) / "benchmark").rglob("*") if path.is_file()
        )
        limit = once(lambda: _copied(written, Path(folder) / "copy"))
    return {"benchmark_s": seconds, "benchmark_times_the_limit": seconds / limit, "benchmark_gib": peak_gib()}


def clingo(trees: int) -> dict[str, Any]:
    """Seconds and GiB that clingo takes to close as many people; the text of the rules is written here."""
    import clingo as solver

    facts = []
    for people in people_blocks(num_trees=trees, max_tree_size=_TREE):
        names = [f"{label}" for label in people.labels]
        facts += [
            f"{'female' if woman else 'male'}({name})."
            for name, woman in zip(names, people.female, strict=True)
        ]
        facts += [f"parentOf({names[p]},{names[c]})." for p, c in people.parents]
    control = solver.Control()
    control.add("base", [], _RULES + "\n".join(facts))

    def solve() -> None:
        control.ground([("base", [])])
        with control.solve(yield_=True) as found:
            model = next(iter(found))
            counted.append(sum(len(atom.arguments) == 2 for atom in model.symbols(atoms=True)))

    counted: list[int] = []
    seconds = once(solve)
    return {"clingo_s": seconds, "clingo_facts": counted[0], "clingo_gib": peak_gib()}


_RULES = """
childOf(X,Y) :- parentOf(Y,X).
motherOf(X,Y) :- parentOf(X,Y), female(X).      fatherOf(X,Y) :- parentOf(X,Y), male(X).
daughterOf(X,Y) :- parentOf(Y,X), female(X).    sonOf(X,Y) :- parentOf(Y,X), male(X).
siblingOf(X,Y) :- parentOf(Z,X), parentOf(Z,Y), X != Y.
sisterOf(X,Y) :- siblingOf(X,Y), female(X).     brotherOf(X,Y) :- siblingOf(X,Y), male(X).
auntOf(X,Y) :- sisterOf(X,Z), parentOf(Z,Y).    uncleOf(X,Y) :- brotherOf(X,Z), parentOf(Z,Y).
nieceOf(X,Y) :- auntOf(Y,X), female(X).         nieceOf(X,Y) :- uncleOf(Y,X), female(X).
nephewOf(X,Y) :- auntOf(Y,X), male(X).          nephewOf(X,Y) :- uncleOf(Y,X), male(X).
cousinOf(X,Y) :- parentOf(Z,X), siblingOf(Z,V), parentOf(V,Y).
girlCousinOf(X,Y) :- cousinOf(X,Y), female(X).  boyCousinOf(X,Y) :- cousinOf(X,Y), male(X).
grandchildOf(X,Y) :- parentOf(Y,Z), parentOf(Z,X).
granddaughterOf(X,Y) :- grandchildOf(X,Y), female(X).
grandsonOf(X,Y) :- grandchildOf(X,Y), male(X).
grandmotherOf(X,Y) :- grandchildOf(Y,X), female(X).
grandfatherOf(X,Y) :- grandchildOf(Y,X), male(X).
husbandOf(X,Y) :- fatherOf(X,Z), motherOf(Y,Z).
wifeOf(X,Y) :- husbandOf(Y,X).
"""


def _copied(size: int, path: Path) -> None:
    """Writes `size` bytes and takes their checksum, in pieces that fit the caches."""
    piece, digest = b"\0" * 2**20, hashlib.sha256()
    with path.open("wb") as file:
        for done in range(0, size, len(piece)):
            part = piece[: size - done]
            digest.update(part)
            file.write(part)


def _alone(kind: str, trees: int) -> dict[str, Any]:
    """Result of this script when it measures one kind at one size in its own process."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, __file__, "--only", kind, "--trees", str(trees)],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


KINDS: dict[str, Callable[[int], dict[str, Any]]] = {
    "world": measured,
    "benchmark": sampled,
    "clingo": clingo,
}


def main(
    out: Out = Path("out"),
    quick: Quick = False,
    only: Annotated[
        str | None, typer.Option(help=f"Kind to measure and print: one of {', '.join(KINDS)}.")
    ] = None,
    trees: Annotated[int, typer.Option(help="Number of trees for --only.")] = _TREES[0],
) -> None:
    """Measures speed and memory of the closed world."""
    if only:
        print(json.dumps(KINDS[only](trees)))
        return
    writable_folder(out)
    print(machine())
    rows = []
    for size in _TREES[:2] if quick else _TREES:
        kinds = [kind for kind in KINDS if kind != "clingo" or size <= _CLINGO_TREES]
        row = {name: value for kind in kinds for name, value in _alone(kind, size).items()}
        rows.append(row)
        print(", ".join(f"{name} {value:,.4g}" for name, value in row.items()), flush=True)
    save_table(pl.DataFrame(rows), out / "family_tree_speed.csv")


if __name__ == "__main__":
    run_script(main)
