"""Rank tables from score matrices in .npz files."""

import math
import zipfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from owkg.checks import StrPath
from owkg.errors import ArgumentError, naming
from owkg.files.storage import damage_named, require_npz_bounded
from owkg.kg import KnowledgeGraph
from owkg.kg.seen import seen_part
from owkg.kg.triples import triples_checked
from owkg.ranks import sampled
from owkg.ranks.build import (
    FILTER_SPLITS,
    answer_ids,
    answer_sides,
    default_filters,
    described,
    filter_facts,
    own_scores,
    query_names,
    rank_table,
    require_facts,
    score_checked,
    split_of,
)
from owkg.ranks.scores import ranks_from_scores
from owkg.ranks.table import RANKS, SIDES, TRIPLE, validated
from owkg.ranks.unseen import about_unseen, is_seen, last_ranks, unseen_checked

_ARRAYS = ("scores", "triples", "side")
_LABELS = ("entity_labels", "relation_labels")
_ADD = "add these arrays, labels in the order of the ids."
# First bytes of an array in a file.
_MAGIC = b"\x93NUMPY"


def ranks_from_matrix(
    path: StrPath,
    graph: KnowledgeGraph | None = None,
    *,
    filter_splits: Sequence[str] | None = None,
    tolerance: float = 0.0,
    model: str | None = None,
    score: bool = False,
    unseen: str = "error",
    sort: str | None = None,
) -> pl.DataFrame:
    """Rank table of the scores in a .npz file.

    The file holds `scores`, floats [n, entities], scores of all entities as the answer (larger is better);
    `triples`, integers [n, 3], head, relation and tail; `side`, n strings "head" or "tail", or one for all;
    and optionally `entity_labels` [entities] and `relation_labels`.

    Args:
        path: path of the file. It is never unpickled.
        graph: knowledge graph. Labels in the file are matched with its labels in any order. Without labels in
            the file, columns of scores and ids of triples are in the order of the graph (`graph.entities`,
            `graph.relations`). Default: none.
        filter_splits: splits of the graph whose other known answers are removed from the candidates; empty,
            as is required without a graph, for raw ranks. Default: those of train, valid and test that the
            graph has, and the smallest split that holds all the triples.
        tolerance: largest absolute difference from the answer's score that counts as a tie. Default 0.
        model: entry of the column `model`. Default: no such column.
        score: whether to add the column score, with the score of each answer, which orders the answers to one
            query. Requires a tolerance of 0. Default False.
        unseen: treatment of entities of the graph that have no column in the file: "error" (default); "drop":
            ranks are among the entities of the file; "last": also adds the triples of the same split that
            have such an entity, each with the last rank (`owkg.evaluation.ranks`). Needs labels.
        sort: kind of sort whose index is the rank, as in `ranks_from_scores`. Default: tie-aware ranks.

    Returns:
        Rank table, one row for each triple, in their order, with labels if graph or file has them. The column
        `filtered` is as in `rank_table`, and false without a graph.

    Raises:
        ValueError: naming the file, if it is not such a file, does not fit the graph, a score is NaN, or the
            file lacks labels and triples are in no split of the graph.
        OSError: if the file cannot be opened.
    """
    options = {
        "filter_splits": filter_splits,
        "tolerance": tolerance,
        "score": score,
        "unseen": unseen,
        "sort": sort,
    }
    table, _ = converted_matrix(path, graph, **options)
    return table if model is None else table.with_columns(model=pl.lit(model))


def converted_matrix(
    path: StrPath,
    graph: KnowledgeGraph | None,
    *,
    filter_splits: Sequence[str] | None,
    tolerance: float,
    score: bool,
    unseen: str,
    sort: str | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Rank table from `ranks_from_matrix`, and how it was made: split, filter, unseen."""
    path = Path(path)
    unseen_checked(unseen)
    arrays = _arrays(path)
    scores, triples, side = (arrays[name] for name in _ARRAYS)
    if scores.ndim != 2 or not scores.size:
        raise ValueError(f"{path}: scores must be of shape [n, entities], got shape {scores.shape}.")
    if len(triples) != len(scores):
        raise ValueError(f"{path}: triples must be {len(scores)}, one per row of scores, got {len(triples)}.")
    entities, relations = _labels(path, arrays, scores)
    if graph is None and (filter_splits is None or filter_splits):
        asked = FILTER_SPLITS if filter_splits is None else filter_splits
        raise ArgumentError(
            "kg",
            f"must be given for the splits that filter, {', '.join(asked)}; `filter_splits` none: raw ranks.",
        )
    about: dict[str, Any] = {"split": None, "filter": []}
    # Errors about arrays of the file must not name arguments.
    with _of_file(path):
        if graph is None:
            table = _raw(scores, triples, side, entities, relations, tolerance, score, sort)
        else:
            seen = graph
            if unseen != "error" and entities is not None and set(graph.entities) - set(entities):
                seen = seen_part(graph, entities, graph.relations)
            own, triples, split = _placed(seen, scores, triples, entities, relations)
            filters = default_filters(own, split) if filter_splits is None else list(filter_splits)
            about = {"split": split, "filter": filters}
            table = rank_table(
                own,
                scores,
                triples,
                side,
                filter_splits=filters,
                tolerance=tolerance,
                popularity="train" in own.splits,
                score=score,
                sort=sort,
            )
            if seen is not graph:
                table, about["unseen"] = _with_unseen(graph, seen, table, about, unseen)
    return table, about


def _of_file(path: Path) -> AbstractContextManager[None]:
    """Context in which errors name arrays and begin with the file."""
    return naming({name: name for name in (*_ARRAYS, "target")}, f"{path}: ")


def _placed(
    graph: KnowledgeGraph,
    scores: np.ndarray,
    triples: np.ndarray,
    entities: tuple[str, ...] | None,
    relations: tuple[str, ...] | None,
) -> tuple[KnowledgeGraph, np.ndarray, str | None]:
    """Graph with the ids of the file, the triples, and the split that holds them."""
    own = _in_order(graph, entities, relations, scores.shape[1])
    triples = triples_checked(triples, own.num_entities, own.num_relations)
    split = split_of(own, triples)
    if split is None and (entities is None or relations is None):
        lacking = [name for name, of in zip(_LABELS, (entities, relations), strict=True) if of is None]
        arrays = " and ".join(lacking)
        require_facts(own, triples, hint=f"Without {arrays}, ids must be those of the graph; {_ADD}")
    return own, triples, split


def placed_scores(path: Path, graph: KnowledgeGraph) -> tuple[KnowledgeGraph, np.ndarray, np.ndarray, Any]:
    """Graph with the ids of a .npz file, and the scores, triples and sides of the file.

    Raises:
        ValueError: naming the file, if it is not such a file or does not fit the graph.
        OSError: if the file cannot be opened.
    """
    arrays = _arrays(path)
    scores, triples, side = (arrays[name] for name in _ARRAYS)
    if scores.ndim != 2 or not scores.size or len(triples) != len(scores):
        raise ValueError(f"{path}: scores must be [triples, entities], got shape {scores.shape}.")
    entities, relations = _labels(path, arrays, scores)
    if entities is not None:
        graph = seen_part(graph, entities, graph.relations) if set(graph.entities) - set(entities) else graph
    with _of_file(path):
        own, triples, _ = _placed(graph, scores, triples, entities, relations)
    return own, scores, triples, side


def evaluator_arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a .npz file for the evaluators of OGB and TGB; errors as in `placed_scores`."""
    try:
        return _arrays(path, (), sampled.ARRAYS)
    except ValueError as error:
        hint = "; different numbers of negatives need a flat y_pred_neg, and the numbers in num_neg"
        raise ValueError(
            str(error).rstrip(".") + (hint if "Object arrays" in str(error) else "") + "."
        ) from None


def npz_names(path: Path) -> list[str]:
    """Names of the arrays in a .npz file; empty if it is not an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]
    except (zipfile.BadZipFile, ValueError, EOFError):
        return []


def _with_unseen(
    graph: KnowledgeGraph, seen: KnowledgeGraph, table: pl.DataFrame, about: dict[str, Any], unseen: str
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Table with the triples of its split that the file cannot rank, and a record of them."""
    split, filters = about["split"], about["filter"]
    triples = graph.splits[split] if split is not None else np.empty((0, 3), np.int32)
    said = about_unseen(graph, seen, triples, unseen)
    if unseen == "drop":
        return table, said
    if split is None:
        raise ArgumentError("unseen", "last needs a split of the graph that holds all triples.")
    rest = triples[~is_seen(graph, seen, triples)]
    sides = [one for one in SIDES if (table["side"] == one).any()]
    facts = filter_facts(graph, filters) if filters else None
    parts = [table]
    for one in sides if len(rest) else []:
        ranks = last_ranks(graph, seen, rest, one, facts)
        more = described(
            graph,
            rest,
            np.full(len(rest), one),
            ranks,
            filtered=bool(table["filtered"].all()),
            model=None,
            popularity="popularity" in table.columns,
        )
        if "score" in table.columns:
            more = more.with_columns(score=pl.lit(-math.inf))
        parts.append(more.select(table.columns))
    return validated(pl.concat(parts)), said


def labelled_scores(path: Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """Arrays scores, [rows, entities], and entity_labels of a .npz file.

    Raises:
        ValueError: naming the file, if it is not such a file.
        OSError: if the file cannot be opened.
    """
    arrays = _arrays(path, ("scores", "entity_labels"))
    scores = arrays["scores"]
    if scores.ndim != 2:
        raise ValueError(f"{path}: scores must be of shape [n, entities], got shape {scores.shape}.")
    entities, _ = _labels(path, arrays, scores)
    return scores, entities or ()


def _arrays(
    path: Path, needed: Sequence[str] = _ARRAYS, known: Sequence[str] = _ARRAYS + _LABELS
) -> dict[str, np.ndarray]:
    """Arrays of the file that are `known`; ValueError if a needed one is missing."""
    with path.open("rb") as stream:
        is_array = stream.read(len(_MAGIC)) == _MAGIC
    if not is_array and not zipfile.is_zipfile(path):
        raise ValueError(f"{path}: not a .npz file of scores: it is not an archive.")
    require_npz_bounded(path)
    with path.open("rb") as stream, damage_named(path, "not a .npz file of scores"):
        file = np.load(stream, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("one array instead of several")
        if lacking := _lacking(file.files, needed):
            raise ValueError(lacking)
        names = [name for name in file.files if name in known]
        with zipfile.ZipFile(stream) as archive:
            for member in archive.infolist():
                if member.filename.removesuffix(".npy") in names:
                    _check_size(archive, member)
        return {name: file[name] for name in names}


def require_scores(path: Path, names: Sequence[str]) -> None:
    """ValueError naming the file if it lacks the arrays of score matrices.

    A file without arrays is left to its reader.
    """
    if names and (lacking := _lacking(names, _ARRAYS)):
        raise ValueError(f"{path}: not a .npz file of scores: {lacking}.")


def _lacking(names: Sequence[str], needed: Sequence[str]) -> str:
    """Message about missing arrays; empty if there are none."""
    missing = [name for name in needed if name not in names]
    return f"no array {', '.join(missing)}; arrays found: {', '.join(names) or 'none'}" if missing else ""


def _check_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    """ValueError, before memory is taken, if `member` is not an array or not as long as it states."""
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as file:
        start = file.read(len(_MAGIC) + 2)
        if not start.startswith(_MAGIC):
            raise ValueError(f"{name} is not an array")
        is_first = start[len(_MAGIC) :] == b"\x01\x00"
        formats = np.lib.format
        shape, _, dtype = (formats.read_array_header_1_0 if is_first else formats.read_array_header_2_0)(file)
        there = member.file_size - file.tell()
    said = math.prod(shape) * dtype.itemsize
    # Objects are pickles of any length; reading them raises an error.
    if said != there and not dtype.hasobject:
        raise ValueError(f"{name} holds {there} bytes, but {said} by its header, {dtype} of shape {shape}")


def _labels(
    path: Path, arrays: dict[str, np.ndarray], scores: np.ndarray
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Labels of entities and of relations, None if the file has none."""
    found: list[tuple[str, ...] | None] = []
    for name in _LABELS:
        labels = arrays.get(name)
        if labels is None:
            found.append(None)
            continue
        if labels.dtype.kind != "U" or labels.ndim != 1:
            raise ValueError(f"{path}: {name} must be strings, got {labels.dtype} of shape {labels.shape}.")
        values, counts = np.unique(labels, return_counts=True)
        if (counts > 1).any():
            raise ValueError(f"{path}: {name} must be unique, got {str(values[counts > 1][0])!r} twice.")
        found.append(tuple(labels.tolist()))
    if found[0] is not None and len(found[0]) != scores.shape[1]:
        raise ValueError(
            f"{path}: entity_labels must be {scores.shape[1]}, one per column of scores, got {len(found[0])}."
        )
    return found[0], found[1]


def _in_order(
    graph: KnowledgeGraph, entities: tuple[str, ...] | None, relations: tuple[str, ...] | None, columns: int
) -> KnowledgeGraph:
    """Graph with the ids of the file; renumbering its triples is cheaper than moving columns of scores."""
    if columns != graph.num_entities:
        hint = "; `unseen` drop or last ranks among the entities of the file, by labels" if columns else ""
        raise ValueError(
            f"scores have {columns} columns, one per entity, but the graph has {graph.num_entities} entities"
            f"{hint if columns < graph.num_entities else ''}."
        )
    splits = {name: triples.copy() for name, triples in graph.splits.items()}
    if entities is not None:
        place = _places("entity", graph.entities, entities)
        for triples in splits.values():
            triples[:, 0], triples[:, 2] = place[triples[:, 0]], place[triples[:, 2]]
    if relations is not None:
        # Relations that the file does not know are numbered after the relations that it knows.
        given = set(relations)
        relations += tuple(label for label in graph.relations if label not in given)
        place = _places("relation", graph.relations, relations)
        for triples in splits.values():
            triples[:, 1] = place[triples[:, 1]]
    return KnowledgeGraph(entities or graph.entities, relations or graph.relations, splits)


def _places(kind: str, labels: tuple[str, ...], order: tuple[str, ...]) -> np.ndarray:
    """Index in `order` of each of `labels`, which are the same labels; int32."""
    known = set(labels)
    for label in order:
        if label not in known:
            raise ValueError(f"{kind}_labels hold {label!r}, but the graph has no such {kind}.")
    place = {label: i for i, label in enumerate(order)}
    return np.array([place[label] for label in labels], np.int32)


def _raw(
    scores: np.ndarray,
    triples: np.ndarray,
    side: np.ndarray,
    entities: tuple[str, ...] | None,
    relations: tuple[str, ...] | None,
    tolerance: float,
    score: bool,
    sort: str | None,
) -> pl.DataFrame:
    """Rank table of raw ranks, with labels if there are any, and ids otherwise."""
    triples = triples_checked(triples, scores.shape[1], None if relations is None else len(relations))
    side = answer_sides(side, len(triples))
    named = query_names(triples, side, entities, relations)
    with_score = score_checked(score, tolerance)
    answer = answer_ids(triples, side)
    ranks = ranks_from_scores(scores, answer, tolerance=tolerance, named=named, sort=sort)
    columns: dict[str, Any] = {}
    for name, of, ids in zip(TRIPLE, (entities, relations, entities), triples.T, strict=True):
        columns[name] = ids if of is None else pl.Series(of, dtype=pl.String).gather(ids)
    columns["side"] = pl.Series(side.tolist(), dtype=pl.String)
    columns |= {name: getattr(ranks, name) for name in RANKS}
    if with_score:
        columns["score"] = own_scores(scores, answer)
    return validated(pl.DataFrame(columns).with_columns(filtered=False))
