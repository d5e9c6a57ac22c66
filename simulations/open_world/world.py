"""Open worlds with known full answers: training facts, queries, missing answers."""

import json
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Bool, Int32, Int64

from owkg import checks, kg
from owkg.files.storage import checksum
from owkg.openworld import test_share
from simulations.open_world.curves import CORRELATED, SPARSE

_FILES = {SPARSE: "test_sparse", CORRELATED: "test_sparse_correlated"}
_METADATA, _QUERIES = "metadata.json", "queries.tsv"
# File endings of its data files.
_DATA = (".txt", ".dict", ".tsv")
# Training share of the known facts; the published worlds do not state it.
_TRAIN_RATE = 0.7
# Allowed distance between the share of known answers and the share that the density implies.
_APART = 0.05


class ClosedWorld(NamedTuple):
    """A sampled world. Answers to one query are adjacent, and queries are numbered in this order.

    Attributes:
        name: name of its folder.
        density: share of the facts of the closed world that are known.
        graph: graph with the split train only.
        triples: facts behind the queries for tails, known or missing, [answers, 3].
        query: number of the query that each fact answers, from 0, [answers].
        present: by test set, whether it has each answer, [answers].
        known: the answers in train, in valid if it exists, and in the full test.
    """

    name: str
    density: float
    graph: kg.KnowledgeGraph
    triples: Int32[np.ndarray, "answers 3"]
    query: Int64[np.ndarray, "answers"]
    present: dict[str, Bool[np.ndarray, "answers"]]
    known: kg.KnownAnswers

    @property
    def num_queries(self) -> int:
        """Number of queries."""
        return int(self.query[-1]) + 1


def read_world(folder: Path, *, density: float | None = None) -> ClosedWorld:
    """Reads a world, either from `owkg sample` or from the published family tree.

    The folder holds `train`, `test_full`, `test_sparse`, optionally `test_sparse_correlated`, and optionally
    `queries.tsv`, which lists the queries for tails. Without this list, the world has all queries for tails
    that the full test answers.

    Args:
        folder: folder to read.
        density: density of the world; None: from `metadata.json` or the name of the folder ("75", "d0.75").

    Raises:
        ValueError: if a file is missing or has another checksum than in `metadata.json`, a sparse answer is
            not in the full test, an asked fact is in train, a query has no answer in a test set, or the
            density does not fit the facts. The message names the folder.
    """
    _require_unchanged(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about labels that no triple has
        whole = kg.read_graph(folder)
    for name in ("train", "test_full", "test_sparse"):
        if not len(whole.splits.get(name, ())):
            raise ValueError(f"{folder}: must hold triples in {name}.txt; it has {', '.join(whole.splits)}.")
    train, full = whole.splits["train"], whole.splits["test_full"]
    if (twice := _is_among(full, train, whole)).any():
        raise ValueError(f"{folder}: {_named(whole, full[twice][0])} is in train and in test_full.")
    triples, query = _asked(folder, whole, full)
    parameters = _parameters(folder)
    density = _density(folder, density, parameters)
    present = {}
    for name, file in _FILES.items():
        if file not in whole.splits:
            continue
        facts = whole.splits[file]
        if not (full_too := _is_among(facts, full, whole)).all():
            stranger = _named(whole, facts[~full_too][0])
            raise ValueError(f"{folder}: {stranger} is in {file}, but not in test_full.")
        own = _is_among(triples, facts, whole)
        if not np.bincount(query, own).all():
            first = int(np.argmin(np.bincount(query, own) > 0))
            fact = triples[np.searchsorted(query, first)]
            asked = f"{whole.entities[fact[0]]} {whole.relations[fact[1]]} ?"
            raise ValueError(f"{folder}: no answer to {asked} is in {file}.")
        present[name] = own
        if name == SPARSE:
            _check_density(folder, density, parameters, len(facts) / len(full))
    graph = kg.KnowledgeGraph(whole.entities, whole.relations, {"train": train})
    valid = whole.splits.get("valid", train[:0])
    known = _known(np.concatenate([train, valid, full]), whole)
    return ClosedWorld(folder.name, density, graph, triples, query, present, known)


def read_worlds(folder: Path, densities: list[float] | None = None) -> list[ClosedWorld]:
    """Reads the worlds in the subfolders of `folder`, densest first, or the one world that `folder` is.

    Args:
        folder: parent folder of folders such as "95", "75", or "d0.95", "d0.75".
        densities: wanted densities; None: all that exist.

    Raises:
        ValueError: if there is no world, or a wanted one does not exist.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: must be a folder, but there is none.")
    places = [folder] if _is_world(folder) else [one for one in sorted(folder.iterdir()) if _is_world(one)]
    if not places:
        raise ValueError(f"{folder}: holds no open world; one has train, test_full and test_sparse.")
    of: dict[float, Path] = {}
    for place in places:
        density = _density(place, None, _parameters(place))
        if density in of:
            raise ValueError(f"{place}: has density {density:g}, and so has {of[density].name}.")
        of[density] = place
    wanted = sorted(of if densities is None else densities, reverse=True)
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"`density` must name each density once, got {', '.join(f'{d:g}' for d in wanted)}.")
    for density in wanted:
        if density not in of:
            there = ", ".join(f"{d:g}" for d in sorted(of))
            raise ValueError(f"{folder}: holds no world of density {density:g}; it has {there}.")
    return [read_world(of[density]) for density in wanted]


def _is_world(folder: Path) -> bool:
    return folder.is_dir() and any(folder.glob("test_full.txt*")) and any(folder.glob("train.txt*"))


def _is_among(facts: np.ndarray, others: np.ndarray, graph: kg.KnowledgeGraph) -> Bool[np.ndarray, "facts"]:
    return kg.is_known(_known(others, graph), facts)


def _known(facts: np.ndarray, graph: kg.KnowledgeGraph) -> kg.KnownAnswers:
    sizes = {"num_entities": graph.num_entities, "num_relations": graph.num_relations}
    return kg.known_answers(facts, "tail", **sizes)


def _named(graph: kg.KnowledgeGraph, fact: np.ndarray) -> str:
    return f"{graph.entities[fact[0]]} {graph.relations[fact[1]]} {graph.entities[fact[2]]}"


def _asked(
    folder: Path, graph: kg.KnowledgeGraph, full: np.ndarray
) -> tuple[Int32[np.ndarray, "answers 3"], Int64[np.ndarray, "answers"]]:
    """(the asked facts, the number of the query of each), query by query."""
    code = full[:, 0].astype(np.int64) * graph.num_relations + full[:, 1]
    if (path := folder / _QUERIES).is_file():
        code_of = _queries(path, graph)
        mine = np.isin(code, code_of)
        full, code = full[mine], code[mine]
        if not len(full):
            raise ValueError(f"{path}: must have a query for tails that test_full answers, got none.")
    order = np.lexsort((full[:, 2], code))
    return full[order], np.unique(code[order], return_inverse=True)[1].ravel()


def _queries(path: Path, graph: kg.KnowledgeGraph) -> Int64[np.ndarray, "queries"]:
    """entity * relations + relation of the queries for tails in `path`."""
    try:
        table = pl.read_csv(path, separator="\t", quote_char=None, infer_schema=False, glob=False)
        table = table.filter(pl.col("side") == "tail").select("entity", "relation")
    except pl.exceptions.PolarsError as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"{path}: must be a table of side, entity and relation ({first}).") from None
    ids = []
    for column, labels in (("entity", graph.entities), ("relation", graph.relations)):
        found = table[column].replace_strict(dict(zip(labels, range(len(labels)), strict=True)), default=None)
        if found.null_count():
            row = int(found.is_null().arg_max() or 0)
            raise ValueError(f"{path}: the graph has no {column} {table[column][row]!r}.")
        ids.append(found.to_numpy().astype(np.int64))
    return ids[0] * graph.num_relations + ids[1]


def _parameters(folder: Path) -> dict[str, float]:
    """Sampling parameters that the folder states; empty if it states none."""
    path = folder / _METADATA
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8")).get("parameters")
    except (ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: must be JSON of an object ({error}).") from None
    if not isinstance(found, dict):
        return {}
    parameters = {name: found[name] for name in ("density", "train_rate", "valid_rate") if name in found}
    for name, value in parameters.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and 0 <= value <= 1):
            raise ValueError(f"{path}: {name} must be a number in [0, 1], got {value!r}.")
    return parameters


def _require_unchanged(folder: Path) -> None:
    """Raises ValueError if a data file of `folder` has another checksum than its metadata, if any, states."""
    if not (folder / _METADATA).is_file():
        return
    try:
        sums = json.loads((folder / _METADATA).read_bytes())["sha256"].items()
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return  # made elsewhere, or `_parameters` raised
    for name, expected in sums:
        path = folder / name
        if path.parent == folder and path.suffix in _DATA and path.is_file() and checksum(path) != expected:
            raise ValueError(
                f"{path}: was changed after it was written: its checksum differs from {_METADATA}."
            )


def _density(folder: Path, given: float | None, parameters: dict[str, float]) -> float:
    if given is not None:
        return given
    if "density" in parameters:
        return parameters["density"]
    if match := re.fullmatch(r"d?(0?\.\d+|1(?:\.0*)?)", folder.name):
        return float(match[1])
    if match := re.fullmatch(r"[1-9]\d", folder.name):
        return int(match[0]) / 100
    raise ValueError(f"{folder}: must state its density, in {_METADATA} or by a name such as 75 or d0.75.")


def _check_density(folder: Path, density: float, parameters: dict[str, float], share: float) -> None:
    # Valid facts, like training facts, are in neither test.
    rate = parameters.get("train_rate", _TRAIN_RATE) + parameters.get("valid_rate", 0.0)
    expected = float(test_share(density, rate))
    if abs(share - expected) > _APART:
        raise ValueError(
            f"{folder}: a density of {density:g} leaves {expected:.3f} of the full test in the sparse one "
            f"where {rate:g} of the known facts train or validate; here it is {share:.3f}."
        )


def with_correlated(world: ClosedWorld, score: Any, seed: int = 0) -> ClosedWorld:
    """`world` with one more test set, whose missing facts are chosen by the predictions of a model.

    Out of the n answers to a query, min(Binomial(n, share missing in the sparse test), n - 1) are missing:
    the answers that the model ranks worst, and among equal scores the later ones (Yang et al. 2022: in
    section 6.2 a model chooses, in its released code it chooses the worst). An existing correlated set is
    kept.

    Args:
        world: world of the queries.
        score: score of each answer by the model; larger is better.
        seed: seed of the numbers of missing answers.

    Raises:
        ValueError: if `score` is not a number for each answer.
    """
    score = checks.real("score", score, -np.inf, np.inf)
    if score.shape != world.query.shape:
        raise ValueError(
            f"`score` must be a number for each of {len(world.query)} answers, got the shape {score.shape}."
        )
    if CORRELATED in world.present:
        return world
    counts = np.bincount(world.query)
    share = 1 - world.present[SPARSE].mean()
    missing = np.minimum(np.random.default_rng(seed).binomial(counts, share), counts - 1)
    place = np.empty(len(score), np.int64)
    place[np.lexsort((-np.arange(len(score)), score, world.query))] = np.arange(len(score))
    from_worst = place - (np.cumsum(counts) - counts)[world.query]
    return world._replace(present=world.present | {CORRELATED: from_worst >= missing[world.query]})
