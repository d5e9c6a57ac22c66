"""Vectors, adapters and verdicts, using only the standard library.

As a script, `python owkg/conformance/runner.py --adapter pykeen --out pykeen.json` also runs in an
environment without owkg, for example in a library's environment without JAX. `python -m owkg conformance
--results pykeen.json` shows the results that it wrote.

`vectors.json` holds `{"version": 1, "vectors": [...]}`. Each vector is an object with these keys:

- `id`, `title`: text; ids are unique.
- `defects`: documented defects that the vector tests: `{"thread": "owner/repository#number", "says": text}`.
- `kind`: "ranks", "metrics" or "ir".
- `input`, for ranks: `dtype` (float64, float32, int64) and `queries`, each with `scores` of all entities
  (numbers, or "nan", "inf", "-inf"), the index `answer`, `known` (lists of indices by split) and, if not all
  entities are ranked, the indices `candidates`.
- `input`, for metrics, with one element for each ranking task: `optimistic`, `pessimistic` (default: as
  optimistic), `candidates`, `query` (names; default: each task is a query), `side` (default: tail).
- `input`, for ir: `run`, with a score for each query and answer, and `qrels`, with a relevance for each.
- `protocol`, for ranks: `filter`, the splits whose known answers are removed from the candidates; an empty
  list means raw ranks.
- `protocol`, for metrics: `ties` (optimistic, realistic, pessimistic, or exact: the mean over the whole ranks
  from optimistic to pessimistic), `side` (head, tail, both), and the size of a `batch`, if there are batches.
- `protocol`, for ir: `ties` (by score, then by the answers' names, both descending, as in trec_eval),
  `queries` (the mean is over all judged queries), and `evaluations`, the number of calls of one evaluator,
  of which the last counts.
- `expected`: numbers by metric. Ranks of several queries are named `optimistic[0]` and so on. null means
  that there is no number, so that None, NaN or an exception is correct.
- `tolerance`: largest error, relative to the expected value, or absolute if the expected value is below 1.
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
"""Verdicts on a metric of a vector: `fail` is a wrong number, `error` an exception or no number."""

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Vector:
    """Test case with its expected values; the fields are the keys of the file."""

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
    """Interface between the vectors and a library.

    Attributes:
        name: name of the library.
        version: installed version of the library.
    """

    name: str
    version: str

    def supports(self, vector: Vector) -> bool:
        """Whether the library supports the protocol of the vector."""
        ...

    def run(self, vector: Vector) -> Mapping[str, float | None]:
        """The library's numbers by the vector's names, without names for which it has no number."""
        ...


@cache
def vectors() -> tuple[Vector, ...]:
    """All vectors, in the order of the file."""
    content = json.loads((_HERE / "vectors.json").read_text(encoding="utf-8"))
    return tuple(Vector(**one | {"defects": tuple(one["defects"])}) for one in content["vectors"])


def outcome(adapter: Adapter, vector: Vector) -> dict[str, Any]:
    """Result of a library on a vector; exceptions of the adapter are recorded, not raised.

    Args:
        adapter: adapter of the library.
        vector: vector to run.

    Returns:
        A dictionary. `vector` is the id. `got` holds the numbers by metric, as in JSON ("nan", "inf" as
        text); it is missing if the library does not support the vector. `error` is the text of an exception,
        or of a result that is not a number. `refused` is whether the exception was a ValueError, with which a
        library rejects input.
    """
    found: dict[str, Any] = {"vector": vector.id}
    try:
        if adapter.supports(vector):
            given = dict(adapter.run(vector))
            found["got"] = {name: _written(given[name]) for name in vector.expected if name in given}
    except Exception as error:  # a library may raise anything
        text = f"{type(error).__name__}: {error}".split("\n")[0][:200]
        found |= {"got": {}, "error": text, "refused": isinstance(error, ValueError)}
    return found


def results(adapter: Adapter, cases: Iterable[Vector] | None = None) -> dict[str, Any]:
    """Results of one library: `library`, `version` and its `outcomes` on the vectors (None: all vectors)."""
    outcomes = [outcome(adapter, vector) for vector in (vectors() if cases is None else cases)]
    return {"library": adapter.name, "version": adapter.version, "outcomes": outcomes}


def verdicts(found: Mapping[str, Any], cases: Iterable[Vector] | None = None) -> list[dict[str, Any]]:
    """Verdicts on results, compared with the expected values.

    Args:
        found: results, from `results`.
        cases: vectors of the results. None: all vectors.

    Returns:
        For each vector and expected metric, a dictionary of `vector`, `metric`, `expected`, `got`, `verdict`
        and `message`.

    Raises:
        ValueError: if the results contain an unknown vector.
    """
    known = {vector.id: vector for vector in (vectors() if cases is None else cases)}
    rows = []
    for one in found["outcomes"]:
        if one["vector"] not in known:
            raise ValueError(f"`found` must have vectors of this version, got {one['vector']!r}.")
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
    """Number in the form of JSON; raises ValueError or TypeError if the value is not a number."""
    number = None if value is None else float(value)
    return str(number) if number is not None and not math.isfinite(number) else number


def verdict_of(found: Iterable[str]) -> str:
    """Verdict on a vector: the worst of the verdicts on its metrics, and unsupported only if all are."""
    found = set(found)
    return next(one for one in ("error", "fail", "pass", "unsupported") if one in found)


def summary(found: Mapping[str, Any], cases: Iterable[Vector] | None = None) -> dict[str, Any]:
    """Number of vectors by verdict for a library: `library`, `version` and a count for each verdict."""
    of: dict[str, list[str]] = {}
    for row in verdicts(found, cases):
        of.setdefault(row["vector"], []).append(row["verdict"])
    said = [verdict_of(one) for one in of.values()]
    names = {"library": found["library"], "version": found["version"]}
    return names | {verdict: said.count(verdict) for verdict in VERDICTS}


def text_of(found: Iterable[Mapping[str, Any]]) -> str:
    """Results of libraries as JSON, with one line for each outcome."""
    parts = []
    for one in found:
        lines = ",\n".join("  " + json.dumps(of, allow_nan=False) for of in one["outcomes"])
        head = json.dumps({"library": one["library"], "version": one["version"]})[:-1]
        parts.append(f'{head}, "outcomes": [\n{lines}\n]}}')
    return "[" + ",\n".join(parts) + "]\n"


def _peers() -> Any:
    """Adapters of other libraries, loaded by path because a script has no package."""
    spec = importlib.util.spec_from_file_location("owkg_conformance_peers", _HERE / "peers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str] | None = None) -> int:
    """Writes the results of the libraries installed in this environment; returns the exit code."""
    # Modules in this folder must not shadow libraries of the same name.
    sys.path[:] = [path for path in sys.path if Path(path or ".").resolve() != _HERE.resolve()]
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    known = _peers().PEERS
    parser = argparse.ArgumentParser(description="Runs the conformance vectors on installed libraries.")
    parser.add_argument(
        "--adapter", action="append", choices=sorted(known), help="Library to run (default all). Repeatable."
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="File that the results are written to, as JSON."
    )
    options = parser.parse_args(arguments)
    if options.out.is_dir() or not options.out.absolute().parent.is_dir():
        parser.error(f"--out must be a file in an existing folder, got {options.out}.")
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
    # The file is written completely or not at all, with the standard library, as owkg may not be installed.
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
