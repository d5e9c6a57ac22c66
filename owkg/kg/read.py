"""Reading of knowledge graphs from files."""

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
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
    CLASS,
    WHOLE,
    Columns,
    LineBlock,
    first_line,
    first_row,
    id_columns,
    label_columns,
    line_error,
    read_blocks,
    require_count,
)
from owkg.kg.classes import CLASSES_IN_WORDS, truth_of
from owkg.kg.columns import Layout, columns_of, layout_named, separated
from owkg.kg.factory import FIRST, read_factory, read_factory_triples
from owkg.kg.graph import NEGATIVES, KnowledgeGraph
from owkg.kg.labels import read_labels
from owkg.kg.layouts import factory_folders, find_file, find_layout, split_files
from owkg.kg.manifest import read_manifest
from owkg.kg.ntriples import LINE, note_kinds, triple_columns
from owkg.kg.signs import check_header, note_order
from owkg.kg.triples import COLUMNS, MOST_IDS, triple_keys
from owkg.ordered import num_distinct

DUPLICATES = ("warn", "keep", "drop", "error")

_IDS = "[ \t]*" + "[ \t]+".join([f"(?:{WHOLE})"] * 3) + "[ \t]*"
_THREE_IDS = "three ids (whole numbers)"
_NUMBERS = r"\s*" + r"\s+".join([r"[+-]?[0-9]+(?:\.[0-9]*)?"] * 3) + r"\s*"
# Number of lines of a file that are inspected for their contents.
_SAMPLE = 1000
# Steps of progress, divided among the splits by the bytes of their files: read, numbered, checked for
# duplicates.
_READ, _NUMBERED, _LOOKED_AT = 700, 200, 100
_STEPS = 1000
# Number of bytes of a file from which these lines are taken.
_LOOKED = 2**20

_Ids = Int32[np.ndarray, "_ 3"]


class Reading(NamedTuple):
    """Options of `read_graph` for a folder."""

    layout: str | None = None
    duplicates: str = "warn"

    def checked(self) -> "Reading":
        """These options; ArgumentError if there is no such layout or treatment of duplicates."""
        layout_named(self.layout)
        if self.duplicates not in DUPLICATES:
            raise ArgumentError(
                "duplicates", f"must be one of {', '.join(DUPLICATES)}, got {self.duplicates!r}."
            )
        return self


class _File(NamedTuple):
    """File of a split: its first block, all blocks, and the columns of labels."""

    path: Path
    head: LineBlock
    blocks: Iterator[LineBlock]
    columns: Columns
    rdf: bool = False
    named: bool = False  # whether the layout names the columns, including classes

    @property
    def first(self) -> int:
        """Number of the first line that holds a triple."""
        return self.head.first

    @property
    def ids(self) -> str:
        """Pattern of a line of three ids."""
        if self.columns.quoted:
            return self.columns.separator.join([f"(?:{WHOLE})"] * 3)
        return _IDS

    def frames(self) -> "Iterator[tuple[int, pl.DataFrame]]":
        """Number of the first line, and labels, of each block."""
        for block in self.blocks:
            if self.rdf:
                yield block.first, triple_columns(self.path, block)
            else:
                yield block.first, label_columns(self.path, block, self.columns)


class _Lines(NamedTuple):
    """Lines of the triples of a split: file, number of the first line, and distances of all lines from it.

    `after` is None if triple i is on the i-th line after the first.
    """

    path: Path
    first: int
    after: np.ndarray | None = None

    def line(self, row: int) -> int:
        """Number of the line of a triple."""
        return self.first + (row if self.after is None or not len(self.after) else int(self.after[row]))


class _Tables(NamedTuple):
    """Triples of a folder as ids, and the lines of the triples of each split."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    splits: dict[str, _Ids]
    lines: dict[str, _Lines]
    by_label: bool  # whether the files have labels, not ids


def read_graph(
    folder: StrPath,
    *,
    duplicates: str = "warn",
    layout: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> KnowledgeGraph:
    """Knowledge graph from a folder in one of the usual layouts.

    - "labelled": `train.txt`, `valid.txt`, `test.txt` with lines of head, relation, tail, separated by tabs,
      without a header (also PyKEEN, CoDEx). Ids follow the labels of all splits, sorted by code point. In
      `train.csv`, commas or semicolons separate the columns, and fields may be quoted.
    - "head,tail,relation" or another order of these three words: labelled files with columns in that order.
      Further words name columns that are left out, with a warning; "label" names the column of classes.
    - "head=subject,relation=predicate,tail=object": labelled files with a header line, in which the columns
      have these names; other columns are left out, with a warning. "label=..." names the column of classes.
    - "integer": the same files with ids in place of labels, separated by tabs or spaces. The labels are
      the digits of the ids. At least half of the ids up to the largest must occur.
    - "rotate": `entities.dict` and `relations.dict` (id, tab, label), and the same files with labels, or
      with ids if the first line of train does not hold three known labels.
    - "openke": `entity2id.txt`, `relation2id.txt`, `train2id.txt`, ..., each beginning with the number of
      lines, followed by label and id, or by the ids of head, tail and relation in this order.
    - "kb2e": `entity2id.txt` and `relation2id.txt` (label and id, with or without the number of lines first)
      and `train.txt`, ... with labels, as in KB2E, ConvKB and KBAT. `relation2id.txt` decides whether the
      columns are head, relation, tail or head, tail, relation.
    - "libkge": `dataset.yaml`, or otherwise `entity_ids.del`, `relation_ids.del`, `train.del`, ...
    - "pykeen": a triples factory (`entity_to_id.tsv.gz`, `relation_to_id.tsv.gz`, `numeric_triples.tsv.gz`,
      with header lines), read as the split train; or a data set of factories in the folders `training`,
      `validation`, `testing`. Ids are the ids of training; labels that only the other factories have come
      after them. Pickles (`base.pth`, `metadata.pth`) are not opened.
    - "ntriples": `train.nt`, `valid.nt`, `test.nt`. The labels of IRIs have no angle brackets. Literals and
      blank nodes are entities too, labelled by their text, and a warning counts them; blank nodes of two
      files are one entity if they have the same name. Needs pyoxigraph.

    Splits are files whose name begins with train, valid, test or missing, as in `test_sparse.txt`;
    "dev" is read as "valid". All files may be packed (`.gz`); other files are ignored. Splits whose name ends
    in "_negatives" hold false triples (CoDEx), which never count as facts. A fourth column of 1 and -1, or
    other words for true and false, divides a file of labels (WN11, FB13): the false triples of `test.txt`
    become the split "test_negatives", and a warning counts them. If the other columns are whole numbers, a
    layout must be named.

    Args:
        folder: folder of the files.
        duplicates: treatment of triples that are repeated in one split: "warn" (default) keeps all and
            warns with their number, "keep" keeps all, "drop" keeps the first, "error" raises an error.
        layout: one of the layouts above. Default: found from the files. It is "integer" if the first line of
            every split is three whole numbers and no file names the ids. If there are files of two layouts
            and one is complete, that one is read, and a warning names the files that are left out. A first
            line that looks like a header is an error, unless the layout is named "labelled".
        on_progress: function called with (done, total) steps; a split takes several.

    Returns:
        The graph: its entities, its relations, and the triples of each split, by their ids.

    Raises:
        ValueError: if the folder has no layout or several, if there is no train split, or if a line is
            malformed, blank, not UTF-8, a header, or holds an unknown label or an id out of range; the
            message begins with the file and the line, if there is one.

    Warns:
        UserWarning: about repeated triples; files and columns that are left out; columns taken as classes;
            literals and blank nodes taken as entities; ids that do not begin at 0; and relations that look
            like entities.
    """
    named = layout_named(Reading(layout, duplicates).checked().layout)
    folder = checks.path("folder", folder)
    progress = _Progress(on_progress)
    tables = _tables(folder, named, progress)
    graph = KnowledgeGraph(tables.entities, tables.relations, tables.splits)
    if layout is None or named.order:
        check_header(graph, {name: (lines.path, lines.line(0)) for name, lines in tables.lines.items()})
    note_order(graph, folder)
    splits = {}
    for name, triples in tables.splits.items():
        lines = tables.lines[name]
        shown = (tables.entities, tables.relations) if tables.by_label else None
        splits[name] = _without_duplicates(triples, lines, shown, duplicates)
        progress.add(_LOOKED_AT, lines.path)
    progress.end()
    return KnowledgeGraph(tables.entities, tables.relations, splits)


class _Progress:
    """Progress of reading; each file has steps in proportion to its bytes."""

    def __init__(self, tell: Callable[[int, int], None] | None) -> None:
        self._tell, self._done, self._bytes = tell, 0.0, {}

    def expect(self, paths: Iterable[Path]) -> None:
        self._bytes = {path: path.stat().st_size for path in paths}

    def add(self, steps: float, path: Path, share: float = 1) -> None:
        """Counts a share of a file that has passed a phase of so many steps."""
        self._done += steps * share * self._bytes[path] / max(1, sum(self._bytes.values()))
        if self._tell:
            self._tell(min(int(self._done), _STEPS), _STEPS)

    def end(self) -> None:
        if self._tell:
            self._tell(_STEPS, _STEPS)

    def blocks(self, path: Path, blocks: Iterable[LineBlock]) -> Iterator[LineBlock]:
        """Blocks of a file, counted as they are read."""
        left = 1.0
        for block in blocks:
            yield block
            # Packed files hold more bytes than their size.
            share = min(left, len(block.text) / self._bytes[path])
            left -= share
            self.add(_READ, path, share)
        self.add(_READ, path, left)


def _tables(folder: Path, layout: Layout, progress: _Progress) -> _Tables:
    """Triples of a folder in any layout."""
    found = find_layout(folder) if layout.name is None else layout.name
    match found:
        case "openke":
            return _openke(folder, progress)
        case "kb2e":
            return _kb2e(folder, progress)
        case "rotate":
            return _rotate(folder, progress)
        case "libkge":
            return _libkge(folder, progress)
        case "pykeen":
            return _pykeen(folder, progress)
    paths = split_files(folder, found)
    if found == "ntriples":
        return _sorted(_files(paths, progress, rdf=True), progress)
    files = _files(paths, progress, layout)
    are_ids = layout.name is None and all(map(_begins_with_ids, files.values()))
    if are_ids:
        _refuse_classes(files.values())
    if are_ids or layout.name == "integer":
        return _digits(files, progress)
    if layout.name is None:
        _check_labels(files.values())
    return _sorted(files, progress)


def _files(
    paths: dict[str, Path],
    progress: _Progress,
    layout: Layout | None = None,
    *,
    rdf: bool = False,
    spaces: bool = False,
) -> dict[str, _File]:
    """Files of the splits, each with its first block, which shows its contents.

    Args:
        paths: paths by split.
        progress: progress of reading.
        layout: columns of the files. None: the usual ones, and possibly classes.
        rdf: whether the files are N-Triples.
        spaces: whether spaces may separate labels.
    """
    progress.expect(paths.values())
    files, left = {}, dict[str, None]()
    for name, path in paths.items():
        blocks = read_blocks(path)
        head = next(blocks)
        line, columns = _first_line(head), Columns()
        if not rdf:
            columns = columns_of(path, line, layout or Layout("labelled"), spaces=spaces)
        if layout and layout.header:
            _, after = first_line(chain([head], blocks))
            if after is None:
                raise line_error(path, 1, "must be followed by lines, got none.")
            blocks, head = after, next(after)
        if len(columns.wanted) < len(columns.names):
            of_header = layout is not None and layout.header is not None
            names = separated(path, line).fields(line) if of_header else columns.names
            every = zip(columns.names, names, strict=True)
            left |= {field: None for what, field in every if what not in columns.wanted}
        named = layout is not None and (layout.header is not None or len(layout.order or ()) > len(COLUMNS))
        files[name] = _File(path, head, progress.blocks(path, chain([head], blocks)), columns, rdf, named)
    if left:
        folder = next(iter(paths.values())).parent
        warnings.warn(f"{folder}: the columns {', '.join(map(repr, left))} are left out.", stacklevel=2)
    return files


def _first_line(block: LineBlock) -> str:
    """First line of a block."""
    return block.text.partition(b"\n")[0].decode()


def _begins_with_ids(file: _File) -> bool:
    """Whether the first line of a file is three ids, possibly followed by a class."""
    line = _first_line(file.head)
    if CLASS in file.columns.names:
        line = line.rpartition(file.columns.separator)[0]
    return re.fullmatch(file.ids, line) is not None


def _refuse_classes(files: Iterable[_File]) -> None:
    """ValueError for a file of ids with a fourth column, which may hold classes or anything else."""
    if (file := next((file for file in files if CLASS in file.columns.names), None)) is not None:
        raise line_error(
            file.path,
            1,
            f"is three whole numbers and a fourth field, got {_first_line(file.head)!r}: if the fourth means "
            "true or false, name the layout (`layout` labelled, which takes the numbers as labels); if it is "
            "a time or a weight, name all columns (`layout` head,relation,tail,time), which leaves it out.",
        )


def _check_labels(files: Iterable[_File]) -> None:
    """Checks some lines of each file for ids that a single other line would turn into labels.

    Raises:
        ValueError: naming a first line of three numbers that are not ids, if most lines are ids.
    """
    samples = []
    for file in files:
        lines = LineBlock(1, file.head.text[:_LOOKED]).lines
        samples.append(lines.gather_every(max(1, len(lines) // _SAMPLE)))
    some = pl.concat(samples)
    if 2 * int(some.str.contains(f"^{_IDS}$").sum()) <= len(some):
        return
    named = ((file, _first_line(file.head)) for file in files)
    path, line = next((file.path, line) for file, line in named if not re.fullmatch(file.ids, line))
    said = f"{path}, line 1: is not three ids (whole numbers without a sign or a zero in front), got {line!r}"
    if re.fullmatch(_NUMBERS, line):
        raise ValueError(f"{said}, but most lines are; if all are labels, give `layout` labelled.")
    warnings.warn(f"{said}, but most lines are: all of them are read as labels.", UserWarning, stacklevel=2)


def _openke(folder: Path, progress: _Progress) -> _Tables:
    """Triples of a folder in the layout of OpenKE."""
    entities, relations = (
        read_labels(find_file(folder, f"{kind}2id.txt"), label_first=True, counted=True)
        for kind in ("entity", "relation")
    )
    splits, lines = {}, {}
    for name, file in _files(split_files(folder, "openke"), progress).items():
        path = file.path
        said, after = first_line(file.blocks)
        columns, expected = ("head", "tail", "relation"), "the ids of head, tail and relation (whole numbers)"
        splits[name] = _ids(path, after or (), entities, relations, columns, expected)
        require_count(path, said, len(splits[name]), some=name == "train")
        lines[name] = _Lines(path, 2)
    return _Tables(entities, relations, splits, lines, by_label=False)


def _rotate(folder: Path, progress: _Progress) -> _Tables:
    """Triples of a folder in the layout of RotatE."""
    maps = "entities.dict", "relations.dict"
    entities, relations = (read_labels(find_file(folder, name)) for name in maps)
    files = _files(split_files(folder, "rotate"), progress)
    line = _first_line(files["train"].head)
    head, relation, tail = [*line.split("\t"), "", ""][:3]
    known = head in entities and relation in relations and tail in entities
    if not known and re.fullmatch(_IDS, line) is not None:
        splits = {name: _ids(file.path, file.blocks, entities, relations) for name, file in files.items()}
        lines = {name: _Lines(file.path, 1) for name, file in files.items()}
        return _Tables(entities, relations, splits, lines, by_label=False)
    return _mapped(files, entities, relations, maps)


def _kb2e(folder: Path, progress: _Progress) -> _Tables:
    """Triples of a folder in the layout of KB2E."""
    maps = "entity2id.txt", "relation2id.txt"
    entities, relations = (
        read_labels(find_file(folder, name), label_first=True, counted=None) for name in maps
    )
    files = _files(split_files(folder, "kb2e"), progress, spaces=True)
    order = _order(files["train"], entities, relations)
    for name, file in files.items():
        names = (*order, *file.columns.names[len(order) :])
        files[name] = file._replace(columns=file.columns._replace(names=names))
    return _mapped(files, entities, relations, maps)


def _order(file: _File, entities: tuple[str, ...], relations: tuple[str, ...]) -> tuple[str, ...]:
    """Order of the columns, by the lines in which a column names a relation and another one an entity.

    Raises:
        ValueError: naming the file, if as many lines fit one order as the other.
    """
    lines = LineBlock(1, file.head.text[:_LOOKED]).lines
    fields = lines.gather_every(max(1, len(lines) // _SAMPLE)).str.split(file.columns.separator)
    known = [pl.Series(labels, dtype=pl.String) for labels in (relations, entities)]

    def fitting(*places: int) -> int:
        at = [fields.list.get(place, null_on_oob=True) for place in places]
        return int((at[0].is_in(known[0].implode()) & at[1].is_in(known[1].implode())).sum())

    usual, other = fitting(1, 2), fitting(2, 1)
    if usual == other and usual:
        raise ValueError(
            f"{file.path}: relation2id.txt must show which column holds the relations, but the second and "
            "the third fit equally; name the order, such as `layout` head,relation,tail."
        )
    return COLUMNS if usual >= other else ("head", "tail", "relation")


def _mapped(
    files: dict[str, _File], entities: tuple[str, ...], relations: tuple[str, ...], maps: tuple[str, str]
) -> _Tables:
    """Triples of labels whose ids are given; `maps` are the names of the files that give them."""
    kinds = pl.Enum(list(entities)), pl.Enum(list(relations))
    splits, lines = {}, {}
    for name, file in files.items():
        triples, more = _known_labels(file, *kinds, maps)
        _divide(name, file, triples, more, splits, lines)
    return _Tables(entities, relations, _in_order(splits), lines, by_label=True)


def _divide(
    name: str,
    file: _File,
    triples: _Ids,
    more: list[pl.DataFrame],
    splits: dict[str, _Ids],
    lines: dict[str, _Lines],
) -> None:
    """Adds the triples of a file to the splits, false ones to a split of their own, with a warning.

    `more` are the further columns of the blocks of the file: classes, or numbers of lines.
    """
    columns = pl.concat(more)
    after = columns[LINE].to_numpy() - file.first if LINE in columns.columns else None
    if CLASS not in columns.columns:
        _require_free(name, file.path, lines)
        splits[name], lines[name] = triples, _Lines(file.path, file.first, after)
        return
    truth = truth_of(columns[CLASS])
    if (row := first_row(truth.is_null())) is not None:
        message = f"the class of a triple must be {CLASSES_IN_WORDS}, got {columns[CLASS][row]!r}."
        raise line_error(file.path, file.first + row, message)
    true = truth.to_numpy()
    false = f"{name}{NEGATIVES}"
    order = ",".join(column for column in file.columns.names if column != CLASS)
    hint = "" if file.named else f" If it is a time or a weight, `layout` {order},time leaves it out."
    warnings.warn(
        f"{file.path}: the last column marks {int(true.sum()):,} triples as true and "
        f"{int((~true).sum()):,} as false; the false ones become the split {false}.{hint}",
        stacklevel=2,
    )
    _note_contradictions(file, triples, true)
    for split, rows in ((name, np.flatnonzero(true)), (false, np.flatnonzero(~true))):
        if split == false and not len(rows):
            continue
        _require_free(split, file.path, lines)
        splits[split], lines[split] = triples[rows], _Lines(file.path, file.first, rows)


def _note_contradictions(file: _File, triples: _Ids, true: np.ndarray) -> None:
    """Issues a warning, with the lines of one, about triples that a file calls both true and false."""
    keys = triple_keys(triples)
    both = np.intersect1d(keys[true], keys[~true])
    if not len(both):
        return
    rows = [np.flatnonzero(part & np.isin(keys, both)) for part in (true, ~true)]
    first = int(min(rows[0][0], rows[1][0]))
    other = int(np.flatnonzero((keys == keys[first]) & (true != true[first]))[0])
    warnings.warn(
        f"{file.path}, line {file.first + other}: the triple is {'true' if true[other] else 'false'} here, "
        f"and {'true' if true[first] else 'false'} on line {file.first + first}: {len(both):,} triples of "
        "the file are both.",
        stacklevel=3,
    )


def _require_free(split: str, path: Path, lines: dict[str, _Lines]) -> None:
    """ValueError if a split already has a file."""
    if split in lines:
        raise ValueError(
            f"{path}: holds triples of the split {split}, and {lines[split].path.name} does too."
        )


def _in_order(splits: dict[str, _Ids]) -> dict[str, _Ids]:
    """Splits with train, valid and test first."""
    first = [name for name in ("train", "valid", "test") if name in splits]
    return {name: splits[name] for name in (*first, *sorted(splits.keys() - set(first)))}


def _libkge(folder: Path, progress: _Progress) -> _Tables:
    """Triples of a folder in the layout of LibKGE."""
    if (folder / "dataset.yaml").is_file():
        entity_ids, relation_ids, paths, sizes = read_manifest(folder / "dataset.yaml")
    else:
        entity_ids, relation_ids = find_file(folder, "entity_ids.del"), find_file(folder, "relation_ids.del")
        paths, sizes = split_files(folder, "libkge"), {}
    entities, relations = (read_labels(path) for path in (entity_ids, relation_ids))
    files = _files(paths, progress)
    splits = {name: _ids(file.path, file.blocks, entities, relations) for name, file in files.items()}
    found = {entity_ids: len(entities), relation_ids: len(relations)}
    found |= {paths[name]: len(triples) for name, triples in splits.items()}
    for path, (size, line) in sizes.items():
        if size != found[path]:
            message = f"states {size} lines for {path.name}, which has {found[path]}."
            raise line_error(folder / "dataset.yaml", line, message)
    lines = {name: _Lines(path, 1) for name, path in paths.items()}
    return _Tables(entities, relations, splits, lines, by_label=False)


def _pykeen(folder: Path, progress: _Progress) -> _Tables:
    """Triples of a folder in the layout of PyKEEN."""
    factories = {name: read_factory(path) for name, path in factory_folders(folder).items()}
    progress.expect(factory.path for factory in factories.values())
    # Each factory has its own ids, which are joined by the labels.
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
    lines = {name: _Lines(factory.path, FIRST) for name, factory in factories.items()}
    return _Tables(entities, relations, splits, lines, by_label=True)


def _ids(
    path: Path,
    blocks: Iterable[LineBlock],
    entities: tuple[str, ...],
    relations: tuple[str, ...],
    columns: tuple[str, ...] = COLUMNS,
    expected: str = _THREE_IDS,
) -> _Ids:
    """Triples of a file of ids, which must be smaller than the numbers of labels."""
    sizes = dict.fromkeys(COLUMNS, len(entities)) | {"relation": len(relations)}
    parts = [_stacked(id_columns(path, block, columns, expected, sizes=sizes)) for block in blocks]
    return np.concatenate([np.empty((0, 3), np.int32), *parts])


def _known_labels(
    file: _File, entity: Any, relation: Any, maps: tuple[str, str]
) -> tuple[_Ids, list[pl.DataFrame]]:
    """Triples of a file of labels, by the enums `entity` and `relation`, and its further columns."""
    parts, more = [], []
    for first, frame in file.frames():
        codes = _codes(frame, entity, relation)
        for column in codes:
            if (row := first_row(column.is_null())) is not None:
                of_relation = column.name == "relation"
                kind, label = "relation" if of_relation else "entity", frame[column.name][row]
                message = f"the {kind} {label!r} is not in {maps[of_relation]}"
                order = tuple(name for name in file.columns.names if name in COLUMNS)
                usual = "labelled (or head,tail,relation, if that is the order)"
                layout = usual if order == COLUMNS else ",".join(order)
                raise line_error(file.path, first + row, f"{message}; `layout` {layout} needs no such file.")
        parts.append(_stacked(codes))
        more.append(frame.drop(COLUMNS))
    return np.concatenate(parts), more


def _sorted(files: dict[str, _File], progress: _Progress) -> _Tables:
    """Triples by labels in sorted order; each block has its own ids first, so that no file is split twice."""
    own: dict[str, list[tuple[pl.Series, pl.Series, _Ids]]] = {}
    more: dict[str, list[pl.DataFrame]] = {}
    for name, file in files.items():
        own[name], more[name] = [], []
        for _, frame in file.frames():
            entity, ends = _numbered(pl.concat([frame["head"], frame["tail"]]))
            relation, through = _numbered(frame["relation"])
            triples = np.stack([ends[: len(frame)], through, ends[len(frame) :]], axis=1)
            own[name].append((entity, relation, triples))
            more[name].append(frame.drop(COLUMNS))
    blocks = [block for parts in own.values() for block in parts]
    entities = pl.concat([block[0] for block in blocks]).unique().sort()
    relations = pl.concat([block[1] for block in blocks]).unique().sort()
    places = [pl.DataFrame({"label": labels}).with_row_index("id") for labels in (entities, relations)]
    splits, lines = {}, {}
    for name, file in files.items():
        parts = own.pop(name)
        for i, (entity, relation, triples) in enumerate(parts):
            numbers = (_ids_of(x, place) for x, place in zip((entity, relation), places, strict=True))
            parts[i] = (entity[:0], relation[:0], _renumbered([triples], *numbers))
        triples = np.concatenate([np.empty((0, 3), np.int32), *(triples for _, _, triples in parts)])
        if not len(triples):  # only comments
            raise ValueError(f"{file.path}: must hold a triple, got none.")
        _divide(name, file, triples, more.pop(name), splits, lines)
        progress.add(_NUMBERED, file.path)
    if any(file.rdf for file in files.values()):
        note_kinds(next(iter(files.values())).path.parent, entities)
    labels = tuple(entities.to_list()), tuple(relations.to_list())
    return _Tables(*labels, _in_order(splits), lines, by_label=True)


def _numbered(labels: pl.Series) -> tuple[pl.Series, np.ndarray]:
    """Distinct labels, and the number of each label among them, int32."""
    groups = labels.to_frame("label").with_row_index("row").group_by("label").agg("row")
    rows, numbers = groups["row"], np.empty(len(labels), np.int32)
    numbers[rows.explode().to_numpy()] = np.repeat(np.arange(len(groups), dtype=np.int32), rows.list.len())
    return groups["label"], numbers


def _ids_of(labels: pl.Series, place: pl.DataFrame) -> np.ndarray:
    """Id of each label, by a table of all labels."""
    frame = labels.to_frame("label").join(place, on="label", how="left", maintain_order="left")
    return frame["id"].to_numpy()


def _codes(frame: pl.DataFrame, entity: Any, relation: Any) -> pl.DataFrame:
    """Positions of labels in two enums; null for unknown labels."""
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
    """Triples of ids, with the labels 0, 1, 2, ... up to the largest id."""
    parts: dict[str, list[pl.DataFrame | _Ids]] = {}
    for name, file in files.items():
        mark = file.columns.separator if file.columns.quoted else None
        frames = (id_columns(file.path, block, COLUMNS, _THREE_IDS, separator=mark) for block in file.blocks)
        parts[name] = [frame if _too_large(frame) else _stacked(frame) for frame in frames]
    folder = next(iter(files.values())).path.parent
    every = [part for of in parts.values() for part in of]
    entities = _number_of_ids("entity", (0, 2), every, folder)
    relations = _number_of_ids("relation", (1,), every, folder)
    splits = {}
    for name, file in files.items():
        splits[name] = np.concatenate(parts.pop(name))
        progress.add(_NUMBERED, file.path)
    lines = {name: _Lines(file.path, 1) for name, file in files.items()}
    _note_first(splits.values(), folder)
    names = tuple(map(str, range(max(entities, relations))))
    return _Tables(names[:entities], names[:relations], splits, lines, by_label=False)


def _too_large(frame: pl.DataFrame) -> bool:
    """Whether some id does not fit into 32 bits, or even 64 bits (null)."""
    return any(column.null_count() or column.max() >= MOST_IDS for column in frame)  # type: ignore[operator]


def _number_of_ids(
    kind: str, columns: tuple[int, ...], parts: list[pl.DataFrame | _Ids], folder: Path
) -> int:
    """Largest id plus one; ValueError if fewer than half of the ids below it occur."""
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
            f"got {distinct} of them; if they are labels, give `layout` labelled."
        )
    return largest + 1


def _note_first(splits: Collection[_Ids], folder: Path) -> None:
    """Issues a UserWarning if no triple has the entity 0, or the relation 0, because ids may begin at 1."""
    lacking = {
        kind: not any((triples[:, columns] == 0).any() for triples in splits)
        for kind, columns in (("entity", [0, 2]), ("relation", [1]))
    }
    if not any(lacking.values()):
        return
    more = " and a candidate of every query" if lacking["entity"] else ""
    kinds = " and of no ".join(kind for kind, none in lacking.items() if none)
    warnings.warn(
        f"{folder}: 0 is the id of no {kinds} in a triple, but ids begin at 0, so it counts as one{more}; "
        "`layout` labelled counts only labels that occur.",
        UserWarning,
        stacklevel=2,
    )


def _without_duplicates(
    triples: _Ids, lines: _Lines, labels: tuple[tuple[str, ...], tuple[str, ...]] | None, duplicates: str
) -> _Ids:
    """Triples after the chosen treatment of duplicates."""
    if duplicates == "keep":
        return triples
    keys = triple_keys(triples)
    repeated = len(keys) - num_distinct(np.sort(keys))
    if not repeated:
        return triples
    if duplicates == "warn":
        warnings.warn(
            f"{lines.path}: {repeated} of {len(keys)} lines repeat an earlier triple; all are kept "
            "(`duplicates` drop keeps one of each).",
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
    message = f"the triple {' '.join(map(str, shown))!r} is already on line {lines.line(before)}."
    raise line_error(lines.path, lines.line(row), message)
