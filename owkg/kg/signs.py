"""Checks for a header line, or another order than head, relation, tail, in files of triples."""

import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from owkg.checks import StrPath
from owkg.files.lines import line_error
from owkg.kg.graph import KnowledgeGraph

# Names of columns that pandas, KGX, Hetionet and others write, in any case; some end with _id or similar.
_ENDS = r"(?:[ _-]?(?:id|ids|label|name|entity|node|uri|type))?"
_HEAD = r"heads?|h|subject|subj|sub|s|source|src|from|start|lhs|(?:entity|node|e|ent)[ _-]?1"
_RELATION = (
    r"relations?|relationship|rel|r|predicate|pred|property|prop|p|edge|metaedge|interaction|type|label"
)
_TAIL = r"tails?|t|object|obj|o|target|tgt|trg|dst|dest|to|end|rhs|(?:entity|node|e|ent)[ _-]?2"
_WORDS = {
    name: re.compile(rf"[#:@\"'\s]*(?:{words}){_ENDS}[\"'\s]*", re.IGNORECASE)
    for name, words in (("head", _HEAD), ("relation", _RELATION), ("tail", _TAIL))
}
_CLASSES = re.compile(r"labels?|class|y|truth|target_class|is_true|correct", re.IGNORECASE)
# Fewer relations say little about the order of columns; this many relations for each tail are suspect.
_FEWEST, _MANY = 10, 10
# Number of characters of a line in a message.
_SHOWN = 80


def header_columns(labels: Sequence[str]) -> list[str]:
    """Columns that the labels of a first line name, if these are head, relation and tail in any order.

    Examples:
        >>> header_columns(["subject", "object", "predicate"]), header_columns(["a", "r", "b"])
        (['head', 'tail', 'relation'], [])
    """
    found = [next((name for name, words in _WORDS.items() if words.fullmatch(x)), "") for x in labels]
    return found if sorted(found) == sorted(_WORDS) else []


def named_columns(fields: Sequence[str]) -> dict[str, str]:
    """Names of head, relation and tail among the fields of a header line; empty if one is missing.

    A fourth and last field that names a column of classes is included as label.

    Examples:
        >>> named_columns(["id", "subject", "predicate", "object", "knowledge_level"])
        {'head': 'subject', 'relation': 'predicate', 'tail': 'object'}
    """
    found = {name: next((x for x in fields if words.fullmatch(x)), None) for name, words in _WORDS.items()}
    if not all(found.values()):
        return {}
    if len(fields) == len(_WORDS) + 1 and _CLASSES.fullmatch(fields[-1]):
        found["label"] = fields[-1]
    return {name: field for name, field in found.items() if field}


def check_header(
    graph: KnowledgeGraph, lines: Mapping[str, tuple[Path, int]], *, option: str = "layout"
) -> None:
    """Checks for a header line among the triples: a first line whose labels occur in no other line.

    If the line names columns, two of the three labels are enough.

    Args:
        graph: graph as read, with triples in the order of the lines.
        lines: file and number of the first line, by split.
        option: argument that names columns, for messages.

    Raises:
        ValueError: if such a line names columns (head, relation and tail, or words for them). A line that
            does not, and is first in every split, gives a warning.
    """
    firsts = {name: triples[0].tolist() for name, triples in graph.splits.items() if len(triples)}
    for name, (head, relation, tail) in firsts.items():
        labels = graph.entities[head], graph.relations[relation], graph.entities[tail]
        columns = header_columns(labels)
        everywhere = len(firsts) > 1 and all(other == [head, relation, tail] for other in firsts.values())
        new = _only_first(graph, firsts[name]) if columns or everywhere else 0
        if new < (2 if columns else len(_WORDS)):
            continue
        path, line = lines[name]
        if columns:
            named = dict(zip(columns, labels, strict=True))
            found = {what: named[what] for what in _WORDS}
            message = header_message(labels, found, option)
            if option == "layout":
                message = f"{message[:-1]}; `layout` labelled takes it as a triple."
            raise line_error(path, line, message)
        warnings.warn(
            f"{path}, line {line}: {' '.join(labels)!r} is the first line of every split, and its labels "
            "occur in no other line: is it a header? owkg reads it as a triple; delete it if it is a header.",
            UserWarning,
            stacklevel=3,
        )
        return


def header_message(fields: Sequence[str], found: Mapping[str, str], option: str = "layout") -> str:
    """Message about a line that looks like a header; `found` are its columns, which `option` can name."""
    named = ",".join(f"{what}={name}" for what, name in found.items())
    return (
        f"must be a triple, got what looks like a header line, {' '.join(fields)[:_SHOWN]!r}; name "
        f"its columns (`{option}` {named}), or delete it if the columns are head, relation, tail."
    )


def _only_first(graph: KnowledgeGraph, triple: Sequence[int]) -> int:
    """Number of labels of a triple that occur in no other triple, from 0 to 3; 0 if it is the only triple."""
    head, relation, tail = triple
    others, new = 0, set(_WORDS)
    for triples in graph.splits.values():
        same = (triples[:, 0] == head) & (triples[:, 1] == relation) & (triples[:, 2] == tail)
        for name, one, columns in zip(_WORDS, triple, ((0, 2), (1,), (0, 2)), strict=True):
            if any(((triples[:, column] == one) & ~same).any() for column in columns):
                new.discard(name)
        others += len(triples) - int(same.sum())
    return len(new) if others else 0


def note_order(graph: KnowledgeGraph, where: StrPath, *, option: str = "layout") -> None:
    """Issues a warning, naming `where`, if labels that were read as relations look like entities.

    The warning is issued if most labels of relations are also labels of entities, and there are few labels in
    the place of the relations. Numbers may be labels of both in any graph; therefore heads and relations must
    have about the same numbers, and there must be at most half as many tails. With fewer than ten relations,
    no tail may also be a head or a relation. Many relations that are not entities give a warning only if
    there are at most a tenth as many tails.

    Args:
        graph: graph as read.
        where: file or folder that the message names.
        option: argument that states an order, named in the message.
    """
    shared = set(graph.relations).intersection(graph.entities)
    numbers = all(label.isdecimal() for label in shared)
    place = {label: i for i, label in enumerate(graph.entities) if label in shared}
    same = np.array([place.get(label, -1) for label in graph.relations])
    ends, through = np.zeros((2, graph.num_entities), bool), np.zeros(graph.num_relations, bool)
    for triples in graph.splits.values():
        for there, column in zip((*ends, through), (0, 2, 1), strict=True):
            there[triples[:, column]] = True
    same, relations = same[through & (same >= 0)], np.count_nonzero(through)
    head, tail = ends
    few_relations = relations < _FEWEST
    if few_relations and numbers:
        return
    if 2 * len(same) < relations:
        tails = np.count_nonzero(tail)
        if not few_relations and _MANY * tails <= relations:
            said = f"there are {relations:,} relations, and {tails:,} tails"
            _ask_order(said, "head, tail, relation", where, option)
        return
    for of, few, order, column in (
        (head, tail, "head, tail, relation", "tails"),
        (tail, head, "relation, head, tail", "heads"),
    ):
        common, rest = np.count_nonzero(of[same]), np.count_nonzero(few)
        alike = 2 * common >= np.count_nonzero(of) + relations - common
        if numbers:
            found = alike and 2 * rest <= relations
        elif few_relations:
            found = 2 * common >= relations > rest and not (few & of).any() and not few[same].any()
        else:
            apart = 2 * np.count_nonzero(few & of) <= rest
            found = 2 * common >= relations and (rest < relations or (alike and apart))
        if found:
            said = f"{common:,} of {relations:,} relations are entities too, and there are {rest:,} {column}"
            _ask_order(said, order, where, option)
            return


def _ask_order(said: str, order: str, where: StrPath, option: str) -> None:
    """Issues the warning of `note_order`."""
    warnings.warn(
        f"{where}: {said}: is the order of the columns {order}? owkg reads head, relation, tail, "
        f"unless another order is stated (`{option}` {order.replace(', ', ',')}).",
        UserWarning,
        stacklevel=4,
    )
