"""Knowledge graphs from files."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int32

from owkg import checks
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import (
    WHOLE,
    LineBlock,
    first_line,
    first_row,
    id_columns,
    label_columns,
    line_error,
    read_blocks,
    require_count,
)
from owkg.kg.factory import FIRST, read_factory, read_factory_triples
from owkg.kg.graph import KnowledgeGraph
from owkg.kg.labels import read_labels
from owkg.kg.layouts import LAYOUTS, factory_folders, find_file, find_layout, split_files
from owkg.kg.manifest import read_manifest
from owkg.kg.signs import check_header, note_order
from owkg.kg.triples import COLUMNS, MOST_IDS, triple_keys
from owkg.ordered import num_distinct

DUPLICATES = ("warn", "keep", "drop", "error")

_IDS = "[ \t]*" + "[ \t]+".join([f"(?:{WHOLE})"] * 3) + "[ \t]*"
_THREE_IDS = "three ids (whole numbers)"
_NUMBERS = r"\s*" + r"\s+".join([r"[+-]?[0-9]+(?:\.[0-9]*)?"] * 3) + r"\s*"
# Lines of a file that are looked at for what it holds.
_SAMPLE = 1000
# Steps of progress, shared out among the splits by the bytes of their files: read, numbered, looked at for
# duplicates.
_READ, _NUMBERED, _LOOKED_AT = 700, 200, 100
_STEPS = 1000
# Bytes of a file that such lines are looked for in.
_LOOKED = 2**20

_Ids = Int32[np.ndarray, "_ 3"]


class _File(NamedTuple):
    """A split's file: its first block, and all blocks."""

    path: Path
    head: LineBlock
    blocks: Iterator[LineBlock]


class _Tables(NamedTuple):
    """A folder in ids; by split, its path and the number of the first line that holds a triple."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    splits: dict[str, _Ids]
    lines: dict[str, tuple[Path, int]]
    by_label: bool  # whether the files name labels, not ids


def read_graph(
    folder: StrPath,
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
            is three whole numbers and no file names the ids; and a first line that looks like a header is
            an error. A layout that is named takes such a line for a triple.
        on_progress: told how many steps are done, and of how many; a split takes several.

    Raises:
        ValueError: if the folder is of no layout or of several, if there is no train split, or if a line is
            malformed, blank, not UTF-8, a header, or holds an unknown label or an id out of range; the
            message begins with the file and, where there is one, the line.

    Warns:
        UserWarning: of triples that repeat; if what stands in the place of relations looks like entities.
    """
    if duplicates not in DUPLICATES:
        raise ArgumentError("duplicates", f"must be one of {', '.join(DUPLICATES)}, got {duplicates!r}.")
    if layout is not None and layout not in LAYOUTS:
        raise ArgumentError("layout", f"must be one of {', '.join(LAYOUTS)}, got {layout!r}.")
    folder = checks.path("folder", folder)
    progress = _Progress(on_progress)
    tables = _tables(folder, layout, progress)
    graph = KnowledgeGraph(tables.entities, tables.relations, tables.splits)
    if layout is None:
        check_header(graph, tables.lines)
    note_order(graph, folder)
    splits = {}
    for name, triples in tables.splits.items():
        path, first = tables.lines[name]
        shown = (tables.entities, tables.relations) if tables.by_label else None
        splits[name] = _without_duplicates(triples, path, first, shown, duplicates)
        progress.add(_LOOKED_AT, path)
    progress.end()
    return KnowledgeGraph(tables.entities, tables.relations, splits)


class _Progress:
    """Tells how much of the work is done; every file has steps by its bytes."""

    def __init__(self, tell: Callable[[int, int], None] | None) -> None:
        self._tell, self._done, self._bytes = tell, 0.0, {}

    def expect(self, paths: Iterable[Path]) -> None:
        self._bytes = {path: path.stat().st_size for path in paths}

    def add(self, steps: float, path: Path, share: float = 1) -> None:
        """That a share of a file has come through a phase of so many steps."""
        self._done += steps * share * self._bytes[path] / max(1, sum(self._bytes.values()))
        if self._tell:
            self._tell(min(int(self._done), _STEPS), _STEPS)

    def end(self) -> None:
        if self._tell:
            self._tell(_STEPS, _STEPS)

    def blocks(self, path: Path, blocks: Iterable[LineBlock]) -> Iterator[LineBlock]:
        """Blocks of a file that are read."""
        left = 1.0
        for block in blocks:
            yield block
            # Packed files hold more than their size.
            share = min(left, len(block.text) / self._bytes[path])
            left -= share
            self.add(_READ, path, share)
        self.add(_READ, path, left)


def _tables(folder: Path, layout: str | None, progress: _Progress) -> _Tables:
    found = find_layout(folder) if layout is None else layout
    match found:
        case "openke":
            return _openke(folder, progress)
        case "rotate":
            return _rotate(folder, progress)
        case "libkge":
            return _libkge(folder, progress)
        case "pykeen":
            return _pykeen(folder, progress)
    files = _files(split_files(folder, found), progress)
    first_lines = [_first_line(file.head) for file in files.values()]
    are_ids = layout is None and all(re.fullmatch(_IDS, line) for line in first_lines)
    if are_ids or layout == "integer":
        return _digits(files, progress)
    if layout is None:
        _check_labels(files.values())
    return _sorted(files, progress)


def _files(paths: dict[str, Path], progress: _Progress) -> dict[str, _File]:
    """The files of the splits, each with its first block, which tells what it holds."""
    progress.expect(paths.values())
    files = {}
    for name, path in paths.items():
        blocks = read_blocks(path)
        head = next(blocks)
        files[name] = _File(path, head, progress.blocks(path, chain([head], blocks)))
    return files


def _first_line(block: LineBlock) -> str:
    return block.text.partition(b"\n")[0].decode()


def _check_labels(files: Iterable[_File]) -> None:
    """Looks for ids that one line would turn into labels, in some lines of each file.

    Raises:
        ValueError: naming a first line of three numbers that are no ids, where most lines are ids.
    """
    samples = []
    for file in files:
        lines = LineBlock(1, file.head.text[:_LOOKED]).lines
        samples.append(lines.gather_every(max(1, len(lines) // _SAMPLE)))
    some = pl.concat(samples)
    if 2 * int(some.str.contains(f"^{_IDS}$").sum()) <= len(some):
        return
    named = ((file.path, _first_line(file.head)) for file in files)
    path, line = next((path, line) for path, line in named if not re.fullmatch(_IDS, line))
    said = f"{path}, line 1: is not three ids (whole numbers without a sign or a zero in front), got {line!r}"
    if re.fullmatch(_NUMBERS, line):
        raise ValueError(f"{said}, where most lines are; if all are labels, name the layout labelled.")
    warnings.warn(f"{said}, where most lines are: all of them are read as labels.", UserWarning, stacklevel=2)


def _openke(folder: Path, progress: _Progress) -> _Tables:
    entities = read_labels(find_file(folder, "entity2id.txt"), openke=True)
    relations = read_labels(find_file(folder, "relation2id.txt"), openke=True)
    splits, lines = {}, {}
    for name, (path, _, blocks) in _files(split_files(folder, "openke"), progress).items():
        said, after = first_line(blocks)
        columns, expected = ("head", "tail", "relation"), "the ids of head, tail and relation (whole numbers)"
        splits[name] = _ids(path, after or (), entities, relations, columns, expected)
        require_count(path, said, len(splits[name]))
        lines[name] = path, 2
    return _Tables(entities, relations, splits, lines, by_label=False)


def _rotate(folder: Path, progress: _Progress) -> _Tables:
    entities = read_labels(find_file(folder, "entities.dict"), openke=False)
    relations = read_labels(find_file(folder, "relations.dict"), openke=False)
    files = _files(split_files(folder, "rotate"), progress)
    line = _first_line(files["train"].head)
    head, relation, tail = [*line.split("\t"), "", ""][:3]
    known = head in entities and relation in relations and tail in entities
    lines = {name: (file.path, 1) for name, file in files.items()}
    if not known and re.fullmatch(_IDS, line) is not None:
        splits = {name: _ids(file.path, file.blocks, entities, relations) for name, file in files.items()}
        return _Tables(entities, relations, splits, lines, by_label=False)
    kinds = pl.Enum(list(entities)), pl.Enum(list(relations))
    splits = {name: _known_labels(file, *kinds) for name, file in files.items()}
    return _Tables(entities, relations, splits, lines, by_label=True)


def _libkge(folder: Path, progress: _Progress) -> _Tables:
    if (folder / "dataset.yaml").is_file():
        entity_ids, relation_ids, paths, sizes = read_manifest(folder / "dataset.yaml")
    else:
        entity_ids, relation_ids = find_file(folder, "entity_ids.del"), find_file(folder, "relation_ids.del")
        paths, sizes = split_files(folder, "libkge"), {}
    entities, relations = (read_labels(path, openke=False) for path in (entity_ids, relation_ids))
    files = _files(paths, progress)
    splits = {name: _ids(file.path, file.blocks, entities, relations) for name, file in files.items()}
    found = {entity_ids: len(entities), relation_ids: len(relations)}
    found |= {paths[name]: len(triples) for name, triples in splits.items()}
    for path, (size, line) in sizes.items():
        if size != found[path]:
            message = f"says {size} of {path.name}, which has {found[path]} lines."
            raise line_error(folder / "dataset.yaml", line, message)
    lines = {name: (path, 1) for name, path in paths.items()}
    return _Tables(entities, relations, splits, lines, by_label=False)


def _pykeen(folder: Path, progress: _Progress) -> _Tables:
    factories = {name: read_factory(path) for name, path in factory_folders(folder).items()}
    progress.expect(factory.path for factory in factories.values())
    # Each factory has ids of its own, which the labels join.
    entities, relations = (
        tuple(dict.fromkeys(label for factory in factories.values() for label in getattr(factory, kind)))
        for kind in ("entities", "relations")
    )
    splits = {}
    for name, factory in factories.items():
        entity, relation = (
            pl.Series(own, dtype=pl.String).cast(pl.Enum(list(joined))).to_physical().to_numpy()
            for own, joined in ((factory.entities, entities), (factory.relations, relations))
        )
        splits[name] = _renumbered(
            [_stacked(frame) for frame in read_factory_triples(factory)], entity, relation
        )
        progress.add(_READ, factory.path)
    lines = {name: (factory.path, FIRST) for name, factory in factories.items()}
    return _Tables(entities, relations, splits, lines, by_label=True)


def _ids(
    path: Path,
    blocks: Iterable[LineBlock],
    entities: tuple[str, ...],
    relations: tuple[str, ...],
    columns: tuple[str, ...] = COLUMNS,
    expected: str = _THREE_IDS,
) -> _Ids:
    """The triples of a file of ids below the numbers of labels."""
    sizes = dict.fromkeys(COLUMNS, len(entities)) | {"relation": len(relations)}
    parts = [_stacked(id_columns(path, block, columns, expected, sizes=sizes)) for block in blocks]
    return np.concatenate([np.empty((0, 3), np.int32), *parts])


def _known_labels(file: _File, entity: Any, relation: Any) -> _Ids:
    """The triples of a file of labels; `entity` and `relation` are enums of those that are known."""
    parts = []
    for block in file.blocks:
        frame = label_columns(file.path, block)
        codes = _codes(frame, entity, relation)
        for column in codes:
            if (row := first_row(column.is_null())) is not None:
                kind, label = "relation" if column.name == "relation" else "entity", frame[column.name][row]
                message = f"the {kind} {label!r} is not in entities.dict and relations.dict."
                raise line_error(file.path, block.first + row, message)
        parts.append(_stacked(codes))
    return np.concatenate(parts)


def _sorted(files: dict[str, _File], progress: _Progress) -> _Tables:
    """Labels in sorted order. Each block has ids of its own first, so no file is taken apart twice."""
    own: dict[str, list[tuple[pl.Series, pl.Series, _Ids]]] = {}
    for name, file in files.items():
        own[name] = []
        for block in file.blocks:
            frame = label_columns(file.path, block)
            entity, ends = _numbered(pl.concat([frame["head"], frame["tail"]]))
            relation, through = _numbered(frame["relation"])
            triples = np.stack([ends[: len(frame)], through, ends[len(frame) :]], axis=1)
            own[name].append((entity, relation, triples))
    blocks = [block for parts in own.values() for block in parts]
    entities = pl.concat([block[0] for block in blocks]).unique().sort()
    relations = pl.concat([block[1] for block in blocks]).unique().sort()
    places = [pl.DataFrame({"label": labels}).with_row_index("id") for labels in (entities, relations)]
    splits = {}
    for name, file in files.items():
        parts = own.pop(name)
        for i, (entity, relation, triples) in enumerate(parts):
            numbers = (_ids_of(x, place) for x, place in zip((entity, relation), places, strict=True))
            parts[i] = (entity[:0], relation[:0], _renumbered([triples], *numbers))
        splits[name] = np.concatenate([triples for _, _, triples in parts])
        progress.add(_NUMBERED, file.path)
    lines = {name: (file.path, 1) for name, file in files.items()}
    return _Tables(tuple(entities.to_list()), tuple(relations.to_list()), splits, lines, by_label=True)


def _numbered(labels: pl.Series) -> tuple[pl.Series, np.ndarray]:
    """The distinct labels, and the number of each label among them, int32."""
    groups = labels.to_frame("label").with_row_index("row").group_by("label").agg("row")
    rows, numbers = groups["row"], np.empty(len(labels), np.int32)
    numbers[rows.explode().to_numpy()] = np.repeat(np.arange(len(groups), dtype=np.int32), rows.list.len())
    return groups["label"], numbers


def _ids_of(labels: pl.Series, place: pl.DataFrame) -> np.ndarray:
    """The id of each label, by a table of all of them."""
    frame = labels.to_frame("label").join(place, on="label", how="left", maintain_order="left")
    return frame["id"].to_numpy()


def _codes(frame: pl.DataFrame, entity: Any, relation: Any) -> pl.DataFrame:
    """The places of labels in two enums; null for those that are not there."""
    kinds = {"head": entity, "relation": relation, "tail": entity}
    return frame.select(frame[name].cast(kind, strict=False).to_physical() for name, kind in kinds.items())


def _stacked(frame: pl.DataFrame) -> _Ids:
    """Columns head, relation, tail as int32 rows."""
    triples = np.empty((len(frame), 3), np.int32)
    for i, column in enumerate(COLUMNS):
        triples[:, i] = frame[column].to_numpy()
    return triples


def _renumbered(parts: list[_Ids], entity: np.ndarray, relation: np.ndarray) -> _Ids:
    """Triples whose id i becomes `entity[i]` or `relation[i]`, in place."""
    for triples in parts:
        for column, numbers in enumerate((entity, relation, entity)):
            triples[:, column] = numbers[triples[:, column]]
    return np.concatenate([np.empty((0, 3), np.int32), *parts])


def _digits(files: dict[str, _File], progress: _Progress) -> _Tables:
    """Labels 0, 1, 2, ... up to the largest id."""
    parts: dict[str, list[pl.DataFrame | _Ids]] = {}
    for name, file in files.items():
        frames = (id_columns(file.path, block, COLUMNS, _THREE_IDS) for block in file.blocks)
        parts[name] = [frame if _too_large(frame) else _stacked(frame) for frame in frames]
    folder = next(iter(files.values())).path.parent
    every = [part for of in parts.values() for part in of]
    entities = _number_of_ids("entity", (0, 2), every, folder)
    relations = _number_of_ids("relation", (1,), every, folder)
    splits = {}
    for name, file in files.items():
        splits[name] = np.concatenate(parts.pop(name))
        progress.add(_NUMBERED, file.path)
    lines = {name: (file.path, 1) for name, file in files.items()}
    names = tuple(map(str, range(max(entities, relations))))
    return _Tables(names[:entities], names[:relations], splits, lines, by_label=False)


def _too_large(frame: pl.DataFrame) -> bool:
    """Whether some id does not fit, even into 64 bits (null)."""
    return any(column.null_count() or column.max() >= MOST_IDS for column in frame)  # type: ignore[operator]


def _number_of_ids(
    kind: str, columns: tuple[int, ...], parts: list[pl.DataFrame | _Ids], folder: Path
) -> int:
    """One more than the largest id; ValueError if fewer than half of the ids below it are there."""
    found = [
        part.to_series(i) if isinstance(part, pl.DataFrame) else pl.Series(part[:, i], dtype=pl.Int64)
        for part in parts
        for i in columns
    ]
    largest = 2**63 if any(x.null_count() for x in found) else max(int(x.max()) for x in found)  # type: ignore[arg-type]
    if largest < 2 * sum(map(len, found)):
        there = np.zeros(largest + 1, bool)
        for ids in found:
            there[ids.to_numpy()] = True
        distinct = np.count_nonzero(there)
    else:
        distinct = pl.concat(found).n_unique()
    if largest + 1 > 2 * distinct:
        raise ValueError(
            f"{folder}: must hold at least half of the {kind} ids up to the largest, {largest}, "
            f"got {distinct} of them; if they are labels, name the layout labelled."
        )
    return largest + 1


def _without_duplicates(
    triples: _Ids,
    path: Path,
    first: int,
    labels: tuple[tuple[str, ...], tuple[str, ...]] | None,
    duplicates: str,
) -> _Ids:
    if duplicates == "keep":
        return triples
    keys = triple_keys(triples)
    repeated = len(keys) - num_distinct(np.sort(keys))
    if not repeated:
        return triples
    if duplicates == "warn":
        warnings.warn(
            f"{path}: {repeated} of {len(keys)} lines repeat an earlier triple; all are kept "
            '(duplicates="drop" keeps one of each).',
            UserWarning,
            stacklevel=3,
        )
        return triples
    is_first = pl.Series(keys).is_first_distinct()
    if duplicates == "drop":
        return triples[is_first.to_numpy()]
    row = (~is_first).arg_max() or 0
    before = int(np.argmax(keys == keys[row]))
    head, relation, tail = triples[row].tolist()
    shown = (head, relation, tail)
    if labels is not None:
        shown = (labels[0][head], labels[1][relation], labels[0][tail])
    message = f"the triple {' '.join(map(str, shown))!r} stands on line {first + before} already."
    raise line_error(path, first + row, message)
