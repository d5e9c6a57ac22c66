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

# Ontologies that come with the package.
SHIPPED = ("published", "hohenecker")
# Characters of a rule that a message shows.
_SHOWN = 200
_KEYS = {"meaning": str, "rules": list, "hidden": bool}
_KINDS = {str: "text", list: "a list of texts", bool: "true or false"}


class Relation(NamedTuple):
    """Relation of X and Y with its rules; only other rules use the facts of a hidden relation."""

    name: str
    meaning: str
    rules: tuple[Rule, ...]
    hidden: bool


class Ontology(NamedTuple):
    """Relations of kinship, checked and planned.

    Attributes:
        name: name of the ontology, or of its file without suffix.
        description: description in words.
        relations: sorted names of the relations whose facts are written.
        definitions: all relations, in the order of the file.
        strata: groups of relations in the order in which they are computed.
        text: text of the file.
    """

    name: str
    description: str
    relations: tuple[str, ...]
    definitions: tuple[Relation, ...]
    strata: tuple[Stratum, ...]
    text: str


# Source of an ontology: a name in `SHIPPED`, a TOML file, or the ontology itself.
Source = Ontology | StrPath


def ontology(source: Source) -> Ontology:
    """Ontology with a name, or in a file.

    Args:
        source: "published" (the 23 relations of the published graph), "hohenecker" (29 relations), or a TOML
            file with a table for each relation. An `Ontology` is returned unchanged.

    Raises:
        ValueError: if there is no such file; or naming the line, if a relation or rule is invalid.

    Examples:
        >>> ontology("published").relations[:3]
        ('auntOf', 'boyCousinOf', 'brotherOf')
    """
    return ontology_of("source", source)


def ontology_of(name: str, source: Source) -> Ontology:
    """Ontology given by the argument `name`, as in `ontology`."""
    if isinstance(source, Ontology):
        return source
    if isinstance(source, str) and source in SHIPPED:
        shipped = files("family_tree") / "relations" / f"{source}.toml"
        return read_ontology(Path(str(shipped)))
    if not isinstance(source, str | PathLike) or not Path(source).is_file():
        raise ArgumentError(name, f"must be {', '.join(SHIPPED)} or a TOML file, got {str(source)!r}.")
    return read_ontology(Path(source))


def source_text(source: Source) -> str:
    """Source of an ontology as stored in `metadata.json`: the given name or file."""
    return source.name if isinstance(source, Ontology) else str(source)


def read_ontology(path: Path) -> Ontology:
    """Ontology of a TOML file; its name is the name of the file.

    Raises:
        ValueError: naming the file and, if known, the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")  # with or without a byte order mark
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
        raise ValueError("describes a person, and must not be a relation.")
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
    """Context that puts file, line, relation and rule before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        what = name if rule is None else f"{name}, rule {rule[:_SHOWN]!r}"
        raise line_error(path, _line(text, name, rule), f"{what}: {error}") from None


def _line(text: str, name: str, rule: str | None) -> int:
    """Line on which a rule is, or on which its relation begins; TOML readers do not report it."""
    begin = re.search(rf"""^\s*\[?\s*["']?{re.escape(name)}\b""", text, re.MULTILINE)
    start = begin.end() if begin else 0
    place = max(start, text.find(rule, start)) if rule else start
    return text.count("\n", 0, place) + 1
