"""A library against the vectors in one call: `owkg.conformance.check`."""

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
"""What makes an adapter, by name."""

_SCHEMA = {
    "vector": pl.String,
    "metric": pl.String,
    "expected": pl.Float64,
    "got": pl.Float64,
    "verdict": pl.Enum(runner.VERDICTS),
    "message": pl.String,
}


def adapter(name: str) -> Adapter:
    """The adapter of a library.

    Args:
        name: one of `ADAPTERS`.

    Raises:
        ValueError: if there is none of that name, or its library is not installed; the message names the
            package.

    Examples:
        >>> adapter("owkg").name
        'owkg'
    """
    if name not in ADAPTERS:
        raise ArgumentError("name", f"must be one of {', '.join(ADAPTERS)}, got {name!r}.")
    try:
        return ADAPTERS[name]()
    except ImportError as error:
        raise ArgumentError("name", f"must be of an installed library: {error}") from error


def check(adapter: Adapter, vectors: Iterable[Vector] | None = None) -> pl.DataFrame:
    """A library held against the vectors.

    Args:
        adapter: has `name`, `version`, `supports(vector)` and `run(vector)`; see `Adapter`.
        vectors: of `owkg.conformance.vectors`; all when None.

    Returns:
        One row for each vector and metric: `vector`, `metric`, `expected`, `got`, `verdict` (pass, fail,
        unsupported, error) and `message`, the text of an exception. Nothing that the adapter raises is
        raised here.

    Examples:
        >>> from owkg.conformance import adapter
        >>> check(adapter("owkg"))["verdict"].unique().to_list()
        ['pass']
    """
    needed = ("name", "version", "supports", "run")
    if isinstance(adapter, type) or not all(hasattr(adapter, name) for name in needed):
        raise ArgumentError("adapter", f"must have {', '.join(needed)}, and be no class, got {adapter!r}.")
    cases = tuple(runner.vectors() if vectors is None else vectors)
    if not all(isinstance(one, Vector) for one in cases):
        raise ArgumentError("vectors", f"must be of owkg.conformance.vectors, got {vectors!r}.")
    return pl.DataFrame(runner.verdicts(runner.results(adapter, cases), cases), schema=_SCHEMA)


def read_results(path: StrPath) -> list[dict[str, Any]]:
    """The results of libraries that `runner.py` has written.

    Args:
        path: of the JSON file.

    Returns:
        One dictionary a library, which `runner.verdicts` and `runner.summary` take.

    Raises:
        ValueError: if the file holds something else.
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(found, list) or not found:
            raise TypeError("it must be a list of libraries")
        for one in found:
            summed = runner.summary(one)
            count, wanted = sum(summed[name] for name in runner.VERDICTS), len(runner.vectors())
            if count != wanted:
                raise ValueError(f"{one['library']} has {count} of {wanted} vectors")
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: holds no results of owkg/conformance/runner.py ({error}).") from None
    return found
