"""Knowledge graphs from files."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from jaxtyping import Int32

from owkg.checks import ArgumentError
from owkg.kg.factory import FIRST, read_factory
from owkg.kg.graph import KnowledgeGraph
from owkg.kg.labels import read_labels
from owkg.kg.layouts import LAYOUTS, factory_folders, find_file, find_layout, split_files
from owkg.kg.lines import (
    WHOLE,
    counted,
    first_row,
    ids_below,
    line_error,
    read_lines,
    split_labels,
    split_lines,
)
from owkg.kg.manifest import read_manifest
from owkg.kg.triples import COLUMNS, triple_frame

DUPLICATES = ("warn", "keep", "drop", "error")

_IDS, _OPENKE_IDS = (
    "[ \t]*" + "[ \t]+".join(f"(?P<{column}>{WHOLE})" for column in columns) + "[ \t]*"
    for columns in (COLUMNS, ("head", "tail", "relation"))
)
_NUMBERS = r"\s*" + r"\s+".join([r"[+-]?[0-9]+(?:\.[0-9]*)?"] * 3) + r"\s*"
# Lines of a file that are looked at for what it holds.
_SAMPLE = 1000
# What each split goes through: read, taken apart, numbered, looked at for duplicates.
_STEPS = 4

_Value = TypeVar("_Value")


class _Split(NamedTuple):
    """The lines of a split as they stand in its file: three columns of text."""

    path: Path
    first: int  # number of the first line that holds a triple
    frame: pl.DataFrame


class _Tables(NamedTuple):
    """A folder as text; `entities` and `relations` are None where no file gives the ids."""

    entities: tuple[str, ...] | None
    relations: tuple[str, ...] | None
    splits: dict[str, _Split]
    by_id: bool  # whether the columns hold ids
    source: str = ""  # of the labels, for messages


def read_graph(
    folder: Any,
    *,
    duplicates: str = "warn",
    layout: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> KnowledgeGraph:
    """Reads a knowledge graph from a folder of one of the usual layouts.

    - "labelled": `train.txt`, `valid.txt`, `test.txt`, lines of head, relation, tail, separated by tabs,
      without a header (also PyKEEN, CoDEx). Ids follow the labels of all splits, sorted by code point.
    - "integer": the same files with ids in place of labels, separated by tabs or spaces. The labels are
      their digits. At least half of the ids below the largest have to be there.
    - "rotate": `entities.dict` and `relations.dict` (id, tab, label), and the same files with labels or,
      if the first line of train holds no three known labels, ids.
    - "openke": `entity2id.txt`, `relation2id.txt`, `train2id.txt`, ...: the number of lines first; then label
      and id, or the ids of head, tail, relation in this order.
    - "libkge": `dataset.yaml`, or else `entity_ids.del`, `relation_ids.del`, `train.del`, ...
    - "pykeen": a triples factory (`entity_to_id.tsv.gz`, `relation_to_id.tsv.gz`, `numeric_triples.tsv.gz`,
      with header lines), read as the split train; or a data set of factories in the folders `training`,
      `validation`, `testing`. Ids are those of training; labels that only the others have come after
      them. Pickles (`base.pth`, `metadata.pth`) are not opened.

    Splits are files whose name begins with train, valid, test or missing, as in `test_sparse.txt`;
    "dev" is read as "valid". All may be packed (`.gz`); other files are ignored. Splits whose name ends in
    "_negatives" hold false triples (CoDEx), which never count as facts.

    Args:
        folder: where the files are.
        duplicates: what becomes of a triple that stands in one split more than once: "warn" keeps all and
            warns with their number, "keep" keeps all, "drop" keeps the first, "error" refuses.
        layout: one of the above; None looks at the files: "integer" if the first line of every split
            is three whole numbers and no file names the ids.
        on_progress: told how many steps are done, and of how many; a split takes several.

    Raises:
        ValueError: if the folder is of no layout or of several, if there is no train split, or if a line is
            malformed, blank, not UTF-8, or holds an unknown label or an id out of range; the message
            begins with the file and, where there is one, the line.
    """
    if duplicates not in DUPLICATES:
        raise ArgumentError("duplicates", f"must be one of {', '.join(DUPLICATES)}, got {duplicates!r}.")
    if layout is not None and layout not in LAYOUTS:
        raise ArgumentError("layout", f"must be one of {', '.join(LAYOUTS)}, got {layout!r}.")
    if not isinstance(folder, str | PathLike):
        raise ArgumentError("folder", f"must be the path of a folder, got {folder!r}.")
    folder = Path(folder)
    tell = on_progress or (lambda done, total: None)
    tables = _tables(folder, layout, tell)
    graph = _from_ids(tables, tell) if tables.by_id else _from_labels(tables, tell)
    splits = {
        name: _without_duplicates(triples, tables.splits[name], duplicates)
        for name, triples in _told(graph.splits, 3, tell)
    }
    return graph._replace(splits=splits)


def _told(
    splits: dict[str, _Value], step: int, tell: Callable[[int, int], None]
) -> Iterator[tuple[str, _Value]]:
    """The items of `splits`; tells after each that one more has come through a step (from 0)."""
    for i, item in enumerate(splits.items(), start=1):
        yield item
        tell(step * len(splits) + i, _STEPS * len(splits))


def _tables(folder: Path, layout: str | None, tell: Callable[[int, int], None]) -> _Tables:
    found = find_layout(folder) if layout is None else layout
    match found:
        case "openke":
            return _openke(folder, tell)
        case "rotate":
            return _rotate(folder, tell)
        case "libkge":
            return _libkge(folder, tell)
        case "pykeen":
            return _pykeen(folder)
    lines = {name: (path, read_lines(path)) for name, path in _told(split_files(folder, found), 0, tell)}
    first_lines = [line[0] for _, line in lines.values()]
    are_ids = layout is None and all(re.fullmatch(_IDS, line) for line in first_lines)
    by_id = are_ids or layout == "integer"
    if layout is None and not are_ids:
        _check_labels(lines.values())
    splits = {name: _split(path, line, by_id=by_id) for name, (path, line) in _told(lines, 1, tell)}
    return _Tables(None, None, splits, by_id)


def _split(path: Path, lines: pl.Series, *, by_id: bool) -> _Split:
    if by_id:
        return _Split(path, 1, split_lines(path, lines, _IDS, "three ids (whole numbers)", separator=None))
    return _Split(path, 1, split_labels(path, lines))


def _check_labels(files: Iterable[tuple[Path, pl.Series]]) -> None:
    """Looks for ids that one line would turn into labels, in some lines of each file.

    Raises:
        ValueError: naming a first line of three numbers that are no ids, where most lines are ids.
    """
    files = list(files)
    some = pl.concat([lines.gather_every(max(1, len(lines) // _SAMPLE)) for _, lines in files])
    if 2 * int(some.str.contains(f"^{_IDS}$").sum()) <= len(some):
        return
    path, line = next((path, lines[0]) for path, lines in files if not re.fullmatch(_IDS, lines[0]))
    said = f"{path}, line 1: is not three ids (whole numbers without a sign or a zero in front), got {line!r}"
    if re.fullmatch(_NUMBERS, line):
        raise ValueError(f"{said}, where most lines are; if all are labels, name the layout labelled.")
    warnings.warn(f"{said}, where most lines are: all of them are read as labels.", UserWarning, stacklevel=2)


def _openke(folder: Path, tell: Callable[[int, int], None]) -> _Tables:
    entities = read_labels(find_file(folder, "entity2id.txt"), openke=True)
    relations = read_labels(find_file(folder, "relation2id.txt"), openke=True)
    splits = {}
    for name, path in _told(split_files(folder, "openke"), 1, tell):
        lines = counted(path, read_lines(path))
        expected = "the ids of head, tail and relation (whole numbers)"
        frame = split_lines(path, lines, _OPENKE_IDS, expected, separator=None, first=2)
        splits[name] = _Split(path, 2, frame)
    return _Tables(entities, relations, splits, by_id=True)


def _rotate(folder: Path, tell: Callable[[int, int], None]) -> _Tables:
    entities = read_labels(find_file(folder, "entities.dict"), openke=False)
    relations = read_labels(find_file(folder, "relations.dict"), openke=False)
    files = split_files(folder, "rotate")
    lines = {name: (path, read_lines(path)) for name, path in _told(files, 0, tell)}
    line = lines["train"][1][0]
    head, relation, tail = [*line.split("\t"), "", ""][:3]
    known = head in entities and relation in relations and tail in entities
    by_id = not known and re.fullmatch(_IDS, line) is not None
    splits = {name: _split(path, line, by_id=by_id) for name, (path, line) in _told(lines, 1, tell)}
    return _Tables(entities, relations, splits, by_id, "entities.dict and relations.dict")


def _libkge(folder: Path, tell: Callable[[int, int], None]) -> _Tables:
    if (folder / "dataset.yaml").is_file():
        entity_ids, relation_ids, files, sizes = read_manifest(folder / "dataset.yaml")
    else:
        entity_ids, relation_ids = find_file(folder, "entity_ids.del"), find_file(folder, "relation_ids.del")
        files, sizes = split_files(folder, "libkge"), {}
    entities, relations = (read_labels(path, openke=False) for path in (entity_ids, relation_ids))
    splits = {name: _split(path, read_lines(path), by_id=True) for name, path in _told(files, 1, tell)}
    found = {entity_ids: len(entities), relation_ids: len(relations)}
    found |= {split.path: len(split.frame) for split in splits.values()}
    for path, (size, line) in sizes.items():
        if size != found[path]:
            message = f"says {size} of {path.name}, which has {found[path]} lines."
            raise line_error(folder / "dataset.yaml", line, message)
    return _Tables(entities, relations, splits, by_id=True)


def _pykeen(folder: Path) -> _Tables:
    factories = {name: read_factory(path) for name, path in factory_folders(folder).items()}
    # Each factory has ids of its own, which the labels join.
    entities = dict.fromkeys(label for factory in factories.values() for label in factory.entities)
    relations = dict.fromkeys(label for factory in factories.values() for label in factory.relations)
    splits = {name: _Split(f.path, FIRST, f.triples) for name, f in factories.items()}
    return _Tables(tuple(entities), tuple(relations), splits, by_id=False)


def _from_labels(tables: _Tables, tell: Callable[[int, int], None]) -> KnowledgeGraph:
    frames = [split.frame for split in tables.splits.values()]
    entities, relations = tables.entities, tables.relations
    if entities is None or relations is None:
        entities = _sorted_labels([frame[column] for frame in frames for column in ("head", "tail")])
        relations = _sorted_labels([frame["relation"] for frame in frames])
    kinds = {"entity": pl.Enum(list(entities)), "relation": pl.Enum(list(relations))}
    splits = {}
    for name, split in _told(tables.splits, 2, tell):
        ids = []
        for column in COLUMNS:
            kind = "relation" if column == "relation" else "entity"
            found = split.frame[column].cast(kinds[kind], strict=False).to_physical()
            if (row := first_row(found.is_null())) is not None:
                message = f"the {kind} {split.frame[column][row]!r} is not in {tables.source}."
                raise line_error(split.path, split.first + row, message)
            ids.append(found.cast(pl.Int32).to_numpy())
        splits[name] = np.stack(ids, axis=1)
    return KnowledgeGraph(entities, relations, splits)


def _sorted_labels(columns: list[pl.Series]) -> tuple[str, ...]:
    return tuple(pl.concat([column.unique() for column in columns]).unique().sort().to_list())


def _from_ids(tables: _Tables, tell: Callable[[int, int], None]) -> KnowledgeGraph:
    entities, relations = tables.entities, tables.relations
    if entities is None or relations is None:
        entities = _digits("entity", ("head", "tail"), tables)
        relations = _digits("relation", ("relation",), tables)
    sizes = (len(entities), len(relations), len(entities))
    splits = {}
    for name, (path, first, frame) in _told(tables.splits, 2, tell):
        ids = [ids_below(path, frame[c], n, first=first) for c, n in zip(COLUMNS, sizes, strict=True)]
        splits[name] = np.stack([found.to_numpy() for found in ids], axis=1)
    return KnowledgeGraph(entities, relations, splits)


def _digits(kind: str, columns: tuple[str, ...], tables: _Tables) -> tuple[str, ...]:
    """The labels 0, 1, 2, ... up to the largest id."""
    found = [split.frame[column] for split in tables.splits.values() for column in columns]
    distinct = pl.concat([ids.cast(pl.Int64, strict=False).unique() for ids in found]).unique()
    # Ids too long for 64 bits are null.
    largest = 2**63 if distinct.null_count() else int(distinct.max())  # type: ignore[arg-type]
    if largest + 1 > 2 * len(distinct):
        raise ValueError(
            f"{tables.splits['train'].path.parent}: must hold at least half of the {kind} ids up to the "
            f"largest, {largest}, got {len(distinct)} of them; if they are labels, name the layout labelled."
        )
    return tuple(map(str, range(largest + 1)))


def _without_duplicates(
    triples: Int32[np.ndarray, "before 3"], split: _Split, duplicates: str
) -> Int32[np.ndarray, "after 3"]:
    if duplicates == "keep":
        return triples
    first = triple_frame(triples).select(pl.struct(COLUMNS)).to_series().is_first_distinct()
    repeated = len(first) - int(first.sum())
    if not repeated:
        return triples
    if duplicates == "drop":
        return triples[first.to_numpy()]
    if duplicates == "error":
        row = (~first).arg_max() or 0
        before = int(np.argmax((triples == triples[row]).all(axis=1)))
        shown = " ".join(split.frame.select(COLUMNS).row(row))
        message = f"the triple {shown!r} stands on line {split.first + before} already."
        raise line_error(split.path, split.first + row, message)
    warnings.warn(
        f"{split.path}: {repeated} of {len(first)} lines repeat an earlier triple; all are kept "
        '(duplicates="drop" keeps one of each).',
        UserWarning,
        stacklevel=3,
    )
    return triples
