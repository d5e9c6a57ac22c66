"""Vectors, adapters and verdicts, of the standard library alone.

As a script, `python owkg/conformance/runner.py --adapter pykeen --out pykeen.json` runs where owkg is not
installed: beside a library whose environment has no JAX. `python -m owkg conformance --results pykeen.json`
shows what it wrote.

`vectors.json` holds `{"version": 1, "vectors": [...]}`; each vector is an object of:

- `id`, `title`: text; the ids differ.
- `defects`: documented ones that it stands for: `{"thread": "owner/repository#number", "says": text}`.
- `kind`: "ranks", "metrics" or "ir".
- `input`, of ranks: `dtype` (float64, float32, int64) and `queries`, each with `scores` of all entities
  (numbers, or "nan", "inf", "-inf"), the index `answer`, `known`: lists of indices by split, and, where not
  all entities are ranked, the indices `candidates`.
- `input`, of metrics, one element a ranking task: `optimistic`, `pessimistic` (as optimistic where absent),
  `candidates`, `query` (names; where absent, each task is a query), `side` (tail where absent).
- `input`, of ir: `run`, a score for each query and answer; `qrels`, a relevance for each.
- `protocol`, of ranks: `filter`, the splits whose known answers leave the candidates; none for raw ranks.
- `protocol`, of metrics: `ties` (optimistic, realistic, pessimistic; exact: the mean over the whole ranks
  from optimistic to pessimistic), `side` (head, tail, both), and the size of a `batch`, if there are some.
- `protocol`, of ir: `ties` (by score, then by the answers' names, both descending, as trec_eval), `queries`
  (the mean is over all judged ones), `evaluations`, how often one evaluator is called; the last counts.
- `expected`: numbers by metric. Ranks of several queries are called `optimistic[0]` and so on. null: there is
  no number, and None, NaN or an exception is right.
- `tolerance`: relative to the expected value, or absolute below 1.
"""

import argparse
import importlib.util
import json
import logging
import math
import secrets
import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

VERDICTS = ("pass", "fail", "unsupported", "error")
"""What is said of a metric of a vector: a wrong number fails; `error` is an exception, or no number."""

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Vector:
    """One case with its expected values; the fields are those of the file."""

    id: str
    title: str
    defects: tuple[Mapping[str, str], ...]
    kind: str
    input: Mapping[str, Any]
    protocol: Mapping[str, Any]
    expected: Mapping[str, float | None]
    tolerance: float


@runtime_checkable
class Adapter(Protocol):
    """What a library needs to be tested.

    Attributes:
        name: of the library.
        version: that is installed.
    """

    name: str
    version: str

    def supports(self, vector: Vector) -> bool:
        """Whether the library has what the vector's protocol asks for."""
        ...

    def run(self, vector: Vector) -> Mapping[str, float | None]:
        """The library's numbers by the vector's names; names that it has no number for are left out."""
        ...


@cache
def vectors() -> tuple[Vector, ...]:
    """All vectors, in the order of the file."""
    content = json.loads((_HERE / "vectors.json").read_text(encoding="utf-8"))
    return tuple(Vector(**one | {"defects": tuple(one["defects"])}) for one in content["vectors"])


def outcome(adapter: Adapter, vector: Vector) -> dict[str, Any]:
    """What a library answers to a vector; nothing that an adapter does is raised.

    Args:
        adapter: of the library.
        vector: to be run.

    Returns:
        The id under `vector`. Under `got` the numbers by metric, as JSON has them ("nan", "inf" as text); it
        is missing where the library does not support the vector. `error`: text of an exception, or of what is
        no number; `refused`: whether it was a ValueError, by which input is refused.
    """
    found: dict[str, Any] = {"vector": vector.id}
    try:
        if adapter.supports(vector):
            given = dict(adapter.run(vector))
            found["got"] = {name: _written(given[name]) for name in vector.expected if name in given}
    except Exception as error:  # of any library
        text = f"{type(error).__name__}: {error}".split("\n")[0][:200]
        found |= {"got": {}, "error": text, "refused": isinstance(error, ValueError)}
    return found


def results(adapter: Adapter, cases: Iterable[Vector] | None = None) -> dict[str, Any]:
    """What is written of one library: `library`, `version` and its `outcomes`, of all vectors when None."""
    outcomes = [outcome(adapter, vector) for vector in (vectors() if cases is None else cases)]
    return {"library": adapter.name, "version": adapter.version, "outcomes": outcomes}


def verdicts(found: Mapping[str, Any], cases: Iterable[Vector] | None = None) -> list[dict[str, Any]]:
    """Results held against the expected values.

    Args:
        found: of `results`.
        cases: that the results are of; all vectors when None.

    Returns:
        For each vector and expected metric a dictionary of `vector`, `metric`, `expected`, `got`, `verdict`
        and `message`.

    Raises:
        ValueError: if the results are of a vector that is not there.
    """
    known = {vector.id: vector for vector in (vectors() if cases is None else cases)}
    rows = []
    for one in found["outcomes"]:
        if one["vector"] not in known:
            raise ValueError(f"`found` must be of vectors of this version, got {one['vector']!r}.")
        vector, got, message = known[one["vector"]], one.get("got"), one.get("error", "")
        for metric, expected in vector.expected.items():
            number = None if got is None or got.get(metric) is None else float(got[metric])
            number = None if number is not None and math.isnan(number) else number
            if got is None or (not message and metric not in got):
                verdict = "unsupported"
            elif message:
                verdict = "pass" if expected is None and one.get("refused") else "error"
            else:
                verdict = "pass" if _is_right(number, expected, vector.tolerance) else "fail"
            row = {"vector": vector.id, "metric": metric, "expected": expected, "got": number}
            rows.append(row | {"verdict": verdict, "message": message})
    return rows


def _is_right(number: float | None, expected: float | None, tolerance: float) -> bool:
    if number is None or expected is None:
        return number is expected
    return abs(number - expected) <= tolerance * max(1, abs(expected))


def _written(value: float | None) -> float | str | None:
    """A number as JSON has it; ValueError or TypeError of what is no number."""
    number = None if value is None else float(value)
    return str(number) if number is not None and not math.isfinite(number) else number


def verdict_of(found: Iterable[str]) -> str:
    """The verdict on a vector from those on its metrics: the worst; unsupported only where all are."""
    found = set(found)
    return next(one for one in ("error", "fail", "pass", "unsupported") if one in found)


def summary(found: Mapping[str, Any], cases: Iterable[Vector] | None = None) -> dict[str, Any]:
    """How many vectors a library passes: `library`, `version` and a number for each verdict."""
    of: dict[str, list[str]] = {}
    for row in verdicts(found, cases):
        of.setdefault(row["vector"], []).append(row["verdict"])
    said = [verdict_of(one) for one in of.values()]
    names = {"library": found["library"], "version": found["version"]}
    return names | {verdict: said.count(verdict) for verdict in VERDICTS}


def text_of(found: Iterable[Mapping[str, Any]]) -> str:
    """Results of libraries as JSON, an outcome a line."""
    parts = []
    for one in found:
        lines = ",\n".join("  " + json.dumps(of, allow_nan=False) for of in one["outcomes"])
        head = json.dumps({"library": one["library"], "version": one["version"]})[:-1]
        parts.append(f'{head}, "outcomes": [\n{lines}\n]}}')
    return "[" + ",\n".join(parts) + "]\n"


def _peers() -> Any:
    """The adapters of other libraries, read by path: where this is a script there is no package."""
    spec = importlib.util.spec_from_file_location("owkg_conformance_peers", _HERE / "peers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str] | None = None) -> int:
    """Writes the results of libraries that are installed here; returns the exit code."""
    # Modules beside this file must not stand for libraries of the same name.
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _HERE.resolve()]
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    known = _peers().PEERS
    parser = argparse.ArgumentParser(description="Runs the conformance vectors on installed libraries.")
    parser.add_argument("--adapter", action="append", choices=sorted(known), help="Default: all.")
    parser.add_argument("--out", type=Path, required=True, help="Where the results go, as JSON.")
    options = parser.parse_args(arguments)
    if options.out.is_dir() or not options.out.absolute().parent.is_dir():
        parser.error(f"--out must be a file in a folder that is there, got {options.out}.")
    written = []
    for name in options.adapter or known:
        try:
            adapter = known[name]()
        except ImportError as error:
            sys.stderr.write(f"{name}: {error}\n")
            continue
        written.append(results(adapter))
    if not written:
        return 2
    # By the standard library alone, as owkg need not be installed: whole or not there.
    aside = options.out.absolute().with_name(f".owkg-{secrets.token_hex(8)}.part")
    try:
        with aside.open("x", encoding="utf-8") as file:
            file.write(text_of(written))
        aside.replace(options.out)
    finally:
        aside.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
