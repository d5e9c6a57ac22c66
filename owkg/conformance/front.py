"""Conformance of a library with the vectors in one call: `owkg.conformance.check`."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from owkg.checks import StrPath
from owkg.conformance import runner
from owkg.conformance.own import Owkg
from owkg.conformance.peers import PEERS
from owkg.conformance.runner import Adapter, Vector
from owkg.errors import ArgumentError

ADAPTERS: Mapping[str, Any] = {"owkg": Owkg, **PEERS}
"""Functions without arguments that make an adapter, by name."""

_SCHEMA = {
    "vector": pl.String,
    "metric": pl.String,
    "expected": pl.Float64,
    "got": pl.Float64,
    "verdict": pl.Enum(runner.VERDICTS),
    "message": pl.String,
}


def adapter(name: str) -> Adapter:
    """Adapter of a library.

    Args:
        name: name of the adapter, from `ADAPTERS`.

    Raises:
        ValueError: if there is no adapter of that name, or its library is not installed; the message names
            the package.

    Examples:
        >>> adapter("owkg").name
        'owkg'
    """
    if name not in ADAPTERS:
        raise ArgumentError("name", f"must be one of {', '.join(ADAPTERS)}, got {name!r}.")
    try:
        return ADAPTERS[name]()
    except ImportError as error:
        raise ArgumentError("name", f"must name an installed library: {error}") from error


def check(adapter: Adapter, vectors: Iterable[Vector] | None = None) -> pl.DataFrame:
    """Verdicts on a library: its numbers compared with the vectors.

    Args:
        adapter: object with `name`, `version`, `supports(vector)` and `run(vector)`; see `Adapter`.
        vectors: vectors from `owkg.conformance.vectors`. None: all vectors.

    Returns:
        One row for each vector and metric: `vector`, `metric`, `expected`, `got`, `verdict` (pass, fail,
        unsupported, error) and `message`, the text of an exception. Exceptions of the adapter are recorded,
        not raised.

    Examples:
        >>> from owkg.conformance import adapter
        >>> check(adapter("owkg"))["verdict"].unique().to_list()
        ['pass']
    """
    needed = ("name", "version", "supports", "run")
    if isinstance(adapter, type) or not all(hasattr(adapter, name) for name in needed):
        raise ArgumentError("adapter", f"must be an object with {', '.join(needed)}, got {adapter!r}.")
    cases = tuple(runner.vectors() if vectors is None else vectors)
    if not all(isinstance(one, Vector) for one in cases):
        raise ArgumentError("vectors", f"must be from owkg.conformance.vectors, got {vectors!r}.")
    return pl.DataFrame(runner.verdicts(runner.results(adapter, cases), cases), schema=_SCHEMA)


def read_results(path: StrPath) -> list[dict[str, Any]]:
    """Results of libraries, from a file written by `runner.py`.

    Args:
        path: path of the JSON file.

    Returns:
        One dictionary for each library, as `runner.verdicts` and `runner.summary` take it.

    Raises:
        ValueError: if the file has other content.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(found, list) or not found:
            raise TypeError("the file must hold a list of libraries")
        for one in found:
            summed = runner.summary(one)
            count, wanted = sum(summed[name] for name in runner.VERDICTS), len(runner.vectors())
            if count != wanted:
                raise ValueError(f"{one['library']} has {count} of {wanted} vectors")
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: must hold results of owkg/conformance/runner.py ({error}).") from None
    return found
