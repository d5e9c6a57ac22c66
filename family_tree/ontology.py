"""Ontologies: relations of kinship and their rules, read from TOML files."""

import re
import reprlib
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from family_tree.plan import planned
from family_tree.rules import GENDERS, PARENT, Rule, is_name, near, parse_rule
from family_tree.strata import Stratum, groups, stratum
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import line_error

# The inventories that come with the package.
SHIPPED = ("published", "hohenecker")
# Enough of a rule to find it by.
_SHOWN = 200
_KEYS = {"meaning": str, "rules": list, "hidden": bool}
_KINDS = {str: "text", list: "a list of texts", bool: "true or false"}


class Relation(NamedTuple):
    """One relation of X and Y, and its rules; the facts of a hidden one are only used by other rules."""

    name: str
    meaning: str
    rules: tuple[Rule, ...]
    hidden: bool


class Ontology(NamedTuple):
    """Relations of kinship, checked and planned.

    Attributes:
        name: of the inventory, or of the file without its suffix.
        description: in words.
        relations: names of those whose facts are written, sorted.
        definitions: all relations, in the order of the file.
        strata: how to compute them, in this order.
        text: of the file.
    """

    name: str
    description: str
    relations: tuple[str, ...]
    definitions: tuple[Relation, ...]
    strata: tuple[Stratum, ...]
    text: str


# Where an ontology is from: a name of `SHIPPED`, a TOML file, or itself.
Source = Ontology | StrPath


def ontology(source: Source) -> Ontology:
    """The ontology of a name or file.

    Args:
        source: "published" (the 23 relations of the published graph), "hohenecker" (29), or a TOML file with
            a table for each relation. An `Ontology` is given back as it is.

    Raises:
        ValueError: if there is no such file, or naming the line of a relation or rule that cannot be.

    Examples:
        >>> ontology("published").relations[:3]
        ('auntOf', 'boyCousinOf', 'brotherOf')
    """
    return ontology_of("source", source)


def ontology_of(name: str, source: Source) -> Ontology:
    """The ontology that the argument `name` gives: itself, or as `ontology` takes it."""
    if isinstance(source, Ontology):
        return source
    if isinstance(source, str) and source in SHIPPED:
        shipped = files("family_tree") / "relations" / f"{source}.toml"
        return read_ontology(Path(str(shipped)))
    if not isinstance(source, str | PathLike) or not Path(source).is_file():
        raise ArgumentError(name, f"must be {', '.join(SHIPPED)} or a TOML file, got {str(source)!r}.")
    return read_ontology(Path(source))


def source_text(source: Source) -> str:
    """What `metadata.json` says of the source of an ontology: the name or file that was given."""
    return source.name if isinstance(source, Ontology) else str(source)


def read_ontology(path: Path) -> Ontology:
    """The ontology of a TOML file; its name is the file's.

    Raises:
        ValueError: naming the file and the line, as far as can be told.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # with a byte order mark or without
        content = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: must be TOML in UTF-8 ({error}).") from None
    except RecursionError:
        raise ValueError(f"{path}: must be TOML that is not nested so deep.") from None
    description = content.pop("description", "")
    with _located(path, text, "description"):
        if not isinstance(description, str):
            raise ValueError(f"must be text, got {reprlib.repr(description)}.")
    definitions = []
    for name, table in content.items():
        with _located(path, text, name):
            _check_table(name, table)
        rules = []
        for rule in table.get("rules", []):
            with _located(path, text, name, rule):
                rules.append(parse_rule(name, rule, content))
                planned(rules[-1])
        definitions.append(Relation(name, table.get("meaning", ""), tuple(rules), table.get("hidden", False)))
    relations = tuple(sorted(r.name for r in definitions if not r.hidden))
    if not relations:
        raise ValueError(f"{path}: must have a relation that is not hidden.")
    rules = {relation.name: relation.rules for relation in definitions if relation.rules}
    strata = []
    for group in groups(rules):
        with _located(path, text, group[0]):
            strata.append(stratum(group, rules))
    return Ontology(path.stem, description, relations, tuple(definitions), tuple(strata), text)


def _check_table(name: str, table: object) -> None:
    # `reprlib`, because tables may be nested deeper than `repr` can go.
    if not isinstance(table, dict):
        raise ValueError(f"must be a table such as [siblingOf], got {reprlib.repr(table)}.")
    if name in GENDERS:
        raise ValueError("is said of people, and must not be a relation.")
    if not is_name(name):
        raise ValueError("must be a name of letters, digits and underscores.")
    for key, found in table.items():
        if key not in _KEYS:
            raise ValueError(f"must have no key but {', '.join(_KEYS)}, got {key}{near(key, _KEYS)}.")
        texts = not isinstance(found, list) or all(isinstance(text, str) for text in found)
        if not isinstance(found, _KEYS[key]) or not texts:
            raise ValueError(f"must have {_KINDS[_KEYS[key]]} for {key}, got {reprlib.repr(found)}.")
    if name == PARENT and table.get("rules"):
        raise ValueError("is given with the people, and must have no rules.")
    if name != PARENT and not table.get("rules"):
        raise ValueError("must have rules.")


@contextmanager
def _located(path: Path, text: str, name: str, rule: str | None = None) -> Iterator[None]:
    """Puts file, line, relation and rule before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        what = name if rule is None else f"{name}, rule {rule[:_SHOWN]!r}"
        raise line_error(path, _line(text, name, rule), f"{what}: {error}") from None


def _line(text: str, name: str, rule: str | None) -> int:
    """The line in which a rule stands, or its relation begins; TOML readers do not tell."""
    begin = re.search(rf"""^\s*\[?\s*["']?{re.escape(name)}\b""", text, re.MULTILINE)
    start = begin.end() if begin else 0
    place = max(start, text.find(rule, start)) if rule else start
    return text.count("\n", 0, place) + 1
