"""Runs and judgements as {query: {answer: number}}, the dictionaries of pytrec_eval and ranx, and as JSON."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from owkg.errors import ArgumentError

MOST = 2**53
"""Whole numbers below this bound are exact as floats."""
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)")
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_SHAPE = "must be {query: {answer: number}}"


def frame_of(held: Mapping[Any, Any], value: str, where: str) -> pl.DataFrame:
    """Rows of a dictionary, with its numbers as the column `value`.

    Args:
        held: {query: {answer: number}}.
        value: "score", any number; or "relevance", a whole number.
        where: beginning of messages: a file and a colon, or an argument in backquotes.

    Returns:
        A frame with the columns line (null), query, answer and `value`.

    Raises:
        ValueError: naming the query and the answer, if the dictionary has another shape or a number is NaN.
    """
    queries: list[str] = []
    answers: list[str] = []
    numbers: list[float] = []
    whole = value == "relevance"
    for query, row in held.items():
        if not isinstance(row, Mapping):
            raise ValueError(f"{where} {_SHAPE}, got {type(row).__name__} for the query {query!r}.")
        for label in (query, *row):
            if not isinstance(label, str) or not label:
                raise ValueError(f"{where} must have non-empty text as keys, got {label!r}.")
        for answer, number in row.items():
            if not _is_number(number, whole=whole):
                kind = "a whole number" if whole else "a number"
                raise ValueError(
                    f"{where} the {value} of {answer!r} to {query!r} must be {kind}, got {number!r}."
                )
        queries += [query] * len(row)
        answers += row
        numbers += row.values()
    if not queries:
        raise ValueError(f"{where} {_SHAPE}, got no answer to any query.")
    kind = pl.Int64 if whole else pl.Float64
    values = pl.Series([int(one) if whole else float(one) for one in numbers], dtype=kind)
    try:
        frame = pl.DataFrame({"query": queries, "answer": answers})
    except UnicodeEncodeError as error:
        raise ValueError(f"{where} must hold text that UTF-8 can write, got {error.object!r}.") from None
    return frame.select(pl.lit(None, pl.UInt32).alias("line"), "query", "answer", values.alias(value))


def _is_number(number: Any, *, whole: bool) -> bool:
    """Whether the value is a number of Python or NumPy that is not NaN and fits the column."""
    if isinstance(number, bool) or not hasattr(number, "__float__") or isinstance(number, str):
        return False
    try:
        found = float(number)
    except (TypeError, ValueError, OverflowError):
        return False
    return (
        abs(found) < MOST and found == int(found)
        if whole and math.isfinite(found)
        else (not whole and not math.isnan(found))
    )


def parsed(path: Path, text: str, *, line: int = 1) -> Any:
    r"""Content of JSON text that begins on line `line` of a file.

    Raises:
        JSONError: naming file and line, if the text is not JSON, an object has a key twice, the nesting is
            too deep, or a string holds half of a letter (a lone surrogate, such as "\ud800").
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            again = next(name for i, name in enumerate(names) if name in names[:i])
            raise _TwiceError(again)
        return found

    try:
        found = json.loads(text, object_pairs_hook=once)
        if (at := _lone_surrogate(text)) is None:
            return found
        line, text = (
            line + text.count("\n", 0, at),
            f"must be Unicode, got {text[at : at + 6]}, half of a letter.",
        )
    except _TwiceError as error:
        text = f"must have each key of an object once, got {error.args[0]!r} twice."
    except json.JSONDecodeError as error:
        line, text = line + error.lineno - 1, f"must be JSON ({error.msg})."
    except RecursionError:
        text = "must be JSON that is not nested so deep."
    except ValueError as error:  # a whole number of too many digits
        text = f"must be JSON ({error})."
    raise JSONError(f"{path}, line {line}: {text}")


def _lone_surrogate(text: str) -> int | None:
    """Position of a JSON escape that is a surrogate without its other half; None if there is none."""
    if not _SURROGATE.search(text):
        return None
    high = None  # a first half, whose second half has to follow at once
    for escape in _ESCAPE.finditer(text):
        code = int(escape[1], 16) if escape[1] else 0
        second = 0xDC00 <= code < 0xE000
        paired = high is not None and second and escape.start() == high.end()
        if high is not None and not paired:
            return high.start()
        if second and not paired:
            return escape.start()
        high = escape if 0xD800 <= code < 0xDC00 else None
    return None if high is None else high.start()


class JSONError(ValueError):
    """Error for text that is not JSON, or is JSON that owkg does not accept."""


class _TwiceError(Exception):
    """Error for a key that an object has twice."""


def read_dictionary(path: Path, text: str, value: str) -> pl.DataFrame:
    """Rows of a JSON file, as `frame_of`.

    Raises:
        ValueError: naming the file, as `parsed` and `frame_of`.
    """
    held = parsed(path, text)
    if not isinstance(held, dict):
        raise ValueError(
            f"{path}: {_SHAPE}, got {'an array' if isinstance(held, list) else repr(held)[:80]}."
        )
    return frame_of(held, value, f"{path}:")


def dictionary(name: str, given: Mapping[Any, Any], value: str) -> pl.DataFrame:
    """Rows, as of `frame_of`, of a dictionary that is the argument `name`.

    Raises:
        ArgumentError: if the dictionary has another shape.
    """
    try:
        return frame_of(given, value, "")
    except ValueError as error:
        raise ArgumentError(name, str(error).lstrip()) from None
