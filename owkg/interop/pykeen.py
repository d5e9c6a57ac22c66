"""PyKEEN: models, pipeline results, triples factories and results.json, without importing PyKEEN."""

import json
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from owkg import checks
from owkg.errors import ArgumentError
from owkg.files.lines import line_error
from owkg.interop.states import LIBRARIES, ImportedEmbeddings, parameters_of
from owkg.kg import KnowledgeGraph
from owkg.metrics import metric
from owkg.models import MODELS, Embeddings
from owkg.ranks import RankTable
from owkg.ranks.build import rank_table

# Maximum bytes of one block of float64 scores.
_BYTES = 2**26
_SPLITS = {"train": "training", "valid": "validation", "test": "testing"}


def _norm(p: float) -> int:
    if p not in (1, 2):
        raise ArgumentError(
            "model", f"must have a scoring_fct_norm of 1 or 2, got {p:g}; `ranks` takes any model."
        )
    return int(p)


def graph(factories: Any) -> KnowledgeGraph:
    """Knowledge graph of a PyKEEN dataset, or of triples factories by split.

    Args:
        factories: a dataset with training, validation and testing, or a mapping such as
            {"train": dataset.training, "test": dataset.testing}. If a factory has no labels, its ids are the
            labels.

    Raises:
        ValueError: if it is neither, or the factories have different ids for a label.
    """
    if not isinstance(factories, dict):
        names = {split: getattr(factories, name, None) for split, name in _SPLITS.items()}
        factories = {split: factory for split, factory in names.items() if factory is not None}
    if not factories or not all(hasattr(one, "mapped_triples") for one in factories.values()):
        raise ArgumentError("factories", "must be a PyKEEN dataset, or triples factories by split.")
    labels = [_labels(one) for one in factories.values()]
    # Validation and testing have the labels of training and no others.
    entities, relations = (max((own[i] for own in labels), key=len) for i in (0, 1))
    for split, own in zip(factories, labels, strict=True):
        if own[0] != entities[: len(own[0])] or own[1] != relations[: len(own[1])]:
            raise ArgumentError("factories", f"must have the same ids for a label; ids of {split} differ.")
    splits = {
        split: np.ascontiguousarray(_array(one.mapped_triples), np.int32) for split, one in factories.items()
    }
    return KnowledgeGraph(entities, relations, splits)


def ranks(
    model: Any,
    factory: Any,
    *,
    known: Any = None,
    side: str | Sequence[str] = ("head", "tail"),
    tolerance: float = 0.0,
    name: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RankTable:
    """Filtered ranks of a PyKEEN model, the ranks that PyKEEN's `RankBasedEvaluator` computes.

    Args:
        model: a model, or the result of a pipeline.
        factory: triples to rank: a dataset (its testing split), or a triples factory.
        known: triples factories whose answers are filtered out, in addition to `factory` itself: training and
            validation. Default for a dataset: its other splits. Required for a triples factory.
        side: "head", "tail", "both", or a list of these. Default: head and tail.
        tolerance: maximum difference from the answer's score at which a score ties with it. Default 0.
        name: value of the column `model`. Default: the class of the model.
        on_progress: function called with (triples done, triples in all). Default: none.

    Returns:
        The rank table, with tails after heads, scores and popularity.

    Raises:
        ValueError: if `model` does not score triples, or `known` is missing for a triples factory, because
            ranks without the training and validation triples would not be the filtered ranks.
    """
    scorer = model.model if hasattr(model, "metric_results") else model
    if not hasattr(scorer, "predict_t"):
        raise ArgumentError(
            "model", f"must be a PyKEEN model or pipeline result, got {type(model).__name__}."
        )
    if hasattr(factory, "testing"):
        whole = graph(factory)
    elif not hasattr(factory, "mapped_triples"):
        raise ArgumentError("factory", f"must be a PyKEEN dataset or factory, got {type(factory).__name__}.")
    else:
        if known is None:
            raise ArgumentError(
                "known", "must be given with a factory: its training and validation; a dataset has them."
            )
        one = hasattr(known, "mapped_triples") or not isinstance(known, Iterable)
        several = [known] if one else list(known)
        if not all(hasattr(each, "mapped_triples") for each in several):
            raise ArgumentError(
                "known", f"must be triples factories, such as dataset.training, got {type(known).__name__}."
            )
        first, *more = several or [None]
        splits = {} if first is None else {"train": first}
        splits |= {f"known_{i}": one for i, one in enumerate(more)}
        whole = graph(splits | {"test": factory})
    filters = [split for split in whole.splits if len(whole.splits[split])]
    triples = whole.splits["test"]
    counts = {
        "entities": (getattr(scorer, "num_entities", None), whole.num_entities),
        "relations": (getattr(scorer, "num_real_relations", None), whole.num_relations),
    }
    for kind, (own, here) in counts.items():
        if own is not None and own != here:
            raise ArgumentError("factory", f"must be of the model: it has {here} {kind}, the model {own}.")
    sides = ["head", "tail"] if side == "both" else checks.names("side", side)
    if not sides or set(sides) - {"head", "tail"}:
        raise ArgumentError("side", f"must be head, tail or both, got {side!r}.")
    size = max(_BYTES // (8 * whole.num_entities), 1)
    parts, done = [], 0
    options: Any = {"filter_splits": filters, "tolerance": tolerance, "score": not tolerance}
    options |= {"popularity": "train" in whole.splits, "model": name or type(scorer).__name__}
    for one in sides:
        for start in range(0, len(triples), size):
            block = triples[start : start + size]
            parts.append(rank_table(whole, _scores(scorer, block, one), block, one, **options))
            done += len(block)
            if on_progress is not None:
                on_progress(done, len(sides) * len(triples))
    return RankTable.trusted(pl.concat(parts), {"split": "test", "filter": filters})


def embeddings(model: Any, factory: Any) -> ImportedEmbeddings:
    """Embeddings of a PyKEEN model; `.ranks(graph)` ranks with them and `.write(path)` writes a file.

    Args:
        model: TransE, DistMult, ComplEx, RotatE, RESCAL, HolE, CP or MuRE (CP and MuRE with inverse triples),
            or the result of a pipeline.
        factory: triples factory on which the model was trained; it has the labels.

    Returns:
        Arrays `entity` and `relation`, complex if the model's arrays are, and `relation_inverse` with inverse
        triples; the name of the model and its options.

    Raises:
        ValueError: if the model is another one, or does not have one row for each label.
    """
    scorer = model.model if hasattr(model, "metric_results") else model
    kind = type(scorer).__name__
    peers = {name: one.peers["pykeen"] for name, one in MODELS.items() if "pykeen" in one.peers}
    known = {peer.named: name for name, peer in peers.items()}
    if kind not in known:
        raise ArgumentError("model", f"must be of {', '.join(known)}, got {kind}; `ranks` takes any model.")
    named, chosen = known[kind], {}
    peer = peers[named]
    if peer.differs:
        raise ArgumentError(
            "model", f"must be another one, as PyKEEN's {kind} {peer.differs}; `ranks` takes it as it is."
        )
    for setting, value in peer.settings:
        if (got := getattr(scorer.interaction, setting)) != value:
            raise ArgumentError("model", f"must have {setting} {value}, got {got}; `ranks` takes any model.")
    if "norm" in MODELS[named].options:
        chosen["norm"] = peer.norm or _norm(scorer.interaction.p)
    if not hasattr(factory, "num_entities"):
        raise ArgumentError("factory", f"must be a PyKEEN factory, got {type(factory).__name__}.")
    entities, relations = _labels(factory)
    # As `entity_representations.0._embeddings.weight`.
    places = [name.split(".")[:2] for name in peer.arrays or LIBRARIES["pykeen"]]
    arrays = parameters_of(peer, [_array(getattr(scorer, of)[int(i)]()) for of, i in places])
    if len(arrays["relation"]) == 2 * len(relations):
        # A relation and its inverse have adjacent ids.
        arrays["relation"], arrays["relation_inverse"] = arrays["relation"][::2], arrays["relation"][1::2]
    for name, labels in (("entity", entities), ("relation", relations)):
        if len(arrays[name]) != len(labels):
            raise ArgumentError(
                "factory",
                f"must be the one the model was trained on, got {len(labels)} labels of {name} for "
                f"{len(arrays[name])} rows.",
            )
    return ImportedEmbeddings(Embeddings(arrays, entities, relations, source=kind), named, chosen)


def read_metrics(path: str | PathLike[str]) -> pl.DataFrame:
    """Metrics of a `results.json` that PyKEEN wrote, by their names in owkg.

    Args:
        path: the file.

    Returns:
        Columns side (head, tail, both), ties (optimistic, realistic, pessimistic), metric (owkg's name, null
        if owkg has no such metric), pykeen (PyKEEN's key) and value.

    Raises:
        ValueError: naming the file, if it is not JSON or holds no metrics.
        OSError: if it cannot be opened.
    """
    place = checks.path("path", path)
    if place.is_dir():
        raise ValueError(f"{place}: must be a file; results.json is in the folder that PyKEEN saves.")
    try:
        held = json.loads(place.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{place}: must be a results.json, got JSON that is nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise line_error(place, error.lineno, f"must be JSON ({error.msg}).") from None
    except UnicodeDecodeError:
        raise ValueError(f"{place}: must be text in UTF-8.") from None
    metrics = held.get("metrics") if isinstance(held, dict) else None
    try:
        rows = [
            (side, ties, _named(key), key, float(value))
            for side, of_side in metrics.items()  # pyright: ignore[reportOptionalMemberAccess]
            for ties, values in of_side.items()
            for key, value in values.items()
        ]
    except (AttributeError, TypeError, ValueError):
        rows = []
    if not rows:
        raise ValueError(f"{place}: must hold metrics by side and ties, as PyKEEN's results.json does.")
    schema = {
        "side": pl.String,
        "ties": pl.String,
        "metric": pl.String,
        "pykeen": pl.String,
        "value": pl.Float64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _named(key: str) -> str | None:
    try:
        return metric(key).name
    except ValueError:
        return None


def _labels(factory: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels of entities and relations by id; ids if a core factory has no labels."""
    found = []
    for ids, count in (
        (getattr(factory, "entity_to_id", None), factory.num_entities),
        (
            getattr(factory, "relation_to_id", None),
            getattr(factory, "real_num_relations", factory.num_relations),
        ),
    ):
        found.append(
            tuple(map(str, range(count))) if ids is None else tuple(sorted(ids, key=ids.__getitem__))
        )
    return found[0], found[1]


def _array(tensor: Any) -> np.ndarray:
    return tensor.detach().cpu().numpy()


def _scores(model: Any, triples: np.ndarray, side: str) -> np.ndarray:
    """Scores of all entities in the position of the answer."""
    import torch  # pyright: ignore[reportMissingImports]

    asked = torch.as_tensor(triples[:, :2] if side == "tail" else triples[:, 1:], dtype=torch.long)
    predict = model.predict_t if side == "tail" else model.predict_h
    in_training = model.training
    try:
        with torch.no_grad():
            scores = predict(asked.to(model.device))
            return np.array(_array(scores if scores.dtype == torch.float64 else scores.float()))
    finally:  # predicting turns training mode off
        model.train(in_training)
