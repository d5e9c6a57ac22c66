"""Two knowledge graphs and the pairs of equivalent entities."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Int32

from owkg import checks
from owkg.align.openea import find, openea
from owkg.checks import StrPath
from owkg.errors import ArgumentError
from owkg.files.lines import WHOLE, first_row, line_error, read_lines, require_distinct, split_lines
from owkg.kg import KnowledgeGraph

_SIDES = ("left", "right")
_ENTITY = rf"(?P<id>{WHOLE})\t(?P<label>[^\t]+)"
_PAIR = rf"[ \t]*(?P<left>{WHOLE})[ \t]+(?P<right>{WHOLE})[ \t]*"
_TRIPLE = rf"[ \t]*(?P<head>{WHOLE})[ \t]+(?P<relation>{WHOLE})[ \t]+(?P<tail>{WHOLE})[ \t]*"


class Alignment(NamedTuple):
    """Two knowledge graphs, and the pairs of their entities that are the same.

    Attributes:
        left, right: knowledge graphs, with their triples in the split train.
        train, test: pairs of ids of the left and of the right graph, int [pairs, 2].
    """

    left: KnowledgeGraph
    right: KnowledgeGraph
    train: Int32[np.ndarray, "train_pairs 2"]
    test: Int32[np.ndarray, "test_pairs 2"]

    @property
    def one_to_one(self) -> bool:
        """Whether no entity is in two pairs."""
        return not any(_repeated(ids).any() for ids in np.concatenate([self.train, self.test]).T)


def read_alignment(
    folder: StrPath,
    *,
    train_share: float | None = None,
    seed: int = 0,
    fold: int | None = None,
    many_to_many: bool = False,
) -> Alignment:
    """Two graphs and their reference pairs from a folder in the layout of DBP15k or of OpenEA.

    DBP15k: `ent_ids_1` and `ent_ids_2` (id, tab, label), `triples_1` and `triples_2` (ids of head, relation,
    tail), `ref_ent_ids` (pairs of ids). If there is a file `sup_ent_ids`, it holds the training pairs and
    `ref_ent_ids` holds the test pairs; otherwise the pairs are split by `split_pairs`.

    OpenEA: `rel_triples_1` and `rel_triples_2` (labels of head, relation, tail, separated by tabs),
    `ent_links` (pairs of labels), and a folder of folds such as `721_5fold`, in which `1/train_links` and
    `1/test_links` hold the training and the test pairs of fold 1; the pairs of `valid_links` are in neither.
    Without folds, the pairs of `ent_links` are split by `split_pairs`. Triples of attributes are not read.
    Ids follow the labels, sorted by code point.

    All files may be packed (`.gz`).

    Args:
        folder: folder of the files.
        train_share, seed: arguments of `split_pairs`. Default: a share of 0.3 and seed 0. If the training
            pairs are in a file, the share must be None, and the seed has no effect.
        fold: number of the fold of OpenEA, from 1. Default: the first, if there are folds.
        many_to_many: whether entities may be in several pairs. Default False.

    Raises:
        ValueError: beginning with the file and the line, if a line is malformed, a triple or a pair names an
            entity that its graph lacks, a pair is repeated within or between files, or an entity is in two
            pairs and `many_to_many` is False. Naming `fold`, if there is no such fold; or `train_share`, if
            the training pairs are in a file.
        FileNotFoundError: if a file is missing.

    Warns:
        UserWarning: about the chosen fold, the pairs that are left out, and entities of pairs without a
        triple (OpenEA).
    """
    folder = checks.path("folder", folder)
    checks.flag("many_to_many", many_to_many)
    share = _share_checked(0.3 if train_share is None else train_share)
    if find(folder, "ent_ids_1") is None and find(folder, "rel_triples_1") is not None:
        if train_share is not None and fold is not None:
            raise ArgumentError(
                "train_share", "has no effect with `fold`, whose training pairs are in a file."
            )
        graphs, files, frames = openea(folder, fold)
    elif fold is not None:
        raise ArgumentError("fold", f"has no effect on {folder}, which is not in the layout of OpenEA.")
    else:
        (left_ids, left), (right_ids, right) = (_graph(folder, number) for number in (1, 2))
        graphs, files = (left, right), [_file(folder, "ref_ent_ids")]
        if (supervised := find(folder, "sup_ent_ids")) is not None:
            files = [supervised, *files]
        frames = [_pairs(path, (left_ids, right_ids)) for path in files]
    if len(files) > 1 and train_share is not None:
        raise ArgumentError(
            "train_share", f"has no effect on {folder}, whose training pairs are in {files[0]}."
        )
    places = [(path, row + 1) for path, frame in zip(files, frames, strict=True) for row in range(len(frame))]
    pairs = np.concatenate(frames)
    _check_pairs(pairs, places, graphs, many_to_many)
    if len(files) == 2:
        return Alignment(*graphs, pairs[: len(frames[0])], pairs[len(frames[0]) :])
    return split_pairs(Alignment(*graphs, pairs[:0], pairs), share, seed)


def split_pairs(alignment: Alignment, train_share: float, seed: int) -> Alignment:
    """Alignment with a random share of all pairs, at most all except one, for training.

    Shares with one seed are nested: a larger share has all training pairs of a smaller share.

    Args:
        alignment: graphs and pairs, however they were split before.
        train_share: share of the training pairs, in [0, 1).
        seed: whole number, at least 0.

    Raises:
        ValueError: if the share is outside [0, 1), or the seed is not a whole number of at least 0.
    """
    share = _share_checked(train_share)
    pairs = np.concatenate([alignment.train, alignment.test])
    pairs = pairs[np.lexsort(pairs.T)]  # independent of an earlier split
    order = np.random.default_rng(checks.seed("seed", seed)).permutation(len(pairs))
    count = min(round(share * len(pairs)), len(pairs) - 1)
    return alignment._replace(train=pairs[order[:count]], test=pairs[order[count:]])


def _share_checked(share: float) -> float:
    """Share in [0, 1)."""
    return checks.real_number("train_share", share, 0, 1, closed="low")


def _file(folder: Path, name: str) -> Path:
    """Path of a file of DBP15k; FileNotFoundError if it is missing."""
    found = find(folder, name)
    if found is None:
        raise FileNotFoundError(
            f"{folder}: must hold a file {name} or {name}.gz (layout of DBP15k), or rel_triples_1 (OpenEA)."
        )
    return found


def _graph(folder: Path, number: int) -> tuple[pl.Series, KnowledgeGraph]:
    """Ids of the entities in the files, and the graph."""
    path = _file(folder, f"ent_ids_{number}")
    entities = split_lines(path, read_lines(path), _ENTITY, "an id, a tab, and a label", separator="\t")
    for column in ("id", "label"):
        require_distinct(path, entities[column], column, first=1)
    path = _file(folder, f"triples_{number}")
    expected = "the ids of head, relation and tail (whole numbers)"
    triples = split_lines(path, read_lines(path), _TRIPLE, expected, separator=None)
    relations = triples["relation"].unique().sort()
    columns = [
        _numbered(path, triples[column], of)
        for column, of in (("head", entities["id"]), ("relation", relations), ("tail", entities["id"]))
    ]
    graph = KnowledgeGraph(
        tuple(entities["label"].to_list()), tuple(relations.to_list()), {"train": np.stack(columns, axis=1)}
    )
    return entities["id"], graph


def _numbered(path: Path, column: pl.Series, ids: pl.Series) -> Int32[np.ndarray, "rows"]:
    """Index of each id; ValueError naming the line of an unknown id."""
    found = column.cast(pl.Enum(ids), strict=False).to_physical()
    if (row := first_row(found.is_null())) is not None:
        message = f"the {column.name} {column[row]} is not an entity of its graph (ent_ids)."
        raise line_error(path, row + 1, message)
    return found.cast(pl.Int32).to_numpy()


def _pairs(path: Path, ids: tuple[pl.Series, ...]) -> Int32[np.ndarray, "pairs 2"]:
    """Pairs of a file of ids."""
    lines = split_lines(path, read_lines(path), _PAIR, "a pair of ids (whole numbers)", separator=None)
    return np.stack([_numbered(path, lines[side], of) for side, of in zip(_SIDES, ids, strict=True)], axis=1)


def _check_pairs(
    pairs: np.ndarray, places: list[tuple[Path, int]], graphs: tuple[KnowledgeGraph, ...], many_to_many: bool
) -> None:
    """ValueError for repeated pairs, and for entities in several pairs unless they are allowed."""
    again = _repeated(pairs[:, 0].astype(np.int64) * graphs[1].num_entities + pairs[:, 1])
    if again.any():
        row = int(np.argmax(again))
        before = int(np.argmax((pairs == pairs[row]).all(axis=1)))
        path, line = places[before]
        raise line_error(*places[row], f"the pair is already in {path.name}, line {line}.")
    for side, ids, graph in zip(_SIDES, pairs.T, graphs, strict=True):
        again = _repeated(ids)
        if again.any() and not many_to_many:
            row = int(np.argmax(again))
            path, line = places[int(np.argmax(ids == ids[row]))]
            raise line_error(
                *places[row],
                f"the {side} entity {graph.entities[ids[row]]!r} is already in a pair in {path.name}, line "
                f"{line}; {int(again.sum()):,} pairs repeat an entity, which `many_to_many` allows.",
            )


def _repeated(ids: np.ndarray) -> np.ndarray:
    """Whether each value has occurred before."""
    first = np.zeros(len(ids), bool)
    first[np.unique(ids, return_index=True)[1]] = True
    return ~first
