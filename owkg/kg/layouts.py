"""Layouts of a folder: which files of it hold what."""

import re
from collections.abc import Iterable
from pathlib import Path

LAYOUTS = ("labelled", "integer", "openke", "rotate", "libkge", "pykeen")

# Splits that are read; other files of a folder are none of ours.
SPLIT_NAME = r"(?:train|valid|dev|test|missing)(?:[_-][\w-]*)?"
_GZ = r"(?:\.gz)?"
_TEXT_SPLIT = re.compile(rf"({SPLIT_NAME})\.(?:txt|tsv){_GZ}")
_OPENKE_SPLIT = re.compile(rf"({SPLIT_NAME})2id\.txt{_GZ}")
_LIBKGE_SPLIT = re.compile(rf"({SPLIT_NAME})\.del{_GZ}")
# The triples of a PyKEEN factory, and the folders of factories that a data set of PyKEEN holds.
FACTORY_TRIPLES = "numeric_triples.tsv"
_FACTORIES = {"training": "train", "validation": "valid", "testing": "test"}
_SPLITS = {
    "labelled": _TEXT_SPLIT,
    "integer": _TEXT_SPLIT,
    "rotate": _TEXT_SPLIT,
    "openke": _OPENKE_SPLIT,
    "libkge": _LIBKGE_SPLIT,
}
# Layouts whose splits have names that no other layout gives.
_OWN_SPLITS = ("openke", "libkge")
# What each layout is known by, beside its splits.
_MARKS = {
    "openke": ("entity2id.txt", "relation2id.txt"),
    "rotate": ("entities.dict", "relations.dict"),
    "libkge": ("dataset.yaml", "entity_ids.del", "relation_ids.del"),
    "pykeen": (FACTORY_TRIPLES, *(f"{folder}/{FACTORY_TRIPLES}" for folder in _FACTORIES)),
}
_LOOKED_FOR = (
    "train.txt or train.tsv (labelled or integer triples), entities.dict and relations.dict (RotatE), "
    "entity2id.txt and train2id.txt (OpenKE), dataset.yaml or entity_ids.del and train.del (LibKGE), "
    "numeric_triples.tsv or training/numeric_triples.tsv (PyKEEN), each also with .gz"
)


def _files_in(folder: Path) -> list[str]:
    """The names of the files in `folder`, sorted.

    Raises:
        ValueError: if it is no folder, or holds what has the name of a file of a graph and is none.
    """
    if not folder.is_dir():
        what = "this is a file; give its folder" if folder.exists() else "there is no such folder"
        raise ValueError(f"{folder}: must be a folder of a knowledge graph, and {what}.")
    paths = sorted(folder.iterdir())
    for path in paths:
        _require_file(path)
    return [path.name for path in paths if path.is_file()]


def _require_file(path: Path) -> None:
    """Raises ValueError for a split, or what a layout is known by, that is there and is no file."""
    name = path.name.removesuffix(".gz")
    a_file = any(form.fullmatch(path.name) for form in _SPLITS.values()) or any(
        name == mark for marks in _MARKS.values() for mark in marks
    )
    link = path.is_symlink() and not path.exists()
    if (a_file and not path.is_file()) or (name in _FACTORIES and link):
        what = f"is a link to {path.readlink()}, which is not there" if link else "is none"
        what = "is a folder" if path.is_dir() else what
        raise ValueError(f"{path}: must be a file, and {what}.")


def _nested(folder: Path) -> list[str]:
    """The names of the files of triples in the folders of a PyKEEN data set."""
    names = [f"{name}/{FACTORY_TRIPLES}{end}" for name in _FACTORIES for end in ("", ".gz")]
    for name in names:
        if (folder / name).is_symlink() or (folder / name).exists():
            _require_file(folder / name)
    return [name for name in names if (folder / name).is_file()]


def factory_folders(folder: Path) -> dict[str, Path]:
    """The folders of PyKEEN's triples factories by split: those of a data set, or `folder` as "train".

    Raises:
        ValueError: if `folder` is a factory and a data set, or a data set without a training factory.
    """
    own = [name for name in _files_in(folder) if name.removesuffix(".gz") == FACTORY_TRIPLES]
    found = {split: folder / name for name, split in _FACTORIES.items() if (folder / name).is_dir()}
    if own and _nested(folder):
        both = f"{own[0]} and {', '.join(_nested(folder))}"
        raise ValueError(f"{folder}: must be one triples factory or hold several, got {both}.")
    return {"train": folder} if own else ordered_splits(found, folder, "pykeen")


def _marked_layouts(names: Iterable[str]) -> dict[str, list[str]]:
    """The layouts with files of their own among `names`, and these files."""
    plain = {name.removesuffix(".gz"): name for name in names}
    marks = {
        layout: [plain[mark] for mark in known if mark in plain]
        + [name for name in plain.values() if layout in _OWN_SPLITS and _SPLITS[layout].fullmatch(name)]
        for layout, known in _MARKS.items()
    }
    return {layout: found for layout, found in marks.items() if found}


def find_layout(folder: Path) -> str:
    """The layout of `folder` by the names of its files: "labelled" stands for "integer" too.

    Raises:
        ValueError: if there are no files of any layout, or of more than one.
    """
    names = _files_in(folder)
    marked = _marked_layouts(names + _nested(folder))
    if len(marked) > 1:
        shown = "; ".join(f"{layout}: {', '.join(found)}" for layout, found in marked.items())
        raise ValueError(f"{folder}: must be of one layout, got files of several ({shown}); name the layout.")
    if marked:
        return next(iter(marked))
    if not any(_TEXT_SPLIT.fullmatch(name) for name in names):
        found = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "") if names else "an empty folder"
        if (folder / "training_triples").is_dir():
            found += "; training_triples in it is the triples factory that PyKEEN saved: read that folder"
        raise ValueError(f"{folder}: must hold a knowledge graph: {_LOOKED_FOR}; got {found}.")
    return "labelled"


def find_file(folder: Path, name: str) -> Path:
    """The file `name` or `name.gz` of `folder`; ValueError if there is neither, or both."""
    there = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if not there:
        raise ValueError(f"{folder}: must hold {name}, and there is no such file.")
    if len(there) > 1:
        raise ValueError(f"{folder}: must hold one of {name} and {name}.gz, got both.")
    return there[0]


def split_files(folder: Path, layout: str) -> dict[str, Path]:
    """The files of the splits by their name: train, valid and test first. A split "dev" is "valid".

    Raises:
        ValueError: if two files are of one split, or none is of "train".
    """
    found: dict[str, Path] = {}
    names = _files_in(folder)
    for name in names:
        if match := _SPLITS[layout].fullmatch(name):
            split = "valid" if match[1] == "dev" else match[1]
            if split in found:
                both = f"{found[split].name} and {name}"
                raise ValueError(f"{folder}: must hold one file of the split {split}, got {both}.")
            found[split] = folder / name
    return ordered_splits(found, folder, layout)


def ordered_splits(found: dict[str, Path], folder: Path, layout: str) -> dict[str, Path]:
    """`found` with train, valid and test first; ValueError if train is not there."""
    if "train" not in found:
        got = ", ".join(path.name for path in found.values()) or "no split that can be read"
        raise ValueError(f"{folder}: must hold the split train (layout {layout}), got {got}.")
    first = [name for name in ("train", "valid", "test") if name in found]
    return {name: found[name] for name in first + sorted(found.keys() - set(first))}


def graph_files(folder: Path) -> set[str]:
    """The names of the files in `folder` that would be looked at when a graph is read from there."""
    names = _files_in(folder) + _nested(folder) if folder.exists() else []
    marks = {name for found in _marked_layouts(names).values() for name in found}
    return marks | {name for name in names if _TEXT_SPLIT.fullmatch(name)}
