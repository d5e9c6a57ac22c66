"""Two graphs and their pairs in the layout of OpenEA, with labels in place of ids, and folds."""

import re
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from jaxtyping import Int32

from owkg.errors import ArgumentError
from owkg.files.lines import (
    COLUMNS,
    first_row,
    label_columns,
    line_error,
    read_blocks,
    read_lines,
    split_lines,
)
from owkg.kg import KnowledgeGraph

_FOLDS = re.compile(r"\d+_\d+fold")
_LINKS = r"(?P<left>[^\t]+)\t(?P<right>[^\t]+)"
_SIDES = ("left", "right")


def find(folder: Path, name: str) -> Path | None:
    """File `name` or `name.gz` of a folder; None if there is neither."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def openea(
    folder: Path, fold: int | None
) -> tuple[tuple[KnowledgeGraph, KnowledgeGraph], list[Path], list[Int32[np.ndarray, "_ 2"]]]:
    """Graphs of a folder of OpenEA, files of the training and test pairs (or of all pairs), and the pairs.

    Errors and warnings are as in `owkg.align.read_alignment`.
    """
    triples = [_labels(_file(folder, f"rel_triples_{number}")) for number in (1, 2)]
    links = _file(folder, "ent_links")
    every = _links(links)
    graphs = []
    for number, (frame, side) in enumerate(zip(triples, _SIDES, strict=True), 1):
        told = pl.concat([frame["head"], frame["tail"]]).unique()
        entities = pl.concat([told, every[side].rename("head")]).unique().sort()
        if alone := len(entities) - len(told):
            warnings.warn(
                f"{links}: {alone:,} entities are in no triple of rel_triples_{number}.", stacklevel=3
            )
        relations = frame["relation"].unique().sort()
        kinds = {"head": entities, "relation": relations, "tail": entities}
        ids = [_ids(frame[name], of) for name, of in kinds.items()]
        graph = KnowledgeGraph(tuple(entities), tuple(relations), {"train": np.stack(ids, axis=1)})
        graphs.append(graph)
    files = _fold(folder, fold)
    found = [every] if not files else [_links(path) for path in files]
    pairs = []
    for path, frame in zip(files or [links], found, strict=True):
        sides = []
        for side, graph in zip(_SIDES, graphs, strict=True):
            known = frame[side].is_in(pl.Series(graph.entities, dtype=pl.String).implode())
            if (row := first_row(~known)) is not None:
                message = f"the {side} entity {frame[side][row]!r} is not in ent_links or its triples."
                raise line_error(path, row + 1, message)
            sides.append(_ids(frame[side], pl.Series(graph.entities, dtype=pl.String)))
        pairs.append(np.stack(sides, axis=1))
    return (graphs[0], graphs[1]), files or [links], pairs


def _fold(folder: Path, fold: int | None) -> list[Path]:
    """Files of the training and the test pairs of a fold; empty if there are no folds."""
    held = sorted(path for path in folder.iterdir() if path.is_dir() and _FOLDS.fullmatch(path.name))
    if len(held) > 1:
        names = ", ".join(path.name for path in held)
        raise ValueError(f"{folder}: must hold one folder of folds, got {names}.")
    numbers = sorted(
        int(one.name) for of in held for one in of.iterdir() if one.name.isdecimal() and one.is_dir()
    )
    if not numbers:
        if fold is not None:
            raise ArgumentError("fold", f"must be left out for {folder}, which has no folds, got {fold}.")
        return []
    chosen = numbers[0] if fold is None else fold
    if chosen not in numbers:
        raise ArgumentError("fold", f"must be one of {', '.join(map(str, numbers))}, got {fold}.")
    place = held[0] / str(chosen)
    files = [_file(place, f"{name}_links") for name in ("train", "test")]
    said = f"{held[0]}: fold {chosen} of {len(numbers)} is used"
    if (valid := find(place, "valid_links")) is not None:
        said += f"; its {len(read_lines(valid)):,} validation pairs are neither trained on nor tested"
    warnings.warn(f"{said}.", stacklevel=4)
    return files


def _file(folder: Path, name: str) -> Path:
    """Path of a file of OpenEA; FileNotFoundError if it is missing."""
    found = find(folder, name)
    if found is None:
        raise FileNotFoundError(f"{folder}: must hold a file {name} or {name}.gz (layout of OpenEA).")
    return found


def _labels(path: Path) -> pl.DataFrame:
    """Triples of labels in a file."""
    return pl.concat([label_columns(path, block) for block in read_blocks(path)]).select(COLUMNS)


def _links(path: Path) -> pl.DataFrame:
    """Pairs of labels in a file."""
    return split_lines(path, read_lines(path), _LINKS, "a pair of labels, separated by a tab", separator="\t")


def _ids(labels: pl.Series, every: pl.Series) -> Int32[np.ndarray, "rows"]:
    """Ids of labels."""
    return labels.cast(pl.Enum(every)).to_physical().cast(pl.Int32).to_numpy()
