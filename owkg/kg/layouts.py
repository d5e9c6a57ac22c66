"""Layouts of folders: the files of a graph and their contents."""

import re
import warnings
from collections.abc import Iterable
from pathlib import Path

LAYOUTS = ("labelled", "integer", "openke", "kb2e", "rotate", "libkge", "pykeen", "ntriples")

# Names of splits; other files of a folder are ignored.
SPLIT_NAME = r"(?:train|valid|dev|test|missing)(?:[_-][\w-]*)?"
_GZ = r"(?:\.gz)?"
_TEXT_SPLIT = re.compile(rf"({SPLIT_NAME})\.(?:txt|tsv|sif){_GZ}")
# Tables of other programs have this ending too, so they count as splits only if the training set is one.
_CSV_SPLIT = re.compile(rf"({SPLIT_NAME})\.csv{_GZ}")
_OPENKE_SPLIT = re.compile(rf"({SPLIT_NAME})2id\.txt{_GZ}")
LIBKGE_SPLIT = re.compile(rf"({SPLIT_NAME})\.del{_GZ}")
_RDF_SPLIT = re.compile(rf"({SPLIT_NAME})\.nt{_GZ}")
# File of the triples of a PyKEEN factory, and folders of the factories in a data set of PyKEEN.
FACTORY_TRIPLES = "numeric_triples.tsv"
_FACTORIES = {"training": "train", "validation": "valid", "testing": "test"}
_SPLITS = {
    "labelled": _TEXT_SPLIT,
    "integer": _TEXT_SPLIT,
    "rotate": _TEXT_SPLIT,
    "kb2e": _TEXT_SPLIT,
    "openke": _OPENKE_SPLIT,
    "libkge": LIBKGE_SPLIT,
    "ntriples": _RDF_SPLIT,
}
# Layouts whose splits have names that no other layout uses.
_OWN_SPLITS = ("openke", "libkge", "ntriples")
_MAPS = ("entity2id.txt", "relation2id.txt")
# Files that identify each layout, in addition to its splits.
_MARKS = {
    "openke": _MAPS,
    "rotate": ("entities.dict", "relations.dict"),
    "libkge": ("dataset.yaml", "entity_ids.del", "relation_ids.del"),
    "pykeen": (FACTORY_TRIPLES, *(f"{folder}/{FACTORY_TRIPLES}" for folder in _FACTORIES)),
    "ntriples": (),
}
_LOOKED_FOR = (
    "train.txt, train.tsv or train.csv (labelled or integer triples), entities.dict and relations.dict "
    "(RotatE), entity2id.txt and train2id.txt (OpenKE) or train.txt (KB2E), dataset.yaml or entity_ids.del "
    "and train.del (LibKGE), numeric_triples.tsv or training/numeric_triples.tsv (PyKEEN), train.nt "
    "(N-Triples), each also with .gz"
)


def _files_in(folder: Path) -> list[str]:
    """Names of the files in `folder`, sorted.

    Raises:
        ValueError: if it is not a folder, or holds a name of a file of a graph that is not a file.
    """
    if not folder.is_dir():
        what = "there is no such folder"
        if folder.exists():
            what = (
                "this is a file; give its folder, which holds a file for each split, such as train.txt and "
                "test.txt (owkg sample divides a single file of facts)"
            )
        raise ValueError(f"{folder}: must be a folder of a knowledge graph, but {what}.")
    paths = sorted(folder.iterdir())
    for path in paths:
        _require_file(path)
    return [path.name for path in paths if path.is_file()]


def _require_file(path: Path) -> None:
    """ValueError for a name of a split or of a file of a layout that is not a file."""
    name = path.name.removesuffix(".gz")
    a_file = any(form.fullmatch(path.name) for form in _SPLITS.values()) or any(
        name == mark for marks in _MARKS.values() for mark in marks
    )
    link = path.is_symlink() and not path.exists()
    if (a_file and not path.is_file()) or (name in _FACTORIES and link):
        what = f"is a link to {path.readlink()}, which does not exist" if link else "is not"
        what = "is a folder" if path.is_dir() else what
        raise ValueError(f"{path}: must be a file, but {what}.")


def _nested(folder: Path) -> list[str]:
    """Names of the files of triples in the folders of a PyKEEN data set."""
    names = [f"{name}/{FACTORY_TRIPLES}{end}" for name in _FACTORIES for end in ("", ".gz")]
    for name in names:
        if (folder / name).is_symlink() or (folder / name).exists():
            _require_file(folder / name)
    return [name for name in names if (folder / name).is_file()]


def factory_folders(folder: Path) -> dict[str, Path]:
    """Folders of PyKEEN's triples factories by split: the folders of a data set, or `folder` as "train".

    Raises:
        ValueError: if `folder` is both a factory and a data set, or a data set without a training factory.
    """
    own = [name for name in _files_in(folder) if name.removesuffix(".gz") == FACTORY_TRIPLES]
    found = {split: folder / name for name, split in _FACTORIES.items() if (folder / name).is_dir()}
    if own and _nested(folder):
        both = f"{own[0]} and {', '.join(_nested(folder))}"
        raise ValueError(f"{folder}: must be one triples factory or hold several, got {both}.")
    return {"train": folder} if own else ordered_splits(found, folder, "pykeen")


def _marked_layouts(names: Iterable[str]) -> dict[str, list[str]]:
    """Layouts that have files of their own among `names`, with these files."""
    plain = {name.removesuffix(".gz"): name for name in names}
    marks = {
        layout: [plain[mark] for mark in known if mark in plain]
        + [name for name in plain.values() if layout in _OWN_SPLITS and _SPLITS[layout].fullmatch(name)]
        for layout, known in _MARKS.items()
    }
    # Maps together with files of labels belong to KB2E.
    if marks["openke"] and not any(_OPENKE_SPLIT.fullmatch(name) for name in plain.values()):
        whole = _is_whole("kb2e", plain.values())
        marks["kb2e" if whole else "openke"] = marks.pop("openke")
    return {layout: found for layout, found in marks.items() if found}


def find_layout(folder: Path) -> str:
    """Layout of `folder` by the names of its files; "labelled" may also mean "integer".

    If there are files of several layouts, it is the complete one, and a warning names the files that are left
    out.

    Raises:
        ValueError: if there are no files of any layout, or complete sets of files of several.
    """
    names = _files_in(folder) + _nested(folder)
    marked = _marked_layouts(names)
    has_text = "train" in _found_splits(names, "labelled")
    whole = {layout: found for layout, found in marked.items() if _is_whole(layout, names)}
    if has_text and whole.keys() == {"ntriples"}:
        whole["labelled"] = _found_splits(names, "labelled")["train"]
    if len(whole) > 1 or (len(marked) > 1 and not whole and not has_text):
        shown = "; ".join(f"{layout}: {', '.join(found)}" for layout, found in (whole or marked).items())
        raise ValueError(
            f"{folder}: must be of one layout, got files of several ({shown}); name one with `layout`."
        )
    if whole or (marked and has_text):
        layout = next(iter(whole), "labelled")
        left = [name for other, found in marked.items() if other not in (layout, *whole) for name in found]
        left = [name for name in left if name not in whole.get(layout, ())]
        said = f"{folder}: is read as {layout}, without"
        if left:
            left = sorted(set(left))
            text = f"{said} {', '.join(left)}, because the other files of their layout are missing."
            if {name.removesuffix(".gz") for name in left} & set(_MAPS):
                text += " For the columns head, tail, relation of KB2E, give `layout` head,tail,relation."
            warnings.warn(text, stacklevel=2)
        elif texts := _texts_beside(layout, names):  # LibKGE and PyKEEN leave their sources there
            hint = "; `layout` reads them (labelled)" if has_text else ""
            warnings.warn(f"{said} {', '.join(texts)}{hint}.", stacklevel=2)
        return layout
    if marked:
        return next(iter(marked))
    if not _found_splits(names, "labelled"):
        found = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "an empty folder"
        if (folder / "training_triples").is_dir():
            found += "; training_triples in it is the triples factory that PyKEEN saved: read that folder"
        raise ValueError(f"{folder}: must hold a knowledge graph: {_LOOKED_FOR}; got {found}.")
    return "labelled"


def _texts_beside(layout: str, names: Iterable[str]) -> list[str]:
    """Names of files of labelled splits that a layout does not read."""
    own = _SPLITS.get(layout)
    if own is _TEXT_SPLIT:
        return []
    texts = [name for found in _found_splits(names, "labelled").values() for name in found]
    return [name for name in texts if own is None or not own.fullmatch(name)]


def _is_whole(layout: str, names: Iterable[str]) -> bool:
    """Whether the files that identify a layout and its training set are all there."""
    plain = {name.removesuffix(".gz") for name in names}
    if layout == "pykeen":
        return bool(plain & set(_MARKS[layout]))
    if layout == "libkge" and "dataset.yaml" in plain:
        return True
    needed = set(_MAPS if layout == "kb2e" else _MARKS[layout]) - {"dataset.yaml"}
    return needed <= plain and "train" in _found_splits(names, layout)


def _found_splits(names: Iterable[str], layout: str) -> dict[str, list[str]]:
    """Names of the files of each split; .csv counts if no other file is the training set."""
    found: dict[str, list[str]] = {}
    tables: dict[str, list[str]] = {}
    for name in names:
        for form, into in ((_SPLITS[layout], found), (_CSV_SPLIT, tables)):
            if match := form.fullmatch(name):
                into.setdefault("valid" if match[1] == "dev" else match[1], []).append(name)
    if layout in ("labelled", "integer") and "train" in tables and "train" not in found:
        found |= {split: sorted(found.get(split, []) + more) for split, more in tables.items()}
    return found


def find_file(folder: Path, name: str) -> Path:
    """File `name` or `name.gz` of `folder`; ValueError if there is neither, or both."""
    there = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if not there:
        raise ValueError(f"{folder}: must hold {name}, but there is no such file.")
    if len(there) > 1:
        raise ValueError(f"{folder}: must hold one of {name} and {name}.gz, got both.")
    return there[0]


def split_files(folder: Path, layout: str) -> dict[str, Path]:
    """Files of the splits by name, with train, valid and test first. A split "dev" is "valid".

    Raises:
        ValueError: if two files are of one split, or there is no split "train".
    """
    found: dict[str, Path] = {}
    for split, names in _found_splits(_files_in(folder), layout).items():
        if len(names) > 1:
            both = " and ".join(names[:2])
            raise ValueError(f"{folder}: must hold one file of the split {split}, got {both}.")
        found[split] = folder / names[0]
    return ordered_splits(found, folder, layout)


def ordered_splits(found: dict[str, Path], folder: Path, layout: str) -> dict[str, Path]:
    """`found` with train, valid and test first; ValueError if train is missing."""
    if "train" not in found:
        got = ", ".join(path.name for path in found.values()) or "no split that can be read"
        raise ValueError(f"{folder}: must hold the split train (layout {layout}), got {got}.")
    first = [name for name in ("train", "valid", "test") if name in found]
    return {name: found[name] for name in first + sorted(found.keys() - set(first))}


def graph_files(folder: Path) -> set[str]:
    """Names of the files in `folder` that reading a graph from it would use."""
    names = _files_in(folder) + _nested(folder) if folder.exists() else []
    marks = {name for found in _marked_layouts(names).values() for name in found}
    return marks | {name for of in _found_splits(names, "labelled").values() for name in of}


def is_part_of_graph(path: Path) -> bool:
    """Whether reading the graph in its folder would use a file of this name."""
    folder = path.parent
    there = {one.name for one in folder.iterdir() if one.is_file()} if folder.is_dir() else set()
    if not _marked_layouts(there) and "train" not in _found_splits(there, "labelled"):
        return False
    names = there | {path.name}
    marked = {name for found in _marked_layouts(names).values() for name in found}
    return path.name in marked.union(*_found_splits(names, "labelled").values())
